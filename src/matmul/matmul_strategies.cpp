// Computes each strategy of a sharded matmul with its working: collectives, FLOPs, bytes and memory of a chip.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <tuple>

#include "base/scalar.h"
#include "base/text.h"
#include "cost/shape_fraction.h"
#include "matmul/matmul.h"
#include "matmul/matmul_search.h"

namespace scalecalc {
namespace {

constexpr std::string_view kBook = "book ch. 3";

AxisMask cut_mask(const LoopCut& cut) {
  AxisMask out = 0;
  for (const AxisList& list : cut) out |= mask_of(list);
  return out;
}

/// Axes that do something in a plan, and those that the expression says cut an array.
AxisMask cut_axes(const MatmulPlan& plan) {
  AxisMask out = 0;
  for (const ProductPlan& product : plan.products) out |= cut_mask(product.cut);
  return out;
}
AxisMask written_axes(const MatmulProblem& problem) {
  AxisMask out = 0;
  for (const ShardedArray& operand : problem.operands) out |= operand.layout.axes();
  for (const Product& product : problem.products) {
    if (product.written) out |= product.result.layout.axes();
  }
  return out;
}

std::string shape_text(const std::string& name, const std::vector<std::int64_t>& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return name + "[" + join(sizes, ", ") + "]";
}

/// How fast a chip multiplies its parts.
class Multiplier {
 public:
  Multiplier(const MatmulQuestion& question, const MatmulProblem& problem, const MatmulRates& rates,
             const HardwareSpec& hw)
      : calibrated_(question.calibrated), problem_(problem), rates_(rates), hw_(hw) {}

  FlopsOf<Traced> flops_per_chip(std::size_t product, const LoopCut& cut) const {
    return named(product_flops(problem_, product) / problem_.tables.mesh.traced_ways(cut_mask(cut)), "FLOPs per chip",
                 "the product's over the ways its loops are cut");
  }

  SecondsOf<Traced> time(std::size_t product, const LoopCut& cut) const {
    FlopsPerSecondOf<Traced> rate = rates_.compute;
    if (calibrated_) rate = rate * reached(product, cut);
    return flops_per_chip(product, cut) / rate;
  }

 private:
  /// Of the large-shape rate, by what a chip multiplies: rows x contraction x columns.
  Traced reached(std::size_t product, const LoopCut& cut) const {
    const std::vector<Loop>& loops = problem_.products[product].loops;
    const auto size = [&](LoopKind kind, const char* name) {
      double out = 1;
      for (std::size_t i = 0; i < loops.size(); ++i) {
        if (loops[i].kind != kind) continue;
        out *= static_cast<double>(problem_.tables.dims[loops[i].dim].size) /
               static_cast<double>(problem_.tables.mesh.ways(cut[i]));
      }
      return kReader.input(out, name, "a chip's part");
    };
    const Coefficient& half = hw_.efficiency.matmul_half_dim;
    const Traced half_dim = kReader.input(half.value, "efficiency.matmul_half_dim", half.source);
    return shape_fraction(half_dim, size(LoopKind::kLeft, "rows"), size(LoopKind::kRight, "columns"),
                          size(LoopKind::kContracted, "contraction"));
  }

  bool calibrated_;
  const MatmulProblem& problem_;
  const MatmulRates& rates_;
  const HardwareSpec& hw_;
};

class StrategyWriter {
 public:
  StrategyWriter(const MatmulProblem& problem, const MatmulRates& rates, const MeshNetwork& network,
                 const Multiplier& multiplier)
      : problem_(problem), text_(problem), rates_(rates), network_(network), multiplier_(multiplier) {}

  /// `rank` keeps the times of strategies apart in an explanation.
  Strategy write(MatmulPlan plan, std::vector<std::string> steps, std::size_t rank) {
    out_ = Strategy{};
    out_.rank = rank;
    out_.name = join(steps, ", ");
    out_.steps = std::move(steps);
    out_.plan = std::move(plan);
    FlopsOf<Traced> total;
    BytesOf<Traced> read_and_written;
    for (std::size_t p = 0; p < out_.plan.products.size(); ++p) {
      const ProductPlan& product = out_.plan.products[p];
      product_steps(p, product);
      out_.flops_per_chip += multiplier_.flops_per_chip(p, product.cut);
      out_.compute_time += multiplier_.time(p, product.cut);
      total += product_flops(problem_, p);
      read_and_written += touched(p, product);
    }
    for (const CollectiveUse& use : out_.collectives) out_.communication_time += use.time;
    finish(total, read_and_written);
    return std::move(out_);
  }

