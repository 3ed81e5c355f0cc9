// Which layouts a deployment of an engine may have, for `serve`, jobs and rl, and why pins have none. What is legal the
// rows of plan/layout_rules.h say; what is worth looking at is chosen here.
#include "serve/serve_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/divisors.h"
#include "base/text.h"
#include "plan/layout_rules.h"
#include "plan/stack_supports.h"
#include "serve/serving_system.h"

namespace scalecalc {

std::string describe(const ServeLayout& layout) {
  std::string out;
  const std::array<std::pair<const char*, std::int64_t>, 8> degrees{{{"tp", layout.tp},
                                                                     {"cp", layout.cp},
                                                                     {"attention dp", layout.attention_dp},
                                                                     {"ep", layout.ep},
                                                                     {"etp", layout.etp},
                                                                     {"pp", layout.pp},
                                                                     {"dp", layout.dp}}};
  for (const auto& [name, degree] : degrees) {
    if (name == nullptr || degree == 1) continue;
    const bool implied = std::string_view(name) == "etp" && layout.ep == 1 && layout.etp == layout.group();
    if (!implied) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, degree);
  }
  if (layout.scheme == ServeScheme::kStationary2d)
    out += fmt::format(", 2d {} x {}", layout.tp_x, layout.tp / layout.tp_x);
  if (layout.scheme == ServeScheme::kGathered) out += ", weights gathered";
  if (layout.ep_overlap) out += ", expert overlap";
  return out.empty() ? "one chip" : out;
}

const std::array<ServeDimension, kServeDimensions> kServeDimensionTable{{
    {"tp", &ServePins::tp, [](const ServeLayout& l) { return l.tp; }},
    {"tp_x", &ServePins::tp_x, [](const ServeLayout& l) { return l.tp_x; }},
    {"pp", &ServePins::pp, [](const ServeLayout& l) { return l.pp; }},
    {"ep", &ServePins::ep, [](const ServeLayout& l) { return l.ep; }},
    {"etp", &ServePins::etp, [](const ServeLayout& l) { return l.etp; }},
    {"attention_dp", &ServePins::attention_dp, [](const ServeLayout& l) { return l.attention_dp; }},
    {"cp", &ServePins::cp, [](const ServeLayout& l) { return l.cp; }},
    {"dp", &ServePins::dp, [](const ServeLayout& l) { return l.dp; }},
    {"scheme", &ServePins::scheme, [](const ServeLayout& l) { return static_cast<std::int64_t>(l.scheme); }},
    {"ep_overlap", &ServePins::ep_overlap, [](const ServeLayout& l) { return std::int64_t{l.ep_overlap ? 1 : 0}; }},
}};

ServePins ServePins::or_else(const ServePins& other) const {
  ServePins out = *this;
  for (const ServeDimension& d : kServeDimensionTable) {
    if (!(out.*d.pin)) out.*d.pin = other.*d.pin;
  }
  return out;
}

namespace {

/// The layout as rules and facts of engines read it.
Layout degrees_of(const ServeLayout& l) {
  Layout out{.dp = l.dp, .tp = l.tp, .cp = l.cp, .pp = l.pp, .ep = l.ep, .etp = l.etp};
  out.ep_overlap = l.ep_overlap;
  return out;
}

EngineRanks engine_ranks(const ServeLayout& l, std::int64_t copies) {
  return {.attention_dp = l.attention_dp,
          .tp_x = l.tp_x,
          .in_two = l.scheme == ServeScheme::kStationary2d,
          .gathered = l.scheme == ServeScheme::kGathered,
          .copies = copies};
}

bool breaks_a_rule(const ModelSpec& model, std::int64_t chips, const ServeLayout& layout, std::int64_t copies) {
  const EngineRanks engine = engine_ranks(layout, copies);
  return first_broken({.model = &model, .chips = chips, .engine = &engine}, degrees_of(layout)) != nullptr;
}

/// Of the legal layouts those worth looking at.
class ServeEnumerator {
 public:
  ServeEnumerator(const ModelSpec& model, const HardwareSpec& hw, const ServePins& fix, const ServePins& max,
                  std::int64_t copies)
      : model_(model), hw_(hw), fix_(fix), max_(max), copies_(copies) {}

