// From a serving question as typed to systems whose cost can be asked: files loaded, formats, engine and coefficients
// chosen, defaults recorded as assumptions.
#pragma once

#include "serve/serve_question.h"

namespace scalecalc {

/// Fills in model, systems and assumptions. UserError for everything that is wrong with the question.
ServeAnswer resolve_serving(const ServeQuestion& question, const Catalog& catalog);

/// Draft model of --speculative; the model's own heads as a model of one layer for "mtp". UserError if it has none.
ModelSpec draft_model(const SpeculationAsked& asked, const ModelSpec& model, const Catalog& catalog);

}  // namespace scalecalc
