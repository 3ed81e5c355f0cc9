// Engine rules: configs/stacks/*.yaml. Activation peak: the widest pair of tensors alive at once beside the residual
// stream and the normed input, for the most tokens one step takes (docs/model.md [SERVE-ACT]).
#include "serve/serve_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/scalar.h"
#include "base/units.h"

namespace scalecalc {
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

std::string bytes_text(double value) { return format_quantity(value, UnitKind::kBytes); }

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
