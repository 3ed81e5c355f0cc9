#include "serve/serving_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"

namespace scalecalc {
namespace {

/// How one chip sees a replica's sequences: those of its attention-data rank and of the pipeline stage's turn.
double on_a_rank(double sequences, const ServeLayout& layout) {
  if (sequences <= 0) return 0;
  const double split = layout.scheme == ServeScheme::kGathered ? to_double(layout.tp) : 1;
  return std::ceil(sequences / (to_double(layout.attention_dp * layout.pp) * split));
}

}  // namespace

template <class R>
ServingCost<R>::ServingCost(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice,
                            const Placement& placement)
    : layout_(layout), terms_(step_terms(basis, layout, slice, placement)) {}

template <class R>
ServeTime<R> ServingCost<R>::step(const ServeStep& step) const {
  const double sequences = on_a_rank(step.decode_sequences, layout_);
  const double prompts = on_a_rank(step.prefill_sequences, layout_);
  StepRows<R> rows;
  rows.sequences = R(sequences);
  rows.decode = R(sequences * step.tokens_each);
  rows.context = R(step.context);
  rows.prompts = R(prompts);
  rows.prefill = R(prompts * step.prefill_tokens);
  rows.cached = R(step.cached);
  rows.logits = R(sequences * step.tokens_each + prompts * (step.all_logits ? step.prefill_tokens : 1));
  return time_of(terms_, rows);
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
  const double at_once = to_double(layout_.attention_dp * layout_.pp) *
                         (layout_.scheme == ServeScheme::kGathered ? to_double(layout_.tp) : 1);
  return prefill(tokens, cached, at_once).total() / R(at_once);
}

/// [SERVE-STEADY] Each step q = n S / G tokens of prompts arrive on a rank, n of its sequences generating G tokens
/// each. They are taken in lumps of c tokens, r = q / c a step: beside the sequences that decode, if r < 1; otherwise
/// every step takes one, and each sequence decodes in every r-th.
template <class R>
SteadyTimes<R> ServingCost<R>::steady(double batch, const ServeLoad& load) const {
  const double n = on_a_rank(batch, layout_);
  const double arriving = n * load.prompt / load.generate;
  const double lump = std::max(std::min(load.prompt, load.chunk), std::min(load.chunk, arriving));
  const double rate = lump > 0 ? arriving / lump : 0;
  const double each = std::min(lump, load.prompt);
  const auto rows = [&](double sequences, double prompts) {
    return StepRows<R>{.decode = R(sequences),
                       .sequences = R(sequences),
                       .context = R(load.context),
                       .prefill = R(prompts * each),
                       .prompts = R(prompts),
                       .cached = R(load.cached + (load.prompt - each) / 2),
                       .logits = R(sequences + prompts)};
  };
  const double prompts = each > 0 ? lump / each : 0;
  const double chunks = each > 0 ? std::ceil(load.prompt / each) : 0;
  if (rate < 1) {
    const SecondsOf<R> alone = time_of(terms_, rows(n, 0)).total();
    if (rate <= 0) return {.tpot = alone, .ttft = alone};
    const SecondsOf<R> mixed = time_of(terms_, rows(n, prompts)).total();
    return {.tpot = alone + (mixed - alone) * R(rate), .ttft = mixed * R(chunks)};
  }
  const SecondsOf<R> mixed = time_of(terms_, rows(n / rate, prompts)).total();
  return {.tpot = mixed * R(rate), .ttft = mixed * R(chunks)};
}

template <class R>
SecondsOf<R> ServingCost<R>::floor(double batch, double context) const {
  BytesOf<R> bytes(R(0.0));
  const double sequences = on_a_rank(batch, layout_);
  for (const DenseTerm<R>& t : terms_.dense) bytes += t.weight_bytes * t.layers;
  for (const ExpertTerm<R>& t : terms_.experts) {
    bytes += t.weight_bytes * t.layers *
             R(experts_touched(t.experts, t.top_k, sequences * terms_.sharing) * t.here / t.experts);
  }
  for (const CacheTerm<R>& t : terms_.caches) {
    const double reach = t.reach == Reach::kAll ? context : std::min(context, value_of(t.span));
    bytes += t.token_bytes * t.layers * R(sequences * reach / value_of(t.context_ways));
  }
  return bytes / terms_.peak_bandwidth;
}

template class ServingCost<double>;
template class ServingCost<Dual>;
template class ServingCost<Traced>;
template class ServingCost<Interval>;

std::vector<Placement> placed(const HardwareSpec& hw, const Slice& slice, const ServeLayout& layout) {
  const Degrees degrees{layout.tp, layout.cp, layout.attention_dp, layout.dp, layout.pp};
  std::vector<Placement> out = placements(hw, slice, degrees, false);
  std::erase_if(out, [&](const Placement& p) {
    Group inner, outer;
    return !fold({p.of(MeshDim::kTp)}, layout.tp_x, inner, outer) ||
           !fold({p.of(MeshDim::kTp), p.of(MeshDim::kCp), p.of(MeshDim::kFsdp)}, layout.etp, inner, outer);
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

  /// The fullest stage: as many layers as the fullest has, and the larger of embedding and head, or both on one stage.
  double weights() const {
    double layers = 0;
    for (const KindOps<double>& kind : basis_.kinds) layers += kind.layers * bytes_of(kind.ops, &kind.kind);
    const double embedding = bytes_of(basis_.embedding, nullptr);
    const double head = bytes_of(basis_.head, nullptr);
    const double ends = layout_.pp == 1 ? embedding + head : std::max(embedding, head + tied_head());
    return layers * stage_share() + ends;
  }

  double stage_share() const {
    return to_double((model_.layers() + layout_.pp - 1) / layout_.pp) / to_double(model_.layers());
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
    return system_.chunk_tokens * system_.formats.activation_bytes * (2 * to_double(model_.d_model) + width);
  }

 private:
  double bytes_of(const std::vector<Op<double>>& ops, const LayerKind* kind) const {
    double out = 0;
    for (const Op<double>& op : ops) {
      const double each = basis_.stored_bits(op.part, kind) / 8;
      const bool table = op.part == Part::kEmbedding;
      const double matrix = op.tied ? 0 : op.weight_parameters();
      out += (matrix * each + op.extra_parameters * (table ? each : 2)) / weight_ways(op, layout_);
    }
    return out;
  }

  /// A tied matrix is on the last stage a second time.
  double tied_head() const {
    if (!model_.tied_embeddings) return 0;
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

ServeMemory::ServeMemory(const ServeBasis<double>& basis, const ServeLayout& layout, double draft)
    : engine_(basis.system.engine), cache_(basis.cache) {
  const ServingSystem& system = basis.system;
  const MemoryBuilder builder(basis, layout);
  const double kv = bits_of(system.formats.kv) / 8;
  format_ = {.token_bytes = kv, .index_bytes = kv, .conv_bytes = system.formats.activation_bytes};
  fixed_.weights = builder.weights() + draft;
  fixed_.activations = engine_.counts_runtime ? builder.activations() : 0;
  fixed_.graphs = engine_.graph_bytes;
  fixed_.reserve = engine_.counts_runtime ? system.efficiency.memory_reserve.value : 0;
  capacity_ = system.hw->hbm_capacity.value();
  stage_share_ = builder.stage_share();
  const bool gathered = layout.scheme == ServeScheme::kGathered;
  ways_ = gathered ? 1 : to_double(layout.tp);
  batch_ways_ = to_double(layout.attention_dp) * (gathered ? to_double(layout.tp) : 1);
  if (layout.scheme == ServeScheme::kStationary2d) {
    // Heads as far as there are KV heads, sequences over the ranks that are left.
    std::int64_t heads = 1;
    for (const LayerCache& cache : cache_.kinds) heads = std::max(heads, std::gcd(cache.ways, layout.tp));
    ways_ = to_double(heads);
    batch_ways_ *= to_double(layout.tp / heads);
  }
  context_ways_ = to_double(layout.cp);
  const double left = capacity_ - fixed_.weights - fixed_.activations - fixed_.graphs;
  switch (engine_.rule) {
    case CacheRule::kAll: room_ = left - fixed_.reserve; break;
    case CacheRule::kShareOfAll: room_ = left - (1 - engine_.share) * capacity_; break;
    case CacheRule::kShareOfFree: room_ = engine_.share * (left - fixed_.reserve); break;
    case CacheRule::kStaticShare: room_ = engine_.share * capacity_ - fixed_.weights; break;
  }
}

double ServeMemory::sequence_bytes(double context) const {
  return stage_share_ * cache_.sequence_bytes(context / context_ways_, format_, static_cast<std::int64_t>(ways_));
}

double ServeMemory::withheld() const { return std::max(0.0, capacity_ - fixed_.total() - room_); }

ServeMemoryParts ServeMemory::parts(double batch, double context) const {
  ServeMemoryParts out = fixed_;
  out.kv = std::ceil(batch / batch_ways_) * sequence_bytes(context);
  return out;
}

double ServeMemory::max_batch(double context) const {
  const double each = sequence_bytes(context);
  if (room_ <= 0) return 0;
  double most = each > 0 ? std::floor(room_ / each) * batch_ways_ : std::numeric_limits<double>::max();
  if (engine_.most_sequences > 0) most = std::min(most, to_double(engine_.most_sequences) * batch_ways_);
  return most;
}

double ServeMemory::max_context(double batch) const {
  const double each = room_ / std::ceil(batch / batch_ways_);
  if (sequence_bytes(1) > each) return 0;
  double low = 1, high = 2;
  while (sequence_bytes(high) <= each) {
    low = high;
    high *= 2;
    if (high > 1e12) return std::numeric_limits<double>::infinity();
  }
  while (high - low > 1) {
    const double middle = std::floor((low + high) / 2);
    (sequence_bytes(middle) <= each ? low : high) = middle;
  }
  return low;
}

std::string ServeMemory::equation() const {
  const std::string total = bytes_text(capacity_), weights = bytes_text(fixed_.weights);
  const std::string activations = bytes_text(fixed_.activations), graphs = bytes_text(fixed_.graphs);
  const std::string reserve = bytes_text(fixed_.reserve), room = bytes_text(room_);
  switch (engine_.rule) {
    case CacheRule::kAll:
      if (!engine_.counts_runtime) return fmt::format("cache = {} total - {} weights = {}", total, weights, room);
      return fmt::format("cache = {} total - {} weights - {} activations - {} runtime = {}", total, weights,
                         activations, bytes_text(fixed_.reserve + fixed_.graphs), room);
    case CacheRule::kShareOfAll:
      return fmt::format("cache = {:g} x {} total - {} weights - {} activations - {} graphs = {}", engine_.share, total,
                         weights, activations, graphs, room);
    case CacheRule::kShareOfFree:
      return fmt::format("cache = {:g} x ({} total - {} weights - {} activations - {} graphs - {} runtime) = {}",
                         engine_.share, total, weights, activations, graphs, reserve, room);
    case CacheRule::kStaticShare: break;
  }
  return fmt::format("cache = {:g} x {} total - {} weights = {}; the rest for activations and graphs", engine_.share,
                     total, weights, room);
}

}  // namespace scalecalc
