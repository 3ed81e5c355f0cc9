// What a row of measurements says, the flags of `train` say too: the run asked by flags has the step that `validate`
// predicts of the row.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <stdexcept>
#include <vector>

#include "agreement/ask.h"
#include "config/catalog.h"
#include "config/yaml_writer.h"
#include "plan/dimensions.h"
#include "support/scratch.h"
#include "train/train_options.h"
#include "validate/training_rows_options.h"
#include "validate/training_validation.h"

namespace scalecalc::agreement {
namespace {

std::string text_of(const Figure& said, const cli::Flag& flag) {
  if (const double* number = std::get_if<double>(&said.value)) {
    return fmt::format("{:.17g}{}", *number, flag.unit == UnitKind::kBytesPerSecond ? "B/s" : "");
  }
  const std::string* const text = std::get_if<std::string>(&said.value);
  return text == nullptr ? "" : *text;
}

/// The flags by which rows and `train` say the same, where they differ from what is asked without them.
std::string shared_flags(const TrainQuestion& asked) {
  const TrainQuestion silent;
  std::string out;
  for (const cli::Flag& flag : cli::train_flags()) {
    if (flag.row.empty()) continue;
    const std::string value = text_of(flag.show(flag, &asked), flag);
    if (value == text_of(flag.show(flag, &silent), flag)) continue;
    out +=
        flag.kind == cli::FlagKind::kSwitch ? fmt::format(" {}", flag.name) : fmt::format(" {} {}", flag.name, value);
  }
  return out;
}

std::string adapter_flags(const TrainQuestion& asked) {
  if (!asked.fine_tune) return "";
  const FineTuneQuestion& tune = *asked.fine_tune;
  std::string out = fmt::format(" --lora {}", tune.rank);
  if (tune.targets) out += fmt::format(" --lora-targets {}", target_names(*tune.targets));
  if (tune.experts) out += fmt::format(" --lora-experts {}", *tune.experts ? "each" : "none");
  if (tune.base) out += fmt::format(" --base {}", kBaseFormatNames.at(static_cast<std::size_t>(*tune.base)));
  return out;
}

std::string command_of(const TrainQuestion& q, const std::string& model) {
  std::string out = fmt::format("train {} --hw {} --chips {} --seq {} --batch-seqs {} --precision {} --optimizer {}",
                                model, q.hardware, q.chips, *q.seq, *q.batch_seqs, *q.precision, *q.optimizer);
  if (q.slices > 1) out += fmt::format(" --slices {}", q.slices);
  if (!q.as_of.empty()) out += " --as-of " + q.as_of;
  for (const std::string& set : q.set) out += " --set " + set;
  return out + fmt::format(" --stack {} --fix {}", q.stack, pins_text(q.fix)) + shared_flags(q) + adapter_flags(q) +
         " --variants";
}

/// What no flag says yet: compiled steps, modules that are recomputed; and what is of no file: other software's memory
/// than that of the coefficients.
bool can_be_typed(const Measurement& row, const RowQuestion& question) {
  const TrainQuestion& q = question.asked;
  const bool own_model = row.shape || question.resolved.model.mtp_layers == row.mtp_layers;
  return own_model && !q.stack.empty() && q.rates == q.stack && q.recomputed.empty() && !q.compiled;
}

/// Nothing where the software's facts refuse the layout.
std::optional<Json> answered(const std::string& command) {
  try {
    return ask(command);
  } catch (const std::runtime_error& error) {
    EXPECT_TRUE(std::string(error.what()).starts_with("exit 3")) << error.what() << "\n" << command;
    return std::nullopt;
  }
}

class RowFlags : public testing::Test {
 protected:
  /// The row's model as `train` takes it.
  std::string model_named(const Measurement& row) {
    if (!row.shape) return row.model;
    return scratch_.put(fmt::format("{}.yaml", row.id), write_yaml(model_document(row)));
  }

  test::Scratch scratch_;
};

/// Every row of the shipped sets takes half a minute; the tests of every commit take each fourth.
std::size_t stride() { return std::getenv("SCALECALC_EVERY_ROW") != nullptr ? 1 : 4; }

TEST_F(RowFlags, AskTrainForTheRunOfARow) {
  const Catalog catalog;
  std::size_t asked = 0, refused = 0;
  for (const char* set : {"train", "train-2", "small-steps"}) {
    std::vector<Measurement> rows = cli::read_measurements(catalog.load(CatalogKind::kMeasurements, set));
    name_stacks(rows, catalog);
    for (std::size_t i = 0; i < rows.size(); i += stride()) {
      const Measurement& row = rows[i];
      try {
        RowQuestion question = row_question(row, catalog, {}, false);
        if (!can_be_typed(row, question)) continue;
        const Evaluated found = evaluate(question);
        if (!found.fits || !found.assumed.empty()) continue;  // what it saved to fit is not of the row
        ++asked;
        const std::string command = command_of(question.asked, model_named(row));
        const auto answer = answered(command);
        if (!answer) ++refused;
        if (!answer) continue;
        const double step = answer->at("plans").at(0).at("step_time_s").get<double>();
        EXPECT_NEAR(step, found.plan.step_s, 1e-9 * step) << row.id << "\n" << command;
      } catch (const NotPredicted&) {
        continue;
      }
    }
  }
  EXPECT_GE(asked, 1'700 / stride());
  // Runs that were measured and that the facts on their software refuse.
  EXPECT_LE(refused, 36U);
}

}  // namespace
}  // namespace scalecalc::agreement
