// Reads Chrome trace events as PyTorch's profiler (Kineto), JAX's trace viewer and `scalecalc trace` write them. What
// is not about a device, its launches or its steps is skipped as it is read: nine events of ten are Python frames.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <map>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/text.h"
#include "profile/hlo_category.h"
#include "profile/json_stream.h"
#include "profile/recording.h"

namespace scalecalc {
namespace {

/// What an event of a category is to us.
enum class EventRole : std::uint8_t { kKernel, kCpuOp, kRuntime, kHostMarker, kDeviceMarker, kDrawn, kIgnored };
struct CategoryRole {
  std::string_view category;
  EventRole role;
  DeviceWork work = DeviceWork::kUnknown;  ///< of kDrawn
};
// Kineto's of today, its of 2021 (capitals), MTIA's, and those of `scalecalc trace`.
constexpr std::array kCategoryRoles{
    CategoryRole{"kernel", EventRole::kKernel},
    CategoryRole{"gpu_memcpy", EventRole::kKernel},
    CategoryRole{"gpu_memset", EventRole::kKernel},
    CategoryRole{"Kernel", EventRole::kKernel},
    CategoryRole{"Memcpy", EventRole::kKernel},
    CategoryRole{"Memset", EventRole::kKernel},
    CategoryRole{"mtia_ccp_events", EventRole::kKernel},
    CategoryRole{"cpu_op", EventRole::kCpuOp},
    CategoryRole{"Operator", EventRole::kCpuOp},
    CategoryRole{"cuda_runtime", EventRole::kRuntime},
    CategoryRole{"cuda_driver", EventRole::kRuntime},
    CategoryRole{"mtia_runtime", EventRole::kRuntime},
    CategoryRole{"Runtime", EventRole::kRuntime},
    CategoryRole{"user_annotation", EventRole::kHostMarker},
    CategoryRole{"gpu_user_annotation", EventRole::kDeviceMarker},
    CategoryRole{"forward", EventRole::kDrawn, DeviceWork::kPass},
    CategoryRole{"backward", EventRole::kDrawn, DeviceWork::kPass},
    CategoryRole{"layer", EventRole::kDrawn, DeviceWork::kPass},
    CategoryRole{"weight gradient", EventRole::kDrawn, DeviceWork::kPass},
    CategoryRole{"transfer", EventRole::kDrawn, DeviceWork::kSendReceive},
    CategoryRole{"gradients", EventRole::kDrawn, DeviceWork::kCollective},
    CategoryRole{"optimizer", EventRole::kDrawn, DeviceWork::kOptimizer},
    CategoryRole{"weights", EventRole::kDrawn, DeviceWork::kCollective},
    CategoryRole{"host", EventRole::kDrawn, DeviceWork::kHost},
    CategoryRole{"exposed", EventRole::kDrawn, DeviceWork::kExposed},
};

const CategoryRole* role_of(std::string_view category) {
  const auto* const found = std::find_if(kCategoryRoles.begin(), kCategoryRoles.end(),
                                         [&](const CategoryRole& row) { return row.category == category; });
  return found == kCategoryRoles.end() ? nullptr : found;
}

/// The members of one event that we look at; texts keep their storage from event to event.
struct ChromeEvent {
  char phase = 0;
  std::string category, name, pid, tid, start, duration;
  std::string category_of_hlo, named, op_path;
  std::uint64_t external = 0, correlation = 0;
  RecordedOp op;
  unsigned seen = 0;

  void clear() {
    phase = 0;
    for (std::string* text : {&category, &name, &pid, &tid, &start, &duration, &category_of_hlo, &named, &op_path}) {
      text->clear();
    }
    external = correlation = 0;
    op = {};
    seen = 0;
  }
};

constexpr std::array<std::string_view, 7> kEventKeys{"ph", "cat", "name", "pid", "tid", "ts", "dur"};

class ChromeReader {
 public:
  ChromeReader(const std::string& path, const Stop& stop) : stop_(stop), source_(path), json_(source_), tables_(out_) {
    out_.file = path;
  }

