// `scalecalc model`: parameters and FLOPs of a network by part, where attention takes over, and what remat keeps. All
// of it is summed over the operation lists that training and memory use (model/ops.h).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/explained.h"
#include "base/scalar.h"
#include "model/kv_cache.h"
#include "model/ops.h"
#include "model/stored_bytes.h"
#include "spec/dtype.h"
#include "spec/model_spec.h"

namespace scalecalc {

inline constexpr std::size_t kPartCount = 9;
/// JSON keys of the parts, in the order of Part.
inline constexpr std::array<std::string_view, kPartCount> kPartKeys{"attention", "mlp",  "experts", "router", "norms",
                                                                    "embedding", "head", "mtp",     "towers"};

struct ModelQuestion {
  double seq = 0;                ///< tokens of a sequence
  double batch_seqs = 1;         ///< sequences that layer FLOPs and kept tensors are counted for
  bool causal = true;            ///< attention skips the masked half; the book counts the whole square
  std::optional<DType> weights;  ///< absent: as the checkpoint stores them, bf16 if nothing says how
  DType activations = DType::kBf16;
  DType kv = DType::kBf16;
  std::optional<double> kv_bytes;     ///< of an element of the cache with its scales; absent: the format's
  std::optional<double> index_bytes;  ///< what the index of the checkpoint's files says, all tensors together
  std::optional<double> against;      ///< parameters of another model, to compare with
  std::vector<double> contexts;       ///< sequence lengths of the table of attention's share
  bool contexts_asked = false;        ///< and that somebody asked for these
};

/// Weights and forward FLOPs of one token, by part.
struct PartSums {
  std::array<Traced, kPartCount> parameters;
  std::array<FlopsOf<Traced>, kPartCount> matmul;  ///< 2 x the weights a token meets (book ch. 4)
  FlopsOf<Traced> scores;                          ///< query-key and weight-value products of attention
  FlopsOf<Traced> scans;                           ///< state updates and reads of recurrences
};

struct LayerFigures {
  std::string kind;         ///< "full/dense"
  std::int64_t layers = 0;  ///< of this kind
  PartSums sums;            ///< of one layer; FLOPs per token
};

/// Attention against everything else at one sequence length.
struct ContextFigures {
  double seq = 0;
  FlopsOf<Traced> forward;  ///< per token
  Traced attention_share;   ///< of the forward FLOPs, scores alone
  Traced to_matmul;         ///< score FLOPs over matmul FLOPs of the layers
};

/// Tensors one remat policy keeps between forward and backward, for the whole batch on one chip.
struct KeptFigures {
  std::string policy;
  Traced per_token;                      ///< elements per token, all layers
  std::optional<FlopsOf<Traced>> again;  ///< FLOPs of matmuls, scores and scans a token that the backward runs again
  BytesOf<Traced> bytes;                 ///< of the batch
  std::string source;
};

struct ModelFigures {
  PartSums sums;                          ///< of the network; MTP modules, a part of their own, are in no total
  Traced total;                           ///< distinct weights
  Traced active;                          ///< without the experts a token does not visit
  Traced book_total;                      ///< without norms and routers, as the book adds parts up
  Traced book_active;                     ///< the same of the active parameters
  std::array<Traced, kPartCount> shares;  ///< of book_total
  BytesOf<Traced> bytes;                  ///< of `total` as they are stored
  BytesOf<Traced> book_bytes;
  std::vector<StoredWeights>
      stored;                ///< `bytes` by part and format, as the checkpoint has them; empty if asked otherwise
  FlopsOf<Traced> forward;   ///< per token
  FlopsOf<Traced> training;  ///< per token, forward and backward
  FlopsOf<Traced> two_n;     ///< the rule of thumb 2 x active
  FlopsOf<Traced> six_n;     ///< the rule of thumb 6 x active
  std::vector<LayerFigures> layers;
  std::vector<ContextFigures> contexts;
  std::optional<double> break_even;         ///< sequence length at which scores cost as much as the layers' matmuls
  Traced break_even_rule;                   ///< 8 D (book ch. 4)
  std::optional<double> projections_equal;  ///< the same, as much as the projections of attention
  Traced projections_rule;                  ///< 2 D (book ch. 4, question 5)
  std::vector<KeptFigures> kept;
  double kv_elements_per_token = 0;         ///< keys, values and index keys of one token, all layers
  double kv_bytes_per_token = 0;            ///< in the KV format
  double kv_unlimited_bytes_per_token = 0;  ///< of that, in layers that keep the whole sequence
  double kv_bytes_per_sequence = 0;         ///< of `seq` tokens, windows, chunks and states included
  double kv_state_bytes = 0;                ///< of that, what does not grow with each token
  std::vector<LayerCache> cache;            ///< by kind of layer that keeps something
  std::vector<Assumption> assumptions;
};

ModelFigures model_figures(const ModelSpec& model, const ModelQuestion& question);

}  // namespace scalecalc
