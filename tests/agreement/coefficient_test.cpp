// A coefficient that the cost of an operation has moves every command whose answer has such an operation. Which
// coefficients these are, the cost itself says: they are the inputs of its terms, read as expressions.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "agreement/ask.h"
#include "config/catalog.h"
#include "model/op_list.h"
#include "serve/serve_work.h"
#include "spec/load.h"
#include "support/fixtures.h"

namespace scalecalc::agreement {
namespace {

/// Values of coefficients by the names that --set gives them.
using Coefficients = std::map<std::string, double>;

void collect(const TracePtr& node, Coefficients& out) {
  if (node->op == TraceNode::Op::kInput && node->name.starts_with("efficiency.")) out[node->name] = node->value;
  for (const TracePtr& arg : node->args) collect(arg, out);
}

template <Dim D>
void collect(const Quantity<D, Traced>& x, Coefficients& out) {
  collect(x.value().node(), out);
}

/// Of the rates of every kind of operation: matmuls in 8 bits scaled by blocks and in 16, dense and of experts,
/// attention, recurrences in chunks, and vectors.
Coefficients of_operations(const ChipRates<Traced>& chip) {
  Coefficients out;
  const Traced size(4096.0);
  for (const MatmulFormat& format : {MatmulFormat{.dtype = DType::kFp8, .scaling = Scaling::kBlock}, MatmulFormat{}}) {
    for (const MatmulTerm<Traced>& term :
         {dense_term(chip, format, size, size), grouped_term(chip, format, size, size)}) {
      collect(term.rate_at(size, Traced(8.0)), out);
    }
  }
  const ModelSpec model = test::moe_model();
  const Reader<Traced> reader;
  for (const Op<Traced>& op : layer_ops(model, model.kinds.front(), read_dims(reader, model))) {
    if (op.kind != OpKind::kAttention) continue;
    collect(attention_term(chip, chip.peak_attention_forward, op, Traced(1.0), 2).rate_at(size), out);
  }
  Op<Traced> scan;
  scan.kind = OpKind::kScan;
  collect(row_term(chip, chip.peak_scan_forward, scan, Traced(1.0), 2).rate, out);
  collect(chip.vector, out);
  return out;
}

const HardwareSpec& chip() {
  static const Catalog catalog;
  static const HardwareSpec hw = load_hardware(catalog.load(CatalogKind::kHardware, "h100-sxm"), catalog);
  return hw;
}

Coefficients trained() { return of_operations(read_chip(Reader<Traced>{}, chip(), chip().efficiency, DType::kBf16)); }

Coefficients served() {
  static const ModelSpec model = test::moe_model();
  ServingSystem system;
  system.model = &model;
  system.hw = &chip();
  system.efficiency = chip().efficiency;
  return of_operations(ServeBasis<Traced>(Reader<Traced>{}, system).chip);
}

/// Coefficients of which none of the questions' answers depends on.
std::vector<std::string> idle(const Coefficients& coefficients, const std::vector<std::string>& questions,
                              const std::string& figure) {
  std::vector<std::string> out;
  for (const auto& [name, value] : coefficients) {
    const std::string set = fmt::format(" --set hw.{}.value={:.17g}", name, value > 0 ? 0.05 * value : 8);
    const bool moves = std::any_of(questions.begin(), questions.end(), [&](const std::string& question) {
      try {
        return agreement::value_of(ask(question + set), figure) != agreement::value_of(ask(question), figure);
      } catch (const std::exception&) {
        return false;  // refused: it has no effect
      }
    });
    if (!moves) out.push_back(name);
  }
  return out;
}

using Names = std::vector<std::string>;

/// Serving has every operation that training has, at coefficients of the same name or of an engine's own.
TEST(Coefficients, OfAnOperationAreServingsToo) {
  const Coefficients served_by = served();
  for (const auto& [name, value] : trained()) {
    const std::string own = "efficiency.serving." + name.substr(std::string("efficiency.").size());
    EXPECT_TRUE(served_by.contains(name) || served_by.contains(own) || name == "efficiency.matmul_half_dim") << name;
  }
  EXPECT_GE(trained().size(), 10U);
}

TEST(Coefficients, OfAnOperationMoveTraining) {
  EXPECT_EQ(idle(trained(),
                 {"train deepseek-v3 --hw h100-sxm --chips 2048 --precision fp8 --fp8-recipe blockwise --fix "
                  "tp=1,pp=16,ep=32,mb=1",
                  "train gpt-oss-20b --hw h100-sxm --chips 64 --fix tp=1,pp=1,ep=8,mb=1",
                  "train nemotron-3-nano-30b-a3b --hw h100-sxm --chips 64 --fix tp=1,pp=1,ep=8,mb=1"},
                 "plans[0].step_time_s"),
            Names{});
}

TEST(Coefficients, OfAnOperationMoveServing) {
  const std::string load = " --hw h100-sxm --prompt 4096 --generate 256";
  EXPECT_EQ(idle(served(),
                 {"serve deepseek-v3 --chips 16 --fix tp=16,ep=16 --batch 64 --flops fp8" + load,
                  "serve gpt-oss-20b --chips 1 --fix tp=1 --batch 16" + load,
                  "serve nemotron-3-nano-30b-a3b --chips 4 --fix tp=4 --batch 64" + load},
                 "best.ttft_s"),
            Names{});
}

TEST(Coefficients, OfAMatmulAndOfAttentionMoveTheirRooflines) {
  Coefficients matmul, attention;
  for (const auto& [name, value] : trained()) {
    if (name == "efficiency.matmul.bf16" || name == "efficiency.matmul_half_dim") matmul[name] = value;
    if (name.starts_with("efficiency.attention_")) attention[name] = value;
  }
  EXPECT_EQ(idle(matmul, {"roofline matmul 512x4096x4096 --hw h100-sxm --efficiency calibrated"}, "points[0].time_s"),
            Names{});
  EXPECT_EQ(
      idle(
          attention,
          {"roofline attention heads=32 kv_heads=8 head_dim=64 query=512 kv=512 --hw h100-sxm --efficiency calibrated"},
          "points[0].time_s"),
      Names{});
}

}  // namespace
}  // namespace scalecalc::agreement
