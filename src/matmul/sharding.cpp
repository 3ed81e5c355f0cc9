// Reads and writes shardings of arrays and finds the collectives that lead from one to another.
#include "matmul/sharding.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/scalar.h"

namespace scalecalc {
namespace {

std::string subscript(const Mesh& mesh, const AxisList& axes) {
  const std::string names = mesh.text(axes);
  return names.find(',') == std::string::npos ? names : "{" + names + "}";
}

}  // namespace

AxisMask mask_of(const AxisList& axes) {
  AxisMask out = 0;
  for (const std::uint8_t axis : axes) out |= AxisMask{1} << axis;
  return out;
}

std::int64_t Mesh::chips() const {
  std::int64_t out = 1;
  for (const MeshAxis& axis : axes) out *= axis.size;
  return out;
}

std::int64_t Mesh::ways(const AxisList& list) const {
  std::int64_t out = 1;
  for (const std::uint8_t axis : list) out *= axes[axis].size;
  return out;
}

AxisList Mesh::list(AxisMask mask) const {
  AxisList out;
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if ((mask >> a & 1U) != 0) out.push_back(static_cast<std::uint8_t>(a));
  }
  return out;
}

std::string Mesh::text(const AxisList& list) const {
  const bool letters =
      std::all_of(list.begin(), list.end(), [&](std::uint8_t axis) { return axes[axis].name.size() == 1; });
  std::string out;
  for (const std::uint8_t axis : list) out += (out.empty() || letters ? "" : ",") + axes[axis].name;
  return out;
}

std::string Mesh::shape_text() const {
  std::string out;
  for (const MeshAxis& axis : axes) out += fmt::format("{}{}", out.empty() ? "" : "x", axis.size);
  return out;
}

Traced Mesh::traced_ways(AxisMask mask) const {
  Traced out(1.0);
  for (const std::uint8_t axis : list(mask)) {
    out = out * kReader.input(static_cast<double>(axes[axis].size), axes[axis].name, "--mesh");
  }
  return out;
}

AxisMask Sharding::axes() const {
  AxisMask out = partial;
  for (const AxisList& list : cut) out |= mask_of(list);
  return out;
}

std::string ShardingTables::notation(const ShardedArray& array) const { return notation(array, array.layout); }

std::string ShardingTables::notation(const ShardedArray& array, const Sharding& layout) const {
  std::string out = array.name + "[";
  for (std::size_t d = 0; d < array.dims.size(); ++d) {
    out += (d > 0 ? ", " : "") + dims[array.dims[d]].name;
    if (!layout.cut[d].empty()) out += "_" + subscript(mesh, layout.cut[d]);
  }
  out += "]";
  if (layout.partial != 0) out += "{U_" + subscript(mesh, mesh.list(layout.partial)) + "}";
  return out;
}

std::vector<std::int64_t> ShardingTables::local_shape(const ShardedArray& array, const Sharding& layout) const {
  std::vector<std::int64_t> out;
  for (std::size_t d = 0; d < array.dims.size(); ++d) {
    out.push_back(dims[array.dims[d]].size / mesh.ways(layout.cut[d]));
  }
  return out;
}

bool ShardingTables::divides(const std::vector<std::size_t>& array_dims, const Sharding& layout) const {
  for (std::size_t d = 0; d < array_dims.size(); ++d) {
    if (dims[array_dims[d]].size % mesh.ways(layout.cut[d]) != 0) return false;
  }
  return true;
}

BytesOf<Traced> ShardingTables::bytes(const ShardedArray& array) const {
  Traced elements(1.0);
  for (const std::size_t d : array.dims) {
    elements = elements * kReader.input(static_cast<double>(dims[d].size), dims[d].name, "--dims");
  }
  const auto element = read(kReader, Bytes(bytes_per_element(array.dtype)),
                            std::string(name_of(array.dtype)) + " bytes", "bytes of one element");
  return element * elements;
}

BytesOf<Traced> ShardingTables::local_bytes(const ShardedArray& array, const Sharding& layout) const {
  AxisMask cutting = 0;
  for (const AxisList& list : layout.cut) cutting |= mask_of(list);
  return bytes(array) / mesh.traced_ways(cutting);
}

