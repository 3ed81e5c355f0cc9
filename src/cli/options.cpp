// CLI11 collects the values; what a user reads is ours. CLI11 2.1.2 takes a following flag for a missing value, loses
// unknown flags behind other errors and reads 010 as 8, so the words are sorted here first and every value stays a
// text.
#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/text.h"

namespace scalecalc::cli {
namespace {

constexpr std::array kCommon{
    Flag{"--output", 'o', FlagKind::kRepeatable, "FORMAT[=FILE]",
         "table (default), json, jsonl, csv, markdown or html; to a file if one is named; repeatable", "json"},
    Flag{"--json", 0, FlagKind::kSwitch, "", "same as -o json", ""},
    Flag{"--config-dir", 0, FlagKind::kRepeatable, "DIR",
         "look for models and hardware here first, before SCALECALC_CONFIG_PATH and the built-in catalog", "./configs"},
    Flag{"--color", 0, FlagKind::kValue, "auto|always|never", "colour; NO_COLOR is honoured (default auto)", "never"},
    Flag{"--quiet", 'q', FlagKind::kSwitch, "", "errors only on standard error", ""},
    Flag{"--verbose", 'v', FlagKind::kSwitch, "", "say what was read and searched, on standard error", ""},
    Flag{"--version", 'V', FlagKind::kSwitch, "", "print the version", ""},
    Flag{"--help", 'h', FlagKind::kSwitch, "", "print this", ""},
};

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool all_digits(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_digit); }

[[noreturn]] void unknown_flag(std::string_view word, std::span<const Flag> flags, std::string_view command) {
  const std::string_view name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const Flag& flag : flags) known.emplace_back(flag.name);
  // "-chips" is meant as "--chips", but a short word behind one dash is a cluster of letters.
  constexpr std::size_t kCluster = 4;
  const bool letters = !name.starts_with("--") && name.size() <= kCluster;
  const std::string spelled = name.starts_with("--") ? std::string(name) : "-" + std::string(name);
  std::string hint = letters ? "" : did_you_mean(nearest(spelled, known));
  if (!hint.empty()) hint += ' ';
  throw UserError(fmt::format("unknown flag {}", in_quotes(name)),
                  fmt::format("{}scalecalc {} --help lists the flags", hint, command));
}

[[noreturn]] void missing_value(const Flag& flag) {
  throw UserError(fmt::format("{} needs a value", flag.name),
                  fmt::format("for example {} {}", flag.name, flag.example));
}

/// A cluster such as -qv: every letter must be a flag. Returns the first that takes a value, else the last.
const Flag* last_of_cluster(std::string_view word, std::span<const Flag> flags) {
  const Flag* found = nullptr;
  for (std::size_t i = 1; i < word.size(); ++i) {
    const auto it = std::find_if(flags.begin(), flags.end(), [&](const Flag& f) { return f.letter == word[i]; });
    if (it == flags.end()) return nullptr;
    found = &*it;
    if (found->kind != FlagKind::kSwitch) return found;
  }
  return found;
}

/// The command line sorted: flags as "--name" or "--name=value", and everything else.
struct Words {
  std::vector<std::string> flags;
  std::vector<std::string> positionals;
};

class Sorter {
 public:
  Sorter(const std::vector<std::string>& args, std::span<const Flag> flags, std::string_view command)
      : args_(args), flags_(flags), command_(command) {}

  Words sort() {
    while (at_ < args_.size()) {
      const std::string& word = args_[at_++];
      if (word == "--") {
        out_.positionals.insert(out_.positionals.end(), args_.begin() + static_cast<std::ptrdiff_t>(at_), args_.end());
        break;
      }
      if (!looks_like_flag(word)) {
        out_.positionals.push_back(word);
      } else if (word.starts_with("--")) {
        long_flag(word);
      } else {
        cluster(word);
      }
    }
    return std::move(out_);
  }

