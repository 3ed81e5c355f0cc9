// Lists the operations of one engine step with the coefficients of their time.
#include "serve/serve_work.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "model/op_list.h"
#include "model/stored_bytes.h"
#include "network/latency.h"
#include "serve/step_operations.h"
#include "serve/term_builder.h"

namespace scalecalc {
namespace {

/// Memories of the whole chip that hold what one operation hands to the next.
double onchip_bytes(const HardwareSpec& hw) {
  double out = 0;
  for (const char* name : {"vmem", "cmem", "l2", "llc", "sram"}) {
    const MemoryLevel* level = hw.onchip.find(name);
    if (level != nullptr && level->per == MemoryOwner::kChip && level->capacity) out += level->capacity->value();
  }
  return out;
}

}  // namespace

template <class R>
ServeBasis<R>::ServeBasis(const Reader<R>& reader, const ServingSystem& s) : system(s) {
  const ModelSpec& model = *system.model;
  QuantizationSpec& weights = system.formats.weights;
  if (model.quantization && model.quantization->weights == weights.weights) weights.block = model.quantization->block;
  dims = read_dims(reader, model);
  chip = read_chip(reader, *system.hw, system.efficiency, format_of(16));
  rates = read_serving(reader, *system.hw, system.efficiency, format_of(16), chip);
  network = read_network(reader, *system.hw, system.efficiency, true);
  overlap = read_overlap(reader, system.efficiency);
  peak_bandwidth = read(reader, system.hw->hbm_bandwidth, "hw.hbm.bandwidth", system.hw->hbm_source);
  onchip = read(reader, Bytes(onchip_bytes(*system.hw)), "hw.onchip", system.hw->onchip.source);
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    const auto count = std::count(model.layer_kind.begin(), model.layer_kind.end(), static_cast<std::uint8_t>(k));
    if (count == 0) continue;
    kinds.push_back({model.kinds[k], static_cast<double>(count), layer_ops(model, model.kinds[k], dims), k});
  }
  embedding = lookup_ops(model, dims);
  towers = tower_parts<R>(model);
  head = head_ops(model, dims);
  cache = kv_cache(model);
  const double skew = system.efficiency.serving.expert_skew.value;
  if (system.expert_load) {
    chances = std::shared_ptr<const ExpertChances>(system.expert_load, &system.expert_load->chances());
  } else if (model.moe && skew > 0) {
    chances = std::make_shared<const ExpertChances>(ExpertChances::zipf(*model.moe, skew));
  }
}

template <class R>
DType ServeBasis<R>::format_of(double bits) const {
  const DType compute = system.formats.compute;
  if (bits < 16 || bytes_per_element(compute) >= 2) return compute;
  return system.hw->matmul_peak[static_cast<std::size_t>(DType::kBf16)] ? DType::kBf16 : DType::kFp16;
}

template <class R>
double ServeBasis<R>::format_bits(Part part, const LayerKind* kind) const {
  return bits_of(system.formats.weights.format(weight_part(part, kind)));
}

template <class R>
Scaling ServeBasis<R>::scaling(Part part, const LayerKind* kind) const {
  return system.formats.weights.by_blocks(weight_part(part, kind)) ? Scaling::kBlock : Scaling::kCurrent;
}

template <class R>
double ServeBasis<R>::stored_bits(Part part, const LayerKind* kind) const {
  return system.formats.weights.bits(weight_part(part, kind));
}

template struct ServeBasis<double>;
template struct ServeBasis<Dual>;
template struct ServeBasis<Traced>;

// Sources: FLOPs, bytes and the roofline of an operation: scaling book, chapters 4 and 7. Absorbed MLA: DeepSeek-V2,
// arXiv:2405.04434 section 2.1.2. Two-dimensional and gathered weights: Pope et al. 2022, arXiv:2211.05102 section 3.2.
// Contexts kept in parts: Helix, arXiv:2507.07120. Expected distinct experts: balls into bins.

template <class R>
double touched_here(const StepTerms<R>& terms, const ExpertTerm<R>& term, double tokens) {
  const double all = terms.chances ? terms.chances->touched(tokens) : experts_touched(term.experts, term.top_k, tokens);
  return all * term.here / term.experts;
}

