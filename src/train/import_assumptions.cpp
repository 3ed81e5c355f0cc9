#include "train/import_assumptions.h"

namespace scalecalc {

std::vector<Assumption> import_assumptions(const ModelDocument& model) {
  std::vector<Assumption> out;
  if (!model.import) return out;
  for (const ImportStatement& said : import_statements(*model.import)) {
    Assumption read{said.text, "--set", said.source, said.warning};
    read.as("import." + said.key);
    if (!said.value.empty()) read.is(said.value);
    out.push_back(std::move(read));
  }
  return out;
}

}  // namespace scalecalc
