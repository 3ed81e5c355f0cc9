// Plans one training job on each system and compares costs and times, for `scalecalc compare`.
#include "compare/train_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "base/check.h"
#include "base/progress.h"
#include "base/units.h"
#include "compare/compared.h"
#include "train/curve.h"
#include "train/figures.h"

namespace scalecalc {
std::int64_t most_chips_of(const HardwareSpec& hw, std::int64_t slices) {
  if (hw.network.empty()) return 1;
  if (hw.is_torus()) return hw.network.front().torus.max_chips * slices;
  const std::int64_t most = hw.network.back().switched.chips;
  return most == 0 ? kMostSwitchedChips : std::min(most, kMostSwitchedChips);
}

namespace {

/// Two figures that differ by rounding alone.
bool equal(double a, double b) { return std::abs(a - b) <= 1e-9 * std::abs(b); }

SecondsOf<Traced> step_of(const TrainComparison& comparison, const ComparedRun& row, bool explain) {
  if (explain) {
    const PlanRequest request = request_of(comparison.question.train, row.sized->machine);
    const PlanReading<Traced> reading = read_plan(Reader<Traced>{}, request, row.sized->plan.plan);
    return named(reading.time.total(), "step time", "sum of its causes", row.label);
  }
  return SecondsOf<Traced>(Traced::leaf(row.sized->plan.plan.step_s, "step time", "docs/model.md, [STEP]", kSecondDim));
}

class Costs {
 public:
  Costs(const TrainComparison& comparison, const ComparedRun& row, bool explain)
      : row_(row), run_(row.run()), plan_(row.sized->plan.plan), hw_(row.sized->machine.hw) {
    out_.step = step_of(comparison, row, explain);
    batch_ = plan_.batch_seqs * static_cast<double>(row.sized->machine.workload.seq);
  }

  RunCosts run() {
    time();
    chip_hours();
    if (row_.price) usd();
    if (run_.energy_j) energy();
    return std::move(out_);
  }

 private:
  static Traced input(double value, std::string_view name, std::string_view source, Dim unit = {}) {
    return Traced::leaf(value, name, source, unit);
  }

  void time() {
    const Traced steps = input(run_.tokens, "tokens of the run", "--tokens, or as trained") /
                         input(batch_, "tokens of a step", "--batch-tokens, or as trained");
    const SecondsOf<Traced> busy = out_.step * steps.with_name(row_.label + " steps", "tokens / batch");
    if (equal(busy.value().value(), run_.time_s)) {
      out_.time = named(busy, "time to finish", "steps x step time, book ch. 6", row_.label);
      return;
    }
    const Traced goodput = input(busy.value().value() / run_.time_s, "share of the time that makes progress",
                                 "train --explain of the same plan");
    out_.time = named(busy / goodput, "time to finish", "steps x step time / goodput", row_.label);
  }

  void chip_hours() {
    const double paid = run_.chip_hours * kSecondsPerHour / run_.time_s;
    const double used = static_cast<double>(plan_.slice.chips);
    const Traced chips = equal(paid, used) ? input(used, "chips", "layout")
                                           : input(paid, "chips, spares included", "train --explain of the same plan");
    out_.chip_hours =
        (chips * out_.time.value() / Traced(kSecondsPerHour)).with_name(row_.label + " chip-hours", "chips x hours");
  }

  void usd() {
    const UsdOf price(input(row_.price->usd_per_chip_hour, row_.label + " price of a chip-hour",
                            row_.price->source.empty() ? "--price" : row_.price->source, kUsdDim));
    out_.usd = named(price * out_.chip_hours, "cost", "chip-hours x price, book ch. 6", row_.label);
    flops_per_usd(price);
  }

