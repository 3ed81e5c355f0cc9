// Points of serving as launch files of engines, and such files as pins.
#pragma once

#include "launch/reading.h"
#include "launch/writing.h"
#include "serve/serve_question.h"

namespace scalecalc {

struct ServingLaunch {
  const ServeLayout& layout;
  const ModelSpec& model;
  const ServingSystem& system;
  double sequences = 0;  ///< in flight on each attention-data rank
  const ServeQuestion& question;
  std::int64_t node_chips = 8;  ///< of a host
  LaunchedModel names{};
  std::string_view pool = "both";  ///< "prefill" or "decode" where there are two
};

LaunchTerms serving_terms(const ServingLaunch& point);

/// UserError that cites the rule, as training_arguments().
std::vector<LaunchArgument> serving_arguments(const LaunchFramework& framework, const ServingLaunch& point);

struct ImportedServing {
  LaunchReading reading;
  ServePins pins;
};
/// `model` may be null.
ImportedServing import_serving(const LaunchFramework& framework, const std::vector<LaunchSetting>& settings,
                               const ModelSpec* model);

}  // namespace scalecalc
