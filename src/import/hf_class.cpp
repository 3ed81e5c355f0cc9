// Reads which head a checkpoint has from its class, and reads drafts of speculation such as EAGLE-3. Drafts: EAGLE-3,
// arXiv:2503.01840 section 3; shapes of its class as SpecForge and vLLM train and load it.
#include "import/hf_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace scalecalc {
namespace {

struct Ending {
  std::string_view text;
  HfHead head;
};
constexpr std::array kEndings{Ending{"ForCausalLM", HfHead::kVocabulary},
                              Ending{"ForConditionalGeneration", HfHead::kVocabulary},
                              Ending{"ForImageTextToText", HfHead::kVocabulary},
                              Ending{"LMHeadModel", HfHead::kVocabulary},
                              Ending{"ForMaskedLM", HfHead::kVocabulary},
                              Ending{"ForSequenceClassification", HfHead::kSequence},
                              Ending{"ForTokenClassification", HfHead::kToken},
                              Ending{"ForPreTraining", HfHead::kReplaced},
                              Ending{"ForRewardModel", HfHead::kReward},
                              Ending{"ForProcessRewardModel", HfHead::kReward},
                              Ending{"ChatModel", HfHead::kUnsaid},  // wrappers of a language model with its head
                              Ending{"MTModel", HfHead::kVocabulary},
                              Ending{"Model", HfHead::kNone}};

/// Kinds of drafts by a word of their classes.
struct DraftWord {
  std::string_view word;
  std::string_view refused;
};
constexpr std::string_view kBlocks = "it drafts a block of tokens in one pass, which speculation here does not cost";
constexpr std::array kDrafts{DraftWord{"peagle", "of its layers only the first reads the target's states"},
                             DraftWord{"dflash", kBlocks},
                             DraftWord{"dspark", kBlocks},
                             DraftWord{"domino", kBlocks},
                             DraftWord{"medusa", "its heads stand on the target's last layer"},
                             DraftWord{"eagle", "of the kinds of EAGLE, EAGLE-3 is read"},
                             DraftWord{"speculator", "of the drafts, EAGLE-3 is read"},
                             DraftWord{"draft", "of the drafts, EAGLE-3 is read"},
                             DraftWord{"nextn", "MTP modules are drafted with by draft=mtp of their own model"},
                             DraftWord{"mtp", "MTP modules are drafted with by draft=mtp of their own model"}};

std::string_view without(std::string_view text, std::string_view ending) {
  if (text.ends_with(ending)) text.remove_suffix(ending.size());
  return text;
}

/// LlamaForCausalLMEagle3, Eagle3LlamaForCausalLM, LlamaEagle3: what is left around the word.
std::string_view around_eagle3(std::string_view name) {
  const std::size_t at = name.find("Eagle3");
  return at == 0 ? name.substr(6) : name.substr(0, at);
}

/// Rows of the head: of id2label, or num_labels; two if the file says neither, as PretrainedConfig has it.
Size read_labels(HfReading& r) {
  const ConfigNode* named = r.keys.find_on_top({"id2label"});
  if (named != nullptr && named->kind == ConfigNode::Kind::kMap && !named->entries.empty()) {
    return {static_cast<std::int64_t>(named->entries.size()), named->span};
  }
  const ConfigNode* count = r.keys.find_on_top({"num_labels"});
  if (count != nullptr && !count->is_null()) {
    if (const auto read = r.keys.whole(*count, "num_labels", {1, 1e6})) return *read;
  }
  r.keys.defaulted("num_labels", "2", kClassDefault);
  return {2, r.keys.span()};
}

}  // namespace

HfClass hf_class(const ConfigNode& map) {
  const ConfigNode* list = map.find("architectures");
  if (list == nullptr || list->items.empty()) return {};
  HfClass out{.node = &list->items.front()};
  out.stem = out.node->text;
  const std::string small = lower_case(out.node->text);
  for (const DraftWord& kind : kDrafts) {
    if (small.find(kind.word) == std::string::npos) continue;
    out.eagle3 = kind.word == "eagle" && out.stem.find("Eagle3") != std::string_view::npos;
    out.refused = out.eagle3 ? std::string_view{} : kind.refused;
    if (out.eagle3) out.stem = around_eagle3(out.stem);
    break;
  }
  out.head = HfHead::kOther;
  for (const Ending& ending : kEndings) {
    if (!out.stem.ends_with(ending.text)) continue;
    out.stem.remove_suffix(ending.text.size());
    out.head = ending.head;
    break;
  }
  if (const std::size_t task = out.stem.rfind("For"); out.head == HfHead::kOther && task != std::string_view::npos) {
    out.stem = out.stem.substr(0, task);
  }
  out.stem = without(out.stem, "Model");
  return out;
}

