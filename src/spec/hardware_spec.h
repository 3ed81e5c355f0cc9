// What a hardware file says: one chip, the network from the inside out, the host, prices, and the measured
// efficiencies. A new chip is one YAML file; nothing here knows a chip's name.
//
// A figure that the source does not give stands as `unpublished` in the file, so that an omission is never taken for
// one: load_hardware refuses such files unless the caller says that it looks at `unpublished` itself.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/explained.h"
#include "base/quantity.h"
#include "base/shared_text.h"
#include "spec/chip_units.h"
#include "spec/dtype.h"

namespace scalecalc {

/// The most network tiers a file may list.
inline constexpr std::size_t kMaxTiers = 4;

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
  std::int64_t axes = 0;  ///< where the pod is unpublished
  Shape pod;              ///< empty if unpublished
  Wraparound wraparound = Wraparound::kNone;
  Shape unit;                       ///< slices are whole multiples of it; empty = 1 on every axis
  std::vector<Shape> small_slices;  ///< rentable shapes below one unit; they have no wraparound
  std::vector<Shape> shapes;        ///< if given, the only rentable shapes
  std::int64_t max_chips = 0;
  std::int64_t largest_job = 0;  ///< chips of the largest slice a cloud rents out; 0 = max_chips
  bool twisted = false;          ///< n x n x 2n and n x 2n x 2n slices may be built as twisted tori

  std::int64_t dimensions() const { return pod.empty() ? axes : static_cast<std::int64_t>(pod.size()); }
};

/// The cables and switches behind a tier's rate. 0 = not given.
struct Cabling {
  std::int64_t ports = 0;           ///< cables of one chip
  std::int64_t ports_per_host = 0;  ///< or of one host, when its chips share them
  BytesPerSecond port_bandwidth;    ///< one direction of one cable
  std::int64_t switches = 0;        ///< of one domain; on the outermost tier, of the whole machine
  std::int64_t switch_ports = 0;
  std::int64_t links_down = 0;  ///< cables from one switch to each domain (or host) below
  std::int64_t links_up = 0;    ///< cables from one switch to each switch of the next tier
};

/// What waits a tier's latency: a whole collective or transfer, as Calculon charges it, or every message of those that
/// follow one another. A torus gives its own per hop.
enum class LatencyPer : std::uint8_t { kOperation, kMessage };
inline constexpr std::array<std::string_view, 2> kLatencyPerNames{"operation", "message"};
constexpr std::string_view name_of(LatencyPer per) { return kLatencyPerNames[static_cast<std::size_t>(per)]; }
/// Which messages of a collective follow one another: log2 of the members, or one for each other member. Switches that
/// reduce need two, up and down.
enum class MessageOrder : std::uint8_t { kTree, kRing };
inline constexpr std::array<std::string_view, 2> kMessageOrderNames{"tree", "ring"};
constexpr std::string_view name_of(MessageOrder order) { return kMessageOrderNames[static_cast<std::size_t>(order)]; }

struct SwitchedTier {
  std::int64_t chips = 0;             ///< chips below one switch domain; 0 = no limit (outermost tier)
  BytesPerSecond bandwidth_per_chip;  ///< switched: one direction. mesh: one direction of the link to one peer
  Seconds latency;
  LatencyPer latency_per = LatencyPer::kOperation;
  MessageOrder algorithm = MessageOrder::kTree;  ///< counts where the latency is per message
  double oversubscription = 1;                   ///< how many times less leaves the domain below than enters it
  bool in_network_reduction = false;
  Cabling cabling;
};

struct Tier {
  std::string name;
  TierKind kind = TierKind::kSwitched;
  TorusTier torus;        ///< if kind is kTorus
  SwitchedTier switched;  ///< otherwise
  std::string technology;
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
  SharedText source;
  bool typed = false;  ///< on the command line: nothing that is known of kernels or stacks replaces it
};

/// What a stack's kernels add to the links in a collective, measured. Where a latency is 0 the network's own counts.
struct CollectiveKernels {
  Coefficient latency_scale_up{0, 0, ""};      ///< seconds of a small all-reduce of two inside the innermost tier
  Coefficient latency_scale_out{0, 0, ""};     ///< and of one that leaves it
  Coefficient latency_growth{0, 0, ""};        ///< share of these that every doubling of the ranks adds
  Coefficient ring_hop_scale_up{0, 0, ""};     ///< seconds that every further rank adds where gathers pass one ring
  Coefficient ring_hop_scale_out{0, 0, ""};    ///< and every further domain of the innermost tier
  Coefficient all_to_all_scale_up{0, 0, ""};   ///< seconds of a small all-to-all, likewise
  Coefficient all_to_all_scale_out{0, 0, ""};  ///<
  Coefficient collective_ramp{0, 0, ""};       ///< seconds that a MB costs until a collective runs at full bandwidth
  Coefficient collective_factor;               ///< on all of these and the transfer
};

