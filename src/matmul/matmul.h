// A sharded matmul as the scaling book analyses it (chapter 3): which of its four cases, every strategy with its
// collectives and times, what each chip holds, and where one strategy overtakes another.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/explained.h"
#include "matmul/matmul_problem.h"
#include "matmul/matmul_search.h"
#include "matmul/mesh_network.h"

namespace scalecalc {

struct MatmulQuestion {
  MatmulInput input;
  MeshPlacement placement;
  bool calibrated = false;         ///< with the hardware file's efficiencies; otherwise the book's rooflines
  std::optional<DType> compute;    ///< whose rate the matmuls run at; the widest operand's unless given
  std::vector<double> measured_s;  ///< times somebody measured, to set beside the roofline
  Shape tile;  ///< rows x columns to which the last two dimensions of an array are padded; may be empty
};

/// What an array takes.
struct ArrayShare {
  std::string name;
  std::string role;  ///< operand, intermediate, result
  std::string notation;
  DType dtype = DType::kBf16;
  std::vector<std::int64_t> shape, local_shape;
  BytesOf<Traced> bytes, local_bytes;
  BytesOf<Traced> total_bytes;                 ///< over all chips of the mesh, copies counted
  Traced replicas;                             ///< total over one copy
  Traced fraction;                             ///< a chip's part of one copy
  std::optional<SecondsOf<Traced>> load_time;  ///< a chip reads its part from HBM
  std::vector<std::int64_t> padded_shape;      ///< of a chip's part, in whole tiles; empty if no tile is asked for
  std::optional<BytesOf<Traced>> padded_bytes;
  std::optional<Traced> padding_growth;  ///< padded over needed
};

/// The book's case of one mesh axis in one product, or of the product.
struct AxisCase {
  std::string axis;
  int number = 1;
  std::string reason;
};
struct ProductCase {
  std::string notation;
  AxisCase whole;
  std::vector<AxisCase> axes;
  std::vector<std::string> contracted;
  FlopsOf<Traced> flops;
};
ProductCase case_of(const MatmulProblem& problem, std::size_t product);
FlopsOf<Traced> product_flops(const MatmulProblem& problem, std::size_t product);

struct CollectiveUse {
  StepKind kind = StepKind::kAllGather;
  std::string array;
  std::string axes;
  AxisMask mask = 0;
  BytesOf<Traced> bytes;     ///< V, as in collective_time.h
  BytesOf<Traced> received;  ///< by one chip
  SecondsOf<Traced> time;
  bool latency_bound = false;
  std::string algorithm;
  std::vector<std::size_t> dims;  ///< of the array
  Sharding sized;                 ///< a chip's part in this layout is V (of an all-to-all: V over the chips)
};

struct Strategy {
  std::size_t rank = 1;
  std::string name;  ///< its steps, joined
  std::vector<std::string> steps;
  std::vector<std::string> shards;  ///< "A[256, 2048] * B[2048, 8192]": what one chip multiplies
  std::string output;
  std::vector<CollectiveUse> collectives;
  FlopsOf<Traced> flops_per_chip;
  FlopsOf<Traced> flops_all_chips;  ///< that they run, also where several do the same
  Traced redundancy;  ///< FLOPs of all chips over those of the product: 4 where every quarter is computed four times
  SecondsOf<Traced> compute_time;
  SecondsOf<Traced> communication_time;
  SecondsOf<Traced> time;         ///< the longer of the two: communication hides under the matmuls, piece by piece
  SecondsOf<Traced> upper_time;   ///< their sum: first the one, then the other
  SecondsOf<Traced> memory_time;  ///< a chip reads its operands from HBM and writes its result
  BytesOf<Traced> memory;         ///< a chip's parts of operands and results, as given and as multiplied
  std::optional<Traced> communication_ratio;  ///< over that of the best strategy; none if that sends nothing
  bool compute_bound = false;
  bool fits = true;         ///< in a chip's memory
  bool as_written = false;  ///< axes that cut none of the arrays as written do nothing
  bool textbook = false;    ///< the fastest with this one collective on this array, or with none, and no detour
  MatmulPlan plan;
};

/// One way from a layout to another.
struct Redistribution {
  std::string name;  ///< its steps, joined
  std::vector<std::string> steps;
  std::vector<CollectiveUse> collectives;
  SecondsOf<Traced> time;
  BytesOf<Traced> memory;  ///< a chip's parts as given, between and as left
  bool detour = false;     ///< moves data over axes that could have been left alone, because that is faster
};
/// The fastest first; behind it, if that is another, the fastest that leaves alone what need not move. UserError if
/// there is none.
std::vector<Redistribution> redistributions(const MatmulProblem& problem, const MeshNetwork& network);
CollectiveUse collective_use(const ShardingTables& tables, const ShardedArray& array, const ReshardStep& step,
                             const std::string& name, const MeshNetwork& network);

/// A size at which something turns, all other sizes as asked.
struct Threshold {
  std::string name;       ///< "compute-bound B, all-gather Y over X, multiply"
  std::string dimension;  ///< or mesh axis
  Traced value;
  std::string condition;  ///< what holds, and on which side
  bool holds = false;     ///< at the sizes asked
};
struct Comparison {
  std::string name;
  std::string first, second;
  Traced communication_ratio;  ///< first over second
  Traced time_ratio;
  bool second_is_faster = false;
};

struct MeasuredMatmul {
  SecondsOf<Traced> time;
  Traced roofline_fraction;  ///< the best strategy's time over this
  std::optional<Traced> speedup_over_first, speedup_over_previous;
};

struct MatmulRates {
  DType compute_dtype = DType::kBf16;
  FlopsPerSecondOf<Traced> compute;
  BytesPerSecondOf<Traced> hbm;
  std::optional<BytesOf<Traced>> capacity;  ///< of a chip's memory, where the file gives it
  BytesPerSecondOf<Traced> network;         ///< W_ici: both directions of one torus axis; W_gpu behind switches
  std::string network_name;
  FlopsPerByteOf<Traced> alpha;  ///< compute over network
};

struct MatmulAnswer {
  MatmulProblem problem;
  std::string mesh;  ///< "X=4 (ring), Y=4 (line)"
  std::optional<MatmulRates> rates;
  std::vector<ArrayShare> arrays;
  std::vector<ProductCase> products;
  std::vector<Strategy> strategies;  ///< fastest first, those that do not fit a chip's memory behind all that do
  std::vector<Redistribution> routes;
  std::vector<Comparison> comparisons;
  std::vector<Threshold> thresholds;
  std::vector<MeasuredMatmul> measured;
  std::vector<Assumption> assumptions;
  std::vector<std::string> notes;
};

/// UserError if a product is asked without hardware, a rate is missing, or no strategy leads to the output asked for;
/// Stopped if asked to end before all are known. `hw` may be nullptr for a single array.
MatmulAnswer answer(const MatmulQuestion& question, const HardwareSpec* hw, const Stop& stop = {});

// Parts of answer(), used by more than one file.

/// Times of collectives, each asked for once. Keeps a reference to `network`.
CollectiveSeconds seconds_on(const MeshNetwork& network);

/// All strategies, fastest first. Stopped as answer().
std::vector<Strategy> strategies_of(const MatmulQuestion& question, const MatmulProblem& problem,
                                    const MatmulRates& rates, const HardwareSpec& hw, const MeshNetwork& network,
                                    const Stop& stop);

}  // namespace scalecalc
