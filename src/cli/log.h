// Messages about the work, on standard error. Results never go through here.
#pragma once

#include <memory>
#include <ostream>
#include <string>

namespace scalecalc::cli {

enum class Verbosity { kQuiet, kNormal, kVerbose };

class Log {
 public:
  Log(std::ostream& err, Verbosity verbosity, bool colour);
  ~Log();
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;

  void warning(const std::string& text);
  /// A warning that --quiet shows too: what was written is not what was asked for, or a check failed.
  void failure(const std::string& text);
  /// Shown with --verbose.
  void info(const std::string& text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace scalecalc::cli
