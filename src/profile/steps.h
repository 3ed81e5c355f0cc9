// Where a recording's steps begin and end on a device.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "profile/recording.h"

namespace scalecalc {

struct StepWindow {
  Ticks start = 0;
  Ticks end = 0;
  SharedText name;
};

struct FoundSteps {
  std::vector<StepWindow> windows;  ///< in order; they do not overlap
  std::string how;                  ///< "ProfilerStep# on the device"
};

/// Of a device's events, in the order of their starts. Markers decide; without any, a sequence of kernels that repeats;
/// else all of it is one step. A marker of the host names what was launched in it: its kernels may run long after.
FoundSteps find_steps(const Recording& recording, std::uint32_t device, std::span<const RecordedEvent> events);

}  // namespace scalecalc
