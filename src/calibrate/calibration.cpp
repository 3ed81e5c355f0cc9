// Computes what a fit is worth on rows it has not seen, for training and for serving.
#include "calibrate/calibration.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/progress.h"
#include "import/hf_config.h"

namespace scalecalc {
namespace {

std::vector<CoefficientSlot> all_slots() {
  using E = Efficiency;
  std::vector<CoefficientSlot> out;
  // What a stack loses on large matmuls is the same in both formats of 16 bits, which every data sheet rates alike.
  constexpr auto kBf16 = static_cast<std::size_t>(DType::kBf16), kFp16 = static_cast<std::size_t>(DType::kFp16);
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (i == kFp16) continue;
    out.push_back({.path = fmt::format("matmul.{}", kDTypeNames[i]), .least = 0.05, .fields = {}, .format = i});
    if (i == kBf16) out.back().as_well = kFp16;
  }
  const auto share = [&](const char* path, std::vector<Coefficient E::*> fields) {
    out.push_back({.path = path, .least = 0.02, .fields = std::move(fields)});
  };
  share("block_scaled", {&E::block_scaled});
  out.push_back({.path = "matmul_half_dim", .least = 1, .most = 4096, .fields = {&E::matmul_half_dim}});
  share("grouped_matmul", {&E::grouped_matmul});
  out.push_back({.path = "grouped_half_rows", .least = 1, .most = 4096, .fields = {&E::grouped_half_rows}});
  // Runs cannot tell the two phases apart: backward keeps its ratio to forward.
  share("attention_forward", {&E::attention_forward, &E::attention_backward, &E::scan_forward, &E::scan_backward});
  share("hbm", {&E::hbm});
  share("cast", {&E::cast});
  share("link.scale_up", {&E::link_scale_up});
  share("link.scale_out", {&E::link_scale_out});
  share("overlap.tp", {&E::overlap_tp});
  share("overlap.tp_pipelined", {&E::overlap_tp_pipelined});
  share("overlap.fsdp", {&E::overlap_fsdp});
  share("overlap.dp", {&E::overlap_dp});
  share("overlap.cp", {&E::overlap_cp});
  share("overlap.ep", {&E::overlap_ep});
  share("overlap.ep_paired", {&E::overlap_ep_paired});
  share("overlap.pp", {&E::overlap_pp});
  share("captured_share", {&E::captured_share});
  out.push_back({.path = "kernel_overhead", .least = 1e-7, .most = 1e-3, .fields = {&E::kernel_overhead}});
  out.push_back({.path = "expert_overhead", .least = 1e-6, .most = 1e-2, .fields = {&E::expert_overhead}});
  out.push_back({.path = "host_overhead", .least = 1e-7, .most = 1e-3, .fields = {&E::host_overhead}});
  out.push_back({.path = "moe_imbalance", .least = 1, .most = 4, .fields = {&E::moe_imbalance}});
  out.push_back({.path = "step_overhead", .least = 1e-4, .most = 60, .fields = {&E::step_overhead}});
  return out;
}

const Coefficient& first_of(const CoefficientSlot& slot, const Efficiency& efficiency) {
  return slot.format < kDTypeCount ? efficiency.matmul[slot.format] : efficiency.*(slot.fields.front());
}

ConfigNode coefficient_node(const WrittenCoefficient& c, bool factor) {
  if (factor) {
    MapBuilder times{SourceSpan{}};
    times.add("times", fmt::format("{:.4g}", c.value));
    return times.add("error", fmt::format("{:.3g}%", 100 * c.error)).take();
  }
  const bool time = c.path.ends_with("overhead");
  MapBuilder out{SourceSpan{}};
  constexpr double kMilli = 1e-3;
  const std::string seconds =
      c.value < kMilli ? fmt::format("{:.3g}us", c.value * 1e6) : fmt::format("{:.3g}ms", c.value * 1e3);
  out.add("value", time ? seconds : fmt::format("{:.4g}", c.value));
  return out.add("error", fmt::format("{:.3g}%", 100 * c.error)).take();
}

/// Puts `value` under a path of one or two keys.
void place(ConfigNode& map, std::string_view path, ConfigNode value) {
  const std::size_t dot = path.find('.');
  const std::string key(path.substr(0, dot));
  if (dot == std::string_view::npos) {
    map.entries.push_back({key, {}, std::move(value)});
    return;
  }
  auto at = std::find_if(map.entries.begin(), map.entries.end(), [&](const auto& entry) { return entry.key == key; });
  if (at == map.entries.end()) {
    ConfigNode inner;
    inner.kind = ConfigNode::Kind::kMap;
    map.entries.push_back({key, {}, std::move(inner)});
    at = map.entries.end() - 1;
  }
  place(at->value, path.substr(dot + 1), std::move(value));
}

}  // namespace

double CoefficientSlot::value(const Efficiency& efficiency) const { return first_of(*this, efficiency).value; }
double CoefficientSlot::error(const Efficiency& efficiency) const { return first_of(*this, efficiency).error; }

void CoefficientSlot::set(Efficiency& efficiency, double value, double error) const {
  const double ratio = value / first_of(*this, efficiency).value;
  const auto move = [&](Coefficient& c) {
    c.value = std::clamp(c.value * ratio, least, most);
    if (error >= 0) c.error = error;
  };
  if (as_well < kDTypeCount) move(efficiency.matmul[as_well]);
  if (format < kDTypeCount) return move(efficiency.matmul[format]);
  for (const auto field : fields) move(efficiency.*field);
}

