// A plan's step, written as a trace and read as a recording, gives back what was predicted: the step, what each stage
// does with it, and each cause of exposed communication, to the nanoseconds that the trace is rounded to.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/diagnostic.h"
#include "profile/gap.h"
#include "profile/hlo_program.h"
#include "profile/profile.h"
#include "property/random_plan.h"
#include "support/fixtures.h"
#include "support/scratch.h"
#include "train/step_trace.h"
#include "train/trace_output.h"

namespace scalecalc {
namespace {

/// What a stage's passes expose of a cause, by what the trace is made of.
double exposed_by_passes(const StepTrace& trace, std::int64_t stage, SecondsOf<double> PhaseTime<double>::*cause) {
  double out = 0;
  for (const PipelineBlock& block : trace.timeline.blocks) {
    if (block.stage != stage) continue;
    const bool forward = block.kind == BlockKind::kForward;
    if (!forward && block.kind != BlockKind::kBackward && block.kind != BlockKind::kBackwardInput) continue;
    for (const ChunkPart& part : trace.step.parts[static_cast<std::size_t>(block.chunk)]) {
      out += ((forward ? part.forward : part.backward).*cause).value();
    }
  }
  return out;
}

TEST(ProfileProperty, ATraceReadBackGivesWhatWasPredicted) {
  const test::Scratch scratch;
  EXPECT_TRUE(rc::check([&] {
    const test::RandomPlan random = test::random_plan();
    TrainAnswer found{.model = random.c->model,
                      .hw = random.c->hw,
                      .efficiency = random.c->request.efficiency,
                      .workload = random.c->request.workload};
    found.question.chips = random.plan.layout.chips();
    found.plans.push_back({random.plan, {}});
    const StepTrace trace = trace_step(found, random.plan);
    const TracedPlan traced{.answer = &found,
                            .plan = &found.plans.front(),
                            .trace = &trace,
                            .detail = *rc::gen::element(TraceDetail::kBlocks, TraceDetail::kLayers)};
    const std::string file = scratch.put("step.json", trace_json(traced, trace_output(traced, true), "test"));
    const ProfileAnswer read = answer(ProfileQuestion{.files = {file}}, random.c->hw);

    RC_ASSERT(read.format == RecordingFormat::kOwnTrace);
    RC_ASSERT(read.ranks.size() == trace.stages.size());
    const double rounding = 1e-9 * (2.0 + static_cast<double>(read.device_events));
    const auto close = [&](double a, double b) { return std::abs(a - b) <= rounding; };
    for (std::size_t s = 0; s < trace.stages.size(); ++s) {
      const auto rank = std::find_if(read.ranks.begin(), read.ranks.end(),
                                     [&](const ProfiledRank& r) { return r.device == fmt::format("stage {}", s); });
      RC_ASSERT(rank != read.ranks.end());
      const auto part = [&](DeviceWork work) {
        return seconds_of(rank->parts.counted.at(static_cast<std::size_t>(work)));
      };
      const StageTail& tail = trace.step.run.tails[s];
      RC_ASSERT(close(rank->step_s(), trace.simulated_s));
      RC_ASSERT(close(part(DeviceWork::kPass) + part(DeviceWork::kExposed), trace.stages[s].busy_s));
      RC_ASSERT(close(part(DeviceWork::kOptimizer), tail.update_s));
      RC_ASSERT(close(part(DeviceWork::kHost), trace.step.host_s));
      RC_ASSERT(close(part(DeviceWork::kCollective), tail.reduce_s + tail.gather_s));
      RC_ASSERT(close(part(DeviceWork::kSendReceive) + rank->idle_s(), trace.stages[s].idle_s));
      const auto exposed = [&](const char* name) {
        const auto at = rank->exposed.find(std::string(name) + ", exposed");
        return at == rank->exposed.end() ? 0 : seconds_of(at->second);
      };
      const auto stage = static_cast<std::int64_t>(s);
      RC_ASSERT(close(exposed("tp"), exposed_by_passes(trace, stage, &PhaseTime<double>::tp)));
      RC_ASSERT(close(exposed("fsdp"), exposed_by_passes(trace, stage, &PhaseTime<double>::fsdp)));
      RC_ASSERT(close(exposed("cp"), exposed_by_passes(trace, stage, &PhaseTime<double>::cp)));
      RC_ASSERT(close(exposed("ep"), exposed_by_passes(trace, stage, &PhaseTime<double>::ep)));
    }
    // A moment counts for one kernel, passes and what they expose among them; transfers and the reduction of gradients
    // run beside them.
    double kernels_s = 0;
    for (const ProfiledKernel& kernel : read.kernels) {
      const bool beside = kernel.work == DeviceWork::kSendReceive || kernel.work == DeviceWork::kCollective;
      if (!beside) kernels_s += kernel.seconds;
    }
    RC_ASSERT(kernels_s <= read.step_s + rounding);
    // Beside the same plan every term is the one that was drawn, the bubble among them. Each is laid out again: few
    // are.
    if (*rc::gen::inRange(0, 8) > 0) return;
    const GapAnswer gap = explain_gap(read, found, found.plans.front());
    double predicted = 0;
    for (const GapTerm& term : gap.terms) {
      predicted += term.predicted_s;
      RC_ASSERT(close(term.predicted_s, term.measured_s));
    }
    RC_ASSERT(close(predicted, trace.simulated_s));
  }));
}

/// A recording of each format, as the fuzzers have them.
std::vector<std::string> seeds() {
  std::vector<std::string> out;
  const std::string corpus = std::string(SCALECALC_SOURCE_DIR) + "/tests/fuzz/corpus/recording";
  for (const auto& entry : std::filesystem::directory_iterator(corpus)) {
    std::ostringstream text;
    text << std::ifstream(entry.path(), std::ios::binary).rdbuf();
    out.push_back(text.str());
  }
  std::sort(out.begin(), out.end());
  return out;
}

// Cut off, with a stretch of another inside, or with bytes that are none of theirs.
TEST(ProfileProperty, ADamagedFileIsRefusedOrItsPartsSumToTheStep) {
  const test::Scratch scratch;
  const std::vector<std::string> all = seeds();
  const HardwareSpec hw = test::switched_chip();
  EXPECT_TRUE(rc::check([&] {
    std::string bytes = *rc::gen::elementOf(all);
    const std::string other = *rc::gen::elementOf(all);
    const auto place = [](std::size_t size) { return *rc::gen::inRange<std::size_t>(0, size + 1); };
    switch (*rc::gen::inRange(0, 3)) {
      case 0: bytes.resize(place(bytes.size())); break;
      case 1: bytes.insert(place(bytes.size()), other.substr(place(other.size()), place(2000))); break;
      default:
        for (int i = 0; i < 3 && !bytes.empty(); ++i) bytes[place(bytes.size() - 1)] = *rc::gen::arbitrary<char>();
    }
    const std::string file = scratch.path("damaged");
    std::ofstream(file, std::ios::binary) << bytes;
    try {
      if (is_hlo_text(bytes)) {
        const HloProgram program = hlo_program(read_hlo(file), hw);
        RC_ASSERT(program.least_s <= program.most_s * (1 + 1e-12));
        RC_ASSERT(program.memory.peak() >= program.memory.parameters);
        return;
      }
      const ProfileAnswer found = answer(ProfileQuestion{.files = {file}}, hw);
      double sum = 0;
      for (const double seconds : found.work_s) sum += seconds;
      for (const double seconds : found.idle_s) sum += seconds;
      RC_ASSERT(std::abs(sum - found.step_s) <= 1e-9 * (1 + found.step_s));
    } catch (const UserError& error) {
      RC_ASSERT(!error.diagnostics().empty());
    }
  }));
}

}  // namespace
}  // namespace scalecalc
