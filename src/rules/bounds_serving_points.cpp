// A decode step at one batch, and what follows for requests: scaling book, chapter 7 "Theoretical estimates" (the
// general form of the step) and chapter 8 "Thinking about throughput", "What about prefill?".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "base/units.h"
#include "rules/bounds_serving.h"

namespace scalecalc {
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
  point.load_time = named(in.weights / bandwidth, "load_time", "book ch. 7: P b_w / (n W_hbm)");
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
                              format_quantity(point.total_bytes->value().value(), UnitKind::kBytes),
                              format_quantity((*in.capacity * *in.chips).value().value(), UnitKind::kBytes)));
  }
  if (!point.step) return;
  list.conclude(fmt::format("Serving: a decode step of {} takes {}{}, {} tokens/s.", sequences,
                            format_quantity(point.step->value().value(), UnitKind::kSeconds),
                            point.bound_by.empty() ? "" : ", bound by " + point.bound_by,
                            format_quantity(point.tokens_per_s->value().value(), UnitKind::kNumber)));
}

}  // namespace

void serving_points(const ServingInputs& in, BoundList& list) {
  if (in.job().batches.empty()) {
    list.leave_out("the decode step and its throughput", "--batch");
    return;
  }
  for (const double batch : in.job().batches) {
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
