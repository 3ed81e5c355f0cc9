// The answer of `scalecalc model` as a Sheet (docs/schema/model.schema.json).
#pragma once

#include "primitives/model_figures.h"
#include "report/sheet.h"

namespace scalecalc {

Sheet model_sheet(const ModelSpec& model, const ModelQuestion& question, const ModelFigures& figures);

/// `scalecalc model list` (docs/schema/model-list.schema.json).
Sheet model_list_sheet(const std::vector<ModelSpec>& models, const std::vector<std::string>& filters);

}  // namespace scalecalc
