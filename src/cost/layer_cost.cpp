// Sources: FLOPs and bytes per operation: scaling book, chapters 1 and 4. Tensor and sequence sharding, what is
// communicated and what is kept: Korthikanti et al. 2022, arXiv:2205.05198 sections 3 and 4. Attention backward = 2.5 x
// forward FLOPs: FlashAttention-2, arXiv:2307.08691 section 3.1 (five matmuls against two). Expert dispatch and combine
// as all-to-alls: Lepikhin et al. 2020, arXiv:2006.16668. Recurrences under context parallelism gather the states that
// the ranks hand on: LASP-2, arXiv:2502.07563.
#include "cost/layer_cost.h"

#include <fmt/format.h>

#include <algorithm>

namespace scalecalc {
namespace {

template <class R>
class LayerCoster {
 public:
  LayerCoster(const Reader<R>& reader, const ModelSpec& model, const ModelDims<R>& dims, const ChipRates<R>& chip,
              const Workload& workload, const InnerDegrees& inner)
      : model_(model), dims_(dims), chip_(chip), workload_(workload), inner_(inner) {
    const double seq = static_cast<double>(workload.seq);
    tp_ = reader.input(static_cast<double>(inner.tp), "tp", "layout");
    sequences_ = reader.input(static_cast<double>(inner.micro_batch_seqs), "micro_batch_seqs", "layout");
    cp_ = reader.input(static_cast<double>(inner.cp), "cp", "layout");
    seq_ = reader.input(seq, "seq", "workload");
    tokens_ = named(sequences_ * seq_ / cp_, "tokens per microbatch and chip", "layout: micro_batch_seqs x seq / cp");
    act_ = workload.precision.activation_bytes;
  }

  /// `label` names the costs in an explanation: "dense layer", "head".
  LayerCost<R> cost(const std::vector<Op<R>>& ops, bool in_layer, std::string_view label) {
    LayerCost<R> out;
    for (const Op<R>& op : ops) add(op, in_layer, out);
    kernels(ops, in_layer, out);
    name(out, label);
    if (in_layer) {
      communication(out, ops);
      workspace(out, ops);
    } else if (inner_.tp > 1) {
      // The vocabulary projection's input is gathered once and its gradient scattered once.
      out.tp_bytes = BytesOf<R>(tokens_ * dims_.d_model * R(act_));
      (inner_.sp ? out.forward.tp_gathers : out.backward.tp_reduces) = R(1.0);
      if (inner_.sp) out.backward.tp_gathers = R(1.0);
    }
    return out;
  }

  const R& tokens() const { return tokens_; }
  /// Elements of a whole-token tensor that one chip holds: divided by tp only under sequence sharding.
  R sequence_share() const { return inner_.sp ? R(1.0) / tp_ : R(1.0); }
  const R& tp() const { return tp_; }
  double activation_bytes() const { return act_; }

 private:
  /// Part of an operation, or of what it keeps, that falls to one tensor rank.
  R share(TpRule rule, const R& groups) const {
    switch (rule) {
      case TpRule::kSequence: return sequence_share();
      case TpRule::kKvColumn: return R(1.0) / min(tp_, groups);
      case TpRule::kWhole: return R(1.0);
      case TpRule::kColumn:
      case TpRule::kRow:
      case TpRule::kHeads:
      case TpRule::kExpert:
      case TpRule::kExpertRow: break;
    }
    return R(1.0) / tp_;
  }

  void add(const Op<R>& op, bool in_layer, LayerCost<R>& out) {
    const Work<R> forward = named_work(op, false);
    const Work<R> backward = named_work(op, true);
    out.forward.work += forward;
    out.backward.work += backward;
    if (in_layer) {
      out.recompute[static_cast<int>(Remat::kFull)].work += forward;
      if (op.kind == OpKind::kVector) out.recompute[static_cast<int>(Remat::kSelective)].work += forward;
    }
    parameters(op, out);
    saved(op, out);
  }

  /// One kernel per operation forward, two backward (the backward of attention and of a recurrence is one).
  void kernels(const std::vector<Op<R>>& ops, bool in_layer, LayerCost<R>& out) const {
    double forward = 0, backward = 0, vector = 0;
    for (const Op<R>& op : ops) {
      if (op.kind == OpKind::kVector && value_of(op.reads) <= 0) continue;
      forward += 1;
      backward += op.kind == OpKind::kAttention || op.kind == OpKind::kScan ? 1 : 2;
      vector += op.kind == OpKind::kVector ? 1 : 0;
    }
    out.forward.work.overhead = chip_.kernel_overhead * R(forward);
    out.backward.work.overhead = chip_.kernel_overhead * R(backward);
    if (!in_layer) return;
    out.recompute[static_cast<int>(Remat::kFull)].work.overhead = chip_.kernel_overhead * R(forward);
    out.recompute[static_cast<int>(Remat::kSelective)].work.overhead = chip_.kernel_overhead * R(vector);
  }

