// Answers `scalecalc matmul`: the case, the strategies with their times, and where one overtakes another.
#include "matmul/matmul.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "hw/named_rates.h"

namespace scalecalc {
namespace {

// Which of the book's four cases a product is (chapter 3, "Computation With Sharded Arrays"), axis by axis.

class Cases {
 public:
  Cases(const MatmulProblem& problem, std::size_t product)
      : problem_(problem),
        product_(problem.products[product]),
        left_(problem.left_of(product)),
        right_(problem.right_of(product)) {}

  std::vector<AxisCase> axes() const {
    std::vector<AxisCase> out;
    for (std::size_t axis = 0; axis < mesh().axes.size(); ++axis) {
      if (mesh().axes[axis].size > 1) out.push_back(of_axis(static_cast<std::uint8_t>(axis)));
    }
    return out;
  }

 private:
  /// The dimension of an array that an axis cuts.
  struct Cut {
    bool cuts = false;
    std::string dim;
    LoopKind kind = LoopKind::kLeft;
    AxisList all;  ///< all axes that cut this dimension
    bool contracted() const { return cuts && kind == LoopKind::kContracted; }
  };

  const Mesh& mesh() const { return problem_.tables.mesh; }

  Cut cut(const ShardedArray& array, std::uint8_t axis) const {
    for (std::size_t d = 0; d < array.dims.size(); ++d) {
      if ((mask_of(array.layout.cut[d]) >> axis & 1U) == 0) continue;
      const auto loop = std::find_if(product_.loops.begin(), product_.loops.end(),
                                     [&](const Loop& l) { return l.dim == array.dims[d]; });
      return {true, problem_.tables.dims[array.dims[d]].name, loop->kind, array.layout.cut[d]};
    }
    return {};
  }

  AxisCase of_axis(std::uint8_t axis) const {
    const Cut a = cut(left_, axis);
    const Cut b = cut(right_, axis);
    const std::string& x = mesh().axes[axis].name;
    AxisCase out{x, 1, ""};
    if (!a.cuts && !b.cuts) {
      out.reason = "cuts neither operand: its chips hold copies, and may take parts of the work";
    } else if (a.cuts && b.cuts) {
      both(a, b, out);
    } else {
      one(a.cuts ? a : b, a.cuts ? left_ : right_, a.cuts ? right_ : left_, out);
    }
    for (const ShardedArray* array : {&left_, &right_}) {
      if ((array->layout.partial >> axis & 1U) != 0) {
        out.reason = fmt::format("{} holds partial sums over it, which are added before the product", array->name);
      }
    }
    return out;
  }

  void one(const Cut& cut, const ShardedArray& owner, const ShardedArray& other, AxisCase& out) const {
    if (cut.contracted()) {
      out.number = 2;
      out.reason = fmt::format("cuts the contracted {} of {} only: gather {}, or slice {} and add up partial sums",
                               cut.dim, owner.name, owner.name, other.name);
      return;
    }
    out.reason = cut.kind == LoopKind::kBatch ? fmt::format("cuts the batch dimension {} of {}; {} is sliced alike",
                                                            cut.dim, owner.name, other.name)
                                              : fmt::format("cuts {} of {}, and so of the result", cut.dim, owner.name);
  }

  void both(const Cut& a, const Cut& b, AxisCase& out) const {
    if (a.dim == b.dim) {
      out.number = a.contracted() ? 3 : 1;
      out.reason =
          a.contracted()
              ? fmt::format("cuts the contracted {} of both: multiply the parts, then add up partial sums", a.dim)
              : fmt::format("cuts the batch dimension {} of both", a.dim);
      if (a.all != b.all) {
        out.reason += fmt::format("; but {} is cut over {} in {} and over {} in {}: one of them must change", a.dim,
                                  mesh().text(a.all), left_.name, mesh().text(b.all), right_.name);
      }
      return;
    }
    if (a.contracted() || b.contracted()) {
      const bool left = a.contracted();
      out.number = 2;
      out.reason = fmt::format(
          "cuts the contracted {} of {}, but {} of {}: one chip would hold parts that do not meet; "
          "gather {} over it, or exchange",
          left ? a.dim : b.dim, (left ? left_ : right_).name, left ? b.dim : a.dim, (left ? right_ : left_).name,
          (left ? left_ : right_).name);
      return;
    }
    out.number = 4;
    out.reason =
        fmt::format("cuts {} of {} and {} of {}, which the result cannot both keep: gather one operand over it", a.dim,
                    left_.name, b.dim, right_.name);
  }

