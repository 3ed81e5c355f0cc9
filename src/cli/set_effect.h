// A --set that an answer does not depend on is refused, as a flag is that has no meaning in a question.
#pragma once

#include "cli/environment.h"
#include "cli/options.h"

namespace scalecalc::cli {

/// UserError for each --set without which every figure of the answer is the same. The question is asked once more for
/// each of them. One that says what the file says already changes nothing either, and may. Not asked where the command
/// line reads standard input, or where the command gives no JSON.
void refuse_sets_without_effect(const Arguments& arguments, const Environment& env);

}  // namespace scalecalc::cli
