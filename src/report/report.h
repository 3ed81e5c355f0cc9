// What an answer looks like before anyone decides on a terminal, a web page or a spreadsheet: titles, typed tables and
// lines. Whoever fills a Report has done all the arithmetic; renderers only format.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/explained.h"

namespace scalecalc {

/// How a number is shown to people. Machines get it in the SI base unit.
enum class Format {
  kText,
  kInteger,
  kCount,
  kBytes,
  kSeconds,
  kFraction,
  kUsd,
  kNumber,
  kFlops,
  kFlopsPerSecond,
  kBytesPerSecond,
  kWatts,
  kHertz,
  kFlag,  ///< 0 and 1: no and yes
};

/// Nothing, a text, or a number in base units (a fraction as 0..1).
using Cell = std::variant<std::monostate, std::string, double>;

/// A number, or nothing.
inline Cell cell_of(double value) { return value; }
inline Cell cell_of(std::integral auto value) { return static_cast<double>(value); }
inline Cell cell_of(const std::optional<double>& value) { return value ? Cell(*value) : Cell{}; }

/// What a colour may say; a renderer without colour drops it. A command is to be copied: no renderer breaks its line.
enum class Role { kPlain, kHeading, kGood, kWarning, kBad, kDim, kCommand };

struct Column {
  std::string title;
  std::string key;  ///< for machines, with the base unit: step_time_s
  Format format = Format::kText;
  int importance = 0;     ///< on a narrow terminal the highest is left out first; 0 always stays
  bool flexible = false;  ///< its text may be broken over several lines
};

struct Row {
  std::vector<Cell> cells;
  Role role = Role::kPlain;
};

struct Table {
  std::vector<Column> columns;
  std::vector<Row> rows;
};

/// The question that was answered asked again, by another command or with other flags.
struct NextQuestion {
  std::string command;               ///< empty: the same
  std::vector<std::string> words{};  ///< empty: the same
  /// Each in the place of what was typed, or without a value to leave it out; pins replace all that chose a layout.
  std::vector<FlagChange> flags{};
};

struct Line {
  std::string text;  ///< a newline inside asks for a continuation line
  Role role = Role::kPlain;
  std::optional<NextQuestion> next{};  ///< of a command: the text becomes its command line (with_query)
};

/// Until the question is known its text is the flags.
Line next_line(NextQuestion next);

/// One line more, as fmt::format writes it.
template <class... Args>
void say(std::vector<Line>& out, Role role, fmt::format_string<Args...> text, Args&&... args) {
  out.push_back({fmt::format(text, std::forward<Args>(args)...), role});
}
template <class... Args>
void say(std::vector<Line>& out, fmt::format_string<Args...> text, Args&&... args) {
  say(out, Role::kPlain, text, std::forward<Args>(args)...);
}

struct Section {
  std::string name;  ///< for --only
  std::string title;
  Table table;
  std::vector<Line> lines;
};

struct Report {
  std::string title;
  std::vector<Line> summary;  ///< what must be read before the table
  std::string plans_name;     ///< as Section::name
  std::string plans_heading;  ///< above the plans
  Table plans;                ///< for people
  std::vector<Section> sections;
  std::vector<std::string> warnings;
  std::vector<std::string> notes;
};

/// A cell as people read it: three significant digits, natural prefix. Empty for nothing.
std::string text_of(const Cell& cell, Format format);
/// A cell as machines read it: base unit, shortest digits that give the number back. InternalError if not finite.
std::string raw_text_of(const Cell& cell);
/// Numbers stand right.
bool is_number(Format format);

/// "4.2 %" of 0.042; the second with its sign.
std::string percent_text(double share);
std::string signed_percent_text(double share);
/// "$34.7M".
std::string compact_usd(double value);
/// "12.3 GWh".
std::string energy_text(double joules);

}  // namespace scalecalc
