#include "validate/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "spec/load.h"
#include "validate/evaluate.h"
#include "validate/minimize.h"
#include "validate/statistics.h"

namespace scalecalc {
namespace {

/// Errors beyond this (of the logarithm) count linearly, so that one odd row cannot turn the fit.
constexpr double kHuber = 0.1;
/// A coefficient moves at most so many of its errors.
constexpr double kFarthest = 4;
constexpr double kWantedCoverage = 0.9;

/// A run with its layout, ready to be costed again and again.
struct FitRow {
  Measurement row;
  RowQuestion question;
  Plan plan;
  double measured = 0;
  double stretch = 1;
  double weight = 1;
  std::size_t fold = 0;

  double step(const Efficiency& efficiency) const {
    PlanRequest request = request_of(question);
    request.efficiency = efficiency;
    return read_plan(Reader<double>{}, request, plan).time.total().value() * stretch;
  }
};

using Rows = std::vector<const FitRow*>;

double huber(double residual) {
  const double size = std::abs(residual) / kHuber;
  return size <= 1 ? size * size / 2 : size - 0.5;
}

FitErrors errors_of(const std::vector<double>& errors) {
  std::vector<double> sizes(errors.size());
  std::transform(errors.begin(), errors.end(), sizes.begin(), [](double error) { return std::abs(error); });
  return {mean_of(sizes), quantile(sizes, 0.5), quantile(sizes, 0.9), mean_of(errors)};
}

class Fitter {
 public:
  Fitter(const CalibrateQuestion& question, const Catalog& catalog, const std::function<bool()>& stop)
      : q_(question), stop_(stop) {
    out_.hardware =
        load_hardware(catalog.load(CatalogKind::kHardware, q_.hardware), catalog, Unpublished::kAllowed).name;
    for (const Measurement& row : q_.rows) {
      if (passes(row, q_.only)) take(row, catalog);
    }
    if (rows_.empty()) {
      throw UserError(fmt::format("no measured step time of {} can be used", out_.hardware),
                      "scalecalc validate says why of each row");
    }
    base_ = rows_.front()->question.resolved.efficiency;
    weigh();
    choose_coefficients();
  }

  Calibration run() {
    Rows all;
    for (const auto& row : rows_) all.push_back(row.get());
    const Efficiency fitted = fit(all);
    out_.before = errors_of(errors(all, base_));
    out_.inside = errors_of(errors(all, fitted));
    out_.outside = out_.inside;
    cross_validate(all);
    const double scale = folds_.empty() ? 1 : scale_of_errors();
    for (const CoefficientSlot* slot : slots_) {
      FittedCoefficient c{.path = slot->path, .before = slot->value(base_), .error_before = slot->error(base_)};
      c.after = c.lowest = c.highest = slot->value(fitted);
      c.error_after = std::min(0.95, scale * c.error_before);
      for (const Efficiency& fold : folds_) {
        c.lowest = std::min(c.lowest, slot->value(fold));
        c.highest = std::max(c.highest, slot->value(fold));
      }
      out_.coefficients.push_back(c);
    }
    write(fitted);
    return std::move(out_);
  }

 private:
  /// The name of the row's chip in the catalog; empty if it has none.
  static std::string chip_of(const Measurement& row, const Catalog& catalog) {
    try {
      const ConfigNode document = catalog.load(CatalogKind::kHardware, row.chip);
      const ConfigNode* name = document.find("name");
      return name == nullptr ? "" : name->text;
    } catch (const UserError&) {
      return "";
    }
  }

  void take(const Measurement& row, const Catalog& catalog) {
    if (chip_of(row, catalog) != out_.hardware) {
      ++out_.other_chips;
      return;
    }
    try {
      auto out = std::make_unique<FitRow>();
      out->row = row;
      out->question = row_question(row, catalog, {}, false);
      out->measured = measured_step(row, out->question.resolved);
      out->plan = evaluate(out->question).plan;
      out->stretch = row.batch_seqs / out->plan.batch_seqs;
      rows_.push_back(std::move(out));
    } catch (const NotPredicted& why) {
      out_.skipped.push_back({row, why.reason(), why.detail()});
    }
  }

  /// Weights by source, and folds of whole sources: the largest first, each to the emptiest fold.
  void weigh() {
    std::map<std::string, std::size_t> sizes;
    for (const auto& row : rows_) ++sizes[row->row.group];
    std::vector<std::pair<std::string, std::size_t>> order(sizes.begin(), sizes.end());
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::vector<std::size_t> filled(std::max<std::size_t>(2, std::min(q_.folds, order.size())));
    std::map<std::string, std::size_t> fold_of;
    for (const auto& [source, size] : order) {
      const auto emptiest = std::min_element(filled.begin(), filled.end());
      fold_of[source] = static_cast<std::size_t>(emptiest - filled.begin());
      *emptiest += size;
    }
    for (const auto& row : rows_) {
      row->fold = fold_of[row->row.group];
      row->weight = 1 / std::sqrt(static_cast<double>(sizes[row->row.group]));
    }
    out_.rows = rows_.size();
    out_.sources = sizes.size();
    fold_count_ = sizes.size() > 1 ? filled.size() : 0;
  }

