// Predicts measured reinforcement-learning steps with `scalecalc rl` and computes the errors.
#include "validate/rl_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/scalar.h"
#include "base/text.h"
#include "spec/load.h"
#include "spec/load_stack.h"

namespace scalecalc {
namespace {

/// Of a prompt where the source gives none: the mathematics problems that published steps are of have about so many.
constexpr std::int64_t kUnsaidPrompt = 100;
constexpr double kShortest = 0.25;  ///< of the mean
constexpr double kUsualMost = 1.5;  ///< of the mean

std::optional<WeightFormat> weight_format(const std::string& text) {
  const auto* const found = std::find(kWeightFormatNames.begin(), kWeightFormatNames.end(), lower_case(text));
  if (found == kWeightFormatNames.end()) return std::nullopt;
  return static_cast<WeightFormat>(found - kWeightFormatNames.begin());
}

}  // namespace

RequestMix rollouts_of(const RlMeasurement& row) {
  const std::int64_t prompt = row.prompt_len.value_or(kUnsaidPrompt);
  const double limit = to_double(row.max_len - prompt);
  const double mean = row.mean_len - to_double(prompt);
  if (mean <= 0 || limit <= mean) {
    throw NotPredicted("the lengths contradict each other",
                       fmt::format("mean {:.0f}, longest {}, prompt {}", row.mean_len, row.max_len, prompt));
  }
  const auto first = std::max<std::int64_t>(1, std::llround(kShortest * mean));
  const auto last = std::max<std::int64_t>(first, std::llround(std::min(kUsualMost * mean, limit)));
  const double usual = to_double(first + last) / 2;
  const double at_limit = (mean - usual) / (limit - usual);
  RequestMix out;
  out.prompt = Lengths::fixed(prompt);
  out.generate = Lengths({{first, last, 1 - at_limit}, {row.max_len - prompt, row.max_len - prompt, at_limit}});
  return out;
}

RlQuestion rl_question_of(const RlMeasurement& row, const Catalog& catalog, const std::vector<std::string>& set,
                          bool ideal) {
  if (!row.complete) throw NotPredicted("the source leaves out what a prediction needs", row.doubt);
  if (lower_case(row.algorithm) != "grpo" && lower_case(row.algorithm) != "dapo") {
    throw NotPredicted("the algorithm is not modelled", row.algorithm);
  }
  const std::optional<WeightFormat> format = weight_format(row.generate_precision);
  if (!format) throw NotPredicted("the format is not modelled", row.generate_precision);
  RlQuestion out;
  out.mix = rollouts_of(row);
  out.rollouts = row.rollouts.value_or(1);
  out.prompts = row.samples / out.rollouts;
  out.updates = row.samples / row.train_batch;
  out.depth = row.depth;
  out.generator_chips = row.depth > 0 ? row.generator_chips : std::nullopt;
  out.engine_memory = row.engine_memory;
  out.engine_sequences = row.engine_sequences;
  if (row.generated) out.oversample = to_double(*row.generated) / to_double(row.samples);
  // What a microbatch may hold is the longest sequence, however few get so long.
  out.pack = row.max_len;
  out.placement = row.depth == 0 ? RlPlacement::kColocated : RlPlacement::kSplit;
  TrainQuestion& train = out.train;
  train.model = row.model;
  train.hardware = row.chip;
  train.chips = row.chips;
  train.stack = stack_of_framework(catalog, row.framework).value_or("");
  train.precision = row.train_precision;
  train.set = set;
  train.ideal = ideal;
  ServeQuestion& engine = out.engine;
  engine.model = row.model;
  engine.hardware = {row.chip};
  engine.chips = row.chips;
  engine.set = set;
  engine.ideal = ideal;
  engine.suggest = false;
  engine.weights.emplace(
      QuantizationSpec{.weights = *format, .bits_per_weight = bits_of(*format), .source = row.source});
  const bool experts = load_model(catalog.load(CatalogKind::kModel, row.model)).moe.has_value();
  if (row.trainer) {
    LayoutFilter& fix = train.fix;
    fix.tp = row.trainer->tp;
    fix.cp = row.trainer->cp;
    fix.pp = row.trainer->pp;
    if (experts) fix.ep = row.trainer->ep;
    fix.vpp = row.trainer->vpp;
    fix.zero = row.trainer->zero;
    fix.split.emplace();
  }
  if (row.recompute) train.fix.remat = *row.recompute ? Remat::kFull : Remat::kNone;
  // Log-probabilities are read from the logits of every token.
  train.fix.loss = LossKind::kWhole;
  engine.fix.tp = row.engine_tp;
  engine.fix.pp = row.engine_pp;
  if (row.engine_tp) engine.fix.cp = 1;
  if (row.engine_tp && experts) {
    engine.fix.attention_dp = 1;
    engine.fix.ep = 1;  // tensor ranks divide each expert unless an engine is told otherwise
  }
  return out;
}

const std::vector<std::string>& RlSteps::axes() {
  static const std::vector<std::string> kAxes{"chip", "model", "policy", "group"};
  return kAxes;
}

std::string group_name(const RlMeasurement& row, const std::string& by) {
  if (by == "id") return row.id;
  if (by == "chip") return row.chip;
  if (by == "model") return row.model;
  if (by == "policy") return row.policy();
  if (by == "group") return row.group;
  internal_error("unknown axis");
}

std::string RlSteps::stack_named(const Catalog& catalog, const std::string& name) {
  return stack_spec(catalog, name)->name;
}

PredictedRl RlSteps::predict(const RlMeasurement& row, const RlValidateQuestion& q, const Catalog& catalog,
                             const Stop& stop) {
  RlAnswer found;
  try {
    RlQuestion question = rl_question_of(row, catalog, q.set, q.ideal);
    if (!q.stack.empty()) question.train.stack = q.stack;
    found = rl_answer(question, catalog, stop);
  } catch (const UserError& error) {
    throw NotPredicted("the job is none that rl answers", with_nearest(error));
  }
  if (should_stop(stop)) throw Stopped();  // the answer is the best of what was searched
  if (found.plans.empty()) {
    throw NotPredicted(
        "nothing fits",
        found.shortages.empty() ? "" : fmt::format("{}: {}", found.shortages.front().who, found.shortages.front().how));
  }
  const RlPlan& plan = found.plans.front();
  PredictedRl out;
  out.row = row;
  out.measured = row.step_s;
  out.predicted = out.low = out.high = value_of(plan.step);
  out.error = out.predicted / out.measured - 1;
  out.placement = plan.placement;
  out.generator_chips = plan.generator_chips;
  out.trainer_chips = plan.trainer_chips;
  out.engine = plan.generation.layout;
  if (plan.policy) out.trainer = plan.policy->ranked.plan.layout;
  for (const JobPart& part : plan.parts) out.time_s.emplace_back(part.key, value_of(part.time));
  return out;
}

RlValidation validate_rl(const RlValidateQuestion& question, const Catalog& catalog,
                         const std::function<bool()>& stop) {
  return validate_rows<RlSteps>(question, catalog, stop);
}

}  // namespace scalecalc