const std::vector<CoefficientSlot>& fitted_slots() {
  static const std::vector<CoefficientSlot> kSlots = all_slots();
  return kSlots;
}

const std::vector<ServeSlot>& serve_slots() {
  using S = ServingEfficiency;
  // Fractions of rates differ between kernels by a tenth or two (GEMMs, attention and all-reduces measured on A100,
  // H100, H200, B200 and L40S); what engines spend beside their kernels differs several times.
  static const std::vector<ServeSlot> kSlots{
      {"weight_read", &S::weight_read, 0.2, 0.97, 0.1},
      {"kv_read", &S::kv_read, 0.2, 0.97, 0.15},
      {"expert_read", &S::expert_read, 0.1, 1, 0.25},
      {"dequantise", &S::dequantise, 0.3, 1, 0.15},
      {"matmul", &S::matmul, 0.3, 1.6, 0.12},
      {"layer_overhead", &S::layer_overhead, 1e-6, 5e-3, 0.6},
      {"step_overhead", &S::step_overhead, 1e-5, 0.1, 0.6},
      {"sequence_overhead", &S::sequence_overhead, 1e-8, 1e-3, 0.6},
      {"collective_factor", &S::collective_factor, 0.1, 10, 0.3},
  };
  return kSlots;
}

ConfigNode stack_block(const std::vector<WrittenCoefficient>& coefficients, const std::string& stack,
                       const std::string& source, bool factors, const ModelErrors& model_errors) {
  ConfigNode text = text_node(source, SourceSpan{});
  text.quoted = true;
  ConfigNode inner = MapBuilder(SourceSpan{}).add("source", std::move(text)).take();
  for (const WrittenCoefficient& c : coefficients) place(inner, c.path, coefficient_node(c, factors || c.factor));
  MapBuilder classes(SourceSpan{});
  for (std::size_t i = 0; i < model_errors.size(); ++i) {
    if (model_errors[i] > 0) classes.add(kRunClassNames[i], fmt::format("{:.3g}%", 100 * model_errors[i]));
  }
  ConfigNode errors = classes.take();
  if (!errors.entries.empty()) place(inner, "model_error", std::move(errors));
  ConfigNode stacks = MapBuilder(SourceSpan{}).add(stack, std::move(inner)).take();
  ConfigNode efficiency = MapBuilder(SourceSpan{}).add("stacks", std::move(stacks)).take();
  if (factors) return efficiency;
  return MapBuilder(SourceSpan{}).add("efficiency", std::move(efficiency)).take();
}

Folds deal(const std::map<std::string, std::size_t>& sizes, std::size_t most) {
  std::vector<std::pair<std::string, std::size_t>> order(sizes.begin(), sizes.end());
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  Folds out{.of_part = {}, .count = std::min(most, order.size())};
  std::vector<std::size_t> filled(out.count);
  for (const auto& [part, size] : order) {
    const auto emptiest = std::min_element(filled.begin(), filled.end());
    out.of_part[part] = static_cast<std::size_t>(emptiest - filled.begin());
    *emptiest += size;
  }
  return out;
}

std::string fitted_to(const std::string& date, const std::string& files, std::size_t runs, std::size_t sources) {
  return fmt::format("fitted{}{}: {} runs of {} source{}", date.empty() ? "" : " " + date,
                     files.empty() ? "" : " to " + files, runs, sources, sources == 1 ? "" : "s");
}

Gain gain_of(const std::map<std::string, std::vector<double>>& parts) {
  std::vector<double> means;
  for (const auto& [name, differences] : parts) means.push_back(mean_of(differences));
  if (means.empty()) return {};
  Gain out{.mean = mean_of(means)};
  if (means.size() < 2) return out;
  double squares = 0;
  for (const double mean : means) squares += (mean - out.mean) * (mean - out.mean);
  const double n = static_cast<double>(means.size());
  out.standard_error = std::sqrt(squares / (n - 1) / n);
  return out;
}

void CrossFit::cross_fit(std::vector<std::size_t> fold_of, std::size_t folds) {
  fold_of_ = std::move(fold_of);
  Progress fits("fits", folds + 1);
  fitted_ = fit(std::nullopt);
  converged_ = !should_stop(stop_);
  for (std::size_t fold = 0; fold < folds; ++fold) {
    fits.add();
    if (should_stop(stop_)) return;
    Factors blind = fit(fold);
    if (should_stop(stop_)) return;  // half a fit says nothing of unseen runs
    blind_.push_back(std::move(blind));
  }
}

double CrossFit::coverage_of(double scale) const {
  std::size_t inside = 0;
  for (std::size_t row = 0; row < fold_of_.size(); ++row) inside += in_band(row, scale) ? 1U : 0U;
  return static_cast<double>(inside) / static_cast<double>(fold_of_.size());
}

double CrossFit::scale_of_errors(int halvings) const {
  if (blind_.empty()) return 1;
  double low = 0.02;
  double high = 8;
  for (int i = 0; i < halvings; ++i) {
    const double middle = std::sqrt(low * high);
    (coverage_of(middle) >= kWantedCoverage ? high : low) = middle;
  }
  return high;
}

}  // namespace scalecalc