  /// Those that any run depends on, by more than a part in a thousand within their error.
  void choose_coefficients() {
    constexpr double kMatters = 1e-3;
    for (const CoefficientSlot& slot : fitted_slots()) {
      const double value = slot.value(base_);
      const double error = slot.error(base_);
      if (value <= 0 || error <= 0) continue;
      Efficiency moved = base_;
      slot.set(moved, value / (1 + error));
      const bool matters = std::any_of(rows_.begin(), rows_.end(), [&](const auto& row) {
        return std::abs(row->step(moved) / row->step(base_) - 1) > kMatters;
      });
      if (matters) slots_.push_back(&slot);
    }
    if (slots_.size() < 2) {
      throw UserError("these runs depend on fewer than two coefficients", "give runs of several kinds");
    }
  }

  /// Coefficient i is the file's times (1 + error)^u.
  Efficiency at(const std::vector<double>& u) const {
    Efficiency out = base_;
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      slots_[i]->set(out, slots_[i]->value(base_) * std::pow(1 + slots_[i]->error(base_), u[i]));
    }
    return out;
  }

  Bounds bounds() const {
    Bounds out;
    for (const CoefficientSlot* slot : slots_) {
      const double unit = std::log1p(slot->error(base_));
      const double value = slot->value(base_);
      out.low.push_back(std::clamp(std::log(slot->least / value) / unit, -kFarthest, 0.0));
      out.high.push_back(std::clamp(std::log(slot->most / value) / unit, 0.0, kFarthest));
    }
    for (std::size_t i = 0; i < slots_.size(); ++i) {  // the solver wants room
      if (out.high[i] - out.low[i] < 1e-3) out.low[i] = out.high[i] - 1e-3;
    }
    return out;
  }

  Efficiency fit(const Rows& rows) const {
    const auto loss = [&](const std::vector<double>& u) {
      const Efficiency efficiency = at(u);
      double sum = 0;
      for (const FitRow* row : rows) sum += row->weight * huber(std::log(row->step(efficiency) / row->measured));
      for (const double distance : u) sum += distance * distance / 2;
      return sum;
    };
    return at(minimize(loss, std::vector<double>(slots_.size(), 0.0), bounds()));
  }

  static std::vector<double> errors(const Rows& rows, const Efficiency& efficiency) {
    std::vector<double> out;
    for (const FitRow* row : rows) out.push_back(row->step(efficiency) / row->measured - 1);
    return out;
  }

  void cross_validate(const Rows& all) {
    std::vector<double> outside;
    for (std::size_t fold = 0; fold < fold_count_ && !(stop_ && stop_()); ++fold) {
      Rows train;
      Rows test;
      for (const FitRow* row : all) (row->fold == fold ? test : train).push_back(row);
      folds_.push_back(fit(train));
      const std::vector<double> unseen = errors(test, folds_.back());
      FoldReport report{.rows = test.size(), .inside_mean_abs = errors_of(errors(train, folds_.back())).mean_abs};
      report.outside_mean_abs = errors_of(unseen).mean_abs;
      report.outside_bias = errors_of(unseen).bias;
      for (const FitRow* row : test) {
        if (std::count(report.sources.begin(), report.sources.end(), row->row.group) == 0) {
          report.sources.push_back(row->row.group);
        }
      }
      out_.folds.push_back(std::move(report));
      outside.insert(outside.end(), unseen.begin(), unseen.end());
    }
    if (!outside.empty()) out_.outside = errors_of(outside);
  }

  double coverage_of(double scale) const {
    std::size_t inside = 0;
    std::size_t all = 0;
    for (std::size_t fold = 0; fold < folds_.size(); ++fold) {
      Efficiency wide = folds_[fold];
      for (const CoefficientSlot* slot : slots_) {
        slot->set(wide, slot->value(wide), std::min(0.95, scale * slot->error(base_)));
      }
      const Efficiency low = fastest(wide);
      const Efficiency high = slowest(wide);
      for (const auto& row : rows_) {
        if (row->fold != fold) continue;
        ++all;
        if (row->step(low) <= row->measured && row->measured <= row->step(high)) ++inside;
      }
    }
    return static_cast<double>(inside) / static_cast<double>(all);
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
    out_.coverage = coverage_of(high);
    return high;
  }

  void write(const Efficiency& fitted) {
    const std::string source =
        fmt::format("fitted{}: {} runs of {} sources; mean error {:.1f} % inside, {:.1f} % outside the fold",
                    q_.date.empty() ? "" : " " + q_.date, out_.rows, out_.sources, 100 * out_.inside.mean_abs,
                    100 * out_.outside.mean_abs);
    std::vector<WrittenCoefficient> written;
    for (const FittedCoefficient& c : out_.coefficients) {
      written.push_back({c.path, c.after, c.error_after});
      if (c.path == "attention_forward") {
        written.push_back({"attention_backward", fitted.attention_backward.value, c.error_after});
      }
    }
    out_.block = efficiency_block(written, source);
  }

  const CalibrateQuestion& q_;
  std::function<bool()> stop_;
  std::vector<std::unique_ptr<FitRow>> rows_;
  Efficiency base_;
  std::vector<const CoefficientSlot*> slots_;
  std::size_t fold_count_ = 0;
  std::vector<Efficiency> folds_;
  Calibration out_;
};

}  // namespace

Calibration calibrate(const CalibrateQuestion& question, const Catalog& catalog, const std::function<bool()>& stop) {
  return Fitter(question, catalog, stop).run();
}

}  // namespace scalecalc
