// `scalecalc sensitivity serve`: what a model server's times and throughput answer to: the serving question asked again
// with ten per cent more, and less, of one rate.
#pragma once

#include <optional>
#include <vector>

#include "sensitivity/rates.h"
#include "serve/serve_question.h"

namespace scalecalc {

struct ServeSensitivityQuestion {
  ServeQuestion serve;  ///< of one machine; its best point is asked about
  bool fixed = false;   ///< layout and batch stay: no search but the first
};

/// Ten per cent of one rate.
struct ServeRateChange {
  HardwareRate rate;
  /// The best point's layout and batch with more of the rate and with less; absent: they do not fit, or nothing was
  /// searched any more.
  std::optional<ServePoint> more, less;
  std::optional<ServePoint> free;  ///< the best of all layouts and batches with more
};

struct ServeSensitivity {
  ServeSensitivityQuestion question;
  ServeAnswer answer;                  ///< of the rates as they are
  std::optional<ServePoint> kept;      ///< its best, asked for by its layout and batch
  std::vector<ServeRateChange> rates;  ///< what helps the objective most first
  bool complete = true;                ///< not interrupted
};

/// How much better a point is than another by the objective: 0.05 is 5 % more tokens, or 5 % less time.
double serving_gain(const ServePoint& point, const ServePoint& than, ServeObjective objective);

ServeSensitivity serving_sensitivity(const ServeSensitivityQuestion& question, const Catalog& catalog,
                                     const Stop& stop = {});

}  // namespace scalecalc
