#include "train/trace_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "unit/train/sample_answer.h"

namespace scalecalc {
namespace {

using Json = nlohmann::ordered_json;

struct TracedAnswer {
  explicit TracedAnswer(LayoutFilter fix, TraceDetail detail = TraceDetail::kAuto) {
    TrainQuestion q{.model = "gpt2-1.5b", .hardware = "h100-sxm", .chips = 16};
    q.batch_seqs = 64;
    q.fix = fix;
    q.stack = "any";  // schedules that megatron does not have
    answer = scalecalc::answer(q, Catalog());
    EXPECT_FALSE(answer.plans.empty());
    trace = trace_step(answer, answer.plans.front().plan);
    traced = {.answer = &answer, .plan = &answer.plans.front(), .trace = &trace, .detail = detail};
  }
  Json json() const { return Json::parse(trace_json(traced, trace_output(traced, true), "1.2.3")); }

  TrainAnswer answer;
  StepTrace trace;
  TracedPlan traced;
};

using TrackId = std::pair<int, int>;
TrackId track_of(const Json& event) { return {event["pid"].get<int>(), event["tid"].get<int>()}; }
struct Span {
  std::int64_t start_ns = 0, end_ns = 0;
  std::string name, category;
  Json args;
};

std::map<TrackId, std::vector<Span>> tracks(const Json& document) {
  std::map<TrackId, std::vector<Span>> out;
  for (const Json& e : document["traceEvents"]) {
    if (e["ph"] != "X") continue;
    const std::int64_t start = std::llround(e["ts"].get<double>() * 1000);
    const std::int64_t length = std::llround(e["dur"].get<double>() * 1000);
    out[track_of(e)].push_back({start, start + length, e["name"], e["cat"], e["args"]});
  }
  return out;
}

/// Slices of a track follow or contain each other.
void expect_nested(std::vector<Span> spans) {
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  std::vector<std::int64_t> open;
  for (const Span& span : spans) {
    while (!open.empty() && open.back() <= span.start_ns) open.pop_back();
    if (!open.empty()) {
      EXPECT_LE(span.end_ns, open.back()) << span.name;
    }
    open.push_back(span.end_ns);
  }
}

TEST(TraceJson, IsOneDocumentForUsAndForViewers) {
  const Json json = TracedAnswer({.pp = 4, .vpp = 2}).json();
  EXPECT_EQ(json.begin().key(), "schema");
  EXPECT_EQ(json["schema"], "scalecalc/trace/1");
  EXPECT_EQ(json["displayTimeUnit"], "ms");
  EXPECT_EQ(json["stages"].size(), 4U);
  std::int64_t last = 0;
  for (const auto& [track, spans] : tracks(json)) {
    for (const Span& span : spans) last = std::max(last, span.end_ns);
  }
  EXPECT_NEAR(static_cast<double>(last) / 1e9, json["simulated_step_time_s"].get<double>(), 1e-9);
}

TEST(TraceJson, SlicesOfATrackNeverCross) {
  for (const LayoutFilter& fix :
       {LayoutFilter{.pp = 1}, LayoutFilter{.pp = 2, .vpp = 4}, LayoutFilter{.cp = 2, .pp = 4, .vpp = 1},
        LayoutFilter{.pp = 4, .zero = 2, .schedule = Schedule::kGpipe},
        LayoutFilter{.pp = 4, .schedule = Schedule::kZeroBubble},
        LayoutFilter{.pp = 4, .schedule = Schedule::kDualPipe}}) {
    for (const TraceDetail detail : {TraceDetail::kBlocks, TraceDetail::kLayers}) {
      const Json json = TracedAnswer(fix, detail).json();
      std::set<TrackId> named;
      for (const Json& e : json["traceEvents"]) {
        if (e["name"] == "thread_name") named.insert(track_of(e));
      }
      for (const auto& [track, spans] : tracks(json)) {
        EXPECT_TRUE(named.contains(track));
        expect_nested(spans);
      }
    }
  }
}

TEST(TraceJson, EveryMicrobatchGoesForwardAndBackwardOncePerChunk) {
  const TracedAnswer t({.pp = 4, .vpp = 2}, TraceDetail::kBlocks);
  std::set<std::tuple<std::string, int, int>> passes;
  std::size_t count = 0;
  for (const auto& [track, spans] : tracks(t.json())) {
    for (const Span& span : spans) {
      if (span.category != "forward" && span.category != "backward") continue;
      passes.insert({span.category, span.args["chunk"], span.args["microbatch"]});
      ++count;
    }
  }
  EXPECT_EQ(count, static_cast<std::size_t>(2 * 8 * t.trace.step.run.microbatches));
  EXPECT_EQ(passes.size(), count);
}

TEST(TraceJson, LayersLieInTheirPass) {
  const TracedAnswer t({.pp = 2, .vpp = 1}, TraceDetail::kLayers);
  std::int64_t layers = 0;
  for (const auto& [track, spans] : tracks(t.json())) {
    layers += std::count_if(spans.begin(), spans.end(), [](const Span& s) { return s.name.starts_with("layer "); });
  }
  EXPECT_EQ(layers, 2 * t.answer.model.layers() * t.trace.step.run.microbatches);
}

TEST(TraceOutput, LayersAreLeftOutWithAWarning) {
  TracedAnswer t({.pp = 2, .vpp = 1});
  const auto warns = [&] {
    const Output output = trace_output(t.traced, true);
    return std::any_of(output.assumptions.begin(), output.assumptions.end(),
                       [](const Assumption& a) { return a.warning && a.flag == "--detail layers"; });
  };
  EXPECT_TRUE(draws_layers(t.traced));
  EXPECT_FALSE(warns());
  t.trace.step.run.microbatches = 100'000;
  EXPECT_FALSE(draws_layers(t.traced));
  EXPECT_TRUE(warns());
  t.traced.events = false;
  EXPECT_FALSE(warns()) << "nobody sees the trace";
  t.traced.detail = TraceDetail::kLayers;
  EXPECT_TRUE(draws_layers(t.traced));
}

TEST(TraceOutput, WithoutAPlanItSaysWhatIsShort) {
  TrainAnswer answer = sample_answer();
  answer.nearest_miss = answer.plans.front();
  answer.plans.clear();
  const TracedPlan traced{.answer = &answer};
  const Json json = Json::parse(trace_json(traced, trace_output(traced, true), "1.2.3"));
  EXPECT_TRUE(json["traceEvents"].empty());
  EXPECT_TRUE(json["stages"].empty());
  EXPECT_FALSE(json["nothing_fits"].empty());
}

TEST(TimelinePlot, WorkIsDrawnAndSendsAreNot) {
  StepTrace trace;
  trace.simulated_s = 11;
  trace.stages.resize(2);
  trace.stages[1].holds.first = 1;
  trace.step.host_s = 1;
  trace.timeline.end_s = 10;
  const auto block = [&](BlockKind kind, std::int64_t stage, double from, double to) {
    trace.timeline.blocks.push_back({.kind = kind, .stage = stage, .start_s = from, .end_s = to});
  };
  block(BlockKind::kForward, 0, 0, 2);
  block(BlockKind::kSendActivation, 0, 2, 3);
  block(BlockKind::kForward, 1, 3, 4);
  block(BlockKind::kForward, 1, 4, 5);  // one span with the one before
  block(BlockKind::kBackward, 1, 5, 7);
  block(BlockKind::kBackwardInput, 0, 7, 8);
  block(BlockKind::kBackwardWeight, 0, 8, 9);
  block(BlockKind::kReduce, 0, 8.5, 9.5);  // beside the backward, and seen behind it
  const Plot plot = timeline_plot(trace);
  ASSERT_EQ(plot.bars.size(), 2U);
  const auto spans = [&](std::size_t stage) {
    std::vector<std::array<double, 3>> out;
    for (const PlotSpan& s : plot.bars[stage].spans) out.push_back({s.from, s.to, static_cast<double>(s.kind)});
    return out;
  };
  using Spans = std::vector<std::array<double, 3>>;
  EXPECT_EQ(spans(0), (Spans{{0, 2, 0}, {7, 9, 1}, {9, 9.5, 2}, {10, 11, 2}}));
  EXPECT_EQ(spans(1), (Spans{{3, 5, 0}, {5, 7, 1}, {10, 11, 2}}));
  EXPECT_EQ(plot.bar_kinds.size(), 3U);
}

}  // namespace
}  // namespace scalecalc
