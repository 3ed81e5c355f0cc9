// Builds the slices that a machine offers and names their shapes, for every command that places groups. Sources: slice
// shapes and wraparound of TPU pods from the Cloud TPU system documentation and the scaling book, chapter 2 ("TPU
// networking"); twisted tori from Jouppi et al. 2023, arXiv:2304.01433, section 2.8.
#include "network/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/divisors.h"
#include "base/units.h"

namespace scalecalc {
namespace {

std::int64_t product(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

Shape sorted(Shape shape) {
  std::sort(shape.begin(), shape.end());
  return shape;
}

bool listed(const std::vector<Shape>& shapes, const Shape& shape) {
  return std::any_of(shapes.begin(), shapes.end(), [&](const Shape& s) { return sorted(s) == sorted(shape); });
}

/// Whole units, and no axis longer than the pod allows when both are sorted.
bool whole_units(const TorusTier& torus, const Shape& shape) {
  const Shape have = sorted(shape);
  const Shape pod = sorted(torus.pod);
  for (std::size_t i = 0; i < have.size(); ++i) {
    const std::int64_t unit = torus.unit.empty() ? 1 : torus.unit[i];
    if (have[i] % unit != 0 || have[i] > pod[i]) return false;
  }
  return true;
}

/// A pod of optically switched units may be cabled to any box of units that fits its total; the axes are bounded by
/// the longest axis the vendor lists.
bool fits_pod(const TorusTier& torus, const Shape& shape) {
  if (product(shape) > torus.max_chips) return false;
  if (torus.wraparound != Wraparound::kUnitMultiple) return whole_units(torus, shape);
  const std::int64_t longest = *std::max_element(torus.pod.begin(), torus.pod.end());
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t unit = torus.unit.empty() ? 1 : torus.unit[i];
    if (shape[i] % unit != 0 || shape[i] > longest) return false;
  }
  return true;
}

bool exists(const TorusTier& torus, const Shape& shape) {
  if (shape.size() != torus.pod.size()) return false;
  if (listed(torus.small_slices, shape)) return true;
  if (!torus.shapes.empty()) return listed(torus.shapes, shape);
  return fits_pod(torus, shape);
}

/// Every axis a multiple of the unit's.
bool made_of_units(const TorusTier& torus, const Shape& shape) {
  const Shape unit = sorted(torus.unit);
  const Shape have = sorted(shape);
  for (std::size_t i = 0; i < unit.size() && i < have.size(); ++i) {
    if (have[i] % unit[i] != 0) return false;
  }
  return true;
}

/// Of a box with ascending axes.
std::vector<bool> wraps_of(const TorusTier& torus, const Shape& shape) {
  std::vector<bool> wraps(shape.size(), false);
  const bool units = made_of_units(torus, shape) && !listed(torus.small_slices, shape);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    switch (torus.wraparound) {
      case Wraparound::kUnitMultiple: wraps[i] = units && shape[i] > 1; break;
      case Wraparound::kFullAxis: wraps[i] = shape[i] == sorted(torus.pod)[i] && shape[i] > 1; break;
      case Wraparound::kNone: break;
    }
  }
  return wraps;
}

bool can_twist(const TorusTier& torus, const Shape& shape) {
  if (!torus.twisted || shape.size() != 3 || listed(torus.small_slices, shape)) return false;
  const Shape s = sorted(shape);
  return (s[0] == s[1] && s[2] == 2 * s[0]) || (s[1] == s[2] && s[1] == 2 * s[0]);
}

Slice torus_slice(const TorusTier& torus, Shape shape, std::int64_t slices) {
  shape = sorted(std::move(shape));
  Slice slice{.chips = product(shape) * slices, .slices = slices, .shape = shape, .wraps = wraps_of(torus, shape)};
  slice.twisted = can_twist(torus, shape);
  return slice;
}

/// Every ascending box of `axes` axes with `chips` cells.
void boxes(std::int64_t chips, std::size_t axes, Shape& prefix, std::vector<Shape>& out) {
  if (prefix.size() + 1 == axes) {
    if (prefix.empty() || prefix.back() <= chips) {
      out.push_back(prefix);
      out.back().push_back(chips);
    }
    return;
  }
  for (const std::int64_t d : divisors(chips)) {
    if (!prefix.empty() && d < prefix.back()) continue;
    prefix.push_back(d);
    boxes(chips / d, axes, prefix, out);
    prefix.pop_back();
  }
}

/// Chips that a machine without torus can have at most; 0 = no limit.
std::int64_t most_switched(const HardwareSpec& hw) { return hw.network.empty() ? 1 : hw.network.back().switched.chips; }

bool switched_count_exists(const HardwareSpec& hw, std::int64_t chips) {
  const std::int64_t most = most_switched(hw);
  if (most != 0 && chips > most) return false;
  return chips <= hw.chips_per_host || chips % hw.chips_per_host == 0;
}

/// The largest part of an innermost domain that divides the chips, in whole hosts where a domain has several.
std::int64_t even_part(const HardwareSpec& hw, std::int64_t chips) {
  if (hw.network.empty()) return 0;
  const std::int64_t domain = hw.network.front().switched.chips;
  const std::int64_t host = hw.chips_per_host;
  const std::int64_t grain = chips > host && host <= domain ? host : 1;
  std::int64_t part = 0;
  for (const std::int64_t d : divisors(chips)) {
    if (d <= domain && d % grain == 0) part = std::max(part, d);
  }
  return part;
}

}  // namespace

