// The flags of `scalecalc serve` and the question they make.
#pragma once

#include <span>
#include <string_view>

#include "cli/flag_reader.h"
#include "cli/options.h"
#include "serve/serve_question.h"
#include "serve/traffic.h"

namespace scalecalc::cli {

std::span<const Flag> serve_flags();

struct ServeAsked {
  ServeQuestion question;  ///< of the mean lengths
  RequestMix mix;
  std::optional<TrafficAsked> traffic;
};

/// UserError with every problem found.
ServeAsked serve_asked(const Arguments& arguments);

/// What another command calls the flags of an engine that it has for something else.
struct EngineFlagNames {
  std::string_view fix = "--fix";
  std::string_view max = "--max";
  std::string_view weights = "--weights";
};
/// Lengths, formats, pins and engine for a command that takes these flags or some of them; what is served, and where,
/// is its own to say. Problems stay with the reader.
ServeAsked read_engine_question(FlagReader& reader, const Arguments& arguments, const EngineFlagNames& names);

}  // namespace scalecalc::cli