  Recording read() {
    if (json_.peek() == '[') {
      events();
    } else {
      json_.members([&](std::string_view key) { member(key); });
    }
    json_.finish();
    if (!has_events_) {
      throw UserError({Diagnostic{SourceSpan{.file = out_.file}, "JSON without traceEvents",
                                  "is this a profile? a PyTorch execution trace has no times"}});
    }
    join();
    return std::move(out_);
  }

 private:
  struct CpuOp {
    std::uint64_t external;
    std::uint32_t op;
  };
  struct Launch {
    std::uint64_t correlation;
    std::uint64_t external;
    Ticks at;
  };
  struct Pending {  ///< beside out_.events
    std::uint64_t external;
    std::uint64_t correlation;
  };
  struct Plain {  ///< an event without a category: what it is depends on the names of its track
    RecordedEvent event;
    std::uint32_t track;
  };
  struct Track {
    std::string pid, tid;
  };

  void member(std::string_view key) {
    if (key == "traceEvents") return events();
    if (key == "schema") {
      const std::string_view schema = json_.scalar();
      own_ = schema.starts_with("scalecalc/trace");
    } else if (key == "deviceProperties" && json_.peek() == '[') {
      json_.items([&] {
        if (json_.peek() != '{') return json_.skip();
        json_.members([&](std::string_view property) {
          const std::string_view value = json_.scalar();
          if (property == "name" && out_.chip.empty()) out_.chip = value;
        });
      });
    } else if (key == "distributedInfo" && json_.peek() == '{') {
      json_.members([&](std::string_view property) {
        const std::string_view value = json_.scalar();
        if (property == "rank") out_.rank = whole(value);
        if (property == "world_size") out_.world = whole(value);
      });
    } else {
      json_.skip();
    }
  }

  static std::optional<std::int64_t> whole(std::string_view text) {
    std::int64_t out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return out;
  }
  static std::uint64_t id(std::string_view text) {
    std::uint64_t out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }
  static double real(std::string_view text) {
    double out = 0;
    std::from_chars(text.data(), text.data() + text.size(), out);
    return out;
  }

  void events() {
    has_events_ = true;
    json_.items([&] {
      constexpr std::uint64_t kPolled = 4096;
      if (++out_.read % kPolled == 0 && should_stop(stop_)) throw Stopped();
      event_.clear();
      json_.members([&](std::string_view key) { event_member(key); });
      take();
    });
  }

  void event_member(std::string_view key) {
    ChromeEvent& e = event_;
    const auto* const known = std::find(kEventKeys.begin(), kEventKeys.end(), key);
    if (known != kEventKeys.end()) {
      const unsigned bit = 1U << (known - kEventKeys.begin());
      if ((e.seen & bit) != 0) json_.fail(fmt::format("an event with two members {}", in_quotes(key)));
      e.seen |= bit;
    }
    if (key == "ph") {
      const std::string_view phase = json_.scalar();
      e.phase = phase.empty() ? '\0' : phase.front();
    } else if (key == "cat") {
      e.category = json_.scalar();
    } else if (key == "name") {
      e.name = json_.scalar();
    } else if (key == "pid") {
      e.pid = json_.scalar();
    } else if (key == "tid") {
      e.tid = json_.scalar();
    } else if (key == "ts") {
      e.start = json_.scalar();
    } else if (key == "dur") {
      e.duration = json_.scalar();
    } else if (key == "args" && json_.peek() == '{' && wanted()) {
      json_.members([&](std::string_view argument) { event_argument(argument); });
    } else {
      json_.skip();
    }
  }

  /// Whether the arguments of an event of this category matter; one that does not say yet may.
  bool wanted() const {
    if (event_.phase != 0 && event_.phase != 'X' && event_.phase != 'M') return false;
    return event_.category.empty() || role_of(event_.category) != nullptr;
  }