void check_class(HfReading& r, const HfClass& named) {
  if (named.node == nullptr) return;
  const std::string said = in_quotes(named.node->text);
  if (!named.refused.empty()) {
    r.keys.problems().add(named.node->span, fmt::format("{} is a draft that is not read: {}", said, named.refused));
    return;
  }
  if (find_hf_family_of_class(named.stem) != &r.family) {
    r.keys.problems().add(
        named.node->span,
        fmt::format("architecture {} is none of family '{}', which 'model_type' says", said, r.family.name),
        fmt::format("--assume {} reads the file as that family all the same", r.family.name));
  } else if (named.head == HfHead::kOther || (named.head == HfHead::kReplaced && r.family.name != "electra")) {
    r.keys.problems().add(named.node->span, fmt::format("the head of architecture {} is not modelled", said),
                          "read: ForCausalLM, ForConditionalGeneration, LMHeadModel, ForSequenceClassification, "
                          "ForTokenClassification, Model");
  }
}

namespace {

/// What stands before the head of a bidirectional family's classes. BERT's bare class has a pooler, and so in effect
/// has its head for sequences; ModernBERT projects before every head.
void set_encoder_head(HfReading& r, const HfClass& named) {
  HfArchitecture& m = r.model;
  const bool modern = m.encoder == HfEncoder::kModernBert;
  HfHead head = named.head;
  if (head == HfHead::kUnsaid || head == HfHead::kOther) {
    r.keys.defaulted("architectures", "the bare model", "the file names no class");
    head = HfHead::kNone;
  }
  if (head == HfHead::kVocabulary) {
    m.head_dense = "transform";
    m.head_bias = true;
    return;
  }
  const bool replaced = head == HfHead::kReplaced;
  m.head_outputs = head == HfHead::kNone ? Size{0, r.keys.span()} : replaced ? Size{1, r.keys.span()} : read_labels(r);
  m.head_bias = head != HfHead::kNone;
  m.tied_embeddings = false;
  const bool pools = head == HfHead::kSequence || (head == HfHead::kNone && m.encoder == HfEncoder::kBert);
  if (!modern && pools) m.head_dense = "pooler";
  if (replaced) m.head_dense = "dense";
  if (modern && head != HfHead::kNone) m.head_dense = "transform";
  r.keys.remark(head == HfHead::kNone ? "the model has no head"
                                      : fmt::format("the model has a head of {} labels", m.head_outputs->value));
}

/// A score of the last state, or of each step's, projected straight or through a layer with biases.
void set_reward(HfReading& r, const HfClass& named) {
  HfArchitecture& m = r.model;
  if (m.reward == HfReward::kNone) {
    r.keys.problems().add(named.node->span,
                          fmt::format("the head of architecture {} is not modelled", in_quotes(named.node->text)));
    return;
  }
  const bool steps = named.node->text.ends_with("ForProcessRewardModel");
  m.head_outputs = steps ? read_labels(r) : Size{1, named.node->span};
  m.tied_embeddings = false;
  m.head_bias = m.reward == HfReward::kDense;
  if (m.head_bias) m.head_dense = "pooler";
  r.keys.remark(fmt::format("{} has a head of {} scores", named.node->text, m.head_outputs->value));
}

}  // namespace

void set_head(HfReading& r, const HfClass& named) {
  HfArchitecture& m = r.model;
  if (named.head == HfHead::kReward) return set_reward(r, named);
  if (m.encoder != HfEncoder::kNone) return set_encoder_head(r, named);
  switch (named.head) {
    case HfHead::kUnsaid:
    case HfHead::kVocabulary:
    case HfHead::kReplaced:
    case HfHead::kReward:
    case HfHead::kOther: return;
    case HfHead::kNone:
      if (m.headed_model) return;
      m.head_outputs = Size{0, named.node->span};
      r.keys.remark(fmt::format("{} has no head", named.node->text));
      break;
    case HfHead::kSequence:
    case HfHead::kToken:
      m.head_outputs = read_labels(r);
      r.keys.remark(fmt::format("{} has a head of {} labels", named.node->text, m.head_outputs->value));
      break;
  }
  m.head_bias = named.head == HfHead::kToken;
  if (m.classifies_dense && named.head != HfHead::kNone) {
    m.head_dense = "pooler";
    m.head_bias = true;
  }
  m.tied_embeddings = false;
}

void read_eagle3(HfReading& r) {
  HfArchitecture& m = r.model;
  if (m.layer_count() != 1 || r.family.name != "llama") {
    r.keys.problems().add(r.keys.span(), fmt::format("an EAGLE-3 draft is read as one layer of Llama's, not as {} of "
                                                     "family '{}'",
                                                     m.layer_count(), r.family.name));
    return;
  }
  HfDraft draft{r.keys.size_or({"target_hidden_size"}, m.d_model.value)};
  const ConfigNode* states = r.keys.find({"eagle_config.eagle_aux_hidden_state_layer_ids"});
  if (states != nullptr && states->kind == ConfigNode::Kind::kSequence && !states->items.empty()) {
    draft.target_layers = {static_cast<std::int64_t>(states->items.size()), states->span};
  }
  if (r.keys.has({"sliding_window"})) r.keys.remark("sliding_window has no effect on a draft's layer");
  m.head_outputs = r.keys.required({"draft_vocab_size"}, "vocabulary of the draft");
  m.tied_embeddings = false;
  m.draft = draft;
  r.keys.remark("an EAGLE-3 draft: its embedding is the target's");
}

}  // namespace scalecalc
