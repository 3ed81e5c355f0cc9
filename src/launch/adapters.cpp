// Translates the target modules of adapters between a plan and the names of frameworks.
#include "launch/adapters.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::uint8_t kLoraQkv = kLoraQ | kLoraK | kLoraV;

// Linear layers by family, as huggingface/transformers has them. PEFT's all-linear is every one but the head's.
constexpr LaunchAdapter kAllLinear{kLoraAttention | kLoraMlp, "all-linear"};
constexpr std::array kLlamaModules{
    LaunchAdapter{kLoraQ, "q_proj"},       LaunchAdapter{kLoraK, "k_proj"},
    LaunchAdapter{kLoraV, "v_proj"},       LaunchAdapter{kLoraO, "o_proj"},
    LaunchAdapter{kLoraGate, "gate_proj"}, LaunchAdapter{kLoraUp, "up_proj"},
    LaunchAdapter{kLoraDown, "down_proj"}, kAllLinear,
};
/// 06053b8 src/transformers/models/phi3/modular_phi3.py.
constexpr std::array kPhi3Modules{LaunchAdapter{kLoraQkv, "qkv_proj"}, LaunchAdapter{kLoraO, "o_proj"},
                                  LaunchAdapter{kLoraGate | kLoraUp, "gate_up_proj"},
                                  LaunchAdapter{kLoraDown, "down_proj"}, kAllLinear};
/// 08c5327 src/transformers/models/glm4/modular_glm4.py: attention of Llama, MLP of Phi-3.
constexpr std::array kGlm4Modules{LaunchAdapter{kLoraQ, "q_proj"},
                                  LaunchAdapter{kLoraK, "k_proj"},
                                  LaunchAdapter{kLoraV, "v_proj"},
                                  LaunchAdapter{kLoraO, "o_proj"},
                                  LaunchAdapter{kLoraGate | kLoraUp, "gate_up_proj"},
                                  LaunchAdapter{kLoraDown, "down_proj"},
                                  kAllLinear};
// Without a gate; of these all but dense and dense_h_to_4h stand in PEFT's own lists (kPeftSource).
constexpr std::array kNeoxModules{LaunchAdapter{kLoraQkv, "query_key_value"}, LaunchAdapter{kLoraO, "dense"},
                                  LaunchAdapter{kLoraUp, "dense_h_to_4h"}, LaunchAdapter{kLoraDown, "dense_4h_to_h"},
                                  kAllLinear};
constexpr std::array kGpt2Modules{LaunchAdapter{kLoraQkv, "c_attn"}, LaunchAdapter{kLoraO | kLoraDown, "c_proj"},
                                  LaunchAdapter{kLoraUp, "c_fc"}, kAllLinear};
constexpr std::array kOptModules{LaunchAdapter{kLoraQ, "q_proj"}, LaunchAdapter{kLoraK, "k_proj"},
                                 LaunchAdapter{kLoraV, "v_proj"}, LaunchAdapter{kLoraO, "out_proj"},
                                 LaunchAdapter{kLoraUp, "fc1"},   LaunchAdapter{kLoraDown, "fc2"},
                                 LaunchAdapter{kLoraUp, "fc_in"}, LaunchAdapter{kLoraDown, "fc_out"},
                                 LaunchAdapter{kLoraO, "dense"},  kAllLinear};
// Code of checkpoints that transformers had none for.
/// rebellions-sw/optimum-rbln and huggingface/text-generation-inference: exaone (c_fc_0 is the gate).
constexpr std::array kExaoneModules{
    LaunchAdapter{kLoraQ, "q_proj"},    LaunchAdapter{kLoraK, "k_proj"},
    LaunchAdapter{kLoraV, "v_proj"},    LaunchAdapter{kLoraO, "out_proj"},
    LaunchAdapter{kLoraGate, "c_fc_0"}, LaunchAdapter{kLoraUp, "c_fc_1"},
    LaunchAdapter{kLoraDown, "c_proj"}, kAllLinear,
};
/// jrd77/Baichuan2-13B-Chat a56c793 modeling_baichuan.py.
constexpr std::array kBaichuanModules{LaunchAdapter{kLoraQkv, "W_pack"},     LaunchAdapter{kLoraO, "o_proj"},
                                      LaunchAdapter{kLoraGate, "gate_proj"}, LaunchAdapter{kLoraUp, "up_proj"},
                                      LaunchAdapter{kLoraDown, "down_proj"}, kAllLinear};
