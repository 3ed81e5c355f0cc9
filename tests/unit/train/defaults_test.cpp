// A default must never make a question unanswerable: what nobody asked for is something the chip's usual stack runs.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "config/remembered.h"
#include "train/question.h"
#include "train/resolve.h"

namespace scalecalc {
namespace {

class DefaultsOf : public testing::TestWithParam<const char*> {};

/// Facts on what a question without flags leaves open: its precision, captured graphs, overlap.
TEST_P(DefaultsOf, NoModelsDefaultIsRefusedByTheStack) {
  const Catalog catalog({}, std::make_shared<Remembered>());
  const std::set<std::string> open{"precision", "graphs", "tp_overlap"};
  const Layout any;
  std::size_t asked = 0;
  for (const std::string& name : catalog.names(CatalogKind::kModel)) {
    const ResolvedQuestion r = resolve_job(TrainQuestion{.model = name, .hardware = GetParam(), .chips = 64}, catalog);
    if (!r.launcher) continue;
    ++asked;
    const SupportSubject subject{any, r.model, r.workload, r.hw};
    for (std::size_t i = 0; i < r.launcher->facts.size(); ++i) {
      if ((r.launcher->of(FactGroup::kQuestion) >> i & 1) == 0) continue;
      const SupportFact& fact = r.launcher->facts[i];
      const bool on_default = std::any_of(fact.refused_if.begin(), fact.refused_if.end(),
                                          [&](const SupportCondition& c) { return open.count(c.of->name) > 0; });
      EXPECT_FALSE(on_default && fact.refuses(subject)) << name << ": " << fact.says;
    }
  }
  EXPECT_GT(asked, 100U);
}

INSTANTIATE_TEST_SUITE_P(Chips, DefaultsOf, testing::Values("h100-sxm", "tpu-v5p", "mi300x", "a100-80g"));

/// OPT's own fp16 is none of torchtitan's precisions.
TEST(Defaults, APrecisionTheStackLacksGivesWayAndIsSaid) {
  TrainQuestion q{.model = "opt-125m", .hardware = "h100-sxm", .chips = 8};
  q.top = 1;
  const TrainAnswer a = answer(q, Catalog());
  ASSERT_EQ(a.plans.size(), 1U);
  EXPECT_TRUE(std::any_of(a.assumptions.begin(), a.assumptions.end(), [](const Assumption& x) {
    return x.warning && x.text.find("precision bf16: torchtitan") == 0;
  }));
}

/// Whoever asks for fp16 gets software that trains in it.
TEST(Defaults, ThePrecisionAskedForChoosesTheStack) {
  for (const char* hardware : {"h100-sxm", "v100"}) {
    TrainQuestion q{.model = "opt-125m", .hardware = hardware, .chips = 8};
    q.top = 1;
    q.precision = "fp16";
    EXPECT_EQ(answer(q, Catalog()).plans.size(), 1U) << hardware;
  }
}

/// Qwen2-VL 2B: 2 x 74 x 74 patches a sequence through a tower of 0.63 billion weights cost what they do beside 1.5
/// billion and 8,192 tokens.
TEST(Defaults, ImagesAreShownOnlyIfAskedFor) {
  TrainQuestion q{.model = SCALECALC_SOURCE_DIR "/tests/data/hf/qwen2-vl-2b.json", .hardware = "h100-sxm", .chips = 8};
  q.top = 1;
  q.seq = 8192;
  q.batch_seqs = 64;
  const TrainAnswer text = answer(q, Catalog());
  q.images = "2x1036x1036";
  const TrainAnswer shown = answer(q, Catalog());
  ASSERT_FALSE(text.plans.empty() || shown.plans.empty());
  EXPECT_GT(shown.plans.front().plan.step_s, 1.2 * text.plans.front().plan.step_s);
  const auto says = [](const TrainAnswer& a, const char* words) {
    return std::any_of(a.assumptions.begin(), a.assumptions.end(),
                       [&](const Assumption& x) { return x.text.find(words) != std::string::npos; });
  };
  EXPECT_TRUE(says(text, "the vision tower is shown no images"));
  EXPECT_TRUE(says(shown, "2,738 of its tokens"));
}

}  // namespace
}  // namespace scalecalc
