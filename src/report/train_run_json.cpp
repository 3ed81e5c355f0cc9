// The `run` object of a plan.
#include "report/train_json_parts.h"

namespace scalecalc {
namespace {

Json checkpoint_json(const RunEconomics& e) {
  return {{"bytes", finite(e.checkpoint_bytes)},
          {"blocked_s", finite(e.checkpoint_blocked_s)},
          {"behind_s", finite(e.checkpoint_behind_s)},
          {"load_s", finite(e.load_s)},
          {"count", finite(e.checkpoints)},
          {"interval_s", finite(e.interval_s)},
          {"optimal_interval_s", finite(e.optimal_interval_s)},
          {"young_interval_s", finite(e.young_interval_s)},
          {"daly_interval_s", finite(e.daly_interval_s)},
          {"storage_bytes_per_s", finite(e.storage_bytes_per_s)}};
}

Json spares_json(const SpareFigures& s) {
  return {{"hosts", s.hosts},
          {"chips", finite(s.chips)},
          {"repair_s", finite(s.repair_s)},
          {"chance_none_left", finite(s.chance_none_left)},
          {"policy", s.elastic ? "elastic" : "wait"},
          {"other_policy_time_s", number_or_null(s.other_time_s)}};
}

Json economics_json(const RunEconomics& e) {
  Json time = Json::object();
  for (const auto& [part, seconds] : e.time_s) time[part] = finite(seconds);
  const bool failures = e.mtbf_s > 0;
  Json out = {{"ideal_time_s", finite(e.ideal_time_s)},
              {"time_s", std::move(time)},
              {"goodput", finite(e.goodput)},
              {"effective_mfu", finite(e.effective_mfu)},
              {"straggler_share", finite(e.straggler_share)},
              {"data_bytes_per_s", finite(e.data_bytes_per_s)}};
  out["mtbf_s"] = failures ? Json(finite(e.mtbf_s)) : Json(nullptr);
  out["interruptions"] = failures ? Json(finite(e.interruptions)) : Json(nullptr);
  out["restart_s"] = failures ? Json(finite(e.restart_s)) : Json(nullptr);
  out["checkpoint"] = failures ? checkpoint_json(e) : Json(nullptr);
  out["spares"] = e.spares ? spares_json(*e.spares) : Json(nullptr);
  return out;
}

Json power_json(const RunPower& p) {
  return {{"basis", kPowerBasisNames.at(static_cast<std::size_t>(p.basis))},
          {"chip_w", finite(p.chip_w)},
          {"idle_chip_w", finite(p.idle_chip_w)},
          {"host_w_per_chip", finite(p.host_w)},
          {"pue", finite(p.pue)},
          {"facility_w", finite(p.facility_w)},
          {"energy_j_per_token", finite(p.energy_per_token_j)},
          {"carbon_g_per_kwh", number_or_null(p.carbon_g_per_kwh)},
          {"carbon_kg", number_or_null(p.carbon_kg)}};
}

}  // namespace

Json run_json(const std::optional<RunFigures>& run) {
  if (!run) {
    Json out = Json::object();
    for (const char* key : {"tokens", "steps", "time_s", "chip_hours", "cost_usd", "energy_j", "economics", "power"}) {
      out[key] = nullptr;
    }
    return out;
  }
  return {{"tokens", whole(run->tokens)},
          {"steps", whole(run->steps)},
          {"time_s", finite(run->time_s)},
          {"chip_hours", finite(run->chip_hours)},
          {"cost_usd", number_or_null(run->cost_usd)},
          {"energy_j", number_or_null(run->energy_j)},
          {"economics", run->economics ? economics_json(*run->economics) : Json(nullptr)},
          {"power", run->power ? power_json(*run->power) : Json(nullptr)}};
}

}  // namespace scalecalc
