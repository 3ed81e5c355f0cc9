#include "serve/traffic.h"

#include <gtest/gtest.h>

#include "network/slice.h"
#include "serve/serving_cost.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

struct Replica {
  ModelSpec model = test::dense_model();
  HardwareSpec hw = test::switched_chip();
  ServingSystem system;

  Replica() {
    system.model = &model;
    system.hw = &hw;
    system.efficiency = ideal_efficiency(hw.efficiency);
  }
  Slice slice(const ServeLayout& layout) const { return slices_of(hw, layout.chips(), 1).front(); }
  ServerKind server(const ServeLayout& layout) const {
    const ServeBasis<double> basis(Reader<double>{}, system);
    const ReplicaQuestion question{.mix = {.prompt = Lengths::fixed(1000), .generate = Lengths::fixed(101)},
                                   .chunk = 2048};
    return replica_server(basis, layout, slice(layout), best_placement(basis, layout, slice(layout)), question);
  }
};

TEST(ReplicaServer, StepsAreThoseOfTheEngine) {
  const Replica r;
  const ServeLayout layout{.tp = 2, .etp = 2};
  const ServingCost<double> cost = serving_cost(r.system, layout, r.slice(layout));
  const ServerKind server = r.server(layout);
  EXPECT_DOUBLE_EQ(server.seconds({.sequences = 8, .context_tokens = 8000}), cost.decode_step(8, 1000).total().value());
  // Chunks are told by their mean context: 512 tokens after 1,024 attend to 1,280.5 each.
  EXPECT_DOUBLE_EQ(server.seconds({.sequences = 8,
                                   .context_tokens = 8000,
                                   .prompts = 1,
                                   .prefill_tokens = 512,
                                   .prefill_context = 1024 + 256.5}),
                   cost.mixed_step(8, 1000, 512, 1024).total().value());
  EXPECT_DOUBLE_EQ(server.seconds({.prompts = 1, .prefill_tokens = 900, .prefill_context = 450.5}),
                   cost.prefill(900).total().value());
}

TEST(ReplicaServer, RanksAndStagesTakeSequencesOfTheirOwn) {
  Replica r;
  r.system.engine.most_sequences = 64;
  const QueueRules one = r.server({}).rules;
  EXPECT_EQ(one.most_sequences, 64);
  EXPECT_EQ(one.prompt_chunk, 2048);
  EXPECT_EQ(one.token_budget, 2048);
  const QueueRules two = r.server({.pp = 2}).rules;
  EXPECT_EQ(two.most_sequences, 128);
  EXPECT_EQ(two.prompt_chunk, 2048);
  EXPECT_EQ(two.token_budget, 4096);
}

TEST(ReplicaServer, TheCacheHoldsWhatMemoryHolds) {
  Replica r;
  const ServeBasis<double> basis(Reader<double>{}, r.system);
  const ServeMemory memory(basis, {});
  const QueueRules rules = r.server({}).rules;
  // A decode step has 1,050.5 tokens in the cache on average.
  const double sequences = memory.max_batch(1050.5);
  EXPECT_GE(rules.kv_tokens, sequences * 1050);
  EXPECT_LE(rules.kv_tokens, (sequences + 1) * 1051);
  EXPECT_EQ(rules.admission, Admission::kPromptFits);
  r.system.engine.reserves_whole = true;
  EXPECT_EQ(r.server({}).rules.admission, Admission::kRequestFits);
}

}  // namespace
}  // namespace scalecalc
