// Something measured and how coefficients predict it: a whole step, or a kernel or collective timed by itself.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "validate/kernel_measurement.h"
#include "validate/training_validation.h"

namespace scalecalc {

/// Made once, never moved.
class Observation {
 public:
  Observation() = default;
  virtual ~Observation() = default;
  Observation(const Observation&) = delete;
  Observation& operator=(const Observation&) = delete;

  virtual double seconds(const Efficiency& efficiency) const = 0;

  std::string group;      ///< the source
  bool doubtful = false;  ///< its source or what was read from it may be wrong
  bool alone = false;     ///< a kernel or collective by itself: what it shows is one coefficient's
  Efficiency base;        ///< the coefficients its chip starts from
  double measured = 0;    ///< seconds
  double weight = 1;
};

using Observations = std::vector<const Observation*>;

/// A run in the layout that its chip's coefficients choose.
class StepObservation final : public Observation {
 public:
  /// NotPredicted and Stopped as `evaluate`.
  StepObservation(const Measurement& measurement, const Catalog& catalog, const Stop& stop);
  double seconds(const Efficiency& efficiency) const override;

  Measurement row;
  RowQuestion question;
  Plan plan;
  bool fits = true;  ///< by our count of memory

 private:
  PlanRequest request_;  ///< points into the question
  double stretch_ = 1;   ///< the batch of the row over the plan's
};

/// It starts from the chip's own coefficients, which come from kernels: by how much it is faster than these, a stack's
/// are faster than they were. UserError at the row's place if the chip has no such kernel or network.
std::unique_ptr<Observation> kernel_observation(const KernelMeasurement& row, std::shared_ptr<const HardwareSpec> hw);

/// Collectives whose messages are too small for the link's rate to show are left out: those below four fifths of the
/// largest bus bandwidth among the rows of their file, operation and ranks.
std::vector<KernelMeasurement> large_messages(const std::vector<KernelMeasurement>& rows);

}  // namespace scalecalc
