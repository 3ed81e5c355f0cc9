// Enumerates the layouts that a model, a machine and an engine allow for serving.
#include "serve/serve_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/divisors.h"
#include "base/text.h"
#include "model/sharding.h"
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

// Rules: heads, widths and experts divide as in the engines (vLLM, SGLang and TensorRT-LLM parallel configurations);
// schemes: Pope et al. 2022, arXiv:2211.05102.

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

class ServeEnumerator {
 public:
  ServeEnumerator(const ModelSpec& model, const HardwareSpec& hw, const ServePins& fix, const ServePins& max,
                  std::int64_t copies)
      : model_(model), hw_(hw), fix_(fix), max_(max), copies_(copies) {}

  std::vector<ServeLayout> run(std::int64_t chips) {
    for (const std::int64_t tp : divisors(chips)) {
      for (const std::int64_t pp : divisors(chips / tp)) {
        if (pp > model_.layers()) continue;
        for (const std::int64_t cp : divisors(chips / tp / pp)) {
          if (!context_divides(tp, cp)) continue;
          for (const std::int64_t adp : divisors(chips / tp / pp / cp)) {
            if (adp > 1 && (!model_.moe || (cp > 1 && !fix_.cp))) continue;
            const std::int64_t dp = chips / tp / pp / cp / adp;
            experts({.tp = tp, .pp = pp, .attention_dp = adp, .cp = cp, .dp = dp});
          }
        }
      }
    }
    return std::move(out_);
  }

 private:
  bool tensor_divides(std::int64_t tp) const {
    return undivided_heads(model_, tp).empty() && undivided_widths(model_, tp).empty();
  }

  /// Contexts are divided only where there are contexts: recurrences keep a state.
  bool context_divides(std::int64_t tp, std::int64_t cp) const {
    if (cp == 1) return true;
    return !model_.has_recurrence() && undivided_widths(model_, tp * cp).empty();
  }

  void experts(ServeLayout layout) {
    if (!model_.moe) {
      layout.etp = layout.group();
      return schemes(layout);
    }
    if (!tensor_divides(layout.tp)) return;
    for (const std::int64_t etp : divisors(layout.group())) {
      layout.etp = etp;
      layout.ep = layout.group() / etp;
      const bool usual = etp == 1 || etp == layout.group() || etp == layout.tp;
      if (!usual && !fix_.ep && !fix_.etp) continue;
      if ((model_.moe->experts + copies_) % layout.ep != 0 || model_.moe->d_ff % etp != 0) continue;
      add(layout);
      if (layout.ep == 1 || layout.attention_dp == 1) continue;  // nothing is exchanged
      layout.ep_overlap = true;
      add(layout);
      layout.ep_overlap = false;
    }
  }

  /// Two-dimensional layouts divide heads over one factor of the ranks and sequences over the other; gathered weights
  /// need not divide by heads at all, but nobody who is not asked for them should wait for a batch of prompts.
  void schemes(ServeLayout layout) {
    if (tensor_divides(layout.tp)) add(layout);
    if (layout.tp == 1 || layout.cp > 1) return;
    if (fix_.scheme) {
      layout.scheme = ServeScheme::kGathered;
      add(layout);
    }
    if (!hw_.is_torus() && !fix_.scheme && fix_.tp_x.value_or(1) == 1) return;
    layout.scheme = ServeScheme::kStationary2d;
    for (const std::int64_t x : divisors(layout.tp)) {
      layout.tp_x = x;
      const bool divides = model_.d_model % x == 0 && tensor_divides(layout.tp / x);
      if (x > 1 && x < layout.tp && divides) add(layout);
    }
  }

