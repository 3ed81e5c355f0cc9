// Shows fitted coefficients, the errors on held-out rows and the block to copy, for `scalecalc calibrate`.
#include "calibrate/calibrate_output.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "config/yaml_writer.h"
#include "report/plot_bars.h"
#include "train/train_words.h"
#include "validate/measured_rows_output.h"

namespace scalecalc {
namespace {

/// A time for the overheads, otherwise a plain number.
std::string value_text(const std::string& path, double value) {
  return path.ends_with("overhead") ? seconds_text(value) : fmt::format("{:.3f}", value);
}

Figure coefficient(const std::string& path, const char* key, const char* label, double number) {
  Figure out = figure(key, label, Format::kNumber, Cell(number));
  out.shown = value_text(path, number);
  return out;
}

std::string_view held_out_name(const Calibration& c) { return kHeldOutNames.at(static_cast<std::size_t>(c.held_out)); }

Block coefficients_block(const Calibration& c) {
  Block out{.key = "coefficients"};
  for (const FittedCoefficient& f : c.coefficients) {
    Record record{{text_figure("name", "coefficient", f.path), coefficient(f.path, "before", "before", f.before),
                   error_share("error_before", "error", f.error_before), coefficient(f.path, "after", "after", f.after),
                   error_share("error_after", "error", f.error_after), error_share("informed", "informed", f.informed),
                   row_count("sources", "sources", f.sources, 1), flag_figure("moved", f.moved),
                   coefficient(f.path, "lowest", "lowest fold", f.lowest),
                   coefficient(f.path, "highest", "highest", f.highest)}};
    for (Figure& figure : record.figures) {
      if (figure.key == "lowest" || figure.key == "highest") figure.importance = 1;
    }
    out.records.push_back(std::move(record));
  }
  return out;
}

Block next_runs_block(const Calibration& c) {
  Block out{.key = "next_runs", .title = "To measure next"};
  for (const NextRun& run : c.next) {
    out.records.push_back(
        {{text_figure("change", "run", run.change), text_figure("near", "as", run.near),
          row_count("chips", "chips", static_cast<std::size_t>(run.chips), 2),
          text_figure("degrees", "layout", run.near.empty() ? "" : degrees_text(run.layout), 1),
          number_figure("predicted", "takes", Format::kSeconds, run.seconds, 1),
          error_share("band_before", "band now", run.band_before), error_share("band_after", "then", run.band_after)}});
  }
  return out;
}

Block classes_block(const Calibration& c) {
  Block out{.key = "classes", .title = "Classes of run: the band that the coefficients leave out"};
  for (std::size_t i = 0; i < c.model_error.size(); ++i) {
    const auto held = c.by_class.find(std::string(kRunClassNames[i]));
    if (held == c.by_class.end()) continue;
    const double rows = static_cast<double>(held->second.rows);
    out.records.push_back({{text_figure("name", "class", std::string(kRunClassNames[i])),
                            row_count("rows", "held out", held->second.rows),
                            error_share("model_error", "model's error", c.model_error[i]),
                            error_share("coverage", "in band", static_cast<double>(held->second.in_band) / rows)}});
  }
  return out;
}

Block folds_block(const Calibration& c) {
  Block out{.key = "folds", .title = fmt::format("Cross-validation by {}", held_out_name(c))};
  for (const FoldReport& fold : c.folds) {
    out.records.push_back({{list_figure("held_out", "held out", {fold.held_out.begin(), fold.held_out.end()}),
                            row_count("rows", "rows", fold.rows),
                            error_share("inside_mean_abs_error", "error inside", fold.inside_mean_abs),
                            error_share("outside_mean_abs_error", "outside", fold.outside_mean_abs),
                            error_share("outside_bias", "bias outside", fold.outside_bias)}});
  }
  return out;
}

Block errors_block(const Calibration& c) {
  Block out{.key = "errors", .title = "Errors"};
  if (c.rows.empty()) return out;
  const auto add = [&](const char* of, const char* label, const Errors& e) {
    Record record{{text_figure("of", "", of), text_figure("label", "coefficients", label),
                   error_share("mean_abs_error", "mean error", e.mean_abs),
                   error_share("median_abs_error", "median", e.median_abs),
                   error_share("p90_abs_error", "p90", e.p90_abs), error_share("bias", "bias", e.bias)}};
    out.records.push_back(std::move(record));
  };
  add("before", "the file's", c.before);
  add("inside", "fitted to these rows", c.inside);
  const bool interrupted = c.folds.empty() && c.held_out != HeldOut::kNothing;
  if (interrupted || c.held_out == HeldOut::kNothing) return out;
  add("outside", c.held_out == HeldOut::kModel ? "fitted without the row's model" : "fitted without the row's source",
      c.outside);
  if (c.relatives > 0) add("family", "the family's factors, without the row's part", c.baseline);
  return out;
}

constexpr std::string_view kNoneHeldOut =
    "Interrupted before any run was held out: the error on other runs is not known.";

template <class Kind>
void say_interrupted(const FitReportOf<Kind>& c, Output& out) {
  if (!c.converged) out.warnings.emplace_back("interrupted: the fit to all rows was not at its best yet");
}

Line verdict(const Calibration& c) {
  if (c.rows.empty()) {
    return {"Fitted to kernels and collectives alone: what of a step they do not show keeps the file's coefficients.",
            Role::kWarning};
  }
  if (c.held_out == HeldOut::kNothing) {
    return {"One source and one model only: nothing was held out, so the error on other runs is not known.",
            Role::kWarning};
  }
  if (c.folds.empty()) return {std::string(kNoneHeldOut), Role::kWarning};
  const std::string runs =
      c.held_out == HeldOut::kSource ? "runs of sources it has not seen" : "models it has not seen, all of one source";
  const std::string text =
      fmt::format("On {}, the fit errs by {:.1f} % in the mean, the file's coefficients by {:.1f} %", runs,
                  100 * c.outside.mean_abs, 100 * c.before.mean_abs);
  return c.better() ? Line{text + ".", Role::kGood} : Line{text + ": do not use it.", Role::kBad};
}

/// Which coefficients the measurements tell of, at least half of what was unknown of each.
std::string informed_text(const Calibration& c) {
  std::vector<std::string> names;
  std::size_t stay = 0;
  for (const FittedCoefficient& f : c.coefficients) {
    constexpr double kMostly = 0.5;
    if (f.informed >= kMostly) names.push_back(f.path);
    if (!f.moved) ++stay;
  }
  std::string out = names.empty() ? "No coefficient is mostly known from these measurements"
                                  : fmt::format("Mostly known from these measurements: {}", join(names, ", "));
  if (stay > 0) out += fmt::format("; {} stay as they were: too little tells of them", stay);
  return fmt::format("{}. {:.1f} effective degrees of freedom.", out, c.degrees_of_freedom);
}

HeldOut held_out_by(const Calibration& c, const FittedOf<Training>& row) {
  if (!row.outside) return HeldOut::kNothing;
  return row.by_model ? HeldOut::kModel : c.held_out;
}

/// For programs: what each row came to, and the block as text.
Block fit_block(const Calibration& c) {
  Block out{.key = "fit", .is_list = false};
  std::vector<Record> rows;
  for (const FittedOf<Training>& f : c.rows) {
    rows.push_back(
        {{text_figure("id", "", f.row.id), text_figure("group", "", f.row.group),
          text_figure("subset", "", f.row.subset), text_figure("class", "", f.row.run_class),
          number_figure("measured", "", Format::kSeconds, f.measured), error_share("error_before", "", f.before),
          error_share("error_inside", "", f.inside), error_share("error_outside", "", f.outside),
          error_share("error_by_family", "", f.baseline), flag_figure("in_band", f.in_band),
          text_figure("held_out_by", "", std::string(kHeldOutNames[static_cast<std::size_t>(held_out_by(c, f))]))}});
  }
  const auto gain_figures = [](const std::string& key, const std::optional<Gain>& gain) {
    return std::vector{error_share(key, "", gain ? std::optional(gain->mean) : std::nullopt),
                       error_share(key + "_standard_error", "", gain ? gain->standard_error : std::nullopt)};
  };
  const std::vector<Figure> over_file = gain_figures("gain", c.folds.empty() ? std::nullopt : std::optional(c.gain));
  const std::vector<Figure> over_family = gain_figures("gain_over_family", c.family_gain);
  out.records = {{{text_figure("held_out_by", "", held_out_name(c)), flag_figure("better", c.better()), over_file[0],
                   over_file[1], over_family[0], over_family[1], flag_figure("worth_shipping", c.worth_shipping()),
                   text_figure("yaml", "", write_yaml(c.block)), records_figure("rows", "", "", std::move(rows))}}};
  return out;
}

// Serving.

std::string errors_text(const char* name, const Errors& e) {
  return fmt::format("{}: median {}, mean {}, 90th percentile {}, bias {:+.1f} %.", name, percent_text(e.median_abs),
                     percent_text(e.mean_abs), percent_text(e.p90_abs), 100 * e.bias);
}

void add_errors(Record& out, const std::string& key, const char* label, const std::optional<Errors>& e) {
  const auto add = [&](const char* of, const char* shown, double Errors::*value) {
    out.figures.push_back(error_share(key + of, shown, e ? std::optional((*e).*value) : std::nullopt, *shown ? 1 : 0));
  };
  add(".median_abs_error", label, &Errors::median_abs);
  add(".mean_abs_error", "", &Errors::mean_abs);
  add(".p90_abs_error", "", &Errors::p90_abs);
  add(".bias", "", &Errors::bias);
}

/// Of the runs held out; nothing before there are some.
std::optional<Errors> unseen(const ServeCalibration& c, const FitErrors& of) {
  return c.folds > 0 ? std::optional(of.outside) : std::nullopt;
}

Block sets_block(const ServeCalibration& c) {
  Block out{.key = "sets", .title = "Engines on chips: median errors"};
  for (const ServeSet& set : c.sets) {
    Record record{{text_figure("chip", "chip", set.hardware), text_figure("stack", "engine", set.stack),
                   row_count("rows", "rows", set.rows), row_count("sources", "sources", set.sources)}};
    add_errors(record, "before", "family's", set.before);
    add_errors(record, "inside", "fitted", set.inside);
    add_errors(record, "outside", "held out", unseen(c, set));
    for (const WrittenCoefficient& w : set.coefficients) {
      record.figures.push_back(figure("coefficients." + w.path, "", Format::kNumber, Cell(w.value)));
      record.figures.push_back(figure("errors." + w.path, "", Format::kNumber, Cell(w.error)));
    }
    record.figures.push_back(text_figure("yaml", "", write_yaml(set.block)));
    out.records.push_back(std::move(record));
  }
  return out;
}

Block rows_block(const ServeCalibration& c) {
  Block out{.key = "rows", .title = "Rows"};
  for (const FittedOf<Serving>& r : c.rows) {
    out.records.push_back(
        {{text_figure("id", "row", r.row.id), text_figure("group", "", r.row.group),
          text_figure("chip", "chip", r.row.chip, 2), text_figure("stack", "engine", r.row.stack, 2),
          text_figure("phase", "", group_name(r.row, "phase")), text_figure("batch_class", "", r.row.batch_class()),
          error_share("error_before", "family's", r.before), error_share("error_inside", "fitted", r.inside),
          error_share("error_outside", "held out", r.outside), error_share("error_naive", "naive", r.baseline),
          flag_figure("in_band", r.in_band)}});
  }
  return out;
}

}  // namespace

Output calibrate_output(const Calibration& c, const std::vector<std::string>& files) {
  Output out{.command = "calibrate",
             .title = fmt::format("{} under {}: coefficients fitted to {} runs of {} source{}{}",
                                  c.hardware.empty() ? "Chips of " + c.family : c.hardware, c.stack, c.rows.size(),
                                  c.sources, c.sources == 1 ? "" : "s",
                                  c.kernels > 0 ? fmt::format(" and {} kernels and collectives", c.kernels) : "")};
  out.summary.push_back(verdict(c));
  out.summary.push_back({informed_text(c), Role::kPlain});
  if (!c.next.empty()) {
    const NextRun& first = c.next.front();
    out.summary.push_back(
        {fmt::format("Measure next: {}{}; the coefficients' part of the band of runs like these would "
                     "shrink from {} to {} either way.",
                     first.change, first.near.empty() ? "" : ", otherwise as " + first.near,
                     percent_text(first.band_before), percent_text(first.band_after)),
         Role::kGood});
  }
  say_interrupted(c, out);
  out.query.figures = {
      list_figure("files", "measurements", {files.begin(), files.end()}),
      text_figure("hardware", "hardware", c.hardware),
      text_figure("family", "family", c.family),
      text_figure("stack", "stack", c.stack),
      row_count("rows", "rows", c.rows.size()),
      row_count("sources", "sources", c.sources),
      row_count("kernels", "kernels and collectives", c.kernels),
      row_count("small_messages", "of messages too small to show a link's rate", c.small_messages),
      figure("degrees_of_freedom", "effective degrees of freedom", Format::kNumber, Cell(c.degrees_of_freedom)),
      row_count("other_chips", "rows of other chips", c.other_chips),
      row_count("relatives", "runs of the family's other chips", c.relatives),
      row_count("other_stacks", "rows of other software", c.other_stacks),
      error_share("coverage", "held-out runs in the band", c.coverage)};
  out.blocks = {coefficients_block(c), next_runs_block(c), errors_block(c),
                classes_block(c),      folds_block(c),     skipped_block(c.skipped, 0, [](auto&, const auto&) {}),
                fit_block(c)};
  out.plots = {record_bars(errors_block(c), "label", "mean_abs_error", "Mean error of the runs, by the coefficients"),
               coefficients_plot(c)};
  out.notes.emplace_back("--dump-yaml prints the coefficients as the stack's block for a hardware file");
  return out;
}

Output calibrate_output(const ServeCalibration& c, const std::vector<std::string>& files) {
  Output out{.command = "calibrate-serve", .title = "Serving coefficients fitted to measured runs"};
  const auto line = [&](std::string text) { out.summary.push_back({std::move(text), Role::kPlain}); };
  line(fmt::format("{} rows, {} left out; {} engines on chips; held out in {} parts, sources whole.", c.rows.size(),
                   c.skipped.size(), c.sets.size(), c.folds));
  std::vector<std::pair<std::string, double>> medians, sets;
  const auto errors = [&](const char* of, const Errors& e) {
    line(errors_text(of, e));
    medians.emplace_back(of, e.median_abs);
  };
  errors("By the families' coefficients", c.before);
  errors("Fitted", c.inside);
  if (c.folds > 0) {
    errors("Held out", c.outside);
  } else {
    line(std::string(kNoneHeldOut));
  }
  const bool naive =
      std::any_of(c.rows.begin(), c.rows.end(), [](const auto& row) { return row.baseline.has_value(); });
  if (naive) errors("Naive baseline, other sources' share of the floor", c.baseline);
  for (const ServeSet& set : c.sets) {
    if (c.folds > 0) sets.emplace_back(fmt::format("{} on {}", set.stack, set.hardware), set.outside.median_abs);
  }
  const PlotAxis error{.title = "median error", .format = Format::kFraction};
  out.plots = {value_bars("Median error of all rows", error, medians),
               value_bars("Median error of engines on chips, held out", error, sets)};
  if (!c.errors_fitted) out.warnings.emplace_back("interrupted: the errors of the coefficients are the families'");
  if (c.coverage) line(percent_text(*c.coverage) + " of the held-out rows lie within the errors written down.");
  say_interrupted(c, out);
  out.query.figures = {list_figure("files", "measurements", {files.begin(), files.end()})};
  Record summary;
  summary.figures.push_back(row_count("rows", "rows", c.rows.size()));
  add_errors(summary, "before", "median by the families'", c.before);
  add_errors(summary, "inside", "fitted", c.inside);
  add_errors(summary, "outside", "held out", unseen(c, c));
  add_errors(summary, "naive", "naive", naive ? std::optional(c.baseline) : std::nullopt);
  summary.figures.push_back(error_share("coverage", "in band", c.coverage));
  Block total{.key = "summary", .title = "All rows", .is_list = false};
  total.records.push_back(std::move(summary));
  out.blocks = {sets_block(c), rows_block(c), skipped_block(c.skipped, 1, [](auto&, const auto&) {}), std::move(total)};
  return out;
}

Plot coefficients_plot(const Calibration& calibration) {
  std::vector<std::pair<std::string, double>> changes;
  for (const FittedCoefficient& c : calibration.coefficients) changes.emplace_back(c.path, c.factor - 1);
  return value_bars("What the fit changes", {.title = "change of the coefficient", .format = Format::kFraction},
                    changes);
}

}  // namespace scalecalc
