// The answer of `scalecalc model` as an Output (docs/schema/model.schema.json).
#pragma once

#include "model_card/model_figures.h"
#include "report/output.h"

namespace scalecalc {

Output model_output(const ModelSpec& model, const ModelQuestion& question, const ModelFigures& figures);

/// `scalecalc model list` (docs/schema/model-list.schema.json).
Output model_list_output(const std::vector<ModelSpec>& models, const std::vector<std::string>& filters);

/// The scores' share of the forward pass over the length of a sequence.
Plot model_plot(const ModelFigures& found);

}  // namespace scalecalc
