// The order of plans, and the best of them.
#pragma once

#include <algorithm>
#include <array>
#include <optional>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "plan/request.h"

namespace scalecalc {

/// What ranks a plan, smaller first.
struct Rank {
  double first = 0;
  double second = 0;
  double third = 0;
  friend auto operator<=>(const Rank&, const Rank&) = default;
};

/// Plans whose time (or cost) lies within this share of the best are marked: it is a tenth of the smallest error any
/// efficiency coefficient claims, so an order among them is noise.
constexpr double kNear = 0.01;

/// What a bound is multiplied by: the same sums in another order may come out a few parts in 10^16 higher, and a plan
/// that is as good as the last one kept must not be lost to that.
constexpr double kBoundRounding = 1 - 1e-12;

/// Smaller is better: strictly by the objective, or by simplicity (plan/mechanisms.h) first. A lower bound of time with
/// memory 0, of a layout with parts still open, gives a lower bound of the rank: it does not fall when any of them
/// grows.
class Ranker {
 public:
  explicit Ranker(Objective objective) : objective_(objective) {}
  /// `measured` must outlive it.
  Ranker(Objective objective, bool simplest, const MeasuredExtent& measured)
      : objective_(objective), simplest_(simplest), measured_(&measured) {}

  /// Time per token, or chips x time per token when cost is ranked.
  double goal(double chips, double step_s, double tokens) const {
    const double time = step_s / tokens;
    return objective_ == Objective::kCost ? chips * time : time;
  }

  Rank operator()(const Layout& layout, double chips, double step_s, double tokens, double memory) const {
    const double time = step_s / tokens;
    if (simplest_) return {static_cast<double>(complexity(layout, *measured_)), goal(chips, step_s, tokens), memory};
    switch (objective_) {
      case Objective::kTime: return {time, memory, 0};
      case Objective::kCost: return {goal(chips, step_s, tokens), time, memory};
      case Objective::kMemory: return {memory, time, 0};
      case Objective::kChips: return {chips, time, memory};
    }
    internal_error("unknown objective");
  }
  Rank operator()(const Plan& plan, double tokens) const {
    return (*this)(plan.layout, static_cast<double>(plan.slice.chips), plan.step_s, tokens,
                   plan.memory.total().value());
  }

 private:
  Objective objective_;
  bool simplest_ = false;
  const MeasuredExtent* measured_ = nullptr;  ///< there if simplest_
};

/// Whether a plan's time (or cost) per token lies within kNear of the best plan's. Memory and chips are exact.
inline bool is_near(Objective objective, const Plan& best, const Plan& plan) {
  if (objective != Objective::kTime && objective != Objective::kCost) return false;
  const Ranker ranker(objective);
  const auto goal = [&](const Plan& p) {
    return ranker.goal(static_cast<double>(p.slice.chips), p.step_s, p.batch_seqs);
  };
  return goal(plan) <= (1 + kNear) * goal(best);
}

struct Candidate {
  Plan plan;
  Rank rank;
  std::size_t slice = 0;
  std::size_t placement = 0;

  auto key() const { return std::tuple(rank, slice); }
  friend bool operator<(const Candidate& a, const Candidate& b) {
    if (a.key() != b.key()) return a.key() < b.key();
    if (const auto order = a.plan.layout <=> b.plan.layout; order != 0) return order < 0;
    return a.placement < b.placement;
  }
};

/// The best `size` candidates; with `variants` off, at most one of each set of parallel degrees.
class Ranking {
 public:
  Ranking(std::size_t size, bool variants) : size_(size), variants_(variants) {}

  std::size_t size() const { return size_; }
  bool full() const { return best_.size() == size_; }
  bool admits(const Rank& rank) const { return !full() || !(best_.back().rank < rank); }

  /// The rank a plan of these chips and parallel degrees must not exceed to enter: that of the line it would replace,
  /// else the last one's; none if there is room.
  std::optional<Rank> limit(std::int64_t chips, const Layout& layout) const {
    if (!variants_) {
      for (const Candidate& c : best_) {
        if (c.plan.slice.chips == chips && line_of(c.plan.layout) == line_of(layout)) return c.rank;
      }
    }
    return full() ? std::optional(best_.back().rank) : std::nullopt;
  }

  void offer(Candidate&& candidate) {
    if (full() && !(candidate < best_.back())) return;
    const auto same =
        std::find_if(best_.begin(), best_.end(), [&](const Candidate& c) { return same_line(c.plan, candidate.plan); });
    if (same != best_.end()) {
      if (!(candidate < *same)) return;
      best_.erase(same);
    } else if (full()) {
      best_.pop_back();
    }
    best_.insert(std::upper_bound(best_.begin(), best_.end(), candidate), std::move(candidate));
  }

  const std::vector<Candidate>& best() const { return best_; }

 private:
  /// What makes two plans the same line of the answer: the placement never does, and without `variants` neither do
  /// sharding, microbatch, schedule and remat.
  bool same_line(const Plan& a, const Plan& b) const {
    if (a.slice.chips != b.slice.chips) return false;
    return variants_ ? a.layout == b.layout : line_of(a.layout) == line_of(b.layout);
  }
  static std::array<std::int64_t, 6> line_of(const Layout& l) { return {l.data(), l.tp, l.cp, l.pp, l.ep, l.etp}; }

  std::size_t size_;
  bool variants_;
  std::vector<Candidate> best_;
};

}  // namespace scalecalc
