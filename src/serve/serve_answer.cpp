#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "serve/serve_question.h"
#include "serve/serve_search.h"

namespace scalecalc {
namespace {

/// Smaller is better.
double score(const ServePoint& p, ServeObjective objective) {
  switch (objective) {
    case ServeObjective::kThroughput: return -p.tokens_per_s_per_chip();
    case ServeObjective::kLatency: return p.request_s;
    case ServeObjective::kKnee: return -p.tokens_per_s_per_chip() * p.tokens_per_s_per_user();
    case ServeObjective::kCost: return p.usd_per_million_output.value_or(std::numeric_limits<double>::max());
  }
  return 0;
}

std::string where(const ServeAnswer& answer, const ServePoint& p) {
  return fmt::format("{} chips of {}, {}, batch {:g}", p.chips, answer.systems[p.system].hw->name, describe(p.layout),
                     p.batch);
}

/// Which limits nothing meets, alone or together, and what comes nearest.
void find_limits(ServeAnswer& answer) {
  const ServeQuestion& q = answer.question;
  struct Limit {
    const char* name;
    std::optional<double> asked;
    double ServePoint::*figure;
  };
  const std::array<Limit, 3> limits{{{"ttft", q.slo_ttft, &ServePoint::ttft_s},
                                     {"tpot", q.slo_tpot, &ServePoint::tpot_s},
                                     {"request", q.slo_request, &ServePoint::request_s}}};
  const auto nearest = [&](const Limit& limit) -> const ServePoint& {
    return *std::min_element(answer.points.begin(), answer.points.end(), [&](const ServePoint& a, const ServePoint& b) {
      return a.*limit.figure < b.*limit.figure;
    });
  };
  for (const Limit& limit : limits) {
    if (!limit.asked || nearest(limit).*limit.figure <= *limit.asked) continue;
    const ServePoint& p = nearest(limit);
    answer.limits.push_back({limit.name, *limit.asked, p.*limit.figure, where(answer, p)});
  }
  if (!answer.limits.empty()) return;
  // Each can be met alone: name the one that the points meeting the others miss by least.
  const auto excess = [&](const ServePoint& p) {
    double out = 0;
    for (const Limit& limit : limits) {
      if (limit.asked) out = std::max(out, p.*limit.figure / *limit.asked);
    }
    return out;
  };
  const auto best = std::min_element(answer.points.begin(), answer.points.end(),
                                     [&](const ServePoint& a, const ServePoint& b) { return excess(a) < excess(b); });
  for (const Limit& limit : limits) {
    if (!limit.asked || (*best).*limit.figure <= *limit.asked) continue;
    answer.limits.push_back({limit.name, *limit.asked, (*best).*limit.figure, where(answer, *best)});
  }
}

class Answerer {
 public:
  Answerer(const ServeQuestion& question, const Catalog& catalog, const Stop& stop)
      : q_(question), catalog_(catalog), stop_(stop), out_(resolve_serving(question, catalog)) {}

  ServeAnswer run() {
    const auto start = std::chrono::steady_clock::now();
    search();
    mark_pareto(out_.points, q_.objective);
    choose();
    const bool nothing = out_.points.empty();
    if (!out_.best) explain_failure();
    if (!out_.best && q_.suggest && !should_stop(stop_) && (nothing || !out_.limits.empty())) suggest();
    const auto& load = out_.systems.front().serving.expert_load;
    if (out_.best && load) {
      out_.assumptions.push_back({expert_load_text(*load, q_.expert_load, out_.best->layout.ep), "--expert-load",
                                  "docs/model.md [EXPERT-LOAD]", false});
    }
    thin();
    out_.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(out_);
  }

 private:
  void search() {
    std::optional<ModelSpec> draft;
    if (q_.speculation) draft = draft_model(*q_.speculation, *out_.model, catalog_);
    for (std::size_t s = 0; s < out_.systems.size(); ++s) {
      if (out_.prefill_system == s) continue;
      ServeSearch search(out_, s, draft ? &*draft : nullptr, stop_);
      std::vector<ServePoint> points = search.run();
      std::move(points.begin(), points.end(), std::back_inserter(out_.points));
      out_.layouts += search.layouts();
      out_.evaluated += search.evaluated();
      if (search.shortage() && points.empty()) shortages_.push_back(*search.shortage());
    }
  }

  void choose() {
    const bool priced = std::any_of(out_.points.begin(), out_.points.end(),
                                    [](const ServePoint& p) { return p.usd_per_million_output.has_value(); });
    const bool unknown = q_.objective == ServeObjective::kCost && !priced && !out_.points.empty();
    const ServeObjective objective = unknown ? ServeObjective::kThroughput : q_.objective;
    for (const ServePoint& p : out_.points) {
      if (p.meets_limits && (!out_.best || score(p, objective) < score(*out_.best, objective))) out_.best = p;
    }
    if (unknown) {
      out_.notes.emplace_back(
          "without a price the best is the one with most tokens a chip, whatever a chip costs; --price gives one");
    }
  }

  void explain_failure() {
    if (!out_.points.empty()) return find_limits(out_);
    out_.limits = shortages_;
    if (!shortages_.empty()) return;
    const std::int64_t chips = out_.systems.front().chip_counts.empty() ? 1 : out_.systems.front().chip_counts.front();
    out_.notes = serve_obstacles(*out_.model, chips, q_.fix);
    if (!q_.batches.empty()) out_.notes.push_back("no layout holds the batch asked for in its memory");
  }

