// Rules of chapters 7 and 8 of the scaling book ("All About Transformer Inference", "Serving LLaMA 3-70B on TPUs").
#pragma once

#include <optional>

#include "bounds/bound_inputs.h"

namespace scalecalc {

/// What the serving rules read beside BoundInputs: formats, sizes of weights and KV cache, chips. Defaults and figures
/// given outright are recorded as assumptions.
class ServingInputs {
 public:
  /// Keeps references. UserError for figures that contradict each other.
  ServingInputs(const BoundInputs& in, BoundList& list);

  const BoundServing& job() const { return job_; }
  const BoundInputs& base() const { return in_; }
  const HardwareSpec& hw() const { return in_.chip().hw(); }

  FlopsPerSecondOf<Traced> compute;         ///< C at the serving format
  FlopsPerSecondOf<Traced> peak;            ///< the same by the data sheet, which an MFU is a share of
  BytesPerSecondOf<Traced> hbm;             ///< W_hbm
  std::optional<BytesOf<Traced>> capacity;  ///< of one chip; absent if it is not published
  BytesOf<Traced> weight_element;           ///< b_w
  BytesOf<Traced> activation_element;       ///< b_a

  BytesOf<Traced> weights;                         ///< all of them
  BytesOf<Traced> weights_read;                    ///< in a decode step: towers stay where they are
  std::optional<BytesOf<Traced>> kv_per_token;     ///< all layers; absent if the model is only a size
  std::optional<BytesOf<Traced>> kv_per_sequence;  ///< of `context` tokens
  std::optional<BytesOf<Traced>> total_bytes;      ///< of the batch, if given outright
  std::optional<SecondsOf<Traced>> step_time;      ///< of decoding, if given outright
  std::optional<SecondsOf<Traced>> prefill_time;   ///< of one prompt: as given, or from --prompt and --mfu
  bool uniform = true;                             ///< the cache grows by the same for every token
  std::optional<Traced> context;                   ///< S
  std::optional<Traced> prompt;
  std::optional<Traced> generate;
  std::optional<Traced> batch;  ///< B, if the question names exactly one
  std::optional<Traced> chips;  ///< n: as asked, or the smallest slice that holds the weights

  std::optional<Quantity<kUsdDim - kSecondDim, Traced>> price;  ///< of one chip

  FlopsOf<Traced> forward_flops() const;  ///< of one token: 2 P_act
  /// B above which the matmuls compute longer than their weights load: C b_w / (2 W_hbm), with experts times E / k,
  /// since each expert sees k / E of the batch (book ch. 7, Linear operations and question 5).
  Traced critical_batch() const;
  /// Share of the prompt that the prefix cache leaves; nothing if the question says nothing of a cache.
  std::optional<Traced> prompt_left() const;
  /// Smallest power of two of at least so many chips that the vendor builds as one slice; nothing if there is none.
  std::optional<Traced> slice_for(const Traced& least, const char* name) const;

 private:
  void formats(BoundList& list);
  BytesOf<Traced> own_weights() const;
  BytesOf<Traced> weights_held() const;
  void sizes(BoundList& list);
  void lengths(BoundList& list);
  void kv_of_model(const ModelSpec& model, BoundList& list);
  void times(BoundList& list);
  void read_price(BoundList& list);
  void count_chips(BoundList& list);

  const BoundInputs& in_;
  const BoundServing& job_;
  BytesOf<Traced> kv_element_;
};

// The groups of rules, one function each; what a rule lacks is named by leave_out once for each flag.

/// One point for each batch asked about, until asked to end.
void serving_points(const ServingInputs& in, BoundList& list, const Stop& stop);

}  // namespace scalecalc
