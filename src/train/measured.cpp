// Compares the user's own measured step with its prediction and names the terms that grew.
#include "train/measured.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/diagnostic.h"
#include "base/text.h"
#include "plan/plan_costs.h"
#include "train/figures.h"

namespace scalecalc {
namespace {

struct CauseRemedy {
  std::string_view cause;
  std::string_view remedy;
};
constexpr std::array kCauseRemedies{
    CauseRemedy{"compute",
                "a narrower format (--precision), a newer attention kernel (--attention), larger matmuls "
                "(microbatch, fewer tensor ranks), less remat"},
    CauseRemedy{"hbm", "fused norms, activations and loss; a larger microbatch"},
    CauseRemedy{"tp_exposed", "--tp-overlap pipelined, fewer tensor ranks, tensor ranks inside one node"},
    CauseRemedy{"fsdp_exposed", "prefetched gathers, more tokens on a chip, sharding inside groups (dp x fsdp)"},
    CauseRemedy{"dp_exposed", "--dp-overlap stack, larger batches, gradients in 16 bits"},
    CauseRemedy{"cp_exposed", "--cp-comm, fewer context ranks"},
    CauseRemedy{"ep_exposed", "--moe-dispatcher deepep, --ep-overlap on, expert ranks inside one node, an evener load"},
    CauseRemedy{"pp_exposed", "larger microbatches, stages on faster links"},
    CauseRemedy{"offload_exposed", "less offloaded, or a faster link to the host"},
    CauseRemedy{"bubble", "more microbatches, interleaved or zero-bubble schedules, evener stages (split)"},
    CauseRemedy{"optimizer", "ZeRO over more ranks, a fused optimizer"},
    CauseRemedy{"overhead", "--graphs layer, fewer and larger kernels, a host that is not late"},
};

using Causes = std::vector<std::pair<std::string, double>>;

Causes causes_at(const TrainAnswer& answer, const Plan& plan, const Efficiency& corner) {
  const PlanRequest request{
      .model = &answer.model, .hw = &answer.hw, .efficiency = corner, .workload = answer.workload};
  return causes_of(read_plan(Reader<double>{}, request, plan).time);
}

std::vector<TermOffPrediction> off_prediction(const TrainAnswer& answer, const RankedPlan& plan, double gap) {
  const Causes low = causes_at(answer, plan.plan, fastest(answer.efficiency));
  const Causes high = causes_at(answer, plan.plan, slowest(answer.efficiency));
  std::vector<TermOffPrediction> out;
  for (std::size_t i = 0; i < plan.figures.time_s.size(); ++i) {
    const auto& [cause, seconds] = plan.figures.time_s[i];
    TermOffPrediction term{.cause = cause,
                           .predicted_s = seconds,
                           .low_s = std::min({seconds, low[i].second, high[i].second}),
                           .high_s = std::max({seconds, low[i].second, high[i].second}),
                           .needed_s = seconds + gap,
                           .remedy = remedy_of(cause)};
    // A faster step than predicted cannot come from a term that is smaller than the difference.
    if (term.high_s <= 0 || term.needed_s < 0) continue;
    term.within = term.needed_s >= term.low_s && term.needed_s <= term.high_s;
    out.push_back(std::move(term));
  }
  const auto room = [&](const TermOffPrediction& t) {
    return gap >= 0 ? t.high_s - t.predicted_s : t.predicted_s - t.low_s;
  };
  std::stable_sort(out.begin(), out.end(), [&](const auto& a, const auto& b) { return room(a) > room(b); });
  return out;
}

double mfu_in(const RankedPlan& plan, const std::string& convention) {
  if (convention.empty()) return plan.figures.mfu;
  std::vector<std::string> names;
  for (const FlopsConvention& known : plan.figures.conventions) {
    if (known.name == convention) return known.mfu;
    names.push_back(known.name);
  }
  const std::string near = did_you_mean(nearest(convention, names));
  throw UserError(fmt::format("--measured: {} is no convention of MFU", in_quotes(convention)),
                  fmt::format("{}{}one of {}", near, near.empty() ? "" : " ", join(names, ", ")));
}

}  // namespace

std::string_view remedy_of(std::string_view cause) {
  const auto* const found = std::find_if(kCauseRemedies.begin(), kCauseRemedies.end(),
                                         [&](const CauseRemedy& row) { return row.cause == cause; });
  return found == kCauseRemedies.end() ? std::string_view() : found->remedy;
}

std::variant<MeasuredSpeed, UnitError> parse_measured_speed(std::string_view text) {
  using Kind = MeasuredSpeed::Kind;
  MeasuredSpeed out{.text = std::string(text)};
  UnitKind unit = UnitKind::kSeconds;
  std::string_view number = text;
  const std::size_t tokens = text.find("tok");
  if (tokens != std::string_view::npos) {
    std::string_view rest = text.substr(tokens);
    constexpr std::array<std::string_view, 2> kTotal{"tokens/s", "tok/s"};
    constexpr std::array<std::string_view, 8> kOfChip{"tokens/s/chip", "tok/s/chip", "tokens/s/gpu",  "tok/s/gpu",
                                                      "tokens/s/GPU",  "tok/s/GPU",  "tokens/chip/s", "tokens/gpu/s"};
    const bool total = std::find(kTotal.begin(), kTotal.end(), rest) != kTotal.end();
    const bool of_chip = std::find(kOfChip.begin(), kOfChip.end(), rest) != kOfChip.end();
    if (!total && !of_chip) {
      return UnitError{fmt::format("{} is no speed of a step", in_quotes(text)),
                       "such as 14k tokens/s or 900 tokens/s/chip"};
    }
    out.kind = total ? Kind::kTokens : Kind::kTokensPerChip;
    unit = UnitKind::kNumber;
    number = text.substr(0, tokens);
    while (number.ends_with(' ')) number.remove_suffix(1);
    const auto counted = parse_quantity(number, UnitKind::kCount);
    if (std::holds_alternative<double>(counted)) unit = UnitKind::kCount;
  } else if (text.find('%') != std::string_view::npos) {
    out.kind = Kind::kMfu;
    unit = UnitKind::kFraction;
    number = text.substr(0, text.find(':'));
    if (number.size() < text.size()) out.convention = text.substr(number.size() + 1);
  }
  const auto parsed = parse_quantity(number, unit);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    return UnitError{error->message, "a step (41s), tokens (14k tokens/s, 900 tokens/s/chip) or an MFU (38%, 38%:6n)"};
  }
  out.value = std::get<double>(parsed);
  if (!(out.value > 0)) return UnitError{fmt::format("{} is no speed", in_quotes(text)), "it has to be above zero"};
  return out;
}

