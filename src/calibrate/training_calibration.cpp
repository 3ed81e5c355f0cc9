// Fits a chip's training coefficients to measured runs and tests them on held-out sources, for `calibrate`.
#include "calibrate/training_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "base/text.h"
#include "calibrate/coefficient_fit.h"
#include "calibrate/next_runs.h"
#include "calibrate/row_weight.h"
#include "spec/load.h"
#include "spec/load_stack.h"
#include "train/run_class.h"

namespace scalecalc {
namespace {

/// Sources differ by more than the models of one source do: assumed, by half as much again.
constexpr double kOneSourceWidening = 1.5;
/// The middle of what fits to many sources have (docs/accuracy.md): what the error of a model is drawn to where fewer
/// sources than this tell of it, as if so many others had said it.
constexpr double kUsualModelError = 0.17;
constexpr std::size_t kManySources = 3;
constexpr double kUsualModelErrorSources = 2;
/// Where there is one source alone, what it does unlike others is what is fitted: its runs repeat within half of what
/// those of several sources differ by, and count in full.
constexpr double kOneSourceWeight = 4;
constexpr std::size_t kUsualFolds = 5;
/// A class of fewer runs has the error of all, and of fewer runs of whole sources held out also those of models count.
constexpr std::size_t kFewestOfClass = 10;
/// The errors of coefficients are made no smaller than by this, whatever runs held out say.
constexpr double kLeastNarrowing = 0.25;

constexpr std::size_t kUsualNextRuns = 3;
/// Up to so many runs are one's own, of which the next to measure are named.
constexpr std::size_t kOwnRuns = 20;

using StepRow = StepObservation;
using StepRows = std::vector<const StepRow*>;

/// A source with more of the rows than this is held out model by model, like one that is alone: without it fewer rows
/// would be left to fit to than a fold usually holds out.
constexpr double kNearlyAll = 1 - 1.0 / kUsualFolds;

const std::string& part_of(const StepRow& row, HeldOut by) {
  return by == HeldOut::kModel ? row.row.model : row.row.group;
}

std::map<std::string, std::size_t> sizes_of(const StepRows& rows, HeldOut by) {
  std::map<std::string, std::size_t> out;
  for (const StepRow* row : rows) ++out[part_of(*row, by)];
  return out;
}

/// What a fit leaves unknown of the coefficients.
struct Known {
  Informed informed;
  Posterior posterior;
  std::vector<double> of_prior;  ///< each one's error to write down, over that of the file
};

/// The value up to which the wanted share of them lies, as nearly as so many can.
double held_by(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto rank = std::llround(kWantedCoverage * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1LL)) - 1];
}

class TrainingFitter final : CrossFit {
 public:
  TrainingFitter(const CalibrateQuestion& question, const Catalog& catalog, const Stop& stop)
      : CrossFit(stop), q_(question), catalog_(catalog) {
    name_target();
    Progress rows("rows", q_.rows.size());
    take_rows<Training>(q_.rows, q_.only, catalog, out_.skipped, [&](const Measurement& row) {
      rows.add();
      take(row);
    });
    take_kernels();
    if (rows_.empty() && kernels_.empty()) {
      throw UserError(
          fmt::format("no measured step time of {} under {} can be used{}",
                      q_.family.empty() ? out_.hardware : out_.family, out_.stack,
                      q_.only.empty() ? "" : ", of those that --only leaves"),
          "scalecalc validate says why of each row; --stack NAME fits another software stack, --half all takes "
          "the judge half too");
    }
    weigh();
    choose_parts();
    StepRows all = rows_;
    all.insert(all.end(), relatives_.begin(), relatives_.end());
    const Observations observed = with_kernels(all);
    fit_ = std::make_unique<CoefficientFit>(observed, observed_base());
  }

