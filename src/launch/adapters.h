// Adapters of a plan in the words of launch files: modules by the names that a framework, or the model's family in
// Hugging Face's transformers, has for them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "launch/framework.h"
#include "launch/reading.h"
#include "model/fine_tune.h"

namespace scalecalc {

/// The modules of a model that may carry adapters, and which do where nobody names any.
struct AdapterModules {
  std::span<const LaunchAdapter> named;
  std::uint8_t taken = 0;    ///< bits of FineTune::targets; 0: modules must be named
  std::string_view whose{};  ///< for messages: "phi3", "Megatron Bridge"
};
/// `model_type` as a config.json says it; empty where nobody knows it: Llama's names then.
/// A family whose names are not known has all-linear alone.
AdapterModules adapter_modules(const LaunchFramework& framework, std::string_view model_type);

/// "q_proj v_proj"; UserError for a target that no module is, or that a module holds beside others which are not asked.
std::string modules_of(const LaunchFramework& framework, std::string_view model_type, std::uint8_t targets);

/// Adapters that a file says; a module that is none of the model's is a problem, since what trains decides the figures.
std::optional<FineTune> adapters_in(const LaunchFramework& framework, std::string_view model_type,
                                    const std::vector<LaunchSetting>& settings, LaunchReading& reading,
                                    std::vector<Diagnostic>& problems);

}  // namespace scalecalc
