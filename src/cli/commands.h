// The table of commands: adding one is one directory and one row in commands.cpp.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "cli/environment.h"
#include "cli/options.h"
#include "config/catalog.h"

namespace scalecalc::cli {

/// One way to ask a command that uses flags of its own. Flag::modes says which do.
struct Mode {
  std::string_view name;       ///< "bounds --for training"
  std::string_view why;        ///< why flags of other modes have no meaning in it; may be empty
  bool has_outputs = true;     ///< takes --output and --json
  std::string_view example{};  ///< a whole line; empty: the first of the command
  std::string_view draws{};    ///< as Command::draws, of this mode; empty: that one
};

/// Flags that the short help shows under one heading: "--seq --tokens".
struct FlagGroup {
  std::string_view title;
  std::string_view flags;
};

struct Command {
  std::string_view name;
  std::string_view summary;   ///< one line
  std::string_view usage;     ///< "MODEL --hw HW --chips N [flags]"
  std::string_view examples;  ///< whole lines
  std::string_view notes;     ///< below the flags; whole lines
  std::span<const Flag> flags;
  ExitCode (*run)(const Arguments&, Environment&);
  std::span<const Mode> modes{};  ///< empty: every flag has a meaning in every question
  /// Position of the mode that is asked for; nothing if that is not clear, which the command complains about.
  std::optional<std::size_t> (*mode_of)(const Arguments&) = nullptr;
  std::optional<CatalogKind> names{};  ///< what its words name: models, or chips
  std::string_view check_fails{};   ///< exit status 1 beside --fail-if: "the error is above --max-error"; may be empty
  std::string_view nothing_fits{};  ///< exit status 3, the same
  bool interruptible = false;       ///< asked to end, it answers with what it has, which may be partial
  std::string_view draws{};         ///< what --plot shows: "throughput over chips"; empty: nothing
  bool own_exits = false;           ///< the notes say what its exit statuses are
  std::string_view figures{};       ///< columns that a table of many answers shows: "step_time_s mfu"; empty: few
  std::span<const FlagGroup> common{};  ///< of the short help; empty: it shows every flag
};

std::optional<std::size_t> mode_of(const Arguments& arguments);

std::span<const Command> commands();
const Command* find_command(std::string_view name);

/// What --plot shows of a question, of the command in general if no mode is asked for; empty: nothing.
std::string_view drawn(const Arguments& arguments);
/// "a range of --chips: throughput over chips", for each mode that draws or the command; empty: it never does.
std::vector<std::string> drawings(const Command& command);

/// The command's own flags, each name once, then the common ones that it has no flag of its own for.
std::vector<Flag> flags_of(const Command& command);

/// One definition per command, in <name>_command.cpp of its directory.
const Command& train_command();
const Command& serve_command();
const Command& compare_command();
const Command& distill_command();
const Command& rl_command();
const Command& trace_command();
const Command& export_command();
const Command& lint_command();
const Command& profile_command();
const Command& collective_command();
const Command& matmul_command();
const Command& roofline_command();
const Command& bounds_command();
const Command& model_command();
const Command& scaling_law_command();
const Command& hw_command();
const Command& validate_command();
const Command& calibrate_command();
const Command& batch_command();
const Command& sensitivity_command();
const Command& book_command();

}  // namespace scalecalc::cli
