// Texts of flags to values. Problems are collected, so that one run shows all of them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"
#include "cli/options.h"

namespace scalecalc::cli {

struct CountRange {
  std::int64_t least = 1;
  std::int64_t most = 0;
};

class FlagReader {
 public:
  explicit FlagReader(const Arguments& arguments) : arguments_(arguments) {}

  void problem(std::string message, std::string hint = "");
  /// Problems found elsewhere, with their places.
  void problems(std::vector<Diagnostic> found);
  /// Throws what was found.
  void finish();

  std::optional<std::int64_t> count(std::string_view flag, CountRange range);
  /// A quantity above zero.
  std::optional<double> positive(std::string_view flag, UnitKind kind);
  /// A share from 0 to 1.
  std::optional<double> fraction(std::string_view flag);
  /// Position of the word in `words`; unknown words are a problem with the nearest ones.
  std::optional<std::size_t> word(std::string_view flag, std::span<const std::string_view> words);

  // The same for a text from elsewhere; `name` says in messages where it stands.
  std::optional<std::int64_t> count_of(std::string_view name, std::string_view text, CountRange range);
  std::optional<std::size_t> word_of(std::string_view name, std::string_view text,
                                     std::span<const std::string_view> words);

 private:
  const Arguments& arguments_;
  std::vector<Diagnostic> problems_;
};

}  // namespace scalecalc::cli
