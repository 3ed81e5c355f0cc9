// Terms of operations: FLOPs, bytes and rates for each row, in every reading.

#include "cost/op_term.h"

namespace scalecalc {
namespace {

/// The rate of large matmuls with operands in the format, scaled so. The rate of 4 bits is of short blocks.
template <class R>
FlopsPerSecondOf<R> scaled_rate(const ChipRates<R>& chip, const MatmulFormat& format) {
  const FlopsPerSecondOf<R>& rate = chip.matmul[static_cast<std::size_t>(format.dtype)];
  if (!format.is_cast()) return rate;
  if (format.scaling == Scaling::kRow) return rate * chip.row_scaled;
  return format.scaling == Scaling::kBlock && format.dtype != DType::kFp4 ? rate * chip.block_scaled : rate;
}

template <class R>
MatmulTerm<R> matmul_term(const ChipRates<R>& chip, const MatmulFormat& format, const FlopsPerSecondOf<R>& rate,
                          const R& half_rows, const R& k, const R& n) {
  return {.k = k,
          .n = n,
          .row_flops = FlopsOf<R>(R(2.0) * k * n),
          .matrix_bytes = BytesOf<R>(R(format.weight_bytes) * k * n),
          .row_bytes = BytesOf<R>(R(format.input_bytes()) * k + R(format.activation_bytes) * n),
          .rate = rate * (shape_share(n, chip.half_dim) * shape_share(k, chip.half_dim)),
          .half_rows = half_rows};
}

}  // namespace

template <class R>
MatmulTerm<R> dense_term(const ChipRates<R>& chip, const MatmulFormat& format, const R& k, const R& n) {
  return matmul_term(chip, format, scaled_rate(chip, format), chip.half_rows, k, n);
}

template <class R>
MatmulTerm<R> grouped_term(const ChipRates<R>& chip, const MatmulFormat& format, const R& k, const R& n) {
  return matmul_term(chip, format, scaled_rate(chip, format) * chip.grouped, chip.grouped_half_rows, k, n);
}

template <class R>
AttentionTerm<R> attention_term(const ChipRates<R>& chip, const FlopsPerSecondOf<R>& peak, const Op<R>& op,
                                const R& ways, double activation_bytes) {
  const R head_dim =
      named((op.qk_width + op.v_width) / (R(2.0) * op.heads), op.name, "mean of queries' and values'", "head width of");
  return {.token_flops = attention_flops(op, R(1.0)) / ways,
          .row_bytes = BytesOf<R>((op.qk_width + op.v_width) * R(activation_bytes)) / ways,
          .rate = peak * chip.attention.of_heads(head_dim),
          .half_context = chip.attention.half_context};
}

template <class R>
RowTerm<R> row_term(const ChipRates<R>& chip, const FlopsPerSecondOf<R>& chunked, const Op<R>& op, const R& share,
                    double activation_bytes) {
  const bool on_vectors = op.kind != OpKind::kScan || op.by_element;
  return {.row_flops = FlopsOf<R>(op.flops * share),
          .row_bytes = BytesOf<R>((op.reads + op.writes) * share * R(activation_bytes)),
          .rate = on_vectors ? chip.vector : chunked};
}

#define SCALECALC_INSTANTIATE(R)                                                                                    \
  template MatmulTerm<R> dense_term(const ChipRates<R>&, const MatmulFormat&, const R&, const R&);                  \
  template MatmulTerm<R> grouped_term(const ChipRates<R>&, const MatmulFormat&, const R&, const R&);                \
  template AttentionTerm<R> attention_term(const ChipRates<R>&, const FlopsPerSecondOf<R>&, const Op<R>&, const R&, \
                                           double);                                                                 \
  template RowTerm<R> row_term(const ChipRates<R>&, const FlopsPerSecondOf<R>&, const Op<R>&, const R&, double);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
