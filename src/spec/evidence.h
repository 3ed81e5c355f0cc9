// How many measured runs stand behind what a layout uses, and how far their predictions were off:
// configs/evidence/train.yaml, written from the measurements by tests/lint/evidence.py.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "config/catalog.h"

namespace scalecalc {

struct MeasuredRuns {
  std::int64_t runs = 0;
  double error = 0;            ///< mean of |predicted / measured - 1|
  std::int64_t most_ways = 0;  ///< of the largest group among them; 0: a mechanism without groups
};

/// Of one mechanism (plan/mechanisms.h).
struct MechanismRuns {
  std::string family;  ///< of the chip's efficiency
  std::string chip;
  std::string stack;
  std::string mechanism;
  MeasuredRuns measured;
};

/// UserError listing every problem of the document.
std::vector<MechanismRuns> load_evidence(const ConfigNode& document);

/// Of those rows: the runs on this chip under this stack, and on any chip of the family under any.
struct MechanismEvidence {
  std::string mechanism;
  MeasuredRuns here, family;
  bool measured = true;  ///< by the family, and about as far as the layout at hand takes it
};
MechanismEvidence evidence_of(const std::vector<MechanismRuns>& rows, const std::string& mechanism,
                              const std::string& family, const std::string& chip, const std::string& stack);

}  // namespace scalecalc
