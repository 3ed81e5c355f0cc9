#include "primitives/permute_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"

namespace scalecalc {
namespace {

Traced way_count(std::int64_t value, std::string_view name) {
  return kReader.input(static_cast<double>(value), name, "the way asked for");
}

class Permute {
 public:
  Permute(const CollectiveNetwork& network, const CollectiveMesh& mesh, const CollectivePlace& place,
          const PermuteRequest& request)
      : network_(network), mesh_(mesh), place_(place), request_(request) {}

  PermuteTime run() {
    if (request_.from) {
      network_.hw->is_torus() ? across_torus(position(*request_.from), position(*request_.to))
                              : between_ranks(rank(*request_.from), rank(*request_.to));
    } else {
      to_neighbour();
    }
    if (request_.ports) set_ports(*request_.ports);
    finish();
    return std::move(out_);
  }

 private:
  const HardwareSpec& hw() const { return *network_.hw; }
  bool moves() const { return !out_.tier.empty(); }

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
    std::int64_t ports = 0;
    for (std::size_t i = 0, a = 0; i < from.size(); ++i) {
      if (!place_.tiers[i].empty()) {
        if (from[i] != to[i])
          throw UserError("--from and --to lie in different slices", "permute over that axis alone");
        continue;
      }
      const CollectiveAxis& axis = place_.slice[a++];
      const std::int64_t apart = std::abs(from[i] - to[i]);
      out_.hops += axis.wraps ? std::min(apart, axis.size - apart) : apart;
      if (apart > 0) ++ports;
    }
    if (ports == 0) return;
    out_.ports = ports;
    over_torus();
  }

  void over_torus() {
    const TierRates<Traced>& rates = network_.rates.tiers.front();
    rate_ = rates.bandwidth;
    out_.latency = rates.latency * way_count(out_.hops, "hops");
    out_.tier = hw().network.front().name;
  }

  /// Behind switches: over the lowest tier that holds both. The chip's port of every tier beyond the innermost lies on
  /// the way; inside the innermost domain its own link does.
  void between_ranks(std::int64_t from, std::int64_t to) {
    if (from == to) return;
    std::size_t top = 0;
    for (; top + 1 < hw().network.size(); ++top) {
      const std::int64_t domain = hw().network[top].switched.chips;
      if (domain == 0 || from / domain == to / domain) break;
    }
    for (std::size_t t = top == 0 ? 0 : 1; t <= top; ++t) over_tier(t);
  }

  void over_tier(std::size_t tier) {
    const TierRates<Traced>& rates = network_.rates.tiers[tier];
    if (!moves() || rates.bandwidth < rate_) {
      rate_ = rates.bandwidth;
      out_.tier = hw().network[tier].name;
    }
    out_.latency = value_of(out_.latency) < value_of(rates.latency) ? rates.latency : out_.latency;
  }

  void to_neighbour() {
    const CollectiveGroup& group = place_.group;
    if (group.size() == 1) return;
    if (mesh_.over.size() != 1) {
      throw UserError("a permute sends to the next member along one axis", "name one with --axes, or --from and --to");
    }
    if (!group.axes.empty()) {
      out_.hops = 1;
      return over_torus();
    }
    for (const CollectiveLevel& level : group.levels) {
      if (level.members > 1) over_tier(level.tier);
    }
  }

  void set_ports(std::int64_t ports) {
    if (!hw().is_torus() || out_.hops == 0) {
      throw UserError("--ports counts torus links, and this way has none", "leave it out");
    }
    out_.ports = ports;
  }

  void finish() {
    if (moves()) {
      BytesPerSecondOf<Traced> rate = rate_;
      if (out_.hops > 0) rate = rate * way_count(out_.ports, "links used at once");
      out_.bandwidth_time = request_.bytes / rate;
    }
    out_.bandwidth_time = named(out_.bandwidth_time, "bandwidth time", "book ch. 2: bytes over the links used at once");
    out_.latency = named(out_.latency, "latency", "book ch. 2: hops, one after the other");
    out_.time =
        named(out_.latency + out_.bandwidth_time, "time", "book ch. 2, question 5: point to point the terms add");
  }

  const CollectiveNetwork& network_;
  const CollectiveMesh& mesh_;
  const CollectivePlace& place_;
  const PermuteRequest& request_;
  BytesPerSecondOf<Traced> rate_;
  PermuteTime out_;
};

}  // namespace

PermuteTime permute_time(const CollectiveNetwork& network, const CollectiveMesh& mesh, const CollectivePlace& place,
                         const PermuteRequest& request) {
  return Permute(network, mesh, place, request).run();
}

}  // namespace scalecalc
