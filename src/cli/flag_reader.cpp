// Reads the values of flags by the rows of a command's table and collects every problem it finds.
#include "cli/flag_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/check.h"
#include "base/sweep.h"
#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/foreign_words.h"
#include "cli/help.h"
#include "cli/outputs.h"

namespace scalecalc::cli {

namespace {

/// "--weight-bytes 2.6e10" needs no unit behind the number.
bool names_its_unit(std::string_view name, UnitKind kind) {
  return kind == UnitKind::kBytes && name.find("bytes") != std::string_view::npos;
}

}  // namespace

FlagReader::FlagReader(const Arguments& arguments)
    : arguments_(arguments), flags_(arguments.command().flags), mode_(mode_of(arguments)) {
  refuse_other_modes();
  refuse_lonely();
  refuse_both();
  refuse_picture();
}

/// A command without a picture, or a question without one.
void FlagReader::refuse_picture() {
  const Command& command = arguments_.command();
  if (mode_ && !command.modes[*mode_].has_outputs) return;  // which was said
  const std::vector<std::string> outputs = arguments_.values("--output");
  const auto asked = std::find_if(outputs.begin(), outputs.end(), asks_for_picture);
  // The directory that batch writes to may be named so.
  const bool named = asked != outputs.end() && (!command.own_exits || asked->find('=') != std::string::npos);
  if (!arguments_.has("--plot") && !named) return;
  if (!drawn(arguments_).empty()) {
    const bool alone = !arguments_.has("--json") && std::all_of(outputs.begin(), outputs.end(), asks_for_picture);
    if (alone && arguments_.has("--explain"))
      problem("--explain has no meaning for a picture", "add -o table=FILE, or leave it out");
    return;
  }
  const std::string flag = arguments_.has("--plot") ? "--plot" : "-o " + *asked;
  const std::vector<std::string> pictures = drawings(command);
  if (!pictures.empty()) {
    problem(fmt::format("{} has no meaning for {}: it has no picture", flag,
                        mode_ ? command.modes[*mode_].name : command.name),
            "drawn are " + join(pictures, "; "));
    return;
  }
  std::vector<std::string> others;
  for (const Command& other : commands()) {
    if (!drawings(other).empty()) others.emplace_back(other.name);
  }
  problem(fmt::format("{} has no meaning for {}: its answer has no picture", flag, command.name),
          join_and(others) + " draw theirs; --help lists the formats of this one");
}

const Flag& FlagReader::of(std::string_view name) const {
  const Flag* found = nullptr;
  for (const Flag& flag : flags_) {
    if (flag.name == name && (found == nullptr || is_ours(flag))) found = &flag;
  }
  check(found != nullptr, "a flag that is read stands in its command's table");
  return *found;
}

void FlagReader::refuse_other_modes() {
  if (!mode_) return;
  const std::span<const Mode> modes = arguments_.command().modes;
  const auto refuse = [&](std::string_view name, Modes those) {
    if (!arguments_.has(name) || (those & (1U << *mode_)) != 0) return;
    std::vector<std::string> owners;
    for (std::size_t m = 0; m < modes.size(); ++m) {
      if ((those & (1U << m)) != 0) owners.emplace_back(modes[m].name);
    }
    const Mode& asked = modes[*mode_];
    problem(fmt::format("{} has no meaning for {}{}{}", name, asked.name, asked.why.empty() ? "" : ": ", asked.why),
            fmt::format("it belongs to {}", join_and(owners)));
  };
  for (const Flag& flag : flags_) {
    if (find_flag(flags_, flag.name) == &flag) refuse(flag.name, modes_of(flags_, flag.name));
  }
  Modes with_outputs = 0;
  for (std::size_t m = 0; m < modes.size(); ++m) with_outputs |= modes[m].has_outputs ? 1U << m : 0U;
  for (const std::string_view output :
       {"--output", "--json", "--only", "--columns", "--plot", "--fail-if", "--expect", "--perf"}) {
    if (find_flag(flags_, output) == nullptr) refuse(output, with_outputs);
  }
}

void FlagReader::missing(const Flag& flag) {
  if (flag.ask.empty() || !is_ours(flag)) return;
  problem(fmt::format("{} is missing: {}", flag.name, flag.ask), example());
}

std::string FlagReader::text(std::string_view name) {
  const Flag& flag = of(name);
  const auto given = arguments_.value(name);
  if (!given) missing(flag);
  return given.value_or("");
}

void FlagReader::refuse_lonely() {
  for (const Flag& flag : flags_) {
    if (!arguments_.has(flag.name) || !is_ours(flag)) continue;
    for (const FlagNeed& need : flag.needs) {
      if (need.flags.empty() || arguments_.has_one_of(need.flags)) continue;
      problem(fmt::format(fmt::runtime(need.why), flag.name), std::string(need.hint));
    }
  }
}

void FlagReader::refuse_both() {
  const auto refuse = [&](std::string_view one, std::string_view other, std::string_view what) {
    problem(fmt::format("{} and {} both say {}", one, other, what), "give one of them");
  };
  for (auto one = flags_.begin(); one != flags_.end(); ++one) {
    if (!arguments_.has(one->name) || !is_ours(*one)) continue;
    for (const std::string& other : parts_between(one->excludes, ' ')) {
      if (arguments_.has(other)) refuse(one->name, other, one->excludes_as);
    }
    if (one->says.empty()) continue;
    for (auto other = one + 1; other != flags_.end(); ++other) {
      if (other->says != one->says || !arguments_.has(other->name) || !is_ours(*other)) continue;
      refuse(one->name, other->name, one->says);
    }
  }
}

void FlagReader::problem(std::string message, std::string hint) {
  problems_.push_back({SourceSpan{}, std::move(message), std::move(hint)});
}

void FlagReader::problems(std::vector<Diagnostic> found) {
  std::move(found.begin(), found.end(), std::back_inserter(problems_));
}

void FlagReader::finish() {
  if (!problems_.empty()) throw UserError(std::move(problems_));
}

std::string FlagReader::example() const {
  const Command& command = arguments_.command();
  const std::string_view own = mode_ ? command.modes[*mode_].example : "";
  const std::string_view line = own.empty() ? first_example(command) : own;
  std::string out;  // a long example goes on behind a backslash, indented
  for (const char c : line) {
    const bool blank = c == ' ' || c == '\n' || c == '\\';
    if (!blank) {
      out += c;
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (out.ends_with(' ')) out.pop_back();
  return "for example: " + out;
}

std::string FlagReader::only_word(std::string_view name, std::string_view ask) {
  const std::vector<std::string>& words = arguments_.positionals();
  if (words.empty()) {
    problem(fmt::format("{} is missing: {}", name, ask), example());
    return "";
  }
  if (words.size() > 1) {
    problem(fmt::format("unexpected argument {}: {} takes one {}, and that is {}", in_quotes(words[1]),
                        arguments_.command().name, name, in_quotes(words[0])),
            example());
  }
  return words.front();
}

std::optional<std::int64_t> FlagReader::count_of(std::string_view name, std::string_view text, CountRange range) {
  const std::string limits = fmt::format("from {} to {}", group_thousands(range.least), group_thousands(range.most));
  // Read as a plain number first: 1e18 is a good count, only far too large, and should be told so.
  const auto number = parse_quantity(text, UnitKind::kNumber);
  const double* size = std::get_if<double>(&number);
  if (size != nullptr && (*size < static_cast<double>(range.least) || *size > static_cast<double>(range.most)) &&
      *size == std::floor(*size)) {
    problem(fmt::format("{} {} is out of range", name, in_quotes(text)), fmt::format("a whole number {}", limits));
    return std::nullopt;
  }
  const auto parsed = parse_quantity(text, UnitKind::kCount);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    problem(fmt::format("{}: {}", name, error->message), fmt::format("{}; {}", error->hint, limits));
    return std::nullopt;
  }
  return static_cast<std::int64_t>(std::get<double>(parsed));
}

std::optional<double> FlagReader::quantity_of(std::string_view name, std::string_view text, UnitKind kind) {
  const auto parsed = parse_quantity(text, kind, names_its_unit(name, kind));
  if (const double* value = std::get_if<double>(&parsed)) return *value;
  const UnitError& error = std::get<UnitError>(parsed);
  problem(fmt::format("{}: {}", name, error.message), error.hint);
  return std::nullopt;
}

std::optional<std::size_t> FlagReader::word_of(std::string_view name, std::string_view text, LegalWords words) {
  if (const auto meant = word_meant(text, words)) return meant;
  const std::vector<std::string> known(words.begin(), words.end());
  std::string hint = did_you_mean(nearest(text, known));
  if (!hint.empty()) hint += ' ';
  problem(fmt::format("{} cannot be {}", name, in_quotes(text)),
          fmt::format("{}accepted: {}", hint, join(known, ", ")));
  return std::nullopt;
}

std::optional<std::int64_t> FlagReader::count(const Flag& flag) {
  const auto given = text(flag);
  return given ? count_of(flag.name, *given, flag.range) : std::nullopt;
}

std::optional<double> FlagReader::quantity(const Flag& flag) {
  const auto given = text(flag);
  if (!given) return std::nullopt;
  const bool share = flag.reading == Reading::kShare || flag.reading == Reading::kSomeShare;
  const UnitKind unit = share ? UnitKind::kFraction : flag.unit;
  const auto value = quantity_of(flag.name, *given, unit);
  if (!value || *value > 0 || flag.reading == Reading::kShare) return value;
  problem(fmt::format("{} {} is not above zero", flag.name, in_quotes(*given)), std::string(accepted_forms(unit)));
  return std::nullopt;
}

std::optional<std::size_t> FlagReader::word(const Flag& flag) {
  const auto given = text(flag);
  return given ? word_of(flag.name, *given, flag.words) : std::nullopt;
}

std::optional<std::vector<double>> FlagReader::sweep(const Flag& flag) {
  const auto given = text(flag);
  if (!given) return std::nullopt;
  const auto parsed = parse_sweep(*given, flag.unit, names_its_unit(flag.name, flag.unit));
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    problem(fmt::format("{}: {}", flag.name, error->message), error->hint);
    return std::nullopt;
  }
  const auto& values = std::get<std::vector<double>>(parsed);
  if (std::all_of(values.begin(), values.end(), [](double value) { return value > 0; })) return values;
  problem(fmt::format("{} {} is out of range", flag.name, in_quotes(*given)), "values above 0");
  return std::nullopt;
}

}  // namespace scalecalc::cli
