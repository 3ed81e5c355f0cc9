#include "calibrate/serve_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "calibrate/ridge.h"
#include "calibrate/serve_slots.h"
#include "import/hf_document.h"
#include "validate/statistics.h"

namespace scalecalc {
namespace {

/// Errors beyond this (of the logarithm) count linearly; it is also what a row is expected to be off by.
constexpr double kHuber = 0.15;
/// The factor of all rows may stray so much farther than an engine's, and that of an engine on one chip less.
constexpr double kAllStray = 1.5;
constexpr double kPairStray = 0.5;
constexpr int kSteps = 20;

struct FitServing {
  ServedRow served;
  Efficiency base;  ///< the family's
  std::vector<std::size_t> labels;
  std::string part;  ///< what is held out with it
  std::size_t fold = 0;
};

double huber(double residual) {
  const double size = std::abs(residual) / kHuber;
  return size <= 1 ? size * size / 2 : size - 0.5;
}

class ServeFitter {
 public:
  ServeFitter(const ServeCalibrateQuestion& question, const Catalog& catalog, const std::function<bool()>& stop)
      : q_(question), stop_(stop) {
    std::vector<ServeMeasurement> rows = q_.rows;
    name_engines(rows, catalog);
    for (const ServeMeasurement& row : rows) {
      if (passes(row, q_.only)) take(row, catalog);
    }
    if (rows_.empty()) {
      throw UserError("no measured serving row can be used", "scalecalc validate says why of each row");
    }
    label();
    deal();
  }

  ServeCalibration run() {
    std::vector<double> zero(system_.stray.size(), 0.0);
    const std::vector<bool> all(rows_.size(), true);
    const std::vector<double> fitted = fit(all, zero);
    held_out_.assign(rows_.size(), fitted);
    // Every fold starts from nothing: a start that has seen the held-out rows would be remembered.
    for (std::size_t fold = 0; fold < out_.folds && !(stop_ && stop_()); ++fold) {
      std::vector<bool> seen(rows_.size());
      for (std::size_t i = 0; i < rows_.size(); ++i) seen[i] = rows_[i].fold != fold;
      const std::vector<double> blind = fit(seen, zero);
      for (std::size_t i = 0; i < rows_.size(); ++i) {
        if (!seen[i]) held_out_[i] = blind;
      }
    }
    report(zero, fitted);
    return std::move(out_);
  }

 private:
  void take(const ServeMeasurement& row, const Catalog& catalog) {
    try {
      FitServing out{.served = served_row(row, catalog, {}, false)};
      out.base = out.served.hw->efficiency;
      rows_.push_back(std::move(out));
    } catch (const NotPredicted& why) {
      out_.skipped.push_back({row, why.reason(), why.detail()});
    }
  }

  /// Chips of one family whose matmul units take the same narrowest floats are of one generation.
  static std::string generation(const HardwareSpec& hw) {
    for (const DType narrow : {DType::kFp4, DType::kFp8}) {
      if (hw.matmul_peak[static_cast<std::size_t>(narrow)])
        return fmt::format("{} with {}", hw.family, name_of(narrow));
    }
    return hw.family;
  }

  /// What a row shares its factors with: all rows, those of its engine, generation, chip, and engine on the chip.
  static std::vector<std::string> names_of(const ServedRow& served) {
    const std::string& stack = served.row.stack;
    const std::string& chip = served.hw->name;
    return {"", "engine " + stack, "generation " + generation(*served.hw), "chip " + chip,
            "engine " + stack + " on " + chip};
  }

  void label() {
    std::map<std::string, std::size_t> known;
    for (FitServing& row : rows_) {
      for (const std::string& name : names_of(row.served)) {
        row.labels.push_back(known.try_emplace(name, known.size()).first->second);
      }
    }
    system_.labels = known.size();
    std::vector<double> farther(known.size(), 1.0);
    farther[known.at("")] = kAllStray;
    for (const FitServing& row : rows_) farther[row.labels.back()] = kPairStray;
    for (const ServeSlot& slot : serve_slots()) {
      for (const double factor : farther) system_.stray.push_back(slot.stray * factor);
    }
  }

  /// Whole sources; the models of one where its chip has no other. The largest first, each to the emptiest fold.
  void deal() {
    std::map<std::string, std::set<std::string>> sources;
    for (const FitServing& row : rows_) sources[row.served.hw->name].insert(row.served.row.group);
    std::map<std::string, std::size_t> sizes;
    for (FitServing& row : rows_) {
      const ServeMeasurement& m = row.served.row;
      const bool alone = sources[row.served.hw->name].size() == 1;
      row.part = m.group + (alone ? "\n" + m.model : "");
      ++sizes[row.part];
    }
    std::vector<std::pair<std::string, std::size_t>> order(sizes.begin(), sizes.end());
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    out_.folds = std::min(q_.folds.value_or(order.size()), order.size());
    std::vector<std::size_t> filled(out_.folds);
    std::map<std::string, std::size_t> fold_of;
    for (const auto& [part, size] : order) {
      const auto emptiest = std::min_element(filled.begin(), filled.end());
      fold_of[part] = static_cast<std::size_t>(emptiest - filled.begin());
      *emptiest += size;
    }
    for (FitServing& row : rows_) row.fold = fold_of[row.part];
  }