  void name(LayerCost<R>& out, std::string_view label) const {
    out.dense_parameters = named(out.dense_parameters, "parameters per chip", "operation list, divided by tp", label);
    out.expert_parameters = named(out.expert_parameters, "expert parameters per chip", "divided by ep and etp", label);
    static constexpr std::array<std::string_view, kRematCount> kNames{
        "tensors kept, remat none", "tensors kept, remat selective", "tensors kept, remat full"};
    for (std::size_t r = 0; r < kRematCount; ++r) {
      out.saved[r] = named(out.saved[r], kNames[r], "per microbatch (arXiv:2205.05198 section 4)", label);
    }
  }

  /// The operation's time under its own name.
  Work<R> named_work(const Op<R>& op, bool backward) const {
    Work<R> out = work(op, backward);
    const std::string_view phase = backward ? "backward of" : "forward of";
    out.compute = named(out.compute, op.name, "max(FLOPs / rate, bytes / HBM bandwidth), book ch. 1", phase);
    out.hbm = named(out.hbm, op.name, "max(FLOPs / rate, bytes / HBM bandwidth), book ch. 1", phase);
    return out;
  }

  Work<R> work(const Op<R>& op, bool backward) const {
    switch (op.kind) {
      case OpKind::kMatmul: return matmul(op, backward);
      case OpKind::kGroupedMatmul: return grouped(op, backward);
      case OpKind::kAttention: return attention(op, backward);
      case OpKind::kScan: return scan(op, backward);
      case OpKind::kVector: break;
    }
    return vector(op, backward);
  }

  /// Backward: one matmul for the input's gradient and one for the weight's, each with the forward's FLOPs.
  Work<R> matmul(const Op<R>& op, bool backward) const {
    const R part = share(op.tp, op.groups);
    const R rows = op.tp == TpRule::kSequence ? tokens_ * part : tokens_;
    const R k = op.tp == TpRule::kRow ? op.k * part : op.k;
    const R n = op.tp == TpRule::kColumn || op.tp == TpRule::kKvColumn ? op.n * part : op.n;
    const bool high = op.part == Part::kHead || op.part == Part::kRouter || op.part == Part::kMtp;
    const DType dtype = high ? workload_.precision.high : workload_.precision.compute;
    const FlopsPerSecondOf<R> rate =
        chip_.matmul[static_cast<std::size_t>(dtype)] * shape_fraction(chip_.half_dim, rows, n, k);
    const double in = std::min(act_, bytes_per_element(dtype));
    const BytesOf<R> bytes(R(in) * rows * k + R(in) * k * n + R(act_) * rows * n);
    const R times(backward ? 2.0 : 1.0);
    return roofline(FlopsOf<R>(R(2.0) * times * rows * k * n), rate, bytes * times, chip_.hbm);
  }

  /// The routed tokens of this chip's experts; the slowest expert group sets the pace.
  Work<R> grouped(const Op<R>& op, bool backward) const {
    const std::int64_t ranks = inner_.tp / inner_.etp;  // tensor ranks that route for themselves
    const R rows = tokens_ * op.rows / R(static_cast<double>(ranks));
    // The expert's d_ff is divided by etp: the output of gate and up, the contracted width of down.
    const R part(1 / static_cast<double>(inner_.etp));
    const R k = op.tp == TpRule::kExpertRow ? op.k * part : op.k;
    const R n = op.tp == TpRule::kExpertRow ? op.n : op.n * part;
    const R experts = op.matrices / R(static_cast<double>(inner_.ep));
    const R rows_each = rows / experts;
    const DType dtype = workload_.precision.compute;
    const FlopsPerSecondOf<R> rate = chip_.matmul[static_cast<std::size_t>(dtype)] * chip_.grouped *
                                     (rows_each / (rows_each + chip_.grouped_half_rows)) * (n / (n + chip_.half_dim)) *
                                     (k / (k + chip_.half_dim)) / chip_.moe_imbalance;
    const double in = std::min(act_, bytes_per_element(dtype));
    const BytesOf<R> bytes(R(in) * rows * k + R(in) * k * n * experts + R(act_) * rows * n);
    const R times(backward ? 2.0 : 1.0);
    return roofline(FlopsOf<R>(R(2.0) * times * rows * k * n), rate, bytes * times, chip_.hbm);
  }

