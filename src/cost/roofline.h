// One operation on one chip: the larger of its compute time and its memory time (scaling book, chapter 1), at the
// rates the efficiency block says the chip reaches.
#pragma once

#include <array>

#include "base/scalar.h"
#include "cost/shape_fraction.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

template <class R>
struct ChipRates {
  std::array<FlopsPerSecondOf<R>, kDTypeCount> matmul;  ///< large dense matmuls; 0 where the chip has no such rate
  FlopsPerSecondOf<R> peak_attention_forward;           ///< at the recipe's 16-bit (or wider) rate
  FlopsPerSecondOf<R> peak_attention_backward;
  FlopsPerSecondOf<R> peak_scan_forward, peak_scan_backward;  ///< of recurrences in chunks
  AttentionShortfall<R> attention;
  FlopsPerSecondOf<R> vector;  ///< 0: not published, vector work is counted by its memory traffic alone
  BytesPerSecondOf<R> hbm;
  BytesPerSecondOf<R> host;  ///< to and from the host's memory, each way; 0: not published
  BytesPerSecondOf<R>
      host_memory;      ///< the chip's share of that memory's own rate, both ways together; 0: not published
  R cast{0.0};          ///< share of casting's traffic that shows
  R row_scaled{1.0};    ///< rate of matmuls with a scale for each row over that of those with one for all
  R block_scaled{1.0};  ///< and with one for each short block
  R half_dim{0.0};      ///< of a matmul's widths
  R half_rows{0.0};     ///< of the rows of dense ones
  R grouped{1.0};
  R grouped_half_rows{0.0};
  R moe_imbalance{1.0};  ///< tokens of the fullest expert rank over the mean, where nothing says more
  SecondsOf<R> kernel_overhead;
  SecondsOf<R> expert_overhead;  ///< of a pass over a layer's routed experts
  SecondsOf<R> host_overhead;    ///< of the host, for each kernel or collective it launches
  R captured{1.0};               ///< share of the first two that is left in a captured graph
  SecondsOf<R> step_overhead;
  R scale_loss{0.0};  ///< share of a step lost with each doubling of hosts, or on a torus slices
};

/// Time to send bytes to the host, or to get them; with `both` as many each way at once. The chips of a host all do.
template <class R>
SecondsOf<R> host_time(const ChipRates<R>& chip, const BytesOf<R>& bytes, bool both) {
  const SecondsOf<R> link = bytes / chip.host;
  if (value_of(chip.host_memory) <= 0) return link;
  return max(link, bytes * R(both ? 2.0 : 1.0) / chip.host_memory);
}

template <class R>
ChipRates<R> read_chip(const Reader<R>& reader, const HardwareSpec& hw, const Efficiency& efficiency, DType attention);

/// Time of an operation by what binds it; total = compute + hbm + overhead.
template <class R>
struct Work {
  SecondsOf<R> compute{R(0.0)};
  SecondsOf<R> hbm{R(0.0)};
  SecondsOf<R> overhead{R(0.0)};
  FlopsOf<R> flops{R(0.0)};

  SecondsOf<R> total() const { return compute + hbm + overhead; }
  Work& operator+=(const Work& o);
};

/// max(flops / rate, bytes / hbm), put under the larger. A rate of 0 means it is unknown: memory alone counts.
template <class R>
Work<R> roofline(const FlopsOf<R>& flops, const FlopsPerSecondOf<R>& rate, const BytesOf<R>& bytes,
                 const BytesPerSecondOf<R>& hbm);

}  // namespace scalecalc