namespace {

/// Two times nearer than this are one; the rounding of sums must not decide.
constexpr double kSameSeconds = 1e-9;
/// Longer sequences never paid in any case tried; each layer costs a pass over the graph.
constexpr std::size_t kMostSteps = 6;

void assign(AxisMask available, std::size_t target, std::vector<AxisList>& lists,
            const std::function<void(const std::vector<AxisList>&)>& use) {
  if (target == lists.size()) {
    use(lists);
    return;
  }
  assign(available, target + 1, lists, use);
  for (std::uint8_t axis = 0; available >> axis != 0; ++axis) {
    if ((available >> axis & 1U) == 0) continue;
    lists[target].push_back(axis);
    assign(available & ~(AxisMask{1} << axis), target, lists, use);
    lists[target].pop_back();
  }
}

AxisMask mask_of_all(const std::vector<AxisList>& lists) {
  AxisMask out = 0;
  for (const AxisList& list : lists) out |= mask_of(list);
  return out;
}

Sharding appended(Sharding layout, const std::vector<AxisList>& lists) {
  for (std::size_t d = 0; d < lists.size(); ++d) {
    layout.cut[d].insert(layout.cut[d].end(), lists[d].begin(), lists[d].end());
  }
  return layout;
}

/// Where an axis lies: a dimension, behind them the partial sums, behind those nowhere.
std::size_t place_of(const Sharding& layout, std::uint8_t axis) {
  for (std::size_t d = 0; d < layout.cut.size(); ++d) {
    if ((mask_of(layout.cut[d]) >> axis & 1U) != 0) return d;
  }
  return layout.cut.size() + ((layout.partial >> axis & 1U) != 0 ? 0 : 1);
}

}  // namespace

std::string_view name_of(StepKind kind) {
  switch (kind) {
    case StepKind::kSlice: return "slice";
    case StepKind::kAllGather: return "all-gather";
    case StepKind::kReduceScatter: return "reduce-scatter";
    case StepKind::kAllReduce: return "all-reduce";
    case StepKind::kAllToAll: return "all-to-all";
  }
  internal_error("a kind of step without a name");
}

void assign_axes(AxisMask available, std::size_t targets,
                 const std::function<void(const std::vector<AxisList>&)>& use) {
  std::vector<AxisList> lists(targets);
  assign(available, 0, lists, use);
}

AxisMask unmoved(const Sharding& a, const Sharding& b, std::size_t mesh_axes) {
  AxisMask out = 0;
  for (std::size_t i = 0; i < mesh_axes; ++i) {
    const auto axis = static_cast<std::uint8_t>(i);
    if (place_of(a, axis) == place_of(b, axis)) out |= AxisMask{1} << axis;
  }
  return out;
}

ShardingGraph::ShardingGraph(const ShardingTables& tables, const ShardedArray& array, AxisMask summed,
                             const CollectiveSeconds& seconds)
    : tables_(tables), array_(array), seconds_(seconds) {
  const AxisMask all = (AxisMask{1} << tables.mesh.axes.size()) - 1;
  assign_axes(all, array.dims.size(), [&](const std::vector<AxisList>& lists) {
    Sharding layout{lists, 0};
    if (!tables_.divides(array_.dims, layout)) return;
    const AxisMask rest = all & ~mask_of_all(lists) & summed;
    for (AxisMask partial = rest;; partial = (partial - 1) & rest) {
      layout.partial = partial;
      index_.emplace(layout, nodes_.size());
      nodes_.push_back(layout);
      if (partial == 0) break;
    }
  });
  local_bytes_.reserve(nodes_.size());
  for (const Sharding& layout : nodes_) {
    double elements = 1;
    for (const std::int64_t size : tables_.local_shape(array_, layout)) elements *= static_cast<double>(size);
    local_bytes_.push_back(elements * bytes_per_element(array_.dtype));
  }
  edges_.resize(nodes_.size());
  for (std::size_t node = 0; node < nodes_.size(); ++node) add_edges(node);
}

void ShardingGraph::add_edge(std::size_t node, StepKind kind, AxisMask axes, const Sharding& to) {
  const auto at = index_.find(to);
  if (at == index_.end() || axes == 0) return;
  const double ways = static_cast<double>(tables_.mesh.ways(tables_.mesh.list(axes)));
  const double bytes = volume(kind, local_bytes_[node], local_bytes_[at->second], ways);
  const double seconds = kind == StepKind::kSlice ? 0 : seconds_(kind, axes, bytes);
  if (!std::isfinite(seconds)) return;
  edges_[node].push_back({at->second, kind, axes, seconds});
}

