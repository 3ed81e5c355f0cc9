// Lists the rates and capacities that a buyer can choose, for `scalecalc sensitivity`.
#include "sensitivity/rates.h"

#include <fmt/format.h>

#include "network/tier_rates.h"

namespace scalecalc {
namespace {

/// As quantities are typed.
std::string typed_unit(const Dim& unit) {
  if (unit == kByteDim) return "B";
  return unit == kByteDim - kSecondDim ? "B/s" : unit_name(unit);
}

class RateList {
 public:
  explicit RateList(const HardwareSpec& hw) : hw_(hw) {}

  std::vector<HardwareRate> run(const std::vector<DType>& formats, bool several, bool hosts) {
    for (const DType dtype : formats) matmul(dtype);
    if (hw_.vector_peak) {
      add("hw.compute.vector", hw_.vector_peak->value(), kFlopDim - kSecondDim,
          [](HardwareSpec& hw, double k) { hw.vector_peak = *hw.vector_peak * k; });
    }
    add("hw.hbm.bandwidth", hw_.hbm_bandwidth.value(), kByteDim - kSecondDim,
        [](HardwareSpec& hw, double k) { hw.hbm_bandwidth = hw.hbm_bandwidth * k; });
    // Any file takes it, where `capacity` is refused if the file tells what of the label programs can allocate.
    add("hw.hbm.usable", hw_.hbm_capacity.value(), kByteDim,
        [](HardwareSpec& hw, double k) { hw.hbm_capacity = hw.hbm_capacity * k; });
    out_.back().read_as.clear();
    for (std::size_t t = 0; t < hw_.network.size() && several; ++t) tier(t);
    if (hosts) host();
    return std::move(out_);
  }

 private:
  void add(std::string read_as, double value, Dim unit, std::function<void(HardwareSpec&, double)> scale) {
    out_.push_back({.name = read_as,
                    .read_as = {std::move(read_as)},
                    .value = value,
                    .unit = unit,
                    .is_time = unit == kSecondDim,
                    .scale = std::move(scale)});
  }

  void matmul(DType dtype) {
    const auto d = static_cast<std::size_t>(dtype);
    add(fmt::format("hw.compute.matmul.{}", name_of(dtype)), hw_.matmul_peak[d]->value(), kFlopDim - kSecondDim,
        [d](HardwareSpec& hw, double k) { hw.matmul_peak[d] = *hw.matmul_peak[d] * k; });
  }

  void tier(std::size_t t) {
    const Tier& tier = hw_.network[t];
    add(bandwidth_name(tier), port_bandwidth(tier).value(), kByteDim - kSecondDim,
        [t](HardwareSpec& hw, double k) { scale_bandwidth(hw, t, k); });
    if (link_latency(tier).value() <= 0) return;
    add(latency_name(tier), link_latency(tier).value(), kSecondDim,
        [t](HardwareSpec& hw, double k) { scale_latency(hw, t, k); });
  }

  void host() {
    const auto rate = hw_.host_bandwidth();
    if (!rate) return;
    add(hw_.offload ? "hw.offload.bandwidth" : "hw.host.pcie_bandwidth", rate->value(), kByteDim - kSecondDim,
        [](HardwareSpec& hw, double k) {
          std::optional<BytesPerSecond>& link = hw.offload ? hw.offload->bandwidth : hw.pcie_bandwidth;
          link = *link * k;
        });
    if (hw_.offload || !hw_.host_memory_bandwidth) return;
    add("hw.host.memory_bandwidth", hw_.host_memory_bandwidth->value(), kByteDim - kSecondDim,
        [](HardwareSpec& hw, double k) { hw.host_memory_bandwidth = *hw.host_memory_bandwidth * k; });
  }

  const HardwareSpec& hw_;
  std::vector<HardwareRate> out_;
};

}  // namespace

std::string HardwareRate::set_to(double share) const {
  return fmt::format("{}={:.17g}{}", name, value * factor(share), typed_unit(unit));
}

std::vector<HardwareRate> hardware_rates(const ResolvedQuestion& question) {
  const Precision& p = question.workload.precision;
  std::vector<DType> formats{p.compute};
  if (p.high != p.compute) formats.push_back(p.high);
  return hardware_rates(question.hw, formats, question.slices.front().chips > 1, true);
}

std::vector<HardwareRate> hardware_rates(const HardwareSpec& hw, const std::vector<DType>& formats, bool several,
                                         bool hosts) {
  return RateList(hw).run(formats, several, hosts);
}

}  // namespace scalecalc