  /// Changes tried one after the other, each by the same search; what was seen to meet the limits is named.
  void suggest() {
    more_chips();
    fewer_bits();
    other_chips();
    if (out_.would_meet.empty())
      out_.notes.push_back("nothing tried meets it: up to eight times the chips, fewer bits, other chips");
  }

  bool meets(ServeQuestion changed) const {
    if (should_stop(stop_)) return false;
    changed.suggest = false;
    changed.fix.dp.reset();
    try {
      return Answerer(changed, catalog_, stop_).run().best.has_value();
    } catch (const UserError&) {
      return false;  // no such slice, or the chip's file leaves out what it takes
    }
  }

  void more_chips() {
    if (!q_.chips) return;
    for (const std::int64_t times : {2, 4, 8}) {
      ServeQuestion changed = q_;
      changed.chips = *q_.chips * times;
      if (!meets(changed)) continue;
      out_.would_meet.push_back({"--chips", std::to_string(*changed.chips)});
      return;
    }
  }

  void fewer_bits() {
    for (const WeightFormat format :
         {WeightFormat::kFp8, WeightFormat::kInt8, WeightFormat::kNvfp4, WeightFormat::kInt4}) {
      if (bits_of(format) >= out_.systems.front().serving.formats.weights.bits_per_weight) continue;
      ServeQuestion changed = q_;
      changed.weights = QuantizationSpec{.weights = format, .bits_per_weight = bits_of(format), .source = "suggestion"};
      changed.compute.reset();
      if (!meets(changed)) continue;
      out_.would_meet.push_back({"--weights", std::string(name_of(format))});
      return;
    }
  }

  /// Chips of the catalog, as many of them; the first few, by name.
  void other_chips() {
    constexpr int kFew = 3;
    int found = 0;
    for (const std::string& name : catalog_.names(CatalogKind::kHardware)) {
      if (name.find('/') != std::string::npos || found == kFew) continue;
      if (std::find(q_.hardware.begin(), q_.hardware.end(), name) != q_.hardware.end()) continue;
      ServeQuestion changed = q_;
      changed.hardware = {name};
      changed.set.clear();
      if (!q_.set.empty() || !meets(changed)) continue;
      out_.would_meet.push_back({"--hw", name});
      ++found;
    }
  }

  /// Fastest for the user first. Without batches asked for: the front, and of that as many as asked for; of one, the
  /// best.
  void thin() {
    std::vector<ServePoint>& points = out_.points;
    if (q_.top == 1 && out_.best) {
      points = {*out_.best};
      return;
    }
    if (q_.batches.empty()) std::erase_if(points, [](const ServePoint& p) { return !p.pareto; });
    std::stable_sort(points.begin(), points.end(),
                     [](const ServePoint& a, const ServePoint& b) { return a.tpot_s < b.tpot_s; });
    if (points.size() <= q_.top || q_.top < 2) return;
    std::vector<ServePoint> kept;
    const double step = static_cast<double>(points.size() - 1) / static_cast<double>(q_.top - 1);
    for (std::size_t i = 0; i < q_.top; ++i) {
      kept.push_back(points[static_cast<std::size_t>(std::llround(static_cast<double>(i) * step))]);
    }
    out_.notes.push_back(
        fmt::format("{} of {} points are listed, evenly spaced; --top lists more", q_.top, points.size()));
    points = std::move(kept);
  }

  const ServeQuestion& q_;
  const Catalog& catalog_;
  const Stop& stop_;
  ServeAnswer out_;
  std::vector<BindingLimit> shortages_;
};

}  // namespace

void mark_pareto(std::vector<ServePoint>& points, ServeObjective objective) {
  // Where any chip has a price, those without one have no place on a front by cost.
  const auto priced = [](const ServePoint& p) { return p.usd_per_million_output.has_value(); };
  const bool by_cost = objective == ServeObjective::kCost && std::any_of(points.begin(), points.end(), priced);
  const auto good = [&](const ServePoint& p) {
    return by_cost ? -*p.usd_per_million_output : p.tokens_per_s_per_chip();
  };
  std::vector<ServePoint*> order;
  for (ServePoint& p : points) {
    if (!by_cost || priced(p)) order.push_back(&p);
  }
  std::stable_sort(order.begin(), order.end(), [&](const ServePoint* a, const ServePoint* b) {
    return a->tpot_s != b->tpot_s ? a->tpot_s < b->tpot_s : good(*a) > good(*b);
  });
  double most = std::numeric_limits<double>::lowest();
  for (ServePoint* p : order) {
    p->pareto = good(*p) > most;
    most = std::max(most, good(*p));
  }
}

ExplainedServing explain_point(const ServeAnswer& answer, const ServePoint& point) {
  const ServeQuestion& q = answer.question;
  const ServeBasis<Traced> basis(Reader<Traced>{}, answer.systems[point.system].serving);
  const ServingCost<Traced> cost(basis, point.layout, point.slice, point.placement);
  const double replicas = static_cast<double>(point.pools ? point.pools->decode_replicas : point.layout.dp);
  const double cached = std::floor(q.prompt * q.prefix_hit);
  return {cost.decode_step(std::ceil(point.batch / replicas), q.context.value_or(q.prompt + q.generate / 2)).total(),
          cost.prefill(q.prompt - cached, cached).total()};
}

ServeAnswer serve_answer(const ServeQuestion& question, const Catalog& catalog, const Stop& stop) {
  return Answerer(question, catalog, stop).run();
}

}  // namespace scalecalc
