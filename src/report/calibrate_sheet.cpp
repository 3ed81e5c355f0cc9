#include "report/calibrate_sheet.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"

namespace scalecalc {
namespace {

/// A time for the overheads, otherwise a plain number.
std::string value_text(const std::string& path, double value) {
  return path.ends_with("overhead") ? format_quantity(value, UnitKind::kSeconds) : fmt::format("{:.3f}", value);
}

Figure value(const std::string& path, const char* key, const char* label, double number) {
  Figure out = figure(key, label, Format::kNumber, Cell(number));
  out.shown = value_text(path, number);
  return out;
}

Figure share(const char* key, const char* label, double number) {
  return figure(key, label, Format::kFraction, Cell(number));
}

Block coefficients_block(const Calibration& c) {
  Block out{.key = "coefficients"};
  for (const FittedCoefficient& f : c.coefficients) {
    Record record{{figure("name", "coefficient", Format::kText, Cell(f.path)),
                   value(f.path, "before", "before", f.before), share("error_before", "error", f.error_before),
                   value(f.path, "after", "after", f.after), share("error_after", "error", f.error_after),
                   value(f.path, "lowest", "lowest fold", f.lowest), value(f.path, "highest", "highest", f.highest)}};
    record.figures[5].importance = record.figures[6].importance = 1;
    out.records.push_back(std::move(record));
  }
  return out;
}

Block folds_block(const Calibration& c) {
  Block out{.key = "folds", .title = "Cross-validation by source"};
  for (const FoldReport& fold : c.folds) {
    out.records.push_back({{list_figure("sources", "held out", {fold.sources.begin(), fold.sources.end()}),
                            figure("rows", "rows", Format::kInteger, Cell(static_cast<double>(fold.rows))),
                            share("inside_mean_abs_error", "error inside", fold.inside_mean_abs),
                            share("outside_mean_abs_error", "outside", fold.outside_mean_abs),
                            share("outside_bias", "bias outside", fold.outside_bias)}});
  }
  return out;
}

Block errors_block(const Calibration& c) {
  Block out{.key = "errors", .title = "Errors"};
  const auto add = [&](const char* of, const char* label, const FitErrors& e) {
    Record record{{figure("of", "", Format::kText, Cell(std::string(of))),
                   figure("label", "coefficients", Format::kText, Cell(std::string(label))),
                   share("mean_abs_error", "mean error", e.mean_abs), share("median_abs_error", "median", e.median_abs),
                   share("p90_abs_error", "p90", e.p90_abs), share("bias", "bias", e.bias)}};
    out.records.push_back(std::move(record));
  };
  add("before", "the file's", c.before);
  add("inside", "fitted to these rows", c.inside);
  add("outside", "fitted without the row's source", c.outside);
  return out;
}

Block skipped_block(const Calibration& c) {
  Block out{.key = "skipped_rows", .title = "Left out"};
  for (const SkippedRow& s : c.skipped) {
    out.records.push_back(
        {{figure("id", "row", Format::kText, Cell(s.row.id)), figure("reason", "reason", Format::kText, Cell(s.reason)),
          figure("detail", "here", Format::kText, Cell(s.detail))}});
  }
  return out;
}

}  // namespace

Sheet calibrate_sheet(const Calibration& c, const std::vector<std::string>& files) {
  Sheet out{.command = "calibrate",
            .title = fmt::format("{}: coefficients fitted to {} runs of {} source{}", c.hardware, c.rows, c.sources,
                                 c.sources == 1 ? "" : "s")};
  if (c.folds.empty()) {
    out.summary.push_back(
        {"One source only: nothing was held out, so the error on other runs is not known.", Role::kWarning});
  }
  out.query.figures = {
      list_figure("files", "measurements", {files.begin(), files.end()}),
      figure("hardware", "hardware", Format::kText, Cell(c.hardware)),
      figure("rows", "rows", Format::kInteger, Cell(static_cast<double>(c.rows))),
      figure("sources", "sources", Format::kInteger, Cell(static_cast<double>(c.sources))),
      figure("other_chips", "rows of other chips", Format::kInteger, Cell(static_cast<double>(c.other_chips))),
      figure("coverage", "held-out runs in the band", Format::kFraction, c.coverage ? Cell(*c.coverage) : Cell{})};
  out.blocks = {coefficients_block(c), errors_block(c), folds_block(c), skipped_block(c)};
  out.notes.emplace_back("--dump-yaml prints the coefficients as an efficiency block for a hardware file");
  return out;
}

}  // namespace scalecalc
