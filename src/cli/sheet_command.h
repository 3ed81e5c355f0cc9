// What the small commands share: the way from a Sheet to the outputs asked for. docs/howto/add-command.md shows a whole
// command.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "cli/environment.h"
#include "cli/log.h"
#include "cli/options.h"
#include "cli/outputs.h"
#include "cli/shared_flags.h"
#include "config/catalog.h"
#include "report/render.h"
#include "report/sheet.h"
#include "spec/hardware_spec.h"
#include "spec/load.h"

namespace scalecalc::cli {

/// Opens the outputs, calls `answer`, writes what it returns in every format asked for, says warnings on standard
/// error when nobody reads a table.
ExitCode answer_with_sheet(const Arguments& arguments, Environment& env,
                           const std::function<Sheet(const Catalog&)>& answer);

std::string render_sheet(const Sheet& sheet, OutputFormat format, const TextOptions& text, bool explain);

/// What a table would have said, for those who read something else.
void say_warnings(Log& log, const Sheet& sheet);

/// The hardware of --hw with --set hw.KEY=VALUE applied. UserError if --hw is missing, or, unless allowed, if the file
/// leaves figures unpublished.
HardwareSpec hardware_asked_for(const Arguments& arguments, const Catalog& catalog,
                                Unpublished unpublished = Unpublished::kRefused);

/// One assumption for each --set, so that no answer hides what was changed.
void note_sets(const Arguments& arguments, std::vector<Assumption>& assumptions);

}  // namespace scalecalc::cli
