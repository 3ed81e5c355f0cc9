// Shows the parts, kernels and communication of a measured step, and its gap to a prediction.
#include "profile/profile_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "report/brief_blocks.h"

namespace scalecalc {
namespace {

double part(const ProfileAnswer& found, DeviceWork work) { return found.work_s.at(static_cast<std::size_t>(work)); }

struct StepShares {
  double compute = 0, exposed = 0, copies = 0, idle = 0;
};

StepShares shares_of(const ProfileAnswer& found) {
  StepShares out;
  for (std::size_t w = 0; w < kDeviceWorks; ++w) {
    if (is_compute(static_cast<DeviceWork>(w))) out.compute += found.work_s.at(w);
  }
  out.exposed =
      part(found, DeviceWork::kExposed) + part(found, DeviceWork::kCollective) + part(found, DeviceWork::kSendReceive);
  out.copies = part(found, DeviceWork::kCopy);
  for (const double idle : found.idle_s) out.idle += idle;
  for (double* share : {&out.compute, &out.exposed, &out.copies, &out.idle}) *share /= found.step_s;
  return out;
}

std::optional<double> of_peak(const ProfileAnswer& found) {
  double at_peak = 0;
  for (const ProfiledKernel& kernel : found.kernels) {
    if (kernel.of_peak) at_peak += *kernel.of_peak * kernel.seconds;
  }
  return at_peak > 0 ? std::optional(at_peak / found.step_s) : std::nullopt;
}

Block profile_step_block(const ProfileAnswer& found) {
  const ProfiledRank& first = found.ranks.front();
  const StepShares shares = shares_of(found);
  const auto share = [](std::string_view key, std::string_view label, double value) {
    return figure(key, label, Format::kFraction, Cell(value));
  };
  Record out{
      {figure("step_time_s", "step", Format::kSeconds, Cell(found.step_s)),
       share("compute_share", "compute", shares.compute),
       share("exposed_communication_share", "exposed communication", shares.exposed),
       share("copy_share", "copies", shares.copies), share("idle_share", "idle", shares.idle),
       number_figure("fraction_of_peak", "of the chip's peak", Format::kFraction, of_peak(found)),
       number_figure("matmul_fraction_of_peak", "matmuls, of their peak", Format::kFraction, found.matmul_of_peak),
       share("matmul_known_share", "matmuls whose shapes are known", found.matmul_known),
       number_figure("flops", "FLOPs known of a step", Format::kFlops, found.flops),
       number_figure("elementwise_fraction_of_hbm", "elementwise, of HBM's rate", Format::kFraction,
                     found.vector_of_hbm),
       figure("communication_s", "communication, hidden or not", Format::kSeconds, Cell(found.communication_s)),
       share("hidden_share", "of it hidden", found.communication_s > 0 ? found.hidden_s / found.communication_s : 0),
       share("recognised_share", "recognised", found.recognised),
       text_figure("format", "recorded by", kRecordingFormatNames.at(static_cast<std::size_t>(found.format))),
       figure("recorded_chip", found.recorded_chip.empty() ? "" : "on", Format::kText,
              found.recorded_chip.empty() ? Cell{} : Cell(found.recorded_chip)),
       text_figure("steps_by", "steps by", found.steps_how),
       count_figure("steps_counted", first.counted(), "steps that count"),
       count_figure("events_read", found.events_read, "events read"),
       count_figure("device_events", found.device_events, "of devices")}};
  return {.key = "",
          .title = "Step",
          .is_list = false,
          .records = {std::move(out)},
          .section = "step",
          .brief_keys = {"matmul_fraction_of_peak", "matmul_known_share", "elementwise_fraction_of_hbm",
                         "recognised_share", "steps_by"}};
}

Block profile_time_block(const ProfileAnswer& found) {
  Block out{.key = "time", .title = "Where the step went"};
  const auto add = [&](std::string_view what, double seconds, double running) {
    if (seconds <= 0 && running <= 0) return;
    out.records.push_back(
        {{text_figure("part", "part", what), figure("time_s", "time", Format::kSeconds, Cell(seconds)),
          figure("share", "of the step", Format::kFraction, Cell(seconds / found.step_s)),
          with_importance(figure("running_s", "running", Format::kSeconds, Cell(running)), 1)}});
  };
  for (std::size_t w = 0; w < kDeviceWorks; ++w) {
    double running = 0;
    for (const ProfiledRank& rank : found.ranks) {
      running += rank.per_step(rank.parts.running.at(w)) / static_cast<double>(found.ranks.size());
    }
    add(kDeviceWorkNames.at(w), found.work_s.at(w), running);
  }
  for (std::size_t i = 0; i < kIdleCauses; ++i) add(kIdleCauseNames.at(i), found.idle_s.at(i), 0);
  return out;
}

Block groups_block(const ProfileAnswer& found) {
  constexpr std::size_t kBriefGroups = 6;
  Block out{.key = "communication",
            .title = "Communication by group",
            .for_files = found.groups.empty(),
            .brief_rows = kBriefGroups};
  std::vector<ProfiledGroup> groups = found.groups;
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.running_s > b.running_s; });
  for (const ProfiledGroup& g : groups) {
    out.records.push_back(
        {{text_figure("kind", "kind", g.group.kind),
          number_figure("group_size", "ranks", Format::kInteger,
                        g.group.ranks > 0 ? std::optional(static_cast<double>(g.group.ranks)) : std::nullopt),
          figure("group", "group", Format::kText, g.group.name.empty() ? Cell{} : Cell(g.group.name)),
          figure("exposed_s", "exposed", Format::kSeconds, Cell(g.exposed_s)),
          figure("time_s", "running", Format::kSeconds, Cell(g.running_s)),
          figure("exposed_share", "exposed, of the step", Format::kFraction, Cell(g.exposed_s / found.step_s))}});
  }
  // Of one group "collectives" says as much.
  return found.groups.size() > 1 ? out : in_full(std::move(out));
}