  void event_argument(std::string_view key) {
    ChromeEvent& e = event_;
    if (key == "Input Dims") return shapes(e.op.dims);
    if (key == "Input type") return shapes(e.op.types);
    if (key == "Concrete Inputs" && e.name.find("att") != std::string::npos) return shapes(e.op.values);
    if (key == "External id" || key == "external id") {
      e.external = id(json_.scalar());
    } else if (key == "correlation") {
      e.correlation = id(json_.scalar());
    } else if (key == "Collective name") {
      e.op.collective = json_.scalar();
    } else if (key == "In msg nelems") {
      e.op.elements_in = real(json_.scalar());
    } else if (key == "Out msg nelems") {
      e.op.elements_out = real(json_.scalar());
    } else if (key == "dtype") {
      e.op.element = json_.scalar();
    } else if (key == "Group size") {
      e.op.group_size = whole(json_.scalar()).value_or(0);
    } else if (key == "Process Group Description") {
      e.op.group = json_.scalar();
    } else if (key == "bytes" || key == "bytes_accessed" || key == "raw_bytes_accessed") {
      e.op.bytes = real(json_.scalar());
    } else if (key == "model_flops" || key == "flops") {
      e.op.flops = real(json_.scalar());
    } else if (key == "hlo_category") {
      e.category_of_hlo = json_.scalar();
    } else if (key == "name") {
      e.named = json_.scalar();
    } else if (key == "tf_op") {
      e.op_path = json_.scalar();
    } else {
      json_.skip();
    }
  }

  void shapes(std::string& out) {
    if (json_.peek() == '[') return json_.raw(out, limits::kShapesText);
    json_.skip();
  }

  void take() {
    const ChromeEvent& e = event_;
    if (e.phase == 'M') return name_track();
    if (e.phase == 'B' || e.phase == 'E') ++unread_pairs_;
    if (e.phase != 'X') return;
    const CategoryRole* row = e.category.empty() ? nullptr : role_of(e.category);
    if (row == nullptr && !e.category.empty()) return;
    const Ticks start = ticks(e.start, "ts", true);
    const Ticks length = ticks(e.duration, "dur", false);
    if (length < 0) json_.fail(fmt::format("an event that takes {} microseconds", e.duration));
    if (row == nullptr) return plain(start, start + length);
    switch (row->role) {
      case EventRole::kKernel: return kernel(start, start + length);
      case EventRole::kCpuOp:
        if (e.external != 0 && (!e.op.dims.empty() || !e.op.collective.empty())) {
          room(ops_.size() / kHostEvents);
          RecordedOp op = e.op;
          op.name = e.name;
          ops_.push_back({e.external, tables_.op(op)});
        }
        return;
      case EventRole::kRuntime:
        room(launches_.size() / kHostEvents);
        if (e.correlation != 0) launches_.push_back({e.correlation, e.external, start});
        return;
      case EventRole::kHostMarker: return marker(start, start + length, std::nullopt);
      case EventRole::kDeviceMarker: return marker(start, start + length, tables_.device(fmt::format("GPU {}", e.pid)));
      case EventRole::kDrawn:
        if (own_) plain(start, start + length, tables_.name(drawn_name(*row), row->work));
        return;
      case EventRole::kIgnored: return;
    }
  }

  /// "layer", "tp": blocks of a microbatch or a layer are one kind.
  std::string drawn_name(const CategoryRole& row) const {
    return row.role == EventRole::kDrawn && row.work == DeviceWork::kExposed ? event_.name + ", exposed"
                                                                             : std::string(row.category);
  }

  Ticks ticks(const std::string& text, const char* what, bool from_base) {
    if (from_base && !base_) {
      const std::optional<Ticks> first = ticks_of_microseconds(text, 0);
      base_ = whole(std::string_view(text).substr(0, text.find('.')));
      if (!base_) base_ = first ? *first / 1'000'000 : 0;
    }
    const std::optional<Ticks> out = ticks_of_microseconds(text, from_base ? *base_ : 0);
    if (!out) {
      json_.fail(fmt::format("an event whose {} is {}", what, text.empty() ? "missing" : in_quotes(text)),
                 "a decimal number of microseconds, at most 46 days from the first");
    }
    return *out;
  }

