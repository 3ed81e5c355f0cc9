#include "train/import_assumptions.h"

namespace scalecalc {

std::vector<Assumption> import_assumptions(const ModelDocument& model) {
  std::vector<Assumption> out;
  if (!model.import) return out;
  for (const ImportStatement& said : import_statements(*model.import)) {
    out.push_back({said.text, "--set", said.source, said.warning});
  }
  return out;
}

}  // namespace scalecalc
