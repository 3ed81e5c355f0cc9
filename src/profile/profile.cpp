// Answers `scalecalc profile`: where a measured step spent its time and which kernel would gain most.
#include "profile/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/diagnostic.h"
#include "base/text.h"
#include "base/units.h"
#include "profile/byte_source.h"
#include "profile/kernel_totals.h"

namespace scalecalc {
namespace {

/// Of three steps or more the first is warm-up: kernels are loaded, the allocator grows.
constexpr std::size_t kStepsWithWarmUp = 3;

double sum(const std::array<double, kDeviceWorks>& work_s, bool (*of)(DeviceWork)) {
  double out = 0;
  for (std::size_t w = 0; w < kDeviceWorks; ++w) out += of(static_cast<DeviceWork>(w)) ? work_s.at(w) : 0;
  return out;
}

bool is_exposed(DeviceWork work) {
  return work == DeviceWork::kExposed || work == DeviceWork::kCollective || work == DeviceWork::kSendReceive;
}

Ticks ticks_of(const TimeParts& parts, bool (*of)(DeviceWork)) {
  Ticks out = 0;
  for (std::size_t w = 0; w < kDeviceWorks; ++w) out += of(static_cast<DeviceWork>(w)) ? parts.counted.at(w) : 0;
  return out;
}

class Profiler {
 public:
  Profiler(const ProfileQuestion& question, const HardwareSpec& hw, const Stop& stop)
      : question_(question), stop_(stop), totals_(hw) {
    out_.hw = hw;
  }

  ProfileAnswer run() {
    std::vector<std::string> of_archives = question_.notes;
    std::vector<std::string> files = question_.recordings;
    if (files.empty()) files = recordings_in(question_.files, of_archives, stop_);
    notes_.insert(of_archives.begin(), of_archives.end());
    for (const std::string& file : files) read(file);
    average();
    kernels();
    losses();
    assume();
    return std::move(out_);
  }

 private:
  void read(const std::string& file) {
    Recording recording = read_recording(file, stop_);
    if (recording.events.empty()) {
      throw UserError({Diagnostic{SourceSpan{.file = file},
                                  fmt::format("no device did anything in the {} events read", recording.read),
                                  "record with the GPU's activities: a rank without them says nothing of the chip"}});
    }
    if (out_.events_read > 0 && recording.format != out_.format) {
      const auto name = [](RecordingFormat format) { return kRecordingFormatNames[static_cast<std::size_t>(format)]; };
      throw UserError({Diagnostic{
          SourceSpan{.file = file},
          fmt::format("this is of {}, and what was named before it of {}", name(recording.format), name(out_.format)),
          "several files are the ranks of one run, recorded alike: ask of each alone"}});
    }
    out_.format = recording.format;
    if (out_.recorded_chip.empty()) out_.recorded_chip = recording.chip;
    out_.events_read += recording.read;
    out_.device_events += recording.events.size();
    for (const std::string& note : recording.notes) notes_.insert(note);
    for (std::uint32_t d = 0; d < recording.devices.size(); ++d) device(recording, d);
  }

  void device(const Recording& recording, std::uint32_t d) {
    std::vector<RecordedEvent> events;
    for (const RecordedEvent& event : recording.events) {
      if (recording.lanes[event.lane].device == d) events.push_back(event);
    }
    if (events.empty()) return;
    std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
    FoundSteps found = find_steps(recording, d, events);
    const LeafPieces pieces = leaf_pieces(events);
    const std::vector<std::uint16_t> groups = groups_.of(recording, events);
    ProfiledRank rank{.file = recording.file, .device = recording.devices[d], .rank = recording.rank};
    rank.steps = std::move(found.windows);
    rank.first_counted = rank.steps.size() >= kStepsWithWarmUp ? 1 : 0;
    const std::span<const StepWindow> counted = std::span(rank.steps).subspan(rank.first_counted);
    for (const StepWindow& window : counted) rank.parts.add(time_parts(recording, events, groups, pieces, window));
    for (const LeafPiece& piece : pieces.all) {
      const RecordedName& name = recording.names[events[piece.event].name];
      if (name.work == DeviceWork::kExposed) rank.exposed[name.text] += piece.end - piece.start;
    }
    const bool drawn = recording.format == RecordingFormat::kOwnTrace;
    totals_.add(recording, events, drawn ? outside_exposed(recording, events, pieces) : pieces, counted);
    out_.steps_how = found.how;
    out_.ranks.push_back(std::move(rank));
  }