  void room(std::size_t kept) {
    if (kept < limits::kRecordedEvents) return;
    json_.fail(limits::too_many(limits::kRecordedEvents, kEventsKept), "record fewer steps");
  }

  void marker(Ticks start, Ticks end, std::optional<std::uint32_t> device) {
    room(out_.markers.size() / kHostEvents);
    out_.markers.push_back({start, end, tables_.marker(event_.name), device});
  }

  void kernel(Ticks start, Ticks end) {
    room(out_.events.size());
    ChromeEvent& e = event_;
    const std::uint32_t device = tables_.device(fmt::format("GPU {}", e.pid));
    RecordedEvent out{start, end, kNoTick, 0, tables_.name(e.name), 0, tables_.lane(device, e.tid)};
    if (!e.op.collective.empty() || e.op.bytes) out.op = tables_.op(e.op);
    out_.events.push_back(out);
    pending_.push_back({e.external, e.correlation});
  }

  void plain(Ticks start, Ticks end, std::optional<std::uint32_t> name = {}) {
    room(plain_.size());
    ChromeEvent& e = event_;
    RecordedEvent out{start, end, kNoTick, 0, 0, 0, 0};
    out.name = name ? *name : plain_name();
    e.op.name = e.op_path;
    if (e.op.flops || e.op.bytes) out.op = tables_.op(e.op);
    plain_.push_back({out, track()});
  }

  std::uint32_t plain_name() {
    const auto work = work_of_hlo_category(event_.category_of_hlo);
    return work ? tables_.name(event_.name, *work) : tables_.name(event_.name);
  }

  std::uint32_t track() {
    const auto [at, is_new] =
        track_ids_.try_emplace({event_.pid, event_.tid}, static_cast<std::uint32_t>(tracks_.size()));
    if (is_new) tracks_.push_back({event_.pid, event_.tid});
    return at->second;
  }

  void name_track() {
    if (event_.name == "process_name") process_names_[event_.pid] = event_.named;
    if (event_.name == "thread_name") thread_names_[{event_.pid, event_.tid}] = event_.named;
  }

  // ---- once all is read

  void join() {
    std::sort(ops_.begin(), ops_.end(), [](const CpuOp& a, const CpuOp& b) { return a.external < b.external; });
    std::sort(launches_.begin(), launches_.end(),
              [](const Launch& a, const Launch& b) { return a.correlation < b.correlation; });
    for (std::size_t i = 0; i < out_.events.size(); ++i) link(out_.events[i], pending_[i]);
    if (!plain_.empty()) place_plain();
    if (unread_pairs_ > 0) {
      out_.notes.push_back(
          fmt::format("{} begin and end events are not read: whole ones (ph X) alone are", unread_pairs_));
    }
    constexpr std::uint64_t kViewerLimit = 1'000'000;
    if (out_.format == RecordingFormat::kTraceViewer && out_.read >= kViewerLimit) {
      out_.notes.emplace_back(
          "the trace viewer keeps a million events: later ones are missing, the XPlane has them all");
    }
  }

  void link(RecordedEvent& event, Pending ids) const {
    if (ids.correlation != 0) {
      const auto launch = std::lower_bound(launches_.begin(), launches_.end(), ids.correlation,
                                           [](const Launch& a, std::uint64_t b) { return a.correlation < b; });
      if (launch != launches_.end() && launch->correlation == ids.correlation) {
        event.launch = launch->at;
        if (ids.external == 0) ids.external = launch->external;
      }
    }
    if (ids.external == 0 || event.op != 0) return;
    const auto op = std::lower_bound(ops_.begin(), ops_.end(), ids.external,
                                     [](const CpuOp& a, std::uint64_t b) { return a.external < b; });
    if (op == ops_.end() || op->external != ids.external) return;
    event.op = op->op;
    event.call = ids.external;
  }

