// By what names a launch file knows the model and the chip of a question.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/catalog.h"
#include "launch/cluster.h"
#include "launch/framework.h"

namespace scalecalc {

/// By what names the model of a question is known. A repository is the first alias that looks like one.
LaunchedModel launched_model(const Catalog& catalog, const std::string& model, const std::vector<std::string>& sets);

/// A draft of speculation: its repository, or as the question names it; empty for the model's own heads.
std::string launched_draft(const Catalog& catalog, const std::string& draft);

/// What the file of a model says for launch files alone: what gates its MLP (empty for the usual), and its family.
LaunchedModel facts_of_file(const Catalog& catalog, const std::string& model, const std::string& assume);

/// Of a chip by its name in the catalog or its file; nothing where neither is.
std::optional<TpuNames> names_of_tpu(const Catalog& catalog, const std::string& hardware);

}  // namespace scalecalc
