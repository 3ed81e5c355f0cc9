// Writes warnings and notes to standard error with spdlog. The only file that knows spdlog. Its default logger writes
// to standard output and reads the terminal by its own rules, so this one gets its sink, its level and its colour from
// us.
#include "cli/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/ostream_sink.h>

#include "base/quoting.h"

namespace scalecalc::cli {

namespace {

constexpr const char* kWarning = "warning: ";
constexpr const char* kYellowWarning = "\x1b[33mwarning:\x1b[0m ";

}  // namespace

struct Log::State {
  spdlog::logger logger;
  bool colour;
};

Log::Log(std::ostream& err, Verbosity verbosity, bool colour)
    : state_(
          new State{spdlog::logger("scalecalc", std::make_shared<spdlog::sinks::ostream_sink_st>(err, true)), colour}) {
  state_->logger.set_pattern("%v");
  switch (verbosity) {
    case Verbosity::kQuiet: state_->logger.set_level(spdlog::level::err); break;
    case Verbosity::kNormal: state_->logger.set_level(spdlog::level::warn); break;
    case Verbosity::kVerbose: state_->logger.set_level(spdlog::level::info); break;
  }
}

Log::~Log() = default;

// The texts are arguments, never formats: names in them come from users' files.
void Log::warning(const std::string& text) {
  state_->logger.warn("{}{}", state_->colour ? kYellowWarning : kWarning, printable_lines(text));
}

void Log::failure(const std::string& text) {
  state_->logger.error("{}{}", state_->colour ? kYellowWarning : kWarning, printable_lines(text));
}

void Log::info(const std::string& text) { state_->logger.info("{}", printable_lines(text)); }

}  // namespace scalecalc::cli
