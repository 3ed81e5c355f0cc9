// Every layout of a system over every batch. A request's time does not fall when the batch grows, so of a range of
// batches none beats the most sequences in the least time: ranges that promise less than what was found are left out,
// and what is found is the best of all (docs/model.md).
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "network/tier_rates.h"
#include "serve/serve_question.h"
#include "serve/serving_cost.h"

namespace scalecalc {

// The space of serving layouts.

/// Every legal layout of exactly `chips` chips within the pins. Without pins of their own: contexts are divided only
/// where attention is not also data-parallel, experts whole or over the tensor ranks or over all; two-dimensional
/// weights on tori alone, for dense models; gathered ones only if a scheme is pinned. `copies` of experts are dealt
/// with them.
std::vector<ServeLayout> serve_layouts(const ModelSpec& model, const HardwareSpec& hw, std::int64_t chips,
                                       const ServePins& fix, const ServePins& max, std::int64_t copies = 0);

/// The fact of the engine's release that refuses the layout; null if none does.
const SupportFact* refused_layout(const ServingSystem& system, const ServeLayout& layout, bool speculative);

/// The slice that an engine is placed on; nothing if the count is not built. Long boxes of the same count lose links.
std::optional<Slice> engine_slice(const HardwareSpec& hw, std::int64_t chips);

/// The layouts that an engine can run on a given number of chips within the pins. Used by serve, jobs and rl. Memory
/// and placement are checked later.
struct Deployments {
  std::optional<Slice> slice;  ///< that all are placed on; nothing if the count is not built
  std::vector<ServeLayout> layouts{};
  std::vector<const SupportFact*> refusals{};  ///< of the engine's release, each once
};
Deployments deployments(const ServingSystem& system, std::int64_t chips, const ServePins& fix, const ServePins& max,
                        bool speculative = false);

/// Why no layout has these pins: the rules in the way.
std::vector<std::string> serve_obstacles(const ModelSpec& model, std::int64_t chips, const ServePins& fix,
                                         std::int64_t copies = 0);

/// That no layout of any of the counts has all pins, and those without one of which there are some; empty if one has.
std::string excluded_pins(const ModelSpec& model, const HardwareSpec& hw, std::span<const std::int64_t> counts,
                          const ServePins& fix, const ServePins& max, std::int64_t copies);

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
  /// What the draft takes of each chip of a layout.
  ServeMemory::Draft memory(const ServeLayout& layout) const;
  /// Seconds of a prompt through the draft, and those that it keeps a lane of the target from all else.
  double prefill(const ServeLayout& layout, const Slice& slice, double tokens, double cached) const;
  double occupancy(const ServeLayout& layout, const Slice& slice, double tokens, double cached) const;

 private:
  ServeLayout draft_layout(const ServeLayout& layout) const;
  const ServingCost<double>& cost(const ServeLayout& layout, const Slice& slice) const;

  const SpeculationAsked& asked_;
  ServingSystem system_;
  ServeBasis<double> basis_;
  mutable std::map<ServeLayout, ServingCost<double>> known_;
};

