// One measured serving run as a question to the serving engine: its model, machine, formats and layout, and the figure
// that its source printed.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/catalog.h"
#include "serve/serving_cost.h"
#include "validate/row_question.h"
#include "validate/serve_measurement.h"

namespace scalecalc {

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

/// Time that `predicted` says over the time that `measured` says, minus 1: rates count as the time of a token.
double served_error(const ServeMeasurement& row, double predicted);

}  // namespace scalecalc