/// What serving reaches where it differs from training (`serving:` inside the efficiency block): steps of few rows,
/// bound by memory and by the engine itself. The ideal is every share 1 and every time 0.
struct ServingEfficiency : CollectiveKernels {
  Coefficient weight_read{0, 0, ""};  ///< fraction of HBM bandwidth at which matmuls of few rows read weights; 0: hbm
  Coefficient kv_read{0, 0, ""};      ///< the same of attention over the cache; 0: hbm
  Coefficient dequantise;             ///< on weight_read, for weights of fewer bits than the matmul computes in
  Coefficient expert_read;            ///< on weight_read, for routed experts
  Coefficient matmul;                 ///< large matmuls relative to those of training
  Coefficient attention_forward{0, 0, ""};  ///< fraction of the dense peak; 0: as training
  Coefficient grouped_matmul{0, 0, ""};     ///< expert matmuls relative to dense ones; 0: as training
  Coefficient grouped_half_rows{0, 0, ""};  ///< rows an expert touched costs beyond those it gets
  /// 0: the larger of FLOPs and bytes counts; 1: the fourth root of the sum of their fourth powers.
  Coefficient blend{0, 0, ""};
  Coefficient overlap;                      ///< share of collectives that runs under other work
  Coefficient expert_imbalance;             ///< slowest expert rank over the mean
  Coefficient expert_skew{0, 0, ""};        ///< exponent of the power law by which tokens choose experts; 0: evenly
  Coefficient layer_overhead{0, 0, ""};     ///< seconds per layer and step that nothing hides
  Coefficient step_overhead{0, 0, ""};      ///< seconds per step
  Coefficient sequence_overhead{0, 0, ""};  ///< seconds per sequence and step
  Coefficient occupancy;                    ///< share of the batch's slots that work in a saturated engine
};

/// How far real kernels and links stay below the data sheet, per chip and software stack (the `efficiency:` block).
/// The ideal reading of the book is every fraction 1, every overlap 1, every overhead 0.
/// What predictions of a training run err alike by, whatever its coefficients. A run is of one class
/// (train/run_class.h).
enum class RunClass : std::uint8_t { kDense, kMoe, kLongContext, kSmallSteps, kLargeScale };
inline constexpr std::array<std::string_view, 5> kRunClassNames{"dense", "moe", "long_context", "small_steps",
                                                                "large_scale"};
constexpr std::string_view name_of(RunClass of) { return kRunClassNames.at(static_cast<std::size_t>(of)); }

