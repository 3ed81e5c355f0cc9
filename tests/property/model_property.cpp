// Properties of models of random shape: counts and work grow with what a model has, and shrink with what it skips.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "model/accounting.h"
#include "model/kv_cache.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

ModelSpec counted_model() {
  ModelSpec model = test::hybrid_model(7 * *rc::gen::inRange<std::int64_t>(1, 4), *rc::gen::arbitrary<bool>());
  model.d_model = 64 * *rc::gen::inRange<std::int64_t>(1, 40);
  model.attention.kv_heads = *rc::gen::element<std::int64_t>(1, 2, 4, 16);
  model.attention.window = *rc::gen::inRange<std::int64_t>(1, 5000);
  model.attention.chunk = *rc::gen::inRange<std::int64_t>(1, 5000);
  model.attention.qk_norm = *rc::gen::element(QkNorm::kNone, QkNorm::kHeadDim, QkNorm::kFull);
  model.tied_embeddings = *rc::gen::arbitrary<bool>();
  model.kinds[0].mixer = *rc::gen::element(MixerKind::kFull, MixerKind::kSliding, MixerKind::kChunked);
  return model;
}

double random_seq() { return static_cast<double>(*rc::gen::inRange(1, 10000)); }

RC_GTEST_PROP(Counts, GrowWithEachLayer, ()) {
  ModelSpec model = counted_model();
  const double seq = random_seq();
  const ParameterCount count = count_parameters(model);
  const TrainingFlops flops = training_flops(model, seq);
  model.layer_kind.push_back(*rc::gen::inRange<std::uint8_t>(0, 7));
  RC_ASSERT(count_parameters(model).total > count.total);
  RC_ASSERT(count_parameters(model).active > count.active);
  RC_ASSERT(training_flops(model, seq).model_causal() > flops.model_causal());
}

RC_GTEST_PROP(Counts, ActiveIsAtMostTotalAndPartsSum, ()) {
  const ParameterCount c = count_parameters(counted_model());
  RC_ASSERT(c.active <= c.total);
  RC_ASSERT(c.total == c.embedding + c.head + c.attention + c.mlp + c.experts + c.router + c.norms);
}

RC_GTEST_PROP(Work, AWindowOrChunkNeverAddsAttention, ()) {
  ModelSpec model = counted_model();
  const double seq = random_seq();
  for (const MixerKind kind : {MixerKind::kSliding, MixerKind::kChunked}) {
    model.kinds[0].mixer = kind;
    const TrainingFlops bound = training_flops(model, seq);
    model.kinds[0].mixer = MixerKind::kFull;
    RC_ASSERT(bound.attention_causal <= training_flops(model, seq).attention_causal * (1 + 1e-12));
    RC_ASSERT(bound.model_causal() <= bound.model_full() * (1 + 1e-12));
  }
}

RC_GTEST_PROP(Work, ContextsGrowWithTheSequenceAndTheSpan, ()) {
  const double seq = random_seq();
  const double span = random_seq();
  for (const Reach reach : {Reach::kAll, Reach::kWindow, Reach::kChunk, Reach::kChosen}) {
    const double context = mean_context(reach, span, seq);
    RC_ASSERT(context > 0 && context <= seq / 2);
    RC_ASSERT(reach == Reach::kAll || context <= span);
    // A rest of one token starts another chunk and lowers the mean, so chunks are compared at whole numbers of them.
    if (reach != Reach::kChunk) RC_ASSERT(context <= mean_context(reach, span, seq + 1) * (1 + 1e-12));
    if (reach != Reach::kChunk) RC_ASSERT(context <= mean_context(reach, span + 1, seq) * (1 + 1e-12));
    if (reach == Reach::kChunk) RC_ASSERT(mean_context(reach, span, 3 * span) == span / 2);
  }
}

RC_GTEST_PROP(Cache, BytesGrowWithTokensAndShrinkWithRanks, ()) {
  const KvCache cache = kv_cache(counted_model());
  const double tokens = random_seq();
  const double bytes = cache.sequence_bytes(tokens, {});
  RC_ASSERT(bytes <= cache.sequence_bytes(tokens + 1, {}));
  RC_ASSERT(cache.unlimited_elements_per_token() <= cache.elements_per_token());
  const std::int64_t tp = *rc::gen::element<std::int64_t>(2, 4, 8);
  const double each = cache.sequence_bytes(tokens, {}, tp);
  RC_ASSERT(each <= bytes && each * static_cast<double>(tp) >= bytes * (1 - 1e-12));
}

}  // namespace
}  // namespace scalecalc
