#include "report/train_json.h"

#include <algorithm>
#include <array>

#include "model/accounting.h"
#include "plan/dimensions.h"
#include "report/json_text.h"
#include "report/train_json_parts.h"
#include "report/train_report.h"
#include "report/train_why.h"
#include "train/resolve.h"

namespace scalecalc {
namespace {

using Figures = std::vector<std::pair<std::string, double>>;

constexpr std::array<std::string_view, 12> kTimeKeys{"compute",         "hbm",        "tp_exposed", "fsdp_exposed",
                                                     "dp_exposed",      "cp_exposed", "ep_exposed", "pp_exposed",
                                                     "offload_exposed", "bubble",     "optimizer",  "overhead"};
constexpr std::array<std::string_view, 7> kMemoryKeys{"weights", "gradients", "optimizer", "activations",
                                                      "logits",  "buffers",   "reserve"};

/// The keys of the contract in their order, absent ones as 0, then any others.
Json figures_json(const Figures& figures, std::span<const std::string_view> keys) {
  Json out = Json::object();
  for (const std::string_view key : keys) out[std::string(key)] = finite(figure(figures, key));
  for (const auto& [key, value] : figures) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) out[key] = finite(value);
  }
  return out;
}

Json value_json(const LayoutDimension& dimension, std::int64_t value) {
  switch (dimension.kind) {
    case DimensionKind::kCount: return value;
    case DimensionKind::kSwitch: return value != 0;
    case DimensionKind::kWord: return dimension.word(value);
  }
  return nullptr;
}

Json layout_json(const Layout& layout) {
  Json out = Json::object();
  for (const LayoutDimension& d : layout_dimensions()) out[std::string(d.json_key)] = value_json(d, d.value(layout));
  return out;
}

Json placement_json(const RankedPlan& ranked) {
  Json out = Json::object();
  for (const auto& [dimension, where] : ranked.figures.placement) out[dimension] = where;
  return out;
}

}  // namespace

Json filter_json(const LayoutFilter& filter) {
  Json out = Json::object();
  for (const LayoutDimension& d : layout_dimensions()) {
    if (const auto pinned = d.pin(filter)) out[std::string(d.json_key)] = value_json(d, *pinned);
  }
  return out;
}

Json machine_json(const TrainAnswer& answer, const RankedPlan& ranked) {
  const Plan& plan = ranked.plan;
  Json out = {{"layout", layout_json(plan.layout)},
              {"placement", placement_json(ranked)},
              {"chunk_layers", ranked.figures.chunk_layers},
              {"chips", plan.layout.chips()},
              {"idle_chips", idle_chips(answer, plan)},
              {"slices", plan.slice.slices},
              {"shape", plan.slice.shape},
              {"batch_seqs", whole(plan.batch_seqs)},
              {"batch_tokens", whole(plan.batch_seqs * static_cast<double>(answer.workload.seq))}};
  return out;
}

Json time_json(const RankedPlan& ranked) { return figures_json(ranked.figures.time_s, kTimeKeys); }

Json memory_json(const TrainAnswer& answer, const RankedPlan& ranked) {
  Json out = figures_json(ranked.figures.memory_bytes, kMemoryKeys);
  out["total"] = finite(sum_of(ranked.figures.memory_bytes));
  out["capacity"] = finite(answer.hw.hbm_capacity.value());
  return out;
}

Json miss_json(const TrainAnswer& answer, const RankedPlan& ranked) {
  Json out = machine_json(answer, ranked);
  out["memory_bytes"] = memory_json(answer, ranked);
  out["host_memory_bytes"] = finite(ranked.plan.memory.host.value());
  out["over_by_bytes"] = finite(sum_of(ranked.figures.memory_bytes) - answer.hw.hbm_capacity.value());
  return out;
}

namespace {

Json conventions_json(const RankedPlan& ranked) {
  Json out = Json::array();
  for (const FlopsConvention& c : ranked.figures.conventions) {
    out.push_back({{"name", c.name},
                   {"counts", c.counts},
                   {"tflops_per_chip", finite(c.tflops_per_chip)},
                   {"mfu", finite(c.mfu)}});
  }
  return out;
}

/// Null if the whole model trains.
Json fine_tune_json(const TrainAnswer& a) {
  const std::optional<FineTune>& tune = a.workload.fine_tune;
  if (!tune) return nullptr;
  const double trainable = adapter_parameters(a.model, *tune);
  const double bits = 8 * base_bytes(*tune, a.workload.precision);
  Json targets = Json::array();
  for (std::size_t i = 0; i < kLoraTargetNames.size(); ++i) {
    if ((tune->targets >> i & 1) != 0) targets.push_back(kLoraTargetNames.at(i));
  }
  return {{"method", is_unpacked(*tune, a.workload.precision) ? "qlora" : "lora"},
          {"rank", tune->rank},
          {"targets", targets},
          {"experts", tune->experts},
          {"base", tune->base ? Json(kBaseFormatNames.at(static_cast<std::size_t>(*tune->base))) : Json(nullptr)},
          {"base_bits", finite(bits)},
          {"trainable_parameters", whole(trainable)},
          {"frozen_parameters", whole(count_parameters(a.model).total)}};
}

}  // namespace

