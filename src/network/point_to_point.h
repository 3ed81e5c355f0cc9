// Bytes from one chip to another: the latency of the way, then the bytes over the links used at once; the terms add
// (scaling book, chapter 2, question 5).
#pragma once

#include <cstdint>
#include <string>

#include "network/tier_rates.h"

namespace scalecalc {

/// What lies between two chips.
struct Way {
  BytesPerSecondOf<Traced> rate;  ///< of one link on a torus; of the slowest tier crossed behind switches
  SecondsOf<Traced> latency;
  std::int64_t hops = 0;  ///< 0 behind switches
  std::string tier;       ///< whose links bind; empty: nowhere to go
};

/// `hops` links of a torus, one after the other.
Way torus_way(const HardwareSpec& hw, const NetworkRates<Traced>& rates, std::int64_t hops);
/// Behind switches from rank to rank, over the lowest tier that holds both: inside the innermost domain over its links,
/// else over the chip's port of every tier beyond it.
Way switched_way(const HardwareSpec& hw, const NetworkRates<Traced>& rates, std::int64_t from, std::int64_t to);
/// Takes one more tier into the way.
void cross(const HardwareSpec& hw, const NetworkRates<Traced>& rates, std::size_t tier, Way& way);

struct TransferTime {
  SecondsOf<Traced> time, bandwidth_time, latency;
};
/// `links` of them used at once; counts on a torus alone.
TransferTime transfer_time(const Way& way, const BytesOf<Traced>& bytes, std::int64_t links = 1);

}  // namespace scalecalc