  const MatmulProblem& problem_;
  const Product& product_;
  const ShardedArray& left_;
  const ShardedArray& right_;
};

/// The case that needs most: a conflict before partial sums before a gather.
AxisCase worst(const std::vector<AxisCase>& axes) {
  AxisCase out{"", 1, "no axis cuts a contracted dimension: multiply, nothing is sent"};
  for (const AxisCase& axis : axes) {
    if (axis.number > out.number) out = axis;
  }
  return out;
}

}  // namespace

ProductCase case_of(const MatmulProblem& problem, std::size_t at) {
  const Product& product = problem.products[at];
  const ShardingTables& tables = problem.tables;
  ProductCase out;
  out.notation = fmt::format("{} * {}", tables.notation(problem.left_of(at)), tables.notation(problem.right_of(at)));
  std::vector<std::string> results;
  for (const Sharding& asked : product.asked) results.push_back(tables.notation(product.result, asked));
  if (results.empty()) results.push_back(tables.notation(product.result));
  out.notation += " -> " + join(results, " or ");
  out.axes = Cases(problem, at).axes();
  out.whole = worst(out.axes);
  for (const std::size_t dim : product.dims_of(LoopKind::kContracted)) out.contracted.push_back(tables.dims[dim].name);
  out.flops = product_flops(problem, at);
  return out;
}

namespace {

// Where a strategy turns from communication- to compute-bound, and where another overtakes it (book, chapter 3,
// question 4). Times are proportional to the sizes in them, so each threshold is a size times a ratio of two times.

class Thresholds {
 public:
  Thresholds(const MeshNetwork& network, MatmulAnswer& found)
      : network_(network), found_(found), product_(found.problem.products.front()) {
    for (const Strategy& strategy : found.strategies) {
      if (strategy.textbook && strategy.collectives.size() == 1) compared_.push_back(&strategy);
    }
  }

  void comparisons() {
    for (std::size_t i = 0; i < compared_.size(); ++i) {
      for (std::size_t j = i + 1; j < compared_.size(); ++j) {
        // The slower first, so that ratios tell how many times more it takes.
        const Strategy& a = *compared_[j];
        const Strategy& b = *compared_[i];
        found_.comparisons.push_back({.name = fmt::format("{} against {}", a.name, b.name),
                                      .first = a.name,
                                      .second = b.name,
                                      .communication_ratio = a.communication_time / b.communication_time,
                                      .time_ratio = a.time / b.time,
                                      .second_is_faster = b.time < a.time});
      }
    }
  }

  void thresholds() {
    std::erase_if(compared_, [](const Strategy* s) { return s->collectives.front().latency_bound; });
    for (const Strategy* strategy : compared_) {
      own_dimensions(*strategy);
      own_axes(*strategy);
    }
    for (const Strategy* a : compared_) {
      for (const Strategy* b : compared_) {
        if (a != b) pair(*a, *b);
      }
    }
  }

 private:
  static const CollectiveUse& use_of(const Strategy& strategy) { return strategy.collectives.front(); }

  static bool sends(const Strategy& strategy, std::size_t dim) {
    const std::vector<std::size_t>& dims = use_of(strategy).dims;
    return std::find(dims.begin(), dims.end(), dim) != dims.end();
  }

