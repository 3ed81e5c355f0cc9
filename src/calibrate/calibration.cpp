#include "calibrate/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "calibrate/fit.h"
#include "spec/load.h"
#include "spec/load_stack.h"
#include "validate/statistics.h"

namespace scalecalc {

FitErrors errors_of(const std::vector<double>& errors) {
  if (errors.empty()) return {};
  std::vector<double> sizes(errors.size());
  std::transform(errors.begin(), errors.end(), sizes.begin(), [](double error) { return std::abs(error); });
  return {mean_of(sizes), quantile(sizes, 0.5), quantile(sizes, 0.9), mean_of(errors)};
}

namespace {

/// Sources differ by more than the models of one source do: assumed, by half as much again.
constexpr double kOneSourceWidening = 1.5;
/// A source of n rows counts as n^(1 - this): chosen among 0, 1/4 and 1/2 by the error on runs held out.
constexpr double kSourceDiscount = 0.25;

/// What is held out together.
const std::string& part_of(const FitRow& row, HeldOut by) {
  return by == HeldOut::kModel ? row.row.model : row.row.group;
}

std::map<std::string, std::size_t> sizes_of(const FitRows& rows, HeldOut by) {
  std::map<std::string, std::size_t> out;
  for (const FitRow* row : rows) ++out[part_of(*row, by)];
  return out;
}

class Fitter {
 public:
  Fitter(const CalibrateQuestion& question, const Catalog& catalog, const std::function<bool()>& stop)
      : q_(question), stop_(stop) {
    name_target(catalog);
    std::vector<Measurement> rows = q_.rows;
    name_stacks(rows, catalog);
    for (const Measurement& row : rows) {
      if (passes(row, q_.only)) take(row, catalog);
    }
    if (rows_.empty()) {
      throw UserError(fmt::format("no measured step time of {} under {} can be used",
                                  q_.family.empty() ? out_.hardware : out_.family, out_.stack),
                      "scalecalc validate says why of each row; --stack NAME fits another software stack");
    }
    weigh();
    deal();
    FitRows all = rows_;
    all.insert(all.end(), relatives_.begin(), relatives_.end());
    fit_ = std::make_unique<CoefficientFit>(all, rows_.front()->base);
  }

