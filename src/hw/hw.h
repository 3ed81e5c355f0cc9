// `scalecalc hw`: what a chip's file says and what follows from it: rates from first principles, the intensity each
// channel asks for, a slice of its machine, what the switches can carry, and the times of moving bytes over it. Scaling
// book, chapters 2 ("How to Think About TPUs") and 12 ("How to Think About GPUs").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/explained.h"
#include "base/scalar.h"
#include "config/catalog.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// Every chip of the catalog that meets some conditions, one line each.
enum class HwOrder { kName, kYear, kMatmul, kMemory, kBandwidth, kPrice };

struct HwListQuestion {
  std::vector<std::string> words;     ///< each in the name, title or vendor, whatever its case
  std::optional<std::string> vendor;  ///< whatever its case
  std::optional<std::string> family;
  std::optional<std::int64_t> since;  ///< year of the first systems, or later
  std::optional<DType> dtype;         ///< has a matmul rate in it
  std::optional<Bytes> min_memory;    ///< that a program can allocate
  std::optional<BytesPerSecond> min_bandwidth;
  bool priced = false;  ///< has a price
  bool sold = false;    ///< not merely announced
  bool book = false;    ///< the scaling book's rounded entries instead of the data sheets'
  HwOrder order = HwOrder::kName;
};

struct HwList {
  HwListQuestion question;
  std::vector<HardwareSpec> chips;
  std::size_t left_out = 0;  ///< chips that do not meet the conditions
};

/// UserError for a vendor, a family or a word that no chip has.
HwList list_hardware(const HwListQuestion& question, const Catalog& catalog);

/// The rate a chip is compared by: bf16, or fp16; or the format asked for. Nothing if it has none.
std::optional<FlopsPerSecond> compared_rate(const HardwareSpec& hw, std::optional<DType> dtype);

template <class T>
using Maybe = std::optional<T>;
using TracedBytes = BytesOf<Traced>;
using TracedSeconds = SecondsOf<Traced>;
using TracedFlops = FlopsOf<Traced>;
using TracedBandwidth = BytesPerSecondOf<Traced>;
using TracedRate = FlopsPerSecondOf<Traced>;
using TracedIntensity = FlopsPerByteOf<Traced>;

// ---------------------------------------------------------------- the question

/// Bytes from one chip to another: coordinates on a torus, numbers of chips under switches.
struct SendQuestion {
  Shape from;
  Shape to;
  Bytes bytes;
  std::optional<std::int64_t> ports;  ///< links that carry it at once; default: one for each axis it moves along
};

/// An array that lies in the hosts' memory, spread over the slice's chips, and is needed whole on one of them.
struct LoadQuestion {
  double elements = 0;
  DType dtype = DType::kInt8;
  std::optional<std::int64_t> rows, columns;  ///< of a matrix; then a multiply may follow
  std::int64_t batch = 0;                     ///< rows that the matrix is multiplied with; 0 = no multiply
  std::optional<std::int64_t> ports;          ///< links into the chip that gathers
};

struct HwQuestion {
  std::vector<std::string> hardware;  ///< catalog names or paths
  std::vector<std::string> set;       ///< "hw.KEY=VALUE" for all of them, "hw1.", "hw2." ... for one by position
  std::optional<DType> dtype;         ///< of the intensities; default bf16, or what comes nearest
  std::optional<std::int64_t> chips;
  Shape topology;
  std::optional<SendQuestion> send;
  std::optional<LoadQuestion> load;
  std::optional<std::pair<std::int64_t, std::int64_t>> weight;  ///< rows and columns to pad to the matrix unit
  std::optional<std::int64_t> registers_per_thread;
};

// ---------------------------------------------------------------- the answer

/// Something that carries bytes to the chip's units, and how fast.
struct HwChannel {
  std::string name;   ///< for machines: "hbm", "ici_one_way", "leaf"
  std::string label;  ///< for people
  TracedBandwidth rate;
};