template <class R>
ServingRates<R> read_serving(const Reader<R>& reader, const HardwareSpec& hw, const Efficiency& e, DType attention,
                             ChipRates<R>& chip) {
  const auto path = [](const char* name) { return "efficiency.serving." + std::string(name); };
  const auto in = [&](const Coefficient& c, const char* name) {
    return reader.input(c.value, path(name), c.source, {}, c.error);
  };
  const auto seconds = [&](const Coefficient& c, const char* name) {
    return read(reader, Seconds(c.value), path(name), c.source, c.error);
  };
  const ServingEfficiency& s = e.serving;
  const BytesPerSecondOf<R> peak = read(reader, hw.hbm_bandwidth, "hw.hbm.bandwidth", hw.hbm_source);
  ServingRates<R> out;
  out.other = chip.hbm;
  out.weights = s.weight_read.value > 0 ? peak * in(s.weight_read, "weight_read") : chip.hbm;
  out.kv = s.kv_read.value > 0 ? peak * in(s.kv_read, "kv_read") : chip.hbm;
  out.dequantise = in(s.dequantise, "dequantise");
  out.expert_read = in(s.expert_read, "expert_read");
  const R matmul = in(s.matmul, "matmul");
  for (FlopsPerSecondOf<R>& rate : chip.matmul) rate = rate * matmul;
  chip.half_rows = R(0.0);  // kernels of few rows divide the contraction instead; `blend` says what they lose
  if (s.attention_forward.value > 0) {
    const std::size_t a = static_cast<std::size_t>(attention);
    chip.peak_attention_forward = read(reader, hw.matmul_peak[a].value_or(FlopsPerSecond(0)),
                                       "hw.compute.matmul." + std::string(kDTypeNames[a]), hw.compute_source) *
                                  in(s.attention_forward, "attention_forward");
  }
  if (s.grouped_matmul.value > 0) chip.grouped = in(s.grouped_matmul, "grouped_matmul");
  chip.grouped_half_rows = in(s.grouped_half_rows, "grouped_half_rows");
  out.blend = in(s.blend, "blend");
  out.overlap = in(s.overlap, "overlap");
  out.imbalance = in(s.expert_imbalance, "expert_imbalance");
  out.layer_overhead = seconds(s.layer_overhead, "layer_overhead");
  out.step_overhead = seconds(s.step_overhead, "step_overhead");
  out.sequence_overhead = seconds(s.sequence_overhead, "sequence_overhead");
  return out;
}

template <class R>
StepTerms<R> step_terms(const ServeBasis<R>& basis, const ServeLayout& layout, const Slice& slice,
                        const Placement& placement) {
  TermBuilder<R> builder(basis, layout);
  StepTerms<R> out = builder.build();
  add_collectives(basis, layout, slice, placement, builder, out);
  return out;
}

namespace {

/// Which memory an operation waits for.
enum class MemoryCause : std::uint8_t { kWeights, kCache, kActivations };

/// One operation of a step: of one layer, and of how many.
template <class R>
struct OperationWork {
  std::string_view name;
  MemoryCause memory = MemoryCause::kWeights;
  R layers{1.0};
  FlopsOf<R> flops;
  FlopsPerSecondOf<R> rate;
  BytesOf<R> bytes;
  BytesPerSecondOf<R> bandwidth;
  std::span<const double> on_stages;  ///< layers of one pass on each of the mixes
};

template <class R>
SecondsOf<R> flops_time(const FlopsOf<R>& flops, const FlopsPerSecondOf<R>& rate) {
  return value_of(rate) > 0 ? flops / rate : SecondsOf<R>(R(0.0));
}

/// [SERVE-OP] FLOPs and bytes of an operation, put under the larger: max(f, b) in the ideal, and with blend 1
/// (f^4 + b^4)^(1/4), which measured kernels follow where neither clearly binds.
template <class R>
class CauseAdder {
 public:
  CauseAdder(const R& blend, ServeTime<R>& out) : blend_(blend), out_(out) {}

  /// What it adds.
  SecondsOf<R> operator()(const OperationWork<R>& op) const {
    constexpr std::string_view kSource = "max(FLOPs / rate, bytes / HBM bandwidth), book ch. 1 and 7; [SERVE-OP]";
    const SecondsOf<R> flops =
        named(flops_time(op.flops, op.rate), op.name, "FLOPs / rate of one layer", "compute time of");
    const SecondsOf<R> bytes =
        named(op.bytes / op.bandwidth, op.name, "bytes / bandwidth of one layer", "memory time of");
    const bool by_flops = value_of(flops) > value_of(bytes);
    SecondsOf<R> time = by_flops ? flops : bytes;
    if (value_of(blend_) > 0 && value_of(time) > 0) {
      using scalecalc::sqrt;
      const R ratio = by_flops ? bytes / flops : flops / bytes;
      const R square = ratio * ratio;
      time = time * sqrt(sqrt(R(1.0) + blend_ * square * square));
    }
    const SecondsOf<R> all = named(time * op.layers, op.name, kSource, "all layers'");
    (by_flops ? out_.compute : memory_of(op.memory)) += all;
    return all;
  }

