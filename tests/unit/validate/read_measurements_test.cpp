#include <gtest/gtest.h>

#include <algorithm>

#include "cost/layout.h"

#include "unit/validate/measured.h"

namespace scalecalc {
namespace {

std::vector<Diagnostic> problems_of(const std::string& text) {
  try {
    test::measurements(text);
  } catch (const UserError& error) {
    return error.diagnostics();
  }
  return {};
}

TEST(ReadMeasurements, ReadsAListOfRows) {
  const std::vector<Measurement> rows = test::measurements(test::row_text() + test::row_text("", "b"));
  ASSERT_EQ(rows.size(), 2U);
  const Measurement& row = rows.front();
  EXPECT_EQ(row.id, "a");
  EXPECT_EQ(row.group, "nobody") << "a row without a group is grouped by its source";
  EXPECT_EQ(row.family(), "tiny");
  EXPECT_EQ(row.layout.tp, 2);
  EXPECT_EQ(row.layout.vpp, 1) << "a row that gives its microbatch and no chunks has one a stage";
  EXPECT_FALSE(row.layout.cp);
  EXPECT_EQ(row.step_s, 0.5);
  EXPECT_TRUE(row.shape->gated_mlp);
}

TEST(ReadMeasurements, ReadsAFileWithSharedModelsAndSources) {
  const std::vector<Measurement> rows = test::measurements(
      "schema: scalecalc-measurements/1\n"
      "sources: {paper: A paper about one run}\n"
      "models:\n"
      "  tiny: {layers: 2, d_model: 64, heads: 4, head_dim: 16, ffn: 128, vocab: 100}\n"
      "rows:\n"
      "  - {id: a, source: paper, model: tiny, chip: h100-sxm, chips: 1, seq_len: 64, global_batch_seqs: 1,\n"
      "     precision: bf16, parallel: {dp: 1}, memory_gib_per_chip: 2, memory_kind: allocated}\n");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].source, "A paper about one run");
  EXPECT_EQ(rows[0].shape->layers, 2);
  EXPECT_EQ(rows[0].memory_bytes, 2147483648.0);
  EXPECT_EQ(rows[0].memory_count, MemoryCount::kAllocated);
  EXPECT_FALSE(rows[0].layout.vpp) << "neither microbatch nor chunks are said";
}

TEST(ReadMeasurements, ADateThatSaysNoMonthIsNotTakenForToday) {
  const auto dated = [](const std::string& date) {
    return problems_of(
        "- {id: a, source: s, model: tiny, chip: h100-sxm, chips: 1, seq_len: 64, global_batch_seqs: 1, precision: "
        "bf16,\n"
        "   model_shape: {layers: 2, d_model: 64, heads: 4, head_dim: 16, ffn: 128, vocab: 100},\n"
        "   parallel: {dp: 1}, memory_gib_per_chip: 2, date: " +
        date + "}\n");
  };
  for (const char* right : {"\"2025\"", "2025-08", "2025-08-31", "~2025-08"})
    EXPECT_TRUE(dated(right).empty()) << right;
  for (const char* wrong : {"2025-20", "2025-2026", "2025-Q3", "last spring"}) {
    ASSERT_EQ(dated(wrong).size(), 1U) << wrong;
    EXPECT_NE(dated(wrong).front().message.find("it must be a month"), std::string::npos);
  }
}

TEST(ReadMeasurements, AWrongSharedModelIsToldByEveryRowOfIt) {
  const std::string row =
      ", source: s, model: tiny, chip: h100-sxm, chips: 1, seq_len: 64, global_batch_seqs: 1, precision: bf16,\n"
      "     parallel: {dp: 1}, memory_gib_per_chip: 2}\n";
  const std::vector<Diagnostic> found = problems_of(
      "schema: scalecalc-measurements/1\n"
      "models:\n  tiny: {layers: 2, d_model: -1, heads: 4, head_dim: 16, ffn: 128, vocab: 100}\n"
      "rows:\n  - {id: a" +
      row + "  - {id: b" + row);
  ASSERT_EQ(found.size(), 2U);
  for (const Diagnostic& d : found) EXPECT_EQ(d.where.line, 3) << d.message;
}

