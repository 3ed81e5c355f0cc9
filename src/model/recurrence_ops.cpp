// Lists the operations of recurrences with a state. Gated delta net: arXiv:2412.06464 section 3, with the projections
// and the short convolution of Qwen3-Next. Lightning attention: MiniMax-01, arXiv:2501.08313 section 2. Mamba-1:
// arXiv:2312.00752 section 3, with the norms of Jamba, arXiv:2403.19887 section 3. Mamba-2: arXiv:2405.21060 section
// 7. RWKV: arXiv:2305.13048 section 3 (4), arXiv:2404.05892 section 4 (5 and 6), arXiv:2503.14456 section 4 (7).
// Griffin: arXiv:2402.19427 section 2.
//
// `recurrence` is what FLOPs conventions count per element of the state: 8 for the gated delta rule and 7 for Mamba-2
// as Megatron-LM (num_floating_point_operations), 9 for Mamba-1 (state-spaces/mamba issue 110), 4 for lightning
// attention (outer product and read). `flops` is what kernels do: the same products of the state and those inside
// chunks of tokens, for the chunk lengths of the published kernels. RWKV and Griffin go token by token: 8 operations of
// each of the three elements a channel of RWKV-4 keeps; a product and three multiply-adds (decay, bonus, read) of
// RWKV-5 and 6; of RWKV-7 a product and four multiply-adds (decay; what is unlearned, twice; what is learned; read); 10
// of Griffin's gate, decay and input scale.
#include "base/check.h"
#include "model/op_list.h"

namespace scalecalc {
namespace {

constexpr double kGdnChunk = 64;         // flash-linear-attention
constexpr double kLightningChunk = 256;  // MiniMax's Triton kernel
constexpr double kSiluFlops = 4;

template <class R>
class RecurrenceBuilder {
 public:
  explicit RecurrenceBuilder(OpList<R>& list) : list_(list), d_model_(list.dims().d_model) {}