/// IntMeGroup/HarmonyIQA 79a7bf6 modeling_internlm2.py: w1 goes through the activation function.
constexpr std::array kInternLm2Modules{LaunchAdapter{kLoraQkv, "wqkv"}, LaunchAdapter{kLoraO, "wo"},
                                       LaunchAdapter{kLoraGate, "w1"},  LaunchAdapter{kLoraUp, "w3"},
                                       LaunchAdapter{kLoraDown, "w2"},  kAllLinear};
/// zhangningboo/Qwen-7B e7a368b modeling_qwen.py: w2 goes through it; both blocks end in a c_proj.
constexpr std::array kQwenModules{LaunchAdapter{kLoraQkv, "c_attn"}, LaunchAdapter{kLoraO | kLoraDown, "c_proj"},
                                  LaunchAdapter{kLoraGate, "w2"}, LaunchAdapter{kLoraUp, "w1"}, kAllLinear};
/// DracoUnion/chatglm3-6b-int4-lora 61985f2 modeling_chatglm.py: the first of the MLP is gate and up.
constexpr std::array kChatGlmModules{LaunchAdapter{kLoraQkv, "query_key_value"}, LaunchAdapter{kLoraO, "dense"},
                                     LaunchAdapter{kLoraGate | kLoraUp, "dense_h_to_4h"},
                                     LaunchAdapter{kLoraDown, "dense_4h_to_h"}, kAllLinear};
/// microsoft/Phi-3-small-8k-instruct modeling_phi3_small.py (recall); vllm-project/vllm models/phi3_small.py.
constexpr std::array kPhi3SmallModules{LaunchAdapter{kLoraQkv, "query_key_value"}, LaunchAdapter{kLoraO, "dense"},
                                       LaunchAdapter{kLoraGate | kLoraUp, "up_proj"},
                                       LaunchAdapter{kLoraDown, "down_proj"}, kAllLinear};
/// ml-explore/mlx-lm mlx_lm/models/dbrx.py, of the checkpoint's names; its experts are no linear layers.
constexpr std::array kDbrxModules{LaunchAdapter{kLoraQkv, "Wqkv"}, LaunchAdapter{kLoraO, "out_proj"}};
// Without a gate too: src/transformers/models/*/modeling_*.py (recall).
constexpr std::array kMptModules{LaunchAdapter{kLoraQkv, "Wqkv"}, LaunchAdapter{kLoraO, "out_proj"},
                                 LaunchAdapter{kLoraUp, "up_proj"}, LaunchAdapter{kLoraDown, "down_proj"}, kAllLinear};
constexpr std::array kGptNeoModules{
    LaunchAdapter{kLoraQ, "q_proj"},
    LaunchAdapter{kLoraK, "k_proj"},
    LaunchAdapter{kLoraV, "v_proj"},
    LaunchAdapter{kLoraO, "out_proj"},
    LaunchAdapter{kLoraUp, "c_fc"},
    LaunchAdapter{kLoraDown, "c_proj"},
    kAllLinear,
};
constexpr std::array kStarcoder2Modules{
    LaunchAdapter{kLoraQ, "q_proj"},
    LaunchAdapter{kLoraK, "k_proj"},
    LaunchAdapter{kLoraV, "v_proj"},
    LaunchAdapter{kLoraO, "o_proj"},
    LaunchAdapter{kLoraUp, "c_fc"},
    LaunchAdapter{kLoraDown, "c_proj"},
    kAllLinear,
};
constexpr std::array kCodegenModules{LaunchAdapter{kLoraQkv, "qkv_proj"}, LaunchAdapter{kLoraO, "out_proj"},
                                     LaunchAdapter{kLoraUp, "fc_in"}, LaunchAdapter{kLoraDown, "fc_out"}, kAllLinear};
/// Of any family: PEFT looks for linear layers itself.
constexpr std::array kUnknownModules{kAllLinear};