Block lost_block(const ProfileAnswer& found) {
  constexpr std::size_t kBriefLosses = 3;
  Block out{.key = "lost", .title = "What would win time back", .brief_rows = kBriefLosses};
  for (const LostTime& lost : found.lost) {
    out.records.push_back(
        {{text_figure("cause", "cause", lost.cause), figure("time_s", "at most", Format::kSeconds, Cell(lost.seconds)),
          figure("share", "of the step", Format::kFraction, Cell(lost.seconds / found.step_s)),
          text_figure("remedy", "by", lost.remedy)}});
  }
  return out;
}

Record profiled_kernel_record(const ProfiledKernel& kernel, double step_s) {
  return {{text_figure("work", "work", name_of(kernel.work), 5), text_figure("what", "what", kernel.what),
           text_figure("kernel", "", kernel.kernel),
           with_importance(figure("calls", "calls", Format::kNumber, Cell(kernel.calls)), 3),
           figure("time_s", "time", Format::kSeconds, Cell(kernel.seconds)),
           figure("share", "of step", Format::kFraction, Cell(kernel.seconds / step_s)),
           number_figure("flops", "", Format::kFlops, kernel.flops),
           number_figure("bytes", "", Format::kBytes, kernel.bytes),
           number_figure("roofline_s", "roofline", Format::kSeconds, kernel.roofline_s, 2),
           number_figure("fraction_of_roofline", "reached", Format::kFraction, kernel.of_roofline),
           number_figure("fraction_of_peak", "of peak", Format::kFraction, kernel.of_peak, 1),
           number_figure("useful_fraction", "useful", Format::kFraction, kernel.useful, 4),
           figure("bound_by", "bound by", Format::kText, kernel.bound_by.empty() ? Cell{} : Cell(kernel.bound_by))}};
}

Block kernels_block(std::string_view key, std::string_view title, const std::vector<ProfiledKernel>& kernels,
                    std::size_t top, double step_s) {
  constexpr std::size_t kBriefKernels = 6;
  Block out{.key = std::string(key), .title = std::string(title)};
  if (top == ProfileQuestion{}.top) out.brief_rows = kBriefKernels;
  for (std::size_t i = 0; i < std::min(top, kernels.size()); ++i) {
    out.records.push_back(profiled_kernel_record(kernels[i], step_s));
  }
  if (kernels.size() > top) {
    double rest = 0;
    for (std::size_t i = top; i < kernels.size(); ++i) rest += kernels[i].seconds;
    say(out.lines, Role::kDim, "{} more take {} of the step; --top shows more", kernels.size() - top,
        fraction_text(rest / step_s));
  }
  return out;
}

