// Computes the time and memory of engine steps of one placed layout, for the search and the simulation.
#include "serve/serving_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"
#include "model/stored_bytes.h"
#include "serve/stage_layers.h"
#include "serve/step_operations.h"

namespace scalecalc {
namespace {

/// How one chip sees a replica's sequences: those of its attention-data rank and of the pipeline stage's turn.
double on_a_rank(double sequences, const ServeLayout& layout) {
  return sequences <= 0 ? 0 : std::ceil(sequences / serve_lanes(layout));
}

}  // namespace

double serve_lanes(const ServeLayout& layout) {
  return to_double(layout.attention_dp * layout.pp) *
         (layout.scheme == ServeScheme::kGathered ? to_double(layout.tp) : 1);
}

template <class R>
ServingCost<R>::ServingCost(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice,
                            const Placement& placement)
    : layout_(layout),
      terms_(step_terms(basis, layout, slice, placement)),
      chunk_ways_(basis.system.chunk_tokens / basis.system.rank_chunk(layout)) {
  const EngineRules& engine = basis.system.engine;
  if (engine.counts_runtime && !engine.graph_sizes.empty() && !basis.system.hw->is_torus()) {
    graphs_ = engine;
    for (const KindOps<R>& kind : basis.kinds) launched_s_ += kind.layers * static_cast<double>(kind.ops.size());
    launched_s_ *= basis.system.efficiency.host_overhead.value / to_double(layout.pp);
  }
  if (!basis.system.mfu) return;
  const std::size_t d = static_cast<std::size_t>(basis.system.formats.compute);
  prompt_rate_ = FlopsPerSecondOf<R>(R(basis.system.hw->matmul_peak[d]->value() * *basis.system.mfu));
}

/// [SERVE-GRAPH] The decoding rows are padded to the next captured batch; prompts beside them take the place of
/// padding.
template <class R>
StepRows<R> ServingCost<R>::replayed(StepRows<R> rows) const {
  const double captured = graphs_->captured_rows(value_of(rows.decode), layout_.tp);
  rows.padding = R(std::max(0.0, captured - value_of(rows.asked())));
  return rows;
}

/// Under --mfu prompts take their FLOPs at that share of the peak, beside the sequences that decode.
template <class R>
ServeTime<R> ServingCost<R>::time(const StepRows<R>& asked) const {
  const StepRows<R> rows = graphs_ && value_of(asked.decode) > 0 ? replayed(asked) : asked;
  if (!prompt_rate_ || value_of(rows.prefill) <= 0) {
    ServeTime<R> out = time_of(terms_, rows);
    // Beyond the largest graph every kernel waits for its launch.
    if (graphs_ && value_of(rows.decode) > graphs_->largest_graph(layout_.tp)) {
      out.overhead += max(SecondsOf<R>(R(0.0)), SecondsOf<R>(R(launched_s_)) - out.total());
    }
    return out;
  }
  ServeTime<R> out;
  StepRows<R> decoding = rows;
  decoding.prefill = decoding.prompts = decoding.cached = R(0.0);
  decoding.logits = rows.decode;
  if (value_of(rows.decode) > 0) out = time_of(terms_, decoding);
  out.compute += prompt_flops(terms_, rows) / *prompt_rate_;
  return out;
}

namespace {

template <class R>
StepRows<R> rows_on_chip(const ServeStep& step, const ServeLayout& layout) {
  const double sequences = on_a_rank(step.decode_sequences, layout);
  const double prompts = on_a_rank(step.prefill_sequences, layout);
  StepRows<R> rows;
  rows.sequences = R(sequences);
  rows.decode = R(sequences * step.tokens_each);
  rows.context = R(step.context);
  rows.prompts = R(prompts);
  rows.prefill = R(prompts * step.prefill_tokens);
  rows.cached = R(step.cached);
  rows.logits = R(sequences * step.tokens_each + prompts * (step.all_logits ? step.prefill_tokens : 1));
  return rows;
}

}  // namespace

StepRows<double> rows_of(const ServeStep& step, const ServeLayout& layout) {
  return rows_on_chip<double>(step, layout);
}

template <class R>
ServeTime<R> ServingCost<R>::step(const ServeStep& step) const {
  return time(rows_on_chip<R>(step, layout_));
}

template <class R>
ServeTime<R> ServingCost<R>::decode_step(double batch, double context, double new_tokens) const {
  return step({.decode_sequences = batch, .tokens_each = new_tokens, .context = context});
}

template <class R>
ServeTime<R> ServingCost<R>::prefill(double tokens, double cached, double sequences) const {
  return step({.prefill_sequences = sequences, .prefill_tokens = tokens, .cached = cached});
}

template <class R>
ServeTime<R> ServingCost<R>::mixed_step(double batch, double context, double chunk, double cached) const {
  return step({.decode_sequences = batch,
               .context = context,
               .prefill_sequences = 1,
               .prefill_tokens = chunk,
               .cached = cached});
}

template <class R>
SecondsOf<R> ServingCost<R>::prefill_occupancy(double tokens, double cached) const {
  const double at_once = serve_lanes(layout_);
  return prefill(tokens, cached, at_once).total() / R(at_once);
}

/// [SERVE-STEADY] Prompts of S tokens are k = S / c chunks of c in K = ceil(k) steps, of which over p stages
/// K' = 1 + (K - 1) / p follow each other. A request passes K' + G - 1 steps, and meanwhile the rank takes n k chunks:
/// beside its sequences, which decode in every step, as long as there are as many steps (those past its own slow it
/// down); then several short prompts to a step; then every step has all it holds, and prompts wait.
template <class R>
SteadyTimes<R> ServingCost<R>::steady(double batch, const ServeLoad& load) const {
  const double n = on_a_rank(batch, layout_);
  const double more = std::max(load.generate - 1, 0.0);
  const double chunk = std::max(1.0, load.chunk / chunk_ways_);
  const double each = std::min(load.prompt, chunk);
  const auto seconds = [&](double sequences, double prompts) {
    return time({.decode = R(sequences),
                 .sequences = R(sequences),
                 .context = R(load.context),
                 .prefill = R(prompts * each),
                 .prompts = R(prompts),
                 .cached = R(load.cached + (load.prompt - each) / 2),
                 .logits = R(sequences + prompts)})
        .total();
  };
  if (each <= 0) {
    const SecondsOf<R> step = seconds(n, 0);
    return {.tpot = step, .ttft = step, .request = step * R(1 + more)};
  }
  const double stages = to_double(layout_.pp);
  const double chunks = load.prompt / each;
  const double own = 1 + (chunks - 1) / stages;
  const double own_steps = 1 + (std::ceil(chunks) - 1) / stages;
  // Sequences of a stage's turn: less than one where there are more stages than sequences.
  const double turn = std::ceil(batch * stages / serve_lanes(layout_)) / stages;
  const double taken = turn * chunks, passed = own_steps + more;
  SteadyTimes<R> out;
  if (taken <= passed) {
    const SecondsOf<R> alone = seconds(n, 0);
    const SecondsOf<R> mixed = max(alone, seconds(n - 1, 1));
    out.ttft = mixed * R(own) + alone * R(own_steps - own);
    out.tpot = more > 0 ? alone + (mixed - alone) * R(std::max(taken - own, 0.0) / more) : alone;
    out.request = out.ttft + out.tpot * R(more);
    return out;
  }
  const double most = std::max(1.0, chunk / each);  // prompts of a step
  const double at_once = std::min(taken / passed, most);
  out.saturated = at_once >= most;
  const double fullest = passed * at_once / chunks;  // sequences at which steps are that full
  const SecondsOf<R> mixed = max(seconds(fullest, 0), seconds(std::max(fullest - at_once, 0.0), at_once));
  out.request = mixed * R(taken / at_once);
  out.tpot = mixed;
  if (more > 0 && own_steps > own) {
    // What the last chunk leaves of its step goes to the others.
    out.tpot = mixed + (mixed - seconds(fullest, 0)) * R((own_steps - own) / more);
  }
  out.ttft = out.request - out.tpot * R(more);
  return out;
}

template <class R>
SecondsOf<R> ServingCost<R>::floor(double batch, double context) const {
  BytesOf<R> bytes(R(0.0));
  const double sequences = on_a_rank(batch, layout_);
  for (const DenseTerm<R>& t : terms_.dense) bytes += t.weight_bytes * t.layers;
  for (const ExpertTerm<R>& t : terms_.experts) {
    bytes += t.matmul.matrix_bytes * t.layers * R(touched_here(terms_, t, sequences * terms_.sharing));
  }
  for (const CacheTerm<R>& t : terms_.caches) {
    bytes += t.token_bytes * t.layers * reached(t, R(context)) * R(sequences) / t.context_ways;
  }
  return bytes / terms_.peak_bandwidth;
}

template class ServingCost<double>;
template class ServingCost<Dual>;
template class ServingCost<Traced>;

std::vector<Placement> placed(const HardwareSpec& hw, const Slice& slice, const ServeLayout& layout) {
  const Degrees degrees{layout.tp, layout.cp, layout.attention_dp, layout.dp, layout.pp};
  std::vector<Placement> out = placements(hw, slice, degrees, false);
  std::erase_if(out, [&](const Placement& p) {
    Group inner, outer;
    const std::array<const Group*, 3> nest{&p.of(MeshDim::kTp), &p.of(MeshDim::kCp), &p.of(MeshDim::kFsdp)};
    return !fold(std::span(nest).first(1), layout.tp_x, inner, outer) || !fold(nest, layout.etp, inner, outer);
  });
  return out;
}

Placement best_placement(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice) {
  constexpr double kSequences = 64;
  std::vector<Placement> all = placed(*basis.system.hw, slice, layout);
  if (all.empty()) {
    throw UserError(fmt::format("{} cannot be placed on {}", describe(layout), slice.name()),
                    "degrees must divide the machine's axes or domains");
  }
  if (all.size() == 1) return all.front();
  const auto time = [&](const Placement& p) {
    return ServingCost<double>(basis, layout, slice, p).decode_step(kSequences, 1).total().value();
  };
  double least = time(all.front());
  std::size_t best = 0;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const double other = time(all[i]);
    if (other >= least) continue;
    least = other;
    best = i;
  }
  return all[best];
}