 private:
  SecondsOf<R>& memory_of(MemoryCause cause) const {
    if (cause == MemoryCause::kCache) return out_.kv;
    return cause == MemoryCause::kWeights ? out_.weights : out_.activations;
  }

  const R& blend_;
  ServeTime<R>& out_;
};

/// The same, and of layers what each of the mixes takes.
template <class R>
class StageAdder {
 public:
  StageAdder(const StepTerms<R>& terms, ServeTime<R>& out, std::vector<SecondsOf<R>>& stages)
      : all_(terms.rates.blend, out), parts_(terms.parts), stages_(stages) {}

  void operator()(const OperationWork<R>& op) const {
    const SecondsOf<R> all = all_(op);
    for (std::size_t s = 0; s < op.on_stages.size(); ++s) {
      stages_[s] += all * R(op.on_stages[s] * parts_ / value_of(op.layers));
    }
  }

 private:
  CauseAdder<R> all_;
  double parts_;
  std::vector<SecondsOf<R>>& stages_;
};

/// [SERVE-ONCHIP] Activations that fit in the chip's own memory never reach HBM.
template <class R>
BytesOf<R> spilled(const StepTerms<R>& terms, const BytesOf<R>& activations) {
  return max(BytesOf<R>(R(0.0)), activations - terms.onchip);
}

/// Each part of a step passes all layers; logits are taken once.
template <class R>
R passes(const StepTerms<R>& terms, const R& layers, bool logits = false) {
  return terms.parts == 1 || logits ? layers : layers * R(terms.parts);
}

/// `head`: of what the last stage alone does.
template <class R, class Visit>
void visit_dense(const StepTerms<R>& terms, const StepRows<R>& rows, const Visit& visit, bool head = false) {
  const R all = rows.rows();
  for (const DenseTerm<R>& t : terms.dense) {
    if (head && !t.logits) continue;
    const R& m = t.logits ? rows.logits : all;
    visit({t.name, MemoryCause::kWeights, passes(terms, t.layers, t.logits), t.flops * m, t.rate,
           t.weight_bytes + spilled(terms, t.row_bytes * m), t.bandwidth, t.on_stages});
  }
}

/// [TOWERS] Images pass their tower before the prompt's tokens: of each step's share of a prompt, as large a share.
/// `first_stage`: what the first stage alone does.
template <class R, class Visit>
void visit_towers(const StepTerms<R>& terms, const StepRows<R>& rows, const Visit& visit, bool first_stage = false) {
  if (value_of(rows.prefill) <= 0) return;
  for (const DenseTerm<R>& t : terms.towers) {
    if (first_stage && t.name == kCrossKeysValues) continue;  // each layer's own
    visit({t.name, MemoryCause::kWeights, passes(terms, t.layers), t.flops * rows.prefill, t.rate,
           t.weight_bytes + spilled(terms, t.row_bytes * rows.prefill), t.bandwidth, t.on_stages});
  }
  for (const VectorTerm<R>& t : terms.tower_vectors) {
    visit({t.name, MemoryCause::kActivations, passes(terms, t.layers), t.flops * rows.prefill, terms.vector_rate,
           spilled(terms, t.bytes * rows.prefill), terms.rates.other, t.on_stages});
  }
}

/// The rows of all ranks that share the experts meet there; the slowest rank sets the pace.
template <class R, class Visit>
void visit_experts(const StepTerms<R>& terms, const StepRows<R>& rows, const Visit& visit) {
  if (terms.experts.empty()) return;
  const R tokens = rows.asked() * R(terms.sharing);
  const ExpertTerm<R>& any = terms.experts.front();
  const R share(any.here / any.experts);
  const R touched = named(R(touched_here(terms, any, value_of(tokens))), "experts touched on a chip",
                          "sum of 1 - (1 - p)^T over experts, p = k/E if every one is as likely; of its share");
  const R routed = tokens * R(any.top_k) * share * (value_of(share) < 1 ? terms.rates.imbalance : R(1.0));
  for (const ExpertTerm<R>& t : terms.experts) {
    const MatmulTerm<R>& m = t.matmul;
    visit({t.name, MemoryCause::kWeights, passes(terms, t.layers), m.row_flops * m.padded(routed, touched), m.rate,
           m.matrix_bytes * touched + spilled(terms, m.row_bytes * routed), t.bandwidth, t.on_stages});
  }
}

/// Tokens that the new ones of a prompt attend to, from `cached` on, each once.
template <class R>
R reached_by_prompt(const CacheTerm<R>& t, const R& cached, const R& tokens) {
  const R whole = cached + tokens;
  const R after = whole * mean_context(t.reach, t.span, whole);
  return value_of(cached) > 0 ? after - cached * mean_context(t.reach, t.span, cached) : after;
}

/// [SERVE-SPARSE] FLOPs of the new tokens of a prompt. Those that attend to what an indexer picks do so in the latent's
/// form, as decoding does, once there is a choice; before, every token attends to all, in the expanded form, unless
/// these are so few that what is cached before them is not worth expanding.
template <class R>
FlopsOf<R> prompt_attention(const CacheTerm<R>& t, const R& cached, const R& tokens) {
  const R all = reached_by_prompt(t, cached, tokens);
  const FlopsOf<R> expanded = t.cached_flops * cached;
  if (!t.latent_beyond) return t.prefill_flops * all + expanded;
  if (value_of(cached) >= value_of(t.span)) return t.decode_flops * all;
  const R dense = value_of(cached + tokens) > value_of(t.span) ? reached_by_prompt(t, cached, t.span - cached) : all;
  const FlopsOf<R> without_choice = min(t.prefill_flops * dense + expanded, t.decode_flops * dense);
  return without_choice + t.decode_flops * (all - dense);
}

template <class R, class Visit>
void visit_caches(const StepTerms<R>& terms, const StepRows<R>& rows, const Visit& visit) {
  for (const CacheTerm<R>& t : terms.caches) {
    const R layers = passes(terms, t.layers);
    if (value_of(rows.decode) > 0) {
      const R context = reached(t, rows.context) / t.context_ways;
      const FlopsOf<R> flops = (t.decode_flops * context + t.row_flops) * rows.decode;
      const BytesOf<R> bytes =
          (t.token_bytes * context + t.state_bytes) * rows.sequences + spilled(terms, t.row_bytes * rows.decode);
      visit({t.name, MemoryCause::kCache, layers, flops, t.rate, bytes, terms.rates.kv, t.on_stages});
    }
    if (value_of(rows.prefill) > 0) {
      const R each = rows.prefill / rows.prompts;
      const FlopsOf<R> flops =
          prompt_attention(t, rows.cached, each) * rows.prompts / t.context_ways + t.row_flops * rows.prefill;
      const BytesOf<R> bytes =
          (t.token_bytes * reached(t, rows.cached + each) / t.context_ways + t.state_bytes) * rows.prompts +
          spilled(terms, t.row_bytes * rows.prefill);
      const R context = reached_by_prompt(t, rows.cached, each) / each;
      visit({t.name, MemoryCause::kCache, layers, flops, t.prompt_rate(context), bytes, terms.rates.kv, t.on_stages});
    }
  }
}

template <class R, class Visit>
void visit_vectors(const StepTerms<R>& terms, const StepRows<R>& rows, const Visit& visit, bool head = false) {
  const R all = rows.rows();
  for (const VectorTerm<R>& t : terms.vectors) {
    if (head && !t.logits) continue;
    const R& m = t.logits ? rows.logits : all;
    visit({t.name, MemoryCause::kActivations, passes(terms, t.layers, t.logits), t.flops * m, terms.vector_rate,
           spilled(terms, t.bytes * m), terms.rates.other, t.on_stages});
  }
}

/// Every operation of a step, in the order in which their times are summed.
template <class R, class Visit>
void visit_operations(const StepTerms<R>& terms, const StepRows<R>& rows, const Visit& visit) {
  visit_dense(terms, rows, visit);
  visit_experts(terms, rows, visit);
  visit_caches(terms, rows, visit);
  visit_vectors(terms, rows, visit);
  visit_towers(terms, rows, visit);
}

/// Added to `stages` too: of layers, what each of the mixes takes.
template <class R>
SecondsOf<R> collectives_time(const StepTerms<R>& terms, const StepRows<R>& rows, bool of_experts,
                              std::vector<SecondsOf<R>>& stages) {
  SecondsOf<R> out(R(0.0));
  const R all = of_experts ? rows.asked() : rows.rows();
  for (const CollectiveTerm<R>& t : terms.collectives) {
    if (t.of_experts != of_experts) continue;
    if (t.of_prompts && value_of(rows.prefill) <= 0) continue;
    const R& m = t.of_prompts ? rows.prefill : t.logits ? rows.logits : all;
    SecondsOf<R> transfer = t.fixed + t.per_row * m;
    if (value_of(t.ramp) > 0) transfer += ramp_time(t.ramp, t.row_bytes * m);
    const SecondsOf<R> once = t.latency_adds ? t.latency + transfer : max(t.latency, transfer);
    out += named(once * passes(terms, t.times, t.logits), t.name,
                 "latency and transfer, book ch. 3 and 12; docs/model.md [COLL-LATENCY]", "all layers'");
    for (std::size_t s = 0; s < t.on_stages.size(); ++s) stages[s] += once * R(t.on_stages[s] * terms.parts);
  }
  return out;
}

constexpr std::array<TrafficNames, kTrafficKinds> kStepNames{
    {{"collectives", "collectives that may hide", "slowed by collectives", "collectives beyond the work",
      "exposed collectives"},
     {},
     {},
     {"expert all-to-all", "expert all-to-all that may hide", "slowed by expert all-to-all",
      "expert all-to-all beyond the work", "exposed expert all-to-all"},
     {}}};

/// [SERVE-OVERLAP] What shows of collectives, which follow each other. What experts exchange runs under the other
/// half's work where a step is cut in two, and slows it.
template <class R>
SecondsOf<R> exposed(const StepTerms<R>& terms, const SecondsOf<R>& work, const SecondsOf<R>& exchanged,
                     const SecondsOf<R>& others) {
  constexpr std::uint32_t kOneLink = 1;
  const bool halves = terms.parts > 1;
  std::array<Traffic<R>, kTrafficKinds> traffic;
  traffic[kTp] = {others, terms.rates.overlap, R(0.0), kOneLink};
  traffic[kEp] = {exchanged, halves ? terms.paired : terms.rates.overlap, halves ? terms.contention : R(0.0), kOneLink};
  return exposed(traffic, work, kStepNames);
}

/// What the layers of each of the mixes take.
template <class R>
struct StageTimes {
  explicit StageTimes(std::size_t mixes)
      : work(mixes, SecondsOf<R>(R(0.0))), exchanged(mixes, SecondsOf<R>(R(0.0))), others(exchanged) {}
  std::vector<SecondsOf<R>> work, exchanged, others;
};

/// The layers of the slowest stage, which is no faster than the mean.
template <class R>
SecondsOf<R> slowest_mix(const StepTerms<R>& terms, const StageTimes<R>& times, const SecondsOf<R>& mean) {
  SecondsOf<R> most = mean;
  for (std::size_t s = 0; s < terms.mixes.size(); ++s) {
    most = max(most, times.work[s] + exposed(terms, times.work[s], times.exchanged[s], times.others[s]));
  }
  return named(most, "layers of the slowest stage", "[SERVE-PP]: of each kind those that it has");
}

/// [SERVE-PP] Stages wait for the slowest: the one whose layers take longest, or an end, which has the towers or the
/// head beside the fewest.
template <class R>
SecondsOf<R> slowest_stage(const StepTerms<R>& terms, const StageTimes<R>& times, const SecondsOf<R>& of_layers,
                           const SecondsOf<R>& towers, const SecondsOf<R>& head) {
  const double stages = value_of(terms.stages), layers = value_of(terms.layers);
  const SecondsOf<R> fullest = terms.mixes.empty() ? of_layers * terms.uneven
                                                   : slowest_mix(terms, times, of_layers / terms.stages) * terms.stages;
  const SecondsOf<R> fewest = of_layers * R(stages * std::floor(layers / stages) / layers);
  return max(fullest, fewest + max(towers, head) * terms.stages);
}

}  // namespace

