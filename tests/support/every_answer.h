// A question of every command and mode that has an answer.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace scalecalc::test {

/// A question and what its answer repeats of it that no flag says.
struct AskedAnswer {
  std::vector<std::string> words;
  std::set<std::string> facts;
};

const std::vector<AskedAnswer>& every_answer();

}  // namespace scalecalc::test
