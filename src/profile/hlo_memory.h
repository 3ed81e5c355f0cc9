// What a program holds in HBM: every buffer from the instruction that makes it to the last that reads it.
#pragma once

#include "profile/hlo_text.h"

namespace scalecalc {

struct HloMemory {
  double parameters = 0;  ///< held throughout
  double results = 0;
  double aliased = 0;      ///< of the results, what donated parameters take up
  double constants = 0;    ///< held throughout
  double temporaries = 0;  ///< the most that lives at once beside these, results that are made meanwhile with them
  std::string at;          ///< the instruction where it does
  double peak() const { return parameters + constants + temporaries; }
};

/// In the order of the text, which is the schedule's where there is one.
HloMemory hlo_memory(const HloModule& module);

}  // namespace scalecalc