std::vector<PlacedGroup> described_placement(const HardwareSpec& hw, const Slice& slice, const Placement& placement) {
  static constexpr std::array<std::pair<MeshDim, const char*>, kMeshDims> kNames{{{MeshDim::kTp, "tp"},
                                                                                  {MeshDim::kCp, "cp"},
                                                                                  {MeshDim::kFsdp, "attention_dp"},
                                                                                  {MeshDim::kPp, "pp"},
                                                                                  {MeshDim::kDp, "dp"}}};
  std::vector<PlacedGroup> out;
  for (const auto& [dim, name] : kNames) {
    const Group& group = placement.of(dim);
    if (group.size() > 1) out.push_back(placed_group(name, hw, slice, group));
  }
  return out;
}

ServingCost<double> serving_cost(const ServeBasis<double>& basis, const ServeLayout& layout, const Slice& slice) {
  return {basis, layout, slice, best_placement(basis, layout, slice)};
}

ServingCost<double> serving_cost(const ServingSystem& system, const ServeLayout& layout, const Slice& slice) {
  return serving_cost(ServeBasis<double>({}, system), layout, slice);
}

// Engine rules: configs/stacks/*.yaml. Activation peak: the widest pair of tensors alive at once beside the residual
// stream and the normed input, for the most tokens one step takes (docs/model.md [SERVE-ACT]).

