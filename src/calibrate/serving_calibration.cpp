// Fits the serving coefficients of all measured chips and engines together, for `calibrate` on serving rows.
#include "calibrate/serving_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "calibrate/cholesky.h"
#include "calibrate/row_weight.h"

namespace scalecalc {
namespace {

Cholesky normal_matrix(const RidgeSystem& system, const std::vector<RidgeRow>& rows, double damping, const Stop& stop) {
  const std::size_t n = system.stray.size();
  Cholesky out(n);
  for (std::size_t i = 0; i < n; ++i) out.at(i, i) = 1 / (system.stray[i] * system.stray[i]);
  for (const RidgeRow& row : rows) {
    for (std::size_t k = 0; k < row.slopes.size(); ++k) {
      for (std::size_t l = 0; l <= k; ++l) {
        const double product = row.weight * row.slopes[k] * row.slopes[l];
        if (product == 0) continue;
        for (const std::size_t a : row.labels) {
          for (const std::size_t b : row.labels) {
            const std::size_t i = k * system.labels + a;
            const std::size_t j = l * system.labels + b;
            if (j <= i) out.at(i, j) += product;
          }
        }
      }
    }
  }
  for (std::size_t i = 0; i < n; ++i) out.at(i, i) *= 1 + damping;
  out.factorise(stop);
  return out;
}

}  // namespace

std::vector<double> RidgeSystem::step(const std::vector<RidgeRow>& rows, const std::vector<double>& parameters,
                                      double damping, const Stop& stop) const {
  const Cholesky factor = normal_matrix(*this, rows, damping, stop);
  std::vector<double> out(stray.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = -parameters[i] / (stray[i] * stray[i]);
  for (const RidgeRow& row : rows) {
    for (std::size_t k = 0; k < row.slopes.size(); ++k) {
      for (const std::size_t label : row.labels) out[k * labels + label] -= row.weight * row.slopes[k] * row.residual;
    }
  }
  factor.forward(out);
  factor.backward(out);
  return out;
}

std::vector<std::vector<double>> RidgeSystem::spreads(const std::vector<RidgeRow>& rows,
                                                      const std::vector<std::vector<std::size_t>>& at,
                                                      const Stop& stop) const {
  const Cholesky factor = normal_matrix(*this, rows, 0, stop);
  const auto spread = [&](const std::vector<std::size_t>& of, std::size_t k) {
    std::vector<double> x(stray.size(), 0.0);
    for (const std::size_t label : of) x[k * labels + label] = 1;
    factor.forward(x);
    return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
  };
  std::vector<std::vector<double>> out;
  for (const std::vector<std::size_t>& of : at) {
    out.emplace_back();
    for (std::size_t k = 0; k < stray.size() / labels; ++k) out.back().push_back(spread(of, k));
  }
  return out;
}

namespace {

/// Errors beyond this (of the logarithm) count linearly; it is also what a row is expected to be off by.
constexpr double kServeHuber = 0.15;
/// The factor of all rows may stray so much farther than an engine's, and that of an engine on one chip less.
constexpr double kAllStray = 1.5;
constexpr double kPairStray = 0.5;
constexpr int kSteps = 20;

struct FitServing {
  ServedRow served;
  Efficiency base;  ///< the family's
  std::vector<std::size_t> labels;
  double weight = 1;
};

class ServingFitter final : CrossFit {
 public:
  ServingFitter(const ServeCalibrateQuestion& question, const Catalog& catalog, const Stop& stop)
      : CrossFit(stop), q_(question) {
    Progress rows("rows", q_.rows.size());
    take_rows<Serving>(q_.rows, q_.only, catalog, out_.skipped, [&](const ServeMeasurement& row) {
      if (should_stop(CrossFit::stop())) throw Stopped();
      rows.add();
      FitServing taken{.served = served_row(row, catalog, {}, false)};
      taken.base = taken.served.hw->efficiency;
      rows_.push_back(std::move(taken));
    });
    if (rows_.empty()) {
      throw UserError("no measured serving row can be used",
                      "scalecalc validate says why of each row; --half all takes the judge half too");
    }
    weigh();
    label();
  }

  ServeCalibration run(const Catalog& catalog) {
    std::vector<std::size_t> dealt = folds();
    cross_fit(std::move(dealt), out_.folds);
    out_.folds = blind().size();
    report_naive();
    report_errors(out_, Factors(system_.stray.size(), 0.0));
    constexpr int kHalvings = 10;
    double scale = 1;
    try {
      const std::vector<bool> all(rows_.size(), true);
      spreads_ = spreads(design(all, fitted(), slopes_at(fitted(), all)));
      scale = scale_of_errors(kHalvings);
    } catch (const Stopped&) {
      out_.errors_fitted = false;
    }
    report_bands(out_, scale);
    write_sets(scale);
    keep_wanted(catalog);
    return std::move(out_);
  }

 private:
  /// Chips of one family whose matmul units take the same narrowest floats are of one generation.
  static std::string generation(const HardwareSpec& hw) {
    for (const DType narrow : {DType::kFp4, DType::kFp8}) {
      if (hw.matmul_peak[static_cast<std::size_t>(narrow)])
        return fmt::format("{} with {}", hw.family, name_of(narrow));
    }
    return hw.family;
  }

  void weigh() {
    std::map<std::string, std::size_t> sizes;
    for (const FitServing& row : rows_) ++sizes[row.served.row.group];
    for (FitServing& row : rows_) row.weight = row_weight(sizes[row.served.row.group], !row.served.row.doubt.empty());
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

  /// Whole sources; the models of one where its chip has no other.
  std::vector<std::size_t> folds() {
    std::map<std::string, std::set<std::string>> sources;
    for (const FitServing& row : rows_) sources[row.served.hw->name].insert(row.served.row.group);
    std::vector<std::string> parts;
    std::map<std::string, std::size_t> sizes;
    for (const FitServing& row : rows_) {
      const ServeMeasurement& m = row.served.row;
      const bool alone = sources[row.served.hw->name].size() == 1;
      ++sizes[parts.emplace_back(m.group + (alone ? "\n" + m.model : ""))];
    }
    const Folds dealt = deal(sizes, q_.folds.value_or(sizes.size()));
    out_.folds = dealt.count;
    std::vector<std::size_t> out;
    out.reserve(parts.size());
    for (const std::string& part : parts) out.push_back(dealt.of_part.at(part));
    return out;
  }

  double factor(const FitServing& row, std::size_t slot, const std::vector<double>& parameters) const {
    double sum = 0;
    for (const std::size_t label : row.labels) sum += parameters[slot * system_.labels + label];
    return std::exp(sum);
  }

  Efficiency at(std::size_t i, const Factors& parameters) const override {
    Efficiency out = rows_[i].base;
    const std::vector<ServeSlot>& slots = serve_slots();
    for (std::size_t k = 0; k < slots.size(); ++k) {
      Coefficient& c = out.serving.*(slots[k].field);
      c.value = std::clamp(c.value * factor(rows_[i], k, parameters), slots[k].least, slots[k].most);
    }
    return out;
  }

  double error(std::size_t i, const Efficiency& efficiency) const override {
    return served_error(rows_[i].served.row, served_figures(rows_[i].served, efficiency).figure);
  }
  double residual(std::size_t i, const std::vector<double>& parameters) const {
    return std::log1p(error_by(i, parameters));
  }

  /// d ln(time) / d ln(coefficient), one-sided.
  std::vector<std::vector<double>> slopes_at(const std::vector<double>& parameters,
                                             const std::vector<bool>& wanted) const {
    constexpr double kStep = 0.01;
    std::vector<std::vector<double>> out;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (should_stop(stop())) throw Stopped();
      if (!wanted[i]) {
        out.emplace_back();
        continue;
      }
      const Efficiency here = at(i, parameters);
      const double now = std::log1p(error(i, here));
      std::vector<double> slopes;
      for (const ServeSlot& slot : serve_slots()) {
        Efficiency moved = here;
        (moved.serving.*(slot.field)).value *= 1 - kStep;
        slopes.push_back((std::log1p(error(i, moved)) - now) / std::log1p(-kStep));
      }
      out.push_back(std::move(slopes));
    }
    return out;
  }

  double loss(const std::vector<bool>& seen, const std::vector<double>& parameters) const {
    double out = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (seen[i]) out += rows_[i].weight * huber(residual(i, parameters), kServeHuber);
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
      const double weight = rows_[i].weight / (kServeHuber * std::max(kServeHuber, std::abs(r)));
      out.push_back({rows_[i].labels, slopes[i], r, weight});
    }
    return out;
  }

  /// Damped until a step makes it better. Every fold starts from nothing: a start that has seen the held-out rows would
  /// be remembered.
  Factors fit(std::optional<std::size_t> fold) override {
    std::vector<bool> seen;
    for (std::size_t i = 0; i < rows_.size(); ++i) seen.push_back(!fold || fold_of(i) != *fold);
    Factors at(system_.stray.size(), 0.0);
    try {
      improve(seen, at);
    } catch (const Stopped&) {  // the best until then
    }
    return at;
  }

  void improve(const std::vector<bool>& seen, Factors& at) const {
    constexpr double kEnough = 1e-3;
    constexpr double kLargestDamping = 1e3;
    double now = loss(seen, at);
    double damping = 0;
    for (int i = 0; i < kSteps && !should_stop(stop()); ++i) {
      const std::vector<RidgeRow> rows = design(seen, at, slopes_at(at, seen));
      double better = now;
      for (; better >= now && damping < kLargestDamping; damping = better < now ? damping : 10 * damping + 0.1) {
        const std::vector<double> step = system_.step(rows, at, damping, stop());
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
  }

  void report_naive() {
    std::vector<PredictedServing> naive(rows_.size());
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      naive[i].row = rows_[i].served.row;
      naive[i].floor = served_figures(rows_[i].served, rows_[i].base).floor;
    }
    Serving::weigh_together(naive);
    for (const PredictedServing& row : naive) {
      out_.rows.push_back({.row = row.row, .measured = row.row.measured, .baseline = row.naive_error});
    }
  }

  /// Standard deviations of the coefficients of each engine on each chip, by its label.
  std::map<std::size_t, std::vector<double>> spreads(const std::vector<RidgeRow>& rows) const {
    std::map<std::size_t, std::vector<std::size_t>> labels;
    for (const FitServing& row : rows_) labels.try_emplace(row.labels.back(), row.labels);
    std::vector<std::vector<std::size_t>> at;
    at.reserve(labels.size());
    for (const auto& [last, all] : labels) at.push_back(all);
    std::vector<std::vector<double>> found = system_.spreads(rows, at, stop());
    std::map<std::size_t, std::vector<double>> out;
    for (std::size_t i = 0; i < at.size(); ++i) out[at[i].back()] = std::move(found[i]);
    return out;
  }

  bool in_band(std::size_t i, double scale) const override {
    const Efficiency wide = widened(i, at(i, held_out(i) ? blind()[fold_of(i)] : fitted()), scale);
    return error(i, fastest(wide)) <= 0 && error(i, slowest(wide)) >= 0;
  }

  /// `efficiency` with the errors to write down.
  Efficiency widened(std::size_t i, Efficiency efficiency, double scale) const {
    if (spreads_.empty()) return efficiency;
    const std::vector<double>& spread = spreads_.at(rows_[i].labels.back());
    for (std::size_t k = 0; k < spread.size(); ++k) {
      (efficiency.serving.*(serve_slots()[k].field)).error = std::min(kLargestError, scale * std::expm1(spread[k]));
    }
    return efficiency;
  }

  void write_sets(double scale) {
    std::set<std::size_t> done;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const ServedRow& served = rows_[i].served;
      const std::size_t label = rows_[i].labels.back();
      if (served.row.stack.empty() || !done.insert(label).second) continue;
      ServeSet set;
      set.hardware = served.hw->name;
      set.stack = served.row.stack;
      std::vector<FittedOf<Serving>> rows;
      std::set<std::string> sources;
      for (std::size_t j = 0; j < rows_.size(); ++j) {
        if (rows_[j].labels.back() != label) continue;
        rows.push_back(out_.rows[j]);
        sources.insert(rows.back().row.group);
      }
      set.rows = rows.size();
      set.sources = sources.size();
      static_cast<FitErrors&>(set) = fit_errors(rows);
      const Efficiency efficiency = widened(i, at(i, fitted()), scale);
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

  void keep_wanted(const Catalog& catalog) {
    const std::string chip =
        q_.hardware.empty() ? "" : catalog.load(CatalogKind::kHardware, q_.hardware).find("name")->text;
    std::erase_if(out_.sets, [&](const ServeSet& set) {
      return (!chip.empty() && set.hardware != chip) || (!q_.stack.empty() && set.stack != q_.stack);
    });
    if (!out_.sets.empty()) return;
    if (should_stop(stop())) throw Stopped();  // rows of it may have been still to come
    throw UserError(fmt::format("no row of {}{} is known", chip, q_.stack.empty() ? "" : " under " + q_.stack),
                    "without --hw and --stack all that are known are shown");
  }

  std::string provenance(const ServeSet& set) const {
    const std::string unseen = blind().empty()
                                   ? "nothing was held out"
                                   : fmt::format("{:.1f} % on runs of a source held out", 100 * set.outside.median_abs);
    return fitted_to(q_.date, q_.files, set.rows, set.sources) +
           fmt::format("; median error {:.1f} %, {}, {:.1f} % by the family's", 100 * set.inside.median_abs, unseen,
                       100 * set.before.median_abs);
  }

  const ServeCalibrateQuestion& q_;
  std::vector<FitServing> rows_;
  RidgeSystem system_;
  std::map<std::size_t, std::vector<double>> spreads_;
  ServeCalibration out_;
};

}  // namespace

ServeCalibration calibrate_serving(const ServeCalibrateQuestion& question, const Catalog& catalog, const Stop& stop) {
  return ServingFitter(question, catalog, stop).run(catalog);
}

}  // namespace scalecalc
