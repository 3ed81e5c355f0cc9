// The flags about a whole training run: failures, checkpoints, spare hosts, slow chips, power.
#pragma once

#include <span>

#include "cli/flag_reader.h"
#include "cli/options.h"
#include "economics/run_question.h"

namespace scalecalc::cli {

/// Those of power are among them, and stand alone where nothing is trained.
std::span<const Flag> run_flags();
std::span<const Flag> power_flags();
bool is_run_flag(std::string_view name);

/// Problems stay with the reader.
PowerTerms read_power_terms(FlagReader& reader);
RunQuestion read_run_question(FlagReader& reader, const Arguments& arguments);

}  // namespace scalecalc::cli
