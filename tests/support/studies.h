// Studies of a command that needs no machine: its answers are made up from the question.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "batch/run_shard.h"

namespace scalecalc::test {

/// An axis whose flag is its name.
StudyAxis axis(const std::string& name, std::vector<std::string> values);
/// `ask WORD --a A --b B` over two axes.
Study small_study(std::size_t a = 3, std::size_t b = 4);
std::vector<CommandForm> forms();

/// Answers of `ask`: `records` of them, with the value of --a and nested figures; --a 1 does not fit, --b wrong is a
/// wrong question. Counts what it was asked.
struct FakeCommand {
  std::size_t records = 1;
  std::atomic<std::uint64_t> asked = 0;
  std::uint64_t stop_after = ~std::uint64_t{0};  ///< then every question is interrupted

  Ask ask();
};

/// Plans in the directory, runs all shards and merges; the rows.
std::string rows_by(const Study& study, const std::string& directory, std::uint64_t shards, unsigned jobs,
                    FakeCommand& command);

}  // namespace scalecalc::test
