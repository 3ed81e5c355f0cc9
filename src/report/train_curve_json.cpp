#include <algorithm>

#include "report/train_curve.h"
#include "report/train_json_parts.h"

namespace scalecalc {
namespace {

Json text_or_null(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

Json point_json(const TrainCurve& curve, const CurvePoint& point, bool complete) {
  std::string status(kPointStatusNames.at(static_cast<std::size_t>(point.status)));
  std::replace(status.begin(), status.end(), ' ', '_');
  Json out = {{"chips", point.chips}, {"status", std::move(status)}, {"reason", text_or_null(point.reason)}};
  out["speed_up"] = point.plan ? Json(finite(point.speed_up)) : Json(nullptr);
  out["efficiency"] = point.plan ? Json(finite(point.efficiency)) : Json(nullptr);
  out["plan"] = point.plan ? plan_json(answer_at(curve, point.chips, {}), *point.plan, 1) : Json(nullptr);
  out["search"] = search_json(point.search, complete);
  return out;
}

Json linear_json(const TrainCurve& curve) {
  if (!curve.end) return nullptr;
  const CurveEnd& end = *curve.end;
  const CurvePoint& last = curve.points[end.last];
  Json out = {{"efficiency_at_least", kLinearShare}, {"chips", last.chips}, {"efficiency", finite(last.efficiency)}};
  const CurvePoint* next = end.next ? &curve.points[*end.next] : nullptr;
  const bool planned = next != nullptr && next->plan;
  out["next_chips"] = next != nullptr ? Json(next->chips) : Json(nullptr);
  out["next_efficiency"] = planned ? Json(finite(next->efficiency)) : Json(nullptr);
  out["reason"] = next != nullptr ? text_or_null(next->reason) : Json(nullptr);
  out["cause"] = text_or_null(end.cause);
  out["share_before"] = planned ? Json(finite(end.share_before)) : Json(nullptr);
  out["share_after"] = planned ? Json(finite(end.share_after)) : Json(nullptr);
  return out;
}

Json front_plan_json(const TrainCurve& curve, std::size_t i) {
  const RankedPlan& plan = curve.front[i];
  return plan_json(answer_at(curve, plan.plan.slice.chips, {}), plan, i + 1);
}

Json front_json(const TrainCurve& curve) {
  Json out = Json::array();
  for (std::size_t i = 0; i < curve.front.size(); ++i) out.push_back(front_plan_json(curve, i));
  return out;
}

Json line_of(const TrainCurve& curve, std::string_view schema, std::string_view tool_version) {
  return {{"schema", schema},
          {"tool_version", tool_version},
          {"model", curve.job.model.name},
          {"hardware", curve.job.hw.name}};
}

}  // namespace

std::string train_curve_json(const TrainCurve& curve, std::string_view tool_version, bool complete) {
  Json out = document_head("scalecalc/train-curve/1", tool_version);
  out["query"] = query_json(curve.job);
  Json counts = Json::array();
  Json points = Json::array();
  for (const CurvePoint& point : curve.points) {
    counts.push_back(point.chips);
    points.push_back(point_json(curve, point, complete));
  }
  out["query"]["chips"] = std::move(counts);
  out["query"]["pareto"] = curve.pareto;
  out["assumptions"] = assumptions_json(curve.job.assumptions);
  out["curve"] = std::move(points);
  out["linear"] = linear_json(curve);
  if (curve.pareto) {
    out["pareto"] = front_json(curve);
    out["machine_sizes"] = curve.machine_sizes;
  }
  out["complete"] = complete;
  return json_text(out, 2);
}

std::string train_curve_jsonl(const TrainCurve& curve, std::string_view tool_version) {
  std::string out;
  if (curve.pareto) {
    for (std::size_t i = 0; i < curve.front.size(); ++i) {
      Json line = line_of(curve, "scalecalc/train-plan/1", tool_version);
      line["chips_asked"] = curve.job.question.chips;
      line.update(front_plan_json(curve, i));
      out += json_text(line, -1);
    }
    return out;
  }
  for (const CurvePoint& point : curve.points) {
    Json line = line_of(curve, "scalecalc/train-curve-point/1", tool_version);
    line.update(point_json(curve, point, true));
    out += json_text(line, -1);
  }
  return out;
}

}  // namespace scalecalc
