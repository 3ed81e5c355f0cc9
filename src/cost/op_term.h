// [OP] What an operation takes of one chip for each row (token) that passes it: FLOPs, bytes by operand, and the rate
// its shape and format reach. The only place that turns an operation's shape into them. Training multiplies a term by
// the tokens of a microbatch (cost/op_work.h), serving by the rows of an engine's step (serve/term_builder.h), each on
// the rates that it reaches of the chip (ChipRates).
// Sources: FLOPs and bytes of an operation: scaling book, chapters 1 and 4.
#pragma once

#include "cost/roofline.h"
#include "cost/workload.h"
#include "model/ops.h"

namespace scalecalc {

/// How a matmul stores and computes.
struct MatmulFormat {
  DType dtype = DType::kBf16;           ///< whose rate it computes at
  Scaling scaling = Scaling::kDelayed;  ///< of operands of 8 bits
  double weight_bytes = 2;              ///< of a weight in memory
  double activation_bytes = 2;          ///< of an element between operations
  /// Operands are cast to fewer bits than what comes between operations has.
  bool is_cast() const { return bytes_per_element(dtype) <= 1 && activation_bytes > 1; }
  /// Of an element of the input as it is read.
  double input_bytes() const { return std::min(activation_bytes, bytes_per_element(dtype)); }
};

/// [rows, k] x [k, n], of dense weights or of each of several experts.
template <class R>
struct MatmulTerm {
  R k, n;                    ///< on this chip
  FlopsOf<R> row_flops;      ///< of a row
  BytesOf<R> matrix_bytes;   ///< of the weights of one matrix
  BytesOf<R> row_bytes;      ///< of a row of the input, read, and of the product, written
  FlopsPerSecondOf<R> rate;  ///< with many rows
  R half_rows;               ///< rows of a matrix with which it is half of that

  /// Of `rows` in all, dealt to `matrices`.
  FlopsPerSecondOf<R> rate_at(const R& rows, const R& matrices) const {
    return rate * shape_share(rows / matrices, half_rows);
  }
  /// Rows that take as long at `rate` as these at theirs.
  R padded(const R& rows, const R& matrices) const { return rows + half_rows * matrices; }
};
/// Of dense weights.
template <class R>
MatmulTerm<R> dense_term(const ChipRates<R>& chip, const MatmulFormat& format, const R& k, const R& n);
/// Of routed experts, whose kernels compute several matrices at once.
template <class R>
MatmulTerm<R> grouped_term(const ChipRates<R>& chip, const MatmulFormat& format, const R& k, const R& n);

/// Scores and values in a flash kernel.
template <class R>
struct AttentionTerm {
  FlopsOf<R> token_flops;    ///< of a row, for each token it attends to
  BytesOf<R> row_bytes;      ///< of a row: queries read, output written
  FlopsPerSecondOf<R> rate;  ///< in long contexts, heads as wide as these
  R half_context;            ///< tokens of context with which it is half of that

  FlopsPerSecondOf<R> rate_at(const R& context) const { return rate * shape_share(context, half_context); }
};
/// `ways`: ranks that divide its heads; `peak`: the chip's rate, forward or backward.
template <class R>
AttentionTerm<R> attention_term(const ChipRates<R>& chip, const FlopsPerSecondOf<R>& peak, const Op<R>& op,
                                const R& ways, double activation_bytes);

/// An operation whose rows are alike: a norm, an activation function, a recurrence over a state.
template <class R>
struct RowTerm {
  FlopsOf<R> row_flops;
  BytesOf<R> row_bytes;  ///< read and written
  FlopsPerSecondOf<R> rate;
};
/// `share`: part of it on this chip; `chunked`: the rate of a recurrence in chunks, of those that do not run element by
/// element on the vector unit.
template <class R>
RowTerm<R> row_term(const ChipRates<R>& chip, const FlopsPerSecondOf<R>& chunked, const Op<R>& op, const R& share,
                    double activation_bytes);

}  // namespace scalecalc
