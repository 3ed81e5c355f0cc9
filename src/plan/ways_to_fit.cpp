// Finds the least recomputation, offload and loss chunking that make a layout fit in memory.
#include "plan/ways_to_fit.h"

#include <algorithm>
#include <array>

#include "cost/stage_memory.h"
#include "plan/enumerate.h"

namespace scalecalc {
namespace {

/// One fewer than the most layers of one kind that a part of a stage has.
std::int64_t some_layers(const std::vector<StageShape>& stages) {
  std::int64_t most = 1;
  for (const StageShape& stage : stages) {
    for (const std::int32_t layers : stage.layers) most = std::max<std::int64_t>(most, layers / stage.parts);
  }
  return most - 1;
}

}  // namespace

std::int64_t most_treated(const PlanRequest& request, const std::vector<StageShape>& stages) {
  const std::int64_t most = some_layers(stages);
  if (request.fix.remat_layers && *request.fix.remat_layers > most) return 0;
  return request.max.remat_layers ? std::min(most, *request.max.remat_layers) : most;
}

std::int64_t most_offloaded(const PlanRequest& request, const std::vector<StageShape>& stages) {
  const std::int64_t most = some_layers(stages);
  return request.fix.offload_layers && *request.fix.offload_layers > most ? 0 : most;
}

bool runs_whole(const PlanRequest& request, const Layout& layout, FactSet facts) {
  return !stack_refusal(request, FactGroup::kOffload, layout, facts) &&
         !stack_refusal(request, FactGroup::kLayout, layout, facts);
}

namespace {

bool runs_recipe(const PlanRequest& request, const Layout& layout, FactSet facts) {
  return !stack_refusal(request, FactGroup::kRemat, layout, facts) &&
         !stack_refusal(request, FactGroup::kRecipe, layout, facts) && runs_whole(request, layout, facts);
}

MemoryUse<double> use_of(const StepInput<double>& in, const KnownOfMember& known) {
  return known.states.empty() ? memory_use(in) : memory_use_on(in, known.states);
}

/// Whether a layout that fits needs its loss: it would not with one that keeps more.
bool needs_loss(const PlanRequest& request, const StepInput<double>& in, const KnownOfMember& known) {
  if (request.fix.loss) return true;
  StepInput<double> plain = in;
  for (int l = 0; l < static_cast<int>(in.layout.loss); ++l) {
    plain.layout.loss = static_cast<LossKind>(l);
    if (runs_recipe(request, plain.layout, known.facts) && fits(*request.hw, use_of(plain, known), request.usable)) {
      return false;
    }
  }
  return true;
}

}  // namespace

FitOutcome fit_with_remat(const PlanRequest& request, StepInput<double>& in, std::vector<FittedLayout>& ways,
                          const KnownOfMember& known) {
  ways.clear();
  MemoryUse<double> memory;
  const auto settle = [&] {
    if (!needs_loss(request, in, known)) return FitOutcome::kNotNeeded;
    ways.push_back({in.layout, memory});
    return FitOutcome::kFits;
  };
  const auto fits_with = [&](std::int64_t layers) {
    in.layout.remat_layers = layers;
    memory = use_of(in, known);
    return fits(*request.hw, memory, request.usable);
  };
  const std::int64_t most = most_treated(request, *in.stages);
  in.layout.offload = request.fix.offload.value_or(0);
  in.layout.offload_layers = 0;
  // Some layers beside an offload are for those who pin both: no free search looks at them.
  if (in.layout.offload != 0 && !request.fix.remat_layers) return FitOutcome::kNotNeeded;
  if (!runs_whole(request, in.layout, known.facts)) return FitOutcome::kRefused;
  if (const auto& pinned = request.fix.remat_layers) {
    if (*pinned > most || !fits_with(*pinned)) return FitOutcome::kTooLarge;
    return settle();
  }
  StepInput<double> kept = in;
  kept.layout.remat = Remat::kNone;
  if (most < 1 || fits(*request.hw, use_of(kept, known), request.usable)) return FitOutcome::kNotNeeded;
  if (!fits_with(most)) return FitOutcome::kTooLarge;
  fits_with(fewest(most, fits_with));
  return settle();
}

namespace {

constexpr std::array<std::uint8_t, 5> kOffloadSteps{kOffloadOptimizer, kOffloadActivations,
                                                    kOffloadOptimizer | kOffloadActivations,
                                                    kOffloadOptimizer | kOffloadWeights, kOffloadAll};

}  // namespace

namespace {

/// Whether `less` offloads nothing that `more` does not, and activations of no more layers.
bool offloads_less(const Layout& less, const Layout& more) {
  if ((less.offload & ~more.offload) != 0) return false;
  if ((less.offload & kOffloadActivations) == 0 || more.offload_layers == 0) return true;
  return less.offload_layers > 0 && less.offload_layers <= more.offload_layers;
}

}  // namespace

std::uint8_t most_offload(const PlanRequest& request, const Layout& layout) {
  if (request.fix.offload) return *request.fix.offload;
  const HardwareSpec& hw = *request.hw;
  std::uint8_t out = 0;
  if (!hw.host_bandwidth() || hw.host_memory().value() <= 0) return out;
  Layout with = layout;
  for (const std::uint8_t step : kOffloadSteps) {
    with.offload = step;
    for (const std::int64_t layers : {0, 1}) {
      if (layers > 0 && (step & kOffloadActivations) == 0) continue;
      with.offload_layers = layers;
      if (!stack_refusal(request, FactGroup::kOffload, with)) out = static_cast<std::uint8_t>(out | step);
    }
  }
  return out;
}

namespace {

/// With what in.layout.offload says, of the fewest layers. The chip's memory does not grow with their number and the
/// host's does, so where the fewest with which the chip has room are too much for the host, more are too. `before`:
/// what the stages hold before.
FitOutcome fit_offloading(const PlanRequest& request, StepInput<double>& in,
                          const std::vector<MemoryUse<double>>& before, MemoryUse<double>& memory, FactSet facts) {
  const auto measure = [&](std::int64_t layers) {
    in.layout.offload_layers = layers;
    memory = memory_use(in, before);
    return memory.total().value() <= request.usable * request.hw->hbm_capacity.value();
  };
  const auto outcome = [&] {
    return fits(*request.hw, memory, request.usable) ? FitOutcome::kFits : FitOutcome::kTooLarge;
  };
  const bool counts = (in.layout.offload & kOffloadActivations) != 0;
  const std::optional<std::int64_t>& pinned = request.fix.offload_layers;
  const std::int64_t most = counts ? most_offloaded(request, *in.stages) : 0;
  if (counts && pinned.value_or(0) > most) return FitOutcome::kTooLarge;
  in.layout.offload_layers = counts ? pinned.value_or(most > 0 ? 1 : 0) : 0;
  bool runs = runs_whole(request, in.layout, facts);
  if (in.layout.offload_layers > 0 && !pinned) {
    if (runs && measure(most)) {
      measure(fewest(most, measure));
      return outcome();
    }
    in.layout.offload_layers = 0;
    runs = runs_whole(request, in.layout, facts);
  }
  if (!runs) return FitOutcome::kRefused;
  measure(in.layout.offload_layers);
  return outcome();
}

}  // namespace

FitOutcome fit_with_offload(const PlanRequest& request, StepInput<double>& in, std::vector<FittedLayout>& ways,
                            std::uint8_t most, const KnownOfMember& known) {
  ways.clear();
  in.layout.offload = request.fix.offload.value_or(0);
  const std::vector<MemoryUse<double>> own =
      known.states.empty() ? memory_of_state(in) : std::vector<MemoryUse<double>>{};
  const std::vector<MemoryUse<double>> before = memory_before_offload(in, known.states.empty() ? own : known.states);
  MemoryUse<double> memory;
  const auto add = [&] {
    if (needs_loss(request, in, known)) ways.push_back({in.layout, memory});
  };
  FitOutcome out = fit_offloading(request, in, before, memory, known.facts);
  if (out == FitOutcome::kFits) {
    add();
    return ways.empty() ? FitOutcome::kNotNeeded : out;
  }
  if (out == FitOutcome::kRefused || request.fix.offload) return out;
  const Layout kept = in.layout;
  in.layout.offload = most;
  const bool enough =
      in.layout.offload != 0 && !(request.usable * request.hw->hbm_capacity < memory_use(in, before).total());
  in.layout = kept;
  if (!enough) return out;
  std::vector<Layout> found;
  for (const std::uint8_t step : kOffloadSteps) {
    if (request.usable * request.hw->hbm_capacity.value() < known.least[step]) continue;
    in.layout.offload = step;
    if (fit_offloading(request, in, before, memory, known.facts) != FitOutcome::kFits) continue;
    out = FitOutcome::kNotNeeded;
    if (std::any_of(found.begin(), found.end(), [&](const Layout& less) { return offloads_less(less, in.layout); })) {
      continue;
    }
    found.push_back(in.layout);
    add();
  }
  in.layout = kept;
  return ways.empty() ? out : FitOutcome::kFits;
}

bool chip_may_hold(const PlanRequest& request, StepInput<double> in, bool some) {
  const HardwareSpec& hw = *request.hw;
  Layout& layout = in.layout;
  const auto holds = [&](std::uint8_t offload) {
    layout.offload = offload;
    layout.offload_layers = 0;
    const MemoryUse<double> memory = memory_use(in);
    // Activations of fewer layers are less for the host.
    const bool host = (offload & kOffloadActivations) != 0 || !(hw.host_memory() < memory.host);
    return host && memory.total().value() <= request.usable * hw.hbm_capacity.value();
  };
  if (some || request.fix.offload) return holds(request.fix.offload.value_or(0));
  const auto runs = [&] {
    for (const std::int64_t layers : {std::int64_t{0}, request.fix.offload_layers.value_or(1)}) {
      if (layers > 0 && (layout.offload & kOffloadActivations) == 0) continue;
      layout.offload_layers = layers;
      if (runs_whole(request, layout)) return true;
    }
    return false;
  };
  if (holds(0) && runs()) return true;
  if (!hw.host_bandwidth() || !(hw.host_memory().value() > 0) || !holds(kOffloadAll)) return false;
  return std::any_of(kOffloadSteps.begin(), kOffloadSteps.end(),
                     [&](std::uint8_t step) { return holds(step) && runs(); });
}

bool looks_at_ranks(const PlanRequest& request) {
  if (!request.stack) return false;
  const StackRelease& stack = *request.stack;
  for (const FactGroup group : {FactGroup::kSharding, FactGroup::kOffload, FactGroup::kLayout}) {
    const auto looks = [&](std::size_t fact) { return (stack.facts[fact].levels & (kLevelRanks | kLevelBatch)) != 0; };
    if (first_fact(stack.of(group), looks)) return true;
  }
  return false;
}

}  // namespace scalecalc
