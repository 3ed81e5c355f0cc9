// What a chip is made of: clocks, matrix and vector units, on-chip memories. Enough to compute its rates from first
// principles (scaling book, chapters 2 and 12). Every figure is optional: absent means that the source gives none.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantity.h"

namespace scalecalc {

struct Clocks {
  std::optional<Hertz> base;    ///< the clock that is always reached; the only one of a TPU
  std::optional<Hertz> boost;   ///< the highest
  std::optional<Hertz> tensor;  ///< under full matmul load; data sheets of tensor-core rates assume it

  std::optional<Hertz> of_matmuls() const { return tensor ? tensor : of_vectors(); }
  std::optional<Hertz> of_vectors() const { return boost ? boost : base; }
};

/// Systolic matrix units of one core: each multiplies [rows, dim] by [dim, dim] in `cycles` cycles.
struct MxuUnits {
  std::int64_t dim = 0;
  std::int64_t per_core = 0;  ///< 0 = not given, and so for what follows
  std::int64_t rows = 0;
  std::int64_t cycles = 0;
};

/// The vector unit of one core: lanes x sublanes x ALUs, one operation each a cycle.
struct VpuUnits {
  std::int64_t lanes = 0;
  std::int64_t sublanes = 0;
  std::int64_t alus = 0;       ///< of one lane and sublane; 0 = not given
  std::int64_t registers = 0;  ///< of lanes x sublanes elements each; 0 = not given
  Bytes register_element;      ///< bytes of one element
};

/// Streaming multiprocessors, or what a vendor calls its like.
struct SmUnits {
  std::string word = "SM";         ///< "SM" or "CU"
  std::int64_t count = 0;          ///< on the chip
  std::int64_t subpartitions = 0;  ///< of one SM; 0 = not given, and so for what follows
  std::int64_t fp32_lanes = 0;     ///< of one subpartition, one fused multiply-add each a cycle
  std::int64_t tensor_cores = 0;   ///< of one SM
  Flops tensor_flops;              ///< of one tensor core and cycle, in 16-bit formats
  std::int64_t registers = 0;      ///< of one subpartition
  Bytes register_element;          ///< bytes of one register
  std::int64_t warp = 0;           ///< threads that step together
};

struct ChipUnits {
  std::int64_t cores = 0;  ///< cores of a chip that run a program of their own (TensorCores); 0 = not given
  Clocks clock;
  std::optional<MxuUnits> mxu;
  std::optional<VpuUnits> vpu;
  std::optional<SmUnits> sm;
  std::string source;
};

/// What a memory level belongs to: one per chip, per core or per SM.
enum class MemoryOwner { kChip, kCore, kSm };

struct MemoryLevel {
  std::string_view name;  ///< one of kMemoryLevels
  MemoryOwner per = MemoryOwner::kChip;
  std::optional<Bytes> capacity;            ///< of one
  std::optional<BytesPerSecond> bandwidth;  ///< of the chip
  double over_hbm = 0;                      ///< as the file states it, in times of the memory's; 0 = in bytes/s
};

inline constexpr std::array<std::string_view, 11> kMemoryLevels{"vmem", "cmem", "smem", "registers", "tmem", "lds",
                                                                "l1",   "l2",   "llc",  "sbuf",      "sram"};

struct OnChipMemory {
  std::vector<MemoryLevel> levels;  ///< in the order of kMemoryLevels
  std::string source;

  const MemoryLevel* find(std::string_view name) const;
};

}  // namespace scalecalc