  Work<R> attention(const Op<R>& op, bool backward) const {
    const R ways = op.tp == TpRule::kHeads ? tp_ : R(1.0);
    const R context = mean_context(op.reach, op.span, seq_);
    const FlopsOf<R> flops = attention_flops(op, context) * (tokens_ / ways) * R(backward ? 2.5 : 1.0);
    // Flash attention reads q, k, v and writes the output once; the backward reads them again with their gradients.
    const R elements = (op.qk_width + op.v_width) * R(2.0) * tokens_ / ways;
    const BytesOf<R> bytes(elements * R(act_ * (backward ? 2.0 : 1.0)));
    return roofline(flops, backward ? chip_.peak_attention_backward : chip_.peak_attention_forward, bytes, chip_.hbm);
  }

  /// A recurrence runs on chunks of tokens like flash attention, or on the vector unit; its backward runs it again.
  Work<R> scan(const Op<R>& op, bool backward) const {
    const R part = tokens_ / tp_;
    const BytesOf<R> bytes((op.reads + op.writes) * part * R(act_ * (backward ? 2.0 : 1.0)));
    const FlopsPerSecondOf<R>& chunked = backward ? chip_.peak_attention_backward : chip_.peak_attention_forward;
    return roofline(FlopsOf<R>(op.flops * part * R(backward ? 2.5 : 1.0)), op.by_element ? chip_.vector : chunked,
                    bytes, chip_.hbm);
  }

  Work<R> vector(const Op<R>& op, bool backward) const {
    const R part = tokens_ * share(op.tp, op.groups);
    const R times(backward ? 2.0 : 1.0);
    const BytesOf<R> bytes((op.reads + op.writes) * part * R(act_) * times);
    if (value_of(bytes) <= 0) return {};
    return roofline(FlopsOf<R>(op.flops * part * times), chip_.vector, bytes, chip_.hbm);
  }

  void parameters(const Op<R>& op, LayerCost<R>& out) const {
    if (op.kind == OpKind::kGroupedMatmul) {
      out.expert_parameters = out.expert_parameters + op.parameters() / R(static_cast<double>(inner_.ep * inner_.etp));
      return;
    }
    // Sequence-sharded work keeps whole weights on every tensor rank; the embedding table is divided by vocabulary.
    const bool table = op.part == Part::kEmbedding && op.kind == OpKind::kVector;
    const bool whole = op.tp == TpRule::kSequence && !table;
    const R part = whole ? R(1.0) : share(table ? TpRule::kColumn : op.tp, op.groups);
    const R weights = op.weight_parameters() * part;
    if (op.tied) out.tied_parameters = weights;
    out.dense_parameters = out.dense_parameters + weights + op.extra_parameters * (table ? part : R(1.0));
  }

  void saved(const Op<R>& op, LayerCost<R>& out) const {
    if (op.keep == Keep::kNever) return;
    const BytesOf<R> bytes(op.saved * tokens_ * share(op.saved_tp, op.groups) * R(act_));
    out.saved[static_cast<int>(Remat::kNone)] += bytes;
    if (op.keep != Keep::kWithoutRemat) out.saved[static_cast<int>(Remat::kSelective)] += bytes;
    if (op.keep == Keep::kAlways) out.saved[static_cast<int>(Remat::kFull)] += bytes;
  }

  /// Forward: gather before and scatter after attention and MLP (or one all-reduce after each). Backward: the same, and
  /// under sequence sharding the two gathered inputs are gathered again for the weight gradients.
  void communication(LayerCost<R>& out, const std::vector<Op<R>>& ops) const {
    const bool moe =
        std::any_of(ops.begin(), ops.end(), [](const Op<R>& o) { return o.kind == OpKind::kGroupedMatmul; });
    // Each part that ends in a row-divided projection sums its output; parallel parts sum theirs together.
    const auto ends = [&](Part part) {
      return std::any_of(ops.begin(), ops.end(),
                         [&](const Op<R>& o) { return o.part == part && o.tp == TpRule::kRow; });
    };
    const double parts = (ends(Part::kAttention) ? 1 : 0) + (ends(Part::kMlp) ? 1 : 0);
    const double blocks = model_.parallel_block ? std::min(parts, 1.0) : parts;
    Phase<R>& again = out.recompute[static_cast<int>(Remat::kFull)];
    if (inner_.tp > 1) {
      out.tp_bytes = named(BytesOf<R>(tokens_ * dims_.d_model * R(act_)), "bytes of one gathered activation",
                           "tokens x d_model x bytes (Korthikanti et al. 2022, section 4.2)");
      if (inner_.sp) {
        out.forward.tp_gathers = R(2 * blocks);
        out.backward.tp_gathers = R(3 * blocks);
        again.tp_gathers = R(2 * blocks);
      } else {
        out.forward.tp_reduces = R(blocks);
        out.backward.tp_reduces = R(blocks);
        again.tp_reduces = R(blocks);
      }
    }
    if (inner_.tp > 1) inner_sums(out, again, ops);
    if (moe) expert_communication(out, again);
    if (inner_.cp > 1) context_communication(out, again, ops);
  }