void ShardingGraph::add_edges(std::size_t node) {
  const Sharding& layout = nodes_[node];
  const AxisMask all = (AxisMask{1} << tables_.mesh.axes.size()) - 1;
  assign_axes(all & ~layout.axes(), layout.cut.size(), [&](const std::vector<AxisList>& lists) {
    add_edge(node, StepKind::kSlice, mask_of_all(lists), appended(layout, lists));
  });
  Sharding gathered = layout;
  add_gathers(node, 0, gathered, 0);
  for (AxisMask reduced = layout.partial; reduced != 0; reduced = (reduced - 1) & layout.partial) {
    Sharding to = layout;
    to.partial &= ~reduced;
    add_edge(node, StepKind::kAllReduce, reduced, to);
  }
  assign_axes(layout.partial, layout.cut.size(), [&](const std::vector<AxisList>& lists) {
    Sharding to = appended(layout, lists);
    to.partial &= ~mask_of_all(lists);
    add_edge(node, StepKind::kReduceScatter, mask_of_all(lists), to);
  });
  add_all_to_alls(node);
}

/// Drops the last axes of each dimension, in all combinations.
void ShardingGraph::add_gathers(std::size_t node, std::size_t dim, Sharding& layout, AxisMask gathered) {
  if (dim == layout.cut.size()) {
    add_edge(node, StepKind::kAllGather, gathered, layout);
    return;
  }
  const AxisList whole = layout.cut[dim];
  add_gathers(node, dim + 1, layout, gathered);
  while (!layout.cut[dim].empty()) {
    gathered |= AxisMask{1} << layout.cut[dim].back();
    layout.cut[dim].pop_back();
    add_gathers(node, dim + 1, layout, gathered);
  }
  layout.cut[dim] = whole;
}

/// Moves the last axes of one dimension behind those of another.
void ShardingGraph::add_all_to_alls(std::size_t node) {
  const Sharding& layout = nodes_[node];
  for (std::size_t from = 0; from < layout.cut.size(); ++from) {
    for (std::size_t kept = 0; kept < layout.cut[from].size(); ++kept) {
      const auto split = layout.cut[from].begin() + static_cast<std::ptrdiff_t>(kept);
      const AxisList moved(split, layout.cut[from].end());
      for (std::size_t into = 0; into < layout.cut.size(); ++into) {
        if (into == from) continue;
        Sharding to = layout;
        to.cut[from].resize(kept);
        to.cut[into].insert(to.cut[into].end(), moved.begin(), moved.end());
        add_edge(node, StepKind::kAllToAll, mask_of(moved), to);
      }
    }
  }
}

/// Best sequences of one step, two steps ... (Bellman-Ford by layers): a longer one replaces a shorter one only where
/// it is faster.
const ShardingGraph::Tree& ShardingGraph::tree_from(std::size_t source, AxisMask frozen) {
  const auto [at, is_new] = known_.try_emplace({source, frozen});
  Tree& tree = at->second;
  if (!is_new) return tree;
  tree.best.assign(nodes_.size(), kUnreached);
  tree.best[source] = 0;
  tree.labels.push_back({0, source, 0, nullptr});
  for (std::size_t begin = 0, length = 0; begin < tree.labels.size() && length < kMostSteps; ++length) {
    const std::size_t end = tree.labels.size();
    // Within a layer a node's label is improved in place; labels of earlier layers stay for those who came from them.
    for (std::size_t label = begin; label < end; ++label) {
      if (tree.best[tree.labels[label].node] != label) continue;
      for (const Edge& edge : edges_[tree.labels[label].node]) {
        if ((edge.axes & frozen) != 0) continue;
        const double seconds = tree.labels[label].seconds + edge.seconds;
        const std::size_t known = tree.best[edge.to];
        if (known != kUnreached && seconds >= tree.labels[known].seconds * (1 - kSameSeconds)) continue;
        const Label better{seconds, edge.to, label, &edge};
        if (known != kUnreached && known >= end) {
          tree.labels[known] = better;
        } else {
          tree.best[edge.to] = tree.labels.size();
          tree.labels.push_back(better);
        }
      }
    }
    begin = end;
  }
  return tree;
}

std::optional<Route> ShardingGraph::route(const Sharding& from, const Sharding& to, AxisMask frozen) {
  const auto source = index_.find(from);
  const auto target = index_.find(to);
  check(source != index_.end(), "a sharding that the graph does not hold");
  if (target == index_.end()) return std::nullopt;
  const Tree& tree = tree_from(source->second, frozen);
  std::size_t at = tree.best[target->second];
  if (at == kUnreached) return std::nullopt;
  Route out{tree.labels[at].seconds, {}};
  for (; tree.labels[at].edge != nullptr; at = tree.labels[at].before) {
    const Label& label = tree.labels[at];
    out.steps.push_back(
        {label.edge->kind, label.edge->axes, nodes_[tree.labels[label.before].node], nodes_[label.node]});
  }
  std::reverse(out.steps.begin(), out.steps.end());
  return out;
}

}  // namespace scalecalc
