// Evaluates what a release of a software stack supports, and words the reason when it refuses a layout.
#include "plan/stack_supports.h"

#include <fmt/format.h>

#include <algorithm>

#include "cost/pipeline.h"

namespace scalecalc {
namespace {

/// How even the pipeline's chunks are: the same layers each; embedding and head counted as a layer; only the first and
/// last chunk different; any.
enum class ChunkSizes : std::uint8_t { kEven, kAccounted, kEnds, kUneven };
const std::vector<std::string> kChunkSizeNames{"even", "accounted", "ends", "uneven"};

ChunkSizes chunk_sizes_of(const SupportSubject& s) {
  const std::vector<ChunkShape> chunks =
      deal(s.model, s.layout.pp, s.layout.vpp, s.workload.runtime.stages, s.layout.split);
  if (chunks.size() < 2) return ChunkSizes::kEven;
  const std::int64_t first = chunks.front().layers;
  const std::int64_t last = chunks.back().layers;
  const std::int64_t middle = chunks.size() > 2 ? chunks[1].layers : first;
  const bool same = std::all_of(chunks.begin() + 1, chunks.end() - 1,
                                [&](const ChunkShape& chunk) { return chunk.layers == middle; });
  if (!same) return ChunkSizes::kUneven;
  if (first == middle && last == middle) return ChunkSizes::kEven;
  return first == last && first + 1 == middle ? ChunkSizes::kAccounted : ChunkSizes::kEnds;
}

/// The search level of each dimension, by its name.
std::uint8_t level_of(std::string_view name) {
  constexpr std::array<std::string_view, 6> kInner{"tp", "sp", "cp", "cp_comm", "ep", "etp"};
  constexpr std::array<std::string_view, 3> kPipeline{"pp", "vpp", "schedule"};
  const auto among = [&](const auto& names) { return std::find(names.begin(), names.end(), name) != names.end(); };
  if (among(kInner)) return kLevelInner;
  if (among(kPipeline)) return kLevelPipeline;
  if (name == "mb" || name == "ga") return kLevelBatch;
  if (name == "ep_overlap") return kLevelRanks;
  return name == "remat" || name == "remat_layers" || name == "loss" ? kLevelRemat : kLevelSharding;
}

template <std::size_t kCount>
std::vector<std::string> words_of(const std::array<std::string_view, kCount>& names) {
  return {names.begin(), names.end()};
}

std::int64_t least_attention(const ModelSpec& model, std::int64_t AttentionShape::*count) {
  std::int64_t out = 0;
  for (const LayerKind& kind : model.kinds) {
    if (!attends(kind.mixer)) continue;
    const std::int64_t each = model.attention.shape(kind.mixer).*count;
    if (each > 0 && (out == 0 || each < out)) out = each;
  }
  return out;
}

template <std::uint8_t kBit>
SupportQuantity offloaded(std::string name) {
  return {.name = std::move(name),
          .kind = DimensionKind::kSwitch,
          .level = kLevelOffload,
          .value = [](const SupportSubject& s) -> std::int64_t { return (s.layout.offload & kBit) != 0 ? 1 : 0; },
          .dimension = find_dimension("offload"),
          .words = {}};
}

std::vector<SupportQuantity> make_quantities() {
  std::vector<SupportQuantity> out;
  for (const LayoutDimension& d : layout_dimensions()) {
    if (d.name == "offload" || d.name == "remat" || d.name == "split") continue;  // they say two things at once
    SupportQuantity q{.name = std::string(d.name),
                      .kind = d.kind,
                      .level = level_of(d.name),
                      .value = nullptr,
                      .dimension = &d,
                      .words = {},
                      .least = d.least};
    for (std::int64_t v = d.least; d.kind == DimensionKind::kWord && v <= d.most; ++v) q.words.emplace_back(d.word(v));
    out.push_back(std::move(q));
  }
  SupportQuantity remat{.name = "remat",
                        .kind = DimensionKind::kWord,
                        .level = kLevelRemat,
                        .value = [](const SupportSubject& s) { return static_cast<std::int64_t>(s.layout.remat); },
                        .dimension = find_dimension("remat"),
                        .words = {}};
  for (int r = 0; r < kRematCount; ++r) remat.words.emplace_back(name_of(static_cast<Remat>(r)));
  out.push_back(std::move(remat));
  out.push_back({.name = "remat_layers",
                 .kind = DimensionKind::kCount,
                 .level = kLevelRemat,
                 .value = [](const SupportSubject& s) { return s.layout.remat_layers; },
                 .dimension = find_dimension("remat"),
                 .decided = [](const LayoutFilter& f) { return f.remat && f.remat_layers; },
                 .words = {}});
  out.push_back({.name = "split",
                 .kind = DimensionKind::kWord,
                 .level = kLevelPipeline,
                 .value = [](const SupportSubject& s) -> std::int64_t { return s.layout.split.chosen() ? 1 : 0; },
                 .dimension = find_dimension("split"),
                 .words = {"default", "chosen"}});
  out.push_back(offloaded<kOffloadOptimizer>("offload_optimizer"));
  out.push_back(offloaded<kOffloadWeights>("offload_weights"));
  out.push_back(offloaded<kOffloadActivations>("offload_activations"));
  out.push_back({.name = "offload_layers",
                 .kind = DimensionKind::kCount,
                 .level = kLevelOffload,
                 .value = [](const SupportSubject& s) { return s.layout.offload_layers; },
                 .dimension = find_dimension("offload"),
                 .decided = [](const LayoutFilter& f) { return f.offload && f.offload_layers; },
                 .words = {}});
  using Kind = DimensionKind;
  const auto add = [&](std::string name, Kind kind, std::uint8_t level, std::int64_t (*value)(const SupportSubject&),
                       std::vector<std::string> words = {}) {
    out.push_back({.name = std::move(name), .kind = kind, .level = level, .value = value, .words = std::move(words)});
  };
  add("data", Kind::kCount, kLevelRanks, [](const SupportSubject& s) { return s.layout.data(); });
  out.back().decided = [](const LayoutFilter& f) { return f.dp && f.fsdp; };
  add(
      "chunks", Kind::kWord, kLevelPipeline,
      [](const SupportSubject& s) { return static_cast<std::int64_t>(chunk_sizes_of(s)); }, kChunkSizeNames);
  out.back().decided = [](const LayoutFilter& f) {
    const bool without = f.schedule && *f.schedule != Schedule::kInterleaved && *f.schedule != Schedule::kGpipe;
    return f.pp && (f.vpp || without);
  };
  add("layers", Kind::kCount, 0, [](const SupportSubject& s) { return s.model.layers(); });
  add("mtp_layers", Kind::kCount, 0, [](const SupportSubject& s) { return s.model.mtp_layers; });
  add("seq", Kind::kCount, 0, [](const SupportSubject& s) { return s.workload.seq; });
  add("heads", Kind::kCount, 0,
      [](const SupportSubject& s) { return least_attention(s.model, &AttentionShape::heads); });
  add("kv_heads", Kind::kCount, 0,
      [](const SupportSubject& s) { return least_attention(s.model, &AttentionShape::kv_heads); });
  add("moe", Kind::kSwitch, 0, [](const SupportSubject& s) -> std::int64_t { return s.model.moe ? 1 : 0; });
  add("mla", Kind::kSwitch, 0,
      [](const SupportSubject& s) -> std::int64_t { return s.model.attention.mla.has_value() ? 1 : 0; });
  add("experts", Kind::kCount, 0, [](const SupportSubject& s) { return s.model.moe ? s.model.moe->experts : 0; });
  add(
      "precision", Kind::kWord, 0,
      [](const SupportSubject& s) -> std::int64_t {
        return std::find(kPrecisionNames.begin(), kPrecisionNames.end(), s.workload.precision.name) -
               kPrecisionNames.begin();
      },
      words_of(kPrecisionNames));
  add(
      "fp8_recipe", Kind::kWord, 0,
      [](const SupportSubject& s) { return static_cast<std::int64_t>(s.workload.scaling()); }, words_of(kScalingNames));
  add(
      "graphs", Kind::kWord, 0, [](const SupportSubject& s) { return static_cast<std::int64_t>(s.workload.graphs); },
      words_of(kGraphCaptureNames));
  add(
      "tp_overlap", Kind::kWord, 0,
      [](const SupportSubject& s) { return static_cast<std::int64_t>(s.workload.tp_overlap); },
      words_of(kCommOverlapNames));
  add("attention_dp", Kind::kCount, kLevelInner, [](const SupportSubject& s) { return s.attention_dp; });
  add("speculative", Kind::kSwitch, 0, [](const SupportSubject& s) -> std::int64_t { return s.speculative ? 1 : 0; });
  add("nvidia", Kind::kSwitch, 0,
      [](const SupportSubject& s) -> std::int64_t { return s.hw.family.starts_with("nvidia") ? 1 : 0; });
  add("torus", Kind::kSwitch, 0, [](const SupportSubject& s) -> std::int64_t { return s.hw.is_torus() ? 1 : 0; });
  return out;
}

std::int64_t value_of_quantity(const SupportQuantity& quantity, const SupportSubject& subject) {
  return quantity.value == nullptr ? quantity.dimension->value(subject.layout) : quantity.value(subject);
}

FactGroup group_of(std::uint8_t levels) {
  const auto within = [&](int of) { return (levels & ~of) == 0; };
  if (levels == 0) return FactGroup::kQuestion;
  if (within(kLevelInner)) return FactGroup::kInner;
  if (within(kLevelPipeline)) return FactGroup::kPipeline;
  if (within(kMemberLevels)) return FactGroup::kMember;
  if (within(kMemberLevels | kLevelSharding)) return FactGroup::kSharding;
  if (within(kLevelRemat)) return FactGroup::kRemat;
  if (within(kMemberLevels | kLevelRemat)) return FactGroup::kRecipe;
  return within(kMemberLevels | kLevelRemat | kLevelOffload) ? FactGroup::kOffload : FactGroup::kLayout;
}

}  // namespace

std::span<const SupportQuantity> support_quantities() {
  static const std::vector<SupportQuantity> kAll = make_quantities();
  return kAll;
}

bool SupportCondition::holds(const SupportSubject& subject) const {
  const std::int64_t left = value_of_quantity(*of, subject);
  if (relation == Relation::kIs && !product) {
    return (std::find(values.begin(), values.end(), left) != values.end()) != negated;
  }
  std::int64_t right = factor;
  for (const SupportQuantity* each : factors) right *= value_of_quantity(*each, subject);
  bool out = false;
  switch (relation) {
    case Relation::kIs: out = left == right; break;
    case Relation::kAbove: out = left > right; break;
    case Relation::kAtLeast: out = left >= right; break;
    case Relation::kBelow: out = left < right; break;
    case Relation::kAtMost: out = left <= right; break;
    case Relation::kMultipleOf: out = right > 0 && left % right == 0; break;
  }
  return out != negated;
}

bool SupportCondition::decided(const LayoutFilter& pins) const {
  const auto by = [&](const SupportQuantity& q) {
    if (q.decided != nullptr) return q.decided(pins);
    return q.dimension == nullptr || q.dimension->pin(pins).has_value();
  };
  return by(*of) && std::all_of(factors.begin(), factors.end(), [&](const auto* each) { return by(*each); });
}

std::uint8_t SupportCondition::levels() const {
  int out = of->level;
  for (const SupportQuantity* each : factors) out |= each->level;
  return static_cast<std::uint8_t>(out);
}

bool SupportFact::refuses(const SupportSubject& subject) const {
  return std::all_of(refused_if.begin(), refused_if.end(),
                     [&](const SupportCondition& condition) { return condition.holds(subject); });
}

void StackRelease::group_facts() {
  groups = {};
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (!facts[i].recall) groups[static_cast<std::size_t>(group_of(facts[i].levels))] |= FactSet{1} << i;
  }
}

