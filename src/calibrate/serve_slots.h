// Which serving coefficients are fitted, and how far they may stray.
#pragma once

#include <string>
#include <vector>

#include "spec/hardware_spec.h"

namespace scalecalc {

struct ServeSlot {
  const char* path;  ///< inside `serving:`
  Coefficient ServingEfficiency::*field;
  double least = 0, most = 1;
  double stray = 0.1;  ///< standard deviation of the logarithm of an engine's or chip's factor, expected
};

/// Those that measured serving rows tell apart; the rest keep the kernels' values of the family.
const std::vector<ServeSlot>& serve_slots();

}  // namespace scalecalc