TEST(ReadMeasurements, RowsOfOneSharedModelHaveTheSameShape) {
  const std::string row =
      ", source: s, chip: h100-sxm, chips: 1, seq_len: 64, global_batch_seqs: 1, precision: bf16,\n"
      "     parallel: {dp: 1}, memory_gib_per_chip: 2";
  const std::vector<Measurement> rows = test::measurements(
      "schema: scalecalc-measurements/1\n"
      "models:\n"
      "  tiny: {layers: 2, d_model: 64, heads: 4, head_dim: 16, ffn: 128, vocab: 100}\n"
      "  wide: {layers: 2, d_model: 96, heads: 4, head_dim: 16, ffn: 128, vocab: 100}\n"
      "rows:\n  - {id: a, model: tiny" +
      row + "}\n  - {id: b, model: wide" + row + "}\n  - {id: c, model: tiny" + row + "}\n  - {id: d, model: tiny" +
      row + ",\n     model_shape: {layers: 3, d_model: 64, heads: 4, head_dim: 16, ffn: 128, vocab: 100}}\n");
  ASSERT_EQ(rows.size(), 4U);
  EXPECT_EQ(rows[0].shape->d_model, 64);
  EXPECT_EQ(rows[1].shape->d_model, 96);
  EXPECT_EQ(rows[2].shape->d_model, 64);
  EXPECT_EQ(rows[3].shape->layers, 3) << "a row's own shape comes before the document's";
}

TEST(ReadMeasurements, TheFigureToPredictIsTheTarget) {
  EXPECT_EQ(test::measurement("  target: {step_time_s: 0.75, basis: printed}\n").step_s, 0.75);
}

TEST(ReadMeasurements, UnderstandsWhatSourcesSayInWords) {
  const Measurement row = test::measurement(
      "  flags: {framework: Megatron, interconnect: 4x100G Omni-Path per 8-GPU node, cp_type: all-to-all (Ulysses)}\n");
  EXPECT_EQ(row.framework, "Megatron");
  EXPECT_DOUBLE_EQ(*row.asked.node_bandwidth, 50e9);
  EXPECT_EQ(row.layout.cp_comm, "ulysses");
  EXPECT_FALSE(test::measurement("  flags: {interconnect: 8x400G IB}\n").asked.node_bandwidth)
      << "whose, it does not say";
}

TEST(ReadMeasurements, UnderstandsHowTheStepWasRun) {
  const Measurement told = test::measurement(
      "  flags: {cuda_graph: full_iteration, moe_a2a_overlap: true, routing: 'force-balanced, dropless'}\n");
  EXPECT_EQ(told.asked.graphs, GraphCapture::kStep);
  EXPECT_EQ(told.asked.fix.ep_overlap, true);
  EXPECT_TRUE(told.asked.balanced_experts);
  const Measurement partly = test::measurement(
      "  flags: {cuda_graph: transformer_engine, moe_dispatcher: deepep with overlap, routing: natural "
      "(unbalanced)}\n");
  EXPECT_EQ(partly.asked.graphs, GraphCapture::kLayer);
  EXPECT_EQ(partly.asked.fix.ep_overlap, true);
  EXPECT_FALSE(partly.asked.balanced_experts);
  EXPECT_EQ(partly.asked.expert_load, kNaturalLoad);
  EXPECT_EQ(told.asked.expert_load, "");
  EXPECT_EQ(partly.asked.dispatch, ExpertDispatch::kDeepEp);
  EXPECT_FALSE(told.asked.dispatch) << "not said is as the stack had it";
  EXPECT_EQ(test::measurement("  dispatcher: all-to-all\n").asked.dispatch, ExpertDispatch::kAllToAll);
  EXPECT_EQ(test::measurement("  flags: {moe_dispatcher: NCCL all-to-all}\n").asked.dispatch,
            ExpertDispatch::kAllToAll);
  EXPECT_EQ(test::measurement("  natural_routing: true\n").asked.expert_load, kNaturalLoad);
  const Measurement own = test::measurement("  graphs: step\n  expert_overlap: false\n  balanced_experts: true\n");
  EXPECT_EQ(own.asked.graphs, GraphCapture::kStep);
  EXPECT_EQ(own.asked.fix.ep_overlap, false);
  EXPECT_TRUE(own.asked.balanced_experts);
  EXPECT_FALSE(test::measurement().asked.graphs) << "not said is not none";
  EXPECT_EQ(test::measurement("  flags: {moe: 'token drop, capacity factor 1.0'}\n").asked.expert_capacity, 1);
  EXPECT_EQ(test::measurement("  flags: {routing: 'force-balanced, token drop'}\n").asked.expert_capacity, 1);
  EXPECT_EQ(test::measurement("  flags: {capacity_factor: 1.25}\n").asked.expert_capacity, 1.25);
  EXPECT_FALSE(
      test::measurement("  flags: {routing: 'node-limited to 4 nodes, no token drop'}\n").asked.expert_capacity);
  EXPECT_FALSE(test::measurement("  flags: {routing: balanced/random in benchmark}\n").asked.balanced_experts);
}

