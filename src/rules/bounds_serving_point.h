// One point of the curve that `scalecalc bounds --batch 1..512` draws: decoding with one number of sequences. A figure
// whose inputs the question does not give is absent.
#pragma once

#include <optional>
#include <string>

#include "base/scalar.h"

namespace scalecalc {

inline constexpr Dim kPerSecondDim{.second = -1};
using PerSecondTraced = Quantity<kPerSecondDim, Traced>;
using UsdTraced = Quantity<kUsdDim, Traced>;

struct ServingPoint {
  Traced batch;                                ///< sequences
  std::optional<BytesOf<Traced>> kv_bytes;     ///< of all sequences
  std::optional<BytesOf<Traced>> total_bytes;  ///< with the weights
  std::optional<bool> fits;

  std::optional<SecondsOf<Traced>> kv_time;       ///< reading the KV cache
  std::optional<SecondsOf<Traced>> load_time;     ///< reading the weights
  std::optional<SecondsOf<Traced>> compute_time;  ///< FLOPs of the matmuls
  std::optional<SecondsOf<Traced>> mlp_time;      ///< the longer of the two
  std::optional<bool> mlp_compute_bound;
  std::optional<SecondsOf<Traced>> bandwidth_step;  ///< the step if FLOPs took no time
  std::optional<PerSecondTraced> bandwidth_tokens_per_s;
  std::optional<SecondsOf<Traced>> step;
  std::string bound_by;  ///< "weights", "KV cache", "compute"; empty if the step was given or is unknown
  std::optional<PerSecondTraced> tokens_per_s;
  std::optional<PerSecondTraced> tokens_per_s_per_chip;

  std::optional<SecondsOf<Traced>> answer_time;  ///< all tokens of one answer
  std::optional<PerSecondTraced> requests_per_s;
  std::optional<PerSecondTraced> requests_per_s_per_chip;
  std::optional<Traced> finished_per_step;  ///< sequences
  std::optional<Traced> evicted_per_step;   ///< tokens leaving the KV cache
  std::optional<Traced> prefill_servers;    ///< for each server that generates
  std::optional<UsdTraced> usd_per_million_tokens;
};

}  // namespace scalecalc