  std::vector<ServeLayout> run(std::int64_t chips) {
    for (const std::int64_t tp : divisors(chips)) {
      for (const std::int64_t pp : divisors(chips / tp)) {
        if (pp > model_.layers()) break;  // none of more is legal
        for (const std::int64_t cp : divisors(chips / tp / pp)) {
          for (const std::int64_t adp : divisors(chips / tp / pp / cp)) {
            if (adp > 1 && (!model_.moe || (cp > 1 && !fix_.cp))) break;
            const std::int64_t dp = chips / tp / pp / cp / adp;
            const ServeLayout layout{.tp = tp, .pp = pp, .attention_dp = adp, .cp = cp, .dp = dp};
            model_.moe ? experts(layout) : schemes(layout);
          }
        }
      }
    }
    return std::move(out_);
  }

 private:
  void experts(ServeLayout layout) {
    for (const std::int64_t etp : divisors(layout.group())) {
      layout.etp = etp;
      layout.ep = layout.group() / etp;
      const bool usual = etp == 1 || etp == layout.group() || etp == layout.tp;
      if (!usual && !fix_.ep && !fix_.etp) continue;
      for (const bool overlap : {false, true}) {
        layout.ep_overlap = overlap;
        add(layout);
      }
      layout.ep_overlap = false;
    }
  }

  /// Two-dimensional layouts divide heads over one factor of the ranks and sequences over the other; gathered weights
  /// need not divide by heads at all, but nobody who is not asked for them should wait for a batch of prompts.
  void schemes(ServeLayout layout) {
    layout.etp = layout.group();
    add(layout);
    if (fix_.scheme) {
      layout.scheme = ServeScheme::kGathered;
      add(layout);
    }
    if (!hw_.is_torus() && !fix_.scheme && fix_.tp_x.value_or(1) == 1) return;
    layout.scheme = ServeScheme::kStationary2d;
    for (const std::int64_t x : divisors(layout.tp)) {
      layout.tp_x = x;
      if (x > 1 && x < layout.tp) add(layout);
    }
  }

  void add(const ServeLayout& layout) {
    for (const ServeDimension& d : kServeDimensionTable) {
      const auto& pinned = fix_.*d.pin;
      const auto& most = max_.*d.pin;
      if ((pinned && *pinned != d.value(layout)) || (most && *most < d.value(layout))) return;
    }
    if (!breaks_a_rule(model_, layout.chips(), layout, copies_)) out_.push_back(layout);
  }

  const ModelSpec& model_;
  const HardwareSpec& hw_;
  const ServePins& fix_;
  const ServePins& max_;
  std::int64_t copies_;
  std::vector<ServeLayout> out_;
};

}  // namespace

std::vector<ServeLayout> serve_layouts(const ModelSpec& model, const HardwareSpec& hw, std::int64_t chips,
                                       const ServePins& fix, const ServePins& max, std::int64_t copies) {
  return ServeEnumerator(model, hw, fix, max, copies).run(chips);
}

std::optional<Slice> engine_slice(const HardwareSpec& hw, std::int64_t chips) {
  const std::vector<Slice> found = slices_of(hw, chips, 1);
  if (found.empty()) return std::nullopt;
  const auto longest = [](const Slice& s) {
    return s.shape.empty() ? 0 : *std::max_element(s.shape.begin(), s.shape.end());
  };
  return *std::min_element(found.begin(), found.end(),
                           [&](const Slice& a, const Slice& b) { return longest(a) < longest(b); });
}

Deployments deployments(const ServingSystem& system, std::int64_t chips, const ServePins& fix, const ServePins& max,
                        bool speculative) {
  Deployments out{.slice = engine_slice(*system.hw, chips)};
  if (!out.slice) return out;
  for (const ServeLayout& layout :
       serve_layouts(*system.model, *system.hw, chips, fix, max, system.redundant_experts)) {
    const SupportFact* fact = refused_layout(system, layout, speculative);
    if (fact == nullptr) {
      out.layouts.push_back(layout);
    } else if (std::find(out.refusals.begin(), out.refusals.end(), fact) == out.refusals.end()) {
      out.refusals.push_back(fact);
    }
  }
  return out;
}