struct Efficiency {
  std::string stack;
  std::string basis;
  std::string fitted;      ///< to which runs, its errors on them and on others; empty: to none
  std::string not_fitted;  ///< why not, of a stack that was measured: "a fit errs by 9.3 % on runs held out, ..."
  std::string confidence;  ///< which family's coefficients these are and what the chip's file replaced, and from what
  std::array<Coefficient, kDTypeCount> matmul;  ///< fraction of the dense peak that large matmuls reach
  Coefficient row_scaled{1, 0, ""};    ///< 8-bit matmuls with a scale for each row relative to those with one for all
  Coefficient block_scaled{1, 0, ""};  ///< and those with a scale for each short block
  Coefficient matmul_half_dim{0, 0, ""};    ///< fraction falls by x/(x + this) in each of m, n, k
  Coefficient grouped_matmul;               ///< expert matmuls relative to dense ones, many rows per expert
  Coefficient grouped_half_rows{0, 0, ""};  ///< and they fall by rows / (rows + this) with few rows per expert
  Coefficient attention_forward;            ///< fraction of the dense peak
  Coefficient attention_backward;
  Coefficient scan_forward, scan_backward;  ///< the same of recurrences in chunks; where a file has none, attention's
  Coefficient attention_half_context{0, 0, ""};   ///< tokens: its rate falls by c/(c + this) at a mean context of c
  Coefficient attention_half_head_dim{0, 0, ""};  ///< and by d/(d + this) in heads narrower than the width below
  Coefficient attention_head_width{128, 0, ""};   ///< of the heads that the fractions hold for, and of wider ones
  Coefficient vector;                             ///< fraction of the vector unit's rate
  Coefficient hbm;                                ///< fraction of HBM bandwidth
  Coefficient cast{0, 0, ""};             ///< share of the traffic of casting matmul operands to 8 bits that shows
  Coefficient link_scale_up;              ///< fraction of link bandwidth, innermost tier
  Coefficient link_scale_out;             ///< beyond it
  Coefficient link_host;                  ///< of the link to the host
  Coefficient kernel_overhead{0, 0, ""};  ///< seconds per kernel that nothing hides
  Coefficient expert_overhead{0, 0, ""};  ///< seconds per pass over a layer's routed experts, beside its kernels
  Coefficient host_overhead{0, 0, ""};    ///< seconds of the host to launch a kernel or a collective
  Coefficient captured_share;        ///< share of the first two that is left of kernels replayed from a captured graph
  Coefficient overlap_tp_pipelined;  ///< of tensor ranks whose collectives run in pieces under matmuls
  Coefficient overlap_tp, overlap_fsdp, overlap_dp, overlap_ep, overlap_pp;
  Coefficient overlap_cp;         ///< ring exchange, under attention
  Coefficient overlap_cp_gather;  ///< all-gather and all-to-all of context ranks, which attention waits for
  Coefficient overlap_ep_paired;  ///< expert all-to-alls where a second microbatch computes meanwhile (ep_overlap)
  Coefficient overlap_host;       ///< transfers to and from the host
  Coefficient contention_scale_up{0, 0, ""};  ///< share of compute lost while communication runs under it
  Coefficient contention_scale_out{0, 0, ""};
  Coefficient in_network_gain;           ///< all-reduce speed-up where switches reduce; ideal: exact halving
  Coefficient moe_imbalance;             ///< tokens of the fullest expert rank over the mean
  Coefficient step_overhead{0, 0, ""};   ///< seconds per step
  Coefficient scale_loss{0, 0, ""};      ///< share of a step lost with each doubling of hosts, or slices
  Coefficient memory_reserve{0, 0, ""};  ///< bytes the runtime keeps: context, communication buffers, allocator
  CollectiveKernels collectives;         ///< of training; those of serving are among its own
  /// By class of run: by what share of the step 90 % of runs err at most where every coefficient is known; 0: not
  /// fitted, and the coefficients alone make the band.
  std::array<double, kRunClassNames.size()> model_error{};
  ServingEfficiency serving;
  bool has_serving = false;  ///< some coefficient of serving was given
};

/// Where a stack's coefficients come from: the chip's own file, factors that its family's file has for the stack, or
/// neither.
enum class StackBasis : std::uint8_t { kDefault, kFamily, kChip };
inline constexpr std::array<std::string_view, 3> kStackBasisNames{"default", "family", "chip"};
constexpr std::string_view name_of(StackBasis basis) { return kStackBasisNames.at(static_cast<std::size_t>(basis)); }

/// The coefficients that one software stack reaches on the chip.
struct StackCoefficients {
  std::string name;
  std::vector<std::string> frameworks;  ///< other names it answers to
  StackBasis basis = StackBasis::kDefault;
  bool serves = false;  ///< its coefficients are of serving
  Efficiency efficiency;
};

/// Generations of chips that share builds of kernels (kernels/<name>.yaml). A chip of none is named there by itself.
inline constexpr std::array<std::string_view, 11> kArchitectureNames{
    "volta", "turing", "ampere", "ada", "hopper", "blackwell", "blackwell-sm120", "cdna2", "cdna3", "cdna4", "tpu"};

/// What the tensors of a program live in.
enum class MemoryKind { kHbm, kGddr, kLpddr, kSram };

/// Memory beyond the chip's own that it reads over a link of its own (not the host's over PCIe).
struct OffloadMemory {
  Bytes capacity;  ///< per chip
  std::optional<BytesPerSecond> bandwidth;
  std::string technology;
  std::string source;
};

/// A figure that the file says its source does not give.
struct UnpublishedFigure {
  std::string path;  ///< as --set names it: "hbm.bandwidth", "network.node.latency", "network"
  SourceSpan where;
  std::string flag;  ///< how to give it on the command line, for hints; empty where a file is needed
};

