#include "report/train_json_parts.h"
#include "report/train_why.h"

namespace scalecalc {
namespace {

Json figures_json(const std::vector<ComparedFigure>& figures, const char* what, const std::string& unit) {
  Json out = Json::array();
  for (const ComparedFigure& f : figures) {
    out.push_back({{what, f.name},
                   {"plan_1_" + unit, finite(f.best)},
                   {"other_" + unit, finite(f.other)},
                   {"change_" + unit, finite(f.change())}});
  }
  return out;
}

Json comparison_json(const PlanComparison& c) {
  Json dimensions = Json::array();
  for (const ComparedDimension& d : c.dimensions) {
    dimensions.push_back({{"dimension", d.name}, {"plan_1", d.best}, {"other", d.other}});
  }
  return {{"slower_per_token", finite(c.slower)},
          {"time_scale", finite(c.scale)},
          {"dimensions", std::move(dimensions)},
          {"time_s", figures_json(c.time_s, "cause", "s")},
          {"memory_bytes", figures_json(c.memory_bytes, "part", "bytes")}};
}

Json fitting_json(const TrainAnswer& answer, const RankedPlan& ranked) {
  Json out = machine_json(answer, ranked);
  out["step_time_s"] = finite(ranked.plan.step_s);
  out["step_time_low_s"] = finite(ranked.figures.step_low_s);
  out["step_time_high_s"] = finite(ranked.figures.step_high_s);
  out["mfu"] = finite(ranked.figures.mfu);
  out["bound_by"] = ranked.figures.bound_by;
  out["time_s"] = time_json(ranked);
  out["memory_bytes"] = memory_json(answer, ranked);
  return out;
}

Json verdict_json(const TrainAnswer& answer, const LayoutVerdict& v) {
  const bool fits = v.plan && v.outcome != LayoutOutcome::kOutOfMemory;
  return {{"pins", filter_json(v.pins)},
          {"outcome", kLayoutOutcomeNames.at(static_cast<std::size_t>(v.outcome))},
          {"verdict", verdict_text(answer, v)},
          {"obstacles", v.obstacles},
          {"remedies", v.remedies},
          {"rank", v.rank ? Json(*v.rank) : Json(nullptr)},
          {"plan", fits ? fitting_json(answer, *v.plan) : Json(nullptr)},
          {"least_memory", v.plan && !fits ? miss_json(answer, *v.plan) : Json(nullptr)},
          {"against_plan_1", v.against_best ? comparison_json(*v.against_best) : Json(nullptr)}};
}

Json recorded_json(const RecordedPlan& r) {
  return {{"model", r.model},
          {"hardware", r.hardware},
          {"chips", r.chips},
          {"seq", r.seq},
          {"batch_tokens", whole(r.batch_tokens)},
          {"step_time_s", finite(r.step_s)},
          {"mfu", finite(r.mfu)},
          {"memory_bytes", whole(r.memory_bytes)},
          {"bound_by", r.bound_by}};
}

}  // namespace

Json why_not_json(const TrainAnswer& answer) {
  Json out = Json::array();
  for (const LayoutVerdict& v : answer.why_not) out.push_back(verdict_json(answer, v));
  return out;
}

Json from_json(const TrainAnswer& answer) {
  const ReferenceVerdict& from = *answer.from;
  Json out = {{"name", from.name},
              {"reference", filter_json(from.pins)},
              {"recorded", from.recorded ? recorded_json(*from.recorded) : Json(nullptr)},
              {"adapted", from.adapted},
              {"chosen", from.chosen}};
  out.update(verdict_json(answer, from.verdict));
  return out;
}

}  // namespace scalecalc
