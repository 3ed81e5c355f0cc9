// Relations inside and between answers to random questions: relations [--questions N] [--seed S]. Says how many of each
// were checked; ends with 1, and the questions to repeat, if one does not hold. relations --catalog asks all chips and
// models of the catalog of every command, with --questions N so many of these questions, by the seed, which is the
// commit's unless --seed is given. docs/reliability.md.
#include <fmt/format.h>

#include <cstdint>
#include <cstdlib>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "relations/catalog.h"
#include "relations/truth.h"

namespace scalecalc::relations {
namespace {

constexpr int kMostUntrue = 50;
constexpr std::uint64_t kMany = 60;

struct Run {
  std::uint64_t questions = 20'000;
  std::uint64_t seed = 1;
};

/// What was typed behind the program's name; nothing if it is not understood.
struct Typed {
  bool catalog = false;
  std::optional<std::uint64_t> questions;
  std::optional<std::uint64_t> seed;
};
std::optional<Typed> read_words(const std::vector<std::string_view>& words) {
  Typed out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--catalog") {
      out.catalog = true;
    } else if ((words[i] == "--seed" || words[i] == "--questions") && i + 1 < words.size()) {
      (words[i] == "--seed" ? out.seed : out.questions) = std::strtoull(words[i + 1].data(), nullptr, 10);
      ++i;
    } else {
      return std::nullopt;
    }
  }
  return out;
}

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
  using namespace scalecalc::relations;
  const auto typed = read_words({argv + 1, argv + argc});
  if (!typed) {
    fmt::print(stderr, "usage: relations [--catalog] [--questions N] [--seed S]\n");
    return 2;
  }
  if (typed->catalog) {
    return walk_catalog({.sample = typed->questions.value_or(0), .seed = typed->seed.value_or(seed_of_commit())});
  }
  const Run usual;
  return check({typed->questions.value_or(usual.questions), typed->seed.value_or(usual.seed)});
}
