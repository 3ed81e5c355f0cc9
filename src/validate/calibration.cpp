#include "validate/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "spec/load.h"
#include "spec/load_stack.h"
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
/// Sources differ by more than the models of one source do: assumed, by half as much again.
constexpr double kOneSourceWidening = 1.5;
constexpr double kLargestError = 0.95;

/// A run with its layout, ready to be costed again and again.
struct FitRow {
  Measurement row;
  RowQuestion question;
  Plan plan;
  double measured = 0;
  double stretch = 1;
  double weight = 1;
  std::size_t fold = 0;

  /// What is held out together.
  const std::string& part(HeldOut by) const { return by == HeldOut::kModel ? row.model : row.group; }
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
    const HardwareSpec hw =
        load_hardware(catalog.load(CatalogKind::kHardware, q_.hardware), catalog, Unpublished::kAllowed);
    out_.hardware = hw.name;
    usual_stack_ = hw.stacks.front().name;
    out_.stack = q_.stack.empty() ? usual_stack_ : load_stack(catalog.load(CatalogKind::kStack, q_.stack)).name;
    std::vector<Measurement> rows = q_.rows;
    name_stacks(rows, catalog);
    for (const Measurement& row : rows) {
      if (passes(row, q_.only)) take(row, catalog);
    }
    if (rows_.empty()) {
      throw UserError(fmt::format("no measured step time of {} under {} can be used", out_.hardware, out_.stack),
                      "scalecalc validate says why of each row; --stack NAME fits another software stack");
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
    for (const auto& row : rows_) out_.rows.push_back(report_of(*row, fitted, scale));
    for (const CoefficientSlot* slot : slots_) {
      FittedCoefficient c{.path = slot->path, .before = slot->value(base_), .error_before = slot->error(base_)};
      c.after = c.lowest = c.highest = slot->value(fitted);
      c.error_after = std::min(kLargestError, scale * c.error_before);
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
    if (row.stack != out_.stack && !(row.stack.empty() && out_.stack == usual_stack_)) {
      ++out_.other_stacks;
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

  std::map<std::string, std::size_t> sizes_of(HeldOut part) const {
    std::map<std::string, std::size_t> out;
    for (const auto& row : rows_) ++out[row->part(part)];
    return out;
  }

  /// Weights by source; folds of whole sources, or models.
  void weigh() {
    std::map<std::string, std::size_t> sizes = sizes_of(HeldOut::kSource);
    for (const auto& row : rows_) row->weight = 1 / std::sqrt(static_cast<double>(sizes[row->row.group]));
    out_.sources = sizes.size();
    if (sizes.size() > 1) return deal(HeldOut::kSource, sizes);
    sizes = sizes_of(HeldOut::kModel);
    if (sizes.size() > 1) deal(HeldOut::kModel, sizes);
  }

  /// The largest first, each to the emptiest fold.
  void deal(HeldOut part, const std::map<std::string, std::size_t>& sizes) {
    std::vector<std::pair<std::string, std::size_t>> order(sizes.begin(), sizes.end());
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    std::vector<std::size_t> filled(std::max<std::size_t>(2, std::min(q_.folds, order.size())));
    std::map<std::string, std::size_t> fold_of;
    for (const auto& [source, size] : order) {
      const auto emptiest = std::min_element(filled.begin(), filled.end());
      fold_of[source] = static_cast<std::size_t>(emptiest - filled.begin());
      *emptiest += size;
    }
    for (const auto& row : rows_) row->fold = fold_of[row->part(part)];
    out_.held_out = part;
    fold_count_ = filled.size();
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
        const std::string& part = row->part(out_.held_out);
        if (std::count(report.held_out.begin(), report.held_out.end(), part) == 0) report.held_out.push_back(part);
      }
      out_.folds.push_back(std::move(report));
      outside.insert(outside.end(), unseen.begin(), unseen.end());
    }
    if (!outside.empty()) out_.outside = errors_of(outside);
  }

  /// Whether the band of the fit that had not seen the row holds its measurement.
  bool in_band(const FitRow& row, double scale) const {
    Efficiency wide = folds_[row.fold];
    for (const CoefficientSlot* slot : slots_) {
      slot->set(wide, slot->value(wide), std::min(kLargestError, scale * slot->error(base_)));
    }
    return row.step(fastest(wide)) <= row.measured && row.measured <= row.step(slowest(wide));
  }

  double coverage_of(double scale) const {
    const auto inside =
        std::count_if(rows_.begin(), rows_.end(), [&](const auto& row) { return in_band(*row, scale); });
    return static_cast<double>(inside) / static_cast<double>(rows_.size());
  }

  FittedRow report_of(const FitRow& row, const Efficiency& fitted, double scale) const {
    const auto error = [&](const Efficiency& e) { return row.step(e) / row.measured - 1; };
    FittedRow out{.row = row.row, .measured = row.measured, .before = error(base_), .inside = error(fitted)};
    if (folds_.empty()) return out;
    out.outside = error(folds_[row.fold]);
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
    std::string out = fmt::format("fitted{}{}: {} runs of {} source{}; mean error {:.1f} %, ",
                                  q_.date.empty() ? "" : " " + q_.date, q_.files.empty() ? "" : " to " + q_.files,
                                  rows_.size(), out_.sources, out_.sources == 1 ? "" : "s", 100 * out_.inside.mean_abs);
    if (folds_.empty()) return out + "nothing was held out";
    out += fmt::format("{:.1f} % on {}, {:.1f} % before; {:.0f} % of those in the band", 100 * out_.outside.mean_abs,
                       out_.held_out == HeldOut::kSource ? "runs of a source held out" : "a model held out",
                       100 * out_.before.mean_abs, 100 * out_.coverage.value_or(0));
    return out;
  }

  void write(const Efficiency& fitted) {
    std::vector<WrittenCoefficient> written;
    for (const FittedCoefficient& c : out_.coefficients) {
      written.push_back({c.path, c.after, c.error_after});
      if (c.path == "attention_forward") {
        written.push_back({"attention_backward", fitted.attention_backward.value, c.error_after});
      }
    }
    out_.block = stack_block(written, out_.stack, provenance());
  }

  const CalibrateQuestion& q_;
  std::function<bool()> stop_;
  std::vector<std::unique_ptr<FitRow>> rows_;
  Efficiency base_;
  std::vector<const CoefficientSlot*> slots_;
  std::string usual_stack_;
  std::size_t fold_count_ = 0;
  std::vector<Efficiency> folds_;
  Calibration out_;
};

}  // namespace

Calibration calibrate(const CalibrateQuestion& question, const Catalog& catalog, const std::function<bool()>& stop) {
  return Fitter(question, catalog, stop).run();
}

}  // namespace scalecalc
