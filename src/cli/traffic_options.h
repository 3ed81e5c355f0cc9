// Flags of `scalecalc serve` about requests: their lengths, when they come, and how many are simulated.
#pragma once

#include "cli/flag_reader.h"
#include "serve/traffic.h"

namespace scalecalc::cli {

/// Lengths from --prompt and --generate, or from --trace. UserError at once for a trace that cannot be read.
RequestMix request_mix(FlagReader& reader, const Arguments& arguments);

/// What --rate, --simulate, --seed and a trace's arrivals ask for; nothing if none of them is there.
std::optional<TrafficAsked> traffic_asked(FlagReader& reader, const Arguments& arguments, const RequestMix& mix);

}  // namespace scalecalc::cli
