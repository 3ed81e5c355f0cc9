// Adds the serving question and the decoding curve to the output of `scalecalc bounds`.
#include "bounds/bounds_serving_output.h"

#include <algorithm>

namespace scalecalc {
namespace {

Figure flag(const char* key, const char* label, const std::optional<bool>& value) {
  return figure(key, label, Format::kFlag, value ? Cell(*value ? 1.0 : 0.0) : Cell{});
}

Figure batch_figure(const ServingPoint& p) { return figure("batch", "batch", Format::kInteger, p.batch); }

Record point_record(const ServingPoint& p) {
  return {
      {batch_figure(p), with_importance(maybe_figure("kv_bytes", "KV cache", Format::kBytes, p.kv_bytes), 4),
       maybe_figure("total_bytes", "with weights", Format::kBytes, p.total_bytes), flag("fits", "fits", p.fits),
       with_importance(maybe_figure("kv_time_s", "KV time", Format::kSeconds, p.kv_time), 2),
       maybe_figure("weight_load_time_s", "", Format::kSeconds, p.load_time),
       maybe_figure("mlp_compute_time_s", "", Format::kSeconds, p.compute_time),
       with_importance(maybe_figure("mlp_time_s", "MLP time", Format::kSeconds, p.mlp_time), 3),
       flag("mlp_compute_bound", "", p.mlp_compute_bound),
       maybe_figure("bandwidth_step_s", "", Format::kSeconds, p.bandwidth_step),
       maybe_figure("bandwidth_tokens_per_s", "", Format::kNumber, p.bandwidth_tokens_per_s),
       maybe_figure("decode_step_s", "step", Format::kSeconds, p.step),
       maybe_figure("tokens_per_s", "tokens/s", Format::kNumber, p.tokens_per_s),
       with_importance(maybe_figure("tokens_per_s_per_chip", "per chip", Format::kNumber, p.tokens_per_s_per_chip), 1),
       with_importance(figure("bound_by", "bound by", Format::kText, p.bound_by.empty() ? Cell{} : Cell(p.bound_by)),
                       5)}};
}

Record request_record(const ServingPoint& p) {
  return {
      {batch_figure(p), with_importance(maybe_figure("answer_time_s", "answer", Format::kSeconds, p.answer_time), 1),
       maybe_figure("requests_per_s", "requests/s", Format::kNumber, p.requests_per_s),
       maybe_figure("requests_per_s_per_chip", "per chip", Format::kNumber, p.requests_per_s_per_chip),
       with_importance(
           maybe_figure("finished_sequences_per_step", "finished per step", Format::kNumber, p.finished_per_step), 3),
       with_importance(
           maybe_figure("evicted_tokens_per_step", "tokens evicted per step", Format::kNumber, p.evicted_per_step), 4),
       with_importance(maybe_figure("prefill_servers_per_decode_server", "prefill servers per decode server",
                                    Format::kNumber, p.prefill_servers),
                       2),
       maybe_figure("usd_per_million_output_tokens", "USD per 1M tokens", Format::kUsd, p.usd_per_million_tokens)}};
}

bool says_something(const Record& record) {
  return std::any_of(record.figures.begin() + 1, record.figures.end(),
                     [](const Figure& f) { return !std::holds_alternative<std::monostate>(f.value); });
}

void add(Output& output, Block block) {
  if (std::any_of(block.records.begin(), block.records.end(), says_something))
    output.blocks.push_back(std::move(block));
}

Figure format(const char* key, DType dtype) { return datum(key, std::string(name_of(dtype))); }

}  // namespace

void add_serving_query(Record& query, const BoundsQuestion& q) {
  if (q.scope == BoundScope::kTraining) return;
  std::vector<Figure>& out = query.figures;
  const ServingFormats formats = serving_formats(q);
  out.push_back(format("serving.flops", formats.compute));
  out.push_back(formats.stored ? datum("serving.weights", std::string(name_of(*formats.stored)))
                               : format("serving.weights", formats.weights));
  out.push_back(format("serving.activations", formats.activations));
  out.push_back(format("serving.kv", formats.kv));
  if (const auto& s = q.serving.speculation) {
    out.push_back(count_figure("serving.speculative.k", s->drafted));
    out.push_back(datum("serving.speculative.accept", s->accept));
    out.push_back(datum("serving.speculative.cost", cell_of(s->cost)));
    out.push_back(datum("serving.speculative.draft_parameters", cell_of(s->draft_parameters)));
  }
}

void add_serving_points(Output& output, const BoundsAnswer& answer) {
  Block steps{.key = "points", .title = "Decode step"};
  Block requests{.key = "requests", .title = "Requests"};
  for (const ServingPoint& point : answer.points) {
    steps.records.push_back(point_record(point));
    requests.records.push_back(request_record(point));
  }
  add(output, std::move(steps));
  add(output, std::move(requests));
}

}  // namespace scalecalc
