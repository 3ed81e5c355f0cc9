// Every row of the table of layout rules by a layout that breaks it; a row without one fails.
#include "plan/layout_rules.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <set>

#include "support/fixtures.h"

namespace scalecalc {
namespace {

enum class Of : std::uint8_t { kDense, kMoe, kMixed, kRecurrent };

/// What breaks a row: a change to a layout that breaks none.
struct Breach {
  Of model = Of::kMoe;
  std::function<void(Layout&)> training;
  std::function<void(Layout&, EngineRanks&)> serving;
};

Breach of_training(Of model, std::function<void(Layout&)> change) { return {model, std::move(change), {}}; }
Breach of_engine(Of model, std::function<void(Layout&, EngineRanks&)> change) { return {model, {}, std::move(change)}; }

ModelSpec model_of(Of of) {
  ModelSpec recurrent = test::dense_model(4);
  recurrent.kinds.front().mixer = MixerKind::kMamba1;
  recurrent.mamba1 = {.d_inner = 2048, .d_state = 16, .d_conv = 4, .dt_rank = 64};
  switch (of) {
    case Of::kDense: return test::dense_model(4);
    case Of::kMoe: return test::moe_model(4);
    case Of::kMixed: return test::hybrid_model(7);
    case Of::kRecurrent: break;
  }
  return recurrent;
}

const std::map<std::string_view, Breach>& breaches() {
  const auto layout = [](Layout changed) { return [changed](Layout& l) { l = changed; }; };
  static const std::map<std::string_view, Breach> kAll{
      {"heads-by-tp", of_training(Of::kDense, [](Layout& l) { l.tp = 3; })},
      {"widths-by-tp", of_training(Of::kDense, [](Layout& l) { l.tp = 3; })},
      {"sequence-by-cp", of_training(Of::kDense, [](Layout& l) { l.cp = 3; })},
      {"ulysses-attention", of_training(Of::kMixed, layout({.cp = 2, .cp_comm = CpComm::kUlysses}))},
      {"ulysses-heads", of_training(Of::kDense, layout({.cp = 3, .cp_comm = CpComm::kUlysses}))},
      {"ring-attention", of_training(Of::kRecurrent, layout({.cp = 2, .cp_comm = CpComm::kRing}))},
      {"exchange-of-one", of_training(Of::kDense, layout({.cp = 1, .cp_comm = CpComm::kRing}))},
      {"shards-by-tp", of_training(Of::kDense, layout({.tp = 3, .sp = true}))},
      {"experts-with-shards", of_training(Of::kMoe, layout({.tp = 2, .ep = 2}))},
      {"shards-of-one", of_training(Of::kDense, layout({.tp = 1, .sp = true}))},
      {"ends-of-stages", of_training(Of::kDense, layout({.pp = 1, .split = {1, 1}}))},
      {"ends-by-schedule",
       of_training(Of::kDense, layout({.pp = 2, .vpp = 2, .schedule = Schedule::kInterleaved, .split = {1, 1}}))},
      {"ends-by-layers", of_training(Of::kDense, layout({.pp = 2, .schedule = Schedule::k1F1B, .split = {3, 3}}))},
      {"stages-by-layers", of_training(Of::kDense, [](Layout& l) { l.pp = 5; })},
      {"chunks-of-stages", of_training(Of::kDense, [](Layout& l) { l.vpp = 2; })},
      {"chunks-by-layers", of_training(Of::kDense, layout({.pp = 2, .vpp = 4}))},
      {"schedule-of-stages", of_training(Of::kDense, layout({.schedule = Schedule::kZeroBubble}))},
      {"schedule-or-none", of_training(Of::kDense, [](Layout& l) { l.pp = 2; })},
      {"even-stages", of_training(Of::kDense, layout({.pp = 3, .schedule = Schedule::kDualPipe}))},
      {"zero-by-schedule", of_training(Of::kDense, layout({.pp = 2, .zero = 3, .schedule = Schedule::kDualPipe}))},
      {"groups-by-schedule",
       of_training(Of::kDense, layout({.fsdp = 2, .pp = 2, .zero = 1, .schedule = Schedule::kDualPipe}))},
      {"several-chunks", of_training(Of::kDense, layout({.pp = 2, .schedule = Schedule::kInterleaved}))},
      {"one-chunk", of_training(Of::kDense, layout({.pp = 2, .vpp = 2, .schedule = Schedule::k1F1B}))},
      {"pairs-of-microbatches",
       of_training(Of::kDense, layout({.pp = 2, .grad_accum = 5, .schedule = Schedule::kDualPipe}))},
      {"overlap-by-schedule", of_training(Of::kMoe, layout({.pp = 2, .ep = 2, .schedule = Schedule::kDualPipe}))},
      {"experts-of-model", of_training(Of::kDense, [](Layout& l) { l.ep = 2; })},
      {"experts-by-ep", of_training(Of::kMoe, [](Layout& l) { l.ep = 3; })},
      {"etp-or-one", of_training(Of::kMoe, layout({.tp = 4, .etp = 2}))},
      {"expert-width-by-etp", of_training(Of::kMoe, [](Layout& l) { l.etp = 3; })},
      {"experts-over-ranks", of_training(Of::kMoe, layout({.dp = 4, .ep = 8}))},
      {"overlapped-microbatches", of_training(Of::kMoe, layout({.ep = 2, .grad_accum = 1, .ep_overlap = true}))},
      {"overlap-of-one", of_training(Of::kMoe, layout({.ep = 1, .ep_overlap = true}))},
      {"policy-of-treated", of_training(Of::kDense, [](Layout& l) { l.remat_layers = 1; })},
      {"treated-by-stage", of_training(Of::kDense, layout({.remat = Remat::kFull, .remat_layers = 4}))},
      {"offloaded-by-stage", of_training(Of::kDense, layout({.offload = kOffloadActivations, .offload_layers = 4}))},
      {"one-count-of-layers",
       of_training(
           Of::kDense,
           layout({.remat = Remat::kFull, .remat_layers = 1, .offload = kOffloadActivations, .offload_layers = 1}))},
      {"fsdp-by-zero", of_training(Of::kDense, layout({.dp = 4, .fsdp = 2}))},
      {"zero-3-by-fsdp", of_training(Of::kDense, [](Layout& l) { l.zero = 3; })},
      {"experts-in-shards", of_training(Of::kMoe, layout({.dp = 4, .fsdp = 2, .ep = 4, .zero = 3}))},
      {"degrees-make-chips", of_training(Of::kDense, [](Layout& l) { l.dp = 4; })},
      {"batch-over-ranks", of_training(Of::kDense, [](Layout& l) { l.dp = 128; })},
      {"groups-of-microbatches", of_training(Of::kDense, layout({.pp = 2, .vpp = 2, .grad_accum = 3}))},
      {"microbatches-of-share", of_training(Of::kDense, [](Layout& l) { l.micro_batch_seqs = 3; })},
      {"engine-degrees-make-chips", of_engine(Of::kDense, [](Layout& l, EngineRanks&) { l.dp = 3; })},
      {"experts-make-group", of_engine(Of::kMoe, [](Layout& l, EngineRanks&) { l.ep = 2; })},
      {"attention-ranks-of-experts", of_engine(Of::kDense, [](Layout&, EngineRanks& e) { e.attention_dp = 2; })},
      {"overlap-of-attention-ranks", of_engine(Of::kMoe, [](Layout& l, EngineRanks&) { l.ep_overlap = true; })},
      {"factor-of-two-dimensions", of_engine(Of::kDense, [](Layout&, EngineRanks& e) { e.tp_x = 2; })},
      {"width-by-factor", of_engine(Of::kDense,
                                    [](Layout& l, EngineRanks& e) {
                                      l.tp = 9;
                                      e.tp_x = 3;
                                      e.in_two = true;
                                    })},
      {"scheme-of-dense", of_engine(Of::kMoe, [](Layout&, EngineRanks& e) { e.gathered = true; })},
      {"scheme-of-whole-contexts", of_engine(Of::kDense,
                                             [](Layout& l, EngineRanks& e) {
                                               l.cp = 2;
                                               e.gathered = true;
                                             })},
      {"scheme-of-tensor-ranks", of_engine(Of::kDense, [](Layout&, EngineRanks& e) { e.gathered = true; })},
      {"two-factors", of_engine(Of::kDense,
                                [](Layout& l, EngineRanks& e) {
                                  l.tp = 2;
                                  e.tp_x = 2;
                                  e.in_two = true;
                                })},
      {"contexts-of-attention", of_engine(Of::kRecurrent, [](Layout& l, EngineRanks&) { l.cp = 2; })},
  };
  return kAll;
}

TEST(LayoutRules, EachIsBrokenByALayoutAndSaysWhy) {
  const Workload workload = test::workload(2048, 64);
  std::set<std::string_view> rows;
  for (const LayoutRule& rule : kLayoutRules) {
    EXPECT_TRUE(rows.insert(rule.name).second) << rule.name << " names two rows";
    ASSERT_TRUE(breaches().contains(rule.name)) << rule.name << " has no layout here";
    const Breach& breach = breaches().at(rule.name);
    const ModelSpec model = model_of(breach.model);
    EngineRanks engine;
    RuleSubject subject{.model = &model, .workload = &workload, .chips = 8};
    if (breach.serving) subject.engine = &engine;
    const Layout legal{.dp = 8, .grad_accum = 8};
    EXPECT_EQ(first_broken(subject, legal), nullptr) << first_broken(subject, legal)->name;
    Layout layout = legal;
    breach.serving ? breach.serving(layout, engine) : breach.training(layout);
    EXPECT_TRUE(rule.breaks(subject, layout)) << rule.name;
    EXPECT_FALSE(rule.source.empty());
    EXPECT_TRUE(rule.concerns(subject.serves()));
    if (!rule.speaks()) continue;
    const std::vector<std::string> said = sentences_of(rule, {subject, layout});
    ASSERT_FALSE(said.empty()) << rule.name << " is broken and says nothing";
    EXPECT_GT(said.front().size(), 20U) << rule.name;
  }
  EXPECT_EQ(rows.size(), breaches().size()) << "a layout here is of no row";
}

/// A stage of the search asks what it has decided, no earlier and no later.
TEST(LayoutRules, AreAskedWhereTheirLastDimensionIsDecided) {
  EXPECT_EQ(stage_of(reads::kTpWays), RuleStage::kTensor);
  EXPECT_EQ(stage_of(reads::kTpWays | reads::kCpWays), RuleStage::kContext);
  EXPECT_EQ(stage_of(reads::kEpWays | reads::kTpWays), RuleStage::kExperts);
  EXPECT_EQ(stage_of(reads::kPp), RuleStage::kStages);
  EXPECT_EQ(stage_of(reads::kPp | reads::kVpp), RuleStage::kPipeline);
  EXPECT_EQ(stage_of(reads::kPp | reads::kTpWays), RuleStage::kRanks);
  EXPECT_EQ(stage_of(reads::kVpp | reads::kGa), RuleStage::kMembers);
  EXPECT_EQ(stage_of(reads::kZero), RuleStage::kSharding);
  EXPECT_EQ(stage_of(reads::kRecipe | reads::kPp), RuleStage::kRecipe);
}

TEST(LayoutRules, OfTwoDimensionalWeightsDivideHeadsInOneFactor) {
  const ModelSpec model = test::dense_model(4);
  EngineRanks engine{.tp_x = 2, .in_two = true};
  const RuleSubject subject{.model = &model, .chips = 8, .engine = &engine};
  EXPECT_EQ(subject.head_ranks({.tp = 8}), 4);
  engine = {.gathered = true};
  EXPECT_EQ(subject.head_ranks({.tp = 8}), 1);
  engine = {};
  EXPECT_EQ(subject.width_ranks({.tp = 2, .cp = 4}), 8);
}

}  // namespace
}  // namespace scalecalc
