// The coefficients of an engine step by hand: d_model 1,024, 16 heads of 64, 4 KV heads, d_ff 4,096, 8 layers.
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "serve/serve_work.h"
#include "serve/serving_cost.h"
#include "serve/step_operations.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

struct Engine {
  ModelSpec model;
  HardwareSpec hw = test::switched_chip();
  ServingSystem system;

  explicit Engine(ModelSpec m) : model(std::move(m)) {
    for (Tier& tier : hw.network) tier.switched.latency = Seconds(0);
    system.model = &model;
    system.hw = &hw;
    system.efficiency = ideal_efficiency(hw.efficiency);
  }
  StepTerms<double> terms(const ServeLayout& layout) const {
    const ServeBasis<double> basis(Reader<double>{}, system);
    const Slice slice = slices_of(hw, layout.chips(), 1).front();
    return step_terms(basis, layout, slice, placed(hw, slice, layout).front());
  }
};

template <class Term>
const Term& term_named(const std::vector<Term>& terms, std::string_view name) {
  for (const Term& t : terms) {
    if (t.name == name) return t;
  }
  throw std::out_of_range(std::string(name));
}

template <class Term>
bool has(const std::vector<Term>& terms, std::string_view name) {
  return std::any_of(terms.begin(), terms.end(), [&](const Term& t) { return t.name == name; });
}

/// A tower as wide as the model, five layers, a position for each token of a prompt.
ModelSpec seeing_model() {
  ModelSpec model = test::dense_model();
  TowerSpec& tower = model.towers.emplace_back();
  tower.network = test::dense_model(5);
  tower.network.vocab = 0;
  tower.network.attention.causal = false;
  tower.tokens = 1000;
  tower.positions = 1000;
  tower.per_token = 1;
  return model;
}

TEST(StepTerms, ATowersMatmulsMoveWhatTheyReadAndWrite) {
  Engine engine(seeing_model());
  engine.system.efficiency.matmul_half_dim.value = 256;
  const double peak = 100e12;
  for (const std::int64_t tp : {1, 2}) {
    const double ways = static_cast<double>(tp);
    const StepTerms<double> terms = engine.terms({.tp = tp, .etp = tp});
    const DenseTerm<double>& up = term_named(terms.towers, "mlp up projection");
    EXPECT_EQ(up.layers, 5);
    EXPECT_DOUBLE_EQ(up.flops.value(), 2.0 * 1024 * 4096 / ways);
    EXPECT_DOUBLE_EQ(up.row_bytes.value(), 2.0 * (1024 + 4096) / ways);
    EXPECT_DOUBLE_EQ(up.weight_bytes.value(), 2.0 * 1024 * 4096 / ways);
    EXPECT_DOUBLE_EQ(up.rate.value(), peak * (4096.0 / (4096 + 256)) * (1024.0 / (1024 + 256)));
    // Everything behind a token and before it: 1,000 keys, 1,024 + 1,024 elements.
    const DenseTerm<double>& attention = term_named(terms.towers, "attention");
    EXPECT_DOUBLE_EQ(attention.flops.value(), 2.0 * 1000 * 2048 / ways);
    EXPECT_DOUBLE_EQ(attention.row_bytes.value(), 2.0 * 2048 / ways);
    const VectorTerm<double>& sum = term_named(terms.tower_vectors, "attention residual");
    EXPECT_DOUBLE_EQ(sum.bytes.value(), 2.0 * 3 * 1024 / ways) << "two read, one written";
  }
  // A prompt of 100 tokens on one chip that keeps nothing on the chip itself.
  const StepTerms<double> terms = engine.terms({});
  for (const ServeOperation& op :
       step_operations(terms, rows_of({.prefill_sequences = 1, .prefill_tokens = 100}, {}))) {
    if (op.layers != 5) continue;
    if (op.name == "attention residual") {
      EXPECT_DOUBLE_EQ(op.bytes, 100 * 2.0 * 3 * 1024);
    } else if (op.name == "mlp up projection") {
      EXPECT_DOUBLE_EQ(op.bytes, 2.0 * 1024 * 4096 + 100 * 2.0 * (1024 + 4096));
    }
  }
}

/// Eight key heads and sixteen value heads of 64: 2,080 elements in and 1,024 out; the state in fp32, read and written.
TEST(StepTerms, ARecurrenceKeepsItsState) {
  const Engine engine(test::hybrid_model());
  const auto rule = [&](std::int64_t tp) {
    return term_named(engine.terms({.tp = tp, .etp = tp}).caches, "gated delta rule");
  };
  EXPECT_DOUBLE_EQ(rule(1).row_bytes.value(), 2.0 * (2 * 512 + 1024 + 2 * 16 + 1024));
  EXPECT_DOUBLE_EQ(rule(1).state_bytes.value(), 16.0 * 64 * 64 * 2 * 4);
  EXPECT_DOUBLE_EQ(rule(2).row_bytes.value(), rule(1).row_bytes.value() / 2);
  EXPECT_DOUBLE_EQ(rule(2).state_bytes.value(), rule(1).state_bytes.value() / 2);
  EXPECT_DOUBLE_EQ(rule(2).row_flops.value(), rule(1).row_flops.value() / 2);
  // Its FLOPs do not grow with the context: 300 tokens of three prompts.
  const StepRows<double> rows = rows_of({.prefill_sequences = 3, .prefill_tokens = 100}, {});
  for (const ServeOperation& op : step_operations(engine.terms({}), rows)) {
    if (op.name != "gated delta rule") continue;
    EXPECT_DOUBLE_EQ(op.flops, 300 * rule(1).row_flops.value());
  }
}

