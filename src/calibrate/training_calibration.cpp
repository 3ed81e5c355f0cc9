#include "calibrate/training_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "calibrate/minimize.h"
#include "spec/load.h"
#include "spec/load_stack.h"

namespace scalecalc {
namespace {

/// Errors beyond this (of the logarithm) count linearly.
constexpr double kStepHuber = 0.1;
/// A coefficient moves at most so many of its errors.
constexpr double kFarthest = 4;

/// A run with its layout, ready to be costed again and again. Made once, never moved: the plan points into `question`.
struct FitRow {
  Measurement row;
  RowQuestion question;
  Efficiency base;  ///< the coefficients its chip starts from
  Plan plan;
  double measured = 0;  ///< seconds
  double stretch = 1;   ///< the batch of the row over the plan's
  double weight = 1;

  double step(const Efficiency& efficiency) const {
    PlanRequest request = request_of(question);
    request.efficiency = efficiency;
    return read_plan(Reader<double>{}, request, plan).time.total().value() * stretch;
  }
};

using FitRows = std::vector<const FitRow*>;

/// Robust regression of efficiency coefficients on measured steps. Coefficients move by factors, so that runs of
/// several chips, each with coefficients of its own, can be fitted together. Factors are in the order of `slots`.
class CoefficientFit {
 public:
  /// The coefficients that any of `rows` depends on, by more than a part in a thousand within their error. `reference`
  /// gives the errors that distances are counted in. UserError if there are fewer than two.
  CoefficientFit(const FitRows& rows, const Efficiency& reference) : reference_(reference) {
    constexpr double kMatters = 1e-3;
    for (const CoefficientSlot& slot : fitted_slots()) {
      const double error = slot.error(reference);
      if (slot.value(reference) <= 0 || error <= 0) continue;
      const bool matters = std::any_of(rows.begin(), rows.end(), [&](const FitRow* row) {
        Efficiency moved = row->base;
        slot.set(moved, slot.value(moved) / (1 + error));
        return std::abs(row->step(moved) / row->step(row->base) - 1) > kMatters;
      });
      if (matters) slots_.push_back(&slot);
    }
    if (slots_.size() < 2) {
      throw UserError("these runs depend on fewer than two coefficients", "give runs of several kinds");
    }
  }

  const std::vector<const CoefficientSlot*>& slots() const { return slots_; }
  Factors none() const { return Factors(slots_.size(), 0.0); }
  /// `base` with every coefficient multiplied, kept within its range.
  Efficiency at(const Efficiency& base, const Factors& factors) const {
    Efficiency out = base;
    for (std::size_t i = 0; i < slots_.size(); ++i) slots_[i]->set(out, slots_[i]->value(base) * std::exp(factors[i]));
    return out;
  }

  /// Predicted over measured, minus 1.
  double error(const FitRow& row, const Factors& factors) const {
    return row.step(at(row.base, factors)) / row.measured - 1;
  }

  /// The factors that make the weighted Huber loss of ln(predicted / measured), plus half of each coefficient's squared
  /// distance from `centre` in units of its error, least.
  Factors fit(const FitRows& rows, const Factors& centre, const Stop& stop) const {
    std::vector<double> unit;
    Bounds bounds;
    for (const CoefficientSlot* slot : slots_) {
      unit.push_back(std::log1p(slot->error(reference_)));
      const double value = slot->value(reference_);
      bounds.low.push_back(std::clamp(std::log(slot->least / value) / unit.back(), -kFarthest, 0.0));
      bounds.high.push_back(std::clamp(std::log(slot->most / value) / unit.back(), 0.0, kFarthest));
      if (bounds.high.back() - bounds.low.back() < 1e-3)
        bounds.low.back() = bounds.high.back() - 1e-3;  // for the solver
    }
    const auto factors = [&](const std::vector<double>& u) {
      Factors out;
      for (std::size_t i = 0; i < u.size(); ++i) out.push_back(u[i] * unit[i]);
      return out;
    };
    const auto loss = [&](const std::vector<double>& u) {
      const Factors moved = factors(u);
      double sum = 0;
      for (const FitRow* row : rows) sum += row->weight * huber(std::log1p(error(*row, moved)), kStepHuber);
      for (std::size_t i = 0; i < u.size(); ++i) sum += std::pow(u[i] - centre[i] / unit[i], 2) / 2;
      return sum;
    };
    std::vector<double> start;
    for (std::size_t i = 0; i < unit.size(); ++i) start.push_back(centre[i] / unit[i]);
    return factors(minimize(loss, start, bounds, stop));
  }