namespace {

/// Ranks that an operation's weights divide over.
double weight_ways(const Op<double>& op, const ServeLayout& l) {
  const double tensor = to_double(l.tp * l.cp);
  if (l.scheme == ServeScheme::kGathered) return op.part == Part::kExperts ? to_double(l.group()) : to_double(l.tp);
  switch (op.tp) {
    case TpRule::kColumn: return op.part == Part::kAttention ? to_double(l.tp) : tensor;
    case TpRule::kRow: return tensor;
    case TpRule::kKvColumn: return to_double(l.tp_x) * std::min(to_double(l.tp / l.tp_x), op.groups);
    case TpRule::kHeads: return to_double(l.tp);
    case TpRule::kExpert:
    case TpRule::kExpertRow: return to_double(l.group());
    case TpRule::kSequence:
    case TpRule::kWhole: break;
  }
  return op.part == Part::kEmbedding ? tensor : 1;  // the table is divided by rows
}

class MemoryBuilder {
 public:
  MemoryBuilder(const ServeBasis<double>& basis, const ServeLayout& layout)
      : basis_(basis), system_(basis.system), model_(*basis.system.model), layout_(layout) {}

  /// Of a stage's layers and, whichever it is, the larger of embedding and head, or both on one stage.
  double weights(const LayersByKind& stage) const {
    double layers = 0;
    for (const KindOps<double>& kind : basis_.kinds) {
      const double share = to_double(stage[kind.index]) / kind.layers;
      layers += kind.layers * bytes_of(kind.ops, &kind.kind) * share;
    }
    const double embedding = bytes_of(basis_.embedding, nullptr) + tower_bytes();
    const double head = bytes_of(basis_.head, nullptr);
    const double ends = layout_.pp == 1 ? embedding + head : std::max(embedding, head + tied_head());
    return layers + ends;
  }

