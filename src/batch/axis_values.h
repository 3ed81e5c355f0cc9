// The values of one axis of a study file: lists, ranges, names of the catalog, files.
#pragma once

#include <string>

#include "batch/study.h"
#include "config/catalog.h"
#include "config/fields.h"

namespace scalecalc {

/// More than this along one axis is a mistake, or two axes.
inline constexpr std::size_t kMostAxisValues = 1'000'000;

/// What stands under the name of an axis; problems go to `problems`, and then the column may be empty.
StudyColumn read_column(const std::string& name, const ConfigNode& node, const Catalog& catalog, Problems& problems);

}  // namespace scalecalc