 private:
  std::vector<const CoefficientSlot*> slots_;
  Efficiency reference_;
};

/// The row's layout under its coefficients. NotPredicted and Stopped as `evaluate`.
std::unique_ptr<FitRow> fit_row(const Measurement& row, const Catalog& catalog, const Stop& stop) {
  auto out = std::make_unique<FitRow>();
  out->row = row;
  out->question = row_question(row, catalog, {}, false);
  out->base = stack_of(row, out->question.resolved.hw).efficiency;
  out->measured = measured_step(row, out->question.resolved);
  out->plan = evaluate(out->question, stop).plan;
  out->stretch = row.batch_seqs / out->plan.batch_seqs;
  return out;
}

/// Sources differ by more than the models of one source do: assumed, by half as much again.
constexpr double kOneSourceWidening = 1.5;
/// A source of n rows counts as n^(1 - this): chosen among 0, 1/4 and 1/2 by the error on runs held out.
constexpr double kSourceDiscount = 0.25;
constexpr std::size_t kUsualFolds = 5;
/// A source with more of the rows than this is held out model by model, like one that is alone: without it fewer rows
/// would be left to fit to than a fold usually holds out.
constexpr double kNearlyAll = 1 - 1.0 / kUsualFolds;

const std::string& part_of(const FitRow& row, HeldOut by) {
  return by == HeldOut::kModel ? row.row.model : row.row.group;
}

std::map<std::string, std::size_t> sizes_of(const FitRows& rows, HeldOut by) {
  std::map<std::string, std::size_t> out;
  for (const FitRow* row : rows) ++out[part_of(*row, by)];
  return out;
}

class TrainingFitter final : CrossFit {
 public:
  TrainingFitter(const CalibrateQuestion& question, const Catalog& catalog, const Stop& stop)
      : CrossFit(stop), q_(question) {
    name_target(catalog);
    Progress rows("rows", q_.rows.size());
    take_rows<Training>(q_.rows, q_.only, catalog, out_.skipped, [&](const Measurement& row) {
      rows.add();
      take(row, catalog);
    });
    if (rows_.empty()) {
      throw UserError(fmt::format("no measured step time of {} under {} can be used{}",
                                  q_.family.empty() ? out_.hardware : out_.family, out_.stack,
                                  q_.only.empty() ? "" : ", of those that --only leaves"),
                      "scalecalc validate says why of each row; --stack NAME fits another software stack");
    }
    weigh();
    choose_parts();
    FitRows all = rows_;
    all.insert(all.end(), relatives_.begin(), relatives_.end());
    fit_ = std::make_unique<CoefficientFit>(all, rows_.front()->base);
  }

  Calibration run() {
    std::vector<std::size_t> folds;
    if (folds_.count > 0) {
      for (const FitRow* row : rows_) folds.push_back(folds_.of_part.at(held_out_with(*row)));
    }
    cross_fit(std::move(folds), folds_.count);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      out_.rows.push_back({.row = rows_[i]->row, .measured = rows_[i]->measured});
      if (held_out(i)) out_.rows[i].baseline = error_by(i, centres_[fold_of(i)]);
    }
    report_errors(out_, fit_->none());
    for (std::size_t fold = 0; fold < blind().size(); ++fold) out_.folds.push_back(report_of(fold));
    constexpr int kHalvings = 12;
    const double scale = scale_of_errors(kHalvings, by_model() ? kOneSourceWidening : 1);
    report_bands(out_, scale);
    report_coefficients(scale);
    write();
    return std::move(out_);
  }

 private:
  void name_target(const Catalog& catalog) {
    if (q_.family.empty()) {
      const HardwareSpec hw =
          load_hardware(catalog.load(CatalogKind::kHardware, q_.hardware), catalog, Unpublished::kAllowed);
      out_.hardware = hw.name;
      out_.family = hw.family;
      usual_stack_ = hw.stacks.front().name;
    } else {
      const ConfigNode document = catalog.load(CatalogKind::kEfficiency, q_.family);
      out_.family = document.find("name")->text;
      usual_stack_ = document.find("stack")->text;
    }
    out_.stack = q_.stack.empty() ? usual_stack_ : load_stack(catalog.load(CatalogKind::kStack, q_.stack)).name;
  }

