// Asks a serving question again with ten percent more and less of each rate.
#include "sensitivity/serving.h"

#include <algorithm>
#include <set>

#include "base/progress.h"
#include "sensitivity/reoptimise.h"

namespace scalecalc {
namespace {

/// Pins that leave one layout.
ServePins pins_of(const ServeLayout& layout, std::int64_t replicas) {
  ServePins out;
  for (const ServeDimension& d : kServeDimensionTable) out.*d.pin = d.value(layout);
  out.dp = replicas;
  return out;
}

ServeQuestion pinned_to(ServeQuestion q, const ServePoint& p) {
  q.chips = p.chips;
  q.batches = {p.batch};
  q.fix = {};
  q.suggest = false;
  q.disaggregate = p.pools ? Disaggregation::kOn : Disaggregation::kOff;
  if (p.pools) {
    q.decode_fix = pins_of(p.layout, p.pools->decode_replicas);
    q.prefill_fix = pins_of(p.pools->prefill_layout, p.pools->prefill_replicas);
  } else {
    q.fix = pins_of(p.layout, p.layout.dp);
    q.prefill_fix = q.decode_fix = {};
  }
  return q;
}

/// Formats that its matmuls compute in: parts of 16 bits and more stay in them.
std::vector<DType> formats_of(const ServeSystem& system) {
  std::vector<DType> out{system.serving.formats.compute};
  for (const DType wide : {DType::kBf16, DType::kFp16}) {
    if (wide != out.front() && system.hw->matmul_peak[static_cast<std::size_t>(wide)]) {
      out.push_back(wide);
      break;
    }
  }
  return out;
}

class ServingMover {
 public:
  ServingMover(const ServeSensitivityQuestion& question, const Catalog& catalog, const Stop& stop)
      : catalog_(catalog), stop_(stop), out_{.question = question} {}

  ServeSensitivity run() {
    const ServeQuestion& q = out_.question.serve;
    out_.answer = serve_answer(q, catalog_, stop_);
    if (!out_.answer.best) return std::move(out_);
    out_.kept = best(pinned_to(q, *out_.answer.best));
    const ServeSystem& system = out_.answer.systems[out_.answer.best->system];
    std::vector<HardwareRate> rates =
        hardware_rates(*system.hw, formats_of(system), out_.answer.best->chips > 1, false);
    Progress moved("rates moved", rates.size());
    for (HardwareRate& rate : rates) {
      if (out_.kept && !should_stop(stop_)) out_.rates.push_back(change(std::move(rate)));
      moved.add();
    }
    out_.complete = !should_stop(stop_);
    std::stable_sort(out_.rates.begin(), out_.rates.end(),
                     [&](const ServeRateChange& a, const ServeRateChange& b) { return most_gain(a) > most_gain(b); });
    return std::move(out_);
  }

 private:
  double most_gain(const ServeRateChange& change) const {
    const ServeObjective objective = out_.question.serve.objective;
    const double more = change.more ? serving_gain(*change.more, *out_.kept, objective) : 0;
    return change.free ? std::max(more, serving_gain(*change.free, *out_.kept, objective)) : more;
  }

  std::optional<ServePoint> best(ServeQuestion q) const {
    q.suggest = false;
    q.top = 1;
    return serve_answer(q, catalog_, stop_).best;
  }

  std::optional<ServePoint> moved(ServeQuestion q, const HardwareRate& rate, double share) const {
    q.set.push_back(rate.set_to(share));
    return best(std::move(q));
  }

  ServeRateChange change(HardwareRate rate) const {
    const ServeQuestion& q = out_.question.serve;
    ServeQuestion kept = pinned_to(q, *out_.answer.best);
    // What is kept is told whether or not it still meets a limit.
    kept.slo_ttft = kept.slo_tpot = kept.slo_request = std::nullopt;
    ServeRateChange out{.rate = std::move(rate)};
    out.more = moved(kept, out.rate, 1 + kRateMove);
    out.less = moved(kept, out.rate, 1 - kRateMove);
    if (!out_.question.fixed && !should_stop(stop_)) out.free = moved(q, out.rate, 1 + kRateMove);
    return out;
  }

  const Catalog& catalog_;
  const Stop& stop_;
  ServeSensitivity out_;
};

}  // namespace

double serving_gain(const ServePoint& p, const ServePoint& than, ServeObjective objective) {
  const double tokens = p.tokens_per_s_per_chip() / than.tokens_per_s_per_chip();
  switch (objective) {
    case ServeObjective::kLatency: return than.request_s / p.request_s - 1;
    case ServeObjective::kKnee: return tokens * than.tpot_s / p.tpot_s - 1;
    case ServeObjective::kThroughput:
    case ServeObjective::kCost: break;
  }
  return tokens - 1;
}

ServeSensitivity serving_sensitivity(const ServeSensitivityQuestion& question, const Catalog& catalog,
                                     const Stop& stop) {
  return ServingMover(question, catalog, stop).run();
}

}  // namespace scalecalc
