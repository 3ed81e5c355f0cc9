// Plans of training as launch files, and launch files as layouts.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "launch/reading.h"
#include "launch/writing.h"
#include "network/placement.h"
#include "plan/request.h"
#include "plan/stack_supports.h"

namespace scalecalc {

struct TrainingLaunch {
  const Layout& layout;
  const ModelSpec& model;
  const Workload& workload;
  const HardwareSpec& hw;
  const Slice& slice;
  const Placement& placement;
  LaunchedModel names{};
  std::int64_t devices_per_chip = 1;  ///< that JAX shows
};

/// The plan in the words of the tables; what has no meaning in it is absent.
LaunchTerms training_terms(const TrainingLaunch& plan);

/// The arguments of the plan. UserError that cites the rule: what the release refuses, what the spelling cannot say,
/// and what the arguments, read back, would not say. `release` may be null: nothing is known.
std::vector<LaunchArgument> training_arguments(const LaunchFramework& framework, const TrainingLaunch& plan,
                                               const StackRelease* release);

/// What a launch file says of a layout.
struct ImportedLayout {
  const LaunchFramework* framework = nullptr;
  LaunchReading reading;
  LayoutFilter pins;
  std::optional<FineTune> tune;  ///< adapters; absent: the whole model trains, or nothing is said
};

/// `model` may be null: then what is said of its shape is not held against it. `chips` of the question are for a file
/// that does not say how many; `model_type` as LaunchedModel has it. UserError with places.
ImportedLayout import_training(const LaunchFramework& framework, const std::vector<LaunchSetting>& settings,
                               const ModelSpec* model, const StackRuntime* runtime, std::optional<std::int64_t> chips,
                               std::int64_t cores, std::string_view model_type = {});

/// Whether a model has the shape that a file says, as far as it says one: layers, widths, heads, experts. False where
/// it says too little to tell models apart.
bool has_shape(const ModelSpec& model, const LaunchTerms& said);

/// Whether a dimension of a layout decides anything in it.
bool matters(std::string_view dimension, const Layout& layout, bool moe);

}  // namespace scalecalc
