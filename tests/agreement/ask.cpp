#include "agreement/ask.h"

#include <map>
#include <sstream>
#include <stdexcept>

#include "cli/run.h"
#include "golden/transcript.h"

namespace scalecalc::agreement {
namespace {

std::string printed(const std::string& command) {
  std::ostringstream out;
  std::ostringstream err;
  static const auto kept = std::make_shared<Remembered>();  // the files of one question serve the next
  cli::Environment env{.out = out, .err = err};
  env.remembered = kept;
  const int code = cli::run(golden::split_words(command), env);
  if (code != 0 && code != 3) throw std::runtime_error("$ scalecalc " + command + "\n" + err.str());
  return out.str();
}

/// The element of a list that `[2]` or `[name=word]` means; `at` stands behind the bracket afterwards.
const Json& element(const Json& list, const std::string& path, std::size_t& at) {
  const std::size_t close = path.find(']', at);
  const std::string inside = path.substr(at + 1, close - at - 1);
  at = close + 1;
  const std::size_t equals = inside.find('=');
  if (equals == std::string::npos) return list.at(std::stoul(inside));
  for (const Json& one : list) {
    const auto found = one.find(inside.substr(0, equals));
    if (found != one.end() && found->is_string() && *found == inside.substr(equals + 1)) return one;
  }
  throw std::runtime_error("no element with " + inside);
}

}  // namespace

const Json& ask(const std::string& command) {
  static std::map<std::string, Json> known;
  const auto found = known.find(command);
  if (found != known.end()) return found->second;
  return known.emplace(command, Json::parse(printed(command + " --json --quiet"))).first->second;
}

const std::string& ask_text(const std::string& command) {
  static std::map<std::string, std::string> known;
  const auto found = known.find(command);
  if (found != known.end()) return found->second;
  return known.emplace(command, printed(command)).first->second;
}

double number_at(const Json& json, const std::string& path) {
  const Json* here = &json;
  std::size_t at = 0;
  try {
    while (at < path.size()) {
      if (path[at] == '.') ++at;
      if (path[at] == '[') {
        here = &element(*here, path, at);
        continue;
      }
      const std::size_t end = std::min(path.find_first_of(".[", at), path.size());
      here = &here->at(path.substr(at, end - at));
      at = end;
    }
    return here->get<double>();
  } catch (const std::exception& error) {
    throw std::runtime_error("\"" + path + "\" leads nowhere after \"" + path.substr(0, at) + "\": " + error.what());
  }
}

}  // namespace scalecalc::agreement
