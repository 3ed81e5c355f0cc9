// Finds the largest model that meets the limits, for `scalecalc model design`. The grid is walked from the largest
// shape down. A shape is left as soon as a lower bound says that it misses a limit: its matmuls at their best rate,
// then the planner's own bounds. The first shapes left standing are the answer, so no shape of the grid that meets the
// limits is larger.
#include "design/design.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "base/progress.h"
#include "base/text.h"
#include "base/units.h"
#include "model/usual_batch.h"
#include "plan/anything_fits.h"
#include "scaling_law/allocation.h"
#include "spec/load.h"
#include "train/figures.h"
#include "train/resolve.h"

namespace scalecalc {
namespace {

constexpr std::size_t kMostMisses = 3;

/// "design-70.1b".
std::string name_for(double parameters) {
  const bool billions = parameters >= 1e9;
  return fmt::format("design-{:.4g}{}", parameters / (billions ? 1e9 : 1e6), billions ? 'b' : 'm');
}

TrainingRecipe recipe_for(const DesignQuestion& q, double active) {
  TrainingRecipe out{.seq = q.seq, .precision = q.precision, .optimizer = q.optimizer};
  out.tokens = std::round(q.tokens.value_or(q.tokens_per_parameter * active));
  const double batch = q.batch_tokens.value_or(std::min(usual_batch(active), out.tokens));
  out.batch_tokens = std::max(static_cast<double>(q.seq), batch);
  return out;
}

/// One shape's question, ready to be searched.
class Trial {
 public:
  Trial(const DesignQuestion& q, const DesignedModel& model, const Catalog& catalog, const Stop& stop = {})
      : q_(q),
        stop_(stop),
        tokens_(model.recipe.tokens),
        resolved_(resolve(question_of(q), catalog, document_of(model.shape, model.recipe, model.name))),
        request_(request_of(q.machine, resolved_)) {
    request_.counts = false;
  }

  const ResolvedQuestion& resolved() const { return resolved_; }

  /// FLOP/s of the machine if it ran nothing but large matmuls.
  double matmul_rate() const {
    const auto format = static_cast<std::size_t>(resolved_.workload.precision.compute);
    return chips() * resolved_.hw.matmul_peak[format]->value() * resolved_.efficiency.matmul[format].value;
  }
  double chips() const { return static_cast<double>(resolved_.slices.front().chips); }

  /// Chip-seconds that the budget pays for.
  double chip_seconds_paid() const {
    if (!resolved_.usd_per_chip_hour) {
      throw UserError(fmt::format("no price is published for {}, and --budget is in dollars", resolved_.hw.title),
                      "give --price 2.5, dollars per chip-hour, or a --deadline instead");
    }
    return *q_.budget_usd / (*resolved_.usd_per_chip_hour / 3600);
  }

  /// False: no layout meets the limit. True says only that some layout may.
  bool some_layout_may() {
    if (!anything_fits(request_, stop_)) return false;
    const auto exists = [&](Objective objective, double below) {
      return !planner().best({.objective = objective, .top = 1, .below = below}).plans.empty();
    };
    constexpr double kRoom = 1 + 1e-9;  // a plan that meets the limit exactly is below this
    if (q_.deadline_s && !exists(Objective::kTime, kRoom * *q_.deadline_s / tokens_)) return false;
    return !q_.budget_usd || exists(Objective::kCost, kRoom * chip_seconds_paid() / tokens_);
  }

  JudgedDesign judge() {
    PlanResult found = planner().best({.objective = Objective::kTime, .top = 1});
    if (found.plans.empty() && !found.nearest_miss) return {};
    if (found.plans.empty()) {
      const double capacity = resolved_.hw.hbm_capacity.value();
      return {DesignVerdict::kOutOfMemory, found.nearest_miss->memory.total().value() / capacity - 1, std::nullopt};
    }
    JudgedDesign out{.plan = ranked(resolved_, request_, std::move(found.plans.front()))};
    const RunFigures& run = *out.plan->figures.run;
    out.verdict = DesignVerdict::kMeets;
    if (q_.deadline_s && run.time_s > *q_.deadline_s) {
      out.verdict = DesignVerdict::kTooLong;
      out.over = run.time_s / *q_.deadline_s - 1;
    } else if (q_.budget_usd && *run.cost_usd > *q_.budget_usd) {
      out.verdict = DesignVerdict::kTooDear;
      out.over = *run.cost_usd / *q_.budget_usd - 1;
    }
    return out;
  }

