// One operation as the scaling book counts it (chapters 1 and 4): FLOPs, and the bytes of each operand, read or written
// once. Shared by N chips it is divided evenly, or, for a matmul, along one of its dimensions, with what the chips
// then hold twice and have to exchange.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/quantity.h"
#include "base/scalar.h"
#include "spec/dtype.h"

namespace scalecalc {

struct OperandTypes {
  DType input = DType::kBf16;
  DType weight = DType::kBf16;  ///< the second operand; keys and values of attention
  DType result = DType::kBf16;
  DType compute = DType::kBf16;  ///< whose rate the matrix units run at
};

/// Block sizes of a tiled matmul: a tile of the result is kept while blocks of both operands stream in.
struct MatmulTile {
  double rows = 0;
  double contraction = 0;
  double columns = 0;
};

/// [rows, contraction] x [contraction, columns], `matrices` times; the book's B, D and F.
struct Matmul {
  double matrices = 1;
  double rows = 0;
  double contraction = 0;
  double columns = 0;
  bool per_row_weights = false;  ///< weights [rows, contraction, columns]: each row has a matrix of its own
  double pad = 1;                ///< the units compute contraction and columns in multiples of it
  std::optional<MatmulTile> tile;
};

/// `inputs` arrays of `elements` to one, with `flops` on each element: a vector add is 2 and 1.
struct Elementwise {
  double elements = 0;
  double inputs = 2;
  double flops = 1;
};

struct DotProduct {
  double elements = 0;
};

/// Parameters in the weights' format read once, nothing computed.
struct ParameterLoad {
  double parameters = 0;
};

/// Scores and values of attention in a flash kernel: queries, keys, values and output pass memory once.
struct Attention {
  double sequences = 1;
  double heads = 0;
  double kv_heads = 0;
  double head_dim = 0;
  double query = 0;  ///< T: query positions of a sequence
  double kv = 0;     ///< S: positions they look at
  bool causal = false;
  bool backward = false;
};

/// One index of a contraction and which of the three arrays have it.
struct ContractionIndex {
  std::string name;
  double size = 0;
  bool in_first = false;
  bool in_second = false;
  bool in_result = false;
};

/// Two arrays multiplied and summed over the indices that the result lacks.
struct Contraction {
  std::string text;  ///< as written: "ij,jk->ik"
  std::vector<ContractionIndex> indices;
};

/// FLOPs and bytes as given.
struct GivenWork {
  double flops = 0;
  double bytes = 0;
};

using Operation = std::variant<Matmul, Elementwise, DotProduct, ParameterLoad, Attention, Contraction, GivenWork>;

/// How a matmul is divided over chips.
enum class MatmulSplit {
  kEven,         ///< FLOPs and bytes over N, nothing held twice, nothing exchanged
  kBatch,        ///< rows; every chip holds the weights
  kContraction,  ///< D; every chip ends with partial sums of the whole result
  kOutput,       ///< F; every chip needs the whole input
};

struct Sharing {
  std::int64_t chips = 1;
  MatmulSplit split = MatmulSplit::kEven;
};

struct OperationWork {
  FlopsOf<Traced> flops;  ///< of the operation
  FlopsOf<Traced> run;    ///< what the units compute: the same with padding
  // Read and written by all chips together, each copy counted.
  BytesOf<Traced> input;
  BytesOf<Traced> weight;
  BytesOf<Traced> result;
  BytesOf<Traced> exchanged;     ///< the array that the chips sum (kContraction) or gather (kOutput); 0 = none
  std::optional<Traced> useful;  ///< share of `run` that is no padding, where the matmul is padded
  std::optional<FlopsPerByteOf<Traced>> tile_intensity;  ///< of large tiles, the result's bytes left out
};

/// A matmul's work for each row, so that work = rows x this; `weight` is for all rows unless each has its own.
struct MatmulTerms {
  FlopsOf<Traced> flops;
  FlopsOf<Traced> run;
  BytesOf<Traced> input;
  BytesOf<Traced> weight;
  BytesOf<Traced> result;
  BytesOf<Traced> exchanged;
};

MatmulTerms matmul_terms(const Matmul& matmul, const OperandTypes& types, const Sharing& sharing);

/// Only a Matmul can be split otherwise than evenly.
OperationWork work_of(const Operation& operation, const OperandTypes& types, const Sharing& sharing);

/// The backward pass against the forward: a flash kernel computes the scores again (arXiv:2307.08691), and moves
/// gradients beside the operands.
double attention_flops_factor(const Attention& attention);
double attention_bytes_factor(const Attention& attention);

/// "bf16[512,8192] x int8[8192,28672] -> bf16[512,28672]"; the size that is swept ("batch", "query", "elements") is
/// shown as its letter.
std::string describe(const Operation& operation, const OperandTypes& types, std::string_view swept);

/// An input of the question for a traced formula.
Traced asked(double value, std::string_view name);
/// Bytes of one element.
BytesOf<Traced> element_bytes(DType dtype, std::string_view operand);

}  // namespace scalecalc