  double activations() const {
    const double tensor = to_double(layout_.tp * layout_.cp);
    double width = 0;
    for (const KindOps<double>& kind : basis_.kinds) {
      for (const Op<double>& op : kind.ops) {
        const double gates = model_.mlp.gated ? 2 : 1;
        if (op.kind == OpKind::kMatmul) width = std::max(width, gates * op.n / weight_ways(op, layout_));
        if (op.kind == OpKind::kGroupedMatmul) width = std::max(width, op.rows * (gates * op.n + op.k) / tensor);
      }
    }
    return system_.formats.activation_bytes *
           std::max(system_.rank_chunk(layout_) * (2 * to_double(model_.d_model) + width), of_towers());
  }

  /// Elements of the widest layer of a tower, for all that one prompt shows it, or an encoder as many whole prompts as
  /// a step takes: residual stream, normed input, and what projections put out until the next operation has read it.
  double of_towers() const {
    double out = 0;
    for (const TowerSpec& tower : model_.towers) {
      ModelSpec alone = model_;
      alone.towers = {tower};
      const double wide = widest(tower_parts<double>(alone));
      const double prompts =
          tower.counted ? std::max(1.0, std::floor(system_.rank_chunk(layout_) / std::max(1.0, tower.positions))) : 1;
      if (wide > 0) out = std::max(out, prompts * tower.positions * (2 * to_double(tower.network.d_model) + wide));
    }
    return out;
  }

  /// [SERVE-SAMPLER] Whole logits of every sequence on every rank.
  double sampler() const {
    constexpr double kFp32 = 4;
    return system_.engine.sampler_copies * to_double(system_.engine.most_sequences * model_.head_width()) * kFp32;
  }

 private:
  static double widest(const std::vector<TowerPart<double>>& parts) {
    double out = 0;
    for (const TowerPart<double>& part : parts) {
      double alive = 0;
      for (const Op<double>& op : part.ops) {
        if (op.kind == OpKind::kMatmul) alive += op.n;
        const bool reads = op.kind == OpKind::kAttention || op.input != KeptInput::kNo;
        if (reads && op.input != KeptInput::kGathered) out = std::max(out, alive);
        if (reads) alive = 0;
      }
    }
    return out;
  }

  double bytes_of(const std::vector<Op<double>>& ops, const LayerKind* kind) const {
    double out = 0;
    for (const Op<double>& op : ops) {
      const double copies = op.kind == OpKind::kGroupedMatmul ? to_double(system_.redundant_experts) / op.matrices : 0;
      out += (1 + copies) * stored_bytes(op, kind, system_.formats.weights) / weight_ways(op, layout_);
    }
    return out;
  }

  /// Tensor ranks divide the layers of towers as the model's own (vLLM), where their number divides heads and width.
  double tower_bytes() const {
    double out = 0;
    for (const TowerPart<double>& part : basis_.towers) {
      for (const Op<double>& op : part.ops) {
        const double ways = part.weight_ways(op, layout_.tp);
        out += part.count * stored_bytes(op, nullptr, system_.formats.weights) / ways;
      }
    }
    return out;
  }