  /// What is summed over the tensor ranks inside a part is narrower than an activation and counts as that part of one.
  void inner_sums(LayerCost<R>& out, Phase<R>& again, const std::vector<Op<R>>& ops) const {
    for (const Op<R>& op : ops) {
      if (value_of(op.summed) <= 0) continue;
      const R share = op.summed / dims_.d_model;
      for (Phase<R>* phase : {&out.forward, &out.backward, &again}) phase->tp_reduces = phase->tp_reduces + share;
    }
  }

  void expert_communication(LayerCost<R>& out, Phase<R>& again) const {
    const double sharded = inner_.tp > 1 ? static_cast<double>(inner_.tp) : 1;
    if (inner_.etp > 1) {
      // Without an expert dimension every rank routes for itself: tokens are gathered, not their copies.
      const R copies_each = inner_.ep > 1 ? dims_.top_k : R(1.0);
      out.etp_bytes = BytesOf<R>(tokens_ * copies_each * dims_.expert_width * R(act_));
      out.forward.etp_gathers = R(2.0);
      out.backward.etp_gathers = R(2.0);
      again.etp_gathers = R(2.0);
    }
    if (inner_.ep == 1) return;
    // Dispatch carries the recipe's dispatch format, combine the activations'; the backward sends both ways again.
    const Precision& p = workload_.precision;
    const R copies = tokens_ * dims_.top_k * dims_.expert_width / R(sharded);
    out.forward.ep_bytes = named(BytesOf<R>(copies * R(p.dispatch_bytes + act_)), "expert dispatch and combine bytes",
                                 "tokens x top_k x d_model, there and back (arXiv:2006.16668)");
    out.forward.ep_exchanges = R(2.0);
    out.backward.ep_bytes = BytesOf<R>(copies * R(2 * act_));
    out.backward.ep_exchanges = R(2.0);
    again.ep_bytes = out.forward.ep_bytes;
    again.ep_exchanges = R(2.0);
  }

  /// Keys and values of the whole sequence are gathered (or passed round a ring: the same bytes); the backward
  /// gathers them again and scatters their gradients. A window or chunk needs only the neighbours' part. A recurrence
  /// hands on its state: one gather of all ranks' states each way, in fp32.
  void context_communication(LayerCost<R>& out, Phase<R>& again, const std::vector<Op<R>>& ops) const {
    R width(0.0);
    R state(0.0);
    for (const Op<R>& op : ops) {
      if (value_of(op.shared) > 0) width = width + context_width(op);
      if (value_of(op.state) > 0) state = state + op.state / tp_;
    }
    if (value_of(state) > 0) {
      out.cp_bytes = named(BytesOf<R>(sequences_ * cp_ * state * R(4.0)), "state bytes of all ranks",
                           "micro_batch_seqs x cp x state x 4 (LASP-2, arXiv:2502.07563)");
      out.forward.cp_gathers = R(1.0);
      out.backward.cp_gathers = R(1.0);
      again.cp_gathers = R(1.0);
    } else if (value_of(width) > 0) {
      out.cp_bytes = named(BytesOf<R>(sequences_ * seq_ * width * R(act_)), "key and value bytes of the sequence",
                           "micro_batch_seqs x seq x 2 x kv width (Llama 3 report, arXiv:2407.21783 section 3.3.2)");
      out.forward.cp_gathers = R(1.0);
      out.backward.cp_gathers = R(2.0);
      again.cp_gathers = R(1.0);
    }
  }