  void flops_per_usd(const UsdOf& price) {
    const DType format = row_.sized->machine.workload.precision.compute;
    const FlopsPerSecondOf<Traced> peak =
        read(Reader<Traced>{}, *hw_.matmul_peak[static_cast<std::size_t>(format)],
             fmt::format("hw.compute.matmul.{}", name_of(format)), hw_.compute_source);
    const SecondsOf<Traced> hour((Traced(kSecondsPerHour)));
    out_.peak_per_usd =
        named(peak * hour / price, "peak FLOPs per dollar", "peak x hour / price, book ch. 8", row_.label);
    const Traced mfu = input(row_.sized->plan.figures.mfu, "MFU", "docs/model.md, Figures");
    out_.delivered_per_usd =
        named(*out_.peak_per_usd * mfu, "model FLOPs per dollar", "peak FLOPs per dollar x MFU", row_.label);
  }

  void energy() {
    const double chip_seconds = run_.chip_hours * kSecondsPerHour;
    const Quantity<kJouleDim - kSecondDim, Traced> draw(
        input(*run_.energy_j / chip_seconds, "mean draw of a chip", hw_.tdp_source, kJouleDim - kSecondDim));
    const SecondsOf<Traced> busy(out_.chip_hours * Traced(kSecondsPerHour));
    out_.energy = named(draw * busy, "energy", "chip-seconds x mean draw", row_.label);
  }

  const ComparedRun& row_;
  const RunFigures& run_;
  const Plan& plan_;
  const HardwareSpec& hw_;
  double batch_ = 0;
  RunCosts out_;
};

}  // namespace

RunCosts run_costs(const TrainComparison& comparison, const ComparedRun& row, bool explain) {
  return Costs(comparison, row, explain).run();
}

UsdOf break_even_price(const UsdOf& usd, const Traced& chip_hours) { return usd / chip_hours; }

Traced tokens_for_equal_usd(const Traced& tokens, const UsdOf& other_usd, const UsdOf& usd) {
  return tokens * (other_usd / usd);
}

namespace {

std::string chips_text(std::int64_t chips) { return group_thousands(chips) + (chips == 1 ? " chip" : " chips"); }

ComparedStatus status_of(PointStatus status) {
  switch (status) {
    case PointStatus::kPlanned: return ComparedStatus::kAnswered;
    case PointStatus::kNotBuilt: return ComparedStatus::kNotBuilt;
    case PointStatus::kOutOfMemory: return ComparedStatus::kOutOfMemory;
    case PointStatus::kNoLayout: return ComparedStatus::kNoLayout;
    case PointStatus::kInterrupted: break;
  }
  return ComparedStatus::kInterrupted;
}

/// The machine asked for does not exist: which one does, as --hw takes it.
std::string not_built(const HardwareSpec& hw, std::int64_t chips, std::int64_t slices) {
  const std::string message = no_slice(hw, chips, slices).message;
  if (hw.is_torus() && slices == 1 && hw.network.size() > 1) {
    const std::int64_t pod = hw.network.front().torus.max_chips;
    if (chips > pod) return fmt::format("{}; {}:{}x{} joins pods", message, hw.name, (chips + pod - 1) / pod, pod);
  }
  const std::int64_t below = nearest_below(hw, chips, slices);
  return below == 0 ? message : fmt::format("{}; {} are built", message, group_thousands(below));
}

/// A system of --hw, whatever its price.
class OneSystem {
 public:
  OneSystem(const TrainCompareQuestion& question, const SystemAsked& asked, const Catalog& catalog,
            const std::function<bool()>& stop)
      : q_(question), asked_(asked), stop_(stop), hw_(hardware_compared(asked.hardware, question.train.set, catalog)) {
    train_ = q_.train;
    train_.hardware = asked.hardware;
    if (!asked.model.empty()) train_.model = asked.model;
    train_.slices = asked.slices;
    train_.chips = chips_asked();
    offers_ = offers_of(hw_, asked_, q_.prices);
    // What a run costs is its chip-hours at each offer's price, worked out beside it.
    train_.price = offers_.empty() ? 1.0 : offers_.front().usd_per_chip_hour;
    try {
      job_ = resolve_job(train_, catalog);
    } catch (const UserError& error) {
      error_ = error;
    }
  }

