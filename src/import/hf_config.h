// A Hugging Face config.json as a model document, with notes on what was read, filled in and left alone.
#pragma once

#include <string>

#include "config/node.h"
#include "import/notes.h"

namespace scalecalc {

struct ImportedModel {
  ConfigNode document;  ///< schema scalecalc-model/1; its places are those of the config.json
  ImportNotes notes;
};

/// Whether a document is a config.json: it is none of ours and names a model_type or architectures, or has sizes by
/// Hugging Face's names.
bool is_hf_config(const ConfigNode& document);

/// `beside` is the document of hf_quant_config.json in the same directory, or null. `assume` forces the reading of a
/// family (empty: the file says which) and is then among the warnings. UserError with every problem: a family that is
/// not known or not read, sizes that are missing or do not fit each other.
ImportedModel import_hf_config(const ConfigNode& config, const ConfigNode* beside = nullptr,
                               const std::string& assume = "");

}  // namespace scalecalc