struct ModuleFamily {
  std::string_view types;  ///< model_types, with spaces between
  std::span<const LaunchAdapter> modules;
};
constexpr std::array kModuleFamilies{
    // Families whose attention, and MLP where it is no experts', has Llama's names: src/transformers/models/*/ and code
    // beside the checkpoints (recall).
    ModuleFamily{
        "llama llama4 llama4_text mllama mllama_text_model mistral ministral3 mixtral qwen2 qwen2_moe qwen2_vl "
        "qwen2_vl_text qwen2_5_vl qwen2_5_vl_text qwen2_5_omni_text qwen3 qwen3_moe qwen3_vl qwen3_vl_text "
        "qwen3_vl_moe qwen3_vl_moe_text gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text hunyuan "
        "qwen3_omni_moe_text granite granitemoe granitemoeshared "
        "olmo olmo2 olmo3 olmoe cohere cohere2 smollm3 seed_oss exaone4 stablelm minicpm internlm xverse arcee "
        "nemotron nemotron-nas deci decilm apertus mimo hunyuan_v1_dense hunyuan_dense_v1 hunyuan_v1_moe "
        "hunyuan_moe_v1 ernie4_5 ernie4_5_moe gpt_oss glm4_moe glm4v_moe glm4v_moe_text phimoe dots1 minimax_m2 "
        "deepseek deepseek_v2 deepseek_v3 kimi_k2",
        kLlamaModules},
    ModuleFamily{"phi3 phi3_v phi4mm phi4_multimodal", kPhi3Modules},
    ModuleFamily{"glm glm4 glm4v glm4v_text", kGlm4Modules},
    ModuleFamily{"exaone", kExaoneModules},
    ModuleFamily{"baichuan", kBaichuanModules},
    ModuleFamily{"internlm2", kInternLm2Modules},
    ModuleFamily{"qwen", kQwenModules},
    ModuleFamily{"chatglm", kChatGlmModules},
    ModuleFamily{"phi3small", kPhi3SmallModules},
    ModuleFamily{"dbrx", kDbrxModules},
    ModuleFamily{"mpt", kMptModules},
    ModuleFamily{"gpt_neo", kGptNeoModules},
    ModuleFamily{"starcoder2", kStarcoder2Modules},
    ModuleFamily{"codegen", kCodegenModules},
    ModuleFamily{"gpt_neox bloom falcon RefinedWeb RefinedWebModel", kNeoxModules},
    ModuleFamily{"gpt2 gpt_bigcode", kGpt2Modules},
    ModuleFamily{"opt gptj phi bart", kOptModules},
};

/// What PEFT takes where no modules are named: huggingface/peft 00073fe src/peft/utils/constants.py,
/// TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING. Of a type that is not there it asks for them.
struct PeftTakes {
  std::string_view types;
  std::uint8_t targets = 0;
};
constexpr std::array kPeftTakes{
    PeftTakes{"llama llama4 mistral mixtral stablelm gemma gemma2 gemma3_text qwen2 qwen3 opt bart gptj gpt_neo",
              kLoraQ | kLoraV},
    PeftTakes{"gpt2 bloom gpt_neox chatglm gpt_bigcode mpt RefinedWebModel RefinedWeb falcon codegen", kLoraQkv},
    PeftTakes{"phi", kLoraQ | kLoraV | kLoraUp | kLoraDown},
};
constexpr std::string_view kPeftSource =
    "huggingface/peft 00073fe src/peft/utils/constants.py, TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING";

bool is_one_of(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (words.substr(0, end) == word) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

/// "qkv_proj (q,k,v), o_proj (o)".
std::string module_list(const AdapterModules& modules) {
  std::vector<std::string> out;
  for (const LaunchAdapter& each : modules.named) {
    const bool plain = std::has_single_bit(each.targets) || each.name == kAllLinear.name;
    out.push_back(plain ? std::string(each.name) : fmt::format("{} ({})", each.name, target_names(each.targets)));
  }
  return join(out, ", ");
}

const LaunchSetting* modules_said(const LaunchFramework& framework, const std::vector<LaunchSetting>& settings) {
  const auto found = std::find_if(settings.begin(), settings.end(), [&](const LaunchSetting& setting) {
    return std::any_of(framework.rows.begin(), framework.rows.end(), [&](const LaunchRow& row) {
      return row.value == "[@lora_modules]" && is_key(row.key, setting.key);
    });
  });
  return found == settings.end() ? nullptr : &*found;
}

/// A switch that says a format of the base, and is on.
const LaunchSetting* base_switch(const LaunchFramework& framework, const std::vector<LaunchSetting>& settings,
                                 std::string_view says) {
  for (const LaunchRow& row : framework.rows) {
    if (row.says != says) continue;
    for (const LaunchSetting& setting : settings) {
      const bool off = !setting.values.empty() && is_off(setting.values.front());
      if (is_key(row.key, setting.key) && !off && setting.open.empty()) return &setting;
    }
  }
  return nullptr;
}

}  // namespace

