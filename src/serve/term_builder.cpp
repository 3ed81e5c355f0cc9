// Sources: as serve_work.cpp.
#include "serve/term_builder.h"

#include <algorithm>

#include "base/scalar.h"
#include "model/kv_cache.h"

namespace scalecalc {

namespace {

/// Adds the term, or its layers to one that is the same in another kind of layer.
template <class Term, class Same>
void add_or_merge(std::vector<Term>& terms, Term term, const Same& same) {
  const auto found = std::find_if(terms.begin(), terms.end(), [&](const Term& t) { return same(t, term); });
  if (found == terms.end()) {
    terms.push_back(std::move(term));
  } else {
    found->layers = found->layers + term.layers;
  }
}

}  // namespace

template <class R>
TermBuilder<R>::TermBuilder(const ServeBasis<R>& basis, const ServeLayout& layout)
    : basis_(basis), system_(basis.system), layout_(layout), model_(*basis.system.model), chip_(basis.chip) {
  out_.rates = basis.rates;
  out_.peak_bandwidth = basis.peak_bandwidth;
  out_.onchip = basis.onchip;
  out_.vector_rate = chip_.vector;
  out_.sharing = to_double(layout.attention_dp) * (layout.scheme == ServeScheme::kGathered ? to_double(layout.tp) : 1);
  if (layout.scheme != ServeScheme::kGathered) {
    tensor_ = to_double(layout.tp * layout.cp);
    heads_ = to_double(layout.tp / layout.tp_x);
  }
}

template <class R>
StepTerms<R> TermBuilder<R>::build() {
  const double layers = to_double(model_.layers());
  out_.layers = R(layers);
  out_.stages = R(to_double(layout_.pp));
  const std::int64_t fullest = (model_.layers() + layout_.pp - 1) / layout_.pp;
  out_.uneven = R(to_double(fullest * layout_.pp) / layers);
  for (const KindOps<R>& kind : basis_.kinds) {
    for (const Op<R>& op : kind.ops) add_op(op, kind.kind, R(kind.layers), false);
  }
  for (const Op<R>& op : basis_.head) add_op(op, {}, R(1.0), true);
  return std::move(out_);
}

template <class R>
void TermBuilder<R>::add_op(const Op<R>& op, const LayerKind& kind, const R& layers, bool logits) {
  switch (op.kind) {
    case OpKind::kMatmul: return add_matmul(op, kind, layers, logits);
    case OpKind::kGroupedMatmul: return add_grouped(op, layers);
    case OpKind::kAttention: return add_attention(op, kind, layers);
    case OpKind::kScan: return add_scan(op, layers);
    case OpKind::kVector: return add_vector(op, layers, logits);
  }
}

/// Ranks an operation divides over. Attention's own projections stay inside a tensor group; all other matmuls use the
/// context ranks too, which have nothing else to do then.
template <class R>
double TermBuilder<R>::ways_of(TpRule rule, Part part) const {
  switch (rule) {
    case TpRule::kColumn: return part == Part::kAttention ? heads_ * to_double(layout_.tp_x) : tensor_;
    case TpRule::kRow: return tensor_;
    case TpRule::kKvColumn:
    case TpRule::kHeads: return heads_;
    case TpRule::kExpert:
    case TpRule::kExpertRow: return to_double(layout_.group()) / out_.sharing;
    case TpRule::kSequence:
    case TpRule::kWhole: break;
  }
  return 1;
}

template <class R>
double TermBuilder<R>::dispatch_bytes() const {
  return std::min(system_.formats.activation_bytes,
                  bytes_per_element(basis_.format_of(basis_.stored_bits(Part::kExperts, nullptr))));
}

template <class R>
void TermBuilder<R>::add_matmul(const Op<R>& op, const LayerKind& kind, const R& layers, bool logits) {
  const double ways = op.tp == TpRule::kKvColumn ? std::min(heads_, value_of(op.groups)) * to_double(layout_.tp_x)
                                                 : ways_of(op.tp, op.part);
  const R k = op.tp == TpRule::kRow ? op.k / R(ways) : op.k;
  const R n = op.tp == TpRule::kRow ? op.n : op.n / R(ways);
  const double stored = basis_.stored_bits(op.part, &kind);
  const DType dtype = basis_.format_of(stored);
  const double act = system_.formats.activation_bytes;
  const R& h = chip_.half_dim;
  DenseTerm<R> term{.name = op.name, .layers = layers, .logits = logits};
  term.flops = FlopsOf<R>(R(2.0) * k * n);
  term.weight_bytes = bytes(k * n, stored / 8);
  term.row_bytes = bytes(k, std::min(act, bytes_per_element(dtype))) + bytes(n, act);
  term.rate = chip_.matmul[static_cast<std::size_t>(dtype)] * out_.rates.matmul * (n / (n + h)) * (k / (k + h));
  const bool weight_only = stored < 8 * bytes_per_element(dtype);
  term.bandwidth = weight_only ? out_.rates.weights * out_.rates.dequantise : out_.rates.weights;
  layer_bytes_ += logits ? 0 : value_of(term.weight_bytes * layers) / to_double(model_.layers());
  add_or_merge(out_.dense, std::move(term), [](const auto& a, const auto& b) {
    return a.name == b.name && value_of(a.flops) == value_of(b.flops) &&
           value_of(a.weight_bytes) == value_of(b.weight_bytes) && a.logits == b.logits;
  });
}

template <class R>
void TermBuilder<R>::add_grouped(const Op<R>& op, const R& layers) {
  const R part(1 / to_double(layout_.etp));
  const R k = op.tp == TpRule::kExpertRow ? op.k * part : op.k;
  const R n = op.tp == TpRule::kExpertRow ? op.n : op.n * part;
  const double stored = basis_.stored_bits(Part::kExperts, nullptr);
  const DType dtype = basis_.format_of(stored);
  const double act = system_.formats.activation_bytes;
  const R& h = chip_.half_dim;
  ExpertTerm<R> term{.name = op.name,
                     .layers = layers,
                     .experts = value_of(op.matrices),
                     .top_k = value_of(op.rows),
                     .here = value_of(op.matrices) / to_double(layout_.ep)};
  term.flops = FlopsOf<R>(R(2.0) * k * n);
  term.weight_bytes = bytes(k * n, stored / 8);
  term.row_bytes = bytes(k, std::min(act, bytes_per_element(dtype))) + bytes(n, act);
  term.rate = chip_.matmul[static_cast<std::size_t>(dtype)] * out_.rates.matmul * out_.rates.grouped * (n / (n + h)) *
              (k / (k + h));
  const bool weight_only = stored < 8 * bytes_per_element(dtype);
  term.bandwidth = out_.rates.weights * out_.rates.expert_read * (weight_only ? out_.rates.dequantise : R(1.0));
  add_or_merge(out_.experts, std::move(term),
               [](const auto& a, const auto& b) { return a.name == b.name && value_of(a.flops) == value_of(b.flops); });
}

/// Decoding under MLA attends to the latent itself, which every head reads and no tensor rank has less of; prompts
/// attend to the expanded keys and values. The up-projection's FLOPs are the same either way.
template <class R>
void TermBuilder<R>::add_attention(const Op<R>& op, const LayerKind& kind, const R& layers) {
  // Two-dimensional layouts divide sequences where heads give out, so that no rank repeats keys and values.
  const bool by_sequence = layout_.scheme == ServeScheme::kStationary2d;
  const double heads = by_sequence ? to_double(layout_.tp) : heads_;
  const R ways(op.tp == TpRule::kHeads ? heads : 1.0);
  const double act = system_.formats.activation_bytes;
  const double kv = bits_of(system_.formats.kv) / 8;
  CacheTerm<R> term{.name = op.name, .layers = layers, .reach = op.reach, .span = op.span};
  term.prefill_flops = attention_flops(op, R(1.0)) / ways;
  term.decode_flops = term.prefill_flops;
  term.row_bytes = bytes(op.qk_width + op.v_width, act) / ways;
  term.rate = out_.rates.attention;
  term.context_ways = R(to_double(layout_.cp));
  const bool index = op.tp == TpRule::kWhole;  // the indexer's keys are one head's, whole on every rank
  if (kind.mixer == MixerKind::kMla && !index) {
    const MlaSpec& m = *model_.attention.mla;
    const R latent(to_double(m.kv_lora_rank)), rope(to_double(m.qk_rope_head_dim));
    term.decode_flops = FlopsOf<R>(R(2.0) * op.heads * (R(2.0) * latent + rope) / ways);
    term.token_bytes = bytes(latent + rope, by_sequence ? kv / heads : kv);
  } else {
    const R split = by_sequence ? ways : index ? R(1.0) : min(ways, op.groups);
    term.token_bytes = bytes(op.shared / split, kv);
  }
  add_or_merge(out_.caches, std::move(term), [](const auto& a, const auto& b) {
    return a.name == b.name && value_of(a.prefill_flops) == value_of(b.prefill_flops) && a.reach == b.reach;
  });
}

/// The state is read and written once a step, in fp32.
template <class R>
void TermBuilder<R>::add_scan(const Op<R>& op, const R& layers) {
  const R ways(heads_);
  CacheTerm<R> term{.name = op.name, .layers = layers};
  term.row_flops = FlopsOf<R>(op.flops / ways);
  term.state_bytes = bytes(op.state, 2 * CacheFormat{}.state_bytes) / ways;
  term.row_bytes = bytes(op.reads + op.writes, system_.formats.activation_bytes) / ways;
  term.rate = op.by_element ? chip_.vector : out_.rates.attention;
  add_or_merge(out_.caches, std::move(term), [](const auto& a, const auto& b) {
    return a.name == b.name && value_of(a.row_flops) == value_of(b.row_flops);
  });
}

/// Under the head only the logits are read, to sample from them; training's loss writes their gradient too.
template <class R>
void TermBuilder<R>::add_vector(const Op<R>& op, const R& layers, bool logits) {
  const R ways(ways_of(op.tp, op.part));
  const bool sampling = logits && op.part == Part::kHead;
  const R elements = sampling ? op.reads : op.reads + op.writes;
  VectorTerm<R> term{.name = sampling ? "sampling" : op.name, .layers = layers, .logits = logits};
  term.flops = FlopsOf<R>(op.flops / ways);
  term.bytes = bytes(elements, system_.formats.activation_bytes) / ways;
  if (value_of(term.bytes) <= 0) return;
  add_or_merge(out_.vectors, std::move(term), [](const auto& a, const auto& b) {
    return a.name == b.name && value_of(a.bytes) == value_of(b.bytes) && a.logits == b.logits;
  });
}

template class TermBuilder<double>;
template class TermBuilder<Dual>;
template class TermBuilder<Traced>;
template class TermBuilder<Interval>;

}  // namespace scalecalc