  Traced size_of(const Dimension& dim) const {
    return kReader.input(static_cast<double>(dim.size), dim.name, "--dims");
  }

  void add(std::string name, std::string dimension, const Traced& value, std::string condition, bool holds) {
    found_.thresholds.push_back({std::move(name), std::move(dimension), value, std::move(condition), holds});
  }

  /// What a collective does not send but the matmul computes: more of it makes the strategy compute-bound.
  void own_dimensions(const Strategy& s) {
    for (const Loop& loop : product_.loops) {
      if (sends(s, loop.dim)) continue;
      const Dimension& dim = found_.problem.tables.dims[loop.dim];
      const Traced value = size_of(dim) * (s.communication_time / s.compute_time);
      add(fmt::format("compute-bound {}: {}", dim.name, s.name), dim.name, value,
          fmt::format("{}: compute-bound where {} is above", s.name, dim.name),
          value.value() < static_cast<double>(dim.size));
    }
  }

  /// More chips on an axis shorten the matmul, and may leave the collective as long.
  void own_axes(const Strategy& s) {
    const Mesh& mesh = found_.problem.tables.mesh;
    AxisMask cutting = 0;
    for (const AxisList& list : s.plan.products.front().cut) cutting |= mask_of(list);
    AxisMask shortening = 0;
    for (const AxisList& list : use_of(s).sized.cut) shortening |= mask_of(list);
    for (const std::uint8_t axis : mesh.list(cutting & ~shortening)) {
      const Traced size = kReader.input(static_cast<double>(mesh.axes[axis].size), mesh.axes[axis].name, "--mesh");
      const Traced ratio = s.compute_time / s.communication_time;
      Traced value;
      switch (growth(s, axis)) {
        case Growth::kNone: value = size * ratio; break;
        case Growth::kShare: value = Traced(1.0) + (size - Traced(1.0)) * ratio; break;
        case Growth::kOther: continue;
      }
      add(fmt::format("compute-bound {}: {}", mesh.axes[axis].name, s.name), mesh.axes[axis].name, value,
          fmt::format("{}: compute-bound where {} is below", s.name, mesh.axes[axis].name),
          static_cast<double>(mesh.axes[axis].size) < value.value());
    }
  }

  /// How a collective's time grows with one of its axes: not (rings in the book), as (N-1)/N, or otherwise.
  enum class Growth { kNone, kShare, kOther };

  Growth growth(const Strategy& s, std::uint8_t axis) const {
    const CollectiveUse& use = use_of(s);
    if ((use.mask >> axis & 1U) == 0) return Growth::kNone;
    if (use.kind == StepKind::kAllToAll) return Growth::kOther;  // V of an all-to-all changes too
    const auto doubled = network_.time_with_doubled(use.kind, use.mask, axis, use.bytes);
    if (!doubled) return Growth::kOther;
    const double factor = value_of(*doubled) / value_of(use.time);
    const double n = static_cast<double>(found_.problem.tables.mesh.ways(found_.problem.tables.mesh.list(use.mask)));
    const bool alone = mask_of({axis}) == use.mask;
    if (std::abs(factor - 1) < 1e-12) return Growth::kNone;
    if (alone && std::abs(factor - (2 * n - 1) / (2 * n - 2)) < 1e-12) return Growth::kShare;
    return Growth::kOther;
  }

  /// A dimension that `a` sends and `b` does not.
  void pair(const Strategy& a, const Strategy& b) {
    for (const Loop& loop : product_.loops) {
      if (sends(b, loop.dim)) continue;
      const Dimension& dim = found_.problem.tables.dims[loop.dim];
      const double size = static_cast<double>(dim.size);
      if (sends(a, loop.dim)) {
        const Traced value = size_of(dim) * (b.communication_time / a.communication_time);
        add(fmt::format("sends less, {}: {} than {}", dim.name, b.name, a.name), dim.name, value,
            fmt::format("{} sends less than {} where {} is above", b.name, a.name, dim.name), value.value() < size);
      }
      if (!(b.compute_time < a.compute_time)) continue;
      const Traced value = size_of(dim) * (b.communication_time / a.compute_time);
      add(fmt::format("sends faster, {}: {} than {} computes", dim.name, b.name, a.name), dim.name, value,
          fmt::format("{} sends in less time than {} computes where {} is above", b.name, a.name, dim.name),
          value.value() < size);
    }
  }