/// Four ranks in two by two: of a layer's wide outputs, queries, keys and values of 1,024 + 512 elements, half are
/// summed over x; gate and up, 8,192, are summed in parts and their product gathered; what is as wide as the model over
/// y.
TEST(StepTerms, TwoDimensionalSumsGoOverRowsAndColumns) {
  const Engine engine(test::dense_model());
  const StepTerms<double> terms = engine.terms({.tp = 4, .tp_x = 2, .etp = 4, .scheme = ServeScheme::kStationary2d});
  const auto of = [&](std::string_view name) { return term_named(terms.collectives, name); };
  EXPECT_EQ(of("2d all-reduce over x").row_bytes.value(), 2 * (1024 + 512) / 2);
  EXPECT_EQ(of("2d all-reduce over x").times, 8);
  EXPECT_EQ(of("2d reduce-scatter over x").row_bytes.value(), 2 * 8192 / 2);
  EXPECT_EQ(of("2d all-gather over x").row_bytes.value(), 2 * 4096 / 2);
  EXPECT_EQ(of("2d all-reduce over y").row_bytes.value(), 2 * 1024 / 2);
  EXPECT_EQ(of("2d all-reduce over y").times, 16);
  // Queries, keys and values of four ranks' heads go to sequences and the outputs back, half of it each time.
  EXPECT_EQ(of("sequence all-to-all").row_bytes.value(), 2 * (1024 + 1024 + 512) / 4 / 2);
  EXPECT_EQ(of("sequence all-to-all").times, 16);
}

/// 400 GB/s within a node: three quarters of a layer's weights come from the other three ranks, whatever the rows.
TEST(StepTerms, GatheredWeightsCrossOnce) {
  const Engine engine(test::dense_model());
  const StepTerms<double> terms = engine.terms({.tp = 4, .etp = 1, .scheme = ServeScheme::kGathered});
  const CollectiveTerm<double>& gather = term_named(terms.collectives, "weight all-gather");
  const double layer = 1024 * (1024 + 512 + 1024) + 3 * 1024 * 4096.0;
  EXPECT_EQ(gather.row_bytes.value(), 0);
  EXPECT_EQ(gather.per_row.value(), 0);
  EXPECT_EQ(gather.times, 8);
  EXPECT_NEAR(gather.fixed.value(), 2 * layer * 3 / 4 / 400e9, 1e-12);
}

/// Two choices of a token, 1,024 elements each: a rank sends its part of its group's tokens; ranks that share an expert
/// gather what arrived.
TEST(StepTerms, ExpertsGetTheirTokens) {
  Engine engine(test::moe_model());
  const auto of = [&](const ServeLayout& layout, std::string_view name) {
    return term_named(engine.terms(layout).collectives, name);
  };
  const ServeLayout apart{.tp = 2, .ep = 8, .etp = 1, .attention_dp = 4};
  EXPECT_EQ(of(apart, "expert dispatch").row_bytes.value(), 2 * 1024 / 2 * 2);
  EXPECT_EQ(of(apart, "expert combine").row_bytes.value(), 2 * 1024 / 2 * 2);
  EXPECT_EQ(of(apart, "expert combine").times, 7) << "layers with experts";
  EXPECT_FALSE(has(engine.terms(apart).collectives, "expert tensor all-gather"));
  const ServeLayout together{.tp = 2, .ep = 4, .etp = 2, .attention_dp = 4};
  EXPECT_EQ(of(together, "expert tensor all-gather").row_bytes.value(), 2 * (2 * 1024 / 2 * 2));
  EXPECT_EQ(of(together, "expert tensor reduce-scatter").row_bytes.value(), 2 * (2 * 1024 / 2 * 2));
  const ServeLayout everywhere{.tp = 2, .ep = 1, .etp = 8, .attention_dp = 4};
  EXPECT_EQ(of(everywhere, "expert all-gather").row_bytes.value(), 4 * 1024 * 2) << "tokens of four groups";
  engine.system.efficiency.serving.expert_imbalance.value = 1.5;
  EXPECT_EQ(of(apart, "expert dispatch").row_bytes.value(), 1.5 * 2 * 1024 / 2 * 2);
}

TEST(StepTerms, SumsOfTensorRanks) {
  const Engine engine(test::dense_model());
  const StepTerms<double> terms = engine.terms({.tp = 4, .etp = 4});
  const CollectiveTerm<double>& sum = term_named(terms.collectives, "tensor all-reduce");
  EXPECT_EQ(sum.times, 16);
  EXPECT_EQ(sum.row_bytes.value(), 2 * 1024);
  const CollectiveTerm<double>& logits = term_named(terms.collectives, "logits gather");
  EXPECT_EQ(logits.row_bytes.value(), 2 * 32000);
  EXPECT_TRUE(logits.logits);
  // Keys and values of two KV heads a rank's pair: 1,024 x 512 of the model's over four ranks.
  EXPECT_DOUBLE_EQ(term_named(terms.dense, "mlp up projection").weight_bytes.value(), 2.0 * 1024 * 4096 / 4);
  EXPECT_DOUBLE_EQ(term_named(terms.dense, "mlp up projection").row_bytes.value(), 2.0 * (1024 + 4096 / 4));
  EXPECT_DOUBLE_EQ(term_named(terms.dense, "mlp down projection").row_bytes.value(), 2.0 * (4096 / 4 + 1024));
  const StepTerms<double> staged = engine.terms({.tp = 4, .pp = 2, .etp = 4});
  EXPECT_DOUBLE_EQ(staged.stage_send_per_row.value(), 2.0 * 1024 / 400e9) << "of a node";
}

}  // namespace
}  // namespace scalecalc
