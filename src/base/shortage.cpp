// Recognizes exceptions that mean too little memory, too few threads or too many open files, so that they are not
// reported as bugs.
#include "base/shortage.h"

#include <fmt/format.h>

#include <cerrno>
#include <new>
#include <string_view>
#include <system_error>

namespace scalecalc {
namespace {

bool is_want(const std::error_code& code) {
  const bool of_system = code.category() == std::generic_category() || code.category() == std::system_category();
  return of_system &&
         (code.value() == EAGAIN || code.value() == ENOMEM || code.value() == EMFILE || code.value() == ENFILE);
}

Diagnostic no_thread(std::string_view why) {
  return {SourceSpan{}, fmt::format("a thread could not be started: {}", why),
          "processes and threads are limited: ulimit -u, and pids.max of a container"};
}

}  // namespace

std::optional<Diagnostic> shortage_of(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) {
    return Diagnostic{SourceSpan{}, "memory ran out",
                      "memory is limited: ulimit -v, and memory.max of a container; a narrower question needs less"};
  }
  if (const auto* failed = dynamic_cast<const std::system_error*>(&error)) {
    if (is_want(failed->code())) return no_thread(failed->code().message());
  }
  // What oneTBB throws when it cannot start a worker has no type of its own.
  const std::string_view what = error.what();
  constexpr std::string_view kTbb = "pthread_create has failed: ";
  if (what.starts_with(kTbb)) return no_thread(what.substr(kTbb.size()));
  return std::nullopt;
}

}  // namespace scalecalc
