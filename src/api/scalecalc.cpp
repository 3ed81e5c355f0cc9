#include "api/scalecalc.h"

#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "cli/run.h"
#include "cli/session.h"

struct scalecalc_answer {
  int status = 0;
  std::string output, messages;
};

namespace {

std::optional<std::string> variable_of(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

}  // namespace

scalecalc_answer* scalecalc_ask(int count, const char* const* words) {
  try {
    auto answer = std::make_unique<scalecalc_answer>();
    const std::vector<std::string> args(words, words + (count > 0 ? count : 0));
    std::ostringstream out, err;
    scalecalc::cli::Environment env{.out = out, .err = err, .variable = variable_of};
    answer->status = scalecalc::cli::run(args, env);
    answer->output = std::move(out).str();
    answer->messages = std::move(err).str();
    return answer.release();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

int scalecalc_status(const scalecalc_answer* answer) { return answer->status; }
const char* scalecalc_output(const scalecalc_answer* answer) { return answer->output.c_str(); }
const char* scalecalc_messages(const scalecalc_answer* answer) { return answer->messages.c_str(); }
void scalecalc_free(scalecalc_answer* answer) { delete answer; }

const char* scalecalc_version(void) {
  static const std::string kVersion(scalecalc::cli::tool_version());
  return kVersion.c_str();
}
