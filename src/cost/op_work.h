// One operation of a layer on one chip for one microbatch: its shapes under the inner degrees and its roofline time.
// Sources: FLOPs and bytes per operation: scaling book, chapters 1 and 4. Attention backward = 2.5 x forward FLOPs:
// FlashAttention-2, arXiv:2307.08691 section 3.1 (five matmuls against two).
#pragma once

#include "cost/layout.h"
#include "cost/op_term.h"
#include "cost/roofline.h"
#include "cost/workload.h"
#include "model/ops.h"

namespace scalecalc {

/// The inner degrees a layer's cost depends on.
struct InnerDegrees {
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t ep = 1;
  std::int64_t etp = 1;
  std::int64_t micro_batch_seqs = 1;
  bool sp = false;
  CpComm cp_comm = CpComm::kAllGather;
  friend auto operator<=>(const InnerDegrees&, const InnerDegrees&) = default;
};
InnerDegrees inner_of(const Layout& layout);

/// The operations of a microbatch under given inner degrees.
template <class R>
class OpWork {
 public:
  /// Keeps references to `chip`, `workload` and `inner`.
  OpWork(const Reader<R>& reader, const ChipRates<R>& chip, const Workload& workload, const InnerDegrees& inner);

  /// The operation's time under its own name, forward or backward.
  Work<R> work(const Op<R>& op, bool backward) const;
  /// Of a matmul's backward, what only the weight's gradient takes; none of frozen weights.
  SecondsOf<R> weight_gradient(const Op<R>& op) const;
  /// Kernels it runs, forward or backward.
  double kernels(const Op<R>& op, bool backward) const;
  /// [HOST] What the host launches for that: with casts, and with a kernel for each of the chip's experts where the
  /// stack's are so.
  double launches(const Op<R>& op, bool backward) const;
  /// Of a backward: those of the weight's gradient, which only the optimizer waits for.
  double weight_launches(const Op<R>& op) const {
    const bool matmul = op.kind == OpKind::kMatmul || op.kind == OpKind::kGroupedMatmul;
    return matmul && !op.frozen ? each_expert(op, 1) : 0;
  }

  /// Kernels beside a matmul of experts that add its bias apart, one expert after the other.
  double bias_kernels(const Op<R>& op, bool backward) const;

  /// Part of an operation, or of what it keeps, that falls to one tensor rank.
  R share(TpRule rule, const R& groups) const;
  /// Elements of a whole-token tensor that one chip holds: divided by tp only under sequence sharding.
  R sequence_share() const { return inner_.sp ? R(1.0) / tp_ : R(1.0); }

  const R& tokens() const { return tokens_; }
  const R& tp() const { return tp_; }
  double activation_bytes() const { return act_; }
  /// Whether the operation's matrix is kept in the base's format: the frozen ones of a layer's mixer and FFN. Router,
  /// ends, norms and biases stay in the recipe's (arXiv:2305.14314 section 3 quantizes linear layers).
  static bool in_base_format(const Op<R>& op) {
    return op.frozen && (op.part == Part::kAttention || op.part == Part::kMlp || op.part == Part::kExperts);
  }
  /// Whether its matmul reads another format than that.
  bool is_packed(const Op<R>& op) const { return packs_ && in_base_format(op); }
  /// Scores of a microbatch on one chip: every head's tokens against the whole sequence, or a tower's positions.
  R scores(const Op<R>& op) const { return op.heads * share(op.tp, op.groups) * tokens_ * scored(op); }
  const R& scored(const Op<R>& op) const { return op.reach == Reach::kFixed ? op.span : seq_; }

 protected:
  const ChipRates<R>& chip_;
  const Workload& workload_;
  const InnerDegrees& inner_;
  R tp_{1.0}, cp_{1.0}, seq_{0.0}, sequences_{0.0};
  R tokens_{0.0};       ///< of a microbatch on one chip
  R load_{1.0};         ///< routed tokens of the fullest expert rank over the mean
  double act_ = 2;      ///< bytes of an activation
  bool packs_ = false;  ///< frozen weights are unpacked before a matmul

 private:
  Work<R> unnamed(const Op<R>& op, bool backward) const;
  struct Kernel {
    FlopsOf<R> flops;  ///< of the forward
    FlopsPerSecondOf<R> rate;
    BytesOf<R> bytes;
    std::string_view rate_label = "rate of";
    std::string_view bytes_label = "bytes of";
  };
  /// A matmul on one chip: its rows in all, its matrices, and what a row takes.
  struct Shape {
    R rows, matrices;
    MatmulTerm<R> term;
    DType dtype = DType::kBf16;
    R weights() const { return term.k * term.n * matrices; }
    FlopsOf<R> flops() const { return term.row_flops * rows; }
    FlopsPerSecondOf<R> rate() const { return term.rate_at(rows, matrices); }
  };
  /// The roofline of an operation's main kernel, which does so many times the forward's work; its sides by name.
  Work<R> timed(const Op<R>& op, const Kernel& kernel, double flops_times, double bytes_times) const;
  SecondsOf<R> cast(DType dtype, const R& elements, bool frozen) const;
  double casts(const Op<R>& op) const;
  double each_expert(const Op<R>& op, double kernels) const;
  bool adds_bias_apart(const Op<R>& op) const;
  DType format(const Op<R>& op) const;
  MatmulFormat operands(DType dtype) const;
  Shape dense_shape(const Op<R>& op) const;
  Shape grouped_shape(const Op<R>& op) const;
  Shape shape(const Op<R>& op) const { return op.kind == OpKind::kMatmul ? dense_shape(op) : grouped_shape(op); }
  Work<R> matmul(const Op<R>& op, bool backward) const;
  Work<R> weight_gradient(const Op<R>& op, const Shape& shape) const;
  Work<R> attention(const Op<R>& op, bool backward) const;
  Work<R> unfused_attention(const Op<R>& op, bool backward) const;
  Work<R> scan(const Op<R>& op, bool backward) const;
  Work<R> vector(const Op<R>& op, bool backward) const;
  void beside(const Op<R>& op, const R& weights, Work<R>& out) const;
  Work<R> unpacked(const Op<R>& op, const R& weights) const;
};

}  // namespace scalecalc
