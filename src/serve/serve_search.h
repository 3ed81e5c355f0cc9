// Every layout of a system over a sweep of batches. For one count of chips and one batch, the layout with the least
// time per token is the best for the user and for the chips alike, so one point for each (chips, batch) makes the exact
// Pareto front.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "serve/serve_question.h"
#include "serve/serving_cost.h"

namespace scalecalc {

// The space of serving layouts.

/// Every legal layout of exactly `chips` chips within the pins. Without pins of their own: contexts are divided only
/// where attention is not also data-parallel, experts whole or over the tensor ranks or over all; two-dimensional
/// weights on tori alone, for dense models; gathered ones only if a scheme is pinned.
std::vector<ServeLayout> serve_layouts(const ModelSpec& model, const HardwareSpec& hw, std::int64_t chips,
                                       const ServePins& fix, const ServePins& max);

/// Why no layout has these pins: the rules in the way.
std::vector<std::string> serve_obstacles(const ModelSpec& model, std::int64_t chips, const ServePins& fix);

// Speculative decoding: a draft of k tokens, one step that verifies them. Sources: scaling book, chapter 7; expected
// tokens: Leviathan et al. 2023, arXiv:2211.17192 equation 1.

/// Tokens that a step of k drafted ones yields: (1 - a^(k+1)) / (1 - a); k + 1 if all are kept.
double speculated_tokens(double accept, double drafted);

class Speculator {
 public:
  /// Keeps references.
  Speculator(const SpeculationAsked& asked, const ServingSystem& system, const ModelSpec& draft);

  /// Of one token with so many sequences of a replica.
  SpeculationFigures figures(const ServeLayout& layout, const Slice& slice, const ServingCost<double>& target,
                             double batch, double context) const;
  /// The same with the largest batch, of 1, 2, 4 ... `most`, at which it still pays.
  void find_break_even(SpeculationFigures& figures, const ServeLayout& layout, const Slice& slice,
                       const ServingCost<double>& target, double most, double context) const;
  /// Bytes of the draft's weights on each chip of a layout.
  double bytes(const ServeLayout& layout) const;

 private:
  ServeLayout draft_layout(const ServeLayout& layout) const;
  const ServingCost<double>& cost(const ServeLayout& layout, const Slice& slice) const;

  const SpeculationAsked& asked_;
  ServingSystem system_;
  ServeBasis<double> basis_;
  mutable std::map<ServeLayout, ServingCost<double>> known_;
};

// What serving draws: chips by what a decode step and the prompts beside it are to them, with their hosts and the
// facility if asked (run/power.h).

/// Of a chip that decodes, and spends `prompts` of its time on prompts, which are compute.
StepActivity serving_activity(const ServeTime<double>& decode_step, double prompts);
/// Watts of the facility for one working chip. The chip's own must be published.
double facility_watts(const HardwareSpec& hw, const PowerTerms& terms, const StepActivity& activity);
/// Share of a point's chip time that prompts take.
double prompt_share(const ServePoint& point);

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

/// What a draft model adds to a step; see Speculator.
class Speculator;

class ServeSearch {
 public:
  /// Keeps references; `draft` is the model of --speculative, or null.
  ServeSearch(const ServeAnswer& answer, std::size_t system, const ModelSpec* draft, Stop stop = {});
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
  Stop stop_;
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

// The front of tokens/s of a chip against tokens/s of a user, or of cost against it.

/// Marks the points that no other beats in both. Cost counts if it is the objective and any point has a price; those
/// without one are then not marked.
void mark_pareto(std::vector<ServePoint>& points, ServeObjective objective);

}  // namespace scalecalc
