// Asks a question with and without each of its --set, and compares all figures of the answers.

#include "cli/set_effect.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "base/diagnostic.h"
#include "cli/commands.h"
#include "config/json_reader.h"
#include "config/yaml_writer.h"

namespace scalecalc::cli {
namespace {

/// An answer without what repeats the question.
std::string without_question(const std::string& json) {
  ConfigNode answer = read_json(json, "answer");
  std::erase_if(answer.entries, [](const ConfigNode::Entry& entry) {
    return entry.key == "query" || entry.key == "question" || entry.key == "assumptions";
  });
  return write_yaml(answer);
}

/// All figures of the answer with these --set; nothing where there is no answer, which the command will say.
std::optional<std::string> figures_with(const Arguments& arguments, const Environment& env,
                                        std::vector<std::string> sets) {
  Arguments asked = arguments;
  const std::optional<std::size_t> mode = mode_of(arguments);
  for (const Flag& flag : flags_of(arguments.command())) {
    if (!asked.has(flag.name) || (flag.asks && !flag.writes)) continue;
    Arguments without = asked;
    without.replace(flag.name, {});
    if (mode_of(without) == mode) asked = std::move(without);  // another mode is another question
  }
  asked.replace("--set", std::move(sets));
  asked.replace("--output", {"json"});
  std::ostringstream out, err;
  Environment inner{.out = out,
                    .err = err,
                    .variable = env.variable,
                    .interrupted = env.interrupted,
                    .remembered = env.remembered,
                    .config_directories = env.config_directories};
  try {
    if (arguments.command().run(asked, inner) != ExitCode::kAnswered) return std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;
  } catch (const Stopped&) {
    return std::nullopt;
  }
  if (should_stop(env.interrupted)) return std::nullopt;  // it may be partial
  return without_question(std::move(out).str());
}

/// What the answer is with other --set in the place of one.
class SetsInTurn {
 public:
  SetsInTurn(const Arguments& arguments, const Environment& env)
      : arguments_(arguments), env_(env), sets_(arguments.values("--set")), all_(figures_with(arguments, env, sets_)) {}

  bool is_answered() const { return all_.has_value(); }
  const std::vector<std::string>& sets() const { return sets_; }
  bool are_missed(const std::vector<std::string>& left) const { return figures_with(arguments_, env_, left) != all_; }

  /// Whether the answer is the same without it, and whatever it says: what the file says already may be said again.
  bool is_idle(std::size_t at) const {
    std::vector<std::string> others = sets_;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(at));
    if (are_missed(others)) return false;
    const std::vector<std::string> values = other_values(sets_[at]);
    bool known = values.empty();
    for (const std::string& other : values) {
      std::vector<std::string> changed = sets_;
      changed[at] = other;
      const std::optional<std::string> figures = figures_with(arguments_, env_, changed);
      if (figures && figures != all_) return false;
      known |= figures.has_value();
    }
    return known;
  }

 private:
  const Arguments& arguments_;
  const Environment& env_;
  std::vector<std::string> sets_;
  std::optional<std::string> all_;
};

}  // namespace

std::vector<std::string> other_values(const std::string& set) {
  const std::string key = set.substr(0, set.find('=') + 1), text = set.substr(key.size());
  if (text == "true" || text == "false") return {key + (text == "true" ? "false" : "true")};
  char* rest = nullptr;
  const double number = std::strtod(text.c_str(), &rest);
  if (rest == text.c_str() || !std::isfinite(number)) return {};
  if (number == 0) return {key + "1" + rest};
  return {fmt::format("{}{:.15g}{}", key, number / 2, rest), fmt::format("{}{:.15g}{}", key, number * 2, rest)};
}

void refuse_sets_without_effect(const Arguments& arguments, const Environment& env) {
  const std::vector<std::string>& words = arguments.positionals();
  if (!arguments.has("--set") || std::find(words.begin(), words.end(), "-") != words.end()) return;
  const std::optional<std::size_t> mode = mode_of(arguments);
  if (mode && !arguments.command().modes[*mode].has_outputs) return;
  const SetsInTurn turn(arguments, env);
  if (!turn.is_answered()) return;
  std::vector<std::string> used;
  std::vector<Diagnostic> idle;
  for (std::size_t i = 0; i < turn.sets().size(); ++i) {
    const std::string& set = turn.sets()[i];
    if (!turn.is_idle(i)) {
      used.push_back(set);
      continue;
    }
    idle.push_back({SourceSpan{}, fmt::format("--set {}: no figure of this answer depends on it", set),
                    "leave it out; `scalecalc hw NAME --keys` lists what a chip's file may say"});
  }
  // Of two that say the same, neither alone is missed.
  if (idle.empty() || (idle.size() > 1 && turn.are_missed(used))) return;
  throw UserError(std::move(idle));
}

}  // namespace scalecalc::cli
