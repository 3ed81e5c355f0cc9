// Predicts measured serving runs with `scalecalc serve` and computes the errors. Steady state, static batches and
// prompts: docs/model.md [SERVE-STEADY]. The batch of a saturated engine: its own rule of memory, prompt and answer
// reserved whole (TensorRT-LLM's guaranteed-no-evict scheduler).

#include "validate/serving_validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/queueing.h"
#include "serve/serve_question.h"
#include "serve/serving_cost.h"
#include "serve/traffic.h"
#include "spec/load.h"
#include "spec/load_stack.h"

namespace scalecalc {
namespace {

std::optional<WeightFormat> format_named(const std::string& text) {
  static constexpr std::array<std::pair<std::string_view, WeightFormat>, 9> kWords{{{"nvfp4", WeightFormat::kNvfp4},
                                                                                    {"mxfp4", WeightFormat::kMxfp4},
                                                                                    {"mxfp8", WeightFormat::kMxfp8},
                                                                                    {"fp8", WeightFormat::kFp8},
                                                                                    {"int8", WeightFormat::kInt8},
                                                                                    {"int4", WeightFormat::kInt4},
                                                                                    {"fp16", WeightFormat::kFp16},
                                                                                    {"bf16", WeightFormat::kBf16},
                                                                                    {"fp32", WeightFormat::kFp32}}};
  for (const auto& [word, format] : kWords) {
    if (text.starts_with(word)) return format;
  }
  return std::nullopt;
}

/// Checkpoints keep embedding, head and router in 16 bits; those "of experts" and mxfp4 ones everything but experts.
void choose_formats(const ServeMeasurement& row, ServeQuestion& q) {
  const std::string text = lower_case(row.weights_dtype);
  const std::optional<WeightFormat> format = format_named(text);
  const std::optional<WeightFormat> kv = format_named(lower_case(row.kv_dtype));
  if (!format || !kv) {
    throw NotPredicted("the format is not modelled", fmt::format("{}, KV {}", row.weights_dtype, row.kv_dtype));
  }
  q.kv = *kv;
  QuantizationSpec& weights = q.weights.emplace();
  const auto set = [&](WeightPart part, WeightFormat as) { weights.parts[static_cast<std::size_t>(part)] = as; };
  const bool experts_only = text.find("experts") != std::string::npos || *format == WeightFormat::kMxfp4;
  if (experts_only) {
    set(WeightPart::kExperts, *format);
  } else {
    weights.weights = *format;
    // A group of 32 or so shares a 16-bit scale.
    constexpr double kGroupScaleBits = 0.5;
    const bool grouped = *format == WeightFormat::kInt4 && text.find("-g") != std::string::npos;
    weights.bits_per_weight = bits_of(*format) + (grouped ? kGroupScaleBits : 0);
    if (bits_of(*format) < 16) {
      for (const WeightPart part : {WeightPart::kEmbedding, WeightPart::kHead, WeightPart::kRouter}) {
        set(part, WeightFormat::kBf16);
      }
    }
  }
}

/// Degrees as the engine here counts them. A tensor degree that counts the attention-data ranks too is divided by them;
/// degrees that multiply to twice the chips count cores, two of a chip.
ServeLayout layout_of(const ServeMeasurement& row, const ModelSpec& model) {
  const ServeDegrees& d = row.degrees;
  ServeLayout out;
  out.tp = d.tp.value_or(1);
  out.pp = d.pp.value_or(1);
  out.attention_dp = d.attention_dp.value_or(1);
  out.tp_x = d.tp_x.value_or(1);
  if (out.tp_x > 1) out.scheme = ServeScheme::kStationary2d;
  if (d.gathered) out.scheme = ServeScheme::kGathered;
  std::int64_t ep = model.moe ? d.ep.value_or(1) : 1;
  if (out.attention_dp > 1 && out.tp == d.ep.value_or(0) && out.tp % out.attention_dp == 0) out.tp /= out.attention_dp;
  if (out.replica_chips() == 2 * row.chips) {
    std::int64_t& cores = out.tp % 2 == 0 ? out.tp : out.attention_dp;
    cores /= 2;
    if (ep % 2 == 0) ep /= 2;
  }
  out.dp = d.dp.value_or(std::max<std::int64_t>(1, row.chips / std::max<std::int64_t>(1, out.replica_chips())));
  if (out.chips() != row.chips) {
    throw NotPredicted("the degrees do not multiply to the chips",
                       fmt::format("{} on {} chips", describe(out), row.chips));
  }
  if (out.group() % ep != 0 || (model.moe && model.moe->experts % ep != 0 && ep < out.group())) {
    throw NotPredicted("the expert ranks do not divide the group", fmt::format("ep {} of {}", ep, out.group()));
  }
  out.ep = ep;
  out.etp = out.group() / ep;
  out.ep_overlap = d.ep_overlap;
  return out;
}

ModelSpec model_served(const ServeMeasurement& row, const Catalog& catalog) {
  Measurement shape{row};  // one way from a row's shape into a model
  shape.seq = static_cast<std::int64_t>(row.input_len.value_or(1) + row.output_len.value_or(0));
  return model_of(shape, catalog);
}

/// The release that its source names, or that of its date; what the source says of it beside the release's defaults.
void choose_engine(const ServeMeasurement& row, const Catalog& catalog, ServeQuestion& q) {
  const auto stack = row.stack.empty() ? nullptr : stack_spec(catalog, row.stack);
  q.no_engine = stack == nullptr || stack->serving.empty();
  if (!q.no_engine) {
    const std::string& version = engine_release_of(stack->serving, row.engine, row.date).rules.version;
    q.engine = version.empty() ? row.stack : row.stack + "@" + version;
  }
  const ServeLoadFacts& said = row.load;
  const auto set = [&](EngineFact fact, const std::optional<std::int64_t>& value) {
    if (value) q.engine_settings.push_back({.fact = fact, .engine = "", .value = to_double(*value)});
  };
  set(EngineFact::kTokens, said.chunk_tokens);
  set(EngineFact::kStream, said.stream_interval);
  set(EngineFact::kReceive, said.receive_interval);
}

ServeQuestion question_of(const ServeMeasurement& row, const Catalog& catalog) {
  ServeQuestion q{.model = row.model, .hardware = {row.chip}, .chips = row.chips};
  q.prompt = *row.input_len;
  q.generate = row.output_len.value_or(1);
  choose_formats(row, q);
  choose_engine(row, catalog, q);
  return q;
}

void require_lengths(const ServeMeasurement& row) {
  if (!row.complete) throw NotPredicted("the source leaves out what a prediction needs", row.doubt);
  const bool generates = row.phase != ServePhase::kPrefill;
  if (!row.input_len || (generates && !row.output_len)) throw NotPredicted("no lengths are given", "");
  if (generates && !row.batch && !row.saturated) throw NotPredicted("no batch is given", "");
}

ServeLoad load_of(const ServedRow& served) {
  const ServeMeasurement& row = served.row;
  ServeLoad out;
  out.prompt = *row.input_len;
  out.generate = row.output_len.value_or(1);
  // A decode row's length is what its sequences hold already, but for a batch that starts with next to nothing.
  const bool grows = row.phase != ServePhase::kDecode || out.generate > out.prompt;
  out.context = out.prompt + (grows ? out.generate / 2 : 0);
  out.chunk = served.system.chunk_tokens;
  return out;
}

/// Sequences of one replica.
double replica_batch(const ServedRow& served, const ServeBasis<double>& basis, const ServeLoad& load) {
  const ServeMeasurement& row = served.row;
  const double replicas = to_double(served.layout.dp);
  if (row.batch) return *row.batch / replicas;
  if (row.saturated) {
    const double most = ServeMemory(basis, served.layout).max_batch(load.prompt + load.generate);
    const double sent = row.load.requests ? to_double(*row.load.requests) / replicas : most;
    return std::max(1.0, std::min(most, sent));
  }
  // Prompts of one pass.
  const double tokens = row.tokens_per_chip ? *row.tokens_per_chip * to_double(served.layout.replica_chips())
                                            : load.chunk * to_double(served.layout.attention_dp);
  return std::max(1.0, std::floor(tokens / load.prompt));
}

/// Weights and caches of the batch alone are no more than the chip, whatever its engine keeps for itself.
void require_memory(const ServedRow& served) {
  if (!served.row.batch || served.row.phase == ServePhase::kPrefill) return;
  const ServeMemory memory(ServeBasis<double>({}, served.system), served.layout);
  const ServeMemoryParts parts = memory.parts(*served.row.batch / to_double(served.layout.dp), load_of(served).context);
  if (parts.weights + parts.kv <= memory.capacity()) return;
  throw NotPredicted("the batch does not fit the chips",
                     fmt::format("weights and caches of {} on chips of {}", bytes_text(parts.weights + parts.kv),
                                 bytes_text(memory.capacity())));
}

/// Seconds per token of one slot of a saturated engine. Requests that are all sent at the start fill its slots over and
/// over, and the last ones leave some of them empty.
double saturated_token_s(const ServedRow& served, const ServingCost<double>& cost, const ServeLoad& load, double batch,
                         double occupancy) {
  const auto request_s = [&](double sequences) {
    return cost.steady(std::max(1.0, sequences * occupancy), load).request.value() / occupancy;
  };
  if (!served.row.load.requests) return request_s(batch) / load.generate;
  const double sent = std::max(to_double(*served.row.load.requests) / to_double(served.layout.dp), batch);
  const double times = std::floor(sent / batch), rest = sent - times * batch;
  const double seconds = times * request_s(batch) + (rest > 0 ? request_s(rest) : 0);
  return seconds / (sent / batch) / load.generate;
}

struct Raw {
  double figure = 0;       ///< s of a replica
  double first_token = 0;  ///< s
};

Raw seconds_of(const ServedRow& served, const ServingCost<double>& cost, const ServeLoad& load, double batch,
               double occupancy) {
  switch (served.row.phase) {
    case ServePhase::kPrefill: return {cost.prefill(load.prompt, 0, batch).total().value(), 0};
    case ServePhase::kDecode: return {cost.decode_step(batch, load.context).total().value(), 0};
    case ServePhase::kThroughput:
      if (!served.row.saturated) {
        const double prompts = cost.prefill(load.prompt, 0, batch).total().value();
        return {prompts + (load.generate - 1) * cost.decode_step(batch, load.context).total().value(), prompts};
      }
      return {saturated_token_s(served, cost, load, batch, occupancy), 0};
    case ServePhase::kOnline: break;
  }
  const SteadyTimes<double> times = cost.steady(batch, load);
  // What the first token waited for is simulated (load_of_row). A rate counts the time of prompts; the time between
  // tokens only that of others'.
  const bool rate = served.row.figure == ServeFigure::kOutputRate;
  return {rate ? times.request.value() / load.generate : times.tpot.value(), 0};
}

/// Bytes that must be read, or FLOPs of prompts that must be done, at the data sheet's rates.
double floor_of(const ServedRow& served, const ServingCost<double>& cost, const ServeBasis<double>& basis,
                const ServeLoad& load, double batch) {
  if (served.row.phase != ServePhase::kPrefill) {
    const double step = cost.floor(batch, load.context).value();
    const bool whole = served.row.phase == ServePhase::kThroughput && !served.row.saturated;
    return whole ? step * load.generate : step;
  }
  const auto peak = served.hw->matmul_peak[static_cast<std::size_t>(basis.system.formats.compute)];
  double flops = 0;
  for (const KindOps<double>& kind : basis.kinds) {
    for (const Op<double>& op : kind.ops) {
      if (op.kind == OpKind::kMatmul) flops += 2 * kind.layers * op.k * op.n;
      if (op.kind == OpKind::kGroupedMatmul) flops += 2 * kind.layers * op.rows * op.k * op.n;
    }
  }
  const double time = flops * batch * load.prompt / to_double(served.layout.replica_chips()) / peak->value();
  return std::max(time, cost.floor(1, 1).value());
}

/// From the seconds of a step, a batch or a prefill to the figure of the row.
double as_figure(const ServeMeasurement& row, const ServeLoad& load, double seconds, double batch, double replicas) {
  const bool whole = row.phase == ServePhase::kThroughput && !row.saturated;
  switch (row.figure) {
    case ServeFigure::kOutputRate: return replicas * batch * (whole ? load.generate : 1) / seconds;
    case ServeFigure::kInputRate: return replicas * batch * load.prompt / seconds;
    case ServeFigure::kPrefillTime:
    case ServeFigure::kStepTime:
    case ServeFigure::kBatchTime: break;
  }
  return seconds;
}

}  // namespace

void name_stacks(std::vector<ServeMeasurement>& rows, const Catalog& catalog) {
  for (ServeMeasurement& row : rows) {
    std::string words = lower_case(row.engine);
    std::replace_if(
        words.begin(), words.end(), [](char c) { return c == ' ' || c == '.'; }, '-');
    for (std::size_t end = words.size(); end != std::string::npos && end > 0; end = words.rfind('-', end - 1)) {
      const std::optional<std::string> stack = stack_of_framework(catalog, words.substr(0, end));
      if (stack) row.stack = *stack;
      if (stack || end == 0) break;
    }
  }
}

ServedRow served_row(const ServeMeasurement& row, const Catalog& catalog, const std::vector<std::string>& set,
                     bool ideal) {
  require_lengths(row);
  ModelSpec model = model_served(row, catalog);
  static_cast<void>(chip_of(row, catalog, set, {"compute.matmul", "hbm"}));
  ServeQuestion q = question_of(row, catalog);
  q.set = set;
  q.ideal = ideal;
  ServedRow out;
  out.row = row;
  try {
    ServeAnswer resolved = resolve_serving(q, catalog, std::move(model));
    out.model = resolved.model;
    out.hw = resolved.systems.front().hw;
    out.system = resolved.systems.front().serving;
  } catch (const UserError& error) {
    throw NotPredicted("serve refuses the question", error.diagnostics().front().message);
  }
  EngineRules& engine = out.system.engine;
  engine.prompt_wait_steps = row.load.prompt_wait_steps.value_or(engine.prompt_wait_steps);
  engine.prompt_wait_share = row.load.prompt_wait_share.value_or(engine.prompt_wait_share);
  out.stack_measured = std::any_of(out.hw->stacks.begin(), out.hw->stacks.end(), [&](const StackCoefficients& s) {
    return s.basis == StackBasis::kChip && s.name == row.stack && s.efficiency.has_serving;
  });
  out.layout = layout_of(row, *out.model);
  const std::vector<Slice> slices = slices_of(*out.hw, out.layout.chips(), 1);
  if (slices.empty()) {
    throw NotPredicted("no machine of that size is built", no_slice(*out.hw, out.layout.chips(), 1).message);
  }
  out.slice = slices.front();
  try {
    out.placement = best_placement(ServeBasis<double>({}, out.system), out.layout, out.slice);
  } catch (const UserError& error) {
    throw NotPredicted("the layout cannot be placed", error.diagnostics().front().message);
  }
  require_memory(out);
  return out;
}

ServedFigures served_figures(const ServedRow& served, const Efficiency& efficiency) {
  ServingSystem system = served.system;
  system.efficiency = efficiency;
  const ServeBasis<double> basis({}, system);
  const ServingCost<double> cost(basis, served.layout, served.slice, served.placement);
  const ServeLoad load = load_of(served);
  const double replicas = to_double(served.layout.dp);
  const double batch = replica_batch(served, basis, load);
  const double occupancy = served.row.saturated ? efficiency.serving.occupancy.value : 1;
  const Raw raw = seconds_of(served, cost, load, batch, occupancy);
  ServedFigures out{.batch = batch * replicas};
  out.figure = as_figure(served.row, load, raw.figure, batch, replicas);
  out.floor = as_figure(served.row, load, floor_of(served, cost, basis, load, batch), batch, replicas);
  if (served.row.first_token && raw.first_token > 0) out.first_token = raw.first_token;
  return out;
}

std::optional<QueueFigures> served_load(const ServedRow& served) {
  const ServeLoadFacts& said = served.row.load;
  if (served.row.phase != ServePhase::kOnline || (!said.clients && !said.rate)) return std::nullopt;
  const ServeBasis<double> basis({}, served.system);
  // Lengths from a share of the longest to it have their mean in the middle.
  const auto lengths = [&](double mean) {
    return shortened(Lengths::fixed(std::llround(2 * mean / (1 + said.length_ratio))), said.length_ratio);
  };
  const RequestMix mix{.prompt = lengths(*served.row.input_len), .generate = lengths(*served.row.output_len)};
  ServerKind server = replica_server(basis, served.layout, served.slice, served.placement,
                                     {.mix = mix, .chunk = served.system.chunk_tokens});
  if (mix.largest_cached() > cache_tokens(server.rules)) return std::nullopt;
  server.front_end = front_end_of(served.system.engine);
  constexpr std::uint64_t kSeed = 1;
  if (said.clients) {
    const std::vector<ServedRequest> requests = drawn_requests(
        mix, said.requests.value_or(TrafficAsked{.clients = said.clients}.usual_client_requests()), kSeed);
    return simulate_clients(requests, *said.clients, server, served.layout.dp).figures;
  }
  constexpr std::int64_t kRequests = 2000;
  return simulate_queue(poisson_requests(mix, *said.rate / to_double(served.layout.dp), kRequests, kSeed), server)
      .figures;
}

double served_error(const ServeMeasurement& row, double predicted) {
  const bool rate = row.figure == ServeFigure::kOutputRate || row.figure == ServeFigure::kInputRate;
  return rate ? row.measured / predicted - 1 : predicted / row.measured - 1;
}

namespace {

std::vector<double> sizes_of(std::vector<double> errors) {
  for (double& error : errors) error = std::abs(error);
  return errors;
}

}  // namespace

const std::vector<std::string>& Serving::axes() {
  static const std::vector<std::string> kAxes{"chip", "stack", "phase", "batch", "model", "group"};
  return kAxes;
}

std::string group_name(const ServeMeasurement& row, const std::string& by) {
  if (by == "id") return row.id;
  if (by == "chip") return row.chip;
  if (by == "stack") return row.stack.empty() ? "not known" : row.stack;
  if (by == "phase") return std::string(kServePhaseNames[static_cast<std::size_t>(row.phase)]);
  if (by == "batch") return row.batch_class();
  if (by == "model") return row.model;
  if (by == "group") return row.group;
  internal_error("unknown axis");
}

std::string Serving::stack_named(const Catalog& catalog, const std::string& name) {
  return serving_stack(catalog, name).name;
}

PredictedServing Serving::predict(const ServeMeasurement& row, const ServeValidateQuestion& q, const Catalog& catalog,
                                  const Stop&) {
  const ServedRow served = served_row(row, catalog, q.set, q.ideal);
  const Efficiency& efficiency = served.system.efficiency;
  const ServedFigures figures = served_figures(served, efficiency);
  PredictedServing out;
  out.row = row;
  out.measured = row.measured;
  out.predicted = figures.figure;
  out.floor = figures.floor;
  out.batch = figures.batch;
  out.error = served_error(row, out.predicted);
  out.low = served_figures(served, fastest(efficiency)).figure;
  out.high = served_figures(served, slowest(efficiency)).figure;
  if (out.low > out.high) std::swap(out.low, out.high);
  out.first_token = figures.first_token;
  if (row.first_token || row.client_throughput()) {
    const std::optional<QueueFigures> load = served_load(served);
    const std::optional<double> throughput = row.client_throughput();
    if (load && throughput) out.throughput_error = load->output_tokens_per_s / *throughput - 1;
    if (load && row.first_token) out.first_token = row.load.median ? load->ttft_s.p50 : load->ttft_s.mean;
    if (out.first_token && row.first_token) out.first_token_error = *out.first_token / *row.first_token - 1;
  }
  out.layout = served.layout;
  out.by_default = !served.stack_measured;
  return out;
}

void Serving::weigh_together(std::vector<PredictedServing>& rows) {
  const auto share = [](const PredictedServing& row) { return 1 + served_error(row.row, row.floor); };
  for (PredictedServing& row : rows) {
    std::vector<double> of_chip, of_all;
    for (const PredictedServing& other : rows) {
      if (other.row.group == row.row.group) continue;
      of_all.push_back(share(other));
      if (other.row.chip == row.row.chip) of_chip.push_back(share(other));
    }
    const std::optional<double> usual = median_if_any(of_chip.empty() ? of_all : of_chip);
    if (usual) row.naive_error = share(row) / *usual - 1;
  }
}

void Serving::count(const std::vector<const PredictedServing*>& rows, Compared, ServeErrors& out) {
  std::vector<double> naive, first, throughput;
  for (const PredictedServing* row : rows) {
    if (row->naive_error) naive.push_back(*row->naive_error);
    if (row->first_token_error) first.push_back(*row->first_token_error);
    if (row->throughput_error) throughput.push_back(*row->throughput_error);
    if (row->row.first_token && !row->first_token_error) ++out.unknown_loads;
    if (served_error(row->row, row->floor) > 0) ++out.below_floor;
  }
  out.naive_mean_abs = mean_if_any(sizes_of(naive));
  out.naive_median_abs = median_if_any(sizes_of(naive));
  out.first_tokens = first.size();
  out.first_token_median_abs = median_if_any(sizes_of(first));
  out.first_token_bias = mean_if_any(first);
  out.throughputs = throughput.size();
  out.throughput_median_abs = median_if_any(sizes_of(throughput));
}

ServeValidation validate_serving(const ServeValidateQuestion& question, const Catalog& catalog,
                                 const std::function<bool()>& stop) {
  return validate_rows<Serving>(question, catalog, stop);
}

}  // namespace scalecalc
