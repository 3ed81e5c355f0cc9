// Flags and words of other tools, replaced by what they are called here, for every command line.
#include "cli/foreign_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/diagnostic.h"
#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "config/built_in_words.h"
#include "plan/dimensions.h"
#include "serve/engine_flags.h"

namespace scalecalc::cli {
namespace {

/// configs/words/flags.yaml.
const ConfigNode& foreign_document() {
  static const ConfigNode kDocument = built_in_words("words/flags.yaml");
  return kDocument;
}

bool has_name(std::string_view names, std::string_view name) {
  const std::vector<std::string> all = parts_between(names, ' ');
  return std::find(all.begin(), all.end(), name) != all.end();
}

std::vector<std::string> flags_meant(const ForeignFlag& foreign, std::span<const Flag> flags) {
  std::vector<std::string> out;
  for (const std::string& ours : parts_between(foreign.ours, ' ')) {
    const bool of_machine = ours == kHostsFlag || ours == kChipsOfHostFlag;
    if (find_flag(flags, of_machine ? "--chips" : ours) != nullptr) out.push_back(ours);
  }
  return out;
}

/// What a flag means: `flag`, and what stands before its value there or is its value.
struct Meaning {
  std::string flag;
  std::string_view value;
};

/// --cp-comm is --fix cp_comm= where no flag of that name is.
std::optional<Meaning> dimension_meant(std::string_view name, std::span<const Flag> flags, std::string& key) {
  if (!name.starts_with("--") || find_flag(flags, "--fix") == nullptr) return std::nullopt;
  key = name.substr(2);
  std::replace(key.begin(), key.end(), '-', '_');
  if (find_dimension(key) == nullptr) return std::nullopt;
  key += '=';
  return Meaning{"--fix", key};
}

std::optional<Meaning> flag_meant(std::string_view name, std::span<const Flag> flags, std::string& key) {
  if (const EngineFlag* of = engine_flag(name); of != nullptr && find_flag(flags, of->ours) != nullptr) {
    key = fmt::format("{}=", of->engine);  // so that another engine's is refused by name
    return Meaning{std::string(of->ours), key};
  }
  for (const ForeignFlag& foreign : foreign_flags()) {
    if (!has_name(foreign.names, name)) continue;
    const std::vector<std::string> meant = flags_meant(foreign, flags);
    // Of several meanings one may be left by the command that is asked.
    if (!meant.empty() && foreign.clear) return Meaning{meant.front(), foreign.value};
  }
  return dimension_meant(name, flags, key);
}

bool is_letter_of(char letter, std::span<const Flag> flags) {
  return std::any_of(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.letter == letter; });
}

/// A word that the command itself understands as a flag.
const Flag* own_flag(std::string_view word, std::span<const Flag> flags) {
  return find_flag(flags, word.substr(0, word.find('=')));
}

std::string command_names(std::string_view flag) {
  std::vector<std::string> out;
  for (const Command& command : commands()) {
    if (find_flag(command.flags, flag) != nullptr) out.emplace_back(command.name);
  }
  return out.empty() ? "" : fmt::format("{} is a flag of {}.", flag, join_and(out));
}

}  // namespace

std::span<const ForeignFlag> foreign_flags() {
  static const std::vector<ForeignFlag> kFlags = [] {
    std::vector<ForeignFlag> out;
    for (const ConfigNode& row : foreign_document().find("flags")->items) {
      const auto text = [&](const char* key) {
        const ConfigNode* value = row.find(key);
        return value == nullptr ? std::string_view{} : std::string_view(value->text);
      };
      out.push_back({text("theirs"), text("ours"), text("value"), text("several") != "true"});
    }
    return out;
  }();
  return kFlags;
}

std::vector<std::string> own_words(const std::vector<std::string>& words, std::span<const Flag> flags,
                                   std::vector<Assumption>& readings) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const Flag* own = own_flag(word, flags);
    const std::size_t equals = word.find('=');
    const bool takes = own != nullptr && (own->kind == FlagKind::kValue || own->kind == FlagKind::kRepeatable);
    const bool lettered = word.size() == 2 && word[0] == '-' && is_letter_of(word[1], flags);
    std::string key;
    const auto meant = own != nullptr || lettered || !word.starts_with('-')
                           ? std::nullopt
                           : flag_meant(word.substr(0, equals), flags, key);
    if (!meant) {
      out.push_back(word);
      // A flag's value is no flag, whatever it looks like.
      if ((takes || lettered) && equals == std::string::npos && i + 1 < words.size()) out.push_back(words[++i]);
      continue;
    }
    const bool is_switch = !meant->value.empty() && !meant->value.ends_with('=');
    std::string typed = word;
    std::string value(meant->value);
    if (!is_switch && equals != std::string::npos) {
      value += word.substr(equals + 1);
    } else if (!is_switch && i + 1 < words.size() && own_flag(words[i + 1], flags) == nullptr) {
      value += words[++i];
      typed += ' ' + words[i];
    }
    if (value == meant->value && !is_switch) {
      const Flag* ours = find_flag(flags, meant->flag);
      throw UserError(fmt::format("{} needs a value", word),
                      fmt::format("for example {} {}", word, meant->value.empty() ? ours->example : "8"));
    }
    if (meant->flag != kHostsFlag && meant->flag != kChipsOfHostFlag) {
      readings.push_back({fmt::format("{} is read as {} {}", typed, meant->flag, value), meant->flag, "command line"});
    }
    out.push_back(fmt::format("{}={}", meant->flag, value));
  }
  return out;
}

std::string meaning_of(std::string_view flag, std::span<const Flag> flags) {
  for (const ForeignFlag& foreign : foreign_flags()) {
    if (!has_name(foreign.names, flag)) continue;
    if (foreign.ours.empty()) return "the model is a word of its own: scalecalc train llama3-70b ...";
    if (const std::vector<std::string> meant = flags_meant(foreign, flags); !meant.empty()) return did_you_mean(meant);
  }
  return command_names(flag);
}

std::optional<std::size_t> word_meant(std::string_view text, LegalWords words) {
  if (const auto like = word_like(text, words)) return like;
  for (const ConfigNode::Entry& foreign : foreign_document().find("words")->entries) {
    const std::array<std::string_view, 1> theirs{foreign.key};
    if (word_like(text, theirs)) return word_like(foreign.value.text, words);
  }
  return std::nullopt;
}

}  // namespace scalecalc::cli