struct HardwareSpec {
  std::string name;
  std::vector<std::string> aliases;
  std::string title;
  std::string vendor;
  std::string family;
  std::string architecture;  ///< of kArchitectureNames: chips that run the same builds of kernels; may be empty
  std::int64_t year = 0;     ///< of the first systems; 0 = not given
  bool announced = false;    ///< figures are the vendor's plans; no such chip has been sold
  std::string note;
  std::array<std::optional<FlopsPerSecond>, kDTypeCount> matmul_peak;  ///< dense, per chip
  std::array<std::optional<FlopsPerSecond>, kDTypeCount> vector_rates;
  std::optional<FlopsPerSecond> vector_peak;  ///< the rate vector work runs at: fp32, or else the widest given
  bool vector_counts_fma = false;             ///< vector rates count a fused multiply-add as two
  std::string compute_source;
  ChipUnits units;
  OnChipMemory onchip;
  MemoryKind memory_kind = MemoryKind::kHbm;
  std::string memory_technology;  ///< "HBM3e"; empty if not given
  Bytes hbm_label;                ///< what the vendor prints
  Bytes hbm_capacity;             ///< what a program can allocate at most (`usable` where the file gives it)
  BytesPerSecond hbm_bandwidth;
  std::string hbm_source;
  std::vector<Tier> network;  ///< from the inside out; empty: the chip stands alone
  std::int64_t chips_per_host = 1;
  Shape host_shape;  ///< chips of a host on the torus's axes; empty if not given
  Bytes host_ram;
  std::optional<BytesPerSecond> pcie_bandwidth;         ///< per chip, one direction, if no other uses its uplink
  std::int64_t uplink_chips = 1;                        ///< that share one uplink to the host, each with that bandwidth
  std::optional<BytesPerSecond> host_memory_bandwidth;  ///< of a host's DRAM, reads and writes together
  std::optional<BytesPerSecond> storage_bandwidth;      ///< per host
  std::string host_source;
  std::optional<OffloadMemory> offload;
  std::optional<Watts> tdp;                  ///< per chip; not published for every chip
  std::optional<Watts> idle_power;           ///< of a chip; absent if not given
  std::optional<Watts> host_power;           ///< of a whole host with its chips, rated
  std::optional<Watts> host_power_measured;  ///< the most that a host drew in training
  std::string tdp_source;
  std::vector<Price> prices;              ///< default_price() picks one
  Efficiency efficiency;                  ///< of kernels and links, whatever the software
  std::vector<StackCoefficients> stacks;  ///< the family's usual one first
  std::string small_model_stack;  ///< what trains dense models of a host's size (model/usual_stack); may be empty
  std::vector<std::string> disagreements;  ///< "hbm.capacity: picked 95 GiB (vendor); sbook-tpu: 96 GB"
  std::vector<UnpublishedFigure> unpublished;

  /// Where offloaded tensors live: the memory beside the chip if it has one, else the chip's part of the host's.
  Bytes host_memory() const { return offload ? offload->capacity : host_ram / static_cast<double>(chips_per_host); }
  /// One direction of the link to it; absent if not published.
  std::optional<BytesPerSecond> host_bandwidth() const { return offload ? offload->bandwidth : pcie_bandwidth; }

  /// What a chip costs where nobody says which price; null if none is published.
  const Price* default_price() const { return prices.empty() ? nullptr : &prices.front(); }

  bool is_torus() const { return !network.empty() && network.front().kind == TierKind::kTorus; }
  /// False if the file leaves the figure unpublished, one above it or one below it: "network" asks for all of it.
  bool publishes(std::string_view path) const;
};

/// The coefficients of training under a stack, by its name or one of its frameworks; empty: the family's usual stack.
/// UserError for one that the chip has none of.
const Efficiency& efficiency_under(const HardwareSpec& hw, std::string_view stack);

/// Those of a stack that trains or serves; null if the chip has none of its own under that name.
const StackCoefficients* coefficients_under(const HardwareSpec& hw, std::string_view stack);

/// UserError that names those of `paths` which the file leaves unpublished; and "network" if the chip stands alone.
void require_published(const HardwareSpec& hw, std::initializer_list<std::string_view> paths);

/// The price of a chip-hour that a question pays, and the assumption it makes by that.
struct PaidPrice {
  std::optional<double> usd_per_chip_hour;
  std::string source;
  std::optional<Assumption> assumed;  ///< nothing if the price was asked for
};
/// What was asked for, else the default price, else none. `name` tells several chips of one answer apart.
PaidPrice paid_price(const HardwareSpec& hw, const std::optional<double>& asked, std::string_view name = {});

/// The bound the book computes with: every fraction and overlap 1, no overhead. Memory reserve stays: an ideal chip
/// still runs out of memory.
Efficiency ideal_efficiency(const Efficiency& calibrated);

/// Every coefficient at the end of its uncertainty that makes a step faster (or slower). A step's time is monotone in
/// each of them, so the two corners are its exact range; interval arithmetic, which forgets that a coefficient used
/// twice is one number, only contains it.
Efficiency fastest(const Efficiency& efficiency);
Efficiency slowest(const Efficiency& efficiency);

}  // namespace scalecalc
