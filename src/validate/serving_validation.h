// Measured serving figures against the engine, beside a naive baseline. Errors compare times: a rate counts as the time
// of a token.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/catalog.h"
#include "serve/queueing.h"
#include "serve/serving_cost.h"
#include "validate/measurement.h"
#include "validate/row_question.h"
#include "validate/validation.h"

namespace scalecalc {

// One measured serving run as a question to the serving engine: its model, machine, formats and layout, and the figure
// that its source printed.

/// Sets every row's stack: the longest start of what its source calls the engine that the catalog knows ("TensorRT-LLM
/// 1.0 (PyTorch backend)" is TensorRT-LLM). What the catalog does not know leaves it empty.
void name_stacks(std::vector<ServeMeasurement>& rows, const Catalog& catalog);

/// A row ready to be costed under any coefficients.
struct ServedRow {
  ServeMeasurement row;
  std::shared_ptr<const ModelSpec> model;
  std::shared_ptr<const HardwareSpec> hw;
  ServingSystem system;  ///< points to both
  ServeLayout layout;
  Slice slice;
  Placement placement;
  bool stack_measured = false;  ///< the chip has coefficients of the row's engine; otherwise those are its family's
};

/// Coefficients of the engine on the chip, or the ideal ones. NotPredicted for a row outside what the engine can
/// express, or that leaves out what a prediction needs.
ServedRow served_row(const ServeMeasurement& row, const Catalog& catalog, const std::vector<std::string>& set,
                     bool ideal);

/// What the serving engine says of the row's figure.
struct ServedFigures {
  double figure = 0;  ///< s, or tokens/s: as the row's
  double batch = 0;   ///< sequences of the whole deployment
  double floor = 0;   ///< the same figure if every step took only the reading of weights and contexts, or the FLOPs of
                      ///< prompts, at the data sheet's rates
  std::optional<double> first_token;  ///< s, where the row gives one
};
ServedFigures served_figures(const ServedRow& row, const Efficiency& efficiency);

/// What the row's clients see, or requests at its rate, simulated; nothing where its source does not say how requests
/// came, or they do not fit.
std::optional<QueueFigures> served_load(const ServedRow& row);

/// Time that `predicted` says over the time that `measured` says, minus 1: rates count as the time of a token.
double served_error(const ServeMeasurement& row, double predicted);

struct Serving {
  using Measured = ServeMeasurement;
  using Predicted = PredictedOf<Serving>;
  static constexpr Compared kUsual = Compared::kServing;

  struct Costed {
    double floor = 0;  ///< weights and contexts at the data sheet's bandwidth
    double batch = 0;
    std::optional<double> naive_error;  ///< of the floor over its usual share on the chip, row's source aside
    std::optional<double> first_token;  ///< s
    std::optional<double> first_token_error;
    std::optional<double> throughput_error;  ///< of clients' output tokens/s
    ServeLayout layout;
  };
  struct Counts {
    std::optional<double> naive_mean_abs, naive_median_abs;
    std::size_t first_tokens = 0;
    std::size_t unknown_loads = 0;  ///< a first token was measured, and how requests came is not known
    std::optional<double> first_token_median_abs, first_token_bias;
    std::size_t throughputs = 0;  ///< of clients
    std::optional<double> throughput_median_abs;
    std::size_t below_floor = 0;  ///< measured faster than weights and contexts can be read
  };

  /// chip, stack, phase, batch, model, group (of sources)
  static const std::vector<std::string>& axes();
  static std::string stack_named(const Catalog& catalog, const std::string& name);
  static Predicted predict(const ServeMeasurement& row, const ValidateQuestionOf<Serving>& question,
                           const Catalog& catalog, const Stop& stop);
  /// Time each row's floor would be off by, as a share of its measured time, were the floor reached at the median share
  /// of the other sources' rows of its chip (of all chips' where the chip has no other source). Absent where there is
  /// one source.
  static void weigh_together(std::vector<Predicted>& rows);
  static void count(const std::vector<const Predicted*>& rows, Compared compared, ErrorsOf<Serving>& out);
};

using ServeValidateQuestion = ValidateQuestionOf<Serving>;
using PredictedServing = PredictedOf<Serving>;
using ServeErrors = ErrorsOf<Serving>;
using ServeValidation = ValidationOf<Serving>;

/// A row's name along an axis, or its id.
std::string group_name(const ServeMeasurement& row, const std::string& by);

ServeValidation validate_serving(const ServeValidateQuestion& question, const Catalog& catalog,
                                 const std::function<bool()>& stop = {});

}  // namespace scalecalc
