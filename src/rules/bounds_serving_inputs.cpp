#include <fmt/format.h>

#include <cmath>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"
#include "model/kv_cache.h"
#include "rules/bound_rules.h"
#include "rules/bounds_serving.h"

namespace scalecalc {
namespace {

constexpr std::int64_t kMostChips = 16'777'216;

std::string whole_text(double value) { return group_thousands(std::llround(value)); }

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
  Traced per_token{0.0};   ///< one more token while no layer is full
  Traced in_context{0.0};  ///< of the whole sequence
  std::int64_t limit = 0;  ///< tokens that some layers keep at most
  double states = 0;       ///< of recurrences
  double convolutions = 0;
};

void add_kind(const LayerCache& kind, const std::optional<Traced>& context, const std::string& source,
              CacheSize& size) {
  const Traced layers = kReader.input(static_cast<double>(kind.layers), "L", source);
  size.states += static_cast<double>(kind.layers) * kind.state_elements;
  size.convolutions += static_cast<double>(kind.layers) * kind.conv_elements;
  if (kind.token_elements <= 0) return;
  const double heads = static_cast<double>(kind.ways);
  Traced width = kReader.input(kind.token_elements / heads, heads > 1 ? "2 H" : "KV width", source);
  if (heads > 1) width = kReader.input(heads, "K", source) * width;
  if (kind.index_elements > 0) width = width + kReader.input(kind.index_elements, "index key", source);
  const Traced elements = layers * width;
  size.per_token = size.per_token + elements;
  if (kind.limit > 0) size.limit = kind.limit;
  if (!context) return;
  const bool full = kind.limit > 0 && static_cast<double>(kind.limit) < context->value();
  size.in_context =
      size.in_context + elements * (full ? kReader.input(static_cast<double>(kind.limit), "limit", source) : *context);
}

}  // namespace

ServingFormats serving_formats(const BoundsQuestion& q) {
  ServingFormats out;
  out.compute = q.serving.compute.value_or(q.compute);
  out.weights = q.weights.value_or(out.compute);
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
  weight_element = element(f.weights, "b_w");
  activation_element = element(f.activations, "b_a");
  kv_element_ = element(f.kv, "b_kv");
  list.assume({fmt::format("serving with matmuls in {}, weights in {}, activations in {}, KV cache in {}",
                           name_of(f.compute), name_of(f.weights), name_of(f.activations), name_of(f.kv)),
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

void ServingInputs::sizes(BoundList& list) {
  const auto weight_bytes = given<kByteDim>(list, job_.weight_bytes, UnitKind::kBytes, "weights", "--weight-bytes");
  weights = weight_bytes ? *weight_bytes : named(in_.parameters * weight_element, "weight_bytes", "book ch. 7: P b_w");
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
    list.assume(
        {"every expert's weights are read in each decode step; with few sequences a step reads fewer and is shorter",
         "", "book ch. 7"});
  }
  if (total_bytes && *total_bytes < weights) {
    throw UserError(fmt::format("--total-bytes {} leaves nothing for the KV cache: the weights are {}",
                                format_quantity(total_bytes->value().value(), UnitKind::kBytes),
                                format_quantity(weights.value().value(), UnitKind::kBytes)),
                    "weights and KV cache of all sequences together");
  }
}

/// The cache's size from the architecture; nothing of a model whose layers keep nothing.
void ServingInputs::kv_of_model(const ModelSpec& model, BoundList& list) {
  const KvCache cache = kv_cache(model);
  CacheSize size;
  for (const LayerCache& kind : cache.kinds) add_kind(kind, context, model.source, size);
  const Bytes states =
      Bytes(size.states * CacheFormat{}.state_bytes + size.convolutions * activation_element.value().value());
  if (size.per_token.value() <= 0 && states.value() <= 0) return;
  uniform = size.limit == 0 && states.value() == 0;
  kv_per_token = named(size.per_token * kv_element_, "kv_bytes_per_token", "book ch. 4 and 7: 2 L K H b_kv");
  if (size.limit > 0) {
    list.assume(
        {fmt::format("some layers keep at most {} tokens of a sequence in the KV cache", group_thousands(size.limit)),
         "", model.source});
  }
  BytesOf<Traced> constant;
  if (states.value() > 0) {
    constant = read(kReader, states, "states", "of recurrent layers, in fp32");
    list.assume({fmt::format("recurrent layers keep {} of each sequence, whatever its length",
                             format_quantity(states.value(), UnitKind::kBytes)),
                 "", model.source});
  }
  if (!context) return;
  kv_per_sequence =
      named(size.in_context * kv_element_ + constant, "kv_bytes_per_sequence", "book ch. 7: S 2 L K H b_kv");
}

void ServingInputs::times(BoundList& list) {
  step_time = given<kSecondDim>(list, job_.step_time, UnitKind::kSeconds, "decode step", "--step-time");
  prefill_time = given<kSecondDim>(list, job_.prefill_time, UnitKind::kSeconds, "prefill", "--prefill-time");
  if (prefill_time || !prompt || !chips) return;
  Traced tokens = *prompt;
  if (const auto left = prompt_left()) tokens = tokens * *left;
  if (!in_.question().training.mfu) list.assume({"MFU of 40 % in prefill", "--mfu", "book ch. 8"});
  const SecondsOf<Traced> math = named(forward_flops() * tokens / (peak * *chips * assumed_mfu(in_)),
                                       "prefill compute time", "book ch. 8: 2 P_act T / (n C MFU)");
  const SecondsOf<Traced> load = named(weights / (hbm * *chips), "latency_floor", "book ch. 7: P b_w / (n W_hbm)");
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
  std::string source = "--price";
  const std::optional<double>& asked = in_.question().training.price;
  double usd = asked.value_or(0);
  if (!asked) {
    if (hw().prices.empty()) {
      list.assume({"no price is published for this chip: cost is left out", "--price", "hardware file"});
      return;
    }
    const Price& first = hw().prices.front();
    usd = first.usd_per_chip_hour;
    source = first.source;
    list.assume({fmt::format("{:g} USD per chip-hour ({} {}, {})", usd, first.cloud, first.terms, first.date),
                 "--price", source});
  }
  price = read(kReader, UsdPerSecond(usd / kSecondsPerHour), "price", source);
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
    list.assume({fmt::format("{} chips: the smallest slice that holds the weights", whole_text(chips->value())),
                 "--chips", ""});
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

}  // namespace scalecalc
