// What serving draws: chips by what a decode step and the prompts beside it are to them, with their hosts and the
// facility if asked (run/power.h).
#pragma once

#include "serve/serve_question.h"

namespace scalecalc {

/// Of a chip that decodes, and spends `prompts` of its time on prompts, which are compute.
StepActivity serving_activity(const ServeTime<double>& decode_step, double prompts);
/// Watts of the facility for one working chip. The chip's own must be published.
double facility_watts(const HardwareSpec& hw, const PowerTerms& terms, const StepActivity& activity);
/// Share of a point's chip time that prompts take.
double prompt_share(const ServePoint& point);

}  // namespace scalecalc