  /// What the catalog says of a row's chip; empty if it does not know it.
  struct NamedChip {
    std::string name, family;
  };
  static NamedChip named_chip(const std::string& chip, const Catalog& catalog) {
    try {
      const ConfigNode document = catalog.load(CatalogKind::kHardware, chip);
      const auto text = [&](std::string_view key) {
        const ConfigNode* field = document.find(key);
        return field == nullptr ? std::string() : field->text;
      };
      return {text("name"), text("family")};
    } catch (const UserError&) {
      return {};
    }
  }

  void take(const Measurement& row, const Catalog& catalog) {
    if (should_stop(stop())) throw Stopped();
    if (!chips_.contains(row.chip)) chips_[row.chip] = named_chip(row.chip, catalog);
    const NamedChip& chip = chips_.at(row.chip);
    const bool target = q_.family.empty() ? chip.name == out_.hardware : chip.family == out_.family;
    const bool of_stack = row.stack == out_.stack || (row.stack.empty() && out_.stack == usual_stack_);
    if (!target) ++out_.other_chips;
    if (target && !of_stack) ++out_.other_stacks;
    if (!of_stack || (!target && chip.family != out_.family)) return;
    try {
      held_.push_back(fit_row(row, catalog, stop()));
      (target ? rows_ : relatives_).push_back(held_.back().get());
    } catch (const NotPredicted&) {
      if (target) throw;
    }
  }

  void weigh() {
    out_.relatives = relatives_.size();
    out_.sources = sizes_of(rows_, HeldOut::kSource).size();
    std::map<std::string, std::size_t> sizes;
    for (const auto& row : held_) ++sizes[row->row.group];
    for (const auto& row : held_) {
      row->weight = std::pow(static_cast<double>(sizes[row->row.group]), -kSourceDiscount);
    }
  }

  bool by_model() const { return out_.held_out == HeldOut::kModel || !nearly_all_.empty(); }

  /// What is held out together.
  const std::string& held_out_with(const FitRow& row) const {
    return part_of(row, row.row.group == nearly_all_ ? HeldOut::kModel : out_.held_out);
  }

  /// Folds of whole sources, or else of whole models.
  void choose_parts() {
    for (const HeldOut by : {HeldOut::kSource, HeldOut::kModel}) {
      std::map<std::string, std::size_t> sizes = sizes_of(rows_, by);
      if (sizes.size() < 2) continue;
      out_.held_out = by;
      for (const auto& [part, size] : sizes) {
        const bool most = static_cast<double>(size) > kNearlyAll * static_cast<double>(rows_.size());
        if (by == HeldOut::kSource && most) nearly_all_ = part;
      }
      if (!nearly_all_.empty()) {
        sizes.clear();
        for (const FitRow* row : rows_) ++sizes[held_out_with(*row)];
      }
      folds_ = deal(sizes, std::max<std::size_t>(2, q_.folds.value_or(kUsualFolds)));
      return;
    }
  }

  /// Rows whose part is not in the fold.
  FitRows without(const FitRows& rows, std::optional<std::size_t> fold) const {
    FitRows out;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(out), [&](const FitRow* row) {
      const auto at = folds_.of_part.find(held_out_with(*row));
      return at == folds_.of_part.end() || at->second != fold;
    });
    return out;
  }

  /// The factors of the whole family, as far as known without the fold.
  Factors family_factors(const FitRows& seen, std::optional<std::size_t> fold) const {
    if (relatives_.empty()) return fit_->none();
    FitRows family = without(relatives_, fold);
    family.insert(family.end(), seen.begin(), seen.end());
    return fit_->fit(family, fit_->none(), stop());
  }

  Factors fit(std::optional<std::size_t> fold) override {
    const FitRows seen = without(rows_, fold);
    Factors centre = family_factors(seen, fold);
    Factors out = fit_->fit(seen, centre, stop());
    if (fold) centres_.push_back(std::move(centre));
    return out;
  }