  void average() {
    const double ranks = static_cast<double>(out_.ranks.size());
    for (const CommunicationGroup& group : groups_.all()) out_.groups.push_back({group});
    for (const ProfiledRank& rank : out_.ranks) {
      const auto mean = [&](Ticks ticks) { return rank.per_step(ticks) / ranks; };
      out_.step_s += mean(rank.parts.total());
      for (std::size_t w = 0; w < kDeviceWorks; ++w) out_.work_s.at(w) += mean(rank.parts.counted.at(w));
      for (std::size_t i = 0; i < kIdleCauses; ++i) out_.idle_s.at(i) += mean(rank.parts.idle.at(i));
      out_.communication_s += mean(rank.parts.communication);
      out_.hidden_s += mean(rank.parts.hidden);
      for (std::size_t g = 0; g < rank.parts.groups.size(); ++g) {
        out_.groups[g].exposed_s += mean(rank.parts.groups[g].exposed);
        out_.groups[g].running_s += mean(rank.parts.groups[g].running);
      }
    }
    const double unknown = out_.work_s.at(static_cast<std::size_t>(DeviceWork::kUnknown));
    out_.recognised = out_.step_s > 0 ? 1 - unknown / out_.step_s : 1;
  }

  void kernels() {
    double steps = 0;
    for (const ProfiledRank& rank : out_.ranks) steps += static_cast<double>(rank.counted());
    double matmul_s = 0, known_s = 0, at_peak_s = 0, flops = 0, vector_s = 0, vector_least_s = 0;
    for (ProfiledKernel& kernel : totals_.kernels(steps)) {
      if (kernel.flops) flops += *kernel.flops;
      if (kernel.work == DeviceWork::kMatmul) {
        matmul_s += kernel.seconds;
        if (kernel.of_peak) {
          known_s += kernel.seconds;
          at_peak_s += *kernel.of_peak * kernel.seconds;
        }
      }
      if (kernel.work == DeviceWork::kVector && kernel.roofline_s) {
        vector_s += kernel.seconds;
        vector_least_s += *kernel.roofline_s;
      }
      (kernel.work == DeviceWork::kUnknown ? out_.unrecognised : out_.kernels).push_back(std::move(kernel));
    }
    if (flops > 0) out_.flops = flops;
    if (known_s > 0) out_.matmul_of_peak = at_peak_s / known_s;
    if (matmul_s > 0) out_.matmul_known = known_s / matmul_s;
    if (vector_s > 0) out_.vector_of_hbm = vector_least_s / vector_s;
  }

  void lose(std::string_view cause, double seconds, std::string remedy) {
    constexpr double kWorthSaying = 0.002;
    if (seconds > kWorthSaying * out_.step_s) out_.lost.push_back({cause, seconds, std::move(remedy)});
  }

