// Implements the functions of scalecalc.h: takes a question as words and returns what the program would have written.
#include "api/scalecalc.h"

#include <memory>
#include <string>
#include <vector>

#include "cli/guest.h"
#include "cli/session.h"

struct scalecalc_answer {
  scalecalc::cli::GuestAnswer of;
};

namespace {

scalecalc::cli::GuestAnswer answer_to(int count, const char* const* words) {
  std::vector<std::string> args;
  for (int i = 0; i < count; ++i) {
    if (words == nullptr || words[i] == nullptr) {
      return {.status = 2, .output = "", .messages = "error: a word of the question is a null pointer\n"};
    }
    args.emplace_back(words[i]);
  }
  return scalecalc::cli::run_as_guest(args);
}

}  // namespace

scalecalc_answer* scalecalc_ask(int count, const char* const* words) {
  try {
    return std::make_unique<scalecalc_answer>(scalecalc_answer{answer_to(count, words)}).release();
  } catch (...) {  // of want of memory; nothing may pass into C
    return nullptr;
  }
}

int scalecalc_status(const scalecalc_answer* answer) { return answer->of.status; }
const char* scalecalc_output(const scalecalc_answer* answer) { return answer->of.output.c_str(); }
const char* scalecalc_messages(const scalecalc_answer* answer) { return answer->of.messages.c_str(); }
void scalecalc_free(scalecalc_answer* answer) { delete answer; }

const char* scalecalc_version(void) {
  static const std::string kVersion(scalecalc::cli::tool_version());
  return kVersion.c_str();
}
