// The scaling book's named-axis notation (chapter 3) as text:
//
//   A[I_X, J_Y] * B[J_Y, K] -> C[I_X, K]
//
// I_X: dimension I is cut over mesh axis X; I_XY, I_{XY} or I_{X,Y}: over X and then Y; {U_X} behind an array: it holds
// partial sums that still have to be added over X. A format stands before the array: bf16[I, J], int8 A[I, J] or
// A: int8[I, J]. A chain A * B * W -> C is read from the left; a result may be written after any product. The result
// of the last one may be left out. "·", "×" and "@" stand for *, "→" for ->.
//
// Only syntax here; what the names mean is for matmul_problem.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "spec/dtype.h"

namespace scalecalc {

/// A piece of the expression and the byte at which it starts.
struct NotedWord {
  std::string text;
  std::size_t at = 0;
};

struct NotedDimension {
  NotedWord name;
  std::vector<NotedWord> axes;  ///< as written: "XY" may be one axis or two, only the mesh knows
};

struct NotedArray {
  NotedWord name;  ///< empty if only a format stands there
  std::optional<DType> dtype;
  std::vector<NotedDimension> dims;
  std::vector<NotedWord> partial;  ///< axes of {U_X}
};

struct NotedExpression {
  std::string text;
  std::vector<NotedArray> operands;
  std::vector<std::optional<NotedArray>> results;  ///< behind each product; one shorter than `operands`
};

/// UserError with the place, what stands there and what was expected.
NotedExpression parse_notation(std::string_view text);

/// A complaint about a part of the expression, with a caret under it.
Diagnostic notation_problem(const std::string& expression, std::size_t at, std::size_t length, std::string message,
                            std::string hint = "");
inline Diagnostic notation_problem(const std::string& expression, const NotedWord& word, std::string message,
                                   std::string hint = "") {
  return notation_problem(expression, word.at, word.text.size(), std::move(message), std::move(hint));
}

}  // namespace scalecalc
