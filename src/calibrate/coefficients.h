// Efficiency coefficients by name, for fitting and for writing them down.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/node.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// A coefficient that measured steps can tell something about, and the range it must stay in.
struct CoefficientSlot {
  std::string path;  ///< as in the file: "matmul.bf16", "link.scale_up"
  double least = 0, most = 1;
  std::vector<Coefficient Efficiency::*> fields;  ///< more than one move together
  std::size_t format = kDTypeCount;               ///< of a matmul coefficient

  double value(const Efficiency& efficiency) const;
  double error(const Efficiency& efficiency) const;
  /// Sets the value, and the error if it is not below zero; fields that move together keep their ratio.
  void set(Efficiency& efficiency, double value, double error = -1) const;
};

/// Matmul fractions of every format, attention, HBM, links, overlaps, expert matmuls and balance, overheads.
const std::vector<CoefficientSlot>& fitted_slots();

/// A serving coefficient, under `serving:` in the file.
struct ServeSlot {
  const char* path;
  Coefficient ServingEfficiency::*field;
  double least = 0, most = 1;
  double stray = 0.1;  ///< standard deviation of the logarithm of an engine's or chip's factor, expected
};

/// Those that measured serving rows tell apart; the rest keep the kernels' values of the family.
const std::vector<ServeSlot>& serve_slots();

struct WrittenCoefficient {
  std::string path;
  double value = 0, error = 0;
};

/// An `efficiency:` block for a hardware file with the coefficients of one stack, all from one source; or, as
/// `factors`, the `stacks:` of a family's file.
ConfigNode stack_block(const std::vector<WrittenCoefficient>& coefficients, const std::string& stack,
                       const std::string& source, bool factors);

}  // namespace scalecalc