  /// A tied matrix is on the last stage a second time.
  double tied_head() const {
    if (!model_.tied_embeddings || model_.head_outputs) return 0;
    const double each = system_.formats.weights.bits(WeightPart::kHead) / 8;
    return to_double(model_.vocab) * to_double(model_.embedding_dim > 0 ? model_.embedding_dim : model_.d_model) *
           each / to_double(layout_.tp * layout_.cp);
  }

  const ServeBasis<double>& basis_;
  const ServingSystem& system_;
  const ModelSpec& model_;
  const ServeLayout& layout_;
};

}  // namespace

ServeMemory::ServeMemory(const ServeBasis<double>& basis, const ServeLayout& layout, Draft draft)
    : engine_(basis.system.engine), draft_(std::move(draft)) {
  const ServingSystem& system = basis.system;
  const MemoryBuilder builder(basis, layout);
  const double kv = bits_of(system.formats.kv) / 8;
  format_ = {.token_bytes = kv, .conv_bytes = system.formats.activation_bytes};
  fixed_.activations = engine_.counts_runtime ? std::max(builder.activations(), builder.sampler()) : 0;
  fixed_.graphs = engine_.graph_bytes;
  fixed_.reserve = engine_.counts_runtime ? system.efficiency.memory_reserve.value : 0;
  capacity_ = system.hw->hbm_capacity.value();
  const bool gathered = layout.scheme == ServeScheme::kGathered;
  ways_ = gathered ? 1 : to_double(layout.tp);
  batch_ways_ = to_double(layout.attention_dp) * (gathered ? to_double(layout.tp) : 1);
  if (layout.scheme == ServeScheme::kStationary2d) {
    // Heads as far as there are KV heads, sequences over the ranks that are left.
    std::int64_t heads = 1;
    for (const LayerCache& cache : basis.cache.kinds) heads = std::max(heads, std::gcd(cache.ways, layout.tp));
    ways_ = to_double(heads);
    batch_ways_ *= to_double(layout.tp / heads);
  }
  context_ways_ = to_double(layout.cp);
  share_ = engine_.share_of({.capacity = capacity_,
                             .chunk_tokens = system.chunk_tokens,
                             .ranks = layout.group(),
                             .stages = layout.pp,
                             .attention_dp = layout.attention_dp,
                             .mla = system.model->attention.mla.has_value(),
                             .own_heads = draft_.own_heads,
                             .draft_model = draft_.cache && !draft_.own_heads});
  for (const LayersByKind& layers : fullest_stages(*system.model, layout.pp)) {
    Stage stage;
    stage.weights = builder.weights(layers) + draft_.weights;
    if (basis.kinds.size() == 1) {
      stage.cache = basis.cache;
      stage.cache_share = to_double(layers[basis.kinds.front().index]) / basis.kinds.front().layers;
    } else {
      stage.cache = kv_cache(*system.model, layers);
    }
    give_room(stage);
    stages_.push_back(std::move(stage));
  }
}

void ServeMemory::give_room(Stage& stage) const {
  const double left = capacity_ - stage.weights - fixed_.activations - fixed_.graphs;
  const double outside = engine_.graphs_in_share ? 0 : fixed_.graphs;
  switch (engine_.rule) {
    case CacheRule::kAll: stage.room = left - fixed_.reserve; break;
    case CacheRule::kShareOfAll: stage.room = left + outside - (1 - share_) * capacity_; break;
    case CacheRule::kShareOfFree: stage.room = share_ * (left - fixed_.reserve); break;
    case CacheRule::kStaticShare: stage.room = share_ * capacity_ - stage.weights; break;
  }
  // The share left over must hold the runtime, and beside a static share activations and graphs.
  stage.runtime_binds = stage.room > left - fixed_.reserve;
  if (stage.runtime_binds) stage.room = left - fixed_.reserve;
}

double ServeMemory::sequence_bytes(const Stage& stage, double context) const {
  const double all = stage.cache.sequence_bytes(context, format_, static_cast<std::int64_t>(ways_)) / context_ways_;
  if (!draft_.cache) return stage.cache_share * all;
  // Sequences of a rank of the target, spread over the ranks of the draft's replicas.
  const double each = batch_ways_ / (draft_.replicas * draft_.cache->batch_ways_);
  return stage.cache_share * all + each * draft_.cache->sequence_bytes(context);
}

