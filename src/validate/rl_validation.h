// Measured RL steps against `scalecalc rl`: the job that a source describes, its layouts pinned, and the seconds of one
// step. Sources print the mean length of a response and the longest allowed, not how lengths are spread;
// docs/accuracy.md says what is assumed.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "rl/rl.h"
#include "validate/measurement.h"
#include "validate/row_question.h"
#include "validate/validation.h"

namespace scalecalc {

/// Prompts and responses of a row whose source gives their mean and their limit alone: even from a quarter of the mean
/// to half as much again, and the share that runs into the limit which makes the mean the published one.
RequestMix rollouts_of(const RlMeasurement& row);

/// The row as a question to `rl`.
RlQuestion rl_question_of(const RlMeasurement& row, const Catalog& catalog, const std::vector<std::string>& set,
                          bool ideal);

/// Rows name no stack: trainer and engine are the usual ones of the chip.
inline void name_stacks(std::vector<RlMeasurement>&, const Catalog&) {}

struct RlSteps {
  using Measured = RlMeasurement;
  using Predicted = PredictedOf<RlSteps>;
  static constexpr Compared kUsual = Compared::kRlStep;

  struct Costed {
    RlPlacement placement = RlPlacement::kColocated;
    std::int64_t generator_chips = 0, trainer_chips = 0;
    ServeLayout engine;
    std::optional<Layout> trainer;
    std::vector<std::pair<std::string, double>> time_s;  ///< of the step's parts
  };
  struct Counts {};

  /// chip, model, policy, group (of sources)
  static const std::vector<std::string>& axes();
  static std::string stack_named(const Catalog& catalog, const std::string& name);
  static Predicted predict(const RlMeasurement& row, const ValidateQuestionOf<RlSteps>& question,
                           const Catalog& catalog, const Stop& stop);
  static void weigh_together(std::vector<Predicted>&) {}
  static void count(const std::vector<const Predicted*>&, Compared, ErrorsOf<RlSteps>&) {}
};

using RlValidateQuestion = ValidateQuestionOf<RlSteps>;
using PredictedRl = PredictedOf<RlSteps>;
using RlErrors = ErrorsOf<RlSteps>;
using RlValidation = ValidationOf<RlSteps>;

/// A row's name along an axis, or its id.
std::string group_name(const RlMeasurement& row, const std::string& by);

RlValidation validate_rl(const RlValidateQuestion& question, const Catalog& catalog,
                         const std::function<bool()>& stop = {});

}  // namespace scalecalc