std::string Slice::name() const {
  if (shape.empty()) return group_thousands(chips) + (chips == 1 ? " chip" : " chips");
  std::string out = slices > 1 ? fmt::format("{} x ", slices) : "";
  for (std::size_t i = 0; i < shape.size(); ++i) out += fmt::format("{}{}", i > 0 ? "x" : "", shape[i]);
  return out + (twisted ? " twisted" : "");
}

std::vector<Slice> slices_of(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices) {
  if (!hw.is_torus()) {
    if (slices != 1 || !switched_count_exists(hw, chips)) return {};
    return {Slice{.chips = chips, .per_domain = even_part(hw, chips)}};
  }
  const TorusTier& torus = hw.network.front().torus;
  if (chips % slices != 0 || (slices > 1 && hw.network.size() < 2)) return {};
  if (chips / slices > torus.max_chips) return {};
  std::vector<Shape> shapes;
  Shape prefix;
  boxes(chips / slices, torus.pod.size(), prefix, shapes);
  std::vector<Slice> out;
  for (Shape& shape : shapes) {
    if (exists(torus, shape)) out.push_back(torus_slice(torus, std::move(shape), slices));
  }
  return out;
}

std::vector<Slice> slice_of_shape(const HardwareSpec& hw, const Shape& shape, std::int64_t slices) {
  if (!hw.is_torus() || (slices > 1 && hw.network.size() < 2)) return {};
  const TorusTier& torus = hw.network.front().torus;
  if (!exists(torus, sorted(shape))) return {};
  return {torus_slice(torus, shape, slices)};
}

std::optional<bool> axis_wraps(const TorusTier& torus, std::int64_t size) {
  const auto has = [size](const Shape& shape) { return std::find(shape.begin(), shape.end(), size) != shape.end(); };
  const auto in_some = [&](const std::vector<Shape>& shapes) { return std::any_of(shapes.begin(), shapes.end(), has); };
  if (torus.pod.empty()) return std::nullopt;
  const std::int64_t longest = *std::max_element(torus.pod.begin(), torus.pod.end());
  const bool of_units = torus.unit.empty() || std::any_of(torus.unit.begin(), torus.unit.end(),
                                                          [&](std::int64_t unit) { return size % unit == 0; });
  const bool listed_size = torus.shapes.empty() ? of_units && size <= longest : in_some(torus.shapes);
  if (!listed_size) return in_some(torus.small_slices) ? std::optional<bool>(false) : std::nullopt;
  switch (torus.wraparound) {
    case Wraparound::kUnitMultiple: return size > 1;
    case Wraparound::kFullAxis: return size > 1 && has(torus.pod);
    case Wraparound::kNone: break;
  }
  return false;
}

std::int64_t nearest_below(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices) {
  if (hw.is_torus()) {
    chips = std::min(chips, hw.network.front().torus.max_chips * slices);
  } else if (const std::int64_t most = most_switched(hw); most != 0) {
    chips = std::min(chips, most);
  }
  for (std::int64_t n = chips; n >= 1; --n) {
    if (!slices_of(hw, n, slices).empty()) return n;
  }
  return 0;
}

std::int64_t nearest_above(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices) {
  const std::int64_t limit = hw.is_torus() ? hw.network.front().torus.max_chips * slices : chips + hw.chips_per_host;
  for (std::int64_t n = chips; n <= limit; ++n) {
    if (!slices_of(hw, n, slices).empty()) return n;
  }
  return 0;
}

