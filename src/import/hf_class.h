// The class under `architectures`: which head a checkpoint of a family has, and whether it is a draft for another
// model.
#pragma once

#include <string>
#include <string_view>

#include "import/hf_families.h"

namespace scalecalc {

enum class HfHead {
  kUnsaid,      ///< no class, or one whose name does not tell
  kVocabulary,  ///< ForCausalLM, ForConditionalGeneration, ...
  kNone,        ///< the bare model, of embeddings
  kSequence,    ///< ForSequenceClassification: one row for each label
  kToken,       ///< ForTokenClassification: with a bias
  kReplaced,    ///< ForPreTraining of ELECTRA: whether a token was replaced
  kReward,      ///< ForRewardModel: one row, as the family has it
  kOther,       ///< one that is not modelled
};

struct HfClass {
  const ConfigNode* node = nullptr;  ///< where it stands; null: the file names none
  std::string_view stem;             ///< of the family: "Qwen3Moe"
  HfHead head = HfHead::kUnsaid;
  bool eagle3 = false;            ///< an EAGLE-3 draft of this family's layer
  std::string_view refused = {};  ///< why a draft of another kind is not read
};

/// What the first name under `architectures` says; `map` is the file or the language model in it.
HfClass hf_class(const ConfigNode& map);

/// Reports a class that is not one of the reading's family.
void check_class(HfReading& r, const HfClass& named);
/// Gives the model the head of `head`, in place of the vocabulary's that its family has.
void set_head(HfReading& r, const HfClass& named);
/// Turns the one layer that was read into an EAGLE-3 draft.
void read_eagle3(HfReading& r);

}  // namespace scalecalc
