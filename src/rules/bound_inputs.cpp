#include "rules/bound_inputs.h"

#include <fmt/format.h>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"

namespace scalecalc {
namespace {}  // namespace

BoundInputs::BoundInputs(const BoundsQuestion& question, BoundList& list)
    : BoundRates(question.hw, question.compute, question.ideal), q_(question) {
  parameters_of_model(list);
  shape_of_model(list);
  machine(list);
  if (q_.scope != BoundScope::kServing) {
    job(list);
    formats(list);
  }
  list.assume({q_.ideal ? "efficiency ideal: data-sheet rates" : "efficiency calibrated: " + q_.hw.efficiency.basis,
               "--efficiency", q_.ideal ? "book" : q_.hw.efficiency.confidence});
}

BytesOf<Traced> BoundInputs::element(const std::optional<DType>& dtype, const char* symbol) const {
  const DType format = dtype.value_or(q_.compute);
  return read(kReader, Bytes(bytes_per_element(format)), symbol, std::string(name_of(format)));
}

Traced BoundInputs::scale(const std::optional<DType>& dtype, const char* symbol) const {
  constexpr double kBookBytes = 2;
  const DType format = dtype.value_or(q_.compute);
  const double bytes = bytes_per_element(format);
  if (bytes == kBookBytes) return Traced(1.0);
  return kReader.input(bytes / kBookBytes, symbol, std::string(name_of(format)));
}

Traced BoundInputs::fsdp_scale() const {
  Traced weights = weight_scale();
  const Traced gradients = gradient_scale();
  if (!(weights < gradients)) return weights;
  return named((weights + gradients) / Traced(2.0), "(b_w + b_g) / 4",
               "backward: weights gathered and gradients scattered for twice the FLOPs");
}

std::optional<bool> BoundInputs::more_tokens_than(const Traced& limit) const {
  if (!tokens_per_chip) return std::nullopt;
  return limit < *tokens_per_chip;
}

std::string BoundInputs::missing_for_tokens_per_chip() const {
  if (batch) return "--chips";
  return chips ? "--batch-tokens" : "--chips and --batch-tokens";
}

void BoundInputs::parameters_of_model(BoundList& list) {
  check(q_.model || q_.parameters, "a model or its size is given");
  const ParameterCount counted = q_.model ? count_parameters(*q_.model) : ParameterCount{};
  const OfficialParameters official = q_.model ? q_.model->official : OfficialParameters{};
  const bool moe = q_.model && q_.model->moe;
  double total = counted.total;
  double active = counted.active;
  std::string total_source = "counted from the model file";
  std::string active_source = total_source;
  const auto take = [](double& value, std::string& source, double other, const char* where) {
    value = other;
    source = where;
  };
  if (q_.stated_parameters) {
    if (official.stated <= 0) {
      throw UserError(fmt::format("{} states no rounded size", q_.model->name), "give one: --params 70B");
    }
    take(total, total_source, official.stated, "as the vendor states it");
    if (moe && official.active > 0) take(active, active_source, official.active, "as the vendor states it");
  }
  if (q_.parameters) take(total, total_source, *q_.parameters, q_.model ? "--params" : "MODEL");
  if (q_.active_parameters) take(active, active_source, *q_.active_parameters, "--active-params");
  parameters = kReader.input(total, "P", total_source);
  list.assume(
      {fmt::format("{} parameters, {}", compact_count(total, 6), total_source), q_.model ? "--params" : "", ""});
  active_parameters = parameters;
  if (!moe && !q_.active_parameters) return;
  if (active > total) {
    throw UserError(fmt::format("{} active parameters are more than the {} there are", compact_count(active, 6),
                                compact_count(total, 6)),
                    "see --params and --active-params");
  }
  active_parameters = kReader.input(active, "P_act", active_source);
  list.assume({fmt::format("{} of them active, {}", compact_count(active, 6), active_source), "--active-params", ""});
}

void BoundInputs::shape_of_model(BoundList& list) {
  if (!q_.model) return;
  shape = rules::layer_shape(*q_.model);
  if (shape && !shape->left_out.empty()) {
    list.assume({"rules for a layer leave out " + shape->left_out, "", "book ch. 12"});
  }
}

void BoundInputs::formats(BoundList& list) const {
  const auto name = [&](const std::optional<DType>& dtype) { return name_of(dtype.value_or(q_.compute)); };
  list.assume({fmt::format("matmuls in {}; weights {}, gradients {}, activations {}", name_of(q_.compute),
                           name(q_.weights), name(q_.gradients), name(q_.activations)),
               "--precision, --weights, --gradients, --activations", "book ch. 5"});
}

std::string BoundInputs::fact_source(const char* field) const {
  const TrainingFacts& facts = q_.model->training;
  const auto at = facts.assumed.find(field);
  return at == facts.assumed.end() ? "as trained: " + facts.source : "assumed: " + at->second;
}

void BoundInputs::job(BoundList& list) {
  const TrainingFacts* facts = q_.model ? &q_.model->training : nullptr;
  if (q_.training.seq) {
    seq = kReader.input(static_cast<double>(*q_.training.seq), "T", "--seq");
  } else if (facts != nullptr && facts->seq) {
    seq = kReader.input(static_cast<double>(*facts->seq), "T", fact_source("seq"));
    list.assume({fmt::format("sequences of {} tokens", group_thousands(*facts->seq)), "--seq", fact_source("seq")});
  }
  batch_of(list);
  if (q_.training.tokens) {
    tokens = kReader.input(*q_.training.tokens, "tokens", "--tokens");
  } else if (facts != nullptr && facts->tokens) {
    tokens = kReader.input(*facts->tokens, "tokens", fact_source("tokens"));
    list.assume({compact_count(*facts->tokens) + " training tokens", "--tokens", fact_source("tokens")});
  }
  const std::optional<std::string> trained = facts != nullptr ? facts->optimizer : std::nullopt;
  optimizer = optimizer_of(q_.training.optimizer.value_or(trained.value_or("adam")));
  if (!q_.training.optimizer) {
    list.assume(
        {"optimizer " + optimizer.name, "--optimizer", trained ? fact_source("optimizer") : "assumed: the usual one"});
  }
}

void BoundInputs::batch_of(BoundList& list) {
  const TrainingFacts* facts = q_.model ? &q_.model->training : nullptr;
  if (q_.training.batch_tokens) {
    batch = kReader.input(*q_.training.batch_tokens, "B", "--batch-tokens");
  } else if (q_.training.batch_seqs) {
    if (!seq) throw UserError("--batch-seqs needs to know how long a sequence is", "add --seq 8192");
    batch = named(kReader.input(*q_.training.batch_seqs, "sequences", "--batch-seqs") * *seq, "B", "sequences x T");
  } else if (facts != nullptr && facts->batch_tokens) {
    batch = kReader.input(*facts->batch_tokens, "B", fact_source("batch_tokens"));
    list.assume({fmt::format("batch of {} tokens", compact_count(*facts->batch_tokens)), "--batch-tokens",
                 fact_source("batch_tokens")});
  }
  if (batch && chips) tokens_per_chip = named(*batch / *chips, "tokens_per_chip", "B / n");
}

}  // namespace scalecalc
