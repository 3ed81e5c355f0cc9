// What releases of serving engines cannot run: `supports:` of configs/stacks.
#include <gtest/gtest.h>

#include "config/catalog.h"
#include "plan/stack_supports.h"
#include "serve/serve_question.h"
#include "serve/serve_search.h"

namespace scalecalc {
namespace {

/// Name of the fact that refuses the layout; empty: none does.
std::string refusal_by(const std::string& engine, const std::string& model, const ServeLayout& layout,
                       bool speculative = false, const char* hw = "h100-sxm") {
  ServeQuestion q;
  q.model = model;
  q.hardware = {engine == "jetstream" ? "tpu-v5e" : hw};
  q.chips = 8;
  q.engine = engine;
  const ServeAnswer asked = resolve_serving(q, Catalog());
  const SupportFact* fact = refused_layout(asked.systems.front().serving, layout, speculative);
  return fact == nullptr ? "" : fact->name;
}

TEST(EngineSupports, VllmDividesExpertsAmongAllRanksOrNot) {
  EXPECT_EQ(refusal_by("vllm", "mixtral-8x7b", {.tp = 8, .ep = 8, .etp = 1}), "");
  EXPECT_EQ(refusal_by("vllm", "mixtral-8x7b", {.tp = 8, .ep = 1, .etp = 8}), "");
  EXPECT_EQ(refusal_by("vllm", "mixtral-8x7b", {.tp = 8, .ep = 4, .etp = 2}), "experts-whole");
  EXPECT_EQ(refusal_by("vllm@0.7", "mixtral-8x7b", {.tp = 8, .ep = 8, .etp = 1}), "experts-in-tensor-ranks");
  EXPECT_EQ(refusal_by("vllm@0.8.3", "mixtral-8x7b", {.ep = 8, .etp = 1, .attention_dp = 8}), "attention-data-ranks");
  EXPECT_EQ(refusal_by("vllm@0.8.4", "mixtral-8x7b", {.ep = 8, .etp = 1, .attention_dp = 8}), "");
}

/// Eight KV heads of Llama 3 70B; a latent is whole on every rank and divides as it likes.
TEST(EngineSupports, VllmDividesContextsBeyondTheKvHeads) {
  EXPECT_EQ(refusal_by("vllm@0.10", "llama3-70b", {.tp = 8, .cp = 2}), "context-ranks");
  EXPECT_EQ(refusal_by("vllm@0.11", "llama3-70b", {.tp = 8, .cp = 2}), "");
  EXPECT_EQ(refusal_by("vllm@0.11", "llama3-70b", {.tp = 4, .cp = 2}), "context-ranks-of-kv-heads");
  EXPECT_EQ(refusal_by("vllm@0.11", "deepseek-v3", {.tp = 4, .cp = 2}), "");
}

/// vLLM's --enable-dbo is of 0.11, SGLang's --enable-two-batch-overlap of 0.4.7 and on AMD of 0.5.9.
TEST(EngineSupports, HalvesOfAStepTakeTurnsWhereTheReleaseCan) {
  const ServeLayout halves{.ep = 8, .etp = 1, .attention_dp = 8, .ep_overlap = true};
  const auto refused = [&](const char* engine, const char* hw = "h100-sxm") {
    return refusal_by(engine, "deepseek-v3", halves, false, hw);
  };
  EXPECT_EQ(refused("vllm@0.10"), "expert-overlap");
  EXPECT_EQ(refused("vllm@0.11"), "");
  EXPECT_EQ(refused("vllm", "mi300x"), "expert-overlap-by-deepep");
  EXPECT_EQ(refused("sglang@0.4"), "expert-overlap");
  EXPECT_EQ(refused("sglang@0.4.7"), "");
  EXPECT_EQ(refused("sglang@0.5.8", "mi300x"), "expert-overlap-by-deepep");
  EXPECT_EQ(refused("sglang@0.5.9", "mi300x"), "");
  EXPECT_EQ(refused("trtllm"), "expert-overlap");
}

TEST(EngineSupports, APipelineExcludesSpeculation) {
  for (const char* engine : {"sglang", "trtllm"}) {
    EXPECT_EQ(refusal_by(engine, "llama3-70b", {.pp = 2}, true), "pipeline-and-drafts");
    EXPECT_EQ(refusal_by(engine, "llama3-70b", {.tp = 2}, true), "");
    EXPECT_EQ(refusal_by(engine, "llama3-70b", {.pp = 2}), "");
  }
  EXPECT_EQ(refusal_by("vllm", "llama3-70b", {.pp = 2}, true), "");
  EXPECT_EQ(refusal_by("sglang@0.4", "llama3-70b", {.pp = 2}), "pipeline") << "since 2025-04-30";
}

TEST(EngineSupports, OthersByTheirOwnRules) {
  EXPECT_EQ(refusal_by("trtllm", "deepseek-v3", {.tp = 2, .ep = 8, .attention_dp = 4}), "attention-data-ranks");
  EXPECT_EQ(refusal_by("trtllm", "deepseek-v3", {.ep = 8, .attention_dp = 8}), "");
  EXPECT_EQ(refusal_by("trtllm", "llama3-8b", {.tp = 2}, false, "mi300x"), "nvidia");
  EXPECT_EQ(refusal_by("trtllm", "llama3-8b", {.tp = 2}, false, "l40s"), "");
  EXPECT_EQ(refusal_by("jetstream", "llama3-8b", {.pp = 2}), "pipeline");
  EXPECT_EQ(refusal_by("gpt-fast", "llama3-8b", {.pp = 2}), "") << "nothing is known of it";
}

/// A pinned layout that the release cannot run is answered with the fact and its source.
TEST(EngineSupports, ARefusedPinCitesTheFact) {
  ServeQuestion q;
  q.model = "llama3-70b";
  q.hardware = {"h100-sxm"};
  q.chips = 8;
  q.engine = "vllm@0.9";
  q.fix.cp = 2;
  q.suggest = false;
  const ServeAnswer answer = serve_answer(q, Catalog());
  EXPECT_FALSE(answer.best.has_value());
  ASSERT_FALSE(answer.notes.empty());
  EXPECT_EQ(answer.notes.front(), "vllm 0.9: contexts are divided since 0.11 (vLLM commit ac201a0 (2025-09-06))");
}

}  // namespace
}  // namespace scalecalc
