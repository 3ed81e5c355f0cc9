// Writes a step as Chrome trace events: "Trace Event Format", the JSON object form with complete ("X") and metadata
// ("M") events. Viewers nest the slices of a track by time, so slices of one track follow or contain each other. Times
// are rounded to whole nanoseconds end by end, which keeps that true.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "report/json_text.h"
#include "train/trace_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

/// Groups of tracks that a viewer folds, its "processes".
enum class Group : std::uint8_t { kStages, kInsideLayers, kTransfers, kData };

struct Track {
  Group group = Group::kStages;
  std::int64_t stage = 0;
  bool back = false;  ///< of transfers: to the stage before
  friend auto operator<=>(const Track&, const Track&) = default;
};

/// What a slice is, for its category and colour (names that trace viewers reserve).
struct Look {
  std::string_view category;
  std::string_view colour;
};
constexpr Look kForwardLook{"forward", "thread_state_running"};
constexpr Look kBackwardLook{"backward", "rail_response"};
constexpr Look kLayerLook{"layer", "rail_idle"};
constexpr Look kWeightLook{"weight gradient", "rail_animation"};
constexpr Look kSendLook{"transfer", "yellow"};
constexpr Look kReduceLook{"gradients", "rail_load"};
constexpr Look kUpdateLook{"optimizer", "generic_work"};
constexpr Look kGatherLook{"weights", "olive"};
constexpr Look kHostLook{"host", "grey"};
constexpr Look kExposedLook{"exposed", "terrible"};

/// Six digits are more than any estimate has, and keep a large trace small.
double brief(double value) { return std::stod(fmt::format("{:.6g}", finite(value))); }

class Events {
 public:
  explicit Events(const TracedPlan& traced)
      : traced_(traced), step_(traced.trace->step), layers_(draws_layers(traced)) {}

  /// One event a line, metadata first, commas between.
  std::string lines() {
    for (const PipelineBlock& block : traced_.trace->timeline.blocks) draw(block);
    const double end = traced_.trace->timeline.end_s;
    for (std::int64_t s = 0; s < step_.run.pp; ++s) {
      slice({Group::kStages, s}, "host", kHostLook, end, end + step_.host_s, {});
    }
    std::string out = metadata() + slices_;
    if (out.ends_with(",\n")) out.erase(out.size() - 2);
    return out;
  }

 private:
  void draw(const PipelineBlock& block) {
    const Track stage{Group::kStages, block.stage};
    const Track data{Group::kData, block.stage};
    switch (block.kind) {
      case BlockKind::kForward: return pass(block, true, "forward", kForwardLook);
      case BlockKind::kBackward:
      case BlockKind::kBackwardInput: return pass(block, false, "backward", kBackwardLook);
      case BlockKind::kBackwardWeight:
        return slice(stage, fmt::format("weight gradients {}", block.microbatch), kWeightLook, block.start_s,
                     block.end_s, who(block));
      case BlockKind::kSendActivation: return send(block, "activation");
      case BlockKind::kSendGradient: return send(block, "gradient");
      case BlockKind::kReduce:
        return slice(data, "gradient reduction", kReduceLook, block.start_s, block.end_s,
                     {{"exposed_s", brief(tail(block).reduce_s)}});
      case BlockKind::kUpdate: return slice(stage, "optimizer", kUpdateLook, block.start_s, block.end_s, {});
      case BlockKind::kGather:
        return slice(data, "weights, exposed", kGatherLook, block.start_s, block.end_s,
                     {{"whole_s", brief(end_of(block).gather.value())}});
    }
  }

  const StageTail& tail(const PipelineBlock& block) const {
    return step_.run.tails[static_cast<std::size_t>(block.stage)];
  }
  const StageEnd<double>& end_of(const PipelineBlock& block) const {
    return step_.ends[static_cast<std::size_t>(block.stage)];
  }

  static Json who(const PipelineBlock& block) { return {{"microbatch", block.microbatch}, {"chunk", block.chunk}}; }

