// Parses a command line into the texts of its flags, and reports unknown or incomplete ones. CLI11 parses; what a user
// reads is ours. Every value stays a text, since CLI11 reads 010 as 8. Its version 2.1.2 needs three things to be said
// differently beforehand, see spelled_out(), and takes the word after a flag for its value whatever it is, see
// checked().
#include "cli/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/io.h"
#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/foreign_words.h"

namespace scalecalc::cli {
namespace {

constexpr std::array<std::string_view, 3> kColorNames{"auto", "always", "never"};

constexpr std::array kCommonFlags{
    text("--output", "FORMAT[=FILE]",
         "table (default), json, jsonl, csv, markdown, html, row (the answer as one flat JSON line), rows (each "
         "record so), plot or svg; to a file if one is named; repeatable",
         "json")
        .repeatable()
        .lettered('o')
        .of_output(),
    toggle("--json", "same as -o json").of_output(),
    toggle("--plot", "draw the answer, same as -o plot; -o svg=FILE draws it for slides").of_output(),
    text("--config-dir", "DIR",
         "look for models and hardware here first, before SCALECALC_CONFIG_PATH, ~/.config/scalecalc and the built-in "
         "catalog",
         "./configs")
        .repeatable(),
    word("--color", kColorNames, "colour; NO_COLOR is honoured (default auto)").of_output(),
    text("--only", "SECTION[,...]", "of the text these sections alone, in full; a wrong name lists those there are",
         "headline,assumed")
        .of_output(),
    text("--columns", "NAME[,...]", "of the text's main table these columns, by their names in JSON or CSV",
         "layout,mfu,run_cost_usd")
        .of_output(),
    text("--fail-if", "CONDITION",
         "exit 1 if it holds for the answer: SQL over the names of -o row, mfu < 0.5 OR memory_bytes > 80e9",
         "mfu < 0.5")
        .repeatable()
        .of_output(),
    text(
        "--expect", "FILE",
        "exit 1 unless the answer is what a file of names of -o row says: mfu: {least: 0.4}, dp: 64, or an earlier row",
        "expected.yaml")
        .repeatable()
        .of_output(),
    toggle("--perf", "say how long answering took, which is all that differs from one time to the next").of_output(),
    quantity("--time-limit", UnitKind::kSeconds, "TIME",
             "answer by then with what is known, marked as partial, exit status 75", "30s")
        .of_output(),
    quantity("--memory-limit", UnitKind::kBytes, "BYTES", "the same when so much memory is used", "4GB").of_output(),
    toggle("--quiet", "of the text the headline alone, on standard error errors and departures from what was asked")
        .lettered('q')
        .of_output(),
    toggle("--verbose", "the whole text; what was read and searched, on standard error").lettered('v').of_output(),
    toggle("--version", "print the version").lettered('V').of_output(),
    toggle("--help", "print this").lettered('h').of_output(),
};

bool digit(char c) { return c >= '0' && c <= '9'; }

/// Starts with a dash, but is no number and not the name of standard input.
bool looks_like_flag(std::string_view word) {
  return word.size() > 1 && word[0] == '-' && !digit(word[1]) && word[1] != '.';
}

/// The flag of "--chips" or "--chips=4".
const Flag* named_flag(std::string_view word, std::span<const Flag> flags) {
  return find_flag(flags, word.substr(0, word.find('=')));
}

const Flag* lettered_flag(char letter, std::span<const Flag> flags) {
  const auto it = std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.letter == letter; });
  return it == flags.end() ? nullptr : &*it;
}

[[noreturn]] void unknown_flag(std::string_view word, std::span<const Flag> flags, std::string_view command) {
  const std::string_view name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const Flag& flag : flags) known.emplace_back(flag.name.substr(2));  // dashes would count as letters that agree
  // "-chips" is meant as "--chips", but a short word behind one dash is a cluster of letters.
  constexpr std::size_t kCluster = 4;
  const bool letters = !name.starts_with("--") && name.size() <= kCluster;
  std::string hint = meaning_of(name, flags);
  if (hint.empty() && !letters) {
    std::vector<std::string> near = nearest(name.substr(name.find_first_not_of('-')), known);
    for (std::string& flag : near) flag.insert(0, "--");
    hint = did_you_mean(near);
  }
  if (!hint.empty()) hint += ' ';
  throw UserError(fmt::format("unknown flag {}", in_quotes(name)),
                  fmt::format("{}scalecalc {} --help lists the flags", hint, command));
}

[[noreturn]] void missing_value(const Flag& flag) {
  throw UserError(fmt::format("{} needs a value", flag.name),
                  fmt::format("for example {} {}", flag.name, flag.example));
}