double ServeMemory::sequence_bytes(double context) const {
  double most = 0;
  for (const Stage& stage : stages_) most = std::max(most, sequence_bytes(stage, context));
  return most;
}

const ServeMemory::Stage& ServeMemory::fullest(double batch, double context) const {
  const double sequences = std::ceil(batch / batch_ways_);
  const auto used = [&](const Stage& s) { return s.weights + sequences * sequence_bytes(s, context); };
  const Stage* out = &stages_.front();
  for (const Stage& stage : stages_) {
    if (used(stage) > used(*out)) out = &stage;
  }
  return *out;
}

double ServeMemory::cache_room() const { return fullest(0, 0).room; }

double ServeMemory::withheld() const {
  const ServeMemoryParts used = parts(0, 0);
  return std::max(0.0, capacity_ - used.total() - cache_room());
}

ServeMemoryParts ServeMemory::parts(double batch, double context) const {
  const Stage& stage = fullest(batch, context);
  ServeMemoryParts out = fixed_;
  out.weights = stage.weights;
  out.kv = std::ceil(batch / batch_ways_) * sequence_bytes(stage, context);
  return out;
}

double ServeMemory::max_batch(double context) const {
  double most = std::numeric_limits<double>::max();
  for (const Stage& stage : stages_) {
    const double each = sequence_bytes(stage, context);
    if (stage.room <= 0 || (engine_.longest > 0 && sequence_bytes(stage, engine_.longest) > stage.room)) return 0;
    if (each > 0) most = std::min(most, std::floor(stage.room / each) * batch_ways_);
  }
  if (engine_.most_sequences > 0) most = std::min(most, to_double(engine_.most_sequences) * batch_ways_);
  return most;
}

double ServeMemory::max_context(double batch) const {
  const double sequences = std::ceil(batch / batch_ways_);
  const auto holds = [&](double context) {
    return std::all_of(stages_.begin(), stages_.end(),
                       [&](const Stage& stage) { return sequence_bytes(stage, context) <= stage.room / sequences; });
  };
  if (!holds(1)) return 0;
  double low = 1, high = 2;
  while (holds(high)) {
    low = high;
    high *= 2;
    if (high > 1e12) return std::numeric_limits<double>::infinity();
  }
  while (high - low > 1) {
    const double middle = std::floor((low + high) / 2);
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

std::string ServeMemory::equation(double batch, double context) const {
  const Stage& stage = fullest(batch, context);
  const std::string total = bytes_text(capacity_), weights = bytes_text(stage.weights);
  const std::string activations = bytes_text(fixed_.activations), graphs = bytes_text(fixed_.graphs);
  const std::string reserve = bytes_text(fixed_.reserve), room = bytes_text(stage.room);
  if (stage.runtime_binds) {
    return fmt::format("cache = {} total - {} weights - {} activations - {} graphs - {} runtime = {}", total, weights,
                       activations, graphs, reserve, room);
  }
  switch (engine_.rule) {
    case CacheRule::kAll:
      if (!engine_.counts_runtime) return fmt::format("cache = {} total - {} weights = {}", total, weights, room);
      return fmt::format("cache = {} total - {} weights - {} activations - {} runtime = {}", total, weights,
                         activations, bytes_text(fixed_.reserve + fixed_.graphs), room);
    case CacheRule::kShareOfAll:
      return fmt::format("cache = {:.4g} x {} total - {} weights - {} activations{} = {}", share_, total, weights,
                         activations, engine_.graphs_in_share ? fmt::format(" - {} graphs", graphs) : "", room);
    case CacheRule::kShareOfFree:
      return fmt::format("cache = {:.4g} x ({} total - {} weights - {} activations - {} graphs - {} runtime) = {}",
                         share_, total, weights, activations, graphs, reserve, room);
    case CacheRule::kStaticShare: break;
  }
  return fmt::format("cache = {:.4g} x {} total - {} weights = {}; the rest for activations and graphs", share_, total,
                     weights, room);
}

}  // namespace scalecalc