struct HwRates {
  std::optional<DType> dtype;  ///< of `intensities`; nothing if the file gives no matmul rate
  std::vector<std::pair<DType, TracedRate>> matmul;
  std::vector<std::pair<DType, TracedRate>> matmul_per_core;
  std::vector<std::pair<DType, TracedRate>> vector;
  std::vector<std::pair<DType, TracedRate>> vector_without_fma;  ///< where a multiply-add counts two
  std::vector<HwChannel> channels;
  std::vector<std::pair<std::string, TracedIntensity>> intensities;  ///< by channel
  std::vector<std::pair<DType, TracedIntensity>> hbm_intensities;
  std::vector<std::pair<std::string, Traced>> hbm_over;  ///< memory bandwidth over that of the other channels
  std::vector<std::pair<std::string, Traced>> over_hbm;  ///< bandwidth of memory on the chip over that
  std::optional<Traced> matmul_over_vector;              ///< matmul rate in `dtype` over the published vector rate
  std::vector<std::pair<DType, Traced>> flops_per_usd;
};

/// Rates that follow from clocks and units, and what the data sheet makes of them.
struct HwUnits {
  Maybe<Traced> mxu_alus;           ///< multiply-accumulators of one matrix unit
  Maybe<TracedFlops> mxu_flops;     ///< of one matrix unit and cycle
  Maybe<TracedRate> mxu_rate;       ///< of one matrix unit
  Maybe<TracedRate> mxu_chip_rate;  ///< of all of them
  Maybe<Traced> mxu_over_sheet;     ///< that over the 16-bit rate of the data sheet
  Maybe<TracedFlops> vpu_flops;     ///< of one core and cycle
  Maybe<TracedRate> vpu_rate;       ///< of one core
  Maybe<TracedRate> vpu_chip_rate;
  Maybe<Traced> matmul_over_vpu;                              ///< one core's matmul rate over its vector rate
  Maybe<TracedBytes> vpu_registers;                           ///< of one core
  Maybe<Traced> simd_units;                                   ///< subpartitions of all SMs
  Maybe<Traced> fp32_lanes;                                   ///< of all SMs
  Maybe<TracedFlops> fp32_flops;                              ///< of the chip and cycle, a multiply-add counting two
  Maybe<TracedRate> fp32_rate;                                ///< at the boost clock
  Maybe<Quantity<Dim{} - kSecondDim, Traced>> implied_clock;  ///< at which the lanes give the published vector rate
  Maybe<TracedFlops> implied_tensor_flops;  ///< of one tensor core and cycle, from the data sheet's 16-bit rate
  Maybe<TracedRate> tensor_rate;            ///< of all tensor cores, from their FLOPs a cycle
  Maybe<Traced> tensor_over_sheet;
  Maybe<TracedBytes> registers_per_sm;
  Maybe<Traced> warps_per_sm;  ///< resident ones, with the registers a thread asks for
};

struct HwMemoryLevel {
  std::string name;
  Maybe<TracedBytes> one;    ///< of one core or SM, if it is theirs
  Maybe<TracedBytes> total;  ///< of the chip
  Maybe<TracedBandwidth> bandwidth;
};

/// A slice of a torus, or some chips under switches.
struct HwSlice {
  std::string shape;  ///< "4x4x8", "1,024 chips"
  bool whole_pod = false;
  Traced chips;
  Maybe<Traced> hosts, units, cores;
  std::vector<bool> wraps;  ///< per axis as asked for; empty under switches
  Maybe<TracedBandwidth> bisection_one_way, bisection;
  std::vector<std::pair<DType, TracedRate>> matmul;
  Maybe<TracedBytes> memory;
  Maybe<TracedBandwidth> memory_bandwidth;
  Maybe<TracedBandwidth> host_egress;  ///< of one host into the network beyond the torus or node
  Maybe<Traced> usd_per_hour;
  Maybe<Quantity<kJouleDim - kSecondDim, Traced>> power;
};

