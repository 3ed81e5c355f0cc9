// Draws where the ranks of a layout are placed on a torus or on the nodes of a switched machine.
#include "report/layout_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "base/scalar.h"
#include "base/units.h"

namespace scalecalc {
namespace {

constexpr std::array<const char*, kMeshDims> kDimNames{"tp", "cp", "fsdp", "dp", "pp"};
constexpr std::int64_t kMostCells = 1024;

/// A dimension that divides the machine.
struct Mapped {
  std::size_t dim = 0;
  std::int64_t stride = 1;  ///< of its ranks over chips under switches, over slices on tori
};

std::int64_t covered(const Placement& placement) {
  std::int64_t out = 1;
  for (const Group& group : placement.dims) out *= group.size();
  return out;
}

/// On a torus: the members along each axis, the first axis inmost, and beyond them over the slices.
double torus_rank(const Group& group, const std::array<std::int64_t, kMaxAxes>& at, std::int64_t slice,
                  std::int64_t slice_stride) {
  std::int64_t rank = 0, radix = 1;
  for (std::size_t a = 0; a < kMaxAxes; ++a) {
    rank += at[a] / group.axes[a].stride % group.axes[a].size * radix;
    radix *= group.axes[a].size;
  }
  return to_double(rank + slice / slice_stride % group.tiers[1] * radix);
}

std::vector<Mapped> torus_dimensions(const Placement& placement) {
  std::vector<Mapped> out;
  std::int64_t stride = 1;
  for (std::size_t d = 0; d < kMeshDims; ++d) {
    if (placement.dims[d].size() > 1) out.push_back({d, stride});
    stride *= placement.dims[d].tiers[1];
  }
  return out;
}

void map_torus(const Slice& slice, const Placement& placement, Plot& out) {
  std::array<std::int64_t, kMaxAxes> shape{1, 1, 1};
  std::copy(slice.shape.begin(), slice.shape.end(), shape.begin());
  const std::vector<Mapped> dims = torus_dimensions(placement);
  for (const Mapped& m : dims) out.map_dimensions.emplace_back(kDimNames.at(m.dim));
  out.x.title = "x";
  out.y.title = "y";
  const std::int64_t plane = shape[0] * shape[1];
  const std::int64_t most = std::max<std::int64_t>(1, kMostCells / plane), all = shape[2] * slice.slices;
  for (std::int64_t p = 0; p < std::min(most, all); ++p) {
    const std::int64_t z = p % shape[2], s = p / shape[2];
    std::string panel = shape[2] > 1 ? fmt::format("z = {}", z) : "";
    if (slice.slices > 1) panel = fmt::format("slice {}{}{}", s, panel.empty() ? "" : ", ", panel);
    for (std::int64_t i = 0; i < plane; ++i) {
      const std::array<std::int64_t, kMaxAxes> at{i % shape[0], i / shape[0], z};
      PlotCell cell{.x = to_double(at[0]), .y = to_double(at[1]), .panel = panel};
      for (const Mapped& m : dims) cell.ranks.push_back(torus_rank(placement.dims[m.dim], at, s, m.stride));
      out.cells.push_back(std::move(cell));
    }
  }
}

/// Under switches dimensions nest over the chips in the placement's order, the first inmost.
std::vector<Mapped> nested_dimensions(const Placement& placement) {
  std::vector<Mapped> out;
  std::int64_t stride = 1;
  std::string_view order = placement.order;
  while (!order.empty()) {
    const std::string_view name = order.substr(0, order.find('-'));
    order.remove_prefix(std::min(name.size() + 1, order.size()));
    const auto* const at = std::find(kDimNames.begin(), kDimNames.end(), name);
    if (at == kDimNames.end()) return {};
    const auto dim = static_cast<std::size_t>(at - kDimNames.begin());
    if (placement.dims[dim].size() > 1) out.push_back({dim, stride});
    stride *= placement.dims[dim].size();
  }
  return out;
}

void map_nodes(const HardwareSpec& hw, const Slice& slice, const Placement& placement, Plot& out) {
  const std::vector<Mapped> dims = nested_dimensions(placement);
  if (dims.empty()) return;
  for (const Mapped& m : dims) out.map_dimensions.emplace_back(kDimNames.at(m.dim));
  std::int64_t node = slice.per_domain;
  if (node == 0 && !hw.network.empty()) node = hw.network.front().switched.chips;
  constexpr std::int64_t kMostColumns = 72;
  if (node <= 0 || node > kMostColumns) node = hw.chips_per_host;
  node = std::clamp<std::int64_t>(node, 1, slice.chips);
  out.x.title = "chip of the " + (hw.network.empty() ? std::string("host") : hw.network.front().name);
  out.y.title = hw.network.empty() ? "host" : hw.network.front().name;
  const std::int64_t chips = std::min(slice.chips, std::max(node, kMostCells / node * node));
  constexpr std::int64_t kPanelNodes = 16;  // of more a map would be a tower
  const std::int64_t nodes = (chips + node - 1) / node;
  for (std::int64_t c = 0; c < chips; ++c) {
    PlotCell cell{.x = to_double(c % node), .y = to_double(c / node)};
    if (nodes > kPanelNodes) {
      const std::int64_t first = c / node / kPanelNodes * kPanelNodes;
      cell.panel = fmt::format("{} to {}", first, std::min(first + kPanelNodes, nodes) - 1);
    }
    for (const Mapped& m : dims) cell.ranks.push_back(to_double(c / m.stride % placement.dims[m.dim].size()));
    out.cells.push_back(std::move(cell));
  }
}

/// The ranks of experts, which fold over those of other dimensions (cost/mesh.h).
void add_expert_ranks(const Placement& placement, std::int64_t ep, std::int64_t etp, Plot& out) {
  constexpr std::array<MeshDim, 4> kNest{MeshDim::kTp, MeshDim::kCp, MeshDim::kFsdp, MeshDim::kDp};
  for (PlotCell& cell : out.cells) {
    std::int64_t rank = 0, radix = 1;
    for (const MeshDim dim : kNest) {
      const char* name = kDimNames.at(static_cast<std::size_t>(dim));
      const auto at = std::find(out.map_dimensions.begin(), out.map_dimensions.end(), name);
      if ((dim == MeshDim::kTp && etp > 1) || at == out.map_dimensions.end()) continue;
      rank += radix * static_cast<std::int64_t>(cell.ranks[static_cast<std::size_t>(at - out.map_dimensions.begin())]);
      radix *= placement.of(dim).size();
    }
    cell.ranks.push_back(to_double(rank % ep));
  }
  out.map_dimensions.emplace_back("ep");
}

}  // namespace

Plot layout_map(const HardwareSpec& hw, const Slice& slice, const Placement& placement, std::int64_t ep,
                std::int64_t etp) {
  Plot out;
  if (slice.chips < 2 || covered(placement) != slice.chips) return out;
  if (slice.shape.empty()) {
    map_nodes(hw, slice, placement, out);
  } else if (slice.shape.size() <= kMaxAxes) {
    map_torus(slice, placement, out);
  }
  if (ep > 1 && !out.cells.empty()) add_expert_ranks(placement, ep, etp, out);
  const auto shown = static_cast<std::int64_t>(out.cells.size());
  out.title = shown == slice.chips ? fmt::format("Where the ranks lie: {}", slice.name())
                                   : fmt::format("Where the ranks lie: the first {} of {} chips of {}",
                                                 group_thousands(shown), group_thousands(slice.chips), slice.name());
  return out;
}

}  // namespace scalecalc