  double factor(const FitServing& row, std::size_t slot, const std::vector<double>& parameters) const {
    double sum = 0;
    for (const std::size_t label : row.labels) sum += parameters[slot * system_.labels + label];
    return std::exp(sum);
  }

  Efficiency at(const FitServing& row, const std::vector<double>& parameters) const {
    Efficiency out = row.base;
    const std::vector<ServeSlot>& slots = serve_slots();
    for (std::size_t k = 0; k < slots.size(); ++k) {
      Coefficient& c = out.serving.*(slots[k].field);
      c.value = std::clamp(c.value * factor(row, k, parameters), slots[k].least, slots[k].most);
    }
    return out;
  }

  static double error(const FitServing& row, const Efficiency& efficiency) {
    return served_error(row.served.row, served_figures(row.served, efficiency).figure);
  }
  double residual(std::size_t i, const std::vector<double>& parameters) const {
    return std::log1p(error(rows_[i], at(rows_[i], parameters)));
  }

  /// d ln(time) / d ln(coefficient), one-sided.
  std::vector<std::vector<double>> slopes_at(const std::vector<double>& parameters,
                                             const std::vector<bool>& wanted) const {
    constexpr double kStep = 0.01;
    std::vector<std::vector<double>> out;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const FitServing& row = rows_[i];
      if (!wanted[i]) {
        out.emplace_back();
        continue;
      }
      const Efficiency here = at(row, parameters);
      const double now = std::log1p(error(row, here));
      std::vector<double> slopes;
      for (const ServeSlot& slot : serve_slots()) {
        Efficiency moved = here;
        (moved.serving.*(slot.field)).value *= 1 - kStep;
        slopes.push_back((std::log1p(error(row, moved)) - now) / std::log1p(-kStep));
      }
      out.push_back(std::move(slopes));
    }
    return out;
  }

  double loss(const std::vector<bool>& seen, const std::vector<double>& parameters) const {
    double out = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (seen[i]) out += huber(residual(i, parameters));
    }
    for (std::size_t j = 0; j < parameters.size(); ++j) out += std::pow(parameters[j] / system_.stray[j], 2) / 2;
    return out;
  }

