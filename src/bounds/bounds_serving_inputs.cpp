// Reads what the serving rules need, and computes a decode step at one batch and what follows for requests.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostic.h"
#include "base/progress.h"
#include "base/scalar.h"
#include "base/units.h"
#include "bounds/bound_inputs.h"
#include "bounds/bounds_serving.h"
#include "model/accounting.h"
#include "model/kv_cache.h"
#include "model/stored_bytes.h"

namespace scalecalc {
namespace {

constexpr std::int64_t kMostChips = 16'777'216;

std::string whole_text(double value) { return group_thousands(std::llround(value)); }

/// What all parts of a checkpoint, whatever their formats, take for each parameter.
BytesOf<Traced> stored_element(const ModelSpec& model) {
  const double bytes = total_bytes(stored_weights(model, *model.quantization));
  return read(kReader, Bytes(bytes / count_parameters(model).total), "b_w",
              "the checkpoint's bytes over its parameters");
}

BytesOf<Traced> element(DType dtype, std::string_view symbol) {
  return read(kReader, Bytes(bytes_per_element(dtype)), symbol, name_of(dtype));
}

/// The figure given outright, and the assumption that says so.
template <Dim D>
std::optional<Quantity<D, Traced>> given(BoundList& list, const std::optional<double>& value, UnitKind kind,
                                         std::string_view name, std::string_view flag) {
  if (!value) return std::nullopt;
  list.assume({fmt::format("{} {}, as given in place of what follows from the model and the chip", name,
                           format_quantity(*value, kind, 4)),
               std::string(flag), "command line"});
  return read(kReader, Quantity<D>(*value), name, flag);
}

/// Elements of one sequence's cache over all layers.
struct CacheSize {
  BytesOf<Traced> per_token;   ///< one more token while no layer is full
  BytesOf<Traced> in_context;  ///< of the whole sequence
  std::int64_t limit = 0;      ///< tokens that some layers keep at most
  double states = 0;           ///< of recurrences
  double convolutions = 0;
};

void add_kind(const LayerCache& kind, const BytesOf<Traced>& element, const std::optional<Traced>& context,
              const std::string& source, CacheSize& size) {
  const Traced layers = kReader.input(static_cast<double>(kind.layers), "L", source);
  size.states += static_cast<double>(kind.layers) * kind.state_elements;
  size.convolutions += static_cast<double>(kind.layers) * kind.conv_elements;
  if (kind.token_elements <= 0) return;
  const double heads = static_cast<double>(kind.ways);
  Traced width = kReader.input(kind.token_elements / heads, heads > 1 ? "2 H" : "KV width", source);
  if (heads > 1) width = kReader.input(heads, "K", source) * width;
  BytesOf<Traced> bytes = layers * width * element;
  if (kind.index_elements > 0) {
    bytes = bytes + layers * read(kReader, Bytes(kind.index_elements * CacheFormat{}.index_bytes), "index key", source);
  }
  size.per_token = size.per_token + bytes;
  if (kind.limit > 0) size.limit = kind.limit;
  if (!context) return;
  const bool full = kind.limit > 0 && static_cast<double>(kind.limit) < context->value();
  size.in_context =
      size.in_context + bytes * (full ? kReader.input(static_cast<double>(kind.limit), "limit", source) : *context);
}

}  // namespace

ServingFormats serving_formats(const BoundsQuestion& q) {
  ServingFormats out;
  out.compute = q.serving.compute.value_or(q.compute);
  out.weights = q.weights.value_or(out.compute);
  if (!q.weights && q.model && q.model->quantization) out.stored = main_format(*q.model->quantization);
  out.activations = q.activations.value_or(out.compute);
  out.kv = q.serving.kv.value_or(out.activations);
  return out;
}

ServingInputs::ServingInputs(const BoundInputs& in, BoundList& list) : in_(in), job_(in.question().serving) {
  hbm = in.hbm();
  if (hw().publishes("hbm.capacity")) capacity = in.chip().hbm_capacity();
  formats(list);
  lengths(list);
  sizes(list);
  count_chips(list);
  times(list);
  read_price(list);
}

void ServingInputs::formats(BoundList& list) {
  const ServingFormats f = serving_formats(in_.question());
  compute = in_.compute(f.compute);
  peak = in_.chip().matmul(f.compute);
  weight_element = f.stored ? stored_element(*in_.model()) : element(f.weights, "b_w");
  activation_element = element(f.activations, "b_a");
  kv_element_ = element(f.kv, "b_kv");
  list.assume(
      {fmt::format("serving with matmuls in {}, weights in {}, activations in {}, KV cache in {}", name_of(f.compute),
                   f.stored ? name_of(*f.stored) : name_of(f.weights), name_of(f.activations), name_of(f.kv)),
       "--flops, --weights, --activations, --kv", ""});
}

void ServingInputs::lengths(BoundList& list) {
  const auto tokens = [](const std::optional<double>& value, const char* symbol, const char* flag) {
    return value ? std::optional(kReader.input(*value, symbol, flag)) : std::nullopt;
  };
  prompt = tokens(job_.prompt, "prompt", "--prompt");
  generate = tokens(job_.generate, "generate", "--generate");
  context = tokens(job_.context, "S", "--context");
  if (!context && prompt) {
    context = generate ? named(*prompt + *generate, "S", "prompt and answer") : *prompt;
    list.assume({fmt::format("sequences of {} tokens in the KV cache: the prompt{}", whole_text(context->value()),
                             generate ? " and the whole answer" : ""),
                 "--context", ""});
  }
  if (job_.batches.size() == 1) batch = kReader.input(job_.batches.front(), "B", "--batch");
  if (job_.cached && prompt && *job_.cached > prompt->value()) {
    throw UserError(fmt::format("--cached {} is more than the prompt of {} tokens", whole_text(*job_.cached),
                                whole_text(prompt->value())),
                    "tokens of the prompt that are in the prefix cache");
  }
}

BytesOf<Traced> ServingInputs::own_weights() const {
  return named(in_.parameters * weight_element, "weight_bytes", "book ch. 7: P b_w");
}

/// Quantizers leave towers alone, whether a checkpoint's or --weights: as `serve` holds them.
BytesOf<Traced> ServingInputs::weights_held() const {
  const BytesOf<Traced> own = own_weights();
  if (in_.tower_parameters <= 0) return own;
  const ModelSpec* model = in_.model();
  double bytes = in_.tower_parameters * std::max(2.0, value_of(weight_element));
  if (serving_formats(in_.question()).stored) {
    bytes = 0;
    for (const StoredWeights& row : stored_weights(*model, *model->quantization)) {
      bytes += row.part == kStoredTowers ? row.bytes : 0;
    }
  }
  return named(own + read(kReader, Bytes(bytes), "tower_bytes", "towers of the model file"), "weight_bytes",
               "book ch. 7: P b_w, and towers");
}

void ServingInputs::sizes(BoundList& list) {
  const auto weight_bytes = given<kByteDim>(list, job_.weight_bytes, UnitKind::kBytes, "weights", "--weight-bytes");
  weights = weight_bytes ? *weight_bytes : weights_held();
  weights_read = weight_bytes ? *weight_bytes : own_weights();
  total_bytes = given<kByteDim>(list, job_.total_bytes, UnitKind::kBytes, "weights and KV cache", "--total-bytes");
  kv_per_token =
      given<kByteDim>(list, job_.kv_bytes_per_token, UnitKind::kBytes, "KV cache per token", "--kv-bytes-per-token");
  const ModelSpec* model = in_.model();
  if (kv_per_token) {
    if (context) kv_per_sequence = named(*context * *kv_per_token, "kv_bytes_per_sequence", "S x KV per token");
  } else if (model != nullptr) {
    kv_of_model(*model, list);
  }
  if (model != nullptr && model->moe) {
    list.assume(Assumption{
        "every expert's weights are read in each decode step; with few sequences a step reads fewer and is shorter", "",
        "book ch. 7"}
                    .as("experts_read")
                    .is("all"));
  }
  if (total_bytes && *total_bytes < weights) {
    throw UserError(fmt::format("--total-bytes {} leaves nothing for the KV cache: the weights are {}",
                                bytes_text(total_bytes->value().value()), bytes_text(weights.value().value())),
                    "weights and KV cache of all sequences together");
  }
}

/// The cache's size from the architecture; nothing of a model whose layers keep nothing.
void ServingInputs::kv_of_model(const ModelSpec& model, BoundList& list) {
  const KvCache cache = kv_cache(model);
  CacheSize size;
  for (const LayerCache& kind : cache.kinds) add_kind(kind, kv_element_, context, model.source, size);
  const Bytes states =
      Bytes(size.states * CacheFormat{}.state_bytes + size.convolutions * activation_element.value().value());
  if (size.per_token.value().value() <= 0 && states.value() <= 0) return;
  uniform = size.limit == 0 && states.value() == 0;
  kv_per_token = named(size.per_token, "kv_bytes_per_token", "book ch. 4 and 7: 2 L K H b_kv");
  if (size.limit > 0) {
    list.assume(Assumption{
        fmt::format("some layers keep at most {} tokens of a sequence in the KV cache", group_thousands(size.limit)),
        "", model.source}
                    .as("window_tokens")
                    .is(to_double(size.limit)));
  }
  BytesOf<Traced> constant;
  if (states.value() > 0) {
    constant = read(kReader, states, "states", "of recurrent layers, in fp32");
    list.assume(Assumption{
        fmt::format("recurrent layers keep {} of each sequence, whatever its length", bytes_text(states.value())), "",
        model.source}
                    .as("recurrent_state_bytes")
                    .is(states.value()));
  }
  if (!context) return;
  kv_per_sequence = named(size.in_context + constant, "kv_bytes_per_sequence", "book ch. 7: S 2 L K H b_kv");
}

void ServingInputs::times(BoundList& list) {
  step_time = given<kSecondDim>(list, job_.step_time, UnitKind::kSeconds, "decode step", "--step-time");
  prefill_time = given<kSecondDim>(list, job_.prefill_time, UnitKind::kSeconds, "prefill", "--prefill-time");
  if (prefill_time || !prompt || !chips) return;
  Traced tokens = *prompt;
  if (const auto left = prompt_left()) tokens = tokens * *left;
  if (!in_.question().training.mfu) {
    list.assume(Assumption{"MFU of 40 % in prefill", "--mfu", "book ch. 8"}.is(assumed_mfu(in_).value()));
  }
  const SecondsOf<Traced> math = named(forward_flops() * tokens / (peak * *chips * assumed_mfu(in_)),
                                       "prefill compute time", "book ch. 8: 2 P_act T / (n C MFU)");
  const SecondsOf<Traced> load = named(weights_read / (hbm * *chips), "latency_floor", "book ch. 7: P b_w / (n W_hbm)");
  prefill_time = named(max(math, load), "prefill_time", "book ch. 7: the longer of the two");
}

std::optional<Traced> ServingInputs::prompt_left() const {
  if (job_.prefix_hit) return Traced(1.0) - kReader.input(*job_.prefix_hit, "prefix hit", "--prefix-hit");
  if (!job_.cached || !prompt) return std::nullopt;
  return (*prompt - kReader.input(*job_.cached, "cached", "--cached")) / *prompt;
}

FlopsOf<Traced> ServingInputs::forward_flops() const { return FlopsOf<Traced>(Traced(2.0) * in_.active_parameters); }

Traced ServingInputs::critical_batch() const {
  const FlopsPerByteOf<Traced> alpha = named(compute / hbm, "alpha_hbm", "book ch. 1: C / W_hbm");
  const Traced dense = alpha * (weight_element / FlopsOf<Traced>(Traced(2.0)));
  return in_.shape ? dense * in_.shape->sparsity : dense;
}

void ServingInputs::read_price(BoundList& list) {
  const PaidPrice paid = paid_price(hw(), in_.question().training.price);
  if (paid.assumed) list.assume(*paid.assumed);
  if (!paid.usd_per_chip_hour) return;
  price = read(kReader, UsdPerSecond(*paid.usd_per_chip_hour / kSecondsPerHour), "price", paid.source);
}

void ServingInputs::count_chips(BoundList& list) {
  chips = in_.chips;
  if (chips) {
    list.assume({fmt::format("one copy of the model is served on all {} chips", whole_text(chips->value())), "--chips",
                 "--chips"});
    return;
  }
  if (capacity) chips = slice_for(ceil(weights / *capacity), "n");
  if (chips) {
    list.assume(Assumption{
        fmt::format("{} chips: the smallest slice that holds the weights", whole_text(chips->value())), "--chips", ""}
                    .is(chips->value()));
  } else {
    list.leave_out("all that depends on the number of chips", "--chips: no one slice is known to hold the weights");
  }
}

std::optional<Traced> ServingInputs::slice_for(const Traced& least, const char* name) const {
  if (!hw().network.empty() && (!hw().publishes("host") || !publishes_pod(hw()))) return std::nullopt;
  std::int64_t count = 1;
  while (count <= kMostChips && (static_cast<double>(count) < least.value() || slices_of(hw(), count, 1).empty())) {
    count *= 2;
  }
  if (count > kMostChips) return std::nullopt;
  return kReader.input(static_cast<double>(count), name, "smallest power of two that is built as one slice");
}

// A decode step at one batch, and what follows for requests: scaling book, chapter 7 "Theoretical estimates" (the
// general form of the step) and chapter 8 "Thinking about throughput", "What about prefill?".

namespace {

std::string count_of(double count, const char* what) {
  return fmt::format("{} {}{}", group_thousands(std::llround(count)), what, count == 1 ? "" : "s");
}

void sizes(const ServingInputs& in, ServingPoint& point) {
  if (in.total_bytes) {
    point.total_bytes = in.total_bytes;
    point.kv_bytes = named(*in.total_bytes - in.weights, "kv_bytes", "total_bytes without the weights");
  } else if (in.kv_per_sequence) {
    point.kv_bytes = named(point.batch * *in.kv_per_sequence, "kv_bytes", "book ch. 7: B KV");
    point.total_bytes = named(in.weights + *point.kv_bytes, "total_bytes", "book ch. 7");
  }
  if (point.total_bytes && in.chips && in.capacity) {
    point.fits = point.total_bytes->value().value() <= (*in.capacity * *in.chips).value().value();
  }
}

std::string longest(const SecondsOf<Traced>& cache, const SecondsOf<Traced>& load, const SecondsOf<Traced>& math) {
  const double mlp = std::max(load.value().value(), math.value().value());
  if (cache.value().value() > mlp) return "KV cache";
  return math.value().value() > load.value().value() ? "compute" : "weights";
}

/// T = B KV / (n W_hbm) + max(2 B P_act / (n C), P b_w / (n W_hbm)).
void derive_step(const ServingInputs& in, ServingPoint& point) {
  const BytesPerSecondOf<Traced> bandwidth = in.hbm * *in.chips;
  point.load_time = named(in.weights_read / bandwidth, "load_time", "book ch. 7: P b_w / (n W_hbm)");
  point.compute_time = named(point.batch * in.forward_flops() / (in.compute * *in.chips), "compute_time",
                             "book ch. 7: 2 B P_act / (n C)");
  point.mlp_time = named(max(*point.compute_time, *point.load_time), "mlp_time", "book ch. 7: the longer of the two");
  point.mlp_compute_bound = point.compute_time->value().value() > point.load_time->value().value();
  if (!point.kv_bytes) return;
  point.kv_time = named(*point.kv_bytes / bandwidth, "kv_time", "book ch. 7: B KV / (n W_hbm)");
  point.bandwidth_step = named(*point.total_bytes / bandwidth, "bandwidth_step", "book ch. 7, small batches");
  point.bandwidth_tokens_per_s = named(point.batch / *point.bandwidth_step, "bandwidth_tokens_per_s", "book ch. 7");
  point.step = named(*point.kv_time + *point.mlp_time, "decode_step", "book ch. 7, general form");
  point.bound_by = longest(*point.kv_time, *point.load_time, *point.compute_time);
}

void step(const ServingInputs& in, ServingPoint& point) {
  if (in.step_time) {
    point.step = in.step_time;
  } else if (in.chips) {
    derive_step(in, point);
  }
  if (!point.step) return;
  point.tokens_per_s = named(point.batch / *point.step, "tokens_per_s", "book ch. 7: B / T");
  if (in.chips) {
    point.tokens_per_s_per_chip = named(*point.tokens_per_s / *in.chips, "tokens_per_s_per_chip", "book ch. 7");
  }
}

void requests(const ServingInputs& in, ServingPoint& point) {
  if (point.tokens_per_s && in.price && in.chips) {
    point.usd_per_million_tokens = named(Traced(1e6) * (*in.price * *in.chips / *point.tokens_per_s),
                                         "usd_per_million_tokens", "10^6 price n / throughput");
  }
  if (!in.generate) return;
  point.finished_per_step = named(point.batch / *in.generate, "finished_per_step", "book ch. 8, What about prefill?");
  if (in.prompt) {
    point.evicted_per_step = named(*point.finished_per_step * (*in.prompt + *in.generate), "evicted_per_step",
                                   "book ch. 8, What about prefill?");
  }
  if (!point.step) return;
  point.answer_time = named(*in.generate * *point.step, "answer_time", "book ch. 8: generate T");
  point.requests_per_s = named(point.batch / *point.answer_time, "requests_per_s", "book ch. 8: B / (generate T)");
  if (in.chips) {
    point.requests_per_s_per_chip = named(*point.requests_per_s / *in.chips, "requests_per_s_per_chip", "book ch. 8");
  }
  if (in.prefill_time) {
    point.prefill_servers = named(*in.prefill_time * *point.requests_per_s, "prefill_servers",
                                  "book ch. 8: prompts arriving x time of each");
  }
}

/// What one reads first: whether it fits, how long a step takes and why.
void conclude(const ServingInputs& in, const ServingPoint& point, BoundList& list) {
  const std::string sequences = count_of(point.batch.value(), "sequence");
  if (point.fits && !*point.fits) {
    list.conclude(fmt::format("Serving: no room for {}: weights and KV cache take {} of {}.", sequences,
                              bytes_text(point.total_bytes->value().value()),
                              bytes_text((*in.capacity * *in.chips).value().value())));
  }
  if (!point.step) return;
  list.conclude(fmt::format("Serving: a decode step of {} takes {}{}, {} tokens/s.", sequences,
                            seconds_text(point.step->value().value()),
                            point.bound_by.empty() ? "" : ", bound by " + point.bound_by,
                            format_quantity(point.tokens_per_s->value().value(), UnitKind::kNumber)));
}

}  // namespace

void serving_points(const ServingInputs& in, BoundList& list, const Stop& stop) {
  if (in.job().batches.empty()) {
    list.leave_out("the decode step and its throughput", "--batch");
    return;
  }
  Progress points("batches", in.job().batches.size(), Progress::Pace::kEven);
  for (const double batch : in.job().batches) {
    if (should_stop(stop)) break;
    points.add();
    ServingPoint point{.batch = kReader.input(batch, "B", "--batch")};
    sizes(in, point);
    step(in, point);
    requests(in, point);
    if (in.batch) conclude(in, point, list);
    list.add(std::move(point));
  }
  if (!in.kv_per_sequence && !in.total_bytes && !in.step_time) {
    list.leave_out("the KV cache's part of the decode step", "--context");
  }
}

}  // namespace scalecalc
