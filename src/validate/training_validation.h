// Measured training runs against the engine: step times, or memory of the fullest chip.
#pragma once

#include <set>
#include <string>

#include "train/question.h"
#include "validate/measurement.h"
#include "validate/row_question.h"
#include "validate/validation.h"

namespace scalecalc {

// What a row measured, and its layout costed.

/// Seconds of a step as measured, from whatever the source prints. NotPredicted if it prints nothing of the kind, or in
/// a FLOPs convention that is not known.
double measured_step(const Measurement& row, const ResolvedQuestion& question);

/// Points into `question`.
PlanRequest request_of(const RowQuestion& question);

struct Evaluated {
  Plan plan;
  bool fits = true;                  ///< by our count of memory
  std::vector<std::string> assumed;  ///< a saving the source does not state, without which it would not fit
};

/// The row's layout, costed. A run that was measured fitted, whatever our count of its memory says: what the row leaves
/// open is chosen among what fits. Where nothing does, savings that sources leave unsaid is assumed until something
/// does, or memory is not looked at. NotPredicted for a layout that no launcher would start;
/// Stopped if asked to end before.
Evaluated evaluate(RowQuestion& question, const Stop& stop = {});

/// How well predictions order the layouts of sets; means over them. What no set gives is absent.
struct OrderQuality {
  std::size_t sets = 0;
  std::optional<double> spearman, kendall, median_spearman;
  std::optional<double> regret;  ///< measured time of the layout predicted fastest over the fastest, minus 1
};

/// Runs of one class, and how many of them were measured within the predicted band.
struct ClassCoverage {
  std::size_t rows = 0, in_band = 0;
};

struct Training {
  using Measured = Measurement;
  using Predicted = PredictedOf<Training>;
  static constexpr Compared kUsual = Compared::kStepTime;

  struct Costed {
    Layout layout;
    PlanFigures figures;
    std::string stack;                        ///< whose coefficients
    StackBasis basis = StackBasis::kDefault;  ///< of these
    bool fits = true;                         ///< false: by our count it runs out of memory, and it ran
    std::string kernel, kernel_why;           ///< of attention
    std::vector<std::string> chosen;          ///< what the row does not say and the search chose
    std::vector<std::string> assumed;         ///< savings assumed so that it fits
    std::size_t job = 0, model_on_chip = 0;   ///< sets it stands in, numbered in the order of their names
  };
  struct Counts {
    std::optional<double> source_mean_abs, source_median_abs, source_bias;  ///< mean over source groups of each group's
    std::size_t too_slow = 0;                ///< predicted slower than measured: none may be under ideal efficiency
    std::size_t out_of_memory = 0;           ///< ran, and are declared not to fit
    std::size_t made_to_fit = 0;             ///< fit by savings that their sources do not state
    std::size_t of_unknown_software = 0;     ///< predicted by the chip's usual coefficients for want of a stack
    std::set<std::string> unknown_software;  ///< what their sources call it
    std::map<std::string, ClassCoverage> by_class;
    OrderQuality of_job;    ///< sets of three layouts and more of one model, chips and batch
    OrderQuality of_model;  ///< sets of five and more of one model on one kind of chip, by chip-seconds a token
  };

  /// subset, class, chip, family, framework, stack, precision, group (of sources)
  static const std::vector<std::string>& axes();
  static std::string stack_named(const Catalog& catalog, const std::string& name);
  static Predicted predict(const Measurement& row, const ValidateQuestionOf<Training>& question, const Catalog& catalog,
                           const Stop& stop);
  static void weigh_together(std::vector<Predicted>& rows);
  static void count(const std::vector<const Predicted*>& rows, Compared compared, ErrorsOf<Training>& out);
};

using ValidateQuestion = ValidateQuestionOf<Training>;
using PredictedRow = PredictedOf<Training>;
using SkippedRow = SkippedOf<Training>;
using ErrorSummary = ErrorsOf<Training>;
using Validation = ValidationOf<Training>;

/// A row's name along an axis, or its id.
std::string group_name(const Measurement& row, const std::string& by);

/// Memory if no row has anything else to compare.
Compared compared_by_default(const std::vector<Measurement>& rows);

Validation validate(const ValidateQuestion& question, const Catalog& catalog, const std::function<bool()>& stop = {});

}  // namespace scalecalc