 private:
  void long_flag(const std::string& word) {
    const Flag* flag = find_flag(word, flags_);
    if (flag == nullptr) unknown_flag(word, flags_, command_);
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) return take(*flag, std::nullopt);
    if (flag->kind == FlagKind::kSwitch) throw UserError(fmt::format("{} takes no value", flag->name), "");
    if (equals + 1 == word.size()) missing_value(*flag);
    take(*flag, word.substr(equals + 1));
  }

  /// -q, -qv, -ojson, -vo json.
  void cluster(const std::string& word) {
    if (find_flag(word, flags_) == nullptr) unknown_flag(word, flags_, command_);
    for (std::size_t i = 1; i < word.size(); ++i) {
      const Flag& flag = *find_flag(fmt::format("-{}", word[i]), flags_);
      if (flag.kind == FlagKind::kSwitch) {
        take(flag, std::nullopt);
        continue;
      }
      return take(flag, i + 1 < word.size() ? std::optional(word.substr(i + 1)) : std::nullopt);
    }
  }

  void take(const Flag& flag, std::optional<std::string> value) {
    if (flag.kind == FlagKind::kSwitch) {
      out_.flags.emplace_back(flag.name);
      return;
    }
    const bool another = at_ < args_.size();
    if (flag.kind == FlagKind::kOptionalCount && !value) value = another && all_digits(args_[at_]) ? args_[at_++] : "1";
    if (!value) {
      if (!another || (looks_like_flag(args_[at_]) && find_flag(args_[at_], flags_) != nullptr)) missing_value(flag);
      value = args_[at_++];
    }
    if (value->empty()) missing_value(flag);
    out_.flags.push_back(fmt::format("{}={}", flag.name, *value));
  }

  const std::vector<std::string>& args_;
  std::span<const Flag> flags_;
  std::string_view command_;
  std::size_t at_ = 0;
  Words out_;
};

}  // namespace

std::span<const Flag> common_flags() { return kCommon; }

bool looks_like_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !is_digit(word[1]) && word[1] != '.';
}

const Flag* find_flag(std::string_view word, std::span<const Flag> flags) {
  if (!word.starts_with("--")) return looks_like_flag(word) ? last_of_cluster(word, flags) : nullptr;
  const std::string_view name = word.substr(0, word.find('='));
  const auto it = std::find_if(flags.begin(), flags.end(), [&](const Flag& f) { return f.name == name; });
  return it == flags.end() ? nullptr : &*it;
}

bool takes_next(std::string_view word, const Flag& flag) {
  if (flag.kind != FlagKind::kValue && flag.kind != FlagKind::kRepeatable) return false;
  return word.starts_with("--") ? word.find('=') == std::string_view::npos : word.back() == flag.letter;
}

std::optional<std::string> Arguments::value(std::string_view flag) const {
  const auto found = values_.find(flag);
  if (found == values_.end() || found->second.empty()) return std::nullopt;
  return found->second.front();
}

std::vector<std::string> Arguments::values(std::string_view flag) const {
  const auto found = values_.find(flag);
  return found == values_.end() ? std::vector<std::string>{} : found->second;
}

Arguments Arguments::of(std::vector<std::string> positionals, Values values) {
  Arguments out;
  out.positionals_ = std::move(positionals);
  out.values_ = std::move(values);
  return out;
}

Arguments parse_arguments(const std::vector<std::string>& args, std::span<const Flag> flags, std::string_view command) {
  CLI::App app;
  app.set_help_flag();
  Arguments out;
  std::map<const Flag*, std::vector<std::string>> values;
  for (const Flag& flag : flags) {
    const std::string names(flag.name);
    if (flag.kind == FlagKind::kSwitch) {
      app.add_flag_callback(names, [&out, &flag] { out.values_[std::string(flag.name)]; });
    } else {
      app.add_option(names, values[&flag])->allow_extra_args(false);
    }
  }
  Words words = Sorter(args, flags, command).sort();
  out.positionals_ = std::move(words.positionals);
  std::reverse(words.flags.begin(), words.flags.end());  // CLI11 takes them from the back
  try {
    app.parse(words.flags);
  } catch (const CLI::ParseError& error) {
    internal_error(fmt::format("the command line was checked and still refused: {}", error.what()));
  }
  for (const auto& [flag, given] : values) {
    if (given.empty()) continue;
    if (given.size() > 1 && flag->kind != FlagKind::kRepeatable) {
      throw UserError(fmt::format("{} is given twice: {} and {}", flag->name, in_quotes(given[0]), in_quotes(given[1])),
                      "");
    }
    out.values_[std::string(flag->name)] = given;
  }
  return out;
}

std::string flag_help(std::span<const Flag> flags) {
  constexpr std::size_t kWidth = 96;
  constexpr std::size_t kColumn = 26;
  std::string out;
  for (const Flag& flag : flags) {
    std::string left =
        flag.letter != 0 ? fmt::format("  -{}, {}", flag.letter, flag.name) : fmt::format("      {}", flag.name);
    if (!flag.value.empty()) left += fmt::format(" {}", flag.value);
    const std::string text = wrap(flag.help, kWidth - kColumn, 0);
    std::string right;
    for (const char c : text) {
      right += c;
      if (c == '\n') right.append(kColumn, ' ');
    }
    const bool fits = left.size() + 2 <= kColumn;
    out += fits ? fmt::format("{:<{}}{}\n", left, kColumn, right)
                : fmt::format("{}\n{:<{}}{}\n", left, "", kColumn, right);
  }
  return out;
}

}  // namespace scalecalc::cli
