// What a plan's step depends on: every input that its formulas read, with its value, unit and source. The list is taken
// from the traced reading of the step, so a formula that reads a new input brings it along.
#pragma once

#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "plan/request.h"

namespace scalecalc {

enum class InputKind : std::uint8_t {
  kRate,         ///< FLOP/s or bytes/s: more is faster
  kTime,         ///< a latency or an overhead: less is faster
  kCoefficient,  ///< a share or factor of the efficiency block, or of the network
  kModel,        ///< a dimension of the model, its sequences or its batch
};
inline constexpr std::array<std::string_view, 4> kInputKindNames{"rate", "time", "coefficient", "model"};
constexpr std::string_view name_of(InputKind kind) { return kInputKindNames[static_cast<std::size_t>(kind)]; }

struct SensitiveInput {
  std::string name;                  ///< as --set takes it where it does: "hw.hbm.bandwidth"
  std::vector<std::string> read_as;  ///< its names in readings (Reader<R>)
  InputKind kind = InputKind::kRate;
  double value = 0;  ///< SI base unit
  Dim unit;
  std::string source;
  double tokens = 0;  ///< power with which the tokens of a step grow with it: 1 for sequences and batch, else 0
  double least = 0;   ///< what it means anything between
  double most = std::numeric_limits<double>::infinity();
};

/// The inputs of the plan's step in the order in which the formulas meet them. Layout degrees are no inputs; the batch
/// is the layout's microbatches of a step, `layers` all stages' layers in proportion.
std::vector<SensitiveInput> inputs_of(const PlanRequest& request, const Plan& plan);

}  // namespace scalecalc
