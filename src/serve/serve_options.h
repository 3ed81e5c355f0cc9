// The flags of `scalecalc serve` and the question they make.
#pragma once

#include <span>
#include <string_view>

#include "cli/flag_reader.h"
#include "cli/shared_flags.h"
#include "serve/serve_question.h"
#include "serve/traffic.h"

namespace scalecalc::cli {

inline constexpr CountRange kServeChipRange{1, 65'536};

std::span<const Flag> serve_flags();

struct ServeAsked {
  ServeQuestion question;  ///< of the mean lengths
  RequestMix mix;
  std::optional<TrafficAsked> traffic;
};

/// UserError with every problem found.
ServeAsked serve_asked(const Arguments& arguments);
/// The same without traffic, for another command that has these flags; problems stay with the reader.
ServeAsked read_serve_question(FlagReader& reader, const Arguments& arguments);
/// What its flags contradict each other in.
void check_serving(FlagReader& reader, const ServeQuestion& question);
/// An engine inside another command's job: what is served, and where, is that one's own to say.
ServeAsked read_engine_question(FlagReader& reader, const Arguments& arguments);

}  // namespace scalecalc::cli
