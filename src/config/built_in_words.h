// Names and words that the program knows, in files of configs/words, which are compiled in with the catalog.
#pragma once

#include <string_view>

#include "config/node.h"

namespace scalecalc {

/// The document of a built-in file by its path, "words/kernels.yaml". Its texts are where its caller keeps it.
ConfigNode built_in_words(std::string_view path);

}  // namespace scalecalc
