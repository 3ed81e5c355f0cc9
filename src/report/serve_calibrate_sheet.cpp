#include "report/serve_calibrate_sheet.h"

#include <fmt/format.h>

#include "config/yaml_writer.h"

namespace scalecalc {
namespace {

std::string errors_text(const char* name, const FitErrors& e) {
  return fmt::format("{}: median {}, mean {}, 90th percentile {}, bias {:+.1f} %.", name, percent_text(e.median_abs),
                     percent_text(e.mean_abs), percent_text(e.p90_abs), 100 * e.bias);
}

void add_errors(Record& out, const std::string& key, const char* label, const FitErrors& e) {
  const auto share = [&](const char* name, double value, bool shown) {
    return with_importance(figure(key + "." + name, shown ? label : "", Format::kFraction, Cell(value)), shown ? 1 : 0);
  };
  out.figures.push_back(share("median_abs_error", e.median_abs, true));
  out.figures.push_back(share("mean_abs_error", e.mean_abs, false));
  out.figures.push_back(share("p90_abs_error", e.p90_abs, false));
  out.figures.push_back(share("bias", e.bias, false));
}

Block sets_block(const ServeCalibration& c) {
  Block out{.key = "sets", .title = "Engines on chips: median errors"};
  for (const ServeSet& set : c.sets) {
    Record record{{figure("chip", "chip", Format::kText, Cell(set.hardware)),
                   figure("stack", "engine", Format::kText, Cell(set.stack)),
                   figure("rows", "rows", Format::kInteger, cell_of(set.rows)),
                   figure("sources", "sources", Format::kInteger, cell_of(set.sources))}};
    add_errors(record, "before", "family's", set.before);
    add_errors(record, "inside", "fitted", set.inside);
    add_errors(record, "outside", "held out", set.outside);
    for (const WrittenCoefficient& w : set.coefficients) {
      record.figures.push_back(figure("coefficients." + w.path, "", Format::kNumber, Cell(w.value)));
      record.figures.push_back(figure("errors." + w.path, "", Format::kNumber, Cell(w.error)));
    }
    record.figures.push_back(figure("yaml", "", Format::kText, Cell(write_yaml(set.block))));
    out.records.push_back(std::move(record));
  }
  return out;
}

Block rows_block(const ServeCalibration& c) {
  Block out{.key = "rows", .title = "Rows"};
  for (const FittedServing& r : c.rows) {
    const auto error = [](const char* key, const char* label, double value) {
      return figure(key, label, Format::kFraction, Cell(value));
    };
    out.records.push_back(
        {{figure("id", "row", Format::kText, Cell(r.row.id)), figure("group", "", Format::kText, Cell(r.row.group)),
          with_importance(figure("chip", "chip", Format::kText, Cell(r.row.chip)), 2),
          with_importance(figure("stack", "engine", Format::kText, Cell(r.row.stack)), 2),
          figure("phase", "", Format::kText, Cell(serve_group_name(r.row, "phase"))),
          figure("batch_class", "", Format::kText, Cell(r.row.batch_class())),
          error("error_before", "family's", r.before), error("error_inside", "fitted", r.inside),
          error("error_outside", "held out", r.outside), error("error_naive", "naive", r.naive),
          figure("in_band", "", Format::kFlag, Cell(r.in_band ? 1.0 : 0.0))}});
  }
  return out;
}

Block skipped_block(const ServeCalibration& c) {
  Block out{.key = "skipped_rows", .title = "Left out"};
  for (const SkippedServing& s : c.skipped) {
    out.records.push_back(
        {{figure("id", "row", Format::kText, Cell(s.row.id)), figure("reason", "reason", Format::kText, Cell(s.reason)),
          with_importance(figure("detail", "here", Format::kText, Cell(s.detail)), 1)}});
  }
  return out;
}

}  // namespace

Sheet serve_calibrate_sheet(const ServeCalibration& c, const std::vector<std::string>& files) {
  Sheet out{.command = "calibrate", .title = "Serving coefficients fitted to measured runs"};
  const auto line = [&](std::string text) { out.summary.push_back({std::move(text), Role::kPlain}); };
  line(fmt::format("{} rows, {} left out; {} engines on chips; held out in {} parts, sources whole.", c.rows.size(),
                   c.skipped.size(), c.sets.size(), c.folds));
  line(errors_text("By the families' coefficients", c.before));
  line(errors_text("Fitted", c.inside));
  line(errors_text("Held out", c.outside));
  line(errors_text("Naive baseline, other sources' share of the floor", c.naive));
  line(percent_text(c.coverage) + " of the held-out rows lie within the errors written down.");
  out.query.figures = {list_figure("files", "measurements", {files.begin(), files.end()})};
  Record summary;
  summary.figures.push_back(figure("rows", "rows", Format::kInteger, cell_of(c.rows.size())));
  add_errors(summary, "before", "median by the families'", c.before);
  add_errors(summary, "inside", "fitted", c.inside);
  add_errors(summary, "outside", "held out", c.outside);
  add_errors(summary, "naive", "naive", c.naive);
  summary.figures.push_back(figure("coverage", "in band", Format::kFraction, Cell(c.coverage)));
  Block total{.key = "summary", .title = "All rows", .is_list = false};
  total.records.push_back(std::move(summary));
  out.blocks = {sets_block(c), rows_block(c), skipped_block(c), std::move(total)};
  return out;
}

}  // namespace scalecalc
