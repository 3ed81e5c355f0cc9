#include "import/hf_families.h"

#include <algorithm>
#include <array>

namespace scalecalc {
namespace {

constexpr std::array kFamilies{
    HfFamily{"llama", "", false, read_llama},
    HfFamily{"mistral", "", false, read_mistral},
    HfFamily{"mixtral", "", false, read_mixtral},
    HfFamily{"qwen2", "", false, read_qwen2},
    HfFamily{"qwen2_moe", "", false, read_qwen2_moe},
    HfFamily{"qwen3", "qwen3_vl qwen3_vl_text", false, read_qwen3},
    HfFamily{"qwen3_moe", "qwen3_vl_moe qwen3_vl_moe_text", false, read_qwen3_moe},
    HfFamily{"qwen3_next", "", false, read_qwen3_next},
    HfFamily{"qwen3_5", "qwen3_5_text", false, read_qwen3_5},
    HfFamily{"qwen3_5_moe", "qwen3_5_moe_text", false, read_qwen3_5_moe},
    HfFamily{"gemma", "", true, read_gemma},
    HfFamily{"gemma2", "", true, read_gemma2},
    HfFamily{"gemma3", "gemma3_text", true, read_gemma3},
    HfFamily{"phi3", "", false, read_phi3},
    HfFamily{"deepseek_v2", "", false, read_deepseek_v2},
    HfFamily{"deepseek_v3", "kimi_k2 kimi_k25", false, read_deepseek_v3},
    HfFamily{"deepseek_v32", "glm_moe_dsa", false, read_deepseek_v32},
    HfFamily{"glm4_moe", "", false, read_glm4_moe},
    HfFamily{"gpt_oss", "", false, read_gpt_oss},
    HfFamily{"llama4", "llama4_text", false, read_llama4},
    HfFamily{"minimax", "minimax_text_01 minimax_m1", false, read_minimax},
    HfFamily{"minimax_m2", "", false, read_minimax_m2},
    HfFamily{"mimo_v2_flash", "", false, read_mimo_v2_flash},
    HfFamily{"cohere", "", true, read_cohere},
    HfFamily{"cohere2", "", true, read_cohere2},
    HfFamily{"olmo2", "", false, read_olmo2},
    HfFamily{"dbrx", "", false, read_dbrx},
    HfFamily{"grok-1", "grok", true, read_grok},
    HfFamily{"gpt2", "", true, read_gpt2},
    HfFamily{"gptj", "", false, read_gptj},
    HfFamily{"gpt_neox", "", false, read_gpt_neox},
    HfFamily{"falcon", "", true, read_falcon},
    HfFamily{"bloom", "", true, read_bloom},
    HfFamily{"opt", "", true, read_opt},
    HfFamily{"jamba", "", false, read_jamba},
    HfFamily{"nemotron", "", false, read_nemotron},
    HfFamily{"nemotron_h", "", false, read_nemotron_h},
    HfFamily{"nemotron-nas", "", false, read_nemotron_nas},
    HfFamily{"deepseek_v4", "deepseek_ref", false, nullptr,
             "its compressed attention, grouped output projections and fourfold residual streams are not modelled"},
    HfFamily{"gemma4", "gemma4_text", false, nullptr,
             "its shared keys and values, second head shape and per-layer embeddings are not modelled"},
    HfFamily{"kimi_linear", "kimi_k3", false, nullptr, "Kimi delta attention is not modelled"},
    HfFamily{"minimax_m3", "minimax_m3_vl minimax_m3_text", false, nullptr,
             "its block-sparse attention is not modelled"},
    HfFamily{"step3p7", "", false, nullptr, "its parameters could not be checked against a published count"},
};

/// Whether one of the family's names satisfies `matches`.
template <class Match>
bool any_name(const HfFamily& family, const Match& matches) {
  if (matches(family.name)) return true;
  for (std::string_view rest = family.other_names; !rest.empty();) {
    const std::size_t space = std::min(rest.find(' '), rest.size());
    if (matches(rest.substr(0, space))) return true;
    rest.remove_prefix(std::min(space + 1, rest.size()));
  }
  return false;
}

template <class Match>
const HfFamily* find_family(const Match& matches) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(),
                                  [&](const HfFamily& family) { return any_name(family, matches); });
  return found == kFamilies.end() ? nullptr : &*found;
}

/// Letters and digits in small letters: GPTNeoX and gpt_neox are one name.
std::string plain(std::string_view name) {
  std::string out;
  for (const char c : name) {
    if (c >= 'A' && c <= 'Z') out += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) out += c;
  }
  return out;
}

}  // namespace

std::span<const HfFamily> hf_families() { return kFamilies; }

const HfFamily* find_hf_family(std::string_view model_type) {
  return find_family([&](std::string_view name) { return name == model_type; });
}

const HfFamily* find_hf_family_of_class(std::string_view architecture) {
  for (const std::string_view ending : {"ForCausalLM", "ForConditionalGeneration", "LMHeadModel"}) {
    if (architecture.ends_with(ending)) architecture.remove_suffix(ending.size());
  }
  const std::string wanted = plain(architecture);
  return find_family([&](std::string_view name) { return plain(name) == wanted; });
}

std::vector<std::string> known_hf_families() {
  std::vector<std::string> out;
  for (const HfFamily& family : kFamilies) {
    if (family.refused.empty()) out.emplace_back(family.name);
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace scalecalc
