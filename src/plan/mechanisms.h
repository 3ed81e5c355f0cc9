// What a layout uses, counted: each mechanism is a flag its launcher must be given, a thing that can fail and a thing a
// reader must know. Of plans about as fast the one that uses least is the one to run.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cost/layout.h"

namespace scalecalc {

struct Mechanism {
  std::string_view name;                          ///< "tensor", "zero-bubble"
  std::string_view dimension;                     ///< of the layout that says so, by its JSON key
  int weight = 1;                                 ///< what it adds to the complexity
  bool (*used)(const Layout&) = nullptr;          ///< null: of more than one way
  std::int64_t (*ways)(const Layout&) = nullptr;  ///< ranks of its group; null: however many, it is the same
};

/// Dimensions above one, then what else makes a layout special. Tensor ranks' sequence sharding, ZeRO stages and remat
/// of all layers by the usual policies are everyday and count nothing.
std::span<const Mechanism> mechanisms();

std::vector<std::string_view> mechanisms_of(const Layout& layout);

/// Of those used, the ones whose dimension is none of these (by JSON key).
std::vector<std::string_view> mechanisms_beside(const Layout& layout, const std::vector<std::string>& dimensions);

/// Mechanisms as bits, in the order of mechanisms().
using MechanismSet = std::uint32_t;
inline constexpr MechanismSet kAllMechanisms = ~MechanismSet{0};
/// Those of a layout with open parts are among those of every layout it may become.
MechanismSet used_by(const Layout& layout);

/// What measured runs show of them.
struct MeasuredExtent {
  MechanismSet never = 0;                    ///< mechanisms that no run has
  std::array<std::int64_t, 32> most_ways{};  ///< of the largest group that some run has; 0: nothing is said
};
/// A group of more ways than this times the largest measured is as little known as a mechanism that no run has.
inline constexpr std::int64_t kBeyondMeasured = 2;
/// Of the mechanisms used, those that no run has, or none as far. As used_by() of open layouts.
MechanismSet unmeasured_in(const Layout& layout, const MeasuredExtent& measured);

/// The sum of the weights, and one more for each that is unmeasured. It does not fall when the open parts of a layout
/// (data ranks, pipeline, sharding, remat, offload) are filled in, so that of a family is a lower bound.
int complexity(const Layout& layout, const MeasuredExtent& measured = {});

}  // namespace scalecalc
