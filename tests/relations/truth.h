// What has to be true of answers, whatever was asked: inside one, and between several.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

#include "relations/question.h"

namespace scalecalc::relations {

/// An answer that says what is not so: which, and the questions that show it.
class Untrue : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Reply {
  int status = 0;
  std::string out;
  std::string err;
};

/// Of the whole program in this process.
Reply ask(const Words& words);
std::string as_typed(const Words& words);

/// Checks and counts what it has checked, by name.
class Truths {
 public:
  /// Any question: ends as documented, in words; JSON of its schema, no table with what is no number; the same twice;
  /// CSV says what JSON says; plans and points are sound.
  void of_one(const Words& words);
  /// A question with an answer: a machine with one rate doubled is not slower; more work is not faster; a pinned plan
  /// comes back, and is not better than the free one.
  void of_several(const Words& words, fuzz::Choices& choose);

  const std::map<std::string, std::uint64_t>& counts() const { return counts_; }

 private:
  void holds(bool right, const char* name, const std::string& what, const Words& words);
  void document(const nlohmann::json& answer, const Words& words);
  void parts(const nlohmann::json& times, double total, const char* sum, const Words& words);
  void memory(const nlohmann::json& memory, const char* sum, const char* fits, const Words& words);
  void plan(const nlohmann::json& plan, const Words& words);
  void point(const nlohmann::json& point, const Words& words);
  void roof(const nlohmann::json& point, const Words& words);
  void rising(const nlohmann::json& points, const char* what, const Words& words);
  void table(const nlohmann::json& rows, const Words& words);
  void faster_machine(const Words& words, double before, fuzz::Choices& choose);
  void more_work(const Words& words, double before);
  void pinned(const nlohmann::json& answer, const Words& words, fuzz::Choices& choose);

  std::map<std::string, std::uint64_t> counts_;
};

}  // namespace scalecalc::relations