/// What CLI11 would misread: it takes "--hw= x" for "--hw x", "--json=x" for "--json", and the word after "--explain"
/// for its value though it is no number, or that after "--ep-overlap" though it is none of its words.
std::vector<std::string> spelled_out(std::vector<std::string> words, std::span<const Flag> flags) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    const Flag* flag = named_flag(words[i], flags);
    if (flag == nullptr) continue;
    const std::size_t equals = words[i].find('=');
    if (equals == std::string::npos) {
      const bool number = i + 1 < words.size() && std::all_of(words[i + 1].begin(), words[i + 1].end(), digit);
      if (flag->kind == FlagKind::kOptionalCount && !number) words[i] += "=0";
      const bool word =
          i + 1 < words.size() && std::find(flag->words.begin(), flag->words.end(), words[i + 1]) != flag->words.end();
      if (flag->kind == FlagKind::kOptionalWord && !word) words[i] += fmt::format("={}", flag->alone);
    } else if (flag->kind == FlagKind::kSwitch) {
      throw UserError(fmt::format("{} takes no value", flag->name), "");
    } else if (equals + 1 == words[i].size()) {
      missing_value(*flag);
    }
  }
  return words;
}

/// The values of a flag that may be given so often, none of them empty or another flag.
std::vector<std::string> checked(const Flag& flag, std::vector<std::string> values, std::span<const Flag> flags) {
  for (const std::string& value : values) {
    const bool is_flag =
        looks_like_flag(value) &&
        (value.starts_with("--") ? named_flag(value, flags) != nullptr : lettered_flag(value[1], flags) != nullptr);
    if (value.empty() || is_flag) missing_value(flag);
  }
  if (values.size() > 1 && flag.kind != FlagKind::kRepeatable) {
    throw UserError(fmt::format("{} is given twice: {} and {}", flag.name, in_quotes(values[0]), in_quotes(values[1])),
                    "");
  }
  // Modes and readers compare words as the table spells them.
  for (std::string& value : values) {
    if (const auto meant = flag.reading == Reading::kWord ? word_meant(value, flag.words) : std::nullopt) {
      value = flag.words[*meant];
    }
  }
  return values;
}

/// What CLI11 left over: words, and flags it does not know. It splits clusters of letters, so that what is unknown may
/// be the end of the word that was typed.
std::vector<std::string> words_of(const std::vector<std::string>& left, const std::vector<std::string>& typed,
                                  std::span<const Flag> flags, std::string_view command) {
  for (const std::string& word : left) {
    if (!looks_like_flag(word)) continue;
    const auto whole = std::find_if(typed.begin(), typed.end(), [&](const std::string& t) {
      return t == word || (word[1] != '-' && looks_like_flag(t) && t[1] != '-' && t.ends_with(word.substr(1)));
    });
    unknown_flag(whole == typed.end() ? word : *whole, flags, command);
  }
  return left;
}

}  // namespace

const Flag* find_flag(std::span<const Flag> flags, std::string_view name) {
  const auto it = std::find_if(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.name == name; });
  return it == flags.end() ? nullptr : &*it;
}

Modes modes_of(std::span<const Flag> flags, std::string_view name) {
  Modes out = 0;
  for (const Flag& flag : flags) out |= flag.name == name ? flag.modes : 0U;
  return out;
}

std::vector<Flag> flags_named(std::span<const Flag> flags, std::initializer_list<std::string_view> names) {
  std::vector<Flag> out;
  for (const std::string_view name : names) {
    const Flag* flag = find_flag(flags, name);
    check(flag != nullptr, "a flag that is taken over exists");
    out.push_back(flag->in(kAllModes));
  }
  return out;
}

std::vector<Flag> flags_but(std::span<const Flag> flags, std::initializer_list<std::string_view> names) {
  std::vector<Flag> out;
  out.reserve(flags.size());
  std::copy_if(flags.begin(), flags.end(), std::back_inserter(out),
               [&](const Flag& flag) { return std::find(names.begin(), names.end(), flag.name) == names.end(); });
  for (const std::string_view name : names) check(find_flag(flags, name) != nullptr, "a flag left out exists");
  for (Flag& flag : out) flag.modes = kAllModes;  // those of this command are none of the other's
  return out;
}

std::vector<Flag> composed(std::initializer_list<TablePart> parts) {
  std::vector<Flag> out;
  std::size_t size = 0;
  for (const TablePart& part : parts) size += part.flags.size();
  out.reserve(size);
  for (const TablePart& part : parts) {
    for (const Flag& flag : part.flags) {
      out.push_back(flag.in(flag.modes & part.modes));
      out.back().query_group = part.query_group;
    }
  }
  return out;
}

std::span<const Flag> common_flags() { return kCommonFlags; }

