// `scalecalc serve`: the question as typed, and the answer with everything it assumed.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/explained.h"
#include "base/stop.h"
#include "config/catalog.h"
#include "economics/power.h"
#include "network/placement.h"
#include "network/slice.h"
#include "serve/engine_flags.h"
#include "serve/serve_work.h"
#include "serve/serving_cost.h"
#include "serve/serving_system.h"

namespace scalecalc {

/// The knee: where tokens per second of a chip times those of a user are most, so that beyond it a percent more of the
/// one costs more than a percent of the other.
enum class ServeObjective : std::uint8_t { kThroughput, kLatency, kCost, kKnee };
inline constexpr std::array<std::string_view, 4> kServeObjectiveNames{"throughput", "latency", "cost", "knee"};

/// Prompts and generation on the same chips, on pools of their own, or whichever is better.
enum class Disaggregation : std::uint8_t { kOff, kOn, kAuto };
inline constexpr std::array<std::string_view, 3> kDisaggregationNames{"off", "on", "auto"};

enum class ServeRegime : std::uint8_t {
  kContinuous,  ///< requests come and go, prompts are taken between or beside decode steps
  kStatic,      ///< a batch is prefilled and decoded to its end
};
inline constexpr std::array<std::string_view, 2> kServeRegimeNames{"continuous", "static"};

/// Degrees held to a value, or at most one.
struct ServePins {
  std::optional<std::int64_t> tp, tp_x, pp, ep, etp, attention_dp, cp, dp, scheme, ep_overlap;
  bool any() const { return tp || tp_x || pp || ep || etp || attention_dp || cp || dp || scheme || ep_overlap; }
  /// These, and those of `other` where these say nothing.
  ServePins or_else(const ServePins& other) const;
};

/// One pin by name.
struct ServeDimension {
  std::string_view name;
  std::optional<std::int64_t> ServePins::*pin;
  std::int64_t (*value)(const ServeLayout&);
};
inline constexpr std::size_t kServeDimensions = 10;
extern const std::array<ServeDimension, kServeDimensions> kServeDimensionTable;

struct SpeculationAsked {
  std::string draft;  ///< a model, or "mtp": the model's own heads
  std::int64_t drafted = 0;
  double accept = 0;  ///< chance that a drafted token is kept, each independently
};

struct ServeQuestion {
  std::string model;
  std::string assume;
  std::vector<std::string> hardware;
  std::optional<std::int64_t> chips;
  double prompt = 8192;
  double generate = 512;
  std::string images;                  ///< of each prompt, as images_of takes them; empty: none
  bool usual_lengths = false;          ///< nobody asked for these
  std::optional<double> context;       ///< tokens in the cache while decoding; absent: prompt + generate / 2
  std::optional<double> mean_context;  ///< the same of requests of several lengths, where nobody said
  std::vector<double> batches;         ///< sequences of the whole deployment; empty: 1, 2, 4 ... as many as fit
  std::optional<QuantizationSpec> weights;
  std::optional<WeightFormat> kv;
  std::optional<DType> compute;
  ServePins fix, max;                  ///< of both pools where there are two
  ServePins prefill_fix, prefill_max;  ///< of the pool for prompts, before those of both; dp: its replicas
  ServePins decode_fix, decode_max;
  std::optional<double> slo_ttft, slo_tpot, slo_request;  ///< s
  ServeRegime regime = ServeRegime::kContinuous;
  Disaggregation disaggregate = Disaggregation::kOff;
  std::string prefill_hardware;  ///< of the prefill pool; empty: as the decode pool
  double prefix_hit = 0;         ///< share of the prompt found in the cache
  std::optional<SpeculationAsked> speculation;
  /// What is typed of the engine in the place of its release's defaults, and the same one by one.
  std::vector<EngineSetting> engine_settings;
  std::optional<double> memory_share, most_sequences, chunk, longest, stream_interval, receive_interval;
  std::optional<double> mfu;  ///< share of the peak that prefill reaches, in place of the coefficients
  ServeObjective objective = ServeObjective::kThroughput;
  std::size_t top = 20;
  std::optional<double> price;  ///< USD per chip and hour
  PowerTerms power;
  std::string engine;      ///< "vllm" in its newest release, "vllm@0.11"; empty: the chip's usual one
  std::string as_of;       ///< a date: the engine's release of then; empty: the newest
  bool no_engine = false;  ///< rules and coefficients of no particular one
  bool ideal = false;
  bool suggest = true;  ///< where nothing meets the limits, try what would
  std::vector<std::string> set;
  std::string expert_load;  ///< "zipf:1.2" or a file of loads by expert; empty: the chip's skew and imbalance
  std::optional<std::int64_t> redundant_experts;  ///< copies of the most loaded, over the expert ranks
};

/// Pools of their own for prompts and generation.
struct PoolSplit {
  std::int64_t prefill_chips = 0, decode_chips = 0;
  std::int64_t prefill_replicas = 0, decode_replicas = 0;
  ServeLayout prefill_layout;
  std::string prefill_hardware{};  ///< if it is another than the decode pool's
  double ratio = 0;                ///< prefill replicas that one decode replica keeps busy
  double transfer_bytes = 0;       ///< of a prompt's cache, as often as decode ranks hold it
  double transfer_s = 0;
  std::string transfer_tier;  ///< whose links it takes
};

struct SpeculationFigures {
  double tokens_per_step = 1;  ///< (1 - a^(k+1)) / (1 - a)
  double draft_s = 0;          ///< of all k drafted tokens
  double verify_s = 0;
  double plain_tpot_s = 0;                 ///< without it
  std::optional<double> break_even_batch;  ///< most sequences at which it still pays; absent: at all that fit
};

struct ServePoint {
  std::size_t system = 0;  ///< index into ServeAnswer::systems
  ServeLayout layout;      ///< of the decode pool where there are two
  Slice slice;
  Placement placement;
  std::int64_t chips = 0;
  double batch = 0;
  double prefill_s = 0, ttft_s = 0, decode_step_s = 0, tpot_s = 0, request_s = 0;
  double tokens_per_s = 0, requests_per_s = 0;
  double decode_low_s = 0, decode_high_s = 0;  ///< over the uncertainty of the coefficients
  double floor_s = 0;                          ///< of the decode step
  ServeTime<double> time;
  ServeMemoryParts memory;
  double capacity = 0;
  double max_batch = 0;  ///< of the deployment
  std::string memory_rule;
  std::string bound_by;
  std::optional<double> usd_per_million_output, usd_per_million_input, joules_per_output_token;
  std::optional<PoolSplit> pools;
  std::optional<SpeculationFigures> speculation;
  bool pareto = false;
  bool meets_limits = true;

