// The operations of an engine step, one by one.
#include "serve/step_operations.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/catalog.h"
#include "serve/serve_question.h"

namespace scalecalc {
namespace {

struct Served {
  ServeAnswer answer;
  StepTerms<double> terms;
};

Served served(const char* model, ServeLayout layout) {
  const Catalog catalog;
  ServeQuestion q;
  q.model = model;
  q.hardware = {"h100-sxm"};
  q.chips = layout.chips();
  Served out{.answer = resolve_serving(q, catalog), .terms = {}};
  const ServingSystem& system = out.answer.systems.front().serving;
  const ServeBasis<double> basis(Reader<double>{}, system);
  const Slice slice = slices_of(*system.hw, layout.chips(), 1).front();
  out.terms = step_terms(basis, layout, slice, placed(*system.hw, slice, layout).front());
  return out;
}

TEST(StepOperations, TheirTimesAreTheStep) {
  for (const char* model : {"llama3-8b", "mixtral-8x7b", "deepseek-v3"}) {
    const ServeLayout layout{.tp = 8, .ep = 1, .etp = 8};
    const Served s = served(model, layout);
    for (const ServeStep& step :
         {ServeStep{.decode_sequences = 64, .context = 4096}, ServeStep{.prefill_sequences = 1, .prefill_tokens = 2048},
          ServeStep{.decode_sequences = 8, .context = 100, .prefill_sequences = 1, .prefill_tokens = 512}}) {
      const StepRows<double> rows = rows_of(step, layout);
      double sum = 0;
      for (const ServeOperation& op : step_operations(s.terms, rows)) sum += op.time_s * op.layers;
      EXPECT_NEAR(sum, time_of(s.terms, rows).local().value(), 1e-9 * sum) << model;
    }
  }
}

// Llama 3 8B on one chip: the gate of a layer is 4,096 x 14,336, which 64 rows make 2 x 64 x 4096 x 14336 FLOPs; its
// weights are 2 x 4096 x 14336 bytes in bf16.
TEST(StepOperations, AGateOfLlama) {
  const ServeLayout layout{.tp = 1};
  const Served s = served("llama3-8b", layout);
  const auto all = step_operations(s.terms, rows_of({.decode_sequences = 64, .context = 4096}, layout));
  const auto gate =
      std::find_if(all.begin(), all.end(), [](const ServeOperation& op) { return op.name == "mlp gate projection"; });
  ASSERT_NE(gate, all.end());
  EXPECT_DOUBLE_EQ(gate->flops, 2.0 * 64 * 4096 * 14336);
  EXPECT_NEAR(gate->bytes, 2.0 * 4096 * 14336, 0.05 * gate->bytes);
  EXPECT_EQ(gate->layers, 32);
  // No operation is faster than the data sheet: 989.4 TFLOP/s and 3.35 TB/s.
  for (const ServeOperation& op : all) {
    EXPECT_LE(op.flops, 989.5e12 * op.time_s) << op.name;
    EXPECT_LE(op.bytes, 3.36e12 * op.time_s) << op.name;
  }
}

}  // namespace
}  // namespace scalecalc
