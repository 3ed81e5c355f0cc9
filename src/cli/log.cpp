#include "cli/log.h"

#include <ostream>

#include "base/quoting.h"

namespace scalecalc::cli {

Log::Log(std::ostream& err, Verbosity verbosity, bool colour) : err_(err), verbosity_(verbosity), colour_(colour) {}

void Log::warning(const std::string& text) {
  if (verbosity_ == Verbosity::kQuiet) return;
  // In one piece, as others may write there too.
  err_ << (colour_ ? "\x1b[33mwarning:\x1b[0m " : "warning: ") + printable_lines(text) + "\n" << std::flush;
}

void Log::info(const std::string& text) {
  if (verbosity_ != Verbosity::kVerbose) return;
  err_ << printable_lines(text) + "\n" << std::flush;
}

}  // namespace scalecalc::cli