 private:
  const ShardingTables& tables() const { return problem_.tables; }

  void product_steps(std::size_t p, const ProductPlan& plan) {
    const ShardedArray& left = problem_.left_of(p);
    const ShardedArray& right = problem_.right_of(p);
    const ShardedArray& result = problem_.products[p].result;
    reshard(left, plan.to_left);
    reshard(right, plan.to_right);
    out_.shards.push_back(fmt::format("{} * {}", shape_text(left.name, tables().local_shape(left, plan.left)),
                                      shape_text(right.name, tables().local_shape(right, plan.right))));
    reshard(result, plan.to_result);
    if (p == 0) keep(left, plan.left_given);
    if (plan.left != plan.left_given) keep(left, plan.left);
    keep(right, plan.right_given);
    if (plan.right != plan.right_given) keep(right, plan.right);
    keep(result, plan.produced);
    if (plan.result != plan.produced) keep(result, plan.result);
    out_.output = tables().notation(result, plan.result);
  }

  void keep(const ShardedArray& array, const Sharding& layout) {
    out_.memory += named(tables().local_bytes(array, layout), "bytes of " + tables().notation(array, layout),
                         "book ch. 3: each axis that cuts it divides it");
  }

  BytesOf<Traced> touched(std::size_t p, const ProductPlan& plan) const {
    return tables().local_bytes(problem_.left_of(p), plan.left) +
           tables().local_bytes(problem_.right_of(p), plan.right) +
           tables().local_bytes(problem_.products[p].result, plan.produced);
  }

  void reshard(const ShardedArray& array, const Route& route) {
    for (const ReshardStep& step : route.steps) {
      if (step.kind == StepKind::kSlice) continue;
      out_.collectives.push_back(collective_use(tables(), array, step, text_.step(array, step), network_));
    }
  }

  void finish(const FlopsOf<Traced>& total, const BytesOf<Traced>& read_and_written) {
    const auto numbered = [&](const auto& value, std::string_view name, std::string_view source) {
      return named(value, fmt::format("{} #{}", name, out_.rank), source);
    };
    const Traced chips = kReader.input(static_cast<double>(tables().mesh.chips()), "chips", "--mesh");
    out_.flops_all_chips = numbered(out_.flops_per_chip * chips, "FLOPs of all chips", "copies of a product included");
    out_.redundancy = out_.flops_all_chips / total;
    out_.compute_time = numbered(out_.compute_time, "compute time", "book ch. 1: FLOPs over the rate");
    out_.communication_time =
        numbered(out_.communication_time, "communication time", "the collectives one after the other");
    out_.time = numbered(max(out_.compute_time, out_.communication_time), "time",
                         "book ch. 1 and 3: communication overlaps the matmuls (collective matmul)");
    out_.upper_time = numbered(out_.compute_time + out_.communication_time, "time without overlap", "book ch. 1");
    out_.memory_time =
        numbered(read_and_written / rates_.hbm, "HBM time", "book ch. 1: operands read, result written once");
    out_.memory = numbered(out_.memory, "memory per chip", "parts as given, as multiplied and as left");
    out_.compute_bound = !(out_.compute_time < out_.communication_time);
    out_.fits = !rates_.capacity || !(*rates_.capacity < out_.memory);
    out_.as_written = !out_.plan.detour && (cut_axes(out_.plan) & ~written_axes(problem_)) == 0;
  }

