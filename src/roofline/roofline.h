// The roofline of one operation on one chip, or on N chips that share it (scaling book, chapter 1): how long its FLOPs,
// its bytes and what the chips exchange take, which of them binds, and from which size on the chip computes at its
// peak.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/explained.h"
#include "base/stop.h"
#include "cost/shape_fraction.h"
#include "network/collective_time.h"
#include "roofline/operation.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

enum class ComputeUnit { kMatrix, kVector };
/// Where the operands lie.
enum class OperandHome { kHbm, kVmem, kHost };
/// Whose bytes count: all operands, the weights alone (the book's small-batch approximation), or none.
enum class Counted { kAll, kWeights, kNone };
/// What the chips of a split matmul exchange over: a line of them on a torus, a ring, the switches from the innermost
/// on, or those beyond it with one chip in each domain (or slice).
enum class Fabric { kLink, kIci, kScaleUp, kScaleOut };

struct RooflineQuestion {
  std::vector<Operation> operations;  ///< one point of the curve each, alike but for one size
  std::string swept;                  ///< "batch": the size they differ in; empty if there is one
  OperandTypes types;
  std::optional<ComputeUnit> unit;  ///< nothing: the matrix units, or the vector unit for elementwise work
  OperandHome from = OperandHome::kHbm;
  std::optional<double> vmem_multiple;  ///< bandwidth of VMEM over that of HBM
  Counted counted = Counted::kAll;
  Sharing sharing;
  std::optional<Fabric> over;
  CollectiveConvention convention = CollectiveConvention::kBook;  ///< of what the chips exchange
  bool calibrated = false;       ///< with the hardware file's efficiencies; otherwise its peak rates
  std::vector<double> measured;  ///< seconds: of the one point, in the order of trials, or one for each point
};

/// Rates of one chip.
struct RooflineRates {
  std::optional<FlopsPerSecondOf<Traced>> peak;     ///< data sheet; nothing if nothing is computed
  std::optional<FlopsPerSecondOf<Traced>> compute;  ///< what large shapes reach of it
  BytesPerSecondOf<Traced> memory;
  std::optional<BytesPerSecondOf<Traced>> link;
  CollectiveNetwork network;                ///< with `link`: what the exchange runs over, and
  CollectiveGroup group;                    ///< between which chips
  SecondsOf<Traced> overhead{Traced(0.0)};  ///< of a kernel, calibrated only
  Traced half_dim{0.0};                     ///< cost/shape_fraction.h, calibrated matmuls only
  AttentionShortfall<Traced> attention;     ///< the same file, calibrated attention only
  std::string compute_name;                 ///< "bf16 matmul"
  std::string memory_name;                  ///< "hbm"
  std::string link_name;                    ///< "ici"
};

struct RooflinePoint {
  Operation operation;
  OperationWork work;
  BytesOf<Traced> bytes;                            ///< those that count, of all chips
  std::optional<FlopsPerByteOf<Traced>> intensity;  ///< nothing without bytes
  SecondsOf<Traced> compute_time;
  SecondsOf<Traced> memory_time;
  SecondsOf<Traced> link_time;
  SecondsOf<Traced> overhead;
  SecondsOf<Traced> time;        ///< the longest of the three: all overlap
  SecondsOf<Traced> upper_time;  ///< their sum: none overlap
  std::string_view bound_by;     ///< compute, memory, link or overhead
  FlopsPerSecondOf<Traced> attained;
  std::optional<Traced> fraction_of_peak;
};

/// From which size on the operation is compute-bound.
struct Critical {
  std::optional<Traced> value;
  std::string reason;                 ///< why there is no such size
  std::optional<Traced> approximate;  ///< with the weights' bytes alone
};

struct MeasuredTime {
  SecondsOf<Traced> seconds;
  std::size_t point = 0;
  Traced roofline_fraction;
  FlopsPerSecondOf<Traced> attained;
  std::optional<Traced> fraction_of_peak;
  std::optional<Traced> speedup_over_first;  ///< among the times of one point, from the second on
  std::optional<Traced> speedup_over_previous;
};

struct RooflineAnswer {
  RooflineRates rates;
  std::optional<FlopsPerByteOf<Traced>> memory_intensity;  ///< FLOPs the chip computes while it moves a byte
  std::optional<FlopsPerByteOf<Traced>> link_intensity;
  std::vector<RooflinePoint> points;
  std::optional<Critical> critical_batch;      ///< of a matmul, in rows
  std::optional<Critical> critical_prompt;     ///< of attention, query = keys
  std::optional<Critical> critical_dimension;  ///< of a split matmul: D or F above which its exchange is hidden
  std::vector<MeasuredTime> measured;
  std::vector<Assumption> assumptions;
};

/// UserError where the hardware file lacks a rate that is needed, and where the question does not fit together.
/// Asked to end, it has the points found until then, one at least; Stopped where each was measured.
RooflineAnswer answer(const RooflineQuestion& question, const HardwareSpec& hw, const Stop& stop = {});

/// The unit the question's operation runs on.
ComputeUnit unit_of(const RooflineQuestion& question);

// Parts of answer(), used by more than one file.

RooflineRates roofline_rates(const RooflineQuestion& question, const HardwareSpec& hw);
/// Share of the large-shape rate that this shape reaches on each chip; 1 unless rates are calibrated.
Traced reached_fraction(const Operation& operation, const Sharing& sharing, const RooflineRates& rates);
/// What the chips of a split matmul exchange: an all-reduce of the result, or an all-gather of the input. T_link is its
/// transfer, as in chapter 1 of the book; the exact convention counts latency as well.
CollectiveTime all_to_all_seconds(const RooflineQuestion& question, const RooflineRates& rates,
                                  const BytesOf<Traced>& bytes);

}  // namespace scalecalc