Json plan_json(const TrainAnswer& answer, const RankedPlan& ranked, std::size_t rank) {
  const PlanFigures& f = ranked.figures;
  Json out = {{"rank", rank}};
  out.update(machine_json(answer, ranked));
  out["step_time_s"] = finite(ranked.plan.step_s);
  out["step_time_low_s"] = finite(f.step_low_s);
  out["step_time_high_s"] = finite(f.step_high_s);
  out["mfu"] = finite(f.mfu);
  out["hfu"] = finite(f.hfu);
  out["tokens_per_s"] = finite(f.tokens_per_s);
  out["tokens_per_s_per_chip"] = finite(f.tokens_per_s_per_chip);
  out["tflops_per_chip"] = finite(f.tflops_per_chip);
  out["bound_by"] = f.bound_by;
  out["time_s"] = time_json(ranked);
  out["memory_bytes"] = memory_json(answer, ranked);
  out["host_memory_bytes"] = finite(ranked.plan.memory.host.value());
  out["mfu_conventions"] = conventions_json(ranked);
  out["run"] = run_json(f.run);
  return out;
}

Json query_json(const TrainAnswer& a) {
  const TrainQuestion& q = a.question;
  return {{"model", a.model.name},
          {"model_title", a.model.title},
          {"hardware", a.hw.name},
          {"hardware_title", a.hw.title},
          {"chips", q.chips},
          {"slices", q.slices},
          {"topology", q.topology ? Json(*q.topology) : Json(nullptr)},
          {"slice", a.slice.name()},
          {"seq", a.workload.seq},
          {"batch_seqs", whole(a.workload.batch_seqs)},
          {"batch_tokens", whole(a.workload.batch_seqs * static_cast<double>(a.workload.seq))},
          {"tokens", a.workload.tokens ? whole(*a.workload.tokens) : Json(nullptr)},
          {"precision", a.workload.precision.name},
          {"optimizer", a.workload.optimizer.name},
          {"fine_tune", fine_tune_json(a)},
          {"attention", kAttentionKernelNames.at(static_cast<std::size_t>(a.workload.attention))},
          {"graphs", kGraphCaptureNames.at(static_cast<std::size_t>(a.workload.graphs))},
          {"expert_overlap", a.workload.expert_overlap},
          {"balanced_experts", a.workload.balanced_experts},
          {"expert_capacity", number_or_null(a.workload.expert_capacity)},
          {"tp_overlap", kCommOverlapNames.at(static_cast<std::size_t>(a.workload.tp_overlap))},
          {"dp_overlap", kCommOverlapNames.at(static_cast<std::size_t>(a.workload.dp_overlap))},
          {"stages", kStageSplitNames.at(static_cast<std::size_t>(a.workload.runtime.stages))},
          {"efficiency", q.ideal ? "ideal" : "calibrated"},
          {"stack", q.ideal ? Json(nullptr) : Json(efficiency_asked_for(q, a.hw).stack)},
          {"price_usd_per_chip_hour", number_or_null(price_of(a))},
          {"objective", kObjectiveNames.at(static_cast<std::size_t>(q.objective))},
          {"top", q.top},
          {"variants", q.variants},
          {"fix", filter_json(q.fix)},
          {"max", filter_json(q.max)},
          {"set", q.set}};
}

Json search_json(const SearchStats& s, bool complete) {
  Json rejected = Json::object();
  for (std::size_t i = 0; i < kRejectCount; ++i) {
    if (s.rejected[i] > 0) rejected[std::string(key_of(static_cast<Reject>(i)))] = s.rejected[i];
  }
  return {
      {"candidates", s.candidates}, {"feasible", s.feasible}, {"evaluated", s.evaluated},        {"pruned", s.pruned},
      {"rejected", rejected},       {"complete", complete},   {"elapsed_s", finite(s.elapsed_s)}};
}

std::string train_json(const TrainAnswer& answer, std::string_view tool_version, bool complete) {
  Json out = document_head("scalecalc/train/1", tool_version);
  out["query"] = query_json(answer);
  out["assumptions"] = assumptions_json(answer.assumptions);
  Json plans = Json::array();
  for (std::size_t i = 0; i < answer.plans.size(); ++i) plans.push_back(plan_json(answer, answer.plans[i], i + 1));
  out["plans"] = std::move(plans);
  out["cheaper_on_fewer_chips"] = answer.cheaper ? plan_json(answer, *answer.cheaper, 1) : Json(nullptr);
  out["search"] = search_json(answer.search, complete);
  out["completeness"] = answer.completeness;
  out["nearest_miss"] = answer.nearest_miss ? miss_json(answer, *answer.nearest_miss) : Json(nullptr);
  out["obstacles"] = answer.obstacles;
  out["would_fit"] = answer.would_fit ? Json(*answer.would_fit) : Json(nullptr);
  if (!answer.why_not.empty()) out["why_not"] = why_not_json(answer);
  if (answer.from) out["from"] = from_json(answer);
  out["batch_to_fill_tokens"] = answer.batch_to_fill ? whole(*answer.batch_to_fill) : Json(nullptr);
  if (answer.question.explain > 0) out["explain"] = explain_json(answer.explanation);
  return json_text(out, 2);
}

std::string train_jsonl(const TrainAnswer& answer, std::string_view tool_version) {
  std::string out;
  for (std::size_t i = 0; i < answer.plans.size(); ++i) {
    Json line = {{"schema", "scalecalc/train-plan/1"}, {"tool_version", tool_version}};
    line["model"] = answer.model.name;
    line["hardware"] = answer.hw.name;
    line["chips_asked"] = answer.question.chips;
    line.update(plan_json(answer, answer.plans[i], i + 1));
    out += json_text(line, -1);
  }
  return out;
}

}  // namespace scalecalc
