#include "rules/bound_rates.h"

#include <fmt/format.h>

#include "network/tier_rates.h"

namespace scalecalc {
namespace {

/// The rate, times the share of it that kernels or links reach.
template <Dim D>
Quantity<D, Traced> reached(const Quantity<D, Traced>& rate, const Coefficient& share, bool ideal,
                            std::string_view name, std::string_view coefficient) {
  if (ideal) return rate;
  const Traced part = Reader<Traced>{}.input(share.value, coefficient, share.source);
  return named(rate * part, name, "rate x measured efficiency");
}

}  // namespace

bool BoundRates::has_outer_network() const {
  return has_network() && hw().network.size() > 1 && publishes_bandwidth(hw(), 1);
}

bool BoundRates::has_network() const { return !hw().network.empty() && publishes_bandwidth(hw(), 0); }

FlopsPerSecondOf<Traced> BoundRates::compute(DType dtype) const {
  return reached(chip_.matmul(dtype), hw().efficiency.matmul[static_cast<std::size_t>(dtype)], ideal_, "C",
                 fmt::format("hw.efficiency.matmul.{}", name_of(dtype)));
}

BytesPerSecondOf<Traced> BoundRates::hbm() const {
  return reached(chip_.hbm(), hw().efficiency.hbm, ideal_, "W_hbm", "hw.efficiency.hbm");
}

BytesPerSecondOf<Traced> BoundRates::link() const {
  return reached(chip_.link(), hw().efficiency.link_scale_up, ideal_, "W_uni reached", "hw.efficiency.link.scale_up");
}

BytesPerSecondOf<Traced> BoundRates::axis() const {
  if (!rings_) return link();
  return reached(chip_.ici(), hw().efficiency.link_scale_up, ideal_, "W_ici reached", "hw.efficiency.link.scale_up");
}

BytesPerSecondOf<Traced> BoundRates::scale_up() const {
  return reached(chip_.scale_up(), hw().efficiency.link_scale_up, ideal_, "W_gpu reached",
                 "hw.efficiency.link.scale_up");
}

BytesPerSecondOf<Traced> BoundRates::scale_out() const {
  return reached(chip_.scale_out(), hw().efficiency.link_scale_out, ideal_, "W_out reached",
                 "hw.efficiency.link.scale_out");
}

BytesPerSecondOf<Traced> BoundRates::node_egress() const {
  return reached(chip_.node_egress(), hw().efficiency.link_scale_out, ideal_, "W_node reached",
                 "hw.efficiency.link.scale_out");
}

FlopsPerByteOf<Traced> BoundRates::axis_intensity() const {
  return named(compute() / axis(), "alpha_ici", "book ch. 5: C / W_ici");
}

FlopsPerByteOf<Traced> BoundRates::collective_intensity() const {
  if (!has_outer_network()) return tensor_intensity(1);
  const auto slower =
      named(min(scale_up(), node_egress()), "W_collective", "book ch. 12: the slower of node and network");
  return named(compute() / slower, "alpha", "book ch. 12: C / W_collective");
}

FlopsPerByteOf<Traced> BoundRates::tensor_intensity(std::int64_t degree) const {
  if (is_torus()) return axis_intensity();
  if (static_cast<double>(degree) <= node_size() || !has_outer_network()) {
    return named(compute() / scale_up(), "alpha_gpu", "book ch. 12: C / W_gpu");
  }
  return named(compute() / node_egress(), "alpha_node", "book ch. 12: C / W_node");
}

}  // namespace scalecalc
