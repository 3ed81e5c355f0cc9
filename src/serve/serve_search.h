// Every layout of a system over a sweep of batches. For one count of chips and one batch, the layout with the least
// time per token is the best for the user and for the chips alike, so one point for each (chips, batch) makes the exact
// Pareto front.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "serve/serve_question.h"
#include "serve/serving_cost.h"

namespace scalecalc {

/// A layout on a slice, ready to be asked.
struct ServeCandidate {
  ServeLayout layout;
  const Slice* slice = nullptr;
  Placement placement;
  ServeMemory memory;
  ServingCost<double> cost;

  /// The same for prompts, and at either end of the coefficients' uncertainty; made for layouts that are shown.
  struct Beside {
    ServingCost<double> prompts, fast, slow;
  };
  mutable std::shared_ptr<Beside> beside;
};

/// What a draft model adds to a step; see serve_speculation.cpp.
class Speculator;

class ServeSearch {
 public:
  /// Keeps references; `draft` is the model of --speculative, or null.
  ServeSearch(const ServeAnswer& answer, std::size_t system, const ModelSpec* draft);
  ~ServeSearch();
  ServeSearch(const ServeSearch&) = delete;
  ServeSearch& operator=(const ServeSearch&) = delete;

  /// The best point of every count of chips and batch; with limits also the best that meets them, if it is another.
  std::vector<ServePoint> run();

  std::size_t layouts() const { return layouts_; }
  std::size_t evaluated() const { return evaluated_; }
  /// Nothing fits: the least bytes a chip would need, and the layout; absent if something does or no layout is legal.
  const std::optional<BindingLimit>& shortage() const { return shortage_; }

 private:
  struct Times {
    double tpot = 0, ttft = 0, prefill = 0;
    std::optional<SpeculationFigures> speculation;
  };
  /// Chips that take prompts alone.
  struct Pool {
    ServeLayout layout;
    double prefill = 0;    ///< s of one prompt
    double occupancy = 0;  ///< s between prompts
    std::int64_t chips = 0;
    double transfer = 0;  ///< s of a prompt's cache
  };
  std::vector<ServeCandidate> candidates(std::int64_t chips, bool one_replica);
  std::vector<double> batches(const std::vector<ServeCandidate>& candidates) const;
  void on_shared_chips(std::int64_t chips);
  void on_pools(std::int64_t chips);
  std::optional<Pool> prefill_pool(const std::vector<std::int64_t>& sizes);
  void decode_beside(const Pool& pool, double room, const std::vector<ServeCandidate>& all, double batch,
                     std::int64_t replicas, std::int64_t chips);
  void pay_apart(ServePoint& point, PoolSplit& split, const Pool& pool) const;
  std::vector<std::int64_t> pool_sizes(std::int64_t chips) const;
  double prompt_bytes() const;
  double transfer_time(double chips) const;
  Times times(const ServeCandidate& candidate, double replica_batch) const;
  /// Sequences of a replica that fit by the engine's rule.
  double most(const ServeMemory& memory) const { return memory.max_batch(reserved_); }
  bool meets(double ttft, double tpot) const;
  void keep(ServePoint point);
  ServePoint point(const ServeCandidate& candidate, double batch, std::int64_t chips, std::int64_t replicas,
                   const Times& times) const;
  void pay(ServePoint& point, double prefill_chip_s) const;

  const ServeAnswer& answer_;
  const ServeQuestion& q_;
  std::size_t index_;
  const ServeSystem& system_;
  ServingSystem serving_;
  ServeBasis<double> basis_;
  ServeBasis<double> prefill_basis_;
  ServeBasis<double> fast_basis_, slow_basis_;  ///< coefficients at either end of their uncertainty
  ServeLoad load_;
  double reserved_ = 0;  ///< tokens that a sequence must find room for
  std::vector<std::unique_ptr<Slice>> slices_;
  std::unique_ptr<Speculator> speculator_;
  std::vector<ServePoint> points_;
  std::optional<BindingLimit> shortage_;
  std::size_t layouts_ = 0;
  std::size_t evaluated_ = 0;
};

}  // namespace scalecalc