  Calibration run() {
    std::vector<std::size_t> folds;
    if (folds_.count > 0) {
      for (const StepRow* row : rows_) folds.push_back(folds_.of_part.at(held_out_with(*row)));
    }
    cross_fit(std::move(folds), folds_.count);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      out_.rows.push_back({.row = rows_[i]->row, .measured = rows_[i]->measured, .by_model = is_by_model(*rows_[i])});
      if (held_out(i)) out_.rows[i].baseline = error_by(i, centres_[fold_of(i)]);
    }
    report_errors(out_, fit_->none());
    for (std::size_t fold = 0; fold < blind().size(); ++fold) out_.folds.push_back(report_of(fold));
    report_gains();
    known_.push_back(known_of(std::nullopt, fitted()));
    for (std::size_t fold = 0; fold < blind().size(); ++fold) known_.push_back(known_of(fold, blind()[fold]));
    out_.degrees_of_freedom = known_.front().posterior.degrees_of_freedom();
    fit_model_errors();
    report_bands(out_, 1);
    report_coefficients();
    name_next_runs();
    write();
    return std::move(out_);
  }

 private:
  void name_target() {
    if (q_.family.empty()) {
      hw_ = std::make_shared<const HardwareSpec>(
          load_hardware(catalog_.load(CatalogKind::kHardware, q_.hardware), catalog_, Unpublished::kAllowed));
      out_.hardware = hw_->name;
      out_.family = hw_->family;
      usual_stack_ = hw_->stacks.front().name;
    } else {
      const ConfigNode document = catalog_.load(CatalogKind::kEfficiency, q_.family);
      out_.family = document.find("name")->text;
      usual_stack_ = document.find("stack")->text;
    }
    out_.stack = q_.stack.empty() ? usual_stack_ : load_stack(catalog_.load(CatalogKind::kStack, q_.stack)).name;
  }

  /// What the catalog says of a row's chip; empty if it does not know it.
  struct NamedChip {
    std::string name, family;
  };
  NamedChip named_chip(const std::string& chip) const {
    try {
      const ConfigNode document = catalog_.load(CatalogKind::kHardware, chip);
      const auto text = [&](std::string_view key) {
        const ConfigNode* field = document.find(key);
        return field == nullptr ? std::string() : field->text;
      };
      return {text("name"), text("family")};
    } catch (const UserError&) {
      return {};
    }
  }

  void take(const Measurement& row) {
    if (should_stop(stop())) throw Stopped();
    if (!chips_.contains(row.chip)) chips_[row.chip] = named_chip(row.chip);
    const NamedChip& chip = chips_.at(row.chip);
    const bool target = q_.family.empty() ? chip.name == out_.hardware : chip.family == out_.family;
    const bool of_stack = row.stack == out_.stack || (row.stack.empty() && out_.stack == usual_stack_);
    if (!target) ++out_.other_chips;
    if (target && !of_stack) ++out_.other_stacks;
    if (!of_stack || (!target && chip.family != out_.family)) return;
    try {
      held_.push_back(std::make_unique<StepRow>(row, catalog_, stop()));
      (target ? rows_ : relatives_).push_back(held_.back().get());
    } catch (const NotPredicted&) {
      if (target) throw;
    }
  }

  void take_kernels() {
    const std::vector<KernelMeasurement> large = large_messages(q_.kernels);
    out_.small_messages = q_.kernels.size() - large.size();
    if (large.empty()) return;
    auto timed = std::make_shared<HardwareSpec>(*hw_);
    use_kernel(choose_kernel(catalog_, *hw_, {.stack = out_.stack, .framework = "", .date = "", .stated = ""}), *hw_,
               timed->efficiency);
    for (const KernelMeasurement& row : large) kernels_.push_back(kernel_observation(row, timed));
    out_.kernels = kernels_.size();
  }

  Observations with_kernels(const StepRows& rows) const {
    Observations out(rows.begin(), rows.end());
    for (const std::unique_ptr<Observation>& kernel : kernels_) out.push_back(kernel.get());
    return out;
  }

  void weigh() {
    out_.relatives = relatives_.size();
    out_.sources = sizes_of(rows_, HeldOut::kSource).size();
    std::vector<Observation*> all;
    for (const auto& row : held_) all.push_back(row.get());
    for (const auto& row : kernels_) all.push_back(row.get());
    std::map<std::string, std::size_t> sizes;
    for (const Observation* row : all) ++sizes[row->group];
    for (Observation* row : all) row->weight = row_weight(sizes[row->group], row->doubtful);
    if (out_.sources > 1 || !relatives_.empty()) return;
    for (const auto& row : held_) row->weight = kOneSourceWeight * row_weight(1, row->doubtful);
  }

  /// Held out with the other runs of its model, while its source is fitted to.
  bool is_by_model(const StepRow& row) const {
    return out_.held_out == HeldOut::kModel || row.row.group == nearly_all_;
  }

  /// What is held out together.
  const std::string& held_out_with(const StepRow& row) const {
    return part_of(row, is_by_model(row) ? HeldOut::kModel : out_.held_out);
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
        for (const StepRow* row : rows_) ++sizes[held_out_with(*row)];
      }
      folds_ = deal(sizes, std::max<std::size_t>(2, q_.folds.value_or(kUsualFolds)));
      return;
    }
  }

  /// Rows whose part is not in the fold.
  StepRows without(const StepRows& rows, std::optional<std::size_t> fold) const {
    StepRows out;
    std::copy_if(rows.begin(), rows.end(), std::back_inserter(out), [&](const StepRow* row) {
      const auto at = folds_.of_part.find(held_out_with(*row));
      return at == folds_.of_part.end() || at->second != fold;
    });
    return out;
  }

  /// The factors of the whole family, as far as known without the fold.
  Factors family_factors(const StepRows& seen, std::optional<std::size_t> fold) const {
    if (relatives_.empty()) return fit_->none();
    StepRows family = without(relatives_, fold);
    family.insert(family.end(), seen.begin(), seen.end());
    return fit_->fit(with_kernels(family), fit_->none(), stop());
  }

  Factors fit(std::optional<std::size_t> fold) override {
    const StepRows seen = without(rows_, fold);
    Factors centre = family_factors(seen, fold);
    Factors out = fit_->fit(with_kernels(seen), centre, stop());
    if (fold) centres_.push_back(std::move(centre));
    return out;
  }

  Efficiency at(std::size_t row, const Factors& factors) const override { return fit_->at(rows_[row]->base, factors); }

  double error(std::size_t row, const Efficiency& efficiency) const override {
    return rows_[row]->seconds(efficiency) / rows_[row]->measured - 1;
  }

  Known known_of(std::optional<std::size_t> fold, const Factors& factors) const {
    const Observations seen = with_kernels(without(rows_, fold));
    Known out{.informed = fit_->informed(seen), .posterior = fit_->posterior(seen, factors), .of_prior = {}};
    for (std::size_t i = 0; i < factors.size(); ++i) out.of_prior.push_back(std::sqrt(out.posterior.variance(i)));
    std::vector<double> shares;
    for (const Observation* row : seen) {
      Slopes slopes = fit_->slopes(*row, factors);
      double corner = 0;
      for (std::size_t i = 0; i < slopes.size(); ++i) {
        if (!out.informed.free[i]) slopes[i] = 0;
        corner += std::abs(slopes[i]) * out.of_prior[i];
      }
      if (corner > 0) shares.push_back(kNinety * std::sqrt(out.posterior.variance(slopes)) / corner);
    }
    const double share = std::min(1.0, median_if_any(shares).value_or(1));
    for (std::size_t i = 0; i < out.of_prior.size(); ++i) {
      out.of_prior[i] = out.informed.free[i] ? share * out.of_prior[i] : 1;
    }
    return out;
  }

  /// The step by the fit that has not seen the row, and at the corners of its coefficients.
  struct Reach {
    double step = 0;
    StepBand corners;
  };
  Reach reach_of(std::size_t row) const {
    const Known& known = held_out(row) ? known_[fold_of(row) + 1] : known_.front();
    const Efficiency middle = at(row, held_out(row) ? blind()[fold_of(row)] : fitted());
    Efficiency wide = middle;
    for (std::size_t i = 0; i < fit_->slots().size(); ++i) {
      const CoefficientSlot& slot = *fit_->slots()[i];
      slot.set(wide, slot.value(wide), error_written(known, i, slot.error(rows_[row]->base)));
    }
    return {rows_[row]->seconds(middle), {rows_[row]->seconds(fastest(wide)), rows_[row]->seconds(slowest(wide))}};
  }

  std::size_t class_of(const StepRow& row) const {
    return static_cast<std::size_t>(run_class(row.question.resolved.model, row.row.seq, row.row.chips));
  }

  /// Of the i-th coefficient, whose error in the file is `prior`: what nothing tells of keeps it.
  double error_written(const Known& known, std::size_t i, double prior) const {
    return std::min(kLargestError, (known.informed.free[i] ? narrowing_ : 1) * known.of_prior[i] * prior);
  }

  void reach_again() {
    reach_.clear();
    for (std::size_t i = 0; i < rows_.size(); ++i) reach_.push_back(reach_of(i));
  }

  /// How far a row lies from its prediction, and how far the corner on that side does; of the logarithm.
  struct Away {
    double measured = 0, corner = 0;
    bool by_model = false;
    /// What the corner leaves.
    double rest() const { return std::sqrt(std::max(0.0, measured * measured - corner * corner)); }
  };
  using Aways = std::vector<Away>;

  /// Of the rows held out: all, and by class.
  std::pair<Aways, std::map<std::size_t, Aways>> aways() const {
    std::pair<Aways, std::map<std::size_t, Aways>> out;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!held_out(i)) continue;
      const Reach& reach = reach_[i];
      const double away = std::log(rows_[i]->measured / reach.step);
      const double corner = std::log((away < 0 ? reach.corners.low : reach.corners.high) / reach.step);
      out.first.push_back({std::abs(away), std::abs(corner), is_by_model(*rows_[i])});
      out.second[class_of(*rows_[i])].push_back(out.first.back());
    }
    return out;
  }

  /// What nine of ten stay below: of rows whose source was held out, or where those are few of all, half as much again.
  template <class Of>
  double told(const Aways& rows, const Of& of) const {
    std::vector<double> all, of_sources;
    for (const Away& row : rows) {
      all.push_back(of(row));
      if (!row.by_model) of_sources.push_back(all.back());
    }
    if (of_sources.size() >= kFewestOfClass || of_sources.size() == all.size()) return held_by(of_sources);
    return kOneSourceWidening * held_by(all);
  }

  /// Where the corners alone hold more than the wanted share of a class, its coefficients are known better than
  /// written.
  double narrowing_told(const std::pair<Aways, std::map<std::size_t, Aways>>& rows) const {
    const auto ratio = [](const Away& row) { return row.corner > 0 ? row.measured / row.corner : 1.0; };
    double out = told(rows.first, ratio);
    for (const auto& [of, some] : rows.second) {
      if (some.size() >= kFewestOfClass) out = std::min(out, told(some, ratio));
    }
    return std::clamp(out, kLeastNarrowing, 1.0);
  }

  /// What the corners leave of the error that nine of ten runs held out stay below, in the whole and by class.
  void fit_model_errors() {
    out_.model_error = observed_base().model_error;
    if (blind().empty()) return;
    reach_again();
    narrowing_ = narrowing_told(aways());
    if (narrowing_ < 1) reach_again();
    const auto [all, by_class] = aways();
    const double sources = static_cast<double>(out_.sources);
    const double own = out_.sources < kManySources ? sources / (sources + kUsualModelErrorSources) : 1;
    const auto drawn = [&](const Aways& rows) {
      const double seen = told(rows, [](const Away& row) { return row.rest(); });
      return std::pow(seen, own) * std::pow(kUsualModelError, 1 - own);
    };
    out_.model_error.fill(drawn(all));
    for (const auto& [of, rows] : by_class) {
      if (rows.size() >= kFewestOfClass) out_.model_error[of] = drawn(rows);
    }
    for (double& error : out_.model_error) error = std::min(error, kLargestError);
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (!held_out(i)) continue;
      ClassCoverage& of = out_.by_class[std::string(kRunClassNames[class_of(*rows_[i])])];
      ++of.rows;
      if (in_band(i, 1)) ++of.in_band;
    }
  }

  bool in_band(std::size_t row, double) const override {
    const Reach& reach = reach_[row];
    const StepBand band = step_band(reach.corners, reach.step, out_.model_error[class_of(*rows_[row])]);
    return band.low <= rows_[row]->measured && rows_[row]->measured <= band.high;
  }

  void report_gains() {
    std::map<std::string, std::vector<double>> over_file, over_family;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      const FittedOf<Training>& row = out_.rows[i];
      if (!row.outside) continue;
      const std::string& part = held_out_with(*rows_[i]);
      over_file[part].push_back(std::abs(*row.before) - std::abs(*row.outside));
      over_family[part].push_back(std::abs(*row.baseline) - std::abs(*row.outside));
    }
    out_.gain = gain_of(over_file);
    if (out_.relatives > 0) out_.family_gain = gain_of(over_family);
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

  void report_coefficients() {
    const Efficiency& base = observed_base();
    const Known& known = known_.front();
    for (std::size_t i = 0; i < fit_->slots().size(); ++i) {
      const CoefficientSlot& slot = *fit_->slots()[i];
      FittedCoefficient c{.path = slot.path, .before = slot.value(base), .error_before = slot.error(base)};
      c.factor = std::exp(fitted()[i]);
      c.after = c.lowest = c.highest = slot.value(fit_->at(base, fitted()));
      c.error_after = error_written(known, i, c.error_before);
      c.sources = known.informed.sources[i];
      c.moved = known.informed.free[i];
      c.informed = c.moved ? 1 - known.posterior.variance(i) : 0;
      for (const Factors& fold : blind()) {
        const double value = slot.value(fit_->at(base, fold));
        c.lowest = std::min(c.lowest, value);
        c.highest = std::max(c.highest, value);
      }
      out_.coefficients.push_back(c);
    }
  }

  void name_next_runs() {
    const std::size_t most = q_.next_runs.value_or(rows_.size() <= kOwnRuns ? kUsualNextRuns : 0);
    out_.next = next_runs(*fit_, fitted(), known_.front().posterior, rows_, catalog_, most, stop());
  }

  /// What the coefficients told of start from.
  const Efficiency& observed_base() const {
    if (!rows_.empty()) return rows_.front()->base;
    const StackCoefficients* own = coefficients_under(*hw_, out_.stack);
    return (own == nullptr ? hw_->stacks.front() : *own).efficiency;
  }

  std::string provenance() const {
    std::string out = fitted_to(q_.date, q_.files, rows_.size(), out_.sources);
    if (!kernels_.empty()) out += fmt::format(" and {} kernels and collectives", kernels_.size());
    if (rows_.empty()) return out + "; no step was measured";
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

  /// What the stack's coefficient multiplies the chip's by before the fit; 1 of a family.
  double stack_over_chip(Coefficient Efficiency::*field) const {
    if (hw_ == nullptr) return 1;
    const StackCoefficients* own = coefficients_under(*hw_, out_.stack);
    return ((own == nullptr ? hw_->stacks.front() : *own).efficiency.*field).value / (hw_->efficiency.*field).value;
  }

  bool trains_in_fp16() const {
    return std::any_of(out_.rows.begin(), out_.rows.end(),
                       [](const auto& fitted) { return lower_case(fitted.row.precision).starts_with("fp16"); });
  }

  /// Whether the chip computes in that format; a family's chips may.
  bool computes_in(std::size_t format) const {
    return hw_ == nullptr || format == kDTypeCount || hw_->matmul_peak[format].has_value();
  }
  bool computes_in(DType format) const { return computes_in(static_cast<std::size_t>(format)); }

  bool has_format_of(const CoefficientSlot& slot) const {
    if (slot.path == "block_scaled") return computes_in(DType::kFp8) || computes_in(DType::kFp4);
    return computes_in(slot.format);
  }

  /// Whether the fit says of the coefficient what the chip's file, or no factor at all, does not say.
  bool is_worth_writing(const FittedCoefficient& c, const CoefficientSlot& slot) const {
    if (c.moved) return true;
    if (hw_ == nullptr) return c.factor != 1;
    return c.after != slot.value(hw_->efficiency) || c.error_after != slot.error(hw_->efficiency);
  }

  void write() {
    const bool factors = !q_.family.empty();
    std::vector<WrittenCoefficient> written;
    for (std::size_t i = 0; i < out_.coefficients.size(); ++i) {
      const FittedCoefficient& c = out_.coefficients[i];
      if (!is_worth_writing(c, *fit_->slots()[i])) continue;
      if (c.path != "attention_forward") {
        if (has_format_of(*fit_->slots()[i])) written.push_back({c.path, factors ? c.factor : c.after, c.error_after});
        if (c.path == "matmul.bf16" && trains_in_fp16()) {
          constexpr auto kFp16 = static_cast<std::size_t>(DType::kFp16);
          const double before = factors ? 1 : observed_base().matmul[kFp16].value;
          written.push_back({"matmul.fp16", c.factor * before, c.error_after});
        }
        continue;
      }
      // Whatever kernel a run has is that much faster or slower.
      written.push_back({c.path, c.factor * stack_over_chip(&Efficiency::attention_forward), c.error_after, true});
      written.push_back(
          {"attention_backward", c.factor * stack_over_chip(&Efficiency::attention_backward), c.error_after, true});
    }
    out_.block = stack_block(written, out_.stack, provenance(), factors, out_.model_error);
  }

  const CalibrateQuestion& q_;
  const Catalog& catalog_;
  std::shared_ptr<const HardwareSpec> hw_;  ///< none of a family
  std::vector<std::unique_ptr<StepRow>> held_;
  std::vector<std::unique_ptr<Observation>> kernels_;
  StepRows rows_;       ///< of the chip, or of the family
  StepRows relatives_;  ///< of the family's other chips, under the same stack
  std::unique_ptr<CoefficientFit> fit_;
  std::map<std::string, NamedChip> chips_;
  std::string usual_stack_;
  std::string nearly_all_;        ///< the source that is held out model by model
  Folds folds_;                   ///< of sources, or of models
  std::vector<Factors> centres_;  ///< of the family, for each fold
  std::vector<Known> known_;      ///< of the fit to all, then of each fold
  std::vector<Reach> reach_;      ///< of every row
  double narrowing_ = 1;          ///< of the errors of coefficients
  Calibration out_;
};

}  // namespace

Calibration calibrate(const CalibrateQuestion& question, const Catalog& catalog, const Stop& stop) {
  return TrainingFitter(question, catalog, stop).run();
}

}  // namespace scalecalc
