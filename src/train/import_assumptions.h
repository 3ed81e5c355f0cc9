// The notes of an import as assumptions of an answer, the same for every command that takes a model.
#pragma once

#include <vector>

#include "import/named_model.h"
#include "train/question.h"

namespace scalecalc {

/// Empty for a model that was not imported.
std::vector<Assumption> import_assumptions(const ModelDocument& model);

}  // namespace scalecalc
