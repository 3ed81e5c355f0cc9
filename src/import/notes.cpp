// Turns the notes of an import into the sentences that `--explain` and assumptions show.
#include "import/notes.h"

#include <fmt/format.h>

#include "base/text.h"

namespace scalecalc {

std::vector<ImportStatement> import_statements(const ImportNotes& notes) {
  const std::string file = notes.file;
  std::vector<ImportStatement> out;
  out.push_back({fmt::format("{} read as a model of family '{}'", file, notes.family), "docs/howto/import-model.md",
                 false, "family", notes.family});
  std::vector<std::string> filled;
  for (const ImportNotes::Default& d : notes.defaults) filled.push_back(fmt::format("{} {}", d.key, d.value));
  if (!filled.empty()) {
    out.push_back({fmt::format("not in the file, filled in: {}", join(filled, ", ")),
                   fmt::format("defaults of the {} class of transformers", notes.family), false, "filled_in",
                   join(filled, ", ")});
  }
  for (const std::string& remark : notes.remarks) out.push_back({remark, file, false, "remark"});
  for (const std::string& warning : notes.warnings) out.push_back({warning, file, true, "warning"});
  return out;
}

}  // namespace scalecalc
