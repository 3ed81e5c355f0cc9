// What chips, their hosts and the facility around them draw.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/explained.h"
#include "base/scalar.h"
#include "economics/run_question.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

template <class R>
using WattsOf = Quantity<kJouleDim - kSecondDim, R>;
template <class R>
using JoulesOf = Quantity<kJouleDim, R>;

/// Shares of a step, by what a chip does; they sum to 1.
struct StepActivity {
  double computing = 1;
  double reading = 0;  ///< bound by its memory
  double waiting = 0;  ///< for communication, the pipeline or the host
};

/// Draw of a chip over its rated power, for `--power activity`. Idle: 20 %, Uptime Institute UII Update 362 (2025),
/// from Lawrence Berkeley National Laboratory. Computing: all of it, as in the power swings of synchronous training
/// (arXiv:2508.14318). Memory-bound and waiting: arXiv:2308.12908 has token generation at two thirds and the troughs of
/// training between 20 and 75 %, quoted from memory; a figure to be replaced by a measurement of the machine.
struct ActivityDraw {
  double idle = 0.2;
  double computing = 1;
  double reading = 0.7;
  double waiting = 0.5;
};
inline constexpr ActivityDraw kActivityDraw{};

struct PowerInput {
  PowerBasis basis = PowerBasis::kRated;
  double tdp_w = 0;
  std::string source;
  std::optional<double> idle_w;           ///< of a chip
  std::optional<double> host_w;           ///< a whole host with its chips, rated
  std::optional<double> host_measured_w;  ///< the most that was measured in training
  double chips_per_host = 1;
  StepActivity activity;
  double pue = 1;
};

template <class R>
struct ChipDraw {
  WattsOf<R> working{R(0.0)};  ///< in the mean of a step
  WattsOf<R> idle{R(0.0)};
  WattsOf<R> host{R(0.0)};  ///< the rest of the host, for each chip
  R pue{1.0};
  /// What the facility draws for a chip that works, and for one that does not.
  WattsOf<R> busy_total() const { return (working + host) * pue; }
  WattsOf<R> idle_total() const { return (idle + host) * pue; }
};

/// [POWER] Rated power, or its share in each part of a step; hosts add (host - chips x TDP) / chips.
template <class R>
ChipDraw<R> chip_draw(const Reader<R>& reader, const PowerInput& in);

/// The hardware must publish the power of a chip.
PowerInput power_input(const HardwareSpec& hw, const PowerTerms& terms, const StepActivity& activity);
/// What is taken for the power of chips and their hosts, and what is left out.
std::vector<Assumption> power_assumptions(const HardwareSpec& hw, const PowerTerms& terms);

}  // namespace scalecalc