  void add(const ServeLayout& layout) {
    for (const ServeDimension& d : kServeDimensionTable) {
      const auto& pinned = fix_.*d.pin;
      const auto& most = max_.*d.pin;
      if ((pinned && *pinned != d.value(layout)) || (most && *most < d.value(layout))) return;
    }
    out_.push_back(layout);
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

const SupportFact* refused_layout(const ServingSystem& system, const ServeLayout& layout, bool speculative) {
  if (!system.launcher) return nullptr;
  static const Workload kNoTraining{};
  Layout asked;
  asked.dp = layout.dp;
  asked.tp = layout.tp;
  asked.cp = layout.cp;
  asked.pp = layout.pp;
  asked.ep = layout.ep;
  asked.etp = layout.etp;
  asked.ep_overlap = layout.ep_overlap;
  const auto at =
      system.launcher->refusal({asked, *system.model, kNoTraining, *system.hw, layout.attention_dp, speculative});
  return at ? &system.launcher->facts[*at] : nullptr;
}

namespace {

void expert_obstacles(const ModelSpec& model, const ServePins& fix, std::int64_t copies,
                      std::vector<std::string>& out) {
  if (!model.moe) {
    if (fix.attention_dp.value_or(1) > 1)
      out.push_back("attention_dp shares experts, of which the model has none: use dp");
    if (fix.ep.value_or(1) > 1) out.push_back("ep divides experts, of which the model has none: use tp or dp");
  } else {
    if (fix.ep && (model.moe->experts + copies) % *fix.ep != 0) {
      out.push_back(fmt::format("ep {} does not divide the {} experts{}", *fix.ep, model.moe->experts,
                                copies > 0 ? fmt::format(" and {} copies", copies) : ""));
    }
    if (fix.etp && model.moe->d_ff % *fix.etp != 0)
      out.push_back(fmt::format("etp {} does not divide an expert's d_ff of {}", *fix.etp, model.moe->d_ff));
  }
  if (fix.ep_overlap == 1 && (!model.moe || fix.ep == 1 || fix.attention_dp == 1)) {
    out.push_back("ep_overlap needs attention-data ranks that exchange tokens with expert ranks");
  }
}

void scheme_obstacles(const ModelSpec& model, const ServePins& fix, std::vector<std::string>& out) {
  const auto scheme = static_cast<ServeScheme>(fix.scheme.value_or(0));
  const std::int64_t tp_x = fix.tp_x.value_or(1);
  if (fix.scheme && scheme != ServeScheme::kStationary2d && tp_x > 1)
    out.push_back(fmt::format("tp_x divides d_model in scheme 2d alone, and not in {}", name_of(scheme)));
  if (model.d_model % tp_x != 0) out.push_back(fmt::format("tp_x {} does not divide d_model {}", tp_x, model.d_model));
  if (scheme == ServeScheme::kStationary1d && tp_x == 1) return;
  const std::string_view name = name_of(tp_x > 1 ? ServeScheme::kStationary2d : scheme);
  if (model.moe) out.push_back(fmt::format("scheme {} is of dense models alone", name));
  if (fix.cp.value_or(1) > 1) out.push_back(fmt::format("scheme {} leaves contexts whole: no cp beside it", name));
  if (fix.tp == 1) out.push_back(fmt::format("scheme {} needs more than one tensor rank", name));
  const bool in_two = !fix.tp || (tp_x > 1 ? *fix.tp % tp_x == 0 && *fix.tp > tp_x : divisors(*fix.tp).size() > 2);
  if (name == name_of(ServeScheme::kStationary2d) && fix.tp.value_or(1) > 1 && !in_two) {
    out.push_back(fmt::format("scheme 2d divides weights by two factors above 1, which tp {} has not{}", *fix.tp,
                              tp_x > 1 ? fmt::format(" with tp_x {}", tp_x) : ""));
  }
}

}  // namespace

std::vector<std::string> serve_obstacles(const ModelSpec& model, std::int64_t chips, const ServePins& fix,
                                         std::int64_t copies) {
  std::vector<std::string> out;
  const std::int64_t tp = fix.tp.value_or(1);
  for (std::string& reason : undivided_heads(model, tp)) out.push_back(std::move(reason));
  for (std::string& reason : undivided_widths(model, tp * fix.cp.value_or(1))) out.push_back(std::move(reason));
  std::int64_t product = 1;
  for (const auto& pin : {fix.tp, fix.pp, fix.cp, fix.attention_dp, fix.dp}) product *= pin.value_or(1);
  if (chips % product != 0)
    out.push_back(fmt::format("the degrees pinned make {}, which does not divide {} chips", product, chips));
  expert_obstacles(model, fix, copies, out);
  scheme_obstacles(model, fix, out);
  if (fix.cp.value_or(1) > 1 && model.has_recurrence())
    out.push_back("cp divides contexts, and recurrences of the model keep a state in their place");
  if (fix.pp.value_or(1) > model.layers())
    out.push_back(fmt::format("pp {} is more than the {} layers", *fix.pp, model.layers()));
  return out;
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