  /// A forward or backward with its layers, and on another track what communication it exposes.
  void pass(const PipelineBlock& block, bool forward, std::string_view name, const Look& look) {
    const std::size_t chunk = static_cast<std::size_t>(block.chunk);
    std::vector<const ChunkPart*> parts;
    for (const ChunkPart& part : step_.parts[chunk]) parts.push_back(&part);
    if (!forward) std::reverse(parts.begin(), parts.end());
    PhaseTime<double> sum;
    for (const ChunkPart* part : parts) sum.add(forward ? part->forward : part->backward, 1.0);
    Json args = who(block);
    args["first_layer"] = step_.chunks[chunk].first_layer;
    args["layers"] = step_.chunks[chunk].layers;
    args.update(causes(sum));
    slice({Group::kStages, block.stage}, fmt::format("{} {}", name, block.microbatch), look, block.start_s, block.end_s,
          std::move(args));
    if (!layers_) return exposed(block.stage, block.end_s, sum);
    double at = block.start_s;
    const bool weights_later = block.kind == BlockKind::kBackwardInput;
    for (const ChunkPart* part : parts) {
      const PhaseTime<double>& time = forward ? part->forward : part->backward;
      const double length = time.total().value() - (weights_later ? part->backward.put_off.value() : 0.0);
      const double end = std::min(at + length, block.end_s);
      slice({Group::kStages, block.stage}, name_of(*part), kLayerLook, at, end, {});
      exposed(block.stage, end, time);
      at = end;
    }
  }

  static std::string name_of(const ChunkPart& part) {
    switch (part.kind) {
      case ChunkPart::Kind::kEmbedding: return "embedding";
      case ChunkPart::Kind::kLayer: return fmt::format("layer {}", part.layer);
      case ChunkPart::Kind::kHead: return "head";
    }
    return "";
  }

  static Json causes(const PhaseTime<double>& time) {
    const double exposed = (time.tp + time.fsdp + time.cp + time.ep).value();
    return {{"compute_s", brief(time.compute.value())},
            {"memory_bound_s", brief(time.hbm.value())},
            {"overhead_s", brief((time.overhead + time.idle).value())},
            {"exposed_s", brief(exposed)}};
  }

  /// Communication that did not hide, at the end of the work it belongs to.
  void exposed(std::int64_t stage, double end, const PhaseTime<double>& time) {
    const std::array<std::pair<std::string_view, double>, 4> kinds{
        {{"tp", time.tp.value()}, {"fsdp", time.fsdp.value()}, {"cp", time.cp.value()}, {"ep", time.ep.value()}}};
    double at = end;
    for (const auto& [name, seconds] : kinds) at -= seconds;
    for (const auto& [name, seconds] : kinds) {
      const double until = std::min(at + seconds, end);
      slice({Group::kInsideLayers, stage}, std::string(name), kExposedLook, at, until, {});
      at = until;
    }
  }

  void send(const PipelineBlock& block, std::string_view what) {
    Json args = who(block);
    args["to_stage"] = receiver(block.stage, block.onward);
    slice({Group::kTransfers, block.stage, !block.onward}, fmt::format("{} {}", what, block.microbatch), kSendLook,
          block.start_s, block.end_s, std::move(args));
  }
  std::int64_t receiver(std::int64_t stage, bool onward) const {
    return (stage + (onward ? 1 : step_.run.pp - 1)) % step_.run.pp;
  }

  void slice(const Track& track, const std::string& name, const Look& look, double start_s, double end_s, Json args) {
    const std::int64_t start = std::llround(start_s * 1e9);
    const std::int64_t end = std::llround(end_s * 1e9);
    if (end <= start) return;
    constexpr double kNanosecondsPerMicrosecond = 1e3;
    Json event = {{"name", name},
                  {"cat", look.category},
                  {"ph", "X"},
                  {"ts", static_cast<double>(start) / kNanosecondsPerMicrosecond},
                  {"dur", static_cast<double>(end - start) / kNanosecondsPerMicrosecond},
                  {"pid", process_of(track.group)},
                  {"tid", thread_of(track)},
                  {"cname", look.colour}};
    args["seconds"] = brief(end_s - start_s);
    event["args"] = std::move(args);
    slices_ += line(event);
  }

