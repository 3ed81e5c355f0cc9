// Where a strategy turns from communication- to compute-bound, and where another overtakes it (book, chapter 3,
// question 4). Times are proportional to the sizes in them, so each threshold is a size times a ratio of two times.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "primitives/matmul.h"

namespace scalecalc {
namespace {

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

}  // namespace

void compare_strategies(const MatmulQuestion& question, const MeshNetwork& network, MatmulAnswer& found) {
  if (found.problem.products.size() != 1) return;
  Thresholds thresholds(network, found);
  thresholds.comparisons();
  if (!question.calibrated) thresholds.thresholds();
}

}  // namespace scalecalc
