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

struct ModuleFamily {
  std::string_view types;  ///< model_types, with spaces between
  std::span<const LaunchAdapter> modules;
};
constexpr std::array kModuleFamilies{
    ModuleFamily{"phi3 phi3_v phi4mm phi4_multimodal", kPhi3Modules},
    ModuleFamily{"glm glm4", kGlm4Modules},
    ModuleFamily{"gpt_neox bloom falcon RefinedWeb RefinedWebModel", kNeoxModules},
    ModuleFamily{"gpt2 gpt_bigcode", kGpt2Modules},
    ModuleFamily{"opt gptj phi", kOptModules},
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
      const bool off = !setting.values.empty() && (setting.values[0] == "false" || setting.values[0] == "False");
      if (is_key(row.key, setting.key) && !off && setting.open.empty()) return &setting;
    }
  }
  return nullptr;
}

}  // namespace

AdapterModules adapter_modules(const LaunchFramework& framework, std::string_view model_type) {
  if (!framework.peft) return {framework.adapters, framework.default_adapters, framework.title};
  AdapterModules out{kLlamaModules, 0, model_type.empty() ? framework.title : model_type};
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