  double tokens_per_s_per_chip() const { return tokens_per_s / static_cast<double>(chips); }
  double tokens_per_s_per_user() const { return 1 / tpot_s; }
};

/// Sequences in flight in words. Those of a steady state are a mean, which is told in whole ones, as in tables.
std::string batch_text(const ServePoint& point);

/// A limit nothing meets.
struct BindingLimit {
  std::string name;    ///< "ttft"; "memory"
  double asked = 0;    ///< s, or bytes of a chip
  double nearest = 0;  ///< the best achievable
  std::string how;     ///< the layout and batch that come nearest
};

/// A machine asked about, resolved.
struct ServeSystem {
  std::shared_ptr<const HardwareSpec> hw;
  ServingSystem serving;  ///< points to `hw` and the answer's model
  std::optional<double> usd_per_chip_hour;
  std::vector<std::int64_t> chip_counts;  ///< searched
};

/// What one of the machines asked about can do on its own.
struct SystemOutcome {
  std::optional<ServePoint> best;    ///< by the question's objective, within its limits
  std::vector<BindingLimit> limits;  ///< without a best: what stands in the way; empty if no layout is legal
};

struct ServeAnswer {
  std::shared_ptr<const ModelSpec> model;
  ServeQuestion question;
  std::vector<ServeSystem> systems;
  std::optional<std::size_t> prefill_system;  ///< of these, the one that takes prompts for the others
  std::vector<ServePoint> points;             ///< fastest for the user first
  std::optional<ServePoint> best;
  std::vector<SystemOutcome> outcomes;  ///< of `systems`, in their order
  std::vector<BindingLimit> limits;     ///< nothing meets them
  std::vector<FlagChange> would_meet;   ///< changes seen to meet them
  std::size_t layouts = 0, evaluated = 0;
  double elapsed_s = 0;
  std::vector<Assumption> assumptions;
  std::vector<std::string> notes;
  std::vector<ExplainSection> explanation;
};

/// The decode step and the prefill of a point, with their formulas.
struct ExplainedServing {
  SecondsOf<Traced> decode_step, prefill;
};
ExplainedServing explain_point(const ServeAnswer& answer, const ServePoint& point);

/// UserError for a wrong question. Nothing that meets the limits is an answer: `best` is absent, `limits` says why.
ServeAnswer serve_answer(const ServeQuestion& question, const Catalog& catalog, const Stop& stop = {});

// From a serving question as typed to systems whose cost can be asked: files loaded, formats, engine and coefficients
// chosen, defaults recorded as assumptions.

/// Fills in model, systems and assumptions. UserError for everything that is wrong with the question.
ServeAnswer resolve_serving(const ServeQuestion& question, const Catalog& catalog);
/// The same for a model that is loaded already, to which the question's --set does not apply.
ServeAnswer resolve_serving(const ServeQuestion& question, const Catalog& catalog, ModelSpec model);

/// What engines multiply in when weights are stored so: 8- and 4-bit floats as such where the chip has a rate for them,
/// mxfp4 with 8-bit activations on chips of 4-bit floats, all else in 16 bits. Integers are widened as they are read;
/// --flops int8 says otherwise. Of a model whose experts have a format of their own, that one decides.
DType usual_compute(const QuantizationSpec& weights, const HardwareSpec& hw);

/// Draft model of --speculative; the model's own heads as a model of one layer for "mtp". UserError if it has none.
ModelSpec draft_model(const SpeculationAsked& asked, const ModelSpec& model, const Catalog& catalog);

}  // namespace scalecalc