// What serving draws: chips by what a decode step and the prompts beside it are to them, with their hosts and the
// facility if asked (economics/power.h).

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
  double most = 0;   ///< sequences of a replica that fit by the engine's rule
  double moved = 0;  ///< bytes of a prompt's cache, as often as ranks keep it

  /// A decode step, worked out once for all pools and batches that come to it; by its sequences.
  struct Decoded {
    double tpot = 0;
    std::optional<SpeculationFigures> speculation;
  };
  mutable std::unordered_map<double, Decoded> decoded;

  /// The same at either end of the coefficients' uncertainty; made for layouts that are shown.
  struct Beside {
    ServingCost<double> fast, slow;
  };
  mutable std::shared_ptr<Beside> beside;

  /// Chips of a replica that each keep a part of a sequence's cache.
  double cache_ranks() const { return static_cast<double>(layout.replica_chips()) / memory.sequence_groups(); }
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

  /// Of every count of chips: the best by the question's objective of all layouts and batches that meet the limits, and
  /// for the front the best of each batch of 1, 2, 4 ..., or of those asked for. With limits that nothing meets at a
  /// batch, also what comes nearest.
  std::vector<ServePoint> run();

  std::size_t layouts() const { return layouts_; }
  /// Times asked for, of a layout with a number of sequences, those that were known already too.
  std::size_t evaluated() const { return evaluated_; }
  /// Nothing fits: the least bytes a chip would need, and the layout; absent if something does or no layout is legal.
  const std::optional<BindingLimit>& shortage() const { return shortage_; }
  /// What the engine's release refused of the layouts, each once.
  const std::vector<const SupportFact*>& refusals() const { return refusals_; }

 private:
  struct Times {
    double tpot = 0, ttft = 0, request = 0, prefill = 0;
    double gain = 0;         ///< by the objective, of as many sequences as asked
    bool saturated = false;  ///< more sequences gain nothing
    std::optional<SpeculationFigures> speculation;
  };
  /// A candidate with so many sequences on each rank of a stage.
  struct Choice {
    const ServeCandidate* candidate = nullptr;
    double sequences = 0;
    Times times;
  };
  /// Chips that take prompts alone.
  struct Pool {
    ServeLayout layout;
    double prefill = 0;    ///< s of one prompt
    double ttft = 0;       ///< s of it and of the draft's part
    double occupancy = 0;  ///< s between prompts
    std::int64_t chips = 0;
    double ranks = 1;  ///< that each keep a part of a prompt's cache
    TierRates<double> link;
  };
  /// Decode replicas beside prefill replicas.
  struct Split {
    const Pool* pool = nullptr;
    double room = 1;   ///< most prefill replicas
    double least = 1;  ///< and fewest
    const std::vector<ServeCandidate>* decode = nullptr;
    std::int64_t replicas = 1;
    std::int64_t chips = 0;                               ///< of the deployment
    TierRates<double> link;                               ///< of a decode rank
    double promise = 0;                                   ///< no less than it gains
    double most = std::numeric_limits<double>::lowest();  ///< the same, nearer, of what meets the limits
    bool sharp = false;                                   ///< `most`: every number of sequences was looked at
  };
  /// What a split comes to: where prompts limit the rate, no more sequences decode than they feed.
  struct Fed {
    double prefills = 1;  ///< prefill replicas
    double rate = 0;      ///< requests/s
    double each = 0;      ///< sequences of a decode replica that keep up with it
    Times times;
  };
  struct SplitChoice {
    const Split* split = nullptr;
    Choice choice;
    Times fed;  ///< as the sequences that are fed have them
  };
  /// What is kept of one batch.
  struct Leaders {
    SplitChoice best, fastest, meeting, soonest;
  };
  std::vector<ServeCandidate> candidates(std::int64_t chips, const ServePins& fix, const ServePins& max);
  std::vector<double> batches(double largest) const;
  void on_shared_chips(std::int64_t chips);
  void best_of_batch(const std::vector<ServeCandidate>& all, double batch, std::int64_t chips);
  /// Of a candidate with so many sequences on each rank of a stage.
  using TimesOf = std::function<Times(const ServeCandidate&, double sequences)>;
  using GainOf = std::function<double(const ServeCandidate&, double sequences, const Times&)>;
  /// The most of `gain` that meets the limits, if it is more than `known`. `promise` is no less than it, and neither
  /// falls with the sequences nor rises with the times.
  Choice best_choice(const std::vector<ServeCandidate>& all, const TimesOf& times_of, const GainOf& gain,
                     const GainOf& promise, double known = std::numeric_limits<double>::lowest());
  double gain(double batch, const Times& times) const;
  /// Whether the one gains more, or as much with tokens that come faster.
  static bool better(const Times& a, const Times& b);
  double on_replica(const ServeCandidate& candidate, double sequences) const;
  double most_on_a_rank(const ServeCandidate& candidate) const;
  void on_pools(std::int64_t chips);
  std::vector<Pool> prefill_pools(const std::vector<std::int64_t>& sizes, std::int64_t chips);
  std::vector<Split> splits(std::int64_t chips, const std::vector<Pool>& pools,
                            const std::vector<std::vector<ServeCandidate>>& decode) const;
  const ServeCandidate::Decoded& decoded(const ServeCandidate& candidate, double replica_batch) const;
  Times decode_times(const ServeCandidate& candidate, double replica_batch, const Split& split) const;
  Times at_best(const Split& split, double replica_batch, double tpot) const;
  double rate_of(double replica_batch, const Times& times) const;
  double prefills(const Split& split, double decode_chips, double wanted) const;
  double pool_price(const Split& split, double decode_chips, double prefill_replicas) const;
  double pool_gain(const Split& split, double decode_chips, double wanted, const Times& times, bool whole) const;
  double pool_gain(const Split& split, const ServeCandidate& candidate, double replica_batch, const Times& times) const;
  /// What a decode replica reaches within the limits: no less time for a token with no fewer requests.
  struct Reached {
    double requests = 0, tpot = 0;
  };
  using Front = std::vector<Reached>;
  Front front(const std::vector<ServeCandidate>& decode, double growth) const;
  double most_gain(const Split& split, const Front& front) const;
  class Fronts;
  void promise(std::vector<Split>& splits);
  bool may_lead(const Leaders& leaders, const Times& bound) const;
  void best_of_group(std::span<const Split> group, double replica_batch, Leaders& leaders);
  void best_of_batch(const std::vector<Split>& splits, double batch);
  Choice best_of_split(const Split& split, double known);
  void best_of_splits(std::vector<Split>& splits);
  void keep_beside(const Split& split, const Choice& choice, double each);
  Fed fed(const Split& split, const ServeCandidate& candidate, double asked, const Times& times) const;
  void offer(SplitChoice& kept, const Split& split, const Choice& choice, double each) const;
  void settle_ties(const std::vector<Split>& splits, SplitChoice& best);
  void pay_apart(ServePoint& point, PoolSplit& split, const Pool& pool) const;
  std::vector<std::int64_t> pool_sizes(std::int64_t chips) const;
  std::size_t pool_tier(std::int64_t chips) const;
  TierRates<double> pool_link(std::int64_t chips) const;
  double transfer_time(const Split& split, const ServeCandidate& candidate) const;
  Times times(const ServeCandidate& candidate, double replica_batch) const;
  double draft_prompt(const ServeCandidate& candidate) const;
  double prompt_occupancy(const ServeCandidate& candidate) const;
  bool meets(double ttft, double tpot, double request) const;
  bool meets(const Times& t) const { return meets(t.ttft, t.tpot, t.request); }
  bool limited() const { return q_.slo_ttft || q_.slo_tpot || q_.slo_request; }
  void keep(ServePoint point);
  ServePoint point(const ServeCandidate& candidate, double batch, std::int64_t chips, std::int64_t replicas,
                   const Times& times) const;
  void pay(ServePoint& point, double prefill_chip_s) const;

  const ServeAnswer& answer_;
  Stop stop_;
  const ServeQuestion& q_;
  std::size_t index_;
  const ServeSystem& system_;
  const ModelSpec* draft_;
  ServingSystem serving_;
  ServeBasis<double> basis_;
  ServeBasis<double> fast_basis_, slow_basis_;  ///< coefficients at either end of their uncertainty
  ServeLoad load_;
  double reserved_ = 0;    ///< tokens that a sequence must find room for
  bool one_pass_ = false;  ///< nothing is decoded
  std::vector<std::unique_ptr<Slice>> slices_;
  std::unique_ptr<Speculator> speculator_;
  static constexpr double kMostSequences = 65536;
  static constexpr double kSame = 1e-12;      ///< of gains that tie, relative
  static constexpr double kRounding = 4e-12;  ///< by which bounds are raised: ties, and sums in another order
  std::vector<ServePoint> points_;
  std::optional<BindingLimit> shortage_;
  std::vector<const SupportFact*> refusals_;
  std::size_t layouts_ = 0;
  mutable std::size_t evaluated_ = 0;
};

// The front of tokens/s of a chip against tokens/s of a user, or of cost against it.

/// Marks the points that no other beats in both. Cost counts if it is the objective and any point has a price; those
/// without one are then not marked.
void mark_pareto(std::vector<ServePoint>& points, ServeObjective objective);

}  // namespace scalecalc
