// Adds the notes of an imported model to the assumptions of an answer, for every command.
#include "train/import_assumptions.h"

#include "model/checkpoint_check.h"
#include "spec/load.h"

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
  if (model.index) {
    CheckpointCheck check = check_checkpoint(load_model(model.as_imported), *model.index);
    Assumption read{std::move(check.text), "--set", model.index->file, check.warning};
    read.as("import.index");
    if (model.index->total_bytes) read.is(*model.index->total_bytes);
    out.push_back(std::move(read));
  }
  return out;
}

}  // namespace scalecalc
