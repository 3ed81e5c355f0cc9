// What a serving cost is about, the layout, the model, the machine, formats, and the rules of the engine.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "model/expert_load.h"
#include "spec/hardware_spec.h"
#include "spec/load_stack.h"
#include "spec/model_spec.h"

namespace scalecalc {

// How a model is spread over the chips that serve it.

/// What moves between the tensor ranks (Pope et al. 2022, arXiv:2211.05102, section 3.2).
enum class ServeScheme : std::uint8_t {
  kStationary1d,  ///< weights stay, divided along d_ff and heads; activations are reduced
  kStationary2d,  ///< weights stay, divided along d_model too; both halves of each reduction shrink
  kGathered,      ///< sequences are divided, and the weights of each layer gathered
};
inline constexpr std::array<std::string_view, 3> kServeSchemeNames{"1d", "2d", "gathered"};
constexpr std::string_view name_of(ServeScheme scheme) { return kServeSchemeNames[static_cast<std::size_t>(scheme)]; }

/// Degrees of one deployment. The chips of a pipeline stage, group(), are tensor x context x attention-data ranks; the
/// experts of a layer lie over all of them, ep x etp = group().
struct ServeLayout {
  std::int64_t tp = 1;            ///< tensor ranks
  std::int64_t tp_x = 1;          ///< of these the ways d_model is divided; 1 unless the scheme is 2d
  std::int64_t pp = 1;            ///< pipeline stages
  std::int64_t ep = 1;            ///< expert ranks
  std::int64_t etp = 1;           ///< tensor ranks inside one expert
  std::int64_t attention_dp = 1;  ///< groups of ranks that attend to sequences of their own and share the experts
  std::int64_t cp = 1;            ///< ranks that each keep a part of every context
  std::int64_t dp = 1;            ///< replicas of all of it
  ServeScheme scheme = ServeScheme::kStationary1d;
  bool ep_overlap = false;  ///< a step's two halves take turns: experts' exchange of one runs under the other's work

  std::int64_t group() const { return tp * cp * attention_dp; }
  std::int64_t replica_chips() const { return group() * pp; }
  std::int64_t chips() const { return replica_chips() * dp; }

  friend auto operator<=>(const ServeLayout&, const ServeLayout&) = default;
};

/// "tp 8, pp 2, dp 4": the degrees above 1; "one chip" if there are none.
std::string describe(const ServeLayout& layout);

/// How engines send tokens to experts of other ranks.
inline constexpr ExpertDispatch kServedDispatch = ExpertDispatch::kDeepEp;

/// Formats chosen independently of each other.
struct ServeFormats {
  QuantizationSpec weights;               ///< part by part
  WeightFormat kv = WeightFormat::kBf16;  ///< keys and values; recurrent states stay fp32
  DType compute = DType::kBf16;           ///< of the matmuls with weights
  double activation_bytes = 2;            ///< of an element between operations
};

struct StackRelease;
struct SupportFact;

/// Keeps pointers: they must outlive whatever is made of it.
struct ServingSystem {
  const ModelSpec* model = nullptr;
  const HardwareSpec* hw = nullptr;
  Efficiency efficiency;  ///< of the engine on the chip, or the ideal
  ServeFormats formats;
  EngineRules engine;          ///< how much of the memory it gives to the cache, and what it keeps for itself
  std::optional<double> mfu;   ///< of the peak that prompts reach, in place of the coefficients
  double chunk_tokens = 8192;  ///< most tokens of prompts in one step, of all attention-data ranks or of each

  /// Those that one rank takes.
  double rank_chunk(const ServeLayout& layout) const {
    const double ranks = engine.divides_chunk ? static_cast<double>(layout.attention_dp) : 1;
    return std::max(1.0, chunk_tokens / ranks);
  }
  /// In the place of the chip's expert_skew and expert_imbalance, the copies below counted.
  std::shared_ptr<const ExpertLoad> expert_load;
  std::int64_t redundant_experts = 0;            ///< copies of routed experts, over the expert ranks
  std::shared_ptr<const StackRelease> launcher;  ///< what the engine's release can run; null: nothing is known
};

}  // namespace scalecalc