  static std::string line(const Json& event) {
    std::string out = "    " + json_text(event, -1);
    out.insert(out.size() - 1, ",");
    return out;
  }

  static int process_of(Group group) { return static_cast<int>(group) + 1; }

  /// Numbers are unique over all groups: some viewers take a thread's number for one of the whole machine.
  std::int64_t thread_of(const Track& track) {
    const auto [at, added] = threads_.try_emplace(track, 0);
    if (added) at->second = 10 + static_cast<std::int64_t>(threads_.size());
    return at->second;
  }

  /// Names and order of the groups and tracks that have slices.
  std::string metadata() const {
    std::string out;
    int described = 0;
    std::int64_t order = 0;
    for (const auto& [track, thread] : threads_) {
      const int process = process_of(track.group);
      if (process != described) {
        out += meta("process_name", process, 0, {{"name", group_name(track.group)}});
        out += meta("process_sort_index", process, 0, {{"sort_index", process}});
        described = process;
      }
      out += meta("thread_name", process, thread, {{"name", track_name(track)}});
      out += meta("thread_sort_index", process, thread, {{"sort_index", order++}});
    }
    return out;
  }

  static std::string meta(std::string_view what, int process, std::int64_t thread, Json args) {
    Json event = {{"name", what}, {"ph", "M"}, {"pid", process}, {"tid", thread}};
    event["args"] = std::move(args);
    return line(event);
  }

  std::string group_name(Group group) const {
    switch (group) {
      case Group::kStages: {
        const std::int64_t replicas = traced_.plan->plan.layout.data();
        return replicas > 1 ? fmt::format("stages (one of {} data replicas)", replicas) : "stages";
      }
      case Group::kInsideLayers: return "communication inside layers, exposed";
      case Group::kTransfers: return "transfers between stages";
      case Group::kData: return "gradients and weights";
    }
    return "";
  }

  std::string track_name(const Track& track) const {
    if (track.group != Group::kTransfers) return fmt::format("stage {}", track.stage);
    return fmt::format("stage {} {} to {}", track.stage, track.back ? "back" : "on",
                       receiver(track.stage, !track.back));
  }

  const TracedPlan& traced_;
  const StepRun& step_;
  bool layers_;
  std::map<Track, std::int64_t> threads_;
  std::string slices_;
};

/// Free text that viewers show with the trace.
Json other_data(const TracedPlan& traced, const Output& output) {
  Json out = {{"title", output.title}};
  for (std::size_t i = 0; i < output.summary.size(); ++i) out[fmt::format("line {}", i + 1)] = output.summary[i].text;
  if (traced.plan != nullptr && traced.plan->plan.layout.data() > 1) {
    out["drawn"] = fmt::format("one of {} data replicas, which all do the same", traced.plan->plan.layout.data());
  }
  if (traced.plan != nullptr) out["layout"] = fix_text(traced.plan->plan.layout);
  out["left out"] = "communication that hides under compute";
  return out;
}

}  // namespace

std::string trace_json(const TracedPlan& traced, const Output& output, std::string_view tool_version) {
  std::string out = output_json(output, tool_version, false);
  out.erase(out.rfind("\n}"));
  const Json viewers = {{"displayTimeUnit", "ms"}, {"otherData", other_data(traced, output)}};
  std::string members = json_text(viewers, 2);
  members = members.substr(1, members.rfind("\n}") - 1);
  out += "," + members + ",\n  \"traceEvents\": [";
  if (traced.trace != nullptr) out += "\n" + Events(traced).lines() + "\n  ";
  return out + "]\n}\n";
}

}  // namespace scalecalc
