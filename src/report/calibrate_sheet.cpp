#include "report/calibrate_sheet.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "config/yaml_writer.h"

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

std::string_view held_out_name(const Calibration& c) { return kHeldOutNames.at(static_cast<std::size_t>(c.held_out)); }

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
  Block out{.key = "folds", .title = fmt::format("Cross-validation by {}", held_out_name(c))};
  for (const FoldReport& fold : c.folds) {
    out.records.push_back({{list_figure("held_out", "held out", {fold.held_out.begin(), fold.held_out.end()}),
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
  add("outside", c.held_out == HeldOut::kModel ? "fitted without the row's model" : "fitted without the row's source",
      c.outside);
  if (c.relatives > 0) add("family", "the family's factors, without the row's part", c.by_family);
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

Line verdict(const Calibration& c) {
  if (c.held_out == HeldOut::kNothing) {
    return {"One source and one model only: nothing was held out, so the error on other runs is not known.",
            Role::kWarning};
  }
  const std::string runs =
      c.held_out == HeldOut::kSource ? "runs of sources it has not seen" : "models it has not seen, all of one source";
  const std::string text =
      fmt::format("On {}, the fit errs by {:.1f} % in the mean, the file's coefficients by {:.1f} %", runs,
                  100 * c.outside.mean_abs, 100 * c.before.mean_abs);
  return c.better() ? Line{text + ".", Role::kGood} : Line{text + ": do not use it.", Role::kBad};
}

/// For programs: what each row came to, and the block as text.
Block fit_block(const Calibration& c) {
  Block out{.key = "fit", .is_list = false};
  std::vector<Record> rows;
  for (const FittedRow& f : c.rows) {
    rows.push_back(
        {{figure("id", "", Format::kText, Cell(f.row.id)), figure("group", "", Format::kText, Cell(f.row.group)),
          figure("subset", "", Format::kText, Cell(f.row.subset)),
          figure("measured", "", Format::kSeconds, Cell(f.measured)),
          figure("error_before", "", Format::kFraction, Cell(f.before)),
          figure("error_inside", "", Format::kFraction, Cell(f.inside)),
          figure("error_outside", "", Format::kFraction, f.outside ? Cell(*f.outside) : Cell{}),
          figure("error_by_family", "", Format::kFraction, f.by_family ? Cell(*f.by_family) : Cell{}),
          figure("in_band", "", Format::kFlag, Cell(f.in_band ? 1.0 : 0.0))}});
  }
  out.records = {{{figure("held_out_by", "", Format::kText, Cell(std::string(held_out_name(c)))),
                   figure("better", "", Format::kFlag, Cell(c.better() ? 1.0 : 0.0)),
                   figure("yaml", "", Format::kText, Cell(write_yaml(c.block))),
                   records_figure("rows", "", "", std::move(rows))}}};
  return out;
}

}  // namespace

Sheet calibrate_sheet(const Calibration& c, const std::vector<std::string>& files) {
  Sheet out{.command = "calibrate",
            .title = fmt::format("{} under {}: coefficients fitted to {} runs of {} source{}",
                                 c.hardware.empty() ? "Chips of " + c.family : c.hardware, c.stack, c.rows.size(),
                                 c.sources, c.sources == 1 ? "" : "s")};
  out.summary.push_back(verdict(c));
  out.query.figures = {
      list_figure("files", "measurements", {files.begin(), files.end()}),
      figure("hardware", "hardware", Format::kText, Cell(c.hardware)),
      figure("family", "family", Format::kText, Cell(c.family)),
      figure("stack", "stack", Format::kText, Cell(c.stack)),
      figure("rows", "rows", Format::kInteger, Cell(static_cast<double>(c.rows.size()))),
      figure("sources", "sources", Format::kInteger, Cell(static_cast<double>(c.sources))),
      figure("other_chips", "rows of other chips", Format::kInteger, Cell(static_cast<double>(c.other_chips))),
      figure("relatives", "runs of the family's other chips", Format::kInteger, Cell(static_cast<double>(c.relatives))),
      figure("other_stacks", "rows of other software", Format::kInteger, Cell(static_cast<double>(c.other_stacks))),
      figure("coverage", "held-out runs in the band", Format::kFraction, c.coverage ? Cell(*c.coverage) : Cell{})};
  out.blocks = {coefficients_block(c), errors_block(c), folds_block(c), skipped_block(c), fit_block(c)};
  out.notes.emplace_back("--dump-yaml prints the coefficients as the stack's block for a hardware file");
  return out;
}

}  // namespace scalecalc