 private:
  /// What the file does not say; the file is `train`'s own way to the rest.
  static TrainQuestion question_of(const DesignQuestion& q) {
    TrainQuestion out = q.machine;
    out.objective = Objective::kTime;
    return out;
  }

  Planner& planner() {
    if (!planner_) planner_ = std::make_unique<Planner>(request_, stop_);
    return *planner_;
  }

  const DesignQuestion& q_;
  Stop stop_;
  double tokens_;
  ResolvedQuestion resolved_;
  PlanRequest request_;
  std::unique_ptr<Planner> planner_;
};

class Designing {
 public:
  Designing(const DesignQuestion& question, const Catalog& catalog, const Stop& stop)
      : q_(question), catalog_(catalog), stop_(stop) {}

  DesignAnswer run() {
    out_.ranges = shape_ranges_of(catalog_);
    grid();
    walk();
    name_misses();
    assumptions();
    return std::move(out_);
  }

 private:
  Assumption& assume(std::string text, std::string flag, std::string source, bool warning = false) {
    return out_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source), warning});
  }

  /// Largest first; of equal ones the shallower, which pipelines less.
  void grid() {
    for (const DesignShape& shape : shapes(out_.ranges, padded_vocab(q_.vocab), q_.experts)) {
      grid_.push_back(designed(q_, shape));
    }
    out_.shapes = grid_.size();
    std::stable_sort(grid_.begin(), grid_.end(), [](const DesignedModel& a, const DesignedModel& b) {
      if (a.parameters.total != b.parameters.total) return a.parameters.total > b.parameters.total;
      return a.shape.layers < b.shape.layers;
    });
  }

  /// Most matmul FLOPs that a run may have, whatever its shape.
  double most_flops() const {
    const Trial any(q_, grid_.back(), catalog_);
    double seconds = q_.deadline_s.value_or(std::numeric_limits<double>::infinity());
    if (q_.budget_usd) seconds = std::min(seconds, any.chip_seconds_paid() / any.chips());
    return any.matmul_rate() * seconds;
  }

  void walk() {
    const double most = most_flops();
    Progress shapes("shapes", grid_.size());
    for (const DesignedModel& model : grid_) {
      if (should_stop(stop_)) return;
      shapes.add();
      if (model.matmul_flops * model.recipe.tokens > most) {
        ++out_.too_large;
        missed_.push_back(&model);
        continue;
      }
      Trial trial(q_, model, catalog_, stop_);
      ++out_.searched;
      JudgedDesign found;
      if (trial.some_layout_may()) found = trial.judge();
      if (should_stop(stop_)) return;  // what it says of this shape is no verdict
      if (found.verdict != DesignVerdict::kMeets) {
        if (out_.models.empty()) missed_.push_back(&model);
        continue;
      }
      keep(model, trial, std::move(*found.plan));
      if (out_.models.size() == q_.top) break;
    }
  }

  void keep(const DesignedModel& model, const Trial& trial, RankedPlan plan) {
    if (out_.models.empty()) {
      out_.hw = trial.resolved().hw;
      machine_assumptions_ = trial.resolved().assumptions;
    }
    TrainedDesign design{.model = model,
                         .document = document_of(model.shape, model.recipe, model.name).document,
                         .plan = std::move(plan)};
    if (q_.law.loss && !q_.experts) {
      const ParameterCount& n = model.parameters;
      const double counted = q_.law.counts_embeddings ? n.total : n.total - n.embedding - n.head;
      design.loss = loss_at(read_surface(Reader<double>{}, q_.law), {counted, model.recipe.tokens});
    }
    out_.models.push_back(std::move(design));
  }

  /// The nearest shapes that are larger than the answer; all of the grid's if there is none.
  void name_misses() {
    for (auto at = missed_.rbegin(); at != missed_.rend() && out_.misses.size() < kMostMisses; ++at) {
      if (should_stop(stop_)) return;
      Trial trial(q_, **at, catalog_, stop_);
      const JudgedDesign found = trial.judge();
      if (out_.models.empty() && out_.misses.empty()) {
        out_.hw = trial.resolved().hw;
        machine_assumptions_ = trial.resolved().assumptions;
      }
      out_.misses.push_back({**at, found.verdict, found.over});
    }
  }

  void assumptions() {
    const ShapeRanges& h = out_.ranges;
    const ShapeRange& ff = q_.experts ? h.expert_ratio : h.ff_ratio;
    assume(fmt::format("{} shapes: d_model by 256 to 1,024, d_model / layers {:.3g} to {:.3g}, {} {:.3g}, {:.3g} or "
                       "{:.3g} of d_model, heads of {}, {} KV heads or as many as divide the heads",
                       group_thousands(static_cast<long long>(out_.shapes)), h.aspect.low, h.aspect.high,
                       q_.experts ? "d_ff of the experts a token visits" : "d_ff", ff.low, ff.median, ff.high,
                       h.head_dim, h.kv_heads),
           "", fmt::format("the middle half of {} models of the catalog", h.aspect.models))
        .as("shapes")
        .is(static_cast<double>(out_.shapes));
    assume(fmt::format("vocabulary of {}{}", group_thousands(padded_vocab(q_.vocab)),
                       padded_vocab(q_.vocab) == q_.vocab
                           ? ""
                           : fmt::format(": {} padded to a multiple of 1,024", group_thousands(q_.vocab))),
           "--vocab", "128 rows of a tile for each of 8 tensor ranks");
    if (!q_.tokens) {
      assume(fmt::format("{:g} training tokens for each {}parameter", q_.tokens_per_parameter,
                         q_.experts ? "active " : ""),
             "--tokens, --tokens-per-parameter", "Hoffmann et al. (arXiv:2203.15556), table 3 rounded")
          .as("tokens_per_parameter")
          .is(q_.tokens_per_parameter);
    }
    if (!q_.batch_tokens) {
      assume("a batch by the parameters a token meets", "--batch-tokens", usual_batch_source());
    }
    assume(fmt::format("sequences of {} tokens, {}, {}", group_thousands(q_.seq), q_.precision, q_.optimizer),
           "--seq, --precision, --optimizer", "scalecalc");
    assume("RMSNorm, grouped queries, gated MLPs, untied embeddings, every layer alike", "", "scalecalc")
        .as("architecture")
        .is("rmsnorm, grouped queries, gated mlp, untied embeddings");
    assume("of quality it says no more than the law's loss; whether such a shape trains well is not asked", "",
           q_.law.source, true)
        .as("quality")
        .is("the law's loss");
    for (Assumption& a : machine_assumptions_) {
      if (!a.source.starts_with("as trained: ")) out_.assumptions.push_back(std::move(a));
    }
  }

  const DesignQuestion& q_;
  const Catalog& catalog_;
  const Stop& stop_;
  std::vector<DesignedModel> grid_;
  std::vector<const DesignedModel*> missed_;  ///< larger than the first that does
  std::vector<Assumption> machine_assumptions_;
  DesignAnswer out_;
};

}  // namespace

DesignedModel designed(const DesignQuestion& question, const DesignShape& shape) {
  const TrainingRecipe any{
      .tokens = 1e9, .seq = question.seq, .batch_tokens = 1e6, .precision = "bf16", .optimizer = "adam"};
  DesignedModel out{.shape = shape};
  const ModelSpec model = load_model(document_of(shape, any, "design").document);
  out.parameters = count_parameters(model);
  out.matmul_flops = training_flops(model, static_cast<double>(question.seq)).six_n;
  out.recipe = recipe_for(question, out.parameters.active);
  out.name = name_for(out.parameters.total);
  return out;
}

JudgedDesign judge(const DesignQuestion& question, const DesignedModel& model, const Catalog& catalog) {
  return Trial(question, model, catalog).judge();
}

DesignAnswer answer(const DesignQuestion& question, const Catalog& catalog, const Stop& stop) {
  return Designing(question, catalog, stop).run();
}

}  // namespace scalecalc
