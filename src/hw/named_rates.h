// A chip's rates as the scaling book names them, each an input of the formula it enters: those of links are
// network/tier_rates.h's. What a hardware file does not give is an error that says so; nothing is assumed.
#pragma once

#include <optional>
#include <string_view>

#include "base/quantity.h"
#include "base/scalar.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

class NamedRates {
 public:
  /// Keeps a reference to `hw`.
  explicit NamedRates(const HardwareSpec& hw) : hw_(hw) {}

  const HardwareSpec& hw() const { return hw_; }

  /// C: dense peak of one chip. UserError naming the published formats if it has none for `dtype`.
  FlopsPerSecondOf<Traced> matmul(DType dtype) const;
  FlopsPerSecondOf<Traced> vector() const;
  /// W_hbm.
  BytesPerSecondOf<Traced> hbm() const;
  BytesOf<Traced> hbm_capacity() const;
  /// Bandwidth of a memory on the chip ("vmem"), also where the file gives it as a multiple of HBM's; nothing if it
  /// does not give one.
  std::optional<BytesPerSecondOf<Traced>> onchip(std::string_view level) const;
  /// W_pcie: one chip's share of the host link, one direction.
  BytesPerSecondOf<Traced> pcie() const;

  bool is_torus() const { return hw_.is_torus(); }
  /// W_uni: one direction of one link of the torus. UserError for a chip without one.
  BytesPerSecondOf<Traced> link() const;
  /// W_ici: both directions of one axis, what a collective on a wrapped axis sees.
  BytesPerSecondOf<Traced> ici() const;
  /// Axes of the torus.
  std::int64_t axes() const;

  /// W_gpu: one chip's egress inside its switch domain. UserError for a torus.
  BytesPerSecondOf<Traced> scale_up() const;
  /// Chips of the innermost switch domain.
  std::int64_t node_size() const;
  /// Egress of one chip into the first network beyond the torus or the node: W_dcn, or W_node over its chips.
  BytesPerSecondOf<Traced> scale_out() const;
  /// W_node: egress of a whole node into the network beyond it, or of `chips` of its chips.
  BytesPerSecondOf<Traced> node_egress(std::int64_t chips = 0) const;

 private:
  const Tier& torus() const;
  const Tier& domain() const;
  const Tier& beyond() const;
  [[noreturn]] void missing(const char* what, const char* hint) const;

  const HardwareSpec& hw_;
};

}  // namespace scalecalc
