#include "primitives/permute_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"
#include "network/point_to_point.h"

namespace scalecalc {
namespace {

class Permute {
 public:
  Permute(const CollectiveNetwork& network, const CollectiveMesh& mesh, const CollectivePlace& place,
          const PermuteRequest& request)
      : network_(network), mesh_(mesh), place_(place), request_(request) {}

  PermuteTime run() {
    if (request_.from) {
      hw().is_torus() ? across_torus(position(*request_.from), position(*request_.to))
                      : take(switched_way(hw(), network_.rates, rank(*request_.from), rank(*request_.to)));
    } else {
      to_neighbour();
    }
    if (request_.ports) set_ports(*request_.ports);
    const TransferTime time = transfer_time(way_, request_.bytes, out_.ports);
    out_.time = time.time;
    out_.bandwidth_time = time.bandwidth_time;
    out_.latency = time.latency;
    out_.hops = way_.hops;
    out_.tier = way_.tier;
    return std::move(out_);
  }

 private:
  const HardwareSpec& hw() const { return *network_.hw; }
  void take(Way way) { way_ = std::move(way); }

  /// One coordinate for each mesh axis, or a rank behind switches.
  MeshPosition position(const MeshPosition& given) const {
    if (given.size() != mesh_.axes.size()) {
      throw UserError(
          fmt::format("a position in {} has {} coordinates, not {}", mesh_.text(), mesh_.axes.size(), given.size()),
          "one number for each axis, from 0, such as 0,3");
    }
    for (std::size_t i = 0; i < given.size(); ++i) {
      const NamedAxis& axis = mesh_.axes[i];
      if (given[i] >= axis.size) {
        throw UserError(fmt::format("{} lies outside axis {}", given[i], axis.name),
                        fmt::format("from 0 to {}", axis.size - 1));
      }
    }
    return given;
  }

  std::int64_t rank(const MeshPosition& given) const {
    if (given.size() == 1 && mesh_.axes.size() != 1) {
      if (given[0] < mesh_.chips()) return given[0];
      throw UserError(fmt::format("rank {} lies outside the {} chips", given[0], group_thousands(mesh_.chips())), "");
    }
    std::int64_t out = 0;
    const MeshPosition at = position(given);
    for (std::size_t i = 0; i < at.size(); ++i) out = out * mesh_.axes[i].size + at[i];
    return out;
  }

  void across_torus(const MeshPosition& from, const MeshPosition& to) {
    std::int64_t hops = 0;
    std::int64_t ports = 0;
    for (std::size_t i = 0, a = 0; i < from.size(); ++i) {
      if (!place_.tiers[i].empty()) {
        if (from[i] != to[i])
          throw UserError("--from and --to lie in different slices", "permute over that axis alone");
        continue;
      }
      const CollectiveAxis& axis = place_.slice[a++];
      const std::int64_t apart = std::abs(from[i] - to[i]);
      hops += axis.wraps ? std::min(apart, axis.size - apart) : apart;
      if (apart > 0) ++ports;
    }
    if (ports == 0) return;
    out_.ports = ports;
    take(torus_way(hw(), network_.rates, hops));
  }

  void to_neighbour() {
    const CollectiveGroup& group = place_.group;
    if (group.size() == 1) return;
    if (mesh_.over.size() != 1) {
      throw UserError("a permute sends to the next member along one axis", "name one with --axes, or --from and --to");
    }
    if (!group.axes.empty()) return take(torus_way(hw(), network_.rates, 1));
    for (const CollectiveLevel& level : group.levels) {
      if (level.members > 1) cross(hw(), network_.rates, level.tier, way_);
    }
  }

  void set_ports(std::int64_t ports) {
    if (way_.hops == 0) {
      throw UserError("--ports counts torus links, and this way has none", "leave it out");
    }
    out_.ports = ports;
  }

  const CollectiveNetwork& network_;
  const CollectiveMesh& mesh_;
  const CollectivePlace& place_;
  const PermuteRequest& request_;
  Way way_;
  PermuteTime out_;
};

}  // namespace

PermuteTime permute_time(const CollectiveNetwork& network, const CollectiveMesh& mesh, const CollectivePlace& place,
                         const PermuteRequest& request) {
  return Permute(network, mesh, place, request).run();
}

}  // namespace scalecalc