  void losses() {
    const auto idle = [&](IdleCause cause) { return out_.idle_s.at(static_cast<std::size_t>(cause)); };
    lose("waiting for the host", idle(IdleCause::kHost),
         "launch fewer kernels: replay captured graphs (train --graphs), fuse, keep the host from synchronising");
    lose("launched, not yet running", idle(IdleCause::kQueued),
         "longer kernels, or graphs; a wait for another stream shows here too");
    lose("idle", idle(IdleCause::kUnknown), "pipeline bubble, host, or a wait for other ranks");
    lose("exposed communication", sum(out_.work_s, is_exposed),
         "overlap it with compute, or a layout that sends less (train --why-not, --from)");
    lose("copies", out_.work_s.at(static_cast<std::size_t>(DeviceWork::kCopy)),
         "copy beside compute on a stream of its own, from pinned memory");
    double matmul = 0, vector = 0, attention = 0;
    for (const ProfiledKernel& kernel : out_.kernels) {
      if (!kernel.roofline_s) continue;
      const double above = std::max(0.0, kernel.seconds - *kernel.roofline_s);
      if (kernel.work == DeviceWork::kMatmul) matmul += above;
      if (kernel.work == DeviceWork::kVector) vector += above;
      if (kernel.work == DeviceWork::kAttention) attention += above;
    }
    lose("matmuls below their roofline", matmul,
         "larger or fewer of them (micro-batch, less tensor parallelism), "
         "dimensions that fill tiles, another library");
    lose("attention below its roofline", attention, "a newer kernel (configs/kernels), longer sequences for each call");
    lose("elementwise below HBM's rate", vector, "fuse them into fewer kernels");
    lose("elementwise at HBM's rate", sum(out_.work_s, [](DeviceWork w) { return w == DeviceWork::kVector; }) - vector,
         "fuse them into matmuls' and norms' kernels: their bytes are read once less");
    lose("unrecognised kernels", out_.work_s.at(static_cast<std::size_t>(DeviceWork::kUnknown)),
         "their names are listed");
    std::stable_sort(out_.lost.begin(), out_.lost.end(),
                     [](const LostTime& a, const LostTime& b) { return a.seconds > b.seconds; });
  }

  void assume() {
    for (const std::string& note : notes_)
      out_.assumptions.push_back(Assumption{note, "", "recording", true}.as("recording"));
    const bool warm =
        std::any_of(out_.ranks.begin(), out_.ranks.end(), [](const auto& r) { return r.first_counted > 0; });
    if (warm)
      out_.assumptions.push_back(Assumption{"the first step is warm-up and does not count", "", ""}.as("warm_up"));
    if (out_.format == RecordingFormat::kOwnTrace) return;
    out_.assumptions.push_back(
        Assumption{"a moment counts once, for the first of: matmul, attention, elementwise, "
                   "routing, optimizer, communication, copy",
                   "", ""}
            .as("overlap"));
    if (out_.vector_of_hbm) {
      out_.assumptions.push_back(
          Assumption{"elementwise kernels read each operand once, and write as much as the largest holds", "", ""}.as(
              "elementwise_bytes"));
    }
  }

  const ProfileQuestion& question_;
  const Stop& stop_;
  KernelTotals totals_;
  CommunicationGroups groups_;
  ProfileAnswer out_;
  std::set<std::string> notes_;
};

}  // namespace

double ProfiledRank::compute_s() const { return per_step(ticks_of(parts, is_compute)); }
double ProfiledRank::exposed_s() const { return per_step(ticks_of(parts, is_exposed)); }
double ProfiledRank::idle_s() const { return per_step(parts.idle[0] + parts.idle[1] + parts.idle[2]); }

std::vector<std::string> recordings_in(const std::vector<std::string>& files, std::vector<std::string>& notes,
                                       const Stop& stop) {
  std::vector<std::string> out;
  for (const std::string& file : files) {
    const std::vector<ArchiveMember> members = archive_members(file, stop);
    if (members.empty()) {
      out.push_back(file);
      continue;
    }
    std::vector<std::string> read, left_out;
    for (const ArchiveMember& member : members) {
      const bool is_recording = looks_recorded(member.first_bytes);
      (is_recording ? read : left_out).push_back(member.path.substr(file.size() + 1));
      if (is_recording) out.push_back(member.path);
    }
    if (read.empty()) {
      throw UserError({Diagnostic{SourceSpan{.file = file},
                                  fmt::format("none of the archive's {} files is a recording", members.size()),
                                  "it holds " + join_and(left_out)}});
    }
    notes.push_back(fmt::format("of {} were read: {}{}", file, join_and(read),
                                left_out.empty() ? "" : "; left out: " + join_and(left_out)));
  }
  return out;
}

ProfileAnswer answer(const ProfileQuestion& question, const HardwareSpec& hw, const Stop& stop) {
  return Profiler(question, hw, stop).run();
}

}  // namespace scalecalc
