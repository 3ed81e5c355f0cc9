// Everything a command sees of the process it runs in. Handed in, so that tests drive the whole program in-process.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "base/stop.h"
#include "config/remembered.h"

namespace scalecalc::cli {

/// Said where an interrupted command has nothing to show.
inline constexpr std::string_view kNothingKnown = "interrupted before anything was known";

/// What a command may take of the machine; nothing: what there is.
struct Budget {
  std::optional<double> seconds;
  std::optional<double> bytes;  ///< in memory at once
};

struct Environment {
  std::ostream& out;
  std::ostream& err;
  std::function<std::optional<std::string>(const std::string&)> variable;  ///< getenv; empty = no variables
  Stop interrupted;                                                        ///< polled while working
  std::function<int(int)> exit_status;           ///< what becomes of a command's own; empty = the same
  std::function<void()> on_answer;               ///< see begin_answer
  std::function<void()> on_line;                 ///< see begin_line
  std::function<void(const Budget&)> on_budget;  ///< from now on this ends the work; empty: nothing does
  bool out_is_tty = false;
  bool err_is_tty = false;
  std::size_t width = 0;                          ///< columns of the terminal behind `out`; 0 = unknown
  bool utf8 = false;                              ///< the locale's encoding
  std::shared_ptr<Remembered> remembered;         ///< what is kept between questions; null where there is only one
  std::vector<std::string> config_directories{};  ///< a study's own, looked into like those of --config-dir
  std::optional<std::vector<std::string>> words_of_process{};  ///< what a process of its own was started with

  std::optional<std::string> get(const std::string& name) const { return variable ? variable(name) : std::nullopt; }

  int exit_status_of(int own) const { return exit_status ? exit_status(own) : own; }
  /// Before an answer or an error is written: no progress is shown any more.
  void begin_answer() const {
    if (on_answer) on_answer();
  }
  /// Before a line goes to `err` while work goes on.
  void begin_line() const {
    if (on_line) on_line();
  }
};

}  // namespace scalecalc::cli