AdapterModules adapter_modules(const LaunchFramework& framework, std::string_view model_type) {
  if (!framework.peft) return {framework.adapters, framework.default_adapters, framework.title};
  AdapterModules out{kUnknownModules, 0, model_type.empty() ? framework.title : model_type};
  if (model_type.empty()) out.named = kLlamaModules;
  for (const ModuleFamily& family : kModuleFamilies) {
    if (is_one_of(family.types, model_type)) out.named = family.modules;
  }
  if (model_type.empty()) out.taken = kPeftTakes.front().targets;
  for (const PeftTakes& each : kPeftTakes) {
    if (is_one_of(each.types, model_type)) out.taken = each.targets;
  }
  return out;
}

std::string modules_of(const LaunchFramework& framework, std::string_view model_type, std::uint8_t targets) {
  const AdapterModules modules = adapter_modules(framework, model_type);
  if (modules.named.size() == 1) {
    throw UserError(fmt::format("{} cannot say this plan: names of the modules of {} are not known", framework.title,
                                modules.whose),
                    "plan without --lora, or with --export megatron-bridge, whose names are its own");
  }
  std::vector<std::string> out;
  // One projection each first: what is fused is for those that have no name of their own.
  for (int most = 1; most <= 3; ++most) {
    for (const LaunchAdapter& adapter : modules.named) {
      if (std::popcount(adapter.targets) != most || (adapter.targets & targets) != adapter.targets) continue;
      out.emplace_back(adapter.name);
      targets &= static_cast<std::uint8_t>(~adapter.targets);
    }
  }
  if (targets == 0) return join(out, " ");
  throw UserError(
      fmt::format("{} cannot say this plan: no module of {} is {} alone", framework.title, modules.whose,
                  target_names(targets)),
      fmt::format("ask with --lora-targets of whole modules: {}; {}", module_list(modules), framework.source));
}

std::optional<FineTune> adapters_in(const LaunchFramework& framework, std::string_view model_type,
                                    const std::vector<LaunchSetting>& settings, LaunchReading& reading,
                                    std::vector<Diagnostic>& problems) {
  const std::string base = reading.terms.word("base").value_or("recipe");
  const LaunchSetting* four = base_switch(framework, settings, "base=nf4");
  const LaunchSetting* eight = base_switch(framework, settings, "base=int8");
  if (four != nullptr && eight != nullptr) {
    problems.push_back({eight->where, fmt::format("{} beside {}", eight->key, four->key),
                        "a base has one format: huggingface/trl bc13ae6 trl/trainer/model_config.py refuses both"});
  }
  const auto* const format = std::find(kBaseFormatNames.begin(), kBaseFormatNames.end(), base);
  if (reading.terms.word("tune") != "lora") {
    if (format != kBaseFormatNames.end()) {
      problems.push_back({reading.places.at("base"), fmt::format("a base in {} trains adapters alone", base),
                          "the file says none; say them, or leave the format out"});
    }
    return std::nullopt;
  }
  FineTune out{.rank = reading.terms.number("lora_rank").value_or(16), .targets = 0};
  const AdapterModules known = adapter_modules(framework, model_type);
  const std::string modules = reading.terms.word("lora_modules").value_or("");
  for (std::size_t at = 0; at < modules.size();) {
    const std::size_t end = std::min(modules.find_first_of(" ,", at), modules.size());
    const std::string name = modules.substr(at, end - at);
    at = end + 1;
    if (name.empty()) continue;
    const auto found =
        std::find_if(known.named.begin(), known.named.end(), [&](const auto& m) { return m.name == name; });
    if (found == known.named.end()) {
      problems.push_back({reading.places.at("lora_modules"),
                          fmt::format("no projection is known by the name {}", in_quotes(name)),
                          fmt::format("{} knows {}", known.whose, module_list(known))});
      continue;
    }
    out.targets |= found->targets;
  }
  if (modules.empty()) {
    const LaunchSetting* open = modules_said(framework, reading.open);
    if (known.taken == 0 && open == nullptr) {
      const auto place = reading.places.find("tune");
      problems.push_back({place == reading.places.end() ? SourceSpan{} : place->second,
                          fmt::format("PEFT takes no modules of {} by itself", known.whose),
                          fmt::format("name them: {} ({})", module_list(known), kPeftSource)});
    }
    out.targets = known.taken;
    if (open == nullptr) reading.defaults.push_back("adapters on " + target_names(out.targets));
  }
  if (format != kBaseFormatNames.end()) out.base = static_cast<BaseFormat>(format - kBaseFormatNames.begin());
  return out;
}

}  // namespace scalecalc
