// Measured serving figures against the engine, beside a naive baseline. Errors compare times: a rate counts as the time
// of a token.
#pragma once

#include "validate/serve_row.h"
#include "validate/validation.h"

namespace scalecalc {

struct Serving {
  using Measured = ServeMeasurement;
  using Predicted = PredictedOf<Serving>;
  static constexpr Compared kUsual = Compared::kServing;

  struct Costed {
    double floor = 0;  ///< weights and contexts at the data sheet's bandwidth
    double batch = 0;
    double naive_error = 0;             ///< of the floor over its usual share on the chip, row's source aside
    std::optional<double> first_token;  ///< s
    std::optional<double> first_token_error;
    ServeLayout layout;
  };
  struct Counts {
    std::optional<double> naive_mean_abs, naive_median_abs;
    std::size_t first_tokens = 0;
    std::optional<double> first_token_median_abs, first_token_bias;
    std::size_t below_floor = 0;  ///< measured faster than weights and contexts can be read
  };

  /// chip, stack, phase, batch, model, group (of sources)
  static const std::vector<std::string>& axes();
  static std::string stack_named(const Catalog& catalog, const std::string& name);
  static Predicted predict(const ServeMeasurement& row, const ValidateQuestionOf<Serving>& question,
                           const Catalog& catalog);
  /// Time each row's floor would be off by, as a share of its measured time, were the floor reached at the median share
  /// of the other sources' rows of its chip (of all chips' where the chip has no other source).
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