std::vector<bool> wraparounds(const TorusTier& torus, const Shape& shape) {
  std::vector<std::size_t> order(shape.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return shape[a] < shape[b]; });
  const std::vector<bool> ascending = wraps_of(torus, sorted(shape));
  std::vector<bool> out(shape.size());
  for (std::size_t i = 0; i < order.size(); ++i) out[order[i]] = ascending[i];
  return out;
}

namespace {

/// "64 or 128": the counts around `chips` that exist, as a flag takes them; empty if there are none.
std::string counts_around(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices) {
  const std::int64_t below = nearest_below(hw, chips, slices);
  const std::int64_t above = nearest_above(hw, chips, slices);
  if (below > 0 && above > 0) return fmt::format("{} or {}", below, above);
  return below + above > 0 ? fmt::format("{}", below + above) : "";
}

/// How to ask for more chips than a pod has: the fewest equal slices that make them, or counts that few make.
std::string joined_hint(const HardwareSpec& hw, std::int64_t chips, std::int64_t pods) {
  const std::string how = fmt::format("join pods over its {} network with --slices", hw.network[1].name);
  for (std::int64_t slices = pods; slices <= 4 * pods; ++slices) {
    if (!slices_of(hw, chips, slices).empty()) return fmt::format("{} {}", how, slices);
  }
  const std::string around = counts_around(hw, chips, pods);
  return around.empty() ? fmt::format("{} {}", how, pods) : fmt::format("{} {} and --chips {}", how, pods, around);
}

/// `joins`: whether the question can ask for several slices.
SliceError no_slice(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices, bool joins) {
  SliceError out;
  if (slices > 1 && (!hw.is_torus() || hw.network.size() < 2)) {
    out.message =
        fmt::format("--slices {} joins torus slices over an outer network, which {} has not", slices, hw.name);
    out.hint = "leave --slices out; --chips alone says how large the machine is";
    return out;
  }
  if (const std::int64_t most = most_switched(hw); !hw.is_torus() && most != 0 && chips > most) {
    out.message = fmt::format("{} chips are more than {} joins: its network ends at {}", group_thousands(chips),
                              hw.name, most == 1 ? "one chip" : fmt::format("{} chips", group_thousands(most)));
  } else if (!hw.is_torus()) {
    out.message =
        fmt::format("{} chips do not fill whole hosts of {} {}", group_thousands(chips), hw.chips_per_host, hw.name);
  } else if (slices == 1 && chips > hw.network.front().torus.max_chips) {
    out.message = fmt::format("{} chips are more than one {} pod of {}", group_thousands(chips), hw.name,
                              group_thousands(hw.network.front().torus.max_chips));
    const std::int64_t pods = (chips + hw.network.front().torus.max_chips - 1) / hw.network.front().torus.max_chips;
    if (joins) {
      if (hw.network.size() > 1) out.hint = joined_hint(hw, chips, pods);
      return out;
    }
  } else {
    out.message = fmt::format("no {} slice has {} chips{}", hw.name, group_thousands(chips),
                              slices > 1 ? fmt::format(" in {} slices", slices) : "");
  }
  const std::string around = counts_around(hw, chips, slices);
  if (!around.empty()) out.hint = "the nearest that exist: --chips " + around;
  return out;
}

}  // namespace

SliceError no_slice(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices) {
  return no_slice(hw, chips, slices, true);
}

SliceError no_single_slice(const HardwareSpec& hw, std::int64_t chips) { return no_slice(hw, chips, 1, false); }

bool publishes_pod(const HardwareSpec& hw) {
  return hw.network.empty() || hw.publishes(fmt::format("network.{}.pod", hw.network.front().name));
}

void require_pod(const HardwareSpec& hw) {
  const std::string tier = hw.network.empty() ? "" : "." + hw.network.front().name;
  require_published(hw, {fmt::format("network{}.pod", tier)});
}

Shape parse_shape(const std::string& text) {
  Shape shape;
  std::size_t start = 0;
  while (start <= text.size()) {
    const std::size_t end = std::min(text.find('x', start), text.size());
    const auto parsed = parse_quantity(std::string_view(text).substr(start, end - start), UnitKind::kCount);
    const double* value = std::get_if<double>(&parsed);
    if (value == nullptr || *value < 1 || *value > 1e6) return {};
    shape.push_back(static_cast<std::int64_t>(*value));
    start = end + 1;
  }
  return shape;
}

}  // namespace scalecalc
