// Computes the time of one operation from its FLOPs, its bytes and the chip's fitted rates.
#include "cost/roofline.h"

#include <fmt/format.h>

#include "cost/vector_rate.h"

namespace scalecalc {

template <class R>
ChipRates<R> read_chip(const Reader<R>& reader, const HardwareSpec& hw, const Efficiency& e, DType attention) {
  const auto coefficient = [&](const Coefficient& c, const char* name) {
    return reader.input(c.value, name, c.source, {}, c.error);
  };
  ChipRates<R> out;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const FlopsPerSecond peak = hw.matmul_peak[i].value_or(FlopsPerSecond(0));
    const std::string dtype(kDTypeNames[i]);
    out.matmul[i] =
        read(reader, peak, "hw.compute.matmul." + dtype, hw.compute_source) *
        reader.input(e.matmul[i].value, "efficiency.matmul." + dtype, e.matmul[i].source, {}, e.matmul[i].error);
  }
  const std::size_t a = static_cast<std::size_t>(attention);
  const FlopsPerSecondOf<R> peak = read(reader, hw.matmul_peak[a].value_or(FlopsPerSecond(0)),
                                        "hw.compute.matmul." + std::string(kDTypeNames[a]), hw.compute_source);
  out.peak_attention_forward = peak * coefficient(e.attention_forward, "efficiency.attention_forward");
  out.peak_attention_backward = peak * coefficient(e.attention_backward, "efficiency.attention_backward");
  out.peak_scan_forward = peak * coefficient(e.scan_forward, "efficiency.scan_forward");
  out.peak_scan_backward = peak * coefficient(e.scan_backward, "efficiency.scan_backward");
  out.attention = {coefficient(e.attention_half_context, "efficiency.attention_half_context"),
                   coefficient(e.attention_half_head_dim, "efficiency.attention_half_head_dim"),
                   coefficient(e.attention_head_width, "efficiency.attention_head_width")};
  out.vector = named(read(reader, published_vector_rate(hw), "hw.compute.vector", hw.compute_source) *
                         coefficient(e.vector, "efficiency.vector"),
                     "vector rate", hw.compute_source);
  out.hbm =
      named(read(reader, hw.hbm_bandwidth, "hw.hbm.bandwidth", hw.hbm_source) * coefficient(e.hbm, "efficiency.hbm"),
            "HBM rate", hw.hbm_source);
  const R uplink = hw.offload ? R(1.0) : R(1.0 / static_cast<double>(hw.uplink_chips));
  out.host = named(read(reader, hw.host_bandwidth().value_or(BytesPerSecond(0)),
                        hw.offload ? "hw.offload.bandwidth" : "hw.host.pcie_bandwidth",
                        hw.offload ? hw.offload->source : hw.host_source) *
                       (coefficient(e.link_host, "efficiency.link.host") * uplink),
                   "host link rate", "of a chip, each way, its uplink shared");
  if (!hw.offload && hw.host_memory_bandwidth) {
    const R chips(static_cast<double>(hw.chips_per_host));
    out.host_memory = named(read(reader, *hw.host_memory_bandwidth, "hw.host.memory_bandwidth", hw.host_source) / chips,
                            "host memory rate", "of a chip, both ways together");
  }
  out.cast = coefficient(e.cast, "efficiency.cast");
  if (e.row_scaled.value != 1) out.row_scaled = coefficient(e.row_scaled, "efficiency.row_scaled");
  if (e.block_scaled.value != 1) out.block_scaled = coefficient(e.block_scaled, "efficiency.block_scaled");
  out.half_dim = coefficient(e.matmul_half_dim, "efficiency.matmul_half_dim");
  out.half_rows = out.half_dim;
  out.grouped = coefficient(e.grouped_matmul, "efficiency.grouped_matmul");
  out.grouped_half_rows = coefficient(e.grouped_half_rows, "efficiency.grouped_half_rows");
  out.moe_imbalance = coefficient(e.moe_imbalance, "efficiency.moe_imbalance");
  out.kernel_overhead = read(reader, Seconds(e.kernel_overhead.value), "efficiency.kernel_overhead",
                             e.kernel_overhead.source, e.kernel_overhead.error);
  out.expert_overhead = read(reader, Seconds(e.expert_overhead.value), "efficiency.expert_overhead",
                             e.expert_overhead.source, e.expert_overhead.error);
  out.host_overhead = read(reader, Seconds(e.host_overhead.value), "efficiency.host_overhead", e.host_overhead.source,
                           e.host_overhead.error);
  out.captured = coefficient(e.captured_share, "efficiency.captured_share");
  out.step_overhead = read(reader, Seconds(e.step_overhead.value), "efficiency.step_overhead", e.step_overhead.source,
                           e.step_overhead.error);
  if (e.scale_loss.value > 0) out.scale_loss = coefficient(e.scale_loss, "efficiency.scale_loss");
  return out;
}

template <class R>
Work<R>& Work<R>::operator+=(const Work& o) {
  compute += o.compute;
  hbm += o.hbm;
  overhead += o.overhead;
  flops += o.flops;
  return *this;
}

template <class R>
Work<R> roofline(const FlopsOf<R>& flops, const FlopsPerSecondOf<R>& rate, const BytesOf<R>& bytes,
                 const BytesPerSecondOf<R>& hbm) {
  Work<R> work;
  work.flops = flops;
  const SecondsOf<R> memory_time = bytes / hbm;
  if (value_of(rate) <= 0) {
    work.hbm = memory_time;
    return work;
  }
  const SecondsOf<R> compute_time = flops / rate;
  // max() keeps both sides in the traced reading; the branch only chooses the column it goes into.
  const SecondsOf<R> time = max(compute_time, memory_time);
  (value_of(compute_time) < value_of(memory_time) ? work.hbm : work.compute) = time;
  return work;
}

#define SCALECALC_INSTANTIATE(R)                                                                    \
  template ChipRates<R> read_chip(const Reader<R>&, const HardwareSpec&, const Efficiency&, DType); \
  template struct Work<R>;                                                                          \
  template Work<R> roofline(const FlopsOf<R>&, const FlopsPerSecondOf<R>&, const BytesOf<R>&,       \
                            const BytesPerSecondOf<R>&);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