TEST(ReadMeasurements, MinimalPoliciesComputeTheCheapPartsAgain) {
  EXPECT_EQ(test::measurement("  flags: {remat_policy: minimal_flash}\n").recompute, "selective: minimal_flash");
  EXPECT_EQ(test::measurement("  flags: {remat_policy: full}\n").recompute, "none") << "the row says which";
  EXPECT_EQ(
      test::measurement("  parallel: {dp: 4, tp: 2}\n  recompute: full\n  flags: {remat_policy: minimal}\n").recompute,
      "full");
}

TEST(ReadMeasurements, UnderstandsWhatWasOverlapped) {
  const auto tp = [](const std::string& text) {
    return test::measurement("  flags: {" + text + "}\n").asked.tp_overlap;
  };
  const auto dp = [](const std::string& text) {
    return test::measurement("  flags: {" + text + "}\n").asked.dp_overlap;
  };
  EXPECT_EQ(tp("overlap: no DP/TP communication overlap"), CommOverlap::kNone);
  EXPECT_EQ(dp("overlap: no DP/TP communication overlap"), CommOverlap::kNone);
  EXPECT_EQ(dp("comm_overlap: none for DP/TP"), CommOverlap::kNone);
  EXPECT_EQ(dp("dp_overlap: none"), CommOverlap::kNone);
  EXPECT_EQ(tp("dp_overlap: none"), CommOverlap::kStack);
  EXPECT_EQ(tp("overlap: 'TP, PP and DP communication overlapped'"), CommOverlap::kPipelined);
  EXPECT_EQ(dp("overlap: 'TP, PP and DP communication overlapped'"), CommOverlap::kStack);
  EXPECT_EQ(tp("async_tp: true"), CommOverlap::kPipelined);
  EXPECT_EQ(tp("async_tp: false"), CommOverlap::kNone);
  EXPECT_EQ(test::measurement("  tp_overlap: pipelined\n  dp_overlap: none\n").asked.tp_overlap,
            CommOverlap::kPipelined);
  EXPECT_EQ(test::measurement().asked.tp_overlap, CommOverlap::kStack);
}

TEST(ReadMeasurements, AttentionIsTheRowsToSay) {
  EXPECT_EQ(test::measurement().asked.attention, "");
  EXPECT_EQ(test::measurement("  attention: unfused\n").asked.attention, "unfused");
}

TEST(ReadMeasurements, WhatIsCommonToAFileNeedNotBeRepeated) {
  const std::string text =
      "schema: scalecalc-measurements/1\n"
      "held_out: true\n"
      "models:\n"
      "  tiny: {layers: 2, d_model: 64, heads: 4, head_dim: 16, ffn: 128, vocab: 100}\n"
      "common: {source: nobody, model: tiny, chip: h100-sxm, chips: 1, seq_len: 64, precision: bf16}\n"
      "rows:\n"
      "  - {id: a, global_batch_seqs: 1, parallel: {dp: 1}, measured: {step_time_s: 1}}\n"
      "  - {id: b, global_batch_seqs: 2, seq_len: 128, parallel: {dp: 1}, measured: {step_time_s: 2}}\n";
  const std::vector<Measurement> rows = test::measurements(text);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].seq, 64);
  EXPECT_EQ(rows[1].seq, 128) << "what a row says comes first";
  EXPECT_EQ(rows[1].chip, "h100-sxm");
  EXPECT_TRUE(is_held_out(read_yaml(text, "runs.yaml")));
  EXPECT_FALSE(is_held_out(read_yaml(test::row_text(), "runs.yaml")));
}

TEST(ReadMeasurements, UnderstandsWhereTheStateLies) {
  const Measurement own = test::measurement(
      "  parallel: {dp: 8, zero_stage: 1, zero_group: 4}\n  offload: optimizer+weights\n  master_weights: false\n");
  EXPECT_EQ(own.layout.zero_group, 4);
  EXPECT_EQ(own.asked.fix.offload, kOffloadOptimizer | kOffloadWeights);
  EXPECT_FALSE(own.asked.master_weights);
  const Measurement told = test::measurement(
      "  parallel: {dp: 16, zero_stage: 1, notes: optimizer states sharded over 8 ranks only (hybrid ZeRO)}\n"
      "  flags: {offload: FSDP CPU offload of parameters}\n");
  EXPECT_EQ(told.layout.zero_group, 8);
  EXPECT_EQ(told.asked.fix.offload, kOffloadOptimizer | kOffloadWeights);
  const Measurement silent = test::measurement();
  EXPECT_FALSE(silent.layout.zero_group);
  EXPECT_FALSE(silent.asked.fix.offload);
  EXPECT_TRUE(silent.asked.master_weights);
  EXPECT_EQ(problems_of(test::row_text("  offload: optimiser\n")).at(0).hint, "did you mean 'optimizer'?");
}