  const std::optional<UserError>& error() const { return error_; }
  const ResolvedQuestion& job() const { return *job_; }
  const TrainQuestion& question() const { return train_; }
  std::string size() const {
    if (!asked_.chips) return "";
    return asked_.slices > 1 ? fmt::format("{}x{}", asked_.slices, *asked_.chips / asked_.slices)
                             : fmt::format("{}", *asked_.chips);
  }

  std::vector<ComparedRun> rows() {
    std::vector<ComparedRun> out;
    if (offers_.empty()) {
      out.push_back(row(std::nullopt));
    } else {
      for (const Price& offer : offers_) out.push_back(row(offer));
    }
    return out;
  }

 private:
  std::int64_t chips_asked() const {
    const std::int64_t most = most_chips_of(hw_, asked_.slices);
    if (asked_.chips) return *asked_.chips;
    if (q_.chips) return q_.sized() ? std::min(*q_.chips, most) : *q_.chips;
    return most;
  }

  ComparedRun row(const std::optional<Price>& offer) {
    ComparedRun out;
    out.asked = asked_;
    out.hardware = hw_.name;
    out.title = hw_.title;
    out.model = job_ ? job_->model.name : train_.model;
    out.price = offer;
    out.slices = asked_.slices;
    out.chips_asked = train_.chips;
    if (error_) {
      out.fail(ComparedStatus::kUnsuited, sentence_of(*error_));
    } else if (q_.sized()) {
      size(out);
    } else {
      plan(out);
    }
    conclude_row(out);
    return out;
  }

  static void conclude_row(ComparedRun& row) {
    if (!row.sized) return;
    row.time_s = row.run().time_s;
    row.joules = row.run().energy_j;
    if (row.price) row.usd = row.run().chip_hours * row.price->usd_per_chip_hour;
  }

  /// The best plan that the chips allow, as `train` ranks it first; of all offers the same.
  void plan(ComparedRun& out) {
    if (!point_) point_ = point_at(train_.chips);
    out.search = point_->search;
    if (!point_->plan) return out.fail(status_of(point_->status), point_->reason);
    TrainQuestion question = train_;
    out.sized = {on_machine(question, *job_), *point_->plan};
  }

  CurvePoint point_at(std::int64_t chips) {
    TrainQuestion question = train_;
    question.chips = chips;
    if (slices_of(job_->hw, chips, train_.slices).empty()) {
      return {.chips = chips, .status = PointStatus::kNotBuilt, .reason = not_built(job_->hw, chips, train_.slices)};
    }
    return std::move(train_curve({.train = question, .chips = {chips}}, *job_, stop_).points.front());
  }

  void size(ComparedRun& out) {
    if (q_.budget_usd && !out.price) {
      return out.fail(
          ComparedStatus::kNoPrice,
          "no such price is known, so no budget can be held against it; --price " + hw_.name + "=2.5 gives one");
    }
    const RunLimits limits{.time_s = q_.deadline_s,
                           .usd = q_.budget_usd,
                           .usd_per_chip_hour = out.price ? out.price->usd_per_chip_hour : 0,
                           .most_chips = train_.chips};
    // Without a budget the price decides nothing.
    if (q_.budget_usd || !size_) {
      const ChipSearch search(train_, *job_, stop_);
      size_ = q_.deadline_s ? search.fewest(limits) : search.fastest(limits);
    }
    out.counts = size_->counts;
    out.sized = size_->found;
    if (!size_->complete && !out.sized) {
      out.fail(ComparedStatus::kInterrupted, "not searched to the end");
    } else if (!out.sized) {
      explain_none(limits, out);
    }
  }

