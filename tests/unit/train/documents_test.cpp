// Sequences packed with documents: what a step has, what it takes, what is refused.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "train/resolve.h"

namespace scalecalc {
namespace {

TrainQuestion packed_question() {
  TrainQuestion q{.model = "llama3.1-8b", .hardware = "h100-sxm", .chips = 64};
  q.batch_tokens = 1 << 22;
  q.fix = {.fsdp = 64};
  q.top = 1;
  return q;
}

Lengths some_lengths() { return std::get<Lengths>(parse_lengths("512:0.5,1024..8192:0.5")); }

TEST(PackedDocuments, FillSequencesOfTheLongestUnlessTheirLengthIsGiven) {
  TrainQuestion q = packed_question();
  q.documents = some_lengths();
  EXPECT_EQ(resolve(q, Catalog()).workload.seq, 8192);
  q.pack = 32768;
  const ResolvedQuestion job = resolve(q, Catalog());
  EXPECT_EQ(job.workload.seq, 32768);
  EXPECT_EQ(job.workload.batch_seqs, 128) << "4Mi tokens";
  EXPECT_TRUE(std::any_of(job.assumptions.begin(), job.assumptions.end(), [](const Assumption& a) {
    return a.flag == "--seq, --pack" && a.text.starts_with("sequences of 32,768 tokens are packed full");
  }));
  q.pack = 4096;
  EXPECT_THROW(resolve(q, Catalog()), UserError) << "documents of 8,192 do not fit";
}

TEST(PackedDocuments, OfTheSequencesLengthAreTheSequences) {
  TrainQuestion q = packed_question();
  q.seq = 8192;
  const double plain = answer(q, Catalog()).plans.front().plan.step_s;
  q.pack = 8192;
  EXPECT_FALSE(resolve(q, Catalog()).workload.documents);
  q.documents = Lengths::fixed(8192);
  EXPECT_EQ(answer(q, Catalog()).plans.front().plan.step_s, plain);
}

// 131,072 tokens packed with documents of 8,192 attend as sequences of 8,192 do; alone they would attend 16 times as
// far.
TEST(PackedDocuments, TakeTheTimeOfTheirOwnAttention) {
  TrainQuestion q = packed_question();
  q.seq = 131072;
  q.fix.cp = 8;
  q.fix.fsdp = 8;
  const TrainAnswer whole = answer(q, Catalog());
  q.documents = Lengths::fixed(8192);
  q.pack = 131072;
  const TrainAnswer packed = answer(q, Catalog());
  ASSERT_FALSE(whole.plans.empty() || packed.plans.empty());
  EXPECT_LT(packed.plans.front().plan.step_s, 0.6 * whole.plans.front().plan.step_s);
  // Per token 6 x 7.5B without the input embedding, and 3 x 2 x 4096 x 2 x 4096 x 32 layers: 1.14 of it.
  const PlanFigures& f = packed.plans.front().figures;
  EXPECT_NEAR(f.tflops_per_chip * 1e12 / f.tokens_per_s_per_chip, 6 * 7.505e9 + 6.0 * 4096 * 8192 * 32, 1e8);
}

}  // namespace
}  // namespace scalecalc