MeasuredVerdict judge_measured(const TrainAnswer& answer, const RankedPlan& plan, const MeasuredSpeed& speed) {
  using Kind = MeasuredSpeed::Kind;
  const double predicted = plan.plan.step_s;
  const PlanFigures& f = plan.figures;
  MeasuredVerdict out;
  switch (speed.kind) {
    case Kind::kStep: out.step_s = speed.value; break;
    case Kind::kTokens: out.step_s = predicted * f.tokens_per_s / speed.value; break;
    case Kind::kTokensPerChip: out.step_s = predicted * f.tokens_per_s_per_chip / speed.value; break;
    case Kind::kMfu: out.step_s = predicted * mfu_in(plan, speed.convention) / speed.value; break;
  }
  const double slower = out.step_s / predicted;
  out.over = slower - 1;
  out.tokens_per_s = f.tokens_per_s / slower;
  out.tokens_per_s_per_chip = f.tokens_per_s_per_chip / slower;
  out.tflops_per_chip = f.tflops_per_chip / slower;
  out.mfu = f.mfu / slower;
  out.hfu = f.hfu / slower;
  out.in_band = out.step_s >= f.step_low_s && out.step_s <= f.step_high_s;
  for (FlopsConvention convention : f.conventions) {
    convention.mfu /= slower;
    convention.tflops_per_chip /= slower;
    out.conventions.push_back(std::move(convention));
  }
  out.terms = off_prediction(answer, plan, out.step_s - predicted);
  return out;
}

void refuse_above_peak(const MeasuredVerdict& verdict, const std::string& said, const std::string& hint) {
  if (verdict.hfu <= 1) return;
  throw UserError(fmt::format("{}: a step of {} is an HFU of {:.3g} %, and no chip runs above its peak", said,
                              seconds_text(verdict.step_s), 100 * verdict.hfu),
                  hint);
}

}  // namespace scalecalc