Block ranks_block(const ProfileAnswer& found) {
  constexpr std::size_t kBriefRanks = 8;
  Block out{.key = "ranks", .title = "Ranks", .brief_rows = kBriefRanks};
  for (const ProfiledRank& rank : found.ranks) {
    out.records.push_back(
        {{text_figure("file", found.ranks.front().file == found.ranks.back().file ? "" : "file", rank.file, 2),
          text_figure("device", "device", rank.device),
          number_figure("rank", "rank", Format::kInteger,
                        rank.rank ? std::optional(static_cast<double>(*rank.rank)) : std::nullopt, 1),
          figure("step_time_s", "step", Format::kSeconds, Cell(rank.step_s())),
          figure("compute_s", "compute", Format::kSeconds, Cell(rank.compute_s())),
          figure("exposed_s", "exposed", Format::kSeconds, Cell(rank.exposed_s())),
          figure("idle_s", "idle", Format::kSeconds, Cell(rank.idle_s()))}});
  }
  const auto slower = [](const ProfiledRank& a, const ProfiledRank& b) { return a.compute_s() < b.compute_s(); };
  const auto [least, most] = std::minmax_element(found.ranks.begin(), found.ranks.end(), slower);
  constexpr double kStraggles = 1.02;
  if (found.ranks.size() > 1 && most->compute_s() > kStraggles * least->compute_s()) {
    say(out.lines, "{} computes longest, {} against {} of {}: others wait for it in collectives", most->device,
        seconds_text(most->compute_s()), seconds_text(least->compute_s()), least->device);
  }
  return out;
}

Block steps_block(const ProfileAnswer& found) {
  Block out{.key = "steps", .title = "Steps"};
  for (const ProfiledRank& rank : found.ranks) {
    for (std::size_t i = 0; i < rank.steps.size(); ++i) {
      const StepWindow& step = rank.steps[i];
      out.records.push_back({{text_figure("device", found.ranks.size() > 1 ? "device" : "", rank.device),
                              text_figure("name", "step", step.name.str()),
                              figure("time_s", "time", Format::kSeconds, Cell(seconds_of(step.end - step.start))),
                              number_figure("counts", "counts", Format::kFlag, i < rank.first_counted ? 0 : 1)}});
    }
  }
  return in_full(std::move(out));
}

Block gap_terms_block(const GapAnswer& gap) {
  Block out{.key = "terms", .title = "Measured beside predicted"};
  for (const GapTerm& term : gap.terms) {
    std::vector<Cell> causes(term.causes.begin(), term.causes.end());
    out.records.push_back(
        {{text_figure("term", "term", term.term), list_figure("causes", "", std::move(causes)),
          figure("measured_s", "measured", Format::kSeconds, Cell(term.measured_s)),
          figure("predicted_s", "predicted", Format::kSeconds, Cell(term.predicted_s)),
          figure("more_s", "more", Format::kSeconds, Cell(term.more_s())),
          figure("more_share", "of the step", Format::kFraction, Cell(term.more_s() / gap.verdict.step_s)),
          figure("remedy", "shortened by", Format::kText,
                 term.more_s() > 0 && !term.remedy.empty() ? Cell(std::string(term.remedy)) : Cell{})}});
  }
  const MeasuredVerdict& v = gap.verdict;
  if (gap.closed_form_s) {
    say(out.lines, Role::kDim, "predicted block by block, as the step is drawn; train's closed form says {}",
        seconds_text(*gap.closed_form_s));
  }
  say(out.lines, v.in_band ? Role::kGood : Role::kWarning,
      "{}: predicted {} ({} to {}), measured {} on {}, {} the band", gap.layout, seconds_text(gap.predicted_s),
      seconds_text(gap.low_s), seconds_text(gap.high_s), seconds_text(v.step_s), gap.device,
      v.in_band ? "inside" : "outside");
  say(out.lines, "MFU {}, HFU {}, {} tokens/s", fraction_text(v.mfu), fraction_text(v.hfu),
      compact_count(v.tokens_per_s));
  if (gap.flops_known) {
    say(out.lines, Role::kDim, "FLOPs of the kernels whose shapes are known: {} of the model's",
        fraction_text(*gap.flops_known));
  }
  return out;
}

