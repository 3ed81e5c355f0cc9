// Names of the catalog that a wrong name may have been meant as.
#pragma once

#include <string>
#include <vector>

#include "config/catalog.h"

namespace scalecalc {

/// The name of a file of the catalog and its other names.
struct Labels {
  std::string name;
  std::vector<std::string> aliases;
};

/// The names, not the aliases, that `wrong` may stand for, likeliest first. A model that is named without its version
/// (llama70b) gives every version. A chip that is written as its driver or a shop writes it (H100-80GB, A100-SXM4-80GB)
/// gives the chips with the same designation, and of these those that share more of its words first. Any other name
/// gives the nearest by spelling. Empty if nothing is near.
std::vector<std::string> near_names(CatalogKind kind, const std::vector<Labels>& labels, const std::string& wrong);

}  // namespace scalecalc