  /// Elements per token of the sequence that one tensor rank needs of an attention.
  R context_width(const Op<R>& op) const {
    R width = op.tp == TpRule::kWhole ? op.shared : op.shared * share(TpRule::kKvColumn, op.groups);
    if (op.reach != Reach::kWindow && op.reach != Reach::kChunk) return width;
    return width * min(R(1.0), op.span / seq_ + R(1.0) / cp_);
  }

  void workspace(LayerCost<R>& out, const std::vector<Op<R>>& ops) const {
    R widest(0.0);
    for (const Op<R>& op : ops) {
      if (op.keep != Keep::kNever) widest = max(widest, op.saved * share(op.saved_tp, op.groups));
    }
    const R gathered = inner_.sp ? dims_.d_model * R(2.0) : R(0.0);
    out.workspace = named(BytesOf<R>((R(2.0) * widest + gathered) * tokens_ * R(act_)), "layer workspace",
                          "gradients of the widest tensors and the gathered input while the layer runs");
  }

  const ModelSpec& model_;
  const ModelDims<R>& dims_;
  const ChipRates<R>& chip_;
  const Workload& workload_;
  const InnerDegrees& inner_;
  R tp_{1.0}, cp_{1.0}, seq_{0.0}, sequences_{0.0}, tokens_{0.0};
  double act_ = 2;
};

}  // namespace

std::string label_of(const LayerKind& kind) {
  const bool plain = kind.mixer == MixerKind::kFull || kind.mixer == MixerKind::kMla;
  std::string label;
  if (kind.mixer == MixerKind::kNone) {
    label = kind.ffn == FfnKind::kMoe ? "MoE-only" : "MLP-only";
  } else if (kind.ffn == FfnKind::kNone) {
    label = fmt::format("{}-only", plain ? "attention" : name_of(kind.mixer));
  } else {
    label = fmt::format("{}{}{}", plain ? "" : name_of(kind.mixer), plain || kind.ffn == FfnKind::kDense ? "" : " ",
                        kind.ffn == FfnKind::kMoe ? "MoE" : "");
  }
  label += label.empty() ? "layer" : " layer";
  return kind.d_ff ? fmt::format("{} of d_ff {}", label, *kind.d_ff) : label;
}

InnerDegrees inner_of(const Layout& l) { return {l.tp, l.cp, l.ep, l.etp, l.micro_batch_seqs, l.sp}; }

template <class R>
ModelOps<R> read_model(const Reader<R>& reader, const ModelSpec& model) {
  ModelOps<R> out;
  out.dims = read_dims(reader, model);
  for (const LayerKind& kind : model.kinds) out.kinds.push_back(layer_ops(model, kind, out.dims));
  out.embedding = embedding_ops(model, out.dims);
  out.head = head_ops(model, out.dims);
  if (model.mtp_layers > 0) out.mtp = mtp_ops(model, out.dims);
  return out;
}

template <class R>
NetworkCost<R> network_cost(const Reader<R>& reader, const ModelSpec& model, const ModelOps<R>& ops,
                            const ChipRates<R>& chip, const Workload& workload, const InnerDegrees& inner) {
  LayerCoster<R> coster(reader, model, ops.dims, chip, workload, inner);
  NetworkCost<R> out;
  for (std::size_t k = 0; k < ops.kinds.size(); ++k) {
    out.labels.push_back(label_of(model.kinds[k]));
    out.kinds.push_back(coster.cost(ops.kinds[k], true, out.labels.back()));
  }
  out.embedding = coster.cost(ops.embedding, false, "embedding");
  out.head = coster.cost(ops.head, false, "head");
  if (!ops.mtp.empty()) out.mtp = coster.cost(ops.mtp, false, "mtp module");
  out.logits = BytesOf<R>(coster.tokens() * ops.dims.vocab / coster.tp() * R(8.0));
  const R boundary_share = inner.tp > 1 ? R(1.0) / coster.tp() : R(1.0);
  out.boundary = named(BytesOf<R>(coster.tokens() * ops.dims.d_model * boundary_share * R(coster.activation_bytes())),
                       "bytes to the next pipeline stage", "tokens x d_model / tp (arXiv:2104.04473 section 4.1)");
  return out;
}

#define SCALECALC_INSTANTIATE(R)                                                                                    \
  template ModelOps<R> read_model(const Reader<R>&, const ModelSpec&);                                              \
  template NetworkCost<R> network_cost(const Reader<R>&, const ModelSpec&, const ModelOps<R>&, const ChipRates<R>&, \
                                       const Workload&, const InnerDegrees&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
SCALECALC_INSTANTIATE(Interval)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
