// Every chip of the catalog with every command that takes one, and every model with those that a model is asked of:
// none may end a process by a signal, nor without a word.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "relations/question.h"

namespace scalecalc::relations {

/// Each chip in five sizes: alone, two, a node, two nodes, and the most chips that it joins.
std::vector<Words> catalog_questions();

struct CatalogWalk {
  std::uint64_t sample = 0;  ///< questions chosen by the seed; 0: all
  std::uint64_t seed = 0;
};
/// Asks each question in a process of its own and prints what does not hold, as a command to repeat. Returns the exit
/// status: 1 if something does not.
int walk_catalog(const CatalogWalk& walk);

/// Returns a seed that another commit changes.
std::uint64_t seed_of_commit();

}  // namespace scalecalc::relations
