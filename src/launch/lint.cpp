// Finds what is illegal, too large or wasteful in the layout of a launch file, for `scalecalc lint`.
#include "launch/lint.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "plan/dimensions.h"
#include "train/figures.h"
#include "train/layout_judge.h"

namespace scalecalc {
namespace {

/// A change to one argument: the dimension that is let go, and what must move with it.
struct Neighbour {
  std::string_view dimension;
  std::string_view along;  ///< other dimensions, between blanks
};
constexpr std::array kNeighbours{
    Neighbour{"tp", "dp fsdp ga sp etp"},
    Neighbour{"pp", "dp fsdp ga vpp schedule split"},
    Neighbour{"cp", "dp fsdp ga cp_comm"},
    Neighbour{"ep", "ep_overlap etp"},
    Neighbour{"fsdp", "dp"},
    Neighbour{"mb", "ga"},
    Neighbour{"vpp", "schedule split"},
    Neighbour{"sp", ""},
    Neighbour{"zero", "dp fsdp"},
    Neighbour{"remat", ""},
    Neighbour{"cp_comm", ""},
    Neighbour{"ep_overlap", ""},
    Neighbour{"offload", ""},
    Neighbour{"loss", ""},
    Neighbour{"split", ""},
};

class LayoutLinter {
 public:
  LayoutLinter(const ImportedLayout& layout, const TrainQuestion& question, const ResolvedQuestion& resolved,
               const std::string& file, const std::function<bool()>& stop)
      : layout_(layout),
        question_(question),
        resolved_(resolved),
        file_(file),
        stop_(stop),
        request_(request_of(question, resolved)),
        any_(request_) {
    any_.stack = nullptr;
  }

  LayoutLint run() {
    rules();
    const RankingContext context{question_, resolved_, any_, none_, stop_};
    LayoutVerdict verdict = judge(context, layout_.pins, OtherPins::kNone);
    if (verdict.outcome == LayoutOutcome::kIllegal) {
      const bool broken = !out_.findings.empty();  // a rule says it already
      for (const std::string& obstacle : verdict.obstacles) {
        if (!broken) add(LintKind::kIllegal, "", obstacle, "");
      }
      for (const std::string& remedy : verdict.remedies) hint(remedy);
    } else {
      out_.plan = verdict.plan;
      if (verdict.outcome == LayoutOutcome::kOutOfMemory) too_large(verdict);
    }
    wasteful();
    return std::move(out_);
  }

 private:
  SourceSpan place_of(std::string_view term) const {
    const auto found = layout_.reading.places.find(term);
    return found == layout_.reading.places.end() ? SourceSpan{.file = file_, .line = 1, .column = 1} : found->second;
  }

  void add(LintKind kind, std::string_view about, std::string text, std::string source,
           std::optional<double> gain = {}) {
    out_.findings.push_back({kind, place_of(about), std::string(about), std::move(text), std::move(source), gain});
  }
  void hint(const std::string& text) {
    if (!out_.findings.empty()) out_.findings.back().text += "; " + text;
  }

  /// Every rule of the release that the layout breaks, as far as the file decides it.
  void rules() {
    if (!request_.stack) return;
    Layout layout;
    for (const LayoutDimension& d : pin_dimensions()) {
      if (const auto pin = d.pin(layout_.pins)) d.set_value(layout, *pin);
    }
    const SupportSubject subject{layout, resolved_.model, resolved_.workload, resolved_.hw};
    for (const SupportFact& fact : request_.stack->facts) {
      const bool known = std::all_of(fact.refused_if.begin(), fact.refused_if.end(), [&](const SupportCondition& c) {
        return c.decided(layout_.pins) || !matters_here(c);
      });
      if (fact.recall || !known || !fact.refuses(subject)) continue;
      std::string about;
      for (const SupportCondition& c : fact.refused_if) {
        if (layout_.reading.places.contains(c.of->name)) about = c.of->name;
      }
      add(LintKind::kIllegal, about, fmt::format("{}: {}", request_.stack->name(), fact.says), fact.source);
    }
  }

  /// A condition on what decides nothing in this layout is known without a pin: 1 is its value.
  bool matters_here(const SupportCondition& c) const {
    Layout l;  // with more than one rank wherever the file does not say
    for (const LayoutDimension& d : layout_dimensions()) {
      if (d.kind == DimensionKind::kCount) d.set_value(l, d.pin(layout_.pins).value_or(2));
    }
    return matters(c.of->name == "chunks" ? "split" : c.of->name, l, resolved_.model.moe.has_value());
  }

  void too_large(const LayoutVerdict& verdict) {
    if (!verdict.plan) return;
    double total = 0;
    for (const auto& [part, bytes] : verdict.plan->figures.memory_bytes) total += bytes;
    add(LintKind::kDoesNotFit, "mb",
        fmt::format("the fullest chip needs {} of its {}", bytes_text(total),
                    bytes_text(resolved_.hw.hbm_capacity.value())),
        "");
    for (const std::string& remedy : verdict.remedies) hint(remedy);
  }

  static double per_token(const Plan& plan) { return plan.step_s / plan.batch_seqs; }

