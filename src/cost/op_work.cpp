// Computes the work of one operation of a layer on one chip, for the costs of a training step.
#include "cost/op_work.h"

#include <algorithm>

#include "cost/remat.h"
#include "model/packing.h"

namespace scalecalc {
namespace {

constexpr std::string_view kWidth = "of the matrix on one chip";
/// Weights that are stored and not used.
template <class R>
bool is_idle(const Op<R>& op) {
  return op.kind == OpKind::kMatmul && value_of(op.rows) == 0;
}

/// A tensor is read for its largest values before it can be cast.
constexpr bool scales_itself(Scaling scaling) { return scaling == Scaling::kCurrent || scaling == Scaling::kRow; }

/// What a launch from within an operation takes the host, relative to an operation, which passes Python, autograd and
/// the dispatcher before its first: the 3 us of `kernel_overhead` to the 15 us of `host_overhead`.
constexpr double kLaunchAlone = 0.2;

constexpr std::string_view kRate = "rate of", kBackwardRate = "backward rate of";

}  // namespace

template <class R>
OpWork<R>::OpWork(const Reader<R>& reader, const ChipRates<R>& chip, const Workload& workload,
                  const InnerDegrees& inner)
    : chip_(chip), workload_(workload), inner_(inner), act_(workload.precision.activation_bytes) {
  tp_ = reader.input(static_cast<double>(inner.tp), "tp", "layout");
  sequences_ = reader.input(static_cast<double>(inner.micro_batch_seqs), "micro_batch_seqs", "layout");
  cp_ = reader.input(static_cast<double>(inner.cp), "cp", "layout");
  seq_ = reader.input(static_cast<double>(workload.seq), "seq", "workload");
  packs_ = workload.fine_tune && is_unpacked(*workload.fine_tune, workload.precision);
  const bool even = workload.balanced_experts || workload.expert_capacity;
  if (inner.ep > 1 && workload.expert_load) {
    load_ = reader.input(workload.expert_load->fullest(inner.ep), "fullest expert rank over the mean",
                         "--expert-load, docs/model.md [EXPERT-LOAD]");
  } else if (inner.ep > 1 && !even) {
    load_ = chip.moe_imbalance;
  }
  tokens_ = named(sequences_ * seq_ / cp_, "tokens per microbatch and chip", "layout: micro_batch_seqs x seq / cp");
}

/// Part of an operation, or of what it keeps, that falls to one tensor rank.
template <class R>
R OpWork<R>::share(TpRule rule, const R& groups) const {
  switch (rule) {
    case TpRule::kSequence: return sequence_share();
    case TpRule::kKvColumn: return R(1.0) / min(tp_, groups);
    case TpRule::kWhole: return R(1.0);
    case TpRule::kExpert: return load_ / tp_;
    case TpRule::kExpertRow: return load_ * R(static_cast<double>(inner_.etp)) / tp_;
    case TpRule::kColumn:
    case TpRule::kRow:
    case TpRule::kHeads: break;
  }
  return R(1.0) / tp_;
}

/// The operation's time under its own name.
template <class R>
Work<R> OpWork<R>::work(const Op<R>& op, bool backward) const {
  Work<R> out = unnamed(op, backward);
  const std::string_view phase = backward ? "backward of" : "forward of";
  out.compute = named(out.compute, op.name, "max(FLOPs / rate, bytes / HBM bandwidth), book ch. 1", phase);
  out.hbm = named(out.hbm, op.name, "max(FLOPs / rate, bytes / HBM bandwidth), book ch. 1", phase);
  return out;
}

template <class R>
Work<R> OpWork<R>::timed(const Op<R>& op, const Kernel& kernel, double flops_times, double bytes_times) const {
  const FlopsOf<R> flops = named(kernel.flops, op.name, "of a microbatch on one chip", "FLOPs of");
  const BytesOf<R> bytes = named(kernel.bytes, op.name, "read and written", kernel.bytes_label);
  return roofline(flops * R(flops_times),
                  named(kernel.rate, op.name, "peak x efficiency x what its shape reaches", kernel.rate_label),
                  bytes * R(bytes_times), chip_.hbm);
}

template <class R>
Work<R> OpWork<R>::unnamed(const Op<R>& op, bool backward) const {
  switch (op.kind) {
    case OpKind::kMatmul:
      if (is_idle(op)) return {};
      [[fallthrough]];
    case OpKind::kGroupedMatmul: return matmul(op, backward);
    case OpKind::kAttention: return attention(op, backward);
    case OpKind::kScan: return scan(op, backward);
    case OpKind::kVector: break;
  }
  return vector(op, backward);
}

/// [CAST] Operands of matmuls of 8 bits and fewer are cast from the activations' format: read once and written twice,
/// by rows for the product and by columns for the weight's gradient. Forward that is the input, backward the output's
/// gradient; kernels that cast in the norm or activation before them save part of it (Transformer Engine; `cast` says
/// what shows). Scales that come from the tensor itself take one more read before the cast. An
/// operand with one scale is written once where matmuls read it in either layout, and so is one of a frozen weight.
template <class R>
SecondsOf<R> OpWork<R>::cast(DType dtype, const R& elements, bool frozen) const {
  if (!operands(dtype).is_cast()) return SecondsOf<R>(R(0.0));
  const bool one_scale = workload_.scaling() == Scaling::kDelayed || workload_.scaling() == Scaling::kCurrent;
  const bool once = frozen || (one_scale && workload_.runtime.one_copy);
  const double copies = (once ? 1 : 2) * bytes_per_element(dtype);
  const double reads = (scales_itself(workload_.scaling()) ? 2 : 1) * act_;
  return BytesOf<R>(elements * R(reads + copies)) * chip_.cast / chip_.hbm;
}

/// One kernel per operation forward, two backward: the input's gradient and the weight's, which frozen weights have
/// none of (the backward of attention and of a recurrence is one). Unfused attention is four forward, two matmuls,
/// softmax and dropout, and six backward. Unpacking is one more, and so is a sum behind a matmul.
template <class R>
double OpWork<R>::kernels(const Op<R>& op, bool backward) const {
  if ((op.kind == OpKind::kVector && value_of(op.reads) <= 0) || is_idle(op)) return 0;
  if (writes_scores(workload_.attention, op)) return backward ? 6 : 4;
  if (op.kind == OpKind::kAttention || op.kind == OpKind::kScan) return 1;
  if (op.kind == OpKind::kVector) return backward ? 2 : 1;
  const double more = (is_packed(op) ? 1 : 0) + (value_of(op.reads) > 0 ? 1 : 0);
  return (backward && !op.frozen ? 2 : 1) + more;
}

/// An operand a matmul, forward the input, backward the gradient of the output. Where its scale comes from itself, one
/// call launches three kernels more, the maximum cleared and found, and the scale (NVIDIA/TransformerEngine
/// pytorch/csrc/quantizer.cpp, common/recipe/current_scaling.cu). Of experts all casts are launched by one call.
template <class R>
double OpWork<R>::casts(const Op<R>& op) const {
  const bool dense = op.kind == OpKind::kMatmul;
  if ((!dense && op.kind != OpKind::kGroupedMatmul) || !operands(format(op)).is_cast()) return 0;
  return dense && scales_itself(workload_.scaling()) ? 1 + 3 * kLaunchAlone : 1;
}

/// Of experts that are kernels of one each: casts too, but for those whose scales are there beforehand, which are one
/// kernel for all (NVIDIA/TransformerEngine pytorch/csrc/extensions/cast.cpp, multi_tensor_quantize).
template <class R>
double OpWork<R>::launches(const Op<R>& op, bool backward) const {
  const bool together = workload_.scaling() == Scaling::kDelayed;
  return each_expert(op, kernels(op, backward) + (together ? 0 : casts(op))) + (together ? casts(op) : 0);
}

template <class R>
double OpWork<R>::each_expert(const Op<R>& op, double kernels) const {
  if (op.kind != OpKind::kGroupedMatmul || !workload_.runtime.launches_each_expert) return kernels;
  return kernels * value_of(op.matrices) / static_cast<double>(inner_.ep);
}

/// The loop over experts follows their counts on the host, which a captured step has not.
template <class R>
bool OpWork<R>::adds_bias_apart(const Op<R>& op) const {
  return workload_.runtime.expert_bias_apart && workload_.graphs != GraphCapture::kStep &&
         op.kind == OpKind::kGroupedMatmul && op.tp == TpRule::kExpertRow && value_of(op.extra_parameters) > 0;
}

/// Forward of each expert the product with the router's weights and the sum, then all joined and cast; backward of each
/// the sum's cast, and two products and their sums for bias and weights, then joined.
template <class R>
double OpWork<R>::bias_kernels(const Op<R>& op, bool backward) const {
  if (!adds_bias_apart(op)) return 0;
  return 2 + (backward ? 5 : 2) * value_of(op.matrices) / static_cast<double>(inner_.ep);
}

/// That a matmul reads.
template <class R>
DType OpWork<R>::format(const Op<R>& op) const {
  const bool high = op.part == Part::kHead || op.part == Part::kRouter || op.part == Part::kMtp;
  return high ? workload_.precision.high : workload_.precision.compute;
}

/// Packed weights are read, scaled and written in the format the matmul reads, before each pass (arXiv:2305.14314
/// equations 5 and 6).
template <class R>
Work<R> OpWork<R>::unpacked(const Op<R>& op, const R& weights) const {
  constexpr double kFlops = 2;  // look up or convert, scale
  const double bytes = base_bytes(*workload_.fine_tune, workload_.precision) + workload_.precision.weight_bytes;
  Work<R> out = roofline(FlopsOf<R>(weights * R(kFlops)), chip_.vector, BytesOf<R>(weights * R(bytes)), chip_.hbm);
  out.compute = named(out.compute, op.name, "unpacked: arXiv:2305.14314 equations 5 and 6", "weights of");
  out.hbm = named(out.hbm, op.name, "unpacked: arXiv:2305.14314 equations 5 and 6", "weights of");
  return out;
}

/// What runs beside a matmul: unpacking its weights before it, and behind it the vector kernel that adds an adapter's
/// result to its target's; the backward adds gradients instead.
template <class R>
void OpWork<R>::beside(const Op<R>& op, const R& weights, Work<R>& out) const {
  if (is_packed(op)) out += unpacked(op, weights);
  if (value_of(op.reads) > 0) out += vector(op, false);
}

template <class R>
typename OpWork<R>::Shape OpWork<R>::dense_shape(const Op<R>& op) const {
  const R part = share(op.tp, op.groups);
  R rows = op.tp == TpRule::kSequence ? tokens_ * part : tokens_;
  if (value_of(op.rows) != 1) rows = rows * op.rows;
  const R k = named(op.tp == TpRule::kRow ? op.k * part : op.k, op.name, kWidth, "input width of");
  const bool columns = op.tp == TpRule::kColumn || op.tp == TpRule::kKvColumn;
  const R n = named(columns ? op.n * part : op.n, op.name, kWidth, "output width of");
  const DType dtype = format(op);
  return {rows, op.matrices, dense_term(chip_, operands(dtype), k, n), dtype};
}

/// Weights are read in the format that the matmul computes in.
template <class R>
MatmulFormat OpWork<R>::operands(DType dtype) const {
  MatmulFormat out{.dtype = dtype, .scaling = workload_.scaling(), .activation_bytes = act_};
  out.weight_bytes = out.input_bytes();
  return out;
}

/// The routed tokens of this chip's experts; the fullest expert rank sets the pace.
template <class R>
typename OpWork<R>::Shape OpWork<R>::grouped_shape(const Op<R>& op) const {
  const std::int64_t ranks = inner_.tp / inner_.etp;  // tensor ranks that route for themselves
  const R rows = tokens_ * op.rows * load_ / R(static_cast<double>(ranks));
  // The expert's d_ff is divided by etp: the output of gate and up, the contracted width of down.
  const R part(1 / static_cast<double>(inner_.etp));
  const R k = named(op.tp == TpRule::kExpertRow ? op.k * part : op.k, op.name, kWidth, "input width of");
  const R n = named(op.tp == TpRule::kExpertRow ? op.n : op.n * part, op.name, kWidth, "output width of");
  const R experts = op.matrices / R(static_cast<double>(inner_.ep));
  const DType dtype = format(op);
  return {rows, experts, grouped_term(chip_, operands(dtype), k, n), dtype};
}

/// Backward: one matmul for the input's gradient and, unless they are frozen, one for the weights', each with the
/// forward's FLOPs.
template <class R>
Work<R> OpWork<R>::matmul(const Op<R>& op, bool backward) const {
  const Shape s = shape(op);
  const BytesOf<R> bytes = s.term.row_bytes * s.rows + s.term.matrix_bytes * s.matrices;
  Work<R> out = timed(op, {s.flops(), s.rate(), bytes}, 1, 1);
  if (backward && !op.frozen) out += weight_gradient(op, s);
  beside(op, s.weights(), out);
  out.hbm += cast(s.dtype, s.rows * (backward ? s.term.n : s.term.k), op.frozen);
  if (adds_bias_apart(op)) {
    // [EXPERT-BIAS] In fp32, as the router's weights are. Forward: the product written; read with the output, the sum
    // written; joined; cast. Backward: cast; the output's gradient cast and joined; for bias and weights a product
    // written and read.
    const double each = backward ? 8 * 4 + 4 * act_ : 6 * 4 + 2 * act_;
    const BytesOf<R> bytes_apart = named(BytesOf<R>(s.rows * s.term.n * R(each)), op.name,
                                         "docs/model.md [EXPERT-BIAS]", "bytes of biases added one by one to");
    out.hbm += bytes_apart / chip_.hbm;
  }
  return out;
}

/// Both operands are as long as the rows; the product is added to the gradients that are there, in their format
/// (Megatron-LM, gradient_accumulation_fusion).
template <class R>
Work<R> OpWork<R>::weight_gradient(const Op<R>& op, const Shape& s) const {
  const R in(operands(s.dtype).input_bytes());
  const BytesOf<R> bytes(in * s.rows * (s.term.k + s.term.n) + R(2 * gradient_bytes(workload_)) * s.weights());
  return timed(op, {s.flops(), s.rate(), bytes, "rate of", "weight gradient's bytes of"}, 1, 1);
}

template <class R>
SecondsOf<R> OpWork<R>::weight_gradient(const Op<R>& op) const {
  if (op.frozen || is_idle(op) || (op.kind != OpKind::kMatmul && op.kind != OpKind::kGroupedMatmul))
    return SecondsOf<R>(R(0.0));
  const Shape s = shape(op);
  return weight_gradient(op, s).total() + cast(s.dtype, s.rows * s.term.n, false) / R(2.0);
}

template <class R>
Work<R> OpWork<R>::attention(const Op<R>& op, bool backward) const {
  if (writes_scores(workload_.attention, op)) return unfused_attention(op, backward);
  const R ways = op.tp == TpRule::kHeads ? tp_ : op.tp == TpRule::kSequence ? R(1.0) / sequence_share() : R(1.0);
  const R context =
      named(mean_context(op.reach, op.span, seq_, workload_.documents), op.name,
            workload_.documents ? "tokens a query sees in the mean of the documents packed: docs/model.md [PACKED]"
                                : "tokens a query sees in the mean",
            "context of");
  const AttentionTerm<R> term =
      attention_term(chip_, backward ? chip_.peak_attention_backward : chip_.peak_attention_forward, op, ways, act_);
  // Keys and values as wide as the queries; the backward reads all of them again with their gradients.
  return timed(op,
               {term.token_flops * (context * tokens_), term.rate_at(context), term.row_bytes * (R(2.0) * tokens_),
                backward ? kBackwardRate : kRate},
               backward ? 2.5 : 1, backward ? 2 : 1);
}

/// [UNFUSED] A batch of matmuls a head, [S, dh] x [dh, S] and [S, S] x [S, dh], over all scores, and between them
/// softmax and dropout over HBM. Forward: the scores are written, read and written by the softmax and by dropout (with
/// a mask of one byte), and read. Backward: gradients of the probabilities are written and the probabilities read,
/// dropout and softmax read and write again (the softmax its output too), two matmuls read the scores' gradients.
template <class R>
Work<R> OpWork<R>::unfused_attention(const Op<R>& op, bool backward) const {
  constexpr double kSoftmaxFlops = 8;  // scale, mask, maximum, difference, exponential, sum, division, dropout
  const R ways = op.tp == TpRule::kHeads ? tp_ : R(1.0);
  const double times = backward ? 2 : 1;
  const FlopsPerSecondOf<R> rate = chip_.matmul[static_cast<std::size_t>(workload_.precision.high)] *
                                   shape_fraction(chip_.half_dim, seq_, scored(op), op.v_width / op.heads);
  const R elements = (op.qk_width + op.v_width) * R(2.0) * tokens_ / ways;
  const BytesOf<R> operands((elements + R(2.0) * scores(op)) * R(act_));
  Work<R> out = timed(op, {attention_flops(op, scored(op)) * (tokens_ / ways), rate, operands}, times, times);
  const BytesOf<R> passes(scores(op) * R((backward ? 5 : 4) * act_ + 1));
  out += roofline(FlopsOf<R>(scores(op) * R(kSoftmaxFlops)), chip_.vector, passes, chip_.hbm);
  return out;
}

/// A recurrence runs on chunks of tokens like flash attention, or on the vector unit; its backward runs it again.
template <class R>
Work<R> OpWork<R>::scan(const Op<R>& op, bool backward) const {
  const RowTerm<R> term =
      row_term(chip_, backward ? chip_.peak_scan_backward : chip_.peak_scan_forward, op, R(1.0) / tp_, act_);
  return timed(op, {term.row_flops * tokens_, term.rate, term.row_bytes * tokens_, backward ? kBackwardRate : kRate},
               backward ? 2.5 : 1, backward ? 2 : 1);
}

template <class R>
Work<R> OpWork<R>::vector(const Op<R>& op, bool backward) const {
  const RowTerm<R> term = row_term(chip_, chip_.vector, op, share(op.tp, op.groups), act_);
  const double times = backward ? 2 : 1;
  if (value_of(term.row_bytes) <= 0) return {};
  return timed(op, {term.row_flops * tokens_, term.rate, term.row_bytes * tokens_}, times, times);
}

template class OpWork<double>;
template class OpWork<Dual>;
template class OpWork<Traced>;

}  // namespace scalecalc
