// Releases of serving engines: which one is meant, its sizes on a chip, and SGLang's static share.
#include "spec/engine_rules.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "config/catalog.h"
#include "spec/load_stack.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

const Catalog kEngines;

std::vector<EngineRelease> releases_of(const std::string& engine) { return serving_stack(kEngines, engine).serving; }

EngineRules on_chip(const std::string& engine, const std::string& chip) {
  const EngineAsked asked = engine_asked(engine);
  return engine_release(releases_of(asked.name), asked.version).on(test::shipped_chip(chip));
}

std::string release_meant(const std::string& called, const std::string& date) {
  return engine_release_of(releases_of("vllm"), called, date).rules.version;
}

TEST(EngineRules, GraphsOfTheEngines) {
  const EngineRules sglang = on_chip("sglang", "h100-sxm"), vllm = on_chip("vllm", "h100-sxm");
  for (const auto& [rows, captured] : {std::pair(1.0, 1.0), {3, 4}, {9, 12}, {13, 16}, {17, 24}, {255, 256}}) {
    EXPECT_EQ(sglang.captured_rows(rows, 1), captured) << rows;
  }
  EXPECT_EQ(sglang.captured_rows(257, 1), 257) << "256 is the largest on one chip of 80 GB";
  EXPECT_EQ(sglang.captured_rows(257, 4), 272);
  for (const auto& [rows, captured] : {std::pair(3.0, 4.0), {5, 8}, {9, 16}, {250, 256}, {257, 272}, {513, 513}}) {
    EXPECT_EQ(vllm.captured_rows(rows, 1), captured) << rows;
  }
}

TEST(EngineReleases, AVersionMeansTheNewestOfItsLineByThen) {
  EXPECT_EQ(on_chip("vllm@0.11", "h100-sxm").version, "0.11");
  EXPECT_EQ(on_chip("vllm@0.11.2", "h100-sxm").version, "0.11");
  EXPECT_EQ(on_chip("vllm@0.8.3", "h100-sxm").version, "0.8");
  EXPECT_EQ(on_chip("vllm@0.8.5", "h100-sxm").version, "0.8.4");
  EXPECT_EQ(on_chip("vllm", "h100-sxm").version, releases_of("vllm").back().rules.version);
}

TEST(EngineReleases, EveryChipsUsualOneServes) {
  const auto check = [](CatalogKind kind) {
    for (const std::string& name : kEngines.names(kind)) {
      const ConfigNode document = kEngines.load(kind, name);
      const ConfigNode* engine = document.find("engine");
      if (engine == nullptr) continue;
      EXPECT_NO_THROW(serving_stack(kEngines, engine->text)) << name;
    }
  };
  check(CatalogKind::kHardware);
  check(CatalogKind::kEfficiency);
}

TEST(EngineReleases, AnUnknownOneNamesTheKnown) {
  for (const char* typed : {"vllm@0.110", "vllm@3", "vllm@new"}) {
    try {
      serving_stack(kEngines, typed);
      FAIL() << typed;
    } catch (const UserError& error) {
      EXPECT_NE(error.diagnostics().front().hint.find("0.10, 0.11, 0.12"), std::string::npos) << typed;
    }
  }
  EXPECT_THROW(serving_stack(kEngines, "jetstream@1"), UserError);
}

TEST(EngineReleases, ARunsIsThatOfItsVersionOrDate) {
  EXPECT_EQ(release_meant("vllm 0.12.0", "2026-08"), "0.12");
  EXPECT_EQ(release_meant("vLLM TPU 0.12.0", ""), "0.12");
  EXPECT_EQ(release_meant("vLLM", "2025-11"), "0.11");
  EXPECT_EQ(release_meant("vLLM nightly (2026-02)", "2026-02"), "0.16");
  EXPECT_EQ(release_meant("vLLM", "2023"), "0.6") << "before all";
  EXPECT_EQ(release_meant("vLLM", ""), releases_of("vllm").back().rules.version);
}

/// vllm/engine/arg_utils.py: 70 GiB and more but the A100; from 2026-08-11 twice as much from 160 GiB up.
TEST(EngineReleases, SizesGoByTheChip) {
  EXPECT_EQ(on_chip("vllm@0.11", "h100-sxm").chunk_tokens, 8192);
  EXPECT_EQ(on_chip("vllm@0.11", "h100-sxm").most_sequences, 1024);
  for (const char* chip : {"a100-80g", "l40s"}) {
    EXPECT_EQ(on_chip("vllm@0.11", chip).chunk_tokens, 2048) << chip;
    EXPECT_EQ(on_chip("vllm@0.11", chip).most_sequences, 256) << chip;
    EXPECT_EQ(on_chip("vllm@0.8", chip).most_sequences, 1024) << chip;
  }
  EXPECT_EQ(on_chip("vllm@0.27", "b200").chunk_tokens, 8192);
  EXPECT_EQ(on_chip("vllm@0.28", "b200").chunk_tokens, 16384);
  EXPECT_EQ(on_chip("vllm@0.28", "mi300x").chunk_tokens, 16384);
  EXPECT_EQ(on_chip("vllm@0.28", "h200").chunk_tokens, 8192);
  EXPECT_EQ(on_chip("sglang", "b200").chunk_tokens, 16384);
  EXPECT_EQ(on_chip("sglang", "l40s").chunk_tokens, 4096);
}

