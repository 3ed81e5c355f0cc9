// Answers `scalecalc serve`: searches each system, marks the Pareto front and picks the best point.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <span>
#include <tuple>

#include "plan/stack_supports.h"
#include "serve/requests.h"
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

/// By the objective. Of points alike in it the one whose tokens come faster, whose requests take less, that makes more
/// of a chip: the best is beaten by none in one of these that it does not beat in another.
bool better(const ServePoint& a, const ServePoint& b, ServeObjective objective) {
  constexpr double kSame = 1e-12;
  const double more = score(a, objective) - score(b, objective);
  if (std::abs(more) > kSame * std::abs(score(b, objective))) return more < 0;
  const auto figures = [](const ServePoint& p) {
    return std::tuple(p.tpot_s, p.request_s, -p.tokens_per_s_per_chip());
  };
  return figures(a) < figures(b);
}

std::string where(const ServeAnswer& answer, const ServePoint& p) {
  return fmt::format("{} chips of {}, {}, batch {}", p.chips, answer.systems[p.system].hw->name, describe(p.layout),
                     batch_text(p));
}

/// Which limits none of the points meets, alone or together, and what comes nearest.
std::vector<BindingLimit> missed_limits(const ServeAnswer& answer, std::span<const ServePoint> points) {
  const ServeQuestion& q = answer.question;
  struct Limit {
    const char* name;
    std::optional<double> asked;
    double ServePoint::*figure;
  };
  const std::array<Limit, 3> limits{{{"ttft", q.slo_ttft, &ServePoint::ttft_s},
                                     {"tpot", q.slo_tpot, &ServePoint::tpot_s},
                                     {"request", q.slo_request, &ServePoint::request_s}}};
  std::vector<BindingLimit> out;
  const auto add_if_missed = [&](const Limit& limit, const ServePoint& p) {
    if (limit.asked && p.*limit.figure > *limit.asked) {
      out.push_back({limit.name, *limit.asked, p.*limit.figure, where(answer, p)});
    }
  };
  for (const Limit& limit : limits) {
    add_if_missed(limit, *std::min_element(points.begin(), points.end(), [&](const ServePoint& a, const ServePoint& b) {
                    return a.*limit.figure < b.*limit.figure;
                  }));
  }
  if (!out.empty()) return out;
  // Each can be met alone: name the one that the points meeting the others miss by least.
  const auto excess = [&](const ServePoint& p) {
    double most = 0;
    for (const Limit& limit : limits) {
      if (limit.asked) most = std::max(most, p.*limit.figure / *limit.asked);
    }
    return most;
  };
  const ServePoint& best = *std::min_element(
      points.begin(), points.end(), [&](const ServePoint& a, const ServePoint& b) { return excess(a) < excess(b); });
  for (const Limit& limit : limits) add_if_missed(limit, best);
  return out;
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
      out_.assumptions.push_back(
          {expert_load_text(*load, q_.expert_load, out_.best->layout.ep, q_.redundant_experts.value_or(0)),
           "--expert-load", "docs/model.md [EXPERT-LOAD]", false});
    }
    thin();
    out_.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return std::move(out_);
  }

 private:
  void search() {
    std::optional<ModelSpec> draft;
    if (q_.speculation) draft = draft_model(*q_.speculation, *out_.model, catalog_);
    out_.outcomes.resize(out_.systems.size());
    for (std::size_t s = 0; s < out_.systems.size(); ++s) {
      if (out_.prefill_system == s) continue;
      ServeSearch search(out_, s, draft ? &*draft : nullptr, stop_);
      std::vector<ServePoint> points = search.run();
      SystemOutcome& outcome = out_.outcomes[s];
      outcome.best = best_of(points);
      if (!outcome.best && !points.empty()) outcome.limits = missed_limits(out_, points);
      if (points.empty() && search.shortage()) outcome.limits = {*search.shortage()};
      std::move(points.begin(), points.end(), std::back_inserter(out_.points));
      out_.layouts += search.layouts();
      out_.evaluated += search.evaluated();
      if (search.shortage() && points.empty()) shortages_.push_back(*search.shortage());
      for (const SupportFact* fact : search.refusals()) {
        if (points.empty()) refusals_.push_back(fact_text(*out_.systems[s].serving.launcher, *fact));
      }
    }
  }

  bool cost_unknown(std::span<const ServePoint> points) const {
    return q_.objective == ServeObjective::kCost && !points.empty() &&
           std::none_of(points.begin(), points.end(),
                        [](const ServePoint& p) { return p.usd_per_million_output.has_value(); });
  }

  std::optional<ServePoint> best_of(std::span<const ServePoint> points) const {
    const ServeObjective objective = cost_unknown(points) ? ServeObjective::kThroughput : q_.objective;
    const ServePoint* best = nullptr;
    for (const ServePoint& p : points) {
      if (p.meets_limits && (best == nullptr || better(p, *best, objective))) best = &p;
    }
    return best == nullptr ? std::nullopt : std::optional(*best);
  }

  void choose() {
    out_.best = best_of(out_.points);
    if (cost_unknown(out_.points)) {
      out_.notes.emplace_back(
          "without a price the best is the one with most tokens a chip, whatever a chip costs; --price gives one");
    }
  }

  void explain_failure() {
    if (!out_.points.empty()) {
      out_.limits = missed_limits(out_, out_.points);
      return;
    }
    out_.limits = shortages_;
    if (!shortages_.empty()) return;
    const std::int64_t chips = out_.systems.front().chip_counts.empty() ? 1 : out_.systems.front().chip_counts.back();
    const std::int64_t copies = q_.redundant_experts.value_or(0);
    if (q_.disaggregate != Disaggregation::kOn) {
      const ServeSystem& system = out_.systems.front();
      out_.notes = serve_obstacles(*out_.model, chips, q_.fix, copies);
      if (out_.notes.empty())
        add_note(excluded_pins(*out_.model, *system.hw, system.chip_counts, q_.fix, q_.max, copies));
    } else {
      pool_obstacles("prefill", q_.prefill_fix, chips);
      pool_obstacles("decode", q_.decode_fix, chips);
    }
    out_.notes.insert(out_.notes.end(), refusals_.begin(), refusals_.end());
    if (!q_.batches.empty() && refusals_.empty() && out_.layouts > 0) {
      out_.notes.push_back("no layout holds the batch asked for in its memory");
    }
  }

  void add_note(std::string text) {
    if (!text.empty()) out_.notes.push_back(std::move(text));
  }

  /// Of one pool: its pins, and the chips that its replicas take.
  void pool_obstacles(const char* pool, const ServePins& own, std::int64_t chips) {
    ServePins fix = own.or_else(q_.fix);
    std::int64_t taken = 1;
    for (const auto& pin : {fix.tp, fix.pp, fix.cp, fix.attention_dp, fix.dp}) taken *= pin.value_or(1);
    fix.dp.reset();
    for (const std::string& reason : serve_obstacles(*out_.model, taken, fix, q_.redundant_experts.value_or(0))) {
      out_.notes.push_back(fmt::format("{} pool: {}", pool, reason));
    }
    if (taken >= chips && !out_.prefill_system) {
      out_.notes.push_back(
          fmt::format("{} pool: its pins take {} of {} chips, which leaves none for the other", pool, taken, chips));
    }
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
    for (ServePins* pins : {&changed.fix, &changed.prefill_fix, &changed.decode_fix}) pins->dp.reset();
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
  std::vector<std::string> refusals_;
  std::vector<BindingLimit> shortages_;
};

}  // namespace

std::string batch_text(const ServePoint& point) { return fmt::format("{:.0f}", std::round(point.batch)); }

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
  const double each = std::ceil(point.batch / replicas);
  if (one_pass(answer)) {
    const double texts = texts_of_a_pass(answer, answer.systems[point.system].serving, point.layout, each);
    const SecondsOf<Traced> pass = cost.step(pass_of(answer, texts)).total();
    return {pass, pass};
  }
  const double prompt = decoder_prompt(answer);
  const double cached = std::floor(prompt * q.prefix_hit);
  const SecondsOf<Traced> prefill = cost.prefill(prompt - cached, cached).total();
  return {cost.decode_step(each, decode_context(answer)).total(), prefill};
}

ServeAnswer serve_answer(const ServeQuestion& question, const Catalog& catalog, const Stop& stop) {
  return Answerer(question, catalog, stop).run();
}

}  // namespace scalecalc
