// Finds files of configs/words among the built-in ones, for the tables that are made from them once.
#include "config/built_in_words.h"

#include <algorithm>

#include "base/check.h"
#include "config/catalog.h"

namespace scalecalc {

ConfigNode built_in_words(std::string_view path) {
  const auto files = embedded_catalog();
  const auto found =
      std::find_if(files.begin(), files.end(), [&](const EmbeddedFile& file) { return file.path == path; });
  check(found != files.end(), "the files of words are built in");
  return document_of(*found);
}

}  // namespace scalecalc
