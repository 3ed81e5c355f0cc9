// Published serving figures: what was served, on what, by which engine, and what was measured. docs/accuracy.md
// describes the files they are read from.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "validate/measurement.h"

namespace scalecalc {

/// What was running when the figure was taken.
enum class ServePhase : std::uint8_t {
  kPrefill,     ///< prompts alone
  kDecode,      ///< steps of a fixed batch
  kThroughput,  ///< a job from start to end: one static batch, or a queue that is never empty
  kOnline,      ///< requests that come and go
};
inline constexpr std::array<std::string_view, 4> kServePhaseNames{"prefill", "decode", "throughput", "online"};

/// The one figure of a row that is predicted and scored.
enum class ServeFigure : std::uint8_t {
  kPrefillTime,  ///< seconds of one batch of prompts
  kStepTime,     ///< seconds between two tokens of a sequence
  kBatchTime,    ///< seconds of a static batch, prompts included
  kOutputRate,   ///< output tokens/s of the whole deployment
  kInputRate,    ///< prompt tokens/s of the whole deployment
};
inline constexpr std::array<std::string_view, 5> kServeFigureNames{"prefill", "tpot", "batch", "output_rate",
                                                                   "input_rate"};

/// Degrees as printed; what a source does not say is absent.
struct ServeDegrees {
  std::optional<std::int64_t> tp, pp, ep, dp, attention_dp;
  std::optional<std::int64_t> tp_x;  ///< ways d_model is divided too: weights in two dimensions
  bool gathered = false;             ///< weights are gathered instead
};

struct ServeMeasurement : MeasuredFacts {
  std::string engine;
  bool complete = true;  ///< false: the source leaves out what a prediction needs
  ServeDegrees degrees;
  std::string weights_dtype, kv_dtype;
  ServePhase phase = ServePhase::kDecode;
  std::optional<double> input_len, output_len;
  std::optional<double> batch;            ///< sequences in flight over all replicas
  std::optional<double> tokens_per_chip;  ///< of prompts in one pass, where the source gives no batch
  bool saturated = false;                 ///< the engine took what its memory holds

  ServeFigure figure = ServeFigure::kStepTime;
  double measured = 0;                ///< seconds, or tokens/s
  std::optional<double> first_token;  ///< seconds to the first token, beside the figure

  /// What it is grouped by: "1-32", "33-256", "257-", "saturated".
  std::string batch_class() const;
};

/// Whether the document's rows are of serving: its first one names a phase.
bool is_serving(const ConfigNode& document);

/// A list of rows, or a map with `rows` and the `models` and `sources` they share. UserError with every problem found.
std::vector<ServeMeasurement> read_serve_measurements(const ConfigNode& document);

}  // namespace scalecalc
