// The families of Hugging Face models and how each is read. A family is one row: its names, what an absent
// tie_word_embeddings means, and a function. Defaults are those of the family's class in the transformers library.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "import/hf_architecture.h"
#include "import/hf_keys.h"

namespace scalecalc {

struct HfFamily;

/// One reading: the keys in, the architecture out. Problems go to the keys.
struct HfReading {
  const HfFamily& family;
  HfKeys& keys;
  HfArchitecture& model;
};

struct HfFamily {
  std::string_view name;         ///< its model_type
  std::string_view other_names;  ///< more of them, with spaces between
  bool tied = false;             ///< what an absent tie_word_embeddings means
  void (*read)(HfReading&) = nullptr;
  std::string_view refused = {};  ///< why a known family is not read; empty if it is
};

std::span<const HfFamily> hf_families();
/// By model_type, or null.
const HfFamily* find_hf_family(std::string_view model_type);
/// By the stem of a class such as Qwen3MoeForCausalLM, or null.
const HfFamily* find_hf_family_of_class(std::string_view architecture);
/// Names of the families that are read, sorted.
std::vector<std::string> known_hf_families();

// Readers, by where they stand: hf_families.cpp and hf_families_dense.cpp; hf_families_moe.cpp and
// hf_families_sparse.cpp; hf_families_hybrid.cpp and hf_families_state.cpp;
// hf_families_encoder.cpp and hf_families_streams.cpp.
void read_llama(HfReading& r);
void read_mistral(HfReading& r);
void read_qwen2(HfReading& r);
void read_qwen3(HfReading& r);
void read_gemma(HfReading& r);
void read_gemma2(HfReading& r);
void read_gemma3(HfReading& r);
void read_phi3(HfReading& r);
void read_cohere(HfReading& r);
void read_cohere2(HfReading& r);
void read_olmo(HfReading& r);
void read_olmo2(HfReading& r);
void read_apertus(HfReading& r);
void read_phi3small(HfReading& r);
void read_rwkv4(HfReading& r);
void read_rwkv5(HfReading& r);
void read_rwkv6(HfReading& r);
void read_rwkv7(HfReading& r);
void read_recurrent_gemma(HfReading& r);
void read_bailing_moe_linear(HfReading& r);
void read_bailing_hybrid(HfReading& r);
void read_longcat_flash_ngram(HfReading& r);
void read_electra(HfReading& r);
void read_deberta(HfReading& r);
void read_deberta_v2(HfReading& r);
void read_gpt2(HfReading& r);
void read_gptj(HfReading& r);
void read_gpt_neox(HfReading& r);
void read_falcon(HfReading& r);
void read_bloom(HfReading& r);
void read_opt(HfReading& r);
void read_nemotron(HfReading& r);
void read_nemotron_nas(HfReading& r);
void read_ministral3(HfReading& r);
void read_mimo(HfReading& r);
void read_olmo3(HfReading& r);
void read_smollm3(HfReading& r);
void read_seed_oss(HfReading& r);
void read_exaone4(HfReading& r);
void read_internlm2(HfReading& r);
void read_qwen(HfReading& r);
void read_stablelm(HfReading& r);
void read_starcoder2(HfReading& r);
void read_phi(HfReading& r);
void read_glm(HfReading& r);
void read_glm4(HfReading& r);
void read_glm4v(HfReading& r);
void read_chatglm(HfReading& r);
void read_ernie4_5(HfReading& r);
void read_hunyuan_dense(HfReading& r);
void read_arcee(HfReading& r);
void read_internlm(HfReading& r);
void read_internlm3(HfReading& r);
void read_helium(HfReading& r);
void read_exaone_moe(HfReading& r);
void read_youtu_llm(HfReading& r);
void read_mpt(HfReading& r);
void read_gpt_bigcode(HfReading& r);
void read_gpt_neo(HfReading& r);
void read_gemma4(HfReading& r);

void read_mixtral(HfReading& r);
void read_qwen2_moe(HfReading& r);
void read_qwen3_moe(HfReading& r);
void read_deepseek_v2(HfReading& r);
void read_deepseek_v3(HfReading& r);
void read_deepseek_v32(HfReading& r);
void read_glm4_moe(HfReading& r);
void read_gpt_oss(HfReading& r);
void read_llama4(HfReading& r);
void read_minimax_m2(HfReading& r);
void read_mimo_v2_flash(HfReading& r);
void read_dbrx(HfReading& r);
void read_grok(HfReading& r);
void read_glm4_moe_lite(HfReading& r);
void read_mistral4(HfReading& r);
void read_minicpm3(HfReading& r);
void read_olmoe(HfReading& r);
void read_afmoe(HfReading& r);
void read_laguna(HfReading& r);
void read_solar_open(HfReading& r);
void read_phimoe(HfReading& r);
void read_dots1(HfReading& r);
void read_hy_v3(HfReading& r);
void read_bailing_moe_v2(HfReading& r);
void read_ernie4_5_moe(HfReading& r);
void read_glm4v_moe(HfReading& r);
void read_hunyuan_moe(HfReading& r);
void read_deepseek(HfReading& r);
void read_granitemoe(HfReading& r);
void read_bailing_moe(HfReading& r);
void read_longcat_flash(HfReading& r);
void read_minimax_m3(HfReading& r);
void read_step3p7(HfReading& r);

void read_qwen3_next(HfReading& r);
void read_qwen3_5(HfReading& r);
void read_qwen3_5_moe(HfReading& r);
void read_minimax(HfReading& r);
void read_jamba(HfReading& r);
void read_nemotron_h(HfReading& r);
void read_granitemoehybrid(HfReading& r);
void read_bamba(HfReading& r);
void read_falcon_h1(HfReading& r);
void read_mamba(HfReading& r);
void read_pure_mamba2(HfReading& r);
void read_lfm2(HfReading& r);
void read_lfm2_moe(HfReading& r);
void read_kimi_linear(HfReading& r);

void read_bert(HfReading& r);
void read_modernbert(HfReading& r);
void read_distilbert(HfReading& r);
void read_mpnet(HfReading& r);
void read_nomic_bert(HfReading& r);
void read_t5(HfReading& r);
void read_t5gemma(HfReading& r);
void read_bart(HfReading& r);
void read_mbart(HfReading& r);
void read_pegasus(HfReading& r);
void read_marian(HfReading& r);
void read_whisper(HfReading& r);
void read_mllama(HfReading& r);
void read_deepseek_v4(HfReading& r);
void read_gemma3n(HfReading& r);

}  // namespace scalecalc