std::size_t first_word(const std::vector<std::string>& args, std::span<const Flag> flags) {
  for (std::size_t i = 0; i < args.size(); ++i) {
    const std::string& word = args[i];
    if (!looks_like_flag(word)) return i;
    const bool whole = word.starts_with("--");
    const Flag* flag = whole ? named_flag(word, flags) : lettered_flag(word.back(), flags);
    const bool takes = flag != nullptr && (flag->kind == FlagKind::kValue || flag->kind == FlagKind::kRepeatable);
    if (takes && word.find('=') == std::string::npos) ++i;
  }
  return args.size();
}

bool Arguments::has_one_of(std::string_view flags) const {
  const std::vector<std::string> all = parts_between(flags, ' ');
  return std::any_of(all.begin(), all.end(), [&](const std::string& flag) { return has(flag); });
}

std::string Arguments::said_but(std::string_view flag) const {
  std::string out(command_->name);
  const auto add = [&](const std::vector<std::string>& texts) {
    for (const std::string& text : texts) out += fmt::format(" {}:{}", text.size(), text);  // whatever is in them
  };
  add(positionals_);
  for (const auto& [name, values] : values_) {
    if (name == flag) continue;
    out += fmt::format("\n{}", name);
    add(values);
  }
  return out;
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

void Arguments::replace(std::string_view flag, std::vector<std::string> values) {
  values_.erase(std::string(flag));
  if (!values.empty()) values_.emplace(flag, std::move(values));
}

void Arguments::suppose(std::string_view flag, std::vector<std::string> values) {
  replace(flag, std::move(values));
  supposed_.emplace(flag);
}

const std::string& Arguments::text_of_file(const std::string& path) const {
  if (!texts_) texts_ = std::make_shared<std::map<std::string, std::string>>();
  const auto known = texts_->find(path);
  return known != texts_->end() ? known->second : texts_->emplace(path, read_text_file(path)).first->second;
}

Arguments Arguments::of(const Command& command, std::vector<std::string> positionals, Values values) {
  Arguments out;
  out.command_ = &command;
  out.positionals_ = std::move(positionals);
  out.values_ = std::move(values);
  return out;
}

Arguments parse_arguments(const std::vector<std::string>& args, const Command& command) {
  std::vector<Flag> flags = flags_of(command);
  if (find_flag(flags, "--chips") != nullptr) {
    flags.push_back(text(kHostsFlag, "N", "", "16"));
    flags.push_back(text(kChipsOfHostFlag, "N", "", "8"));
  }
  CLI::App app;
  app.set_help_flag();
  app.allow_extras();
  std::map<const Flag*, CLI::Option*> options;
  for (const Flag& flag : flags) {
    const std::string names = flag.letter == 0 ? std::string(flag.name) : fmt::format("-{},{}", flag.letter, flag.name);
    options[&flag] = flag.kind == FlagKind::kSwitch ? app.add_flag(names) : app.add_option(names);
    options[&flag]->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)->allow_extra_args(false);
  }
  // What stands behind "--" is no flag; CLI11 would still read some of it as one.
  const auto end = std::find(args.begin(), args.end(), "--");
  Arguments out;
  const std::vector<std::string> typed = spelled_out(own_words({args.begin(), end}, flags, out.readings_), flags);
  try {
    app.parse(std::vector<std::string>(typed.rbegin(), typed.rend()));  // CLI11 takes them from the back
  } catch (const CLI::ArgumentMismatch&) {                              // the last word is a flag without its value
    const std::string& last = typed.back();
    const Flag* flag = last.starts_with("--") ? named_flag(last, flags) : lettered_flag(last.back(), flags);
    missing_value(*flag);
  }
  out.command_ = &command;
  out.positionals_ = words_of(app.remaining(), typed, flags, command.name);
  if (end != args.end()) out.positionals_.insert(out.positionals_.end(), end + 1, args.end());
  for (const auto& [flag, option] : options) {
    if (option->count() == 0) continue;
    out.values_[std::string(flag->name)] =
        flag->kind == FlagKind::kSwitch ? std::vector<std::string>{} : checked(*flag, option->results(), flags);
  }
  return out;
}

std::string value_name(const Flag& flag) {
  if (!flag.value.empty() || flag.words.empty()) return std::string(flag.value);
  return fmt::format("{}", fmt::join(flag.words, "|"));
}

std::string help_text(const Flag& flag) {
  std::string out(flag.help);
  const std::size_t at = out.find("{}");
  if (at == std::string::npos) return out;
  std::string words;
  for (std::size_t i = 0; i < flag.words.size(); ++i) {
    words += i == 0 ? "" : i + 1 == flag.words.size() ? " or " : ", ";
    words += flag.words[i];
  }
  return out.replace(at, 2, words);
}

}  // namespace scalecalc::cli
