// A --set that an answer does not depend on is refused, as a flag is that has no meaning in a question.
#pragma once

#include "cli/environment.h"
#include "cli/options.h"

namespace scalecalc::cli {

/// UserError for each --set that changes no figure of the answer, neither as it stands nor with another number: one
/// that says what the file says already may. The question is asked once more for each of them, and twice more for one
/// that changes nothing. Not asked where the command line reads standard input, or where the command gives no JSON.
void refuse_sets_without_effect(const Arguments& arguments, const Environment& env);

/// The same key with half and with twice the number, or the other truth; none of a word.
std::vector<std::string> other_values(const std::string& set);

}  // namespace scalecalc::cli