TEST(ReadMeasurements, WhetherAStepIsCompiledIsTheRowsToSay) {
  EXPECT_EQ(test::measurement("  compile: true\n").asked.compiled, true);
  EXPECT_EQ(test::measurement("  flags: {torch_compile: false}\n").asked.compiled, false);
  EXPECT_FALSE(test::measurement().asked.compiled);
}

TEST(ReadMeasurements, ReportsEveryProblemWithItsPlace) {
  const std::vector<Diagnostic> found = problems_of(
      "- id: a\n"
      "  source: nobody\n"
      "  model: tiny\n"
      "  chip: h100-sxm\n"
      "  chips: many\n"
      "  seq_lenn: 2048\n"
      "  global_batch_seqs: 32\n"
      "  precision: bf16\n"
      "  parallel: {dp: 4, ttp: 2}\n"
      "  measured: {step_time_s: -1}\n");
  std::vector<std::string> all;
  for (const Diagnostic& d : found) {
    all.push_back(std::to_string(d.where.line) + ": " + d.message + " " + d.hint);
    EXPECT_EQ(d.where.file.str(), "runs.yaml");
  }
  const auto has = [&](const std::string& text) {
    return std::any_of(all.begin(), all.end(), [&](const std::string& s) { return s.find(text) != std::string::npos; });
  };
  EXPECT_TRUE(has("5: 'chips'"));
  EXPECT_TRUE(has("has no 'seq_len'"));
  EXPECT_TRUE(has("did you mean 'seq_len'"));
  EXPECT_TRUE(has("did you mean 'tp'"));
  EXPECT_TRUE(has("'step_time_s'"));
}

TEST(ReadMeasurements, RefusesRowsThatContradictTheFile) {
  EXPECT_NE(problems_of(test::row_text() + test::row_text()).at(0).message.find("used twice"), std::string::npos);
  EXPECT_NE(problems_of("schema: scalecalc-measurements/1\nsources: {}\nrows:\n- {}\n").size(), 0U);
  const std::string unknown_source =
      "schema: scalecalc-measurements/1\n"
      "sources: {paper: A paper}\n"
      "rows:\n"
      "  - {id: a, source: papre, model: llama3-8b, chip: h100-sxm, chips: 1, seq_len: 64, global_batch_seqs: 1,\n"
      "     precision: bf16, parallel: {dp: 1}, memory_gib_per_chip: 2}\n";
  EXPECT_NE(problems_of(unknown_source).at(0).message.find("'papre'"), std::string::npos);
  EXPECT_NE(problems_of("schema: scalecalc-measurements/1\nrows: 3\n").at(0).message.find("a list of rows"),
            std::string::npos);
}

TEST(ReadMeasurements, RefusesARowWithNothingMeasured) {
  std::string text = test::row_text();
  text.erase(text.find("  measured:"));
  EXPECT_NE(problems_of(text).at(0).message.find("what was measured"), std::string::npos);
}

TEST(ReadMeasurements, AShapeHasTheRangesOfAModelFile) {
  const auto first_problem = [](const std::string& key, const std::string& value) {
    std::string text = test::row_text();
    const std::size_t at = text.find(key + ": ");
    text.replace(at, text.find_first_of(",}", at) - at, key + ": " + value);
    const std::vector<Diagnostic> found = problems_of(text);
    return found.empty() ? "" : found.front().message;
  };
  EXPECT_NE(first_problem("layers", "1B"), "");
  EXPECT_NE(first_problem("d_model", "100M"), "");
  EXPECT_NE(first_problem("vocab", "1B"), "");
  EXPECT_EQ(first_problem("layers", "10000"), "");
}

TEST(ReadMeasurements, NoNumberInWordsIsTooLong) {
  const std::string many(400, '9');
  EXPECT_FALSE(test::measurement("  flags: {interconnect: " + many + "x400G RDMA per node}\n").asked.node_bandwidth);
}

}  // namespace
}  // namespace scalecalc