  const MatmulProblem& problem_;
  PlanText text_;
  const MatmulRates& rates_;
  const MeshNetwork& network_;
  const Multiplier& multiplier_;
  Strategy out_;
};

struct Described {
  MatmulPlan plan;
  std::vector<std::string> steps;
};

/// Listed in this order.
std::vector<Strategy> written(const std::vector<Described>& plans, StrategyWriter writer) {
  std::vector<Strategy> out;
  for (const Described& described : plans) {
    out.push_back(writer.write(described.plan, described.steps, out.size() + 1));
  }
  return out;
}

/// Equal to ten digits is equal: rounding must not rank.
double rounded(double value) {
  if (value == 0) return 0;
  const double scale = std::pow(10, 9 - std::floor(std::log10(value)));
  return std::round(value * scale) / scale;
}

/// By time, then communication, then compute, then fewer steps.
bool faster(const Described& a, const Described& b) {
  const auto rank = [](const Described& d) {
    const double time = std::max(d.plan.compute_s, d.plan.communication_s);
    return std::make_tuple(rounded(time), rounded(d.plan.communication_s), rounded(d.plan.compute_s),
                           d.plan.collectives, d.steps.size(), std::cref(d.steps));
  };
  return rank(a) < rank(b);
}

/// The strategies the book discusses: gather one operand, or add up partial sums, or send nothing. Sending what saves
/// no work is none of them.
void mark_textbook(std::vector<Strategy>& strategies) {
  double silent_compute = std::numeric_limits<double>::infinity();
  for (const Strategy& s : strategies) {
    if (s.collectives.empty()) silent_compute = std::min(silent_compute, s.plan.compute_s);
  }
  std::set<std::pair<std::string, std::string>> seen;
  for (Strategy& s : strategies) {
    const bool silent = s.collectives.empty();
    if (s.plan.detour || s.collectives.size() > 1 || (!silent && s.plan.compute_s >= silent_compute)) continue;
    const std::string op(silent ? "" : name_of(s.collectives.front().kind));
    s.textbook = seen.emplace(op, silent ? "" : s.collectives.front().array).second;
  }
}

}  // namespace

CollectiveSeconds seconds_on(const MeshNetwork& network) {
  // One array's collectives come back with the same bytes in many layouts.
  auto known = std::make_shared<std::map<std::tuple<StepKind, AxisMask, double>, double>>();
  return [&network, known](StepKind kind, AxisMask axes, double bytes) {
    if (!network.joins(axes)) return std::numeric_limits<double>::infinity();
    const auto [at, is_new] = known->try_emplace({kind, axes, bytes}, 0.0);
    if (is_new) at->second = value_of(network.time(kind, axes, BytesOf<Traced>(Traced(bytes))).time);
    return at->second;
  };
}

FlopsOf<Traced> product_flops(const MatmulProblem& problem, std::size_t at) {
  const Product& product = problem.products[at];
  // A multiplication and an addition each; without a sum there is no addition (book ch. 4).
  Traced count(product.contracts() ? 2.0 : 1.0);
  for (const Loop& loop : product.loops) {
    const Dimension& dim = problem.tables.dims[loop.dim];
    count = count * kReader.input(static_cast<double>(dim.size), dim.name, "--dims");
  }
  const std::string name = fmt::format("FLOPs of {} * {}", problem.left_of(at).name, problem.right_of(at).name);
  return named(FlopsOf<Traced>(count), name, "book ch. 4: twice the product of all dimensions");
}

std::vector<Strategy> strategies_of(const MatmulQuestion& question, const MatmulProblem& problem,
                                    const MatmulRates& rates, const HardwareSpec& hw, const MeshNetwork& network,
                                    const Stop& stop) {
  const Multiplier multiplier(question, problem, rates, hw);
  const SearchCosts costs{seconds_on(network), [&](std::size_t product, const LoopCut& cut) {
                            return value_of(multiplier.time(product, cut));
                          }};
  const PlanText text(problem);
  std::vector<Described> plans;
  for (MatmulPlan& plan : all_plans(problem, costs, stop)) {
    std::vector<std::string> steps = text.steps(plan);
    plans.push_back({std::move(plan), std::move(steps)});
  }
  std::sort(plans.begin(), plans.end(), faster);
  std::set<std::vector<std::string>> known;
  std::erase_if(plans, [&](const Described& described) { return !known.insert(described.steps).second; });
  const StrategyWriter writer(problem, rates, network, multiplier);
  std::vector<Strategy> out = written(plans, writer);
  const auto fits = [&](const Described& described) {
    return out[static_cast<std::size_t>(&described - plans.data())].fits;
  };
  if (!std::is_partitioned(plans.begin(), plans.end(), fits)) {
    // What a chip cannot hold is no answer while another is.
    std::vector<Described> ordered;
    for (const bool wanted : {true, false}) {
      std::copy_if(plans.begin(), plans.end(), std::back_inserter(ordered),
                   [&](const Described& described) { return fits(described) == wanted; });
    }
    out = written(ordered, writer);
  }
  mark_textbook(out);
  for (Strategy& strategy : out) {
    const SecondsOf<Traced>& best = out.front().communication_time;
    if (value_of(best) > 0) strategy.communication_ratio = strategy.communication_time / best;
  }
  return out;
}

}  // namespace scalecalc
