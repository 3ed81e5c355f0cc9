#include "validate/row_remat.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/text.h"
#include "validate/row_question.h"

namespace scalecalc {
namespace {

struct Policy {
  std::string_view words;
  Remat remat;
};

/// Megatron-LM's --recompute-modules, torchtitan's per-op policy.
constexpr std::array kPolicies{Policy{"none", Remat::kNone},
                               Policy{"full", Remat::kFull},
                               Policy{"selective", Remat::kSelective},
                               Policy{"selective: layernorm, moe_act", Remat::kSelective},
                               Policy{"selective: mla_up_proj", Remat::kSelective},
                               Policy{"selective: per-op", Remat::kSelective},
                               Policy{"selective: core_attn", Remat::kAttention},
                               Policy{"selective: mlp", Remat::kMlp},
                               Policy{"selective: mla_up_proj, mlp", Remat::kMlp},
                               Policy{"selective: moe", Remat::kMlp}};

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
  const auto* const found =
      std::find_if(kPolicies.begin(), kPolicies.end(), [&](const Policy& policy) { return policy.words == text; });
  if (found == kPolicies.end()) throw NotPredicted("remat of chosen modules is not modelled", row.recompute);
  const bool of_dense_layers = model.moe && text.ends_with("mlp");
  out.policy = of_dense_layers ? Remat::kSelective : found->remat;
  return out;
}

}  // namespace scalecalc