  void place_plain() {
    std::vector<std::optional<std::uint32_t>> lanes(tracks_.size());
    std::vector<std::optional<std::uint32_t>> steps(tracks_.size());
    for (std::size_t t = 0; t < tracks_.size(); ++t) place_track(t, lanes[t], steps[t]);
    for (const Plain& plain : plain_) {
      if (steps[plain.track]) {
        const std::string& prefix = thread_of(plain.track);
        out_.markers.push_back({plain.event.start, plain.event.end,
                                tables_.marker(fmt::format("{}: {}", prefix, out_.names[plain.event.name].text)),
                                steps[plain.track]});
      }
      if (!lanes[plain.track]) continue;
      RecordedEvent event = plain.event;
      event.lane = *lanes[plain.track];
      out_.events.push_back(event);
    }
    if (own_) {
      out_.format = RecordingFormat::kOwnTrace;
      part_reductions();
    } else if (!out_.events.empty() && pending_.empty()) {
      out_.format = RecordingFormat::kTraceViewer;
    }
    plain_.clear();
  }

  /// Gradients are reduced beside the last passes of a stage: what lies before these end is hidden, whether a pass runs
  /// just then or the stage waits.
  void part_reductions() {
    std::map<std::uint32_t, Ticks> passes_end;
    for (const RecordedEvent& event : out_.events) {
      if (out_.names[event.name].work != DeviceWork::kPass) continue;
      Ticks& end = passes_end[out_.lanes[event.lane].device];
      end = std::max(end, event.end);
    }
    const std::uint32_t hidden = tables_.name("gradients, hidden", DeviceWork::kSendReceive);
    const std::size_t drawn = out_.events.size();
    for (std::size_t i = 0; i < drawn; ++i) {
      RecordedEvent& event = out_.events[i];
      if (out_.names[event.name].text != "gradients") continue;
      const Ticks end = passes_end[out_.lanes[event.lane].device];
      if (event.start >= end) continue;
      RecordedEvent before = event;
      before.end = std::min(event.end, end);
      before.name = hidden;
      event.start = before.end;
      out_.events.push_back(before);
    }
    std::erase_if(out_.events, [](const RecordedEvent& event) { return event.end <= event.start; });
  }

  const std::string& thread_of(std::size_t track) { return thread_names_[{tracks_[track].pid, tracks_[track].tid}]; }

  /// A stream of a device, or the line of its steps, by the names of its process and thread.
  void place_track(std::size_t t, std::optional<std::uint32_t>& lane, std::optional<std::uint32_t>& steps) {
    const std::string& process = process_names_[tracks_[t].pid];
    const std::string& thread = thread_of(t);
    if (own_) {
      if (!thread.starts_with("stage ")) return;
      const std::uint32_t device = tables_.device(thread.substr(0, thread.find(' ', 6)));
      lane = tables_.lane(device, process + " " + thread);
      return;
    }
    const std::size_t at = process.find("/device:");
    if (at == std::string::npos) return;
    const std::uint32_t device = tables_.device(process.substr(at + 1));
    if (thread == "Steps" || thread == "XLA Modules") steps = device;
    const bool tpu = process.find("TPU", at) != std::string::npos;
    if (tpu ? thread == "XLA Ops" : thread.find("Stream") != std::string::npos) lane = tables_.lane(device, thread);
  }

  const Stop& stop_;
  ByteSource source_;
  JsonStream json_;
  Recording out_;
  RecordingTables tables_;
  ChromeEvent event_;
  bool has_events_ = false, own_ = false;
  std::optional<std::int64_t> base_;
  std::uint64_t unread_pairs_ = 0;
  std::vector<CpuOp> ops_;
  std::vector<Launch> launches_;
  std::vector<Pending> pending_;
  std::vector<Plain> plain_;
  std::vector<Track> tracks_;
  std::map<std::pair<std::string, std::string>, std::uint32_t> track_ids_;
  std::map<std::string, std::string> process_names_;
  std::map<std::pair<std::string, std::string>, std::string> thread_names_;
};

}  // namespace

Recording read_chrome_trace(const std::string& path, const Stop& stop) { return ChromeReader(path, stop).read(); }

}  // namespace scalecalc
