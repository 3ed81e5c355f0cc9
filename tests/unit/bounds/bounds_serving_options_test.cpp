#include <gtest/gtest.h>

#include "base/diagnostic.h"
#include "bounds/bounds_options.h"

namespace scalecalc::cli {
namespace {

using Words = std::vector<std::string>;

BoundServing read_serving(const Words& words) {
  const Arguments arguments = parse_arguments(words, bounds_command());
  FlagReader reader(arguments);
  BoundServing out = read_bounds_serving(reader, Catalog{});
  reader.finish();
  return out;
}

std::string serving_complaint(const Words& words) {
  try {
    read_serving(words);
  } catch (const UserError& error) {
    std::string out;
    for (const Diagnostic& d : error.diagnostics()) out += render(d);
    return out;
  }
  return "";
}

TEST(BoundsServingOptions, ReadsSizesAndFormats) {
  const BoundServing s = read_serving({"--batch", "1..8", "--context", "128k", "--kv", "int8", "--flops", "fp8",
                                       "--kv-bytes-per-token", "100kB", "--step-time", "19ms", "--slo-tpot", "15ms"});
  EXPECT_EQ(s.batches, (std::vector<double>{1, 2, 4, 8}));
  EXPECT_EQ(s.context, 128000);
  EXPECT_EQ(s.kv, DType::kInt8);
  EXPECT_EQ(s.compute, DType::kFp8);
  EXPECT_EQ(s.kv_bytes_per_token, 1e5);
  EXPECT_EQ(s.step_time, 0.019);
  EXPECT_EQ(s.latency, 0.015);
  EXPECT_FALSE(s.prompt);
}

TEST(BoundsServingOptions, TheDraftIsAModelASizeOrACost) {
  BoundSpeculation s = *read_serving({"--speculative", "draft=llama3-8b,k=4,accept=0.7"}).speculation;
  EXPECT_EQ(s.drafted, 4);
  EXPECT_EQ(s.accept, 0.7);
  EXPECT_EQ(s.draft_parameters, 8030261248);
  EXPECT_FALSE(s.cost);
  s = *read_serving({"--speculative", "k=3,accept=80%,cost=5%"}).speculation;
  EXPECT_EQ(s.cost, 0.05);
  EXPECT_EQ(read_serving({"--speculative", "k=3,accept=0.8,draft=1B"}).speculation->draft_parameters, 1e9);
}

TEST(BoundsServingOptions, SpeculationIsCheckedWhole) {
  EXPECT_NE(serving_complaint({"--speculative", "k=4"}).find("needs k= and accept="), std::string::npos);
  EXPECT_NE(serving_complaint({"--speculative", "k=4,acept=0.7"}).find("did you mean 'accept'?"), std::string::npos);
  EXPECT_NE(serving_complaint({"--speculative", "k=4,k=5,accept=0.7"}).find("'k' twice"), std::string::npos);
  EXPECT_NE(serving_complaint({"--speculative", "k,accept=0.7"}).find("'k' is not KEY=VALUE"), std::string::npos);
  EXPECT_NE(serving_complaint({"--speculative", "k=4,accept=70"}).find("--speculative accept"), std::string::npos);
  EXPECT_NE(serving_complaint({"--speculative", "k=0,accept=0.7"}).find("from 1 to 1,000"), std::string::npos);
  EXPECT_NE(serving_complaint({"--speculative", "k=4,accept=0.7,draft=llama3-8b,cost=0.1"}).find("give one of them"),
            std::string::npos);
  EXPECT_NE(serving_complaint({"--speculative", "k=4,accept=0.7,draft=llama3-80b"}).find("llama3-8b"),
            std::string::npos);
}

TEST(BoundsServingOptions, FiguresThatContradictEachOtherAreErrors) {
  EXPECT_NE(serving_complaint({"--total-bytes", "112GB", "--batch", "8,16"}).find("one batch"), std::string::npos);
  EXPECT_NE(serving_complaint({"--cached", "2", "--prefix-hit", "60%", "--prompt", "3"}).find("give one of them"),
            std::string::npos);
  EXPECT_NE(serving_complaint({"--cached", "2"}).find("--cached needs --prompt"), std::string::npos);
  EXPECT_NE(serving_complaint({"--kv", "bf8"}).find("did you mean"), std::string::npos);
  EXPECT_NE(serving_complaint({"--step-time", "19"}).find("17ms"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc::cli