std::optional<std::size_t> StackRelease::refusal(FactGroup group, const SupportSubject& subject) const {
  return first_fact(of(group), [&](std::size_t fact) { return facts[fact].refuses(subject); });
}

std::optional<std::size_t> StackRelease::refusal(const SupportSubject& subject) const {
  for (std::size_t g = 0; g < kFactGroups; ++g) {
    if (const auto found = refusal(static_cast<FactGroup>(g), subject)) return found;
  }
  return std::nullopt;
}

FactSet StackRelease::on_another_loss() const {
  const auto on_loss = [](const SupportQuantity* quantity) { return quantity->name == "loss"; };
  const auto asks = [&](const SupportCondition& condition) {
    return on_loss(condition.of) || std::any_of(condition.factors.begin(), condition.factors.end(), on_loss);
  };
  FactSet refusing = 0, out = of(FactGroup::kOffload) | of(FactGroup::kLayout);
  for (const FactSet group : groups) refusing |= group;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const bool any = std::any_of(facts[i].refused_if.begin(), facts[i].refused_if.end(), asks);
    if (any) out |= refusing & FactSet{1} << i;
  }
  return out;
}

std::vector<StackCut> stack_cuts(const SearchStats& stats) {
  std::vector<StackCut> out;
  for (std::size_t i = 0; i < stats.stack.size(); ++i) {
    if (stats.stack[i] == 0) continue;
    const SupportFact& fact = stats.launcher->facts[i];
    const auto same =
        std::find_if(out.begin(), out.end(), [&](const StackCut& cut) { return cut.fact->name == fact.name; });
    if (same == out.end()) {
      out.push_back({&fact, stats.stack[i]});
    } else {
      same->layouts += stats.stack[i];
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const StackCut& a, const StackCut& b) { return a.layouts > b.layouts; });
  return out;
}

std::string fact_text(const StackRelease& release, const SupportFact& fact) {
  return fmt::format("{}: {} ({})", release.name(), fact.says, fact.source);
}

}  // namespace scalecalc