  /// What the most chips would take: the nearest thing to what was asked for.
  void explain_none(const RunLimits& limits, ComparedRun& out) {
    const std::int64_t most = nearest_below(job_->hw, limits.most_chips, train_.slices);
    if (most == 0) return out.fail(ComparedStatus::kNotBuilt, not_built(job_->hw, limits.most_chips, train_.slices));
    if (!largest_) largest_ = point_at(most);
    if (!largest_->plan) return out.fail(status_of(largest_->status), on(most, largest_->reason));
    const RunFigures& run = *largest_->plan->figures.run;
    const std::string takes = seconds_text(run.time_s);
    if (q_.deadline_s && run.time_s > *q_.deadline_s) {
      return out.fail(ComparedStatus::kTooSlow,
                      fmt::format("no count up to {} finishes in time; all of them take {}", chips_text(most), takes));
    }
    out.fail(ComparedStatus::kOverBudget,
             fmt::format("no count up to {} {}the dollars; all of them cost {} and take {}", chips_text(most),
                         q_.deadline_s ? "finishes in time within " : "is within ",
                         compact(run.chip_hours * limits.usd_per_chip_hour), takes));
  }

  static std::string on(std::int64_t chips, const std::string& reason) {
    return fmt::format("on {}: {}", chips_text(chips), reason);
  }
  static std::string compact(double usd) {
    std::string text = format_quantity(usd, UnitKind::kCount);
    std::erase(text, ' ');
    return "$" + text;
  }

  const TrainCompareQuestion& q_;
  const SystemAsked& asked_;
  const std::function<bool()>& stop_;
  HardwareSpec hw_;
  TrainQuestion train_;
  std::vector<Price> offers_;
  std::optional<ResolvedQuestion> job_;
  std::optional<UserError> error_;
  std::optional<CurvePoint> point_, largest_;
  std::optional<SizeAnswer> size_;
};

class Comparer {
 public:
  Comparer(const TrainCompareQuestion& question, const Catalog& catalog, const std::function<bool()>& stop)
      : q_(question), catalog_(catalog), stop_(stop) {}

  TrainComparison run() {
    out_.question = q_;
    require_hardware();
    for (const SystemAsked& asked : q_.systems) systems_.emplace_back(q_, asked, catalog_, stop_);
    require_a_job();
    Progress answered("systems", systems_.size());
    for (std::size_t s = 0; s < systems_.size(); ++s) {
      for (ComparedRun& row : systems_[s].rows()) {
        system_of_.push_back(s);
        out_.systems.push_back(std::move(row));
      }
      answered.add();
    }
    rank();
    if (q_.equal_time) same_time();
    assume();
    out_.complete = !(stop_ && stop_());
    return std::move(out_);
  }

 private:
  void require_hardware() const {
    std::vector<Price> prices;
    for (const SystemAsked& asked : q_.systems) {
      const HardwareSpec hw = hardware_compared(asked.hardware, q_.train.set, catalog_);
      prices.insert(prices.end(), hw.prices.begin(), hw.prices.end());
      require_known(asked.prices({}), hw.prices);
    }
    require_known(q_.prices, prices);
  }

  /// Something every system refuses is wrong with the question.
  void require_a_job() {
    const auto able = std::find_if(systems_.begin(), systems_.end(), [](const OneSystem& s) { return !s.error(); });
    if (able == systems_.end()) throw *systems_.front().error();
    out_.workload = able->job().workload;
    std::vector<const ModelSpec*> models;
    for (const OneSystem& system : systems_) {
      if (system.error()) continue;
      models.push_back(&system.job().model);
      if (system.job().workload.tokens) continue;
      throw UserError(fmt::format("{} gives no training tokens, so no run has an end", models.back()->name),
                      "say how long it trains: --tokens 2T");
    }
    std::tie(out_.model, out_.model_title) = names_and_titles(models);
  }