  Efficiency at(std::size_t row, const Factors& factors) const override { return fit_->at(rows_[row]->base, factors); }

  Efficiency widened(std::size_t row, Efficiency efficiency, double scale) const override {
    for (const CoefficientSlot* slot : fit_->slots()) {
      slot->set(efficiency, slot->value(efficiency), std::min(kLargestError, scale * slot->error(rows_[row]->base)));
    }
    return efficiency;
  }

  double error(std::size_t row, const Efficiency& efficiency) const override {
    return rows_[row]->step(efficiency) / rows_[row]->measured - 1;
  }

  FoldReport report_of(std::size_t fold) const {
    FoldReport out;
    for (const auto& [part, at] : folds_.of_part) {
      if (at == fold) out.held_out.push_back(part);
    }
    std::vector<double> seen, unseen;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (fold_of(i) == fold)
        unseen.push_back(*out_.rows[i].outside);
      else
        seen.push_back(error_by(i, blind()[fold]));
    }
    out.rows = unseen.size();
    out.inside_mean_abs = errors_of(seen).mean_abs;
    out.outside_mean_abs = errors_of(unseen).mean_abs;
    out.outside_bias = errors_of(unseen).bias;
    return out;
  }

  void report_coefficients(double scale) {
    const Efficiency& base = rows_.front()->base;
    for (std::size_t i = 0; i < fit_->slots().size(); ++i) {
      const CoefficientSlot& slot = *fit_->slots()[i];
      FittedCoefficient c{.path = slot.path, .before = slot.value(base), .error_before = slot.error(base)};
      c.factor = std::exp(fitted()[i]);
      c.after = c.lowest = c.highest = slot.value(fit_->at(base, fitted()));
      c.error_after = std::min(kLargestError, scale * c.error_before);
      for (const Factors& fold : blind()) {
        const double value = slot.value(fit_->at(base, fold));
        c.lowest = std::min(c.lowest, value);
        c.highest = std::max(c.highest, value);
      }
      out_.coefficients.push_back(c);
    }
  }

  std::string provenance() const {
    std::string out = fitted_to(q_.date, q_.files, rows_.size(), out_.sources);
    if (!relatives_.empty()) out += fmt::format(", leaning on {} of other chips", relatives_.size());
    out += fmt::format("; mean error {:.1f} %, ", 100 * out_.inside.mean_abs);
    if (blind().empty()) return out + "nothing was held out";
    out += fmt::format("{:.1f} % on {}, {:.1f} % before; {:.0f} % of those in the band", 100 * out_.outside.mean_abs,
                       !nearly_all_.empty()                ? "runs of a source, or a model of the largest, held out"
                       : out_.held_out == HeldOut::kSource ? "runs of a source held out"
                                                           : "a model held out",
                       100 * out_.before.mean_abs, 100 * out_.coverage.value_or(0));
    return out;
  }

  void write() {
    const bool factors = !q_.family.empty();
    std::vector<WrittenCoefficient> written;
    for (const FittedCoefficient& c : out_.coefficients) {
      written.push_back({c.path, factors ? c.factor : c.after, c.error_after});
      if (c.path != "attention_forward") continue;
      const double backward = fit_->at(rows_.front()->base, fitted()).attention_backward.value;
      written.push_back({"attention_backward", factors ? c.factor : backward, c.error_after});
    }
    out_.block = stack_block(written, out_.stack, provenance(), factors);
  }

  const CalibrateQuestion& q_;
  std::vector<std::unique_ptr<FitRow>> held_;
  FitRows rows_;       ///< of the chip, or of the family
  FitRows relatives_;  ///< of the family's other chips, under the same stack
  std::unique_ptr<CoefficientFit> fit_;
  std::map<std::string, NamedChip> chips_;
  std::string usual_stack_;
  std::string nearly_all_;        ///< the source that is held out model by model
  Folds folds_;                   ///< of sources, or of models
  std::vector<Factors> centres_;  ///< of the family, for each fold
  Calibration out_;
};

}  // namespace

Calibration calibrate(const CalibrateQuestion& question, const Catalog& catalog, const Stop& stop) {
  return TrainingFitter(question, catalog, stop).run();
}

}  // namespace scalecalc
