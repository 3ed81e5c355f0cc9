// Asks a question with and without each of its --set, and compares all figures of the answers.

#include "cli/set_effect.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "base/diagnostic.h"
#include "cli/commands.h"
#include "cli/session.h"
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
  for (const Flag& flag : flags_of(arguments.command())) {
    if (flag.writes || !flag.asks) asked.replace(flag.name, {});
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
  }
  return without_question(std::move(out).str());
}

/// The files that it may change, as far as their names are known here.
bool says_what_stands_there(const std::string& set, const Arguments& arguments, const Catalog& catalog) {
  const std::string_view scope = std::string_view(set).substr(0, set.find('.'));
  std::vector<std::pair<CatalogKind, std::string>> files;
  if (const auto hw = arguments.value("--hw"); hw && scope == "hw") files.emplace_back(CatalogKind::kHardware, *hw);
  if (const auto names = arguments.command().names) {
    const bool same = (*names == CatalogKind::kHardware) == (scope == "hw");
    for (const std::string& word : arguments.positionals()) {
      if (same) files.emplace_back(*names, word);
    }
  }
  return std::any_of(files.begin(), files.end(), [&](const auto& file) {
    try {
      ConfigNode document = catalog.load(file.first, file.second);
      const std::string before = write_yaml(document);
      apply_sets({set}, {{scope, &document}});
      return write_yaml(document) == before;
    } catch (const UserError&) {
      return false;
    }
  });
}

}  // namespace

void refuse_sets_without_effect(const Arguments& arguments, const Environment& env) {
  const std::vector<std::string> sets = arguments.values("--set");
  if (sets.empty()) return;
  const std::vector<std::string>& words = arguments.positionals();
  if (std::find(words.begin(), words.end(), "-") != words.end()) return;
  const std::optional<std::string> all = figures_with(arguments, env, sets);
  if (!all) return;
  const Session session = read_session(arguments, env);
  const Catalog catalog(session.config_directories, session.remembered);
  std::vector<std::string> used = sets;
  std::vector<Diagnostic> idle;
  for (const std::string& set : sets) {
    std::vector<std::string> others = sets;
    others.erase(std::find(others.begin(), others.end(), set));
    if (figures_with(arguments, env, others) != all || says_what_stands_there(set, arguments, catalog)) continue;
    used.erase(std::find(used.begin(), used.end(), set));
    idle.push_back({SourceSpan{}, fmt::format("--set {}: no figure of this answer depends on it", set),
                    "leave it out; `scalecalc hw NAME --keys` lists what a chip's file may say"});
  }
  // Of two that say the same, neither alone is missed.
  if (idle.empty() || (idle.size() > 1 && figures_with(arguments, env, used) != all)) return;
  throw UserError(std::move(idle));
}

}  // namespace scalecalc::cli