/// One tier of switches: domains, what their children and their switches can carry.
struct HwLevel {
  std::string tier;
  Maybe<Traced> children;                  ///< D: chips or domains below one domain
  Maybe<TracedBandwidth> child_bandwidth;  ///< W: egress of one child
  Maybe<TracedBandwidth> children_bandwidth;
  Maybe<TracedBandwidth> per_chip;
  Maybe<Traced> domains;  ///< in the machine asked for
  Maybe<Traced> switches, switches_in_all;
  Maybe<TracedBandwidth> switch_bandwidth;  ///< of one switch, all ports
  Maybe<TracedBandwidth> capacity;          ///< of a domain's switches
  Maybe<TracedBandwidth> capacity_per_node;
  Maybe<TracedBandwidth> cables_down, cable_per_child;
  Maybe<TracedBandwidth> peak;  ///< the lower of what children send and switches carry
  Maybe<TracedBandwidth> bisection_one_way, bisection;
  Maybe<TracedBandwidth> bisection_share;  ///< bisection x 2 / children
  Maybe<Traced> links_up;                  ///< cables from one switch to each switch above
  Maybe<TracedBandwidth> cables_up;        ///< of one domain
  Maybe<Traced> ports_used;                ///< of one switch
  Maybe<bool> full_bisection;              ///< every node's share here is its egress
};

struct HwSend {
  Maybe<Traced> hops;  ///< on a torus
  Maybe<Traced> ports;
  TracedSeconds first_byte;
  TracedSeconds transfer;
  TracedSeconds total;
};

struct HwLoad {
  TracedBytes bytes, shard;
  Maybe<TracedSeconds> host;    ///< every chip reads its shard over PCIe
  Maybe<TracedSeconds> gather;  ///< to one chip
  TracedSeconds memory;         ///< that chip reads the whole array
  TracedSeconds shard_memory;   ///< or each chip its shard, nothing gathered
  Maybe<TracedFlops> flops;
  Maybe<TracedSeconds> math;
  TracedSeconds pipelined, serial;
};

struct HwPadding {
  Traced rows, columns, useful;
};

struct HwChip {
  HardwareSpec hw;
  HwRates rates;
  HwUnits units;
  std::vector<HwMemoryLevel> onchip;
  Maybe<TracedBytes> registers_and_smem;  ///< register files and shared memory of all SMs
  std::optional<HwSlice> slice;
  std::vector<HwLevel> levels;
  Maybe<Traced> nodes;          ///< of the machine asked for
  Maybe<Traced> core_switches;  ///< of a third layer, which more leaves than a spine has ports ask for
  Maybe<Traced> switches_in_all;
  std::optional<HwSend> send;
  std::optional<HwLoad> load;
  std::optional<HwPadding> padding;
};

struct HwAnswer {
  HwQuestion question;
  std::vector<HwChip> chips;
  std::vector<Assumption> assumptions;
};

/// UserError for a wrong question and for figures it needs that a file does not give.
HwAnswer answer(const HwQuestion& question, const Catalog& catalog);

// ---------------------------------------------------------------- its parts

/// The slice asked for; without --chips and --topology the whole pod or the innermost domain; nothing if the network
/// is unpublished and nothing was asked for.
std::optional<HwSlice> slice_of(const HardwareSpec& hw, const HwQuestion& question,
                                std::vector<Assumption>& assumptions);
/// Fills levels, nodes, core_switches and switches_in_all.
void switches_of(const HwQuestion& question, HwChip& chip);
HwSend send_of(const HardwareSpec& hw, const HwQuestion& question, const std::optional<HwSlice>& slice,
               std::vector<Assumption>& assumptions);
HwLoad load_of(const HardwareSpec& hw, const HwQuestion& question, const std::optional<HwSlice>& slice,
               std::vector<Assumption>& assumptions);
HwPadding padding_of(const HardwareSpec& hw, std::int64_t rows, std::int64_t columns);

}  // namespace scalecalc
