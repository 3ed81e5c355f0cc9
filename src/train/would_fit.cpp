// Searches for changes that make a question fit, so that only working suggestions are shown.
#include "train/would_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "base/units.h"
#include "plan/anything_fits.h"
#include "plan/dimensions.h"

namespace scalecalc {
namespace {

/// The smallest larger machine on which something fits, trying doublings.
std::optional<FlagChange> more_chips(const TrainQuestion& q, const PlanRequest& request, const Stop& stop) {
  if (request.fix.dp || request.fix.fsdp || q.topology) return std::nullopt;
  PlanRequest larger = request;
  std::int64_t chips = request.slices.front().chips;
  for (int doubling = 0; doubling < 12; ++doubling) {
    chips *= 2;
    larger.slices = slices_of(*request.hw, chips, q.slices);
    if (larger.slices.empty()) {
      const std::int64_t next = nearest_above(*request.hw, chips, q.slices);
      if (next == 0) return std::nullopt;
      chips = next;
      larger.slices = slices_of(*request.hw, chips, q.slices);
    }
    if (should_stop(stop)) return std::nullopt;
    if (anything_fits(larger, stop)) return FlagChange{"--chips", std::to_string(chips)};
  }
  return std::nullopt;
}

/// "dp 8, zero 3": the dimensions of one side of a change.
using Pinned = std::vector<const LayoutDimension*>;

/// The first plan with these pins let go, in words; nothing if nothing fits then either.
std::optional<std::string> without(const PlanRequest& request, const Pinned& pinned, const Stop& stop) {
  PlanRequest looser = request;
  looser.top = 1;
  for (const LayoutDimension* d : pinned) d->set_pin(looser.fix, std::nullopt);
  if (!anything_fits(looser, stop)) return std::nullopt;
  const std::vector<Plan> found = plan(looser, stop).plans;
  if (found.empty()) return std::nullopt;
  std::vector<std::string> now;
  std::vector<std::string> before;
  for (const LayoutDimension* d : pinned) {
    const std::int64_t was = *d->pin(request.fix);
    const std::int64_t is = d->value(found.front().layout);
    if (was == is) continue;
    now.push_back(fmt::format("{} {}", d->name, value_text(*d, is)));
    before.push_back(value_text(*d, was));
  }
  if (now.empty()) return std::nullopt;
  const std::int64_t chips = found.front().slice.chips;
  return fmt::format("with {} instead of {} it fits{}, step {}", join_and(now), join_and(before),
                     chips == request.slices.front().chips ? "" : fmt::format(" on {} chips", group_thousands(chips)),
                     seconds_text(found.front().step_s));
}

Pinned pinned_of(const LayoutFilter& fix, std::initializer_list<std::string_view> names) {
  Pinned out;
  for (const std::string_view name : names) {
    const LayoutDimension* d = find_dimension(name);
    if (d->pin(fix)) out.push_back(d);
  }
  return out;
}

}  // namespace

std::vector<FlagChange> what_would_fit(const TrainQuestion& q, const PlanRequest& request, const Stop& stop) {
  std::vector<FlagChange> ways;
  if (const auto chips = more_chips(q, request, stop)) ways.push_back(*chips);
  if (request.fix.offload) {
    PlanRequest with = request;
    with.fix.offload.reset();
    with.fix.offload_layers.reset();
    if (anything_fits(with, stop)) ways.push_back({"--offload", "auto"});
  }
  if (request.fix.loss) {
    PlanRequest with = request;
    with.fix.loss.reset();
    if (anything_fits(with, stop)) ways.push_back({"--loss", "auto"});
  }
  for (const char* name : {"adam-bf16", "adam8bit"}) {
    const Optimizer lighter = optimizer_of(name, request.workload.precision);
    if (lighter.state_bytes >= request.workload.optimizer.state_bytes) continue;
    PlanRequest with = request;
    with.workload.optimizer = lighter;
    if (!anything_fits(with, stop)) continue;
    ways.push_back({"--optimizer", name});
    break;
  }
  if (const auto& tune = request.workload.fine_tune; tune && tune->base != BaseFormat::kNf4) {
    PlanRequest with = request;
    with.workload.fine_tune->base = BaseFormat::kNf4;
    if (anything_fits(with, stop)) ways.push_back({"--base", "nf4"});
  }
  return ways;
}

std::vector<std::string> looser_pins_that_fit(const PlanRequest& request, const Stop& stop) {
  std::vector<std::string> out;
  for (const LayoutDimension& d : pin_dimensions()) {
    if (!d.pin(request.fix)) continue;
    if (const auto way = without(request, {&d}, stop)) out.push_back(*way);
  }
  // The sequences of a rank are mb x ga; the data ranks are dp x fsdp, and fsdp is ZeRO-3.
  for (const Pinned& together :
       {pinned_of(request.fix, {"mb", "ga"}), pinned_of(request.fix, {"dp", "fsdp", "zero"})}) {
    if (together.size() < 2) continue;
    const auto way = without(request, together, stop);
    if (way && std::find(out.begin(), out.end(), *way) == out.end()) out.push_back(*way);
  }
  return out;
}

}  // namespace scalecalc