  void rank() {
    std::vector<ComparedSystem*> rows;
    std::vector<std::string> sizes;
    for (std::size_t i = 0; i < out_.systems.size(); ++i) {
      rows.push_back(&out_.systems[i]);
      sizes.push_back(systems_[system_of_[i]].size());
      if (!out_.baseline && rows.back()->answered()) out_.baseline = i;
    }
    label_systems(rows, sizes);
    rank_systems(rows, q_.train.run.counts_failures());
    // A deadline makes all of them fast enough: what is left to choose by is the price.
    out_.rank_by = q_.rank_by.value_or(q_.deadline_s ? RankBy::kCost : RankBy::kTime);
    out_.expectations = check_expectations(q_.expect, {rows.begin(), rows.end()});
  }

  void same_time() {
    if (!out_.baseline) return;
    const double time_s = *out_.systems[*out_.baseline].time_s;
    for (std::size_t i = 0; i < out_.systems.size(); ++i) {
      OneSystem& system = systems_[system_of_[i]];
      if (system_of_[i] == system_of_[*out_.baseline] || system.error()) continue;
      ComparedRun& row = out_.systems[i];
      const std::int64_t most = std::max(row.chips_asked, most_chips_of(system.job().hw, row.slices));
      // Offers of one system differ in price alone, and stand together.
      const bool again = i > 0 && system_of_[i] == system_of_[i - 1] && out_.systems[i - 1].same_time;
      if (again) {
        row.same_time = out_.systems[i - 1].same_time;
        continue;
      }
      const SizeAnswer found =
          ChipSearch(system.question(), system.job(), stop_).fewest({.time_s = time_s, .most_chips = most});
      row.same_time = SameTime{.found = found.found};
      if (found.found) continue;
      row.same_time->reason =
          found.complete ? fmt::format("no count up to {} is as fast", chips_text(most)) : std::string("interrupted");
    }
  }

  /// What the systems assume alike is said once, what one alone assumes under its name.
  void assume() {
    std::vector<std::vector<Assumption>> each;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < out_.systems.size(); ++i) {
      const OneSystem& system = systems_[system_of_[i]];
      if (system.error() || (i > 0 && system_of_[i] == system_of_[i - 1])) continue;
      const std::optional<SizedPlan>& sized = out_.systems[i].sized;
      each.push_back((sized ? sized->machine : system.job()).assumptions);
      names.push_back(several_models(pointers_to(out_.systems)) ? out_.systems[i].label : out_.systems[i].hardware);
    }
    out_.assumptions = shared_assumptions(names, each);
    for (const ComparedRun& row : out_.systems) {
      out_.assumptions.push_back(price_assumption(row));
    }
    const std::vector<const ComparedSystem*> rows = pointers_to(out_.systems);
    if (auto taken = preemption_assumption(rows, "--mtbf", q_.train.run.counts_failures())) {
      out_.assumptions.push_back(*std::move(taken));
    }
    if (q_.sized()) limits_searched();
  }

  void limits_searched() {
    for (const ComparedRun& row : out_.systems) {
      if (row.counts == 0 && row.answered()) continue;
      const std::string text = fmt::format("every count of {} that is built up to {} may be chosen", row.hardware,
                                           chips_text(row.chips_asked));
      const auto same = [&](const Assumption& a) { return a.text == text; };
      if (std::any_of(out_.assumptions.begin(), out_.assumptions.end(), same)) continue;
      Assumption most{text, "--chips", "docs/model.md [COUNTS]"};
      most.as("largest_chips").is(static_cast<double>(row.chips_asked)).of = row.hardware;
      out_.assumptions.push_back(std::move(most));
    }
  }

  const TrainCompareQuestion& q_;
  const Catalog& catalog_;
  const std::function<bool()>& stop_;
  std::vector<OneSystem> systems_;
  std::vector<std::size_t> system_of_;  ///< of each row
  TrainComparison out_;
};

}  // namespace

TrainComparison compare_training(const TrainCompareQuestion& question, const Catalog& catalog,
                                 const std::function<bool()>& stop) {
  return Comparer(question, catalog, stop).run();
}

}  // namespace scalecalc