template <class R>
ServeTime<R> time_of(const StepTerms<R>& terms, const StepRows<R>& whole) {
  ServeTime<R> out;
  const StepRows<R> rows = whole.part(terms.parts);
  StageTimes<R> stages(terms.mixes.size());
  visit_operations(terms, rows, StageAdder<R>(terms, out, stages.work));
  constexpr std::string_view kOperations = "sum of the operations of all layers";
  out.compute = named(out.compute, "compute-bound operations", kOperations);
  out.weights = named(out.weights, "reading of weights", kOperations);
  out.kv = named(out.kv, "reading of the cache", kOperations);
  out.activations = named(out.activations, "other memory-bound operations", kOperations);
  const SecondsOf<R> work = named(out.local(), "work on the chips", kOperations);
  const SecondsOf<R> exchanged = collectives_time(terms, rows, true, stages.exchanged);
  const SecondsOf<R> others = collectives_time(terms, rows, false, stages.others);
  out.collectives =
      named(exposed(terms, work, exchanged, others), "exposed collectives", "[SERVE-OVERLAP], docs/model.md");
  out.overhead = named(terms.rates.layer_overhead * passes(terms, terms.layers) + terms.rates.step_overhead +
                           terms.rates.sequence_overhead * whole.sequences,
                       "overhead of the engine", "of layers, steps and sequences");
  if (value_of(terms.stages) > 1) {
    const SecondsOf<R> send = named(terms.stage_send_latency + terms.stage_send_per_row * whole.rows(),
                                    "send between stages", "latency and transfer");
    ServeTime<R> head, towers;
    const CauseAdder<R> add_head(terms.rates.blend, head);
    visit_dense(terms, rows, add_head, true);
    visit_vectors(terms, rows, add_head, true);
    visit_towers(terms, rows, CauseAdder<R>(terms.rates.blend, towers), true);
    // The head is the last stage's, the towers the first's: the collectives of the others cannot run under them.
    const SecondsOf<R> inner = work - head.local() - towers.local();
    const SecondsOf<R> of_layers = inner + exposed(terms, inner, exchanged, others);
    const SecondsOf<R> uneven =
        named(slowest_stage(terms, stages, of_layers, towers.local(), head.local()) - (work + out.collectives),
              "wait for the fullest stage",
              "[SERVE-PP]: stages times the slowest of the one with most layers and the ends, less all their work");
    out.pipeline = named(send * (terms.stages - R(1.0)) + uneven, "pipeline", "sends and waiting");
  }
  return out;
}

