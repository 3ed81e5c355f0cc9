// Moves one array from one layout to another (scaling book, chapter 3): the collectives of the fastest way, and of the
// one that leaves alone what need not move.
#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/text.h"
#include "matmul/matmul.h"

namespace scalecalc {
namespace {

class RouteWriter {
 public:
  RouteWriter(const MatmulProblem& problem, const MeshNetwork& network)
      : problem_(problem), array_(problem.operands.front()), network_(network), text_(problem) {}

  Redistribution write(const Route& route, bool detour) const {
    Redistribution out;
    out.detour = detour;
    const ShardingTables& tables = problem_.tables;
    out.memory = held(array_.layout);
    out.time = SecondsOf<Traced>(Traced(0.0));
    for (const ReshardStep& step : route.steps) {
      out.steps.push_back(text_.step(array_, step));
      if (step.to != array_.layout) out.memory += held(step.to);
      if (step.kind == StepKind::kSlice) continue;
      out.collectives.push_back(collective_use(tables, array_, step, text_.step(array_, step), network_));
      out.time += out.collectives.back().time;
    }
    out.time = named(out.time, "time of the redistribution", "the collectives one after the other");
    out.name = out.steps.empty() ? "nothing moves" : join(out.steps, ", ");
    return out;
  }

 private:
  BytesOf<Traced> held(const Sharding& layout) const {
    return named(problem_.tables.local_bytes(array_, layout), "bytes of " + problem_.tables.notation(array_, layout),
                 "book ch. 3: each axis that cuts it divides it");
  }

  const MatmulProblem& problem_;
  const ShardedArray& array_;
  const MeshNetwork& network_;
  PlanText text_;
};

}  // namespace

CollectiveUse collective_use(const ShardingTables& tables, const ShardedArray& array, const ReshardStep& step,
                             const std::string& name, const MeshNetwork& network) {
  CollectiveUse use{.kind = step.kind, .array = array.name, .mask = step.axes, .dims = array.dims};
  use.sized = step.kind == StepKind::kAllGather ? step.to : step.from;
  use.axes = tables.mesh.text(tables.mesh.list(step.axes));
  use.bytes = named(volume(step.kind, tables.local_bytes(array, step.from), tables.local_bytes(array, step.to),
                           tables.mesh.traced_ways(step.axes)),
                    "V of " + name, "book ch. 3: bytes of the array that one group handles");
  use.received = network.received(step.kind, step.axes, use.bytes);
  const CollectiveTime time = network.time(step.kind, step.axes, use.bytes);
  use.time = named(time.time, "time of " + name, "book ch. 3");
  use.latency_bound = time.latency_bound;
  use.algorithm = time.algorithm;
  return use;
}

std::vector<Redistribution> redistributions(const MatmulProblem& problem, const MeshNetwork& network) {
  const ShardedArray& array = problem.operands.front();
  const CollectiveSeconds seconds = seconds_on(network);
  ShardingGraph graph(problem.tables, array, array.layout.partial, seconds);
  const AxisMask still = unmoved(array.layout, *problem.target, problem.tables.mesh.axes.size());
  const std::optional<Route> fastest = graph.route(array.layout, *problem.target);
  if (!fastest) {
    throw UserError(
        fmt::format("no sequence of collectives leads to {}", problem.tables.notation(array, *problem.target)),
        "partial sums cannot be made, and with --ring only collectives over all axes are considered");
  }
  const RouteWriter writer(problem, network);
  AxisMask moved = 0;
  for (const ReshardStep& step : fastest->steps) moved |= step.axes;
  const bool detour = (moved & still) != 0;
  std::vector<Redistribution> out{writer.write(*fastest, detour)};
  const std::optional<Route> plain =
      detour ? graph.route(array.layout, *problem.target, still) : std::optional<Route>();
  if (plain) out.push_back(writer.write(*plain, false));
  return out;
}

}  // namespace scalecalc
