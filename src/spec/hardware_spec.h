// What a hardware file says: one chip, the network from the inside out, the host, prices, and the measured
// efficiencies. A new chip is one YAML file; nothing here knows a chip's name.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/quantity.h"
#include "spec/dtype.h"

namespace scalecalc {

enum class TierKind {
  kTorus,     ///< chips on a grid, each linked to its neighbours
  kSwitched,  ///< every chip has one rate to every other
  kMesh,      ///< every chip has one link to each other chip of the domain
};

enum class Wraparound {
  kUnitMultiple,  ///< all axes wrap when the slice is made of whole units (optically switched cubes)
  kFullAxis,      ///< an axis wraps when it spans the pod's axis
  kNone,
};

using Shape = std::vector<std::int64_t>;

struct TorusTier {
  BytesPerSecond link_bandwidth;  ///< one direction of one link
  Seconds hop_latency;
  Shape pod;
  Wraparound wraparound = Wraparound::kNone;
  Shape unit;                       ///< slices are whole multiples of it; empty = 1 on every axis
  std::vector<Shape> small_slices;  ///< rentable shapes below one unit; they have no wraparound
  std::vector<Shape> shapes;        ///< if given, the only rentable shapes
  std::int64_t max_chips = 0;
  std::int64_t largest_job = 0;  ///< chips of the largest slice a cloud rents out; 0 = max_chips
  bool twisted = false;          ///< n x n x 2n and n x 2n x 2n slices may be built as twisted tori
};

struct SwitchedTier {
  std::int64_t chips = 0;             ///< chips below one switch domain; 0 = no limit (outermost tier)
  BytesPerSecond bandwidth_per_chip;  ///< switched: one direction. mesh: one direction of the link to one peer
  Seconds latency;                    ///< per message
  double oversubscription = 1;        ///< how many times less leaves the domain below than enters it
  bool in_network_reduction = false;
};

struct Tier {
  std::string name;
  TierKind kind = TierKind::kSwitched;
  TorusTier torus;        ///< if kind is kTorus
  SwitchedTier switched;  ///< otherwise
  std::string source;
};

struct Price {
  double usd_per_chip_hour = 0;
  std::string cloud;
  std::string region;
  std::string terms;
  std::string date;
  std::string source;
};

/// A fitted or published coefficient with its relative uncertainty and where it comes from.
struct Coefficient {
  double value = 1;
  double error = 0;
  std::string source;
};

/// How far real kernels and links stay below the data sheet, per chip and software stack (the `efficiency:` block).
/// The ideal reading of the book is every fraction 1, every overlap 1, every overhead 0.
struct Efficiency {
  std::string stack;
  std::string basis;
  std::string confidence;  ///< which family's coefficients these are and what the chip's own file replaced
  std::array<Coefficient, kDTypeCount> matmul;  ///< fraction of the dense peak that large matmuls reach
  Coefficient matmul_half_dim{0, 0, ""};        ///< fraction falls by x/(x + this) in each of m, n, k
  Coefficient grouped_matmul;                   ///< expert matmuls relative to dense ones, many rows per expert
  Coefficient grouped_half_rows{0, 0, ""};      ///< and they fall by rows / (rows + this) with few rows per expert
  Coefficient attention_forward;                ///< fraction of the dense peak
  Coefficient attention_backward;
  Coefficient vector;                     ///< fraction of the vector unit's rate
  Coefficient hbm;                        ///< fraction of HBM bandwidth
  Coefficient link_scale_up;              ///< fraction of link bandwidth, innermost tier
  Coefficient link_scale_out;             ///< beyond it
  Coefficient kernel_overhead{0, 0, ""};  ///< seconds per kernel that nothing hides
  Coefficient overlap_tp, overlap_fsdp, overlap_dp, overlap_cp, overlap_ep, overlap_pp;
  Coefficient contention_scale_up{0, 0, ""};  ///< share of compute lost while communication runs under it
  Coefficient contention_scale_out{0, 0, ""};
  Coefficient in_network_gain;           ///< all-reduce speed-up where switches reduce; ideal: exact halving
  Coefficient moe_imbalance;             ///< slowest expert group over the mean
  Coefficient step_overhead{0, 0, ""};   ///< seconds per step
  Coefficient memory_reserve{0, 0, ""};  ///< bytes the runtime keeps: context, communication buffers, allocator
};

struct HardwareSpec {
  std::string name;
  std::string title;
  std::string family;
  std::array<std::optional<FlopsPerSecond>, kDTypeCount> matmul_peak;  ///< dense, per chip
  std::optional<FlopsPerSecond> vector_peak;
  std::string compute_source;
  Bytes hbm_capacity;  ///< what a program can allocate at most (`usable` where the file gives it)
  BytesPerSecond hbm_bandwidth;
  std::string hbm_source;
  std::vector<Tier> network;  ///< from the inside out
  std::int64_t chips_per_host = 1;
  Bytes host_ram;
  std::optional<BytesPerSecond> pcie_bandwidth;     ///< per chip, one direction
  std::optional<BytesPerSecond> storage_bandwidth;  ///< per host
  std::string host_source;
  std::optional<Watts> tdp;  ///< per chip; not published for every chip
  std::string tdp_source;
  std::vector<Price> prices;  ///< the first is the default
  Efficiency efficiency;
  std::vector<std::string> disagreements;  ///< "hbm.capacity: picked 95 GiB (vendor); sbook-tpu: 96 GB"

  bool is_torus() const { return !network.empty() && network.front().kind == TierKind::kTorus; }
};

/// The bound the book computes with: every fraction and overlap 1, no overhead. Memory reserve stays: an ideal chip
/// still runs out of memory.
Efficiency ideal_efficiency(const Efficiency& calibrated);

/// Every coefficient at the end of its uncertainty that makes a step faster (or slower). A step's time is monotone in
/// each of them, so the two corners are its exact range; interval arithmetic, which forgets that a coefficient used
/// twice is one number, only contains it.
Efficiency fastest(const Efficiency& efficiency);
Efficiency slowest(const Efficiency& efficiency);

}  // namespace scalecalc
