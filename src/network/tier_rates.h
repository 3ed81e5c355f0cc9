// The rates of a machine's links, read here and nowhere else: bandwidth after oversubscription and efficiency, latency
// with what it is charged for, and what a stack's kernels add. Every input has the name under which --set knows it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/scalar.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// One tier in one reading.
template <class R>
struct TierRates {
  BytesPerSecondOf<R> bandwidth;  ///< one direction. torus: one link; mesh: the link to one peer; switched: of a chip,
                                  ///< its port over the oversubscription
  SecondsOf<R> latency;           ///< torus: of a hop; others: see SwitchedTier
};

/// What kernels add to a collective; zeros where nothing is measured.
template <class R>
struct KernelRates {
  SecondsOf<R> latency_up{R(0.0)}, latency_out{R(0.0)};        ///< of two ranks; inside the innermost tier, and beyond
  SecondsOf<R> all_to_all_up{R(0.0)}, all_to_all_out{R(0.0)};  ///< of an all-to-all
  R growth{0.0};
  SecondsOf<R> hop_up{R(0.0)},
      hop_out{R(0.0)};  ///< of a ring over all members, inside an innermost domain and out of it
  /// [RING] Gathers, scatters and sums pass rings over the whole group, whatever domains it lies in.
  bool rings() const { return value_of(hop_up) > 0 || value_of(hop_out) > 0; }
  SecondsOf<R> ramp{R(0.0)};
  R factor{1.0};
};

template <class R>
struct NetworkRates {
  std::vector<TierRates<R>> tiers;
  R in_network_gain{1.0};
  KernelRates<R> kernels;
};

/// Training's kernels, or with `serving` the engine's. Figures that the file leaves unpublished are 0.
template <class R>
NetworkRates<R> read_network(const Reader<R>& reader, const HardwareSpec& hw, const Efficiency& efficiency,
                             bool serving = false);

/// TierRates::bandwidth of the data sheet: efficiency not applied.
template <class R>
BytesPerSecondOf<R> tier_bandwidth(const Reader<R>& reader, const HardwareSpec& hw, std::size_t tier);
template <class R>
SecondsOf<R> tier_latency(const Reader<R>& reader, const HardwareSpec& hw, std::size_t tier);
/// The share of a tier's bandwidth that transfers reach.
template <class R>
R link_efficiency(const Reader<R>& reader, const Efficiency& efficiency, std::size_t tier);

/// What a chip sends over this tier at once, to all its peers on a mesh; not of a torus.
BytesPerSecondOf<Traced> chip_egress(const HardwareSpec& hw, std::size_t tier);
/// Of all chips of an innermost domain into the tier beyond it; `chips` 0: the whole domain. W_node of the book.
BytesPerSecondOf<Traced> node_egress(const HardwareSpec& hw, std::int64_t chips = 0);
/// The innermost tier whose domains hold `chips` chips. Two pools on a torus are slices, joined by the tier beyond it
/// (`apart`). UserError where the chip stands alone.
std::size_t spanning_tier(const HardwareSpec& hw, std::int64_t chips, bool apart = false);

// --- The figures as the file gives them ---

BytesPerSecond port_bandwidth(const Tier& tier);  ///< before oversubscription
Seconds link_latency(const Tier& tier);
/// "hw.network.leaf.bandwidth_per_chip", as --set takes it.
std::string bandwidth_name(const Tier& tier);
std::string latency_name(const Tier& tier);
bool publishes_bandwidth(const HardwareSpec& hw, std::size_t tier);
bool publishes_tier(const HardwareSpec& hw, std::size_t tier);  ///< all of it
/// UserError if the file leaves the tier's bandwidth, or its latency, unpublished.
void require_bandwidth(const HardwareSpec& hw, std::size_t tier);
void require_latency(const HardwareSpec& hw, std::size_t tier);

void scale_bandwidth(HardwareSpec& hw, std::size_t tier, double factor);
void scale_latency(HardwareSpec& hw, std::size_t tier, double factor);
void set_bandwidth(HardwareSpec& hw, std::size_t tier, BytesPerSecond per_chip);  ///< of switches

/// Chips that the innermost tier of a switched machine joins; those of a torus are all of it, and one has no network.
std::int64_t chips_inside(const HardwareSpec& hw);

}  // namespace scalecalc