  void gdn(const GdnSpec& g) {
    const R key_heads = fixed<R>(g.key_heads), heads = fixed<R>(g.value_heads);
    const R dk = fixed<R>(g.key_head_dim), dv = fixed<R>(g.value_head_dim);
    const R keys = key_heads * dk, values = heads * dv;
    column("query, key, value and gate projection", d_model_, R(2.0) * keys + R(2.0) * values);
    column("decay and write strength projection", d_model_, R(2.0) * heads);
    convolution(R(2.0) * keys + values, fixed<R>(g.conv_kernel), false);
    const R chunk(kGdnChunk);
    const R state = heads * dk * dv;
    list_.add({.name = "gated delta rule",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .extra_parameters = R(2.0) * heads,  // decay rate and step bias of each head
               .reads = R(2.0) * keys + values + R(2.0) * heads,
               .writes = values,
               .flops = heads * R(2.0) * chunk * (R(3.0) * dk + R(2.0) * dv) + R(6.0) * state,
               .recurrence = R(8.0) * state,
               .state = state,
               .saved = values + heads * chunk,  // output, and the inverse of each chunk's triangle
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    gated_norm("gated norm", values, dv);
    list_.output("output projection", Part::kAttention, values, false);
  }

  /// Each channel of a key decays by itself; decay and output gate come through head_dim (Kimi Linear,
  /// arXiv:2510.26692 section 4) or straight from the token (Ling 3). The chunks' products are those of the gated delta
  /// rule.
  void kda(const KdaSpec& k) {
    const R heads = fixed<R>(k.heads), dim = fixed<R>(k.head_dim);
    const R width = heads * dim;
    column("query, key and value projection", d_model_, R(3.0) * width);
    convolution(R(3.0) * width, fixed<R>(k.conv_kernel), false);
    if (k.full_rank_decay) {
      column("decay projection", d_model_, width);
    } else {
      low_rank("decay", dim, width);
    }
    column("write strength projection", d_model_, heads);
    const R chunk(kGdnChunk);
    const R state = width * dim;
    list_.add({.name = "kimi delta rule",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .extra_parameters = heads + width,  // decay rate of each head, bias of each channel's step
               .reads = R(4.0) * width + heads,
               .writes = width,
               .flops = heads * R(2.0) * chunk * R(5.0) * dim + R(6.0) * state,
               .recurrence = R(8.0) * state,
               .state = state,
               .saved = width + heads * chunk,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    if (k.full_rank_gate) {
      column("output gate projection", d_model_, width);
    } else {
      low_rank("output gate", dim, width);
    }
    gated_norm("gated norm", width, dim);
    list_.output("output projection", Part::kAttention, width, false);
  }

  /// LFM2: input, and a gate before and behind the convolution.
  void conv(const ConvSpec& c) {
    column("input and gates projection", d_model_, R(3.0) * d_model_);
    convolution(d_model_, fixed<R>(c.kernel), false);
    elementwise("gates", R(3.0) * d_model_, d_model_, R(2.0));
    list_.output("output projection", Part::kAttention, d_model_, false);
  }

  void lightning(const LightningSpec& l) {
    const R heads = fixed<R>(l.heads), dim = fixed<R>(l.head_dim);
    const R width = heads * dim;
    column("query, key and value projection", d_model_, R(3.0) * width);
    elementwise("query, key and value activation", R(3.0) * width, R(3.0) * width, R(kSiluFlops));
    column("gate projection", d_model_, width);
    const R state = width * dim;
    if (l.qk_norm) {
      elementwise("query and key norms", R(2.0) * width, R(2.0) * width, R(4.0));
      list_.last().extra_parameters = R(2.0) * dim;
    }
    list_.add({.name = "lightning attention",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .reads = R(3.0) * width,
               .writes = width,
               .flops = R(4.0 * kLightningChunk) * width + R(4.0) * state,
               .recurrence = R(4.0) * state,
               .state = state,
               .saved = width,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    gated_norm("gated output norm", width, width);
    list_.output("output projection", Part::kAttention, width, false);
  }

  void mamba1(const Mamba1Spec& m) {
    const R inner = fixed<R>(m.d_inner), states = fixed<R>(m.d_state), rank = fixed<R>(m.dt_rank);
    const R selected = rank + R(2.0) * states;
    column("input and gate projection", d_model_, R(2.0) * inner);
    convolution(inner, fixed<R>(m.d_conv), true);
    // Each tensor rank has a part of the channels, and every channel needs the whole step and state projections.
    list_.matmul("step and state projection", Part::kAttention, TpRule::kRow, inner, selected, false, TpRule::kWhole);
    list_.last().summed = selected;
    if (m.norms) {
      list_.add({.name = "step and state norms",
                 .kind = OpKind::kVector,
                 .part = Part::kAttention,
                 .tp = TpRule::kWhole,
                 .extra_parameters = selected,
                 .reads = selected,
                 .writes = selected,
                 .flops = selected * R(4.0),
                 .saved = selected,
                 .keep = Keep::kWithoutRemat,
                 .saved_tp = TpRule::kWhole});
    }
    list_.matmul("step projection", Part::kAttention, TpRule::kColumn, rank, inner, true, TpRule::kColumn);
    const R state = inner * states;
    list_.add({.name = "selective scan",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .extra_parameters = state + inner,  // decay of each state, skip of each channel
               .reads = R(2.0) * inner + R(2.0) * states,
               .writes = inner,
               .flops = R(9.0) * state,
               .recurrence = R(9.0) * state,
               .state = state,
               .by_element = true,
               .saved = inner,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    elementwise("gate", R(2.0) * inner, inner, R(kSiluFlops));
    list_.output("output projection", Part::kAttention, inner, false);
  }

  void mamba2(const Mamba2Spec& m) {
    const R heads = fixed<R>(m.heads), dim = fixed<R>(m.head_dim), states = fixed<R>(m.d_state);
    const R inner = heads * dim;
    const R projected = R(2.0) * fixed<R>(m.groups) * states;
    column("input, gate and step projection", d_model_, R(2.0) * inner + heads);
    list_.matmul("state projection", Part::kAttention, TpRule::kKvColumn, d_model_, projected, false,
                 TpRule::kKvColumn);
    list_.last().groups = fixed<R>(m.groups);
    convolution(inner + projected, fixed<R>(m.d_conv), true);
    const R chunk = fixed<R>(m.chunk);
    const R state = inner * states;
    list_.add({.name = "state space scan",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .extra_parameters = R(3.0) * heads,  // decay, step bias and skip of each head
               .reads = inner + projected + heads,
               .writes = inner,
               .flops = chunk * projected + R(2.0) * chunk * inner + R(4.0) * state,
               .recurrence = R(7.0) * state,
               .state = state,
               .saved = inner,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    if (m.norm) {
      gated_norm("gated norm", inner, inner);
    } else {
      elementwise("gate", R(2.0) * inner, inner, R(kSiluFlops));
    }
    list_.output("output projection", Part::kAttention, inner, false);
  }

  /// `shares`: the layer mixes its values with the first layer's.
  void rwkv(const RwkvSpec& w, bool shares) {
    const R width = fixed<R>(w.width);
    token_shift(w);
    column(w.version == 5 || w.version == 6 ? "receptance, key, value and gate projection"
                                            : "receptance, key and value projection",
           d_model_, (w.version == 5 || w.version == 6 ? R(4.0) : R(3.0)) * width);
    if (w.version >= 6) adapter("decay adapter", fixed<R>(w.decay_rank), width);
    if (w.version >= 7) {
      adapter("learning rate adapter", fixed<R>(w.rate_rank), width);
      list_.last().extra_parameters = width;  // its bias
      adapter("gate adapter", fixed<R>(w.gate_rank), width);
      if (shares) {
        adapter("value residual adapter", fixed<R>(w.value_rank), width);
        list_.last().extra_parameters = width;
      }
    }
    wkv(w);
    if (w.version >= 5) gated_norm("group norm and gate", width, R(2.0) * width);
    if (w.version == 4) elementwise("receptance gate", R(2.0) * width, width, R(kSiluFlops));
    list_.output("output projection", Part::kAttention, width, false);
  }

  /// Griffin: two branches as wide as the state, one through a convolution and the recurrence, one gating it.
  void rglru(const RglruSpec& g) {
    const R width = fixed<R>(g.width), block = width / fixed<R>(g.blocks);
    column("input and gate branch projection", d_model_, R(2.0) * width);
    list_.last().extra_parameters = R(2.0) * width;
    convolution(width, fixed<R>(g.conv_kernel), true);
    column("recurrence and input gates", block, R(2.0) * width);
    list_.last().extra_parameters = R(2.0) * width;
    list_.add({.name = "real-gated linear recurrence",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .extra_parameters = width,  // decay of each channel
               .reads = R(3.0) * width,
               .writes = width,
               .flops = R(10.0) * width,
               .recurrence = R(10.0) * width,
               .state = width,
               .by_element = true,
               .saved = width,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
    elementwise("gate", R(2.0) * width, width, R(kSiluFlops));
    list_.output("output projection", Part::kAttention, width, true);
  }

 private:
  /// What each projection reads: the token mixed with the one before it, by weights of each channel; in 6 by what a
  /// projection of low rank adds to them.
  void token_shift(const RwkvSpec& w) {
    const R mixed = w.version == 4 ? R(3.0) : w.version == 5 ? R(4.0) : w.version == 6 ? R(5.0) : R(6.0);
    if (w.version == 6) {
      const R rank = fixed<R>(w.mix_rank);
      list_.matmul("mixing down-projection", Part::kAttention, TpRule::kSequence, d_model_, mixed * rank, false,
                   TpRule::kSequence);
      list_.matmul("mixing up-projection", Part::kAttention, TpRule::kSequence, rank, mixed * d_model_, false,
                   TpRule::kSequence);
      list_.last().extra_parameters = d_model_;  // of what the first of the two reads
    }
    list_.add({.name = "token shift",
               .kind = OpKind::kVector,
               .part = Part::kAttention,
               .tp = TpRule::kSequence,
               .extra_parameters = mixed * d_model_,
               .reads = R(2.0) * d_model_,
               .writes = mixed * d_model_,
               .flops = R(3.0) * mixed * d_model_,
               .saved = mixed * d_model_,
               .keep = Keep::kWithoutRemat});
  }

  void wkv(const RwkvSpec& w) {
    const R width = fixed<R>(w.width);
    const R state = w.version == 4 ? R(3.0) * width : width * fixed<R>(w.head_dim);
    const R each(w.version == 4 ? 8.0 : w.version == 7 ? 9.0 : 7.0);
    // Decay and bonus of each channel; in 7 the decay's base and weights of what is unlearned, of the rate and the
    // bonus.
    const R vectors(w.version == 7 ? 4.0 : 2.0);
    list_.add({.name = "wkv recurrence",
               .kind = OpKind::kScan,
               .part = Part::kAttention,
               .tp = TpRule::kHeads,
               .extra_parameters = vectors * width,
               .reads = (w.version == 7 ? R(6.0) : R(4.0)) * width,
               .writes = width,
               .flops = each * state,
               .recurrence = each * state,
               .state = state,
               .by_element = true,
               .saved = width,
               .keep = Keep::kSelective,
               .saved_tp = TpRule::kHeads});
  }

  /// Down to `rank`, which every tensor rank has whole, and up to the width.
  void adapter(std::string_view name, const R& rank, const R& width) {
    list_.matmul(name, Part::kAttention, TpRule::kSequence, d_model_, rank, false, TpRule::kSequence);
    column(name, rank, width);
  }

  /// Down to `rank`, which every tensor rank has whole, and up again.
  void low_rank(std::string_view part, const R& rank, const R& width) {
    const bool decay = part == "decay";
    list_.matmul(decay ? "decay down-projection" : "output gate down-projection", Part::kAttention, TpRule::kSequence,
                 d_model_, rank, false, TpRule::kSequence);
    column(decay ? "decay up-projection" : "output gate up-projection", rank, width);
  }

  void column(std::string_view name, const R& k, const R& n) {
    list_.matmul(name, Part::kAttention, TpRule::kColumn, k, n, false, TpRule::kColumn);
  }

  /// Each channel over its last `kernel` tokens, then an activation; its output is cheap to compute again.
  void convolution(const R& channels, const R& kernel, bool bias) {
    list_.add({.name = "short convolution",
               .kind = OpKind::kVector,
               .part = Part::kAttention,
               .tp = TpRule::kColumn,
               .extra_parameters = channels * (bias ? kernel + R(1.0) : kernel),
               .reads = channels,
               .writes = channels,
               .flops = channels * (R(2.0) * kernel + R(kSiluFlops)),
               .saved = channels,
               .keep = Keep::kWithoutRemat,
               .saved_tp = TpRule::kColumn});
  }

  void elementwise(std::string_view name, const R& reads, const R& writes, const R& flops_each) {
    list_.add({.name = name,
               .kind = OpKind::kVector,
               .part = Part::kAttention,
               .tp = TpRule::kColumn,
               .reads = reads,
               .writes = writes,
               .flops = writes * flops_each,
               .saved = writes,
               .keep = Keep::kWithoutRemat,
               .saved_tp = TpRule::kColumn});
  }

  /// The output normed with `weights` weights and multiplied by its gate.
  void gated_norm(std::string_view name, const R& width, const R& weights) {
    elementwise(name, R(2.0) * width, width, R(4.0 + kSiluFlops));
    list_.last().extra_parameters = weights;
  }

  OpList<R>& list_;
  const R& d_model_;
};

}  // namespace

template <class R>
void add_recurrence(OpList<R>& list, const LayerKind& kind) {
  RecurrenceBuilder<R> builder(list);
  const ModelSpec& model = list.model();
  switch (kind.mixer) {
    case MixerKind::kGdn: return builder.gdn(*model.gdn);
    case MixerKind::kKda: return builder.kda(*model.kda);
    case MixerKind::kLightning: return builder.lightning(*model.lightning);
    case MixerKind::kConv: return builder.conv(*model.conv);
    case MixerKind::kMamba1: return builder.mamba1(*model.mamba1);
    case MixerKind::kFullMamba2:
    case MixerKind::kMamba2: return builder.mamba2(*model.mamba2);
    case MixerKind::kRwkv: return builder.rwkv(*model.rwkv, kind.reuse);
    case MixerKind::kRglru: return builder.rglru(*model.rglru);
    case MixerKind::kStrided:
    case MixerKind::kCsa:
    case MixerKind::kHca:
    case MixerKind::kCross:
    case MixerKind::kFullCross:
    case MixerKind::kSlidingCross:
    case MixerKind::kFull:
    case MixerKind::kSliding:
    case MixerKind::kChunked:
    case MixerKind::kMla:
    case MixerKind::kNone: break;
  }
  internal_error("a recurrence of this kind");
}

template void add_recurrence(OpList<double>&, const LayerKind&);
template void add_recurrence(OpList<Dual>&, const LayerKind&);
template void add_recurrence(OpList<Traced>&, const LayerKind&);

}  // namespace scalecalc