TEST(EngineReleases, VllmsShareAndWhereGraphsLie) {
  EXPECT_DOUBLE_EQ(on_chip("vllm@0.19", "h100-sxm").share_of({}), 0.90);
  EXPECT_FALSE(on_chip("vllm@0.19", "h100-sxm").graphs_in_share);
  EXPECT_DOUBLE_EQ(on_chip("vllm@0.20", "h100-sxm").share_of({}), 0.92);
  EXPECT_TRUE(on_chip("vllm@0.20", "h100-sxm").graphs_in_share);
}

/// One H100 of 81,559 MiB, server_args.py: 512 + 1.5 x 8192 + 2 x 256 + 128 + 464 MiB are left, and at tp 8, with
/// graphs of 512, 512 + 12288 + 1024 + 1024 + 464; 0.828 was seen (sgl-project/sglang issue 29092).
TEST(EngineReleases, SglangsStaticShare) {
  constexpr double kMiB = 1024.0 * 1024;
  const EngineRules now = on_chip("sglang", "h100-sxm");
  const ShareQuestion one{.capacity = 81559 * kMiB, .chunk_tokens = 8192};
  EXPECT_NEAR(now.share_of(one), 1 - 13904 / 81559.0, 1e-9);
  EXPECT_NEAR(now.share_of(one), 0.828, 0.002);
  ShareQuestion eight = one;
  eight.ranks = 8;
  EXPECT_NEAR(now.share_of(eight), 1 - 15312 / 81559.0, 1e-9);
  eight.attention_dp = 8;
  EXPECT_NEAR(now.share_of(eight), 1 - (15312 + 4.5 * 512 * 8) / 81559, 1e-9) << "more than 300 sequences in a graph";
  ShareQuestion small = one;
  small.chunk_tokens = 2048;
  EXPECT_NEAR(now.share_of(small), 1 - 10240 / 81559.0, 1e-9) << "at least 10 GiB from 60 up";
  small.draft_model = true;
  EXPECT_NEAR(now.share_of(small), 1 - (10240 + 6144) / 81559.0, 1e-9);
  const EngineRules before = on_chip("sglang@0.3.4", "h100-sxm");
  EXPECT_DOUBLE_EQ(before.share_of(one), 0.88);
  EXPECT_DOUBLE_EQ(before.share_of({.ranks = 4}), 0.85);
  EXPECT_DOUBLE_EQ(before.share_of({.ranks = 32}), 0.79);
}

/// What the release knows of a kind of layer counts in the place of the family's, but not of what was typed.
TEST(EngineReleases, OverheadsGoByReleaseAndKind) {
  const auto overhead = [](const char* engine, const char* model, bool typed = false) {
    Efficiency of;
    of.serving.layer_overhead = {70e-6, 0.6, "family"};
    of.serving.layer_overhead.typed = typed;
    on_chip(engine, "h100-sxm").put_overhead(test::shipped_model(model), of);
    return of.serving.layer_overhead.value;
  };
  EXPECT_DOUBLE_EQ(overhead("trtllm@0.21", "llama3-8b"), 70e-6);
  EXPECT_DOUBLE_EQ(overhead("trtllm@1.0", "llama3-8b"), 45e-6);
  EXPECT_DOUBLE_EQ(overhead("trtllm@1.0", "deepseek-v3"), 90e-6);
  EXPECT_DOUBLE_EQ(overhead("trtllm@1.0", "mixtral-8x7b"), 70e-6);
  EXPECT_DOUBLE_EQ(overhead("vllm", "llama3-8b", true), 70e-6);
}

TEST(EngineReleases, AShareThatIsSaidIsOfNoLayout) {
  EngineRules rules = on_chip("sglang", "h100-sxm");
  rules.fix_share(0.7);
  EXPECT_DOUBLE_EQ(rules.share_of({.capacity = 1e9, .chunk_tokens = 8192, .ranks = 8}), 0.7);
}

}  // namespace
}  // namespace scalecalc
