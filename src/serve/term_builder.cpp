// Builds the coefficients of each operation of an engine step from the model's operation lists. Sources: as
// serve_work.cpp.

#include "serve/term_builder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>

#include "base/scalar.h"
#include "cost/mesh.h"
#include "model/kv_cache.h"
#include "model/op_list.h"
#include "model/stored_bytes.h"
#include "serve/stage_layers.h"

namespace scalecalc {
namespace {

/// Adds the term, or its layers to one that is the same in another kind of layer.
template <class Term, class Same>
void add_or_merge(std::vector<Term>& terms, Term term, const std::vector<double>& on_stages, const Same& same) {
  const auto found = std::find_if(terms.begin(), terms.end(), [&](const Term& t) { return same(t, term); });
  if (found == terms.end()) {
    term.on_stages = on_stages;
    terms.push_back(std::move(term));
  } else {
    found->layers = found->layers + term.layers;
    for (std::size_t s = 0; s < on_stages.size(); ++s) found->on_stages[s] += on_stages[s];
  }
}

}  // namespace

template <class R>
TermBuilder<R>::TermBuilder(const ServeBasis<R>& basis, const ServeLayout& layout)
    : basis_(basis), system_(basis.system), layout_(layout), model_(*basis.system.model), chip_(basis.chip) {
  out_.rates = basis.rates;
  out_.chances = basis.chances;
  if (system_.expert_load) out_.rates.imbalance = R(system_.expert_load->fullest(layout.ep));
  out_.peak_bandwidth = basis.peak_bandwidth;
  out_.onchip = basis.onchip;
  out_.vector_rate = chip_.vector;
  out_.parts = layout.ep_overlap ? 2 : 1;
  out_.paired = max(out_.rates.overlap, basis.overlap.ep_paired);
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
  if (layout_.pp > 1 && basis_.kinds.size() > 1) out_.mixes = fullest_stages(model_, layout_.pp);
  for (const KindOps<R>& kind : basis_.kinds) {
    on_stages_.clear();
    for (const LayersByKind& mix : out_.mixes) on_stages_.push_back(to_double(mix[kind.index]));
    for (const Op<R>& op : kind.ops) add_op(op, kind.kind, R(kind.layers), false);
  }
  on_stages_.clear();
  for (const Op<R>& op : basis_.head) add_op(op, {}, R(1.0), true);
  for (const TowerPart<R>& part : basis_.towers) {
    if (!part.shown) continue;
    for (const Op<R>& op : part.ops) add_tower(op, R(part.count), part.weight_ways(op, layout_.tp));
  }
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
MatmulFormat TermBuilder<R>::format(Part part, const LayerKind* kind) const {
  return {.dtype = basis_.format_of(basis_.format_bits(part, kind)),
          .scaling = basis_.scaling(part, kind),
          .weight_bytes = basis_.stored_bits(part, kind) / 8,
          .activation_bytes = system_.formats.activation_bytes};
}

/// Weights that are unpacked on their way to a matmul in a wider format.
template <class R>
bool TermBuilder<R>::is_weight_only(Part part, const LayerKind* kind) const {
  const double bits = basis_.format_bits(part, kind);
  return bits < 8 * bytes_per_element(basis_.format_of(bits));
}

template <class R>
double TermBuilder<R>::dispatch_bytes() const {
  return std::min(system_.formats.activation_bytes,
                  bytes_per_element(basis_.format_of(basis_.format_bits(Part::kExperts, nullptr))));
}

template <class R>
void TermBuilder<R>::add_matmul(const Op<R>& op, const LayerKind& kind, const R& layers, bool logits) {
  if (value_of(op.rows) == 0) return;  // stored and not used
  const double ways = op.tp == TpRule::kKvColumn ? std::min(heads_, value_of(op.groups)) * to_double(layout_.tp_x)
                                                 : ways_of(op.tp, op.part);
  const R k = op.tp == TpRule::kRow ? op.k / R(ways) : op.k;
  const R n = op.tp == TpRule::kRow ? op.n : op.n / R(ways);
  const MatmulTerm<R> matmul = dense_term(chip_, format(op.part, &kind), k, n);
  DenseTerm<R> term{.name = op.name, .layers = layers, .logits = logits};
  term.flops = value_of(op.rows) == 1 ? matmul.row_flops : matmul.row_flops * op.rows;
  term.weight_bytes = matmul.matrix_bytes;
  term.row_bytes = matmul.row_bytes;
  term.rate = matmul.rate;
  term.bandwidth = is_weight_only(op.part, &kind) ? out_.rates.weights * out_.rates.dequantise : out_.rates.weights;
  layer_bytes_ += logits ? 0 : value_of(term.weight_bytes * layers) / to_double(model_.layers());
  if (op.name == kCrossKeysValues) {  // in the steps that take the prompt in
    term.row_bytes = term.row_bytes * op.rows;
    term.on_stages = on_stages_;
    return out_.towers.push_back(std::move(term));
  }
  add_or_merge(out_.dense, std::move(term), on_stages_, [](const auto& a, const auto& b) {
    return a.name == b.name && value_of(a.flops) == value_of(b.flops) &&
           value_of(a.weight_bytes) == value_of(b.weight_bytes) && a.logits == b.logits;
  });
}

template <class R>
void TermBuilder<R>::add_grouped(const Op<R>& op, const R& layers) {
  const R part(1 / to_double(layout_.etp));
  const R k = op.tp == TpRule::kExpertRow ? op.k * part : op.k;
  const R n = op.tp == TpRule::kExpertRow ? op.n : op.n * part;
  ExpertTerm<R> term{.name = op.name,
                     .layers = layers,
                     .matmul = grouped_term(chip_, format(Part::kExperts, nullptr), k, n),
                     .experts = value_of(op.matrices) + to_double(system_.redundant_experts),
                     .top_k = value_of(op.rows)};
  term.here = term.experts / to_double(layout_.ep);
  term.bandwidth = out_.rates.weights * out_.rates.expert_read *
                   (is_weight_only(Part::kExperts, nullptr) ? out_.rates.dequantise : R(1.0));
  add_or_merge(out_.experts, std::move(term), on_stages_, [](const auto& a, const auto& b) {
    return a.name == b.name && value_of(a.matmul.row_flops) == value_of(b.matmul.row_flops);
  });
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
  const AttentionTerm<R> attention = attention_term(chip_, chip_.peak_attention_forward, op, ways, act);
  CacheTerm<R> term{.name = op.name, .layers = layers, .reach = op.reach, .span = op.span};
  term.prefill_flops = attention.token_flops;
  term.decode_flops = attention.token_flops;
  term.row_bytes = attention.row_bytes;
  term.rate = attention.rate;
  term.half_context = attention.half_context;
  term.context_ways = R(to_double(layout_.cp));
  const bool index = op.tp == TpRule::kWhole;  // the indexer's keys are one head's, whole on every rank
  if (kind.mixer == MixerKind::kMla && !index) {
    const MlaSpec& m = *model_.attention.mla;
    const R latent(to_double(m.kv_lora_rank)), rope(to_double(m.qk_rope_head_dim));
    term.decode_flops = FlopsOf<R>(R(2.0) * op.heads * (R(2.0) * latent + rope) / ways);
    term.latent_beyond = op.reach == Reach::kChosen;
    term.cached_flops = FlopsOf<R>(R(2.0) * latent * op.heads * R(to_double(m.qk_nope_head_dim + m.v_head_dim)) / ways);
    term.token_bytes = bytes(latent + rope, by_sequence ? kv / heads : kv);
  } else {
    const R split = by_sequence ? ways : index ? R(1.0) : min(ways, op.groups);
    // Keys and values of a tower's output are no token's of the sequence.
    const bool across = attends_across(kind.mixer) && op.reach == Reach::kFixed;
    const R kept = across ? op.groups * (op.qk_width + op.v_width) / op.heads : op.shared;
    term.token_bytes = bytes(kept / split, index ? CacheFormat{}.index_bytes : kv);
    // Scores of an indexer are in fp8, where the chip has it.
    const auto& peaks = system_.hw->matmul_peak;
    const auto& narrow = peaks[static_cast<std::size_t>(DType::kFp8)];
    const auto& wide = peaks[static_cast<std::size_t>(basis_.format_of(16))];
    if (index && narrow && wide) term.rate = term.rate * R(*narrow / *wide);
  }
  add_or_merge(out_.caches, std::move(term), on_stages_, [](const auto& a, const auto& b) {
    return a.name == b.name && value_of(a.prefill_flops) == value_of(b.prefill_flops) && a.reach == b.reach;
  });
}

/// The state is read and written once a step, in fp32.
template <class R>
void TermBuilder<R>::add_scan(const Op<R>& op, const R& layers) {
  const R share(1 / heads_);
  const RowTerm<R> row = row_term(chip_, chip_.peak_scan_forward, op, share, system_.formats.activation_bytes);
  CacheTerm<R> term{.name = op.name, .layers = layers};
  term.row_flops = row.row_flops;
  term.state_bytes = bytes(op.state * share, 2 * CacheFormat{}.state_bytes);
  term.row_bytes = row.row_bytes;
  term.rate = row.rate;
  add_or_merge(out_.caches, std::move(term), on_stages_, [](const auto& a, const auto& b) {
    return a.name == b.name && value_of(a.row_flops) == value_of(b.row_flops);
  });
}

/// Under the head only the logits are read, to sample from them; training's loss writes their gradient too.
template <class R>
void TermBuilder<R>::add_vector(const Op<R>& op, const R& layers, bool logits) {
  const R share(1 / ways_of(op.tp, op.part));
  const double act = system_.formats.activation_bytes;
  const RowTerm<R> row = row_term(chip_, chip_.vector, op, share, act);
  const bool sampling = logits && op.part == Part::kHead;
  VectorTerm<R> term{.name = sampling ? "sampling" : op.name, .layers = layers, .logits = logits};
  term.flops = row.row_flops;
  term.bytes = sampling ? bytes(op.reads * share, act) : row.row_bytes;
  if (value_of(term.bytes) <= 0) return;
  add_or_merge(out_.vectors, std::move(term), on_stages_, [](const auto& a, const auto& b) {
    return a.name == b.name && value_of(a.bytes) == value_of(b.bytes) && a.logits == b.logits;
  });
}

/// For one token of a prompt. Tensor ranks divide the work, by heads and widths or else by positions; the first divide
/// the weights too.
template <class R>
void TermBuilder<R>::add_tower(const Op<R>& op, const R& layers, double weight_ways) {
  const R share(1 / tensor_);
  const double act = system_.formats.activation_bytes;
  if (op.kind == OpKind::kVector) {
    const RowTerm<R> row = row_term(chip_, chip_.vector, op, share, act);
    if (value_of(row.row_bytes) <= 0) return;
    VectorTerm<R> term{.name = op.name, .layers = layers};
    term.flops = row.row_flops;
    term.bytes = row.row_bytes;
    return out_.tower_vectors.push_back(std::move(term));
  }
  DenseTerm<R> term{.name = op.name, .layers = layers};
  term.bandwidth = out_.rates.weights;
  if (op.kind == OpKind::kAttention) {
    const AttentionTerm<R> attention = attention_term(chip_, chip_.peak_attention_forward, op, R(tensor_), act);
    term.flops = attention.token_flops * op.span;
    term.row_bytes = attention.row_bytes;
    term.rate = attention.rate_at(op.span);
  } else {
    const MatmulTerm<R> matmul =
        dense_term(chip_, {.dtype = basis_.format_of(16), .activation_bytes = act}, op.k, op.n);
    term.flops = op.matmul_flops() * share;
    term.weight_bytes = BytesOf<R>(stored_bytes(op, nullptr, system_.formats.weights) / weight_ways);
    term.row_bytes = matmul.row_bytes * (op.rows * share);
    term.rate = matmul.rate;
  }
  out_.towers.push_back(std::move(term));
}

template class TermBuilder<double>;
template class TermBuilder<Dual>;
template class TermBuilder<Traced>;

// The collectives of a step. Sources: sums over tensor ranks: Megatron-LM, arXiv:1909.08053 section 3; two-dimensional
// and gathered weights: Pope et al. 2022, arXiv:2211.05102 section 3.2; experts' all-to-alls: DeepSeek-V3,
// arXiv:2412.19437 section 3.2.2 (8-bit dispatch, 16-bit combine).

namespace {

template <class R>
class CollectiveBuilder {
 public:
  CollectiveBuilder(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice,
                    const Placement& placement, const TermBuilder<R>& builder, StepTerms<R>& terms)
      : basis_(basis),
        system_(basis.system),
        layout_(layout),
        model_(*basis.system.model),
        slice_(slice),
        dims_(basis.dims),
        dispatch_(builder.dispatch_bytes()),
        layer_bytes_(builder.layer_bytes()),
        terms_(terms) {
    const Group tp = placement.of(MeshDim::kTp);
    const Group all = merge(merge(tp, placement.of(MeshDim::kCp)), placement.of(MeshDim::kFsdp));
    reduce_ = channel(merge(tp, placement.of(MeshDim::kCp)), "tensor group");
    tp_ = channel(tp, "tp");
    cp_ = channel(placement.of(MeshDim::kCp), "cp");
    pp_ = channel(placement.of(MeshDim::kPp), "pp");
    group_ = channel(all, "stage");
    Group inner, outer;
    const std::array<const Group*, 3> nest{&tp, &placement.of(MeshDim::kCp), &placement.of(MeshDim::kFsdp)};
    if (fold(std::span(nest).first(1), layout.tp_x, inner, outer)) {
      x_ = channel(inner, "tp x");
      y_ = channel(outer, "tp y");
    }
    if (fold(nest, layout.etp, inner, outer)) {
      etp_ = channel(inner, "etp");
      ep_ = make_channel(*system_.hw, slice, basis_.network, outer, "ep", routing_of(model_, kServedDispatch));
    }
  }

  void build() {
    for (const KindOps<R>& kind : basis_.kinds) {
      layer(kind.kind, kind.ops, kind.layers);
      for (std::size_t s = 0; s < terms_.mixes.size(); ++s) {
        stage_ = s;
        layer(kind.kind, kind.ops, to_double(terms_.mixes[s][kind.index]));
      }
      stage_.reset();
    }
    ends();
  }

 private:
  double act() const { return system_.formats.activation_bytes; }
  BytesOf<R> bytes(const R& elements, double each) const { return BytesOf<R>(elements * R(each)); }
  Channel<R> channel(const Group& group, std::string_view label) const {
    return make_channel(*system_.hw, slice_, basis_.network, group, label);
  }

  /// `row_bytes` for each row, and `fixed` whatever the rows.
  void add(std::string_view name, double times, const Channel<R>& channel, const SecondsOf<R>& latency,
           const BytesOf<R>& row_bytes, const SecondsPerByteOf<R>& per_byte, bool logits = false,
           const SecondsOf<R>& fixed = SecondsOf<R>(R(0.0))) {
    if (channel.size == 1) return;
    CollectiveTerm<R> term{.name = name,
                           .times = R(times),
                           .latency = latency,
                           .per_row = row_bytes * per_byte,
                           .ramp = channel.ramp,
                           .row_bytes = row_bytes,
                           .fixed = fixed,
                           .latency_adds = channel.latency_adds,
                           .logits = logits,
                           .of_experts = exchanging_,
                           .of_prompts = of_prompts_};
    for (CollectiveTerm<R>& known : terms_.collectives) {
      if (known.name != name || value_of(known.per_row) != value_of(term.per_row)) continue;
      if (!stage_) {
        known.times = known.times + term.times;
      } else {
        known.on_stages.resize(terms_.mixes.size());
        known.on_stages[*stage_] += times;
      }
      return;
    }
    terms_.collectives.push_back(std::move(term));
  }

  void all_reduce(std::string_view name, double times, const Channel<R>& channel, const R& elements) {
    add(name, times, channel, channel.reduce_latency, bytes(elements, act()), channel.reduce);
  }
  void gather(std::string_view name, double times, const Channel<R>& channel, const R& elements, double each,
              bool logits = false) {
    add(name, times, channel, channel.gather_latency, bytes(elements, each), channel.gather, logits);
  }
  void all_to_all(std::string_view name, double times, const Channel<R>& channel, const R& elements, double each) {
    add(name, times, channel, channel.all_to_all_latency, bytes(elements, each), channel.all_to_all);
  }

  void layer(const LayerKind& kind, const std::vector<Op<R>>& ops, double count) {
    for (const Op<R>& op : ops) {
      if (value_of(op.summed) > 0) all_reduce("inner all-reduce", count, tp_, op.summed);
      if (op.kind == OpKind::kAttention && op.tp == TpRule::kHeads) {
        all_to_all("context all-to-all", count, cp_, op.v_width / R(to_double(layout_.tp)), act());
        if (layout_.scheme == ServeScheme::kStationary2d) {
          // Queries, keys and values go from heads to sequences, the outputs back.
          const R moved = (op.qk_width + op.v_width + op.shared) / R(to_double(layout_.tp));
          all_to_all("sequence all-to-all", count * 2, tp_, moved * R(0.5), act());
        }
      }
    }
    const bool shares_experts = kind.ffn == FfnKind::kMoe && terms_.sharing > 1;
    if (shares_experts) expert_all_to_all(count);
    switch (layout_.scheme) {
      case ServeScheme::kStationary1d: return reductions(kind, count);
      case ServeScheme::kStationary2d: return reductions_2d(kind, ops, count);
      case ServeScheme::kGathered: return gathers(count);
    }
  }

  /// Each half of a layer ends in a sum over the ranks its last matmul was divided over.
  void reductions(const LayerKind& kind, double count) {
    const double parts = (kind.mixer != MixerKind::kNone ? 1 : 0) + (attends_twice(kind.mixer) ? 1 : 0) +
                         (kind.ffn != FfnKind::kNone ? 1 : 0);
    const double halves = model_.parallel_block ? 1 : parts;
    all_reduce("tensor all-reduce", count * halves, reduce_, dims_.d_model);
  }

  /// Inputs lie in parts of d_model, so that wide outputs are summed over x as well, and narrow ones over y in parts.
  /// A gated MLP sums both its halves in parts and gathers their product alone.
  void reductions_2d(const LayerKind& kind, const std::vector<Op<R>>& ops, double count) {
    const R x(to_double(layout_.tp_x)), y(to_double(layout_.tp / layout_.tp_x));
    R wide(0.0), summed(0.0), product(0.0);
    for (const Op<R>& op : ops) {
      if (op.kind != OpKind::kMatmul) continue;
      const bool out = op.tp == TpRule::kColumn || op.tp == TpRule::kKvColumn;
      if (out && op.part != Part::kMlp) wide = wide + op.n / y;
      if (out && op.part == Part::kMlp) summed = summed + op.n / y;
      if (op.tp == TpRule::kRow && op.part == Part::kMlp) product = product + op.k / y;
    }
    all_reduce("2d all-reduce over x", count, x_, wide);
    gather("2d reduce-scatter over x", count, x_, summed, act());
    gather("2d all-gather over x", count, x_, product, act());
    const double halves = model_.parallel_block || kind.ffn == FfnKind::kNone ? 1 : 2;
    all_reduce("2d all-reduce over y", count * halves, y_, dims_.d_model / x);
  }

  void gathers(double count) {
    const SecondsOf<R> transfer = BytesOf<R>(R(layer_bytes_)) * tp_.gather;
    add("weight all-gather", count, tp_, tp_.gather_latency, BytesOf<R>(R(0.0)), tp_.gather, false, transfer);
  }

  /// Each rank sends its part of its group's tokens to the experts they chose and gets the sums back; without expert
  /// ranks all tokens go everywhere.
  void expert_all_to_all(double count) {
    exchanging_ = true;
    exchange(count);
    exchanging_ = false;
  }

  void exchange(double count) {
    const R& width = dims_.expert_width;
    const R each(1 / to_double(layout_.tp * layout_.cp));
    if (layout_.ep == 1) {
      const R rows(terms_.sharing);
      gather("expert all-gather", count, group_, rows * width, dispatch_);
      gather("expert reduce-scatter", count, group_, rows * width, act());
      return;
    }
    terms_.contention = contention_of(basis_.overlap, ep_);
    const R routed = dims_.top_k * width * each * terms_.rates.imbalance;
    all_to_all("expert dispatch", count, ep_, routed, dispatch_);
    all_to_all("expert combine", count, ep_, routed, act());
    if (layout_.etp > 1) {
      const R arrived = routed * R(to_double(layout_.etp));
      gather("expert tensor all-gather", count, etp_, arrived, dispatch_);
      gather("expert tensor reduce-scatter", count, etp_, arrived, act());
    }
  }

  /// Each half of a tower's layer that tensor ranks divide ends in a sum too.
  void tower(const TowerPart<R>& part) {
    if (!part.shown || !part.divides(layout_.tp)) return;
    const auto halves =
        std::count_if(part.ops.begin(), part.ops.end(), [](const Op<R>& op) { return op.tp == TpRule::kRow; });
    of_prompts_ = true;
    all_reduce("tower all-reduce", part.count * static_cast<double>(halves), tp_, part.width);
    of_prompts_ = false;
  }

  void ends() {
    for (const TowerPart<R>& part : basis_.towers) tower(part);
    if (layout_.scheme == ServeScheme::kStationary1d) gather("logits gather", 1, reduce_, dims_.outputs, act(), true);
    if (layout_.pp == 1) return;
    terms_.stage_send_latency = pp_.send_latency;
    terms_.stage_send_per_row = bytes(dims_.d_model, act()) * pp_.send;
  }

  const ServeBasis<R>& basis_;
  const ServingSystem& system_;
  const ServeLayout& layout_;
  const ModelSpec& model_;
  const Slice& slice_;
  const ModelDims<R>& dims_;
  double dispatch_;
  double layer_bytes_;
  bool exchanging_ = false;           ///< what is added is of experts
  bool of_prompts_ = false;           ///< or of towers
  std::optional<std::size_t> stage_;  ///< of the mixes, whose layers are counted; none: all layers
  StepTerms<R>& terms_;
  Channel<R> tp_, reduce_, x_, y_, cp_, ep_, etp_, group_, pp_;
};

}  // namespace

template <class R>
void add_collectives(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice,
                     const Placement& placement, const TermBuilder<R>& builder, StepTerms<R>& terms) {
  if (layout.replica_chips() == 1) return;
  CollectiveBuilder<R>(basis, layout, slice, placement, builder, terms).build();
}

#define SCALECALC_INSTANTIATE(R)                                                                          \
  template void add_collectives(const ServeBasis<R>&, const ServeLayout&, const Slice&, const Placement&, \
                                const TermBuilder<R>&, StepTerms<R>&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
