// The chips a question is about: which shapes a vendor builds for a count of chips, and which of their axes wrap.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "spec/hardware_spec.h"

namespace scalecalc {

/// A set of chips with its network: `slices` tori of one shape joined by the tiers beyond, or a count of chips under
/// switches.
struct Slice {
  std::int64_t chips = 0;
  std::int64_t slices = 1;  ///< tori joined over the outer tier; 1 on switched machines
  Shape shape;              ///< torus axes; empty on switched machines
  std::vector<bool> wraps;  ///< per axis
  bool twisted = false;     ///< built as a twisted torus (n x n x 2n, n x 2n x 2n)
  /// Switched machines: the chips used of each innermost domain, of which the slice fills as few as it can, all alike:
  /// 64 of the 72 of a rack. 0 where there are no domains.
  std::int64_t per_domain = 0;

  std::string name() const;  ///< "16x20x28", "2 x 16x16", "1,024 chips"
};

/// Why no slice has the chips asked for, with the counts around it that exist.
struct SliceError {
  std::string message;
  std::string hint;
};

/// All slices of exactly `chips` chips over `slices` tori that the vendor builds; empty if there is none (explain with
/// no_slice). On switched machines one slice for every count that fills whole hosts or is within one.
std::vector<Slice> slices_of(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices);

/// The slice of one given shape ("16x20x28"), or an empty list if the vendor does not build it.
std::vector<Slice> slice_of_shape(const HardwareSpec& hw, const Shape& shape, std::int64_t slices);

/// Whether a torus axis of `size` chips closes to a ring when the slice's other axes are whole units (or whole pod
/// axes); nothing if no slice has an axis of that size.
std::optional<bool> axis_wraps(const TorusTier& torus, std::int64_t size);

/// Which axes of a box on this torus close to rings, in the order given; the vendor need not rent the box.
std::vector<bool> wraparounds(const TorusTier& torus, const Shape& shape);

/// Whether the file gives the pod of its torus, or has none; and UserError if it does not.
bool publishes_pod(const HardwareSpec& hw);
void require_pod(const HardwareSpec& hw);

SliceError no_slice(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices);
/// The same where a question has no --slices: only counts of one slice would do.
SliceError no_single_slice(const HardwareSpec& hw, std::int64_t chips);

/// Largest count <= `chips` that exists as a slice; 0 if none.
std::int64_t nearest_below(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices);
/// Smallest count >= `chips` that exists as a slice; 0 if none.
std::int64_t nearest_above(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices);

/// "16x20x28" to axis sizes; empty if the text is not a shape.
Shape parse_shape(const std::string& text);

}  // namespace scalecalc