template <class R>
FlopsOf<R> prompt_flops(const StepTerms<R>& terms, const StepRows<R>& rows) {
  FlopsOf<R> out(R(0.0));
  for (const DenseTerm<R>& t : terms.dense) out += t.flops * (t.layers * (t.logits ? rows.prompts : rows.prefill));
  for (const DenseTerm<R>& t : terms.towers) out += t.flops * (t.layers * rows.prefill);
  for (const ExpertTerm<R>& t : terms.experts) {
    out += t.matmul.row_flops * (t.layers * rows.prefill * R(terms.sharing * t.top_k * t.here / t.experts));
  }
  for (const CacheTerm<R>& t : terms.caches) {
    const FlopsOf<R> each = prompt_attention(t, rows.cached, rows.prefill / rows.prompts);
    out += (each * rows.prompts / t.context_ways + t.row_flops * rows.prefill) * t.layers;
  }
  return out * terms.uneven;
}

std::vector<ServeOperation> step_operations(const StepTerms<double>& terms, const StepRows<double>& rows) {
  std::vector<ServeOperation> out;
  visit_operations(terms, rows.part(terms.parts), [&](const OperationWork<double>& op) {
    ServeTime<double> time;
    CauseAdder<double>(terms.rates.blend, time)(op);
    out.push_back({op.name, op.layers, op.flops.value(), op.bytes.value(), time.local().value() / op.layers});
  });
  return out;
}

#define SCALECALC_INSTANTIATE(R)                                                                              \
  template ServingRates<R> read_serving(const Reader<R>&, const HardwareSpec&, const Efficiency&, DType,      \
                                        ChipRates<R>&);                                                       \
  template StepTerms<R> step_terms(const ServeBasis<R>&, const ServeLayout&, const Slice&, const Placement&); \
  template ServeTime<R> time_of(const StepTerms<R>&, const StepRows<R>&);                                     \
  template FlopsOf<R> prompt_flops(const StepTerms<R>&, const StepRows<R>&);                                  \
  template double touched_here(const StepTerms<R>&, const ExpertTerm<R>&, double);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
