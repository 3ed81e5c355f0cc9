// From a serving question as typed to systems whose cost can be asked: files loaded, formats, engine and coefficients
// chosen, defaults recorded as assumptions.
#pragma once

#include "serve/serve_question.h"

namespace scalecalc {

/// Fills in model, systems and assumptions. UserError for everything that is wrong with the question.
ServeAnswer resolve_serving(const ServeQuestion& question, const Catalog& catalog);

/// What engines multiply in when weights are stored so: 8- and 4-bit floats as such where the chip has a rate for them,
/// mxfp4 with 8-bit activations on chips of 4-bit floats, all else in 16 bits. Integers are widened as they are read;
/// --flops int8 says otherwise. Of a model whose experts have a format of their own, that one decides.
DType usual_compute(const QuantizationSpec& weights, const HardwareSpec& hw);

/// Draft model of --speculative; the model's own heads as a model of one layer for "mtp". UserError if it has none.
ModelSpec draft_model(const SpeculationAsked& asked, const ModelSpec& model, const Catalog& catalog);

}  // namespace scalecalc
