// What a kernel is, by its name: patterns, with where each was seen.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "profile/recording.h"

namespace scalecalc {

/// A name that holds all of `parts` (separated by blanks; small letters match either case) is `work`. The first row
/// that matches decides.
struct KernelPattern {
  std::string_view parts;
  DeviceWork work;
  std::string_view source;
};

std::span<const KernelPattern> kernel_patterns();
/// kUnknown if no row matches.
DeviceWork work_of_kernel(std::string_view name);

}  // namespace scalecalc
