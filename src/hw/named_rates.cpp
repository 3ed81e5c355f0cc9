// Gives a chip's rates as named inputs of formulas, for `hw`, `roofline`, `matmul` and `bounds`.
#include "hw/named_rates.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/text.h"
#include "network/tier_rates.h"

namespace scalecalc {
void NamedRates::missing(const char* what, const char* hint) const {
  throw UserError(fmt::format("{} gives no {}", hw_.name, what), hint);
}

FlopsPerSecondOf<Traced> NamedRates::matmul(DType dtype) const {
  require_published(hw_, {fmt::format("compute.matmul.{}", name_of(dtype))});
  const std::size_t at = static_cast<std::size_t>(dtype);
  if (!hw_.matmul_peak[at]) {
    std::vector<std::string> known;
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      if (hw_.matmul_peak[i]) known.emplace_back(kDTypeNames[i]);
    }
    throw UserError(
        fmt::format("{} publishes no {} matmul rate", hw_.name, kDTypeNames[at]),
        fmt::format("its matmul rates: {}; or --set hw.compute.matmul.{}=RATE", join(known, ", "), kDTypeNames[at]));
  }
  return read(kReader, *hw_.matmul_peak[at], fmt::format("hw.compute.matmul.{}", kDTypeNames[at]), hw_.compute_source);
}

FlopsPerSecondOf<Traced> NamedRates::vector() const {
  if (!hw_.vector_peak) missing("vector rate", "give one: --set hw.compute.vector=RATE");
  return read(kReader, *hw_.vector_peak, "hw.compute.vector", hw_.compute_source);
}

BytesPerSecondOf<Traced> NamedRates::hbm() const {
  require_published(hw_, {"hbm.bandwidth"});
  return read(kReader, hw_.hbm_bandwidth, "hw.hbm.bandwidth", hw_.hbm_source);
}

BytesOf<Traced> NamedRates::hbm_capacity() const {
  require_published(hw_, {"hbm.capacity"});
  return read(kReader, hw_.hbm_capacity, "hw.hbm.capacity", hw_.hbm_source);
}

std::optional<BytesPerSecondOf<Traced>> NamedRates::onchip(std::string_view level) const {
  const MemoryLevel* found = hw_.onchip.find(level);
  if (found == nullptr || !found->bandwidth) return std::nullopt;
  const std::string path = fmt::format("hw.onchip.{}.bandwidth", level);
  if (found->over_hbm == 0) return read(kReader, *found->bandwidth, path, hw_.onchip.source);
  const Traced times = kReader.input(found->over_hbm, path + "_over_hbm", hw_.onchip.source);
  return named(hbm() * times, fmt::format("{} bandwidth", level), "book ch. 2: a multiple of HBM's");
}

BytesPerSecondOf<Traced> NamedRates::pcie() const {
  if (!hw_.pcie_bandwidth) missing("host link rate", "give one: --set hw.host.pcie_bandwidth=RATE");
  return read(kReader, *hw_.pcie_bandwidth, "hw.host.pcie_bandwidth", hw_.host_source);
}

const Tier& NamedRates::torus() const {
  if (!hw_.is_torus()) missing("torus: its chips are joined by switches", "this needs a TPU-like interconnect");
  return hw_.network.front();
}

const Tier& NamedRates::domain() const {
  if (hw_.network.empty()) missing("network between chips", "describe one under network: in a hardware file");
  if (hw_.is_torus()) missing("switch domain: its chips form a torus", "this needs a GPU-like node");
  return hw_.network.front();
}

const Tier& NamedRates::beyond() const {
  if (hw_.network.size() < 2)
    missing("network beyond its innermost tier", "describe one under network: in a hardware file");
  return hw_.network[1];
}

BytesPerSecondOf<Traced> NamedRates::link() const {
  torus();
  require_bandwidth(hw_, 0);
  return tier_bandwidth(kReader, hw_, 0);
}

BytesPerSecondOf<Traced> NamedRates::ici() const {
  return named(link() * Traced(2.0), "W_ici", "book ch. 2: both directions of one axis");
}

std::int64_t NamedRates::axes() const { return torus().torus.dimensions(); }

BytesPerSecondOf<Traced> NamedRates::scale_up() const {
  domain();
  require_bandwidth(hw_, 0);
  return chip_egress(hw_, 0);
}

std::int64_t NamedRates::node_size() const { return domain().switched.chips; }

BytesPerSecondOf<Traced> NamedRates::scale_out() const {
  beyond();
  require_bandwidth(hw_, 1);
  return chip_egress(hw_, 1);
}

BytesPerSecondOf<Traced> NamedRates::node_egress(std::int64_t chips) const {
  domain();
  beyond();
  require_bandwidth(hw_, 1);
  return scalecalc::node_egress(hw_, chips);
}

}  // namespace scalecalc
