// Python as lines and functions, as far as it goes without running any: where a statement ends, what it sets.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace scalecalc {

bool is_python_name(char c);
/// The name that begins there; empty if none does.
std::string_view python_name(std::string_view code, std::size_t at);
/// The next place of a name that stands by itself, no member of another and no part of a word.
std::size_t python_word(std::string_view code, std::string_view name, std::size_t from);

/// The text, each character in its place, with blanks for comments, joined line ends and all inside quotes.
std::string python_code(std::string_view text);

/// A statement without blanks around it. Statements of a block stand further in than what opens it.
struct PythonLine {
  std::size_t begin = 0, end = 0, indent = 0;
};
/// A function, or, without a name, what stands outside of all.
struct PythonFunction {
  std::string_view name{}, header{};
  std::size_t name_at = 0;
  std::vector<PythonLine> lines{};
};
/// In their order, and what stands outside last; views are of `code`.
std::vector<PythonFunction> python_functions(const std::string& code);

struct PythonAssignment {
  std::string_view target;
  std::size_t value = 0;  ///< where it begins
  bool plain = true;      ///< "=", not "+="
};
std::optional<PythonAssignment> python_assignment(std::string_view code, const PythonLine& line);

/// The bracket that closes the one at `opens`, or npos.
std::size_t python_closing(std::string_view code, std::size_t opens);
/// The next comma outside of brackets, or `end`.
std::size_t python_comma(std::string_view code, std::size_t at, std::size_t end);

}  // namespace scalecalc
