// The flags of `scalecalc serve` and the question they make.
#pragma once

#include <span>

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

}  // namespace scalecalc::cli