  Calibration run() {
    const Factors fitted = fit_to(rows_, {});
    out_.before = errors_of(errors(rows_, fit_->none()));
    out_.inside = errors_of(errors(rows_, fitted));
    out_.outside = out_.by_family = out_.inside;
    cross_validate();
    const double scale = folds_.empty() ? 1 : scale_of_errors();
    for (const FitRow* row : rows_) out_.rows.push_back(report_of(*row, fitted, scale));
    const Efficiency& base = rows_.front()->base;
    for (std::size_t i = 0; i < fit_->slots().size(); ++i) {
      const CoefficientSlot& slot = *fit_->slots()[i];
      FittedCoefficient c{.path = slot.path, .before = slot.value(base), .error_before = slot.error(base)};
      c.factor = std::exp(fitted[i]);
      c.after = c.lowest = c.highest = slot.value(fit_->at(base, fitted));
      c.error_after = std::min(kLargestError, scale * c.error_before);
      for (const Factors& fold : folds_) {
        const double value = slot.value(fit_->at(base, fold));
        c.lowest = std::min(c.lowest, value);
        c.highest = std::max(c.highest, value);
      }
      out_.coefficients.push_back(c);
    }
    write(fitted);
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

  /// A text of the row's chip in the catalog; empty if it has none.
  static std::string chip_field(const Measurement& row, std::string_view key, const Catalog& catalog) {
    try {
      const ConfigNode document = catalog.load(CatalogKind::kHardware, row.chip);
      const ConfigNode* field = document.find(key);
      return field == nullptr ? "" : field->text;
    } catch (const UserError&) {
      return "";
    }
  }

  void take(const Measurement& row, const Catalog& catalog) {
    const bool target = q_.family.empty() ? chip_field(row, "name", catalog) == out_.hardware
                                          : chip_field(row, "family", catalog) == out_.family;
    const bool of_stack = row.stack == out_.stack || (row.stack.empty() && out_.stack == usual_stack_);
    if (!target) ++out_.other_chips;
    if (target && !of_stack) ++out_.other_stacks;
    if (!of_stack || (!target && chip_field(row, "family", catalog) != out_.family)) return;
    try {
      held_.push_back(fit_row(row, catalog));
      (target ? rows_ : relatives_).push_back(held_.back().get());
    } catch (const NotPredicted& why) {
      if (target) out_.skipped.push_back({row, why.reason(), why.detail()});
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

  /// Folds of whole sources, or models: the largest first, each to the emptiest fold.
  void deal() {
    std::map<std::string, std::size_t> sizes;
    for (const HeldOut by : {HeldOut::kSource, HeldOut::kModel}) {
      sizes = sizes_of(rows_, by);
      if (sizes.size() < 2) continue;
      out_.held_out = by;
      break;
    }
    if (out_.held_out == HeldOut::kNothing) return;
    std::vector<std::pair<std::string, std::size_t>> order(sizes.begin(), sizes.end());
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::vector<std::size_t> filled(std::max<std::size_t>(2, std::min(q_.folds, order.size())));
    for (const auto& [part, size] : order) {
      const auto emptiest = std::min_element(filled.begin(), filled.end());
      fold_of_[part] = static_cast<std::size_t>(emptiest - filled.begin());
      *emptiest += size;
    }
    fold_count_ = filled.size();
  }

  std::size_t fold_of(const FitRow& row) const { return fold_of_.at(part_of(row, out_.held_out)); }

  /// Rows whose part is not among `held_out`.
  FitRows without(const FitRows& rows, const std::vector<std::string>& held_out) const {
    FitRows out;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(out), [&](const FitRow* row) {
      return std::find(held_out.begin(), held_out.end(), part_of(*row, out_.held_out)) == held_out.end();
    });
    return out;
  }

  /// The factors of the whole family, as far as known without the parts held out.
  Factors family_factors(const FitRows& rows, const std::vector<std::string>& held_out) const {
    if (relatives_.empty()) return fit_->none();
    FitRows family = without(relatives_, held_out);
    family.insert(family.end(), rows.begin(), rows.end());
    return fit_->fit(family, fit_->none());
  }

  Factors fit_to(const FitRows& rows, const std::vector<std::string>& held_out) const {
    return fit_->fit(rows, family_factors(rows, held_out));
  }

  std::vector<double> errors(const FitRows& rows, const Factors& factors) const {
    std::vector<double> out;
    for (const FitRow* row : rows) out.push_back(fit_->error(*row, factors));
    return out;
  }

  void cross_validate() {
    std::vector<double> outside;
    std::vector<double> by_family;
    for (std::size_t fold = 0; fold < fold_count_ && !(stop_ && stop_()); ++fold) {
      FoldReport report;
      for (const auto& [part, at] : fold_of_) {
        if (at == fold) report.held_out.push_back(part);
      }
      const FitRows train = without(rows_, report.held_out);
      FitRows test;
      for (const FitRow* row : rows_) {
        if (fold_of(*row) == fold) test.push_back(row);
      }
      const Factors centre = family_factors(train, report.held_out);
      centres_.push_back(centre);
      folds_.push_back(fit_->fit(train, centre));
      const std::vector<double> unseen = errors(test, folds_.back());
      const std::vector<double> leant_on = errors(test, centre);
      report.rows = test.size();
      report.inside_mean_abs = errors_of(errors(train, folds_.back())).mean_abs;
      report.outside_mean_abs = errors_of(unseen).mean_abs;
      report.outside_bias = errors_of(unseen).bias;
      out_.folds.push_back(std::move(report));
      outside.insert(outside.end(), unseen.begin(), unseen.end());
      by_family.insert(by_family.end(), leant_on.begin(), leant_on.end());
    }
    if (outside.empty()) return;
    out_.outside = errors_of(outside);
    out_.by_family = errors_of(by_family);
  }

  /// Whether the band of the fit that had not seen the row holds its measurement.
  bool in_band(const FitRow& row, double scale) const {
    Efficiency wide = fit_->at(row.base, folds_[fold_of(row)]);
    for (const CoefficientSlot* slot : fit_->slots()) {
      slot->set(wide, slot->value(wide), std::min(kLargestError, scale * slot->error(row.base)));
    }
    return row.step(fastest(wide)) <= row.measured && row.measured <= row.step(slowest(wide));
  }

  double coverage_of(double scale) const {
    const auto inside =
        std::count_if(rows_.begin(), rows_.end(), [&](const FitRow* row) { return in_band(*row, scale); });
    return static_cast<double>(inside) / static_cast<double>(rows_.size());
  }

  FittedRow report_of(const FitRow& row, const Factors& fitted, double scale) const {
    FittedRow out{.row = row.row, .measured = row.measured, .before = fit_->error(row, fit_->none())};
    out.inside = fit_->error(row, fitted);
    if (folds_.size() < fold_count_ || folds_.empty()) return out;
    out.outside = fit_->error(row, folds_[fold_of(row)]);
    out.by_family = fit_->error(row, centres_[fold_of(row)]);
    out.in_band = in_band(row, scale);
    return out;
  }

  /// The smallest factor on the errors with which the band holds the wanted share of held-out rows.
  double scale_of_errors() {
    double low = 0.02;
    double high = 8;
    constexpr int kHalvings = 12;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = std::sqrt(low * high);
      (coverage_of(middle) >= kWantedCoverage ? high : low) = middle;
    }
    if (out_.held_out == HeldOut::kModel) high *= kOneSourceWidening;
    out_.coverage = coverage_of(high);
    return high;
  }

  std::string provenance() const {
    std::string out = fmt::format("fitted{}{}: {} runs of {} source{}", q_.date.empty() ? "" : " " + q_.date,
                                  q_.files.empty() ? "" : " to " + q_.files, rows_.size(), out_.sources,
                                  out_.sources == 1 ? "" : "s");
    if (!relatives_.empty()) out += fmt::format(", leaning on {} of other chips", relatives_.size());
    out += fmt::format("; mean error {:.1f} %, ", 100 * out_.inside.mean_abs);
    if (folds_.empty()) return out + "nothing was held out";
    out += fmt::format("{:.1f} % on {}, {:.1f} % before; {:.0f} % of those in the band", 100 * out_.outside.mean_abs,
                       out_.held_out == HeldOut::kSource ? "runs of a source held out" : "a model held out",
                       100 * out_.before.mean_abs, 100 * out_.coverage.value_or(0));
    return out;
  }

  void write(const Factors& fitted) {
    const bool factors = !q_.family.empty();
    std::vector<WrittenCoefficient> written;
    for (const FittedCoefficient& c : out_.coefficients) {
      written.push_back({c.path, factors ? c.factor : c.after, c.error_after});
      if (c.path != "attention_forward") continue;
      const double backward = fit_->at(rows_.front()->base, fitted).attention_backward.value;
      written.push_back({"attention_backward", factors ? c.factor : backward, c.error_after});
    }
    out_.block = stack_block(written, out_.stack, provenance(), factors);
  }

  const CalibrateQuestion& q_;
  std::function<bool()> stop_;
  std::vector<std::unique_ptr<FitRow>> held_;
  FitRows rows_;       ///< of the chip, or of the family
  FitRows relatives_;  ///< of the family's other chips, under the same stack
  std::unique_ptr<CoefficientFit> fit_;
  std::string usual_stack_;
  std::map<std::string, std::size_t> fold_of_;  ///< by source or model
  std::size_t fold_count_ = 0;
  std::vector<Factors> folds_, centres_;
  Calibration out_;
};

}  // namespace

Calibration calibrate(const CalibrateQuestion& question, const Catalog& catalog, const std::function<bool()>& stop) {
  return Fitter(question, catalog, stop).run();
}

}  // namespace scalecalc
