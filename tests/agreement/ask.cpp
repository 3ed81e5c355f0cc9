#include "agreement/ask.h"

#include <cctype>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "base/quoting.h"
#include "cli/run.h"
#include "golden/transcript.h"

namespace scalecalc::agreement {
namespace {

std::string printed(const std::string& command) {
  std::ostringstream out;
  std::ostringstream err;
  static const auto kept = std::make_shared<Remembered>();  // what one question reads serves the next
  cli::Environment env{.out = out, .err = err};
  env.remembered = kept;
  const int code = cli::run(shell_words(command), env);
  if (code != 0) throw std::runtime_error("exit " + std::to_string(code) + ": " + err.str());
  return out.str();
}

/// The element that the inside of a bracket means: `2`, `name=word`, `title~start`.
const Json& element(const Json& list, const std::string& inside) {
  const std::size_t sign = inside.find_first_of("=~");
  if (sign == std::string::npos) return list.at(std::stoul(inside));
  const std::string word = inside.substr(sign + 1);
  for (const Json& one : list) {
    const auto found = one.find(inside.substr(0, sign));
    if (found == one.end() || !found->is_string()) continue;
    const std::string text = found->get<std::string>();
    if (inside[sign] == '=' ? text == word : text.starts_with(word)) return one;
  }
  throw std::runtime_error("no element with " + inside);
}

double number_at(const Json& answer, const std::string& path) {
  const Json* here = &answer;
  std::size_t at = 0;
  while (at < path.size()) {
    if (path[at] == '[') {
      const std::size_t close = path.find(']', at);
      here = &element(*here, path.substr(at + 1, close - at - 1));
      at = close + 1;
    } else {
      if (path[at] == '.') ++at;
      const std::size_t end = std::min(path.find_first_of(".[", at), path.size());
      here = &here->at(path.substr(at, end - at));
      at = end;
    }
  }
  return here->get<double>();
}

/// Split at spaces outside brackets.
std::vector<std::string> terms_of(const std::string& expression) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (const char c : expression) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ' ' && depth == 0) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

}  // namespace

const Json& ask(const std::string& command) {
  static std::map<std::string, Json> known;
  const auto found = known.find(command);
  if (found != known.end()) return found->second;
  return known.emplace(command, Json::parse(printed(command + " --json --quiet"))).first->second;
}

std::string told(const std::string& command) { return printed(command + " --quiet"); }

double value_of(const Json& answer, const std::string& expression) {
  const auto operand = [&](const std::string& term) {
    const bool number = std::isdigit(static_cast<unsigned char>(term.front())) != 0;
    return number ? std::stod(term) : number_at(answer, term);
  };
  const std::vector<std::string> terms = terms_of(expression);
  double sum = 0;
  double product = operand(terms.front());
  for (std::size_t i = 1; i + 1 < terms.size(); i += 2) {
    const double next = operand(terms[i + 1]);
    switch (terms[i].front()) {
      case '*': product *= next; break;
      case '/': product /= next; break;
      case '+':
      case '-':
        sum += product;
        product = terms[i].front() == '+' ? next : -next;
        break;
      default: throw std::runtime_error("no operator: " + terms[i]);
    }
  }
  return sum + product;
}

}  // namespace scalecalc::agreement
