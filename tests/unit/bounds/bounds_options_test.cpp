#include "bounds/bounds_options.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"

namespace scalecalc::cli {
namespace {

BoundsQuestion read_bounds(std::vector<std::string> words) {
  return bounds_question(parse_arguments(words, bounds_command()), Catalog());
}

std::string bounds_problems(const std::vector<std::string>& words) {
  try {
    read_bounds(words);
  } catch (const UserError& error) {
    std::string out;
    for (const Diagnostic& d : error.diagnostics()) out += d.message + "\n";
    return out;
  }
  return "";
}

TEST(BoundsOptions, AModelIsANameOrASize) {
  const BoundsQuestion size = read_bounds({"70B", "--hw", "book/tpu-v5p"});
  EXPECT_FALSE(size.model);
  EXPECT_EQ(size.parameters, 70e9);
  EXPECT_EQ(size.hw.name, "book/tpu-v5p");
  const BoundsQuestion name = read_bounds({"llama3-70b", "--hw", "book/tpu-v5p", "--params", "stated"});
  EXPECT_EQ(name.model->name, "llama3-70b");
  EXPECT_TRUE(name.stated_parameters);
  EXPECT_FALSE(name.parameters);
  EXPECT_EQ(read_bounds({"llama3-70b", "--hw", "book/tpu-v5p", "--params", "69B"}).parameters, 69e9);
  EXPECT_EQ(bounds_problems({"70B", "--hw", "book/tpu-v5p", "--params", "stated"}),
            "--params and MODEL both give the parameters\n");
  EXPECT_EQ(bounds_problems({"0", "--hw", "book/tpu-v5p"}), "a model of no parameters\n");
}

TEST(BoundsOptions, TheJob) {
  const BoundsQuestion q = read_bounds({"70B",  "--hw",    "book/h100", "--chips",      "4096",      "--batch-seqs",
                                        "1Ki",  "--seq",   "8192",      "--tokens",     "15T",       "--mfu",
                                        "45%",  "--price", "2.5",       "--gpu-hours",  "2.79M",     "--optimizer",
                                        "muon", "--fix",   "tp=8,pp=4", "--fix",        "ga=16",     "--nodes-spanned",
                                        "4",    "--for",   "training",  "--efficiency", "calibrated"});
  EXPECT_EQ(q.chips, 4096);
  EXPECT_EQ(q.training.batch_seqs, 1024);
  EXPECT_EQ(q.training.seq, 8192);
  EXPECT_EQ(q.training.tokens, 15e12);
  EXPECT_EQ(q.training.mfu, 0.45);
  EXPECT_EQ(q.training.price, 2.5);
  EXPECT_EQ(q.training.gpu_hours, 2.79e6);
  EXPECT_EQ(q.training.optimizer, "muon");
  EXPECT_EQ(q.fix.tp, 8);
  EXPECT_EQ(q.fix.pp, 4);
  EXPECT_EQ(q.fix.microbatches, 16);
  EXPECT_EQ(q.nodes_spanned, 4);
  EXPECT_EQ(q.scope, BoundScope::kTraining);
  EXPECT_FALSE(q.ideal);
}

TEST(BoundsOptions, Formats) {
  const BoundsQuestion q = read_bounds({"70B", "--hw", "book/h100", "--precision", "fp8", "--gradients", "fp32"});
  EXPECT_EQ(q.compute, DType::kFp8);
  EXPECT_EQ(q.gradients, DType::kFp32);
  EXPECT_FALSE(q.weights);
}

TEST(BoundsOptions, Checkpoints) {
  using Kind = CheckpointPolicy::Kind;
  const auto policy = [](const char* text) {
    return *read_bounds({"llama3-8b", "--hw", "book/h100", "--checkpoints", text}).training.checkpoints;
  };
  EXPECT_EQ(policy("all").kind, Kind::kAll);
  EXPECT_EQ(policy("block").kind, Kind::kBlock);
  EXPECT_EQ(policy("12").kind, Kind::kCount);
  EXPECT_EQ(policy("12").count, 12);
  EXPECT_EQ(bounds_problems({"70B", "--hw", "book/h100", "--checkpoints", "0"}), "--checkpoints '0' is out of range\n");
}

TEST(BoundsOptions, SetReachesHardwareAndModel) {
  const BoundsQuestion q = read_bounds({"llama3-70b", "--hw", "book/tpu-v5p", "--set", "model.mlp.d_ff=32768", "--set",
                                        "hw.hbm.capacity=100GB", "--versus", "book/h100"});
  EXPECT_EQ(q.model->mlp.d_ff, 32768);
  EXPECT_EQ(q.hw.hbm_capacity.value(), 100e9);
  EXPECT_EQ(q.versus->name, "book/h100");
}

TEST(BoundsOptions, DegreesThatNoMachineHas) {
  EXPECT_EQ(bounds_problems({"70B", "--hw", "book/h100", "--fix", "tp=16M,pp=16M"}),
            "--fix: the degrees make more than 16,777,216 chips\n");
}

}  // namespace
}  // namespace scalecalc::cli