  std::vector<RidgeRow> design(const std::vector<bool>& seen, const std::vector<double>& parameters,
                               const std::vector<std::vector<double>>& slopes) const {
    std::vector<RidgeRow> out;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!seen[i]) continue;
      const double r = residual(i, parameters);
      const double weight = 1 / (kHuber * std::max(kHuber, std::abs(r)));
      out.push_back({rows_[i].labels, slopes[i], r, weight});
    }
    return out;
  }

  /// Damped until a step makes it better.
  std::vector<double> fit(const std::vector<bool>& seen, std::vector<double> at) const {
    constexpr double kEnough = 1e-3;
    constexpr double kLargestDamping = 1e3;
    double now = loss(seen, at);
    double damping = 0;
    for (int i = 0; i < kSteps; ++i) {
      const std::vector<RidgeRow> rows = design(seen, at, slopes_at(at, seen));
      double better = now;
      for (; better >= now && damping < kLargestDamping; damping = better < now ? damping : 10 * damping + 0.1) {
        const std::vector<double> step = system_.step(rows, at, damping);
        std::vector<double> moved = at;
        for (std::size_t j = 0; j < moved.size(); ++j) moved[j] += step[j];
        const double there = loss(seen, moved);
        if (there >= now) continue;
        better = there;
        at = std::move(moved);
      }
      if (now - better < kEnough * now) break;
      now = better;
      damping = damping < 0.2 ? 0 : damping / 20;
    }
    return at;
  }

  void report(const std::vector<double>& zero, const std::vector<double>& fitted) {
    std::vector<PredictedServing> naive;
    for (const FitServing& row : rows_) {
      naive.push_back({.row = row.served.row, .floor = served_figures(row.served, row.base).floor});
    }
    add_naive_errors(naive);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const FitServing& row = rows_[i];
      out_.rows.push_back({.row = row.served.row,
                           .before = error(row, at(row, zero)),
                           .inside = error(row, at(row, fitted)),
                           .outside = error(row, at(row, held_out_[i])),
                           .naive = naive[i].naive_error});
    }
    const std::vector<bool> all(rows_.size(), true);
    spreads_ = spreads(design(all, fitted, slopes_at(fitted, all)));
    scale_ = scale_of_errors();
    std::size_t inside = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      out_.rows[i].in_band = in_band(i, scale_);
      if (out_.rows[i].in_band) ++inside;
    }
    out_.coverage = static_cast<double>(inside) / static_cast<double>(rows_.size());
    out_.before = over([](const FittedServing& r) { return r.before; }, {});
    out_.inside = over([](const FittedServing& r) { return r.inside; }, {});
    out_.outside = over([](const FittedServing& r) { return r.outside; }, {});
    out_.naive = over([](const FittedServing& r) { return r.naive; }, {});
    write_sets(fitted);
  }

  /// Standard deviations of the coefficients of each engine on each chip, by its label.
  std::map<std::size_t, std::vector<double>> spreads(const std::vector<RidgeRow>& rows) const {
    std::map<std::size_t, std::vector<double>> out;
    for (const FitServing& row : rows_) {
      if (!out.contains(row.labels.back())) out[row.labels.back()] = system_.spread(rows, row.labels);
    }
    return out;
  }

  Efficiency with_errors(const FitServing& row, Efficiency efficiency, double scale) const {
    const std::vector<double>& spread = spreads_.at(row.labels.back());
    for (std::size_t k = 0; k < spread.size(); ++k) {
      (efficiency.serving.*(serve_slots()[k].field)).error = std::min(kLargestError, scale * std::expm1(spread[k]));
    }
    return efficiency;
  }

  bool in_band(std::size_t i, double scale) const {
    const FitServing& row = rows_[i];
    const Efficiency wide = with_errors(row, at(row, held_out_[i]), scale);
    return error(row, fastest(wide)) <= 0 && error(row, slowest(wide)) >= 0;
  }

  /// The smallest factor on the errors with which the band holds the wanted share of held-out rows.
  double scale_of_errors() const {
    double low = 0.02;
    double high = 8;
    constexpr int kHalvings = 10;
    for (int i = 0; i < kHalvings; ++i) {
      const double middle = std::sqrt(low * high);
      std::size_t inside = 0;
      for (std::size_t row = 0; row < rows_.size(); ++row) inside += in_band(row, middle) ? 1U : 0U;
      const bool enough = static_cast<double>(inside) >= kWantedCoverage * static_cast<double>(rows_.size());
      (enough ? high : low) = middle;
    }
    return high;
  }

  /// Errors over the rows with this last label, or over all.
  template <class Pick>
  FitErrors over(const Pick& pick, std::optional<std::size_t> label) const {
    std::vector<double> errors;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!label || rows_[i].labels.back() == *label) errors.push_back(pick(out_.rows[i]));
    }
    return errors_of(errors);
  }

  void write_sets(const std::vector<double>& fitted) {
    std::set<std::size_t> done;
    for (const FitServing& row : rows_) {
      const std::size_t label = row.labels.back();
      if (row.served.row.stack.empty() || !done.insert(label).second) continue;
      ServeSet set{.hardware = row.served.hw->name, .stack = row.served.row.stack};
      std::set<std::string> sources;
      for (const FitServing& other : rows_) {
        if (other.labels.back() != label) continue;
        ++set.rows;
        sources.insert(other.served.row.group);
      }
      set.sources = sources.size();
      set.before = over([](const FittedServing& r) { return r.before; }, label);
      set.inside = over([](const FittedServing& r) { return r.inside; }, label);
      set.outside = over([](const FittedServing& r) { return r.outside; }, label);
      const Efficiency efficiency = with_errors(row, at(row, fitted), scale_);
      for (const ServeSlot& slot : serve_slots()) {
        const Coefficient& c = efficiency.serving.*(slot.field);
        set.coefficients.push_back({std::string("serving.") + slot.path, c.value, c.error});
      }
      set.block = stack_block(set.coefficients, set.stack, provenance(set), false);
      out_.sets.push_back(std::move(set));
    }
    std::sort(out_.sets.begin(), out_.sets.end(), [](const ServeSet& a, const ServeSet& b) {
      return std::tie(a.hardware, a.stack) < std::tie(b.hardware, b.stack);
    });
  }

  std::string provenance(const ServeSet& set) const {
    return fmt::format(
        "fitted{}{}: {} runs of {} source{}; median error {:.1f} %, {:.1f} % on runs of a source held out, "
        "{:.1f} % by the family's",
        q_.date.empty() ? "" : " " + q_.date, q_.files.empty() ? "" : " to " + q_.files, set.rows, set.sources,
        set.sources == 1 ? "" : "s", 100 * set.inside.median_abs, 100 * set.outside.median_abs,
        100 * set.before.median_abs);
  }

  const ServeCalibrateQuestion& q_;
  std::function<bool()> stop_;
  std::vector<FitServing> rows_;
  RidgeSystem system_;
  std::vector<std::vector<double>> held_out_;  ///< parameters fitted without the row
  std::map<std::size_t, std::vector<double>> spreads_;
  double scale_ = 1;
  ServeCalibration out_;
};

}  // namespace

ServeCalibration calibrate_serving(const ServeCalibrateQuestion& question, const Catalog& catalog,
                                   const std::function<bool()>& stop) {
  return ServeFitter(question, catalog, stop).run();
}

}  // namespace scalecalc
