// The model of a measured run, and what is thrown where a run cannot be predicted.
#pragma once

#include <exception>
#include <string>
#include <utility>

#include "config/catalog.h"
#include "spec/model_spec.h"
#include "validate/measurement.h"

namespace scalecalc {

/// A row that cannot be predicted. The reason is one of few and is counted; the detail says what it is in this row.
class NotPredicted : public std::exception {
 public:
  NotPredicted(std::string reason, std::string detail) : reason_(std::move(reason)), detail_(std::move(detail)) {}
  const std::string& reason() const { return reason_; }
  const std::string& detail() const { return detail_; }
  const char* what() const noexcept override { return reason_.c_str(); }

 private:
  std::string reason_, detail_;
};

/// What is wrong with a name, with the nearest one: "unknown model 'lama3-8b'; did you mean 'llama3-8b'?"
std::string with_nearest(const UserError& error);

/// The row's own shape as a model file, so that there is one way into a model.
ConfigNode model_document(const Measurement& row);

/// The row's own shape as a model, or the catalog's model of its name. NotPredicted for what no model file can say.
ModelSpec model_of(const Measurement& row, const Catalog& catalog);

}  // namespace scalecalc