  /// What the change of one argument saves, with all others as they are; and what all together could.
  void wasteful() {
    const bool fits = out_.plan && std::none_of(out_.findings.begin(), out_.findings.end(),
                                                [](const LintFinding& f) { return f.kind == LintKind::kDoesNotFit; });
    if (stop_ && stop_()) return;
    PlanRequest whole = request_;
    const std::int64_t chips = whole.slices.front().chips;
    std::erase_if(whole.slices, [&](const Slice& s) { return s.chips != chips; });
    whole.top = 1;
    PlanResult best = Planner(whole, stop_).best({.objective = Objective::kTime, .top = 1});
    if (!best.plans.empty()) {
      PlanFigures numbers = figures(resolved_, whole, best.plans.front());
      out_.best = RankedPlan{std::move(best.plans.front()), std::move(numbers)};
    }
    if (!fits) return;
    const double now = per_token(out_.plan->plan);
    std::vector<LintFinding> found;
    for (const Neighbour& neighbour : kNeighbours) {
      if (auto finding = without(neighbour, now)) found.push_back(std::move(*finding));
    }
    std::stable_sort(found.begin(), found.end(),
                     [](const LintFinding& a, const LintFinding& b) { return *a.gain > *b.gain; });
    for (LintFinding& finding : found) out_.findings.push_back(std::move(finding));
    if (!out_.best) return;
    const double gain = 1 - per_token(out_.best->plan) / now;
    if (gain > kWorthSaying) {
      add(LintKind::kWasteful, "",
          fmt::format("all together: {:.0f}% less time a token with {}", 100 * gain, changes(out_.best->plan.layout)),
          "", gain);
    }
  }

  /// "dp 2, pp 4": what another layout has otherwise.
  std::string changes(const Layout& other) const {
    std::vector<std::string> out;
    for (const LayoutDimension& d : layout_dimensions()) {
      const std::int64_t value = d.value(other);
      if (value != d.value(out_.plan->plan.layout)) out.push_back(fmt::format("{} {}", d.name, value_text(d, value)));
    }
    return join_and(out);
  }

  static constexpr double kWorthSaying = 0.01;

  std::optional<LintFinding> without(const Neighbour& neighbour, double now) const {
    const LayoutDimension& d = *find_dimension(neighbour.dimension);
    const auto pinned = d.pin(layout_.pins);
    if (!pinned || (stop_ && stop_())) return std::nullopt;
    PlanRequest request = request_;
    const std::int64_t chips = out_.plan->plan.slice.chips;
    std::erase_if(request.slices, [&](const Slice& s) { return s.chips != chips; });
    request.fix = layout_.pins;
    request.max = {};
    request.top = 1;
    d.set_pin(request.fix, std::nullopt);
    std::string_view along = neighbour.along;
    while (!along.empty()) {
      const std::size_t end = std::min(along.find(' '), along.size());
      find_dimension(along.substr(0, end))->set_pin(request.fix, std::nullopt);
      along.remove_prefix(std::min(end + 1, along.size()));
    }
    PlanResult result = Planner(request, stop_).best({.objective = Objective::kTime, .top = 1});
    if (result.plans.empty()) return std::nullopt;
    const Plan& plan = result.plans.front();
    const double gain = 1 - per_token(plan) / now;
    const std::int64_t value = d.value(plan.layout);
    if (gain <= kWorthSaying || value == *pinned) return std::nullopt;
    std::vector<std::string> moved;
    for (const LayoutDimension& other : layout_dimensions()) {
      if (other.name == d.name || other.value(plan.layout) == other.value(out_.plan->plan.layout)) continue;
      moved.push_back(fmt::format("{} {}", other.name, value_text(other, other.value(plan.layout))));
    }
    return LintFinding{
        .kind = LintKind::kWasteful,
        .where = place_of(neighbour.dimension),
        .about = std::string(neighbour.dimension),
        .text = fmt::format("{} {} instead of {}{}: {:.0f}% less time a token", d.name, value_text(d, value),
                            value_text(d, *pinned), moved.empty() ? "" : " (with " + join_and(moved) + ")", 100 * gain),
        .source = {},
        .gain = gain};
  }

  const ImportedLayout& layout_;
  const TrainQuestion& question_;
  const ResolvedQuestion& resolved_;
  std::string file_;
  const std::function<bool()>& stop_;
  PlanRequest request_;
  PlanRequest any_;  ///< of no stack, whose rules are looked at one by one
  std::vector<RankedPlan> none_;
  LayoutLint out_;
};

}  // namespace

LayoutLint lint_layout(const ImportedLayout& layout, const TrainQuestion& question, const ResolvedQuestion& resolved,
                       const std::string& file, const std::function<bool()>& stop) {
  LayoutLint out = LayoutLinter(layout, question, resolved, file, stop).run();
  add_unread(layout.reading, out.findings);
  std::stable_sort(out.findings.begin(), out.findings.end(),
                   [](const LintFinding& a, const LintFinding& b) { return a.kind < b.kind; });
  return out;
}

void add_unread(const LaunchReading& reading, std::vector<LintFinding>& findings) {
  for (const LaunchSetting& setting : reading.open) {
    findings.push_back({LintKind::kOpen, setting.where, setting.key, open_text(setting), "", {}});
  }
  for (const LaunchSetting& setting : reading.unread) {
    findings.push_back(
        {LintKind::kUnread, setting.where, setting.key, fmt::format("{} was not read", setting.key), "", {}});
  }
}

}  // namespace scalecalc