/// Each dimension's communication, measured beside predicted.
Block gap_communication_block(const GapAnswer& gap) {
  Block out{.key = "communication_terms",
            .title = "Communication, measured beside predicted",
            .for_files = gap.communication.empty()};
  for (const GapCommunication& c : gap.communication) {
    std::vector<Cell> groups(c.groups.begin(), c.groups.end());
    out.records.push_back({{text_figure("dimension", "of", c.dimension),
                            figure("measured_exposed_s", "exposed", Format::kSeconds, Cell(c.measured_exposed_s)),
                            figure("predicted_exposed_s", "predicted", Format::kSeconds, Cell(c.predicted_exposed_s)),
                            number_figure("measured_s", "in all", Format::kSeconds, c.measured_s),
                            number_figure("predicted_s", "predicted in all", Format::kSeconds, c.predicted_s),
                            list_figure("groups", "groups of the recording", std::move(groups))}});
  }
  return out;
}

Record gap_record(const GapAnswer& gap) {
  const MeasuredVerdict& v = gap.verdict;
  return {{text_figure("layout", "", gap.layout), text_figure("device", "", gap.device),
           figure("step_time_s", "", Format::kSeconds, Cell(gap.predicted_s)),
           number_figure("closed_form_step_time_s", "", Format::kSeconds, gap.closed_form_s),
           figure("step_time_low_s", "", Format::kSeconds, Cell(gap.low_s)),
           figure("step_time_high_s", "", Format::kSeconds, Cell(gap.high_s)),
           figure("over_predicted", "", Format::kFraction, Cell(v.over)), flag_figure("in_band", v.in_band),
           figure("mfu", "", Format::kFraction, Cell(v.mfu)), figure("hfu", "", Format::kFraction, Cell(v.hfu)),
           figure("tokens_per_s", "", Format::kCount, Cell(v.tokens_per_s)),
           figure("flops", "", Format::kFlops, Cell(gap.flops)),
           number_figure("flops_known", "", Format::kFraction, gap.flops_known)}};
}

void add_gap(const GapAnswer& gap, Output& out) {
  Block object{.key = "predicted", .is_list = false, .records = {gap_record(gap)}, .for_files = true};
  out.blocks.push_back(gap_terms_block(gap));
  out.blocks.push_back(gap_communication_block(gap));
  out.blocks.push_back(std::move(object));
}

Figure files_figure(const std::vector<std::string>& files) {
  return list_figure("files", "", std::vector<Cell>(files.begin(), files.end()));
}

}  // namespace

Output profile_output(const ProfileQuestion& question, const ProfileAnswer& found,
                      const std::optional<GapAnswer>& gap) {
  const StepShares shares = shares_of(found);
  Output out{.command = "profile",
             .title = fmt::format("A recorded step beside the roofline of {}", found.hw.title),
             .query = {{files_figure(question.files), text_figure("hardware_title", "", found.hw.title)}},
             .assumptions = found.assumptions};
  say(out.headline, "A step takes {}: {} compute, {} exposed communication, {} idle", seconds_text(found.step_s),
      fraction_text(shares.compute), fraction_text(shares.exposed), fraction_text(shares.idle));
  if (!found.lost.empty()) {
    say(out.headline, "Most would be won from {}: {} of the step", found.lost.front().cause,
        fraction_text(found.lost.front().seconds / found.step_s));
  }
  out.blocks.push_back(profile_step_block(found));
  if (gap) add_gap(*gap, out);
  out.blocks.push_back(profile_time_block(found));
  out.blocks.push_back(groups_block(found));
  out.blocks.push_back(lost_block(found));
  out.blocks.push_back(kernels_block("kernels", "Kernels", found.kernels, question.top, found.step_s));
  Block unknown = kernels_block("unrecognised", "Unrecognised", found.unrecognised, question.top, found.step_s);
  unknown.for_files = found.unrecognised.empty();
  out.blocks.push_back(std::move(unknown));
  Block ranks = ranks_block(found);
  ranks.for_files = found.ranks.size() < 2;
  out.blocks.push_back(std::move(ranks));
  out.blocks.push_back(steps_block(found));
  out.lines_of = "kernels";
  out.deciding = {"--set"};  // how it counts is for --verbose
  return out;
}

}  // namespace scalecalc