  const MeshNetwork& network_;
  MatmulAnswer& found_;
  const Product& product_;
  std::vector<const Strategy*> compared_;
};

/// Comparisons and thresholds of one product's textbook strategies; no thresholds where times are not proportional to
/// sizes (calibrated, latency-bound).
void compare_strategies(const MatmulQuestion& question, const MeshNetwork& network, MatmulAnswer& found) {
  if (found.problem.products.size() != 1) return;
  Thresholds thresholds(network, found);
  thresholds.comparisons();
  if (!question.calibrated) thresholds.thresholds();
}

BytesPerSecondOf<Traced> hbm_rate(const MatmulQuestion& question, const HardwareSpec& hw) {
  BytesPerSecondOf<Traced> peak = NamedRates(hw).hbm();
  if (!question.calibrated) return peak;
  return peak * kReader.input(hw.efficiency.hbm.value, "efficiency.hbm", hw.efficiency.hbm.source);
}

MatmulRates matmul_rates(const MatmulQuestion& question, const MatmulProblem& problem, const HardwareSpec& hw) {
  const NamedRates rates(hw);
  MatmulRates out;
  out.compute_dtype = problem.operands.front().dtype;
  for (const ShardedArray& operand : problem.operands) {
    if (bytes_per_element(out.compute_dtype) < bytes_per_element(operand.dtype)) out.compute_dtype = operand.dtype;
  }
  out.compute_dtype = question.compute.value_or(out.compute_dtype);
  out.compute = rates.matmul(out.compute_dtype);
  if (question.calibrated) {
    const Coefficient& reached = hw.efficiency.matmul[static_cast<std::size_t>(out.compute_dtype)];
    out.compute =
        out.compute *
        kReader.input(reached.value, fmt::format("efficiency.matmul.{}", name_of(out.compute_dtype)), reached.source);
  }
  out.hbm = hbm_rate(question, hw);
  if (hw.publishes("hbm.capacity")) out.capacity = rates.hbm_capacity();
  out.network = rates.is_torus() ? rates.ici() : rates.scale_up();
  if (question.calibrated) {
    const Coefficient& reached = hw.efficiency.link_scale_up;
    out.network = out.network * kReader.input(reached.value, "efficiency.link.scale_up", reached.source);
  }
  out.network_name = rates.is_torus() ? "both directions of one torus axis" : "a chip inside its node";
  out.alpha = named(out.compute / out.network, "alpha", "book ch. 3, question 4: FLOPs in the time of one byte");
  return out;
}

/// The last dimensions of a chip's part in whole tiles, as compilers lay arrays out (book ch. 9).
void pad(const Shape& tile, ArrayShare& out) {
  out.padded_shape = out.local_shape;
  Traced padded(1.0);
  Traced needed(1.0);
  for (std::size_t i = 0; i < tile.size() && i < out.padded_shape.size(); ++i) {
    std::int64_t& size = out.padded_shape[out.padded_shape.size() - 1 - i];
    const std::int64_t each = tile[tile.size() - 1 - i];
    const std::int64_t whole = (size + each - 1) / each * each;
    if (whole == size) continue;
    padded = padded * kReader.input(static_cast<double>(whole), "padded", "--tile");
    needed = needed * kReader.input(static_cast<double>(size), "needed", "--dims");
    size = whole;
  }
  out.padding_growth = named(padded / needed, "padded over needed", "book ch. 9: whole tiles");
  out.padded_bytes = named(out.local_bytes * padded / needed, "padded bytes of " + out.name, "book ch. 9: whole tiles");
}

ArrayShare share_of(const MatmulProblem& problem, const ShardedArray& array, std::string role, const HardwareSpec* hw,
                    const MatmulQuestion& question) {
  const ShardingTables& tables = problem.tables;
  ArrayShare out;
  out.name = array.name;
  out.role = std::move(role);
  out.notation = tables.notation(array);
  out.dtype = array.dtype;
  for (const std::size_t dim : array.dims) out.shape.push_back(tables.dims[dim].size);
  out.local_shape = tables.local_shape(array, array.layout);
  out.bytes = named(tables.bytes(array), "bytes of " + array.name, "one copy");
  out.local_bytes = named(tables.local_bytes(array, array.layout), "bytes of " + array.name + " on a chip",
                          "book ch. 3: each axis that cuts it divides it");
  const Traced chips = kReader.input(static_cast<double>(tables.mesh.chips()), "chips", "--mesh");
  out.total_bytes = named(out.local_bytes * chips, "bytes of " + array.name + " on all chips", "copies counted");
  out.replicas = out.total_bytes / out.bytes;
  out.fraction = out.local_bytes / out.bytes;
  if (hw != nullptr) {
    out.load_time = named(out.local_bytes / hbm_rate(question, *hw), "time to read " + array.name, "book ch. 1");
  }
  if (!question.tile.empty()) pad(question.tile, out);
  return out;
}

void arrays_of(const MatmulQuestion& question, const HardwareSpec* hw, MatmulAnswer& found) {
  const MatmulProblem& problem = found.problem;
  for (const ShardedArray& operand : problem.operands) {
    found.arrays.push_back(share_of(problem, operand, "operand", hw, question));
  }
  if (problem.target) {
    ShardedArray moved = problem.operands.front();
    moved.layout = *problem.target;
    found.arrays.push_back(share_of(problem, moved, "result", hw, question));
  }
  for (std::size_t p = 0; p < problem.products.size(); ++p) {
    const bool last = p + 1 == problem.products.size();
    if (!last && !problem.products[p].written) continue;  // it lies as each strategy leaves it
    ShardedArray result = problem.products[p].result;
    if (last && !found.strategies.empty()) result.layout = found.strategies.front().plan.products.back().result;
    found.arrays.push_back(share_of(problem, result, last ? "result" : "intermediate", hw, question));
  }
}

void note_space(MatmulAnswer& found, const HardwareSpec& hw) {
  if (found.strategies.empty()) return;
  const Strategy& best = found.strategies.front();
  if (value_of(best.time) < value_of(best.memory_time)) {
    found.notes.push_back(
        fmt::format("The best strategy's time counts matmuls and collectives. Reading and writing its parts in HBM "
                    "takes longer, {}: "
                    "the matmul is bound by memory.",
                    seconds_text(value_of(best.memory_time))));
  }
  if (!best.fits) {
    found.notes.push_back(fmt::format("No strategy fits: the best one's arrays take {} on each chip, which has {}.",
                                      bytes_text(value_of(best.memory)), bytes_text(value_of(hw.hbm_capacity))));
  }
}

/// Loops that do not divide over an axis are not cut over it.
void note_uneven(MatmulAnswer& found) {
  const ShardingTables& tables = found.problem.tables;
  std::vector<std::string> uneven;
  for (const Dimension& dim : tables.dims) {
    for (const MeshAxis& axis : tables.mesh.axes) {
      if (dim.size % axis.size != 0)
        uneven.push_back(
            fmt::format("{} = {} over {} = {}", dim.name, group_thousands(dim.size), axis.name, axis.size));
    }
  }
  if (!uneven.empty()) {
    found.notes.push_back(
        fmt::format("Strategies that would cut a dimension unevenly are left out: {}.", join_and(uneven)));
  }
}

void measured_times(const MatmulQuestion& question, MatmulAnswer& found) {
  const SecondsOf<Traced>& best = found.strategies.front().time;
  for (const double seconds : question.measured_s) {
    MeasuredMatmul out;
    out.time =
        read(kReader, Seconds(seconds), fmt::format("measured time {}", found.measured.size() + 1), "--measured");
    out.roofline_fraction = best / out.time;
    if (!found.measured.empty()) {
      out.speedup_over_first = found.measured.front().time / out.time;
      out.speedup_over_previous = found.measured.back().time / out.time;
    }
    found.measured.push_back(std::move(out));
  }
}

void multiply(const MatmulQuestion& question, const HardwareSpec& hw, const Stop& stop, MatmulAnswer& found) {
  const Efficiency efficiency = question.calibrated ? hw.efficiency : ideal_efficiency(hw.efficiency);
  const MeshNetwork network(hw, efficiency, found.problem.tables.mesh, question.placement);
  found.mesh = network.description();
  found.rates = matmul_rates(question, found.problem, hw);
  for (std::size_t p = 0; p < found.problem.products.size(); ++p) found.products.push_back(case_of(found.problem, p));
  found.strategies = strategies_of(question, found.problem, *found.rates, hw, network, stop);
  if (found.strategies.empty()) {
    const Product& last = found.problem.products.back();
    throw UserError(fmt::format("no strategy leads to {}", found.problem.tables.notation(last.result)),
                    last.result.layout.partial != 0
                        ? "partial sums remain only where an axis can cut a contracted dimension"
                        : "with --ring only collectives over all axes are considered");
  }
  compare_strategies(question, network, found);
  found.assumptions.insert(found.assumptions.end(), network.assumptions().begin(), network.assumptions().end());
  note_space(found, hw);
  note_uneven(found);
  measured_times(question, found);
}

}  // namespace

MatmulAnswer answer(const MatmulQuestion& question, const HardwareSpec* hw, const Stop& stop) {
  MatmulAnswer found;
  found.problem = understand(question.input);
  found.assumptions = found.problem.assumptions;
  if (found.problem.target) {
    if (hw == nullptr)
      throw UserError("--hw is missing: on which hardware?", "a catalog name such as tpu-v5p, or a YAML file");
    const Efficiency efficiency = question.calibrated ? hw->efficiency : ideal_efficiency(hw->efficiency);
    const MeshNetwork network(*hw, efficiency, found.problem.tables.mesh, question.placement);
    found.mesh = network.description();
    found.routes = redistributions(found.problem, network);
    if (const double needed = value_of(found.routes.front().memory);
        hw->publishes("hbm.capacity") && needed > value_of(hw->hbm_capacity)) {
      found.notes.push_back(fmt::format("It does not fit: the fastest way takes {} on each chip, which has {}.",
                                        bytes_text(needed), bytes_text(value_of(hw->hbm_capacity))));
    }
    found.assumptions.insert(found.assumptions.end(), network.assumptions().begin(), network.assumptions().end());
  } else if (found.problem.products.empty()) {
    if (!question.measured_s.empty()) {
      throw UserError("--measured: nothing is multiplied", "an expression with a product: \"A[I, J] * B[J, K]\"");
    }
  } else if (hw == nullptr) {
    throw UserError("--hw is missing: on which hardware?", "a catalog name such as tpu-v5p, or a YAML file");
  } else {
    multiply(question, *hw, stop, found);
  }
  arrays_of(question, hw, found);
  if (hw != nullptr) {
    found.assumptions.push_back(
        question.calibrated ? Assumption{"rates with the hardware file's efficiencies", "--efficiency ideal",
                                         "efficiency of " + hw->name}
                            : Assumption{"full rates, the book's rooflines", "--efficiency calibrated", "book ch. 1"});
  }
  return found;
}

}  // namespace scalecalc