const SupportFact* refused_layout(const ServingSystem& system, const ServeLayout& layout, bool speculative) {
  if (!system.launcher) return nullptr;
  static const Workload kNoTraining{};
  const Layout asked = degrees_of(layout);
  const auto at =
      system.launcher->refusal({asked, *system.model, kNoTraining, *system.hw, layout.attention_dp, speculative});
  return at ? &system.launcher->facts[*at] : nullptr;
}

namespace {

/// The pins, and for what is open a value that breaks no rule of the others.
ServeLayout with_pins(const ModelSpec& model, std::int64_t chips, const ServePins& fix, std::int64_t copies) {
  ServeLayout out{.tp = fix.tp.value_or(1),
                  .tp_x = fix.tp_x.value_or(1),
                  .pp = fix.pp.value_or(1),
                  .ep = fix.ep.value_or(1),
                  .etp = fix.etp.value_or(1),
                  .attention_dp = fix.attention_dp.value_or(1),
                  .cp = fix.cp.value_or(1),
                  .dp = fix.dp.value_or(1)};
  out.scheme = fix.scheme     ? static_cast<ServeScheme>(*fix.scheme)
               : out.tp_x > 1 ? ServeScheme::kStationary2d
                              : ServeScheme::kStationary1d;
  // What is open may still have other ranks to exchange with.
  out.ep_overlap = fix.ep_overlap == 1 && (!model.moe || fix.ep == 1 || fix.attention_dp == 1);
  if (fix.tp_x || out.scheme != ServeScheme::kStationary2d) return out;
  const EngineRanks ranks = engine_ranks(out, copies);
  for (const std::int64_t x : divisors(out.tp)) {
    if (x == 1 || x == out.tp) continue;
    EngineRanks tried = ranks;
    tried.tp_x = x;
    const RuleReads shape = reads::kTpWays | reads::kEngine;
    const bool legal = first_broken({&model, nullptr, chips, &tried}, degrees_of(out), shape) == nullptr;
    if (legal || out.tp_x == 1) out.tp_x = x;
    if (legal) break;
  }
  return out;
}

}  // namespace

std::vector<std::string> serve_obstacles(const ModelSpec& model, std::int64_t chips, const ServePins& fix,
                                         std::int64_t copies) {
  const ServeLayout layout = with_pins(model, chips, fix, copies);
  const EngineRanks engine = engine_ranks(layout, copies);
  PinnedCase pins;
  for (const auto& pin : {fix.tp, fix.pp, fix.cp, fix.attention_dp, fix.dp}) pins.degrees *= pin.value_or(1);
  return rules_against({{.model = &model, .chips = chips, .engine = &engine}, degrees_of(layout), &pins},
                       fix.tp ? reads::kTpWays : 0);
}

std::string excluded_pins(const ModelSpec& model, const HardwareSpec& hw, std::span<const std::int64_t> counts,
                          const ServePins& fix, const ServePins& max, std::int64_t copies) {
  const auto any = [&](const ServePins& pins) {
    return std::any_of(counts.begin(), counts.end(),
                       [&](std::int64_t chips) { return !serve_layouts(model, hw, chips, pins, max, copies).empty(); });
  };
  if (any(fix)) return "";
  std::vector<std::string> without;
  for (const ServeDimension& d : kServeDimensionTable) {
    ServePins fewer = fix;
    if (!(fewer.*d.pin)) continue;
    (fewer.*d.pin).reset();
    if (any(fewer)) without.push_back(fmt::format("without {}", d.name));
  }
  return fmt::format("no layout has all that --fix and --max ask for together{}",
                     without.empty() ? "" : "; there are some " + join(without, ", or "));
}

}  // namespace scalecalc
