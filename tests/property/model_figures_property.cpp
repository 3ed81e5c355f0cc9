// Properties of a model taken apart: parts are the whole, and longer sequences never cost a token less.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/accounting.h"
#include "model_card/model_figures.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

ModelSpec figures_model() {
  ModelSpec model = test::hybrid_model(7 * *rc::gen::inRange<std::int64_t>(1, 4), *rc::gen::arbitrary<bool>());
  model.d_model = 64 * *rc::gen::inRange<std::int64_t>(1, 40);
  model.attention.kv_heads = *rc::gen::element<std::int64_t>(1, 2, 4, 16);
  model.attention.window = *rc::gen::inRange<std::int64_t>(1, 5000);
  model.tied_embeddings = *rc::gen::arbitrary<bool>();
  model.moe->top_k = *rc::gen::inRange<std::int64_t>(1, 9);
  return model;
}

ModelQuestion random_question() {
  return {.seq = static_cast<double>(*rc::gen::inRange(1, 100000)), .causal = *rc::gen::arbitrary<bool>()};
}

double value(const FlopsOf<Traced>& flops) { return flops.value().value(); }

bool same(double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); }

RC_GTEST_PROP(ModelParts, AddUpToTheWhole, ()) {
  const ModelSpec model = figures_model();
  const ModelFigures f = model_figures(model, random_question());
  double parameters = 0;
  double flops = value(f.sums.scores) + value(f.sums.scans);
  for (std::size_t p = 0; p < kPartCount; ++p) {
    parameters += f.sums.parameters[p].value();
    flops += value(f.sums.matmul[p]);
  }
  RC_ASSERT(same(parameters, f.total.value()));
  RC_ASSERT(same(flops, value(f.forward)));
  const ParameterCount count = count_parameters(model);
  RC_ASSERT(same(f.total.value(), count.total));
  RC_ASSERT(same(f.active.value(), count.active));
  RC_ASSERT(f.active.value() <= f.total.value());
}

RC_GTEST_PROP(ModelParts, LayersAndEndsAddUpToTheWhole, ()) {
  const ModelFigures f = model_figures(figures_model(), random_question());
  double parameters = 0;
  for (const LayerFigures& layer : f.layers) {
    for (const Traced& part : layer.sums.parameters) parameters += static_cast<double>(layer.layers) * part.value();
  }
  // Both ends have the final norm besides the two matrices, and nothing else.
  const double ends = f.sums.parameters[static_cast<std::size_t>(Part::kEmbedding)].value() +
                      f.sums.parameters[static_cast<std::size_t>(Part::kHead)].value();
  const double rest = f.total.value() - parameters - ends;
  RC_ASSERT(rest > 0 && rest < 64 * 41);
}

RC_GTEST_PROP(ModelFlops, AreThoseOfTheAccounting, ()) {
  const ModelSpec model = figures_model();
  ModelQuestion q = random_question();
  q.contexts = {q.seq};
  const ModelFigures f = model_figures(model, q);
  const TrainingFlops flops = training_flops(model, q.seq, false);
  if (q.causal) RC_ASSERT(same(value(f.training), flops.model_causal()));
  RC_ASSERT(same(value(f.contexts[0].forward), value(f.forward)));
}

RC_GTEST_PROP(ModelFlops, GrowWithTheSequence, ()) {
  const ModelSpec model = figures_model();
  const ModelQuestion shorter = random_question();
  ModelQuestion longer = shorter;
  longer.seq += static_cast<double>(*rc::gen::inRange(1, 100000));
  const ModelFigures a = model_figures(model, shorter);
  const ModelFigures b = model_figures(model, longer);
  RC_ASSERT(value(a.forward) <= value(b.forward));
  RC_ASSERT(value(a.training) <= value(b.training));
  RC_ASSERT(a.kv_bytes_per_sequence <= b.kv_bytes_per_sequence);
  RC_ASSERT(a.kv_bytes_per_token == b.kv_bytes_per_token);
}

RC_GTEST_PROP(ModelFlops, TheWholeSquareCostsAtLeastTheCausalHalf, ()) {
  const ModelSpec model = figures_model();
  ModelQuestion q = random_question();
  q.causal = true;
  const double causal = value(model_figures(model, q).sums.scores);
  q.causal = false;
  RC_ASSERT(causal * 2 <= value(model_figures(model, q).sums.scores) * (1 + 1e-12));
}

}  // namespace
}  // namespace scalecalc
