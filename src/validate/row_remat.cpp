#include "validate/row_remat.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "validate/row_question.h"

namespace scalecalc {
namespace {

/// Megatron-LM's --recompute-modules (megatron/core/transformer/transformer_config.py) by the operations they run
/// again, and the thriftless ones of MaxText's remat_policy (layers/decoders.py), which keep every matmul's output.
/// `mlp` is the MLP of dense layers, `moe` the layer of experts with its router.
struct Module {
  std::string_view name;
  std::vector<std::string> operations;
};

const std::vector<Module>& modules() {
  static const std::vector<Module> kAll{
      {"core_attn", {"attention"}},
      {"mlp", {"mlp gate projection", "mlp up projection", "mlp activation"}},
      {"mla_up_proj", {"query up-projection", "key/value up-projection"}},
      {"layernorm", {"norm output"}},
      {"moe_act", {"mlp activation"}},
      {"moe",
       {"router", "expert dispatch and combine", "expert gate projection", "expert up projection", "mlp activation",
        "expert down projection"}},
      {"minimal", {"norm output", "attention", "mlp activation"}},
      {"minimal_flash", {"norm output", "mlp activation"}},
  };
  return kAll;
}

/// "selective: mla_up_proj, mlp" and the like; nothing for other words.
std::optional<std::vector<std::string>> operations_of(std::string_view text) {
  constexpr std::string_view kStart = "selective: ";
  if (!text.starts_with(kStart)) return std::nullopt;
  text.remove_prefix(kStart.size());
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t comma = text.find(", ");
    const std::string_view word = text.substr(0, comma);
    const auto found =
        std::find_if(modules().begin(), modules().end(), [&](const Module& module) { return module.name == word; });
    if (found == modules().end()) return std::nullopt;
    out.insert(out.end(), found->operations.begin(), found->operations.end());
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 2);
  }
  return out;
}

std::optional<std::int64_t> number_at(std::string_view text, std::size_t at) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  return std::from_chars(text.data() + at, end, value).ec == std::errc() ? std::optional(value) : std::nullopt;
}

/// Layers of the model that "full on 15 of 61 layers", "full on 1 layer per virtual stage (32 of 61 layers)", "full (5
/// layers)" and "selective: every 2nd layer" recompute as a whole. The count stands last but for "of 61".
std::optional<double> layers_said(std::string_view text, std::int64_t layers) {
  if (text == "selective: every 2nd layer") return static_cast<double>(layers) / 2;
  if (!text.starts_with("full ") || text.find("layer") == std::string_view::npos) return std::nullopt;
  const std::size_t bracket = text.find('(');
  const std::size_t digit = text.find_first_of("0123456789", bracket == std::string_view::npos ? 0 : bracket);
  if (digit == std::string_view::npos) return std::nullopt;
  const auto found = number_at(text, digit);
  return found && *found > 0 && *found <= layers ? std::optional(static_cast<double>(*found)) : std::nullopt;
}

}  // namespace

RowRemat remat_of(const Measurement& row, const ModelSpec& model, std::int64_t stages) {
  const std::int64_t layers = model.layers();
  std::string text = lower_case(row.recompute);
  RowRemat out;
  constexpr std::string_view kOffload = "+offload";
  if (text.ends_with(kOffload)) {
    text.erase(text.size() - kOffload.size());
    out.offload = kOffloadActivations;
    if (text == "selective") text = "full";
  }
  if (text == "unknown") return out;
  out.layers = 0;
  if (const auto said = layers_said(text, layers)) {
    out.policy = Remat::kFull;
    const auto stage = static_cast<std::int64_t>(std::lround(*said / static_cast<double>(stages)));
    if (*said < static_cast<double>(layers)) out.layers = std::max<std::int64_t>(1, stage);
    return out;
  }
  if (auto operations = operations_of(text)) {
    out.policy = Remat::kSelective;
    out.operations = std::move(*operations);
    return out;
  }
  // torchtitan's per-op policy is what its `selective` means.
  if (text == "selective" || text == "selective: per-op") {
    out.policy = Remat::kSelective;
  } else if (text == "none" || text == "full") {
    out.policy = text == "none" ? Remat::kNone : Remat::kFull;
  } else {
    throw NotPredicted("remat of chosen modules is not modelled", row.recompute);
  }
  return out;
}

}  // namespace scalecalc
