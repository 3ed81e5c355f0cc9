// Relations inside and between answers to random questions: relations [--questions N] [--seed S]. Says how many of each
// were checked; ends with 1, and the questions to repeat, if one does not hold. docs/reliability.md.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

#include "relations/truth.h"

namespace scalecalc::relations {
namespace {

constexpr int kMostUntrue = 50;
constexpr std::uint64_t kMany = 60;

struct Run {
  std::uint64_t questions = 20'000;
  std::uint64_t seed = 1;
};

int check(const Run& run) {
  Truths truths;
  int untrue = 0;
  std::mt19937_64 random(run.seed);
  std::vector<std::uint8_t> bytes(64);
  for (std::uint64_t i = 0; i < run.questions && untrue < kMostUntrue; ++i) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    fuzz::Choices choose(bytes.data(), bytes.size());
    try {
      if (i % 2 == 0) {
        truths.of_one(random_question(choose));
      } else {
        truths.of_several(random_timing(choose), choose);
      }
    } catch (const std::exception& error) {
      ++untrue;
      fmt::print("{}\n", error.what());
      std::fflush(stdout);
    }
  }
  // What was never met proves nothing.
  for (const char* rare : {"a faster machine is not slower", "a pinned plan is not better than the free one",
                           "a sweep of more work takes no less time", "CSV says what JSON says"}) {
    if (run.questions >= kMany && !truths.counts().contains(rare)) {
      fmt::print("never asked: {}\n", rare);
      ++untrue;
    }
  }
  std::uint64_t all = 0;
  for (const auto& [name, count] : truths.counts()) {
    all += count;
    fmt::print("{:>10}  {}\n", count, name);
  }
  fmt::print("{:>10}  relations between answers to {} questions; {} do not hold\n", all, run.questions, untrue);
  return untrue == 0 ? 0 : 1;
}

}  // namespace
}  // namespace scalecalc::relations

int main(int argc, char** argv) {
  scalecalc::relations::Run run;
  for (int i = 1; i < argc; i += 2) {
    const std::string_view flag = argv[i];
    if ((flag != "--seed" && flag != "--questions") || i + 1 == argc) {
      fmt::print(stderr, "usage: relations [--questions N] [--seed S]\n");
      return 2;
    }
    (flag == "--seed" ? run.seed : run.questions) = std::strtoull(argv[i + 1], nullptr, 10);
  }
  return scalecalc::relations::check(run);
}
