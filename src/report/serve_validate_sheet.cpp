#include "report/serve_validate_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/error_blocks.h"

namespace scalecalc {
namespace {

double time_of(double figure, bool rate) { return rate ? 1 / figure : figure; }

class ServingSheet {
 public:
  ServingSheet(const ServeValidation& v, const ServeValidateQuestion& q, const ValidateView& view)
      : v_(v), q_(q), view_(view) {}

  Sheet run() {
    Sheet out{.command = "validate", .title = "Predicted against measured serving"};
    out.summary = summary_lines();
    out.query = query();
    out.blocks = {rows_block(), skipped_block(), groups_block(), summary_block()};
    return out;
  }

 private:
  Record query() const {
    std::vector<Cell> files(view_.files.begin(), view_.files.end());
    Record out;
    out.figures = {
        list_figure("files", "measurements", std::move(files)),
        figure("quantity", "compared", Format::kText, Cell(std::string("serving"))),
        figure("efficiency", "efficiency", Format::kText, Cell(std::string(q_.ideal ? "ideal" : "calibrated")))};
    if (!q_.stack.empty()) out.figures.push_back(figure("stack", "stack", Format::kText, Cell(q_.stack)));
    for (const RowFilter& filter : q_.only) {
      out.figures.push_back(
          list_figure("only." + filter.by, "only " + filter.by, {filter.names.begin(), filter.names.end()}));
    }
    return out;
  }

  std::vector<Line> summary_lines() const {
    const ServeErrors& s = v_.summary;
    std::vector<Line> out;
    const auto line = [&](std::string text, Role role = Role::kPlain) { out.push_back({std::move(text), role}); };
    line(fmt::format("{} of {} rows predicted, {} left out with a reason.", s.predicted, s.rows, s.rows - s.predicted),
         s.predicted == 0 ? Role::kBad : Role::kPlain);
    if (!s.mean_abs) return out;
    line(fmt::format("Error of the time per token: median {}, mean {}, 90th percentile {}, largest {}; bias {}.",
                     percent_text(*s.median_abs), percent_text(*s.mean_abs), percent_text(*s.p90_abs),
                     percent_text(*s.max_abs), signed_percent_text(*s.bias)));
    line(
        fmt::format("Naive baseline (the usual share of the chip's other sources of the weights-and-contexts floor): "
                    "median {}, mean {}.",
                    percent_text(*s.naive_median_abs), percent_text(*s.naive_mean_abs)));
    if (s.first_token_median_abs) {
      line(fmt::format("Time to the first token, {} rows: median {}, bias {}; no waiting for a slot is predicted.",
                       s.first_tokens, percent_text(*s.first_token_median_abs),
                       signed_percent_text(*s.first_token_bias)));
    }
    if (!q_.ideal) {
      line(percent_text(*s.coverage) + " of the measurements lie in the predicted band.");
      line(fmt::format("Coefficients: {} rows by those of their engine on their chip, {} by the family's.",
                       s.predicted - s.by_default, s.by_default));
    }
    if (s.below_floor > 0) {
      line(
          fmt::format("{} measured faster than weights and contexts can be read: wrong rows, or a bug.", s.below_floor),
          Role::kBad);
    }
    return out;
  }

  Block rows_block() const {
    std::vector<const PredictedServing*> rows;
    for (const PredictedServing& row : v_.rows) rows.push_back(&row);
    if (view_.worst > 0) {
      std::stable_sort(rows.begin(), rows.end(), [](const PredictedServing* a, const PredictedServing* b) {
        return std::abs(a->error) > std::abs(b->error);
      });
      rows.resize(std::min(rows.size(), view_.worst));
    }
    Block out{.key = "rows"};
    for (const PredictedServing* row : rows) out.records.push_back(row_record(*row));
    return out;
  }

  static Record row_record(const PredictedServing& p) {
    const ServeMeasurement& m = p.row;
    const auto text = [](const char* key, const char* label, std::string value, int importance = 0) {
      return with_importance(figure(key, label, Format::kText, Cell(std::move(value))), importance);
    };
    // Rates are shown as the time of a token, so that every row's figures are times.
    const bool rate = m.figure == ServeFigure::kOutputRate || m.figure == ServeFigure::kInputRate;
    const auto time = [&](double value) { return Cell(time_of(value, rate)); };
    const double slow = std::max(time_of(p.low, rate), time_of(p.high, rate));
    const double fast = std::min(time_of(p.low, rate), time_of(p.high, rate));
    Record out{{text("id", "row", m.id),
                text("group", "", m.group),
                text("chip", "chip", m.chip, 3),
                with_importance(figure("chips", "chips", Format::kInteger, Cell(static_cast<double>(m.chips))), 3),
                text("model", "", m.model),
                text("engine", "", m.engine),
                text("stack", "stack", m.stack, 4),
                figure("stack_measured", "", Format::kFlag, Cell(p.stack_measured ? 1.0 : 0.0)),
                text("degrees", "layout", describe(p.layout), 5),
                text("phase", "", serve_group_name(m, "phase")),
                text("batch_class", "", m.batch_class()),
                with_importance(figure("batch", "batch", Format::kNumber, Cell(p.batch)), 2),
                text("figure", "figure", std::string(kServeFigureNames[static_cast<std::size_t>(m.figure)]), 1),
                figure("measured", "measured", Format::kSeconds, time(m.measured)),
                figure("predicted", "predicted", Format::kSeconds, time(p.predicted)),
                with_importance(figure("low", "", Format::kSeconds, Cell(fast)), 2),
                with_importance(figure("high", "", Format::kSeconds, Cell(slow)), 2),
                figure("error", "error", Format::kFraction, Cell(p.error)),
                with_importance(figure("naive_error", "naive", Format::kFraction, Cell(p.naive_error)), 3),
                figure("floor_share", "", Format::kFraction, Cell(1 + served_error(m, p.floor))),
                text("doubt", "", m.doubt)}};
    if (p.first_token) {
      out.figures.push_back(figure("ttft", "", Format::kSeconds, Cell(*p.first_token)));
      out.figures.push_back(figure("ttft_measured", "", Format::kSeconds, Cell(*m.first_token)));
      out.figures.push_back(figure("ttft_error", "", Format::kFraction, Cell(*p.first_token_error)));
    }
    return out;
  }

  Block skipped_block() const {
    Block out{.key = "skipped_rows", .title = "Left out"};
    for (const SkippedServing& s : v_.skipped) {
      out.records.push_back(
          {{figure("id", "row", Format::kText, Cell(s.row.id)), figure("group", "", Format::kText, Cell(s.row.group)),
            figure("chip", "", Format::kText, Cell(s.row.chip)),
            figure("reason", "reason", Format::kText, Cell(s.reason)),
            with_importance(figure("detail", "here", Format::kText, Cell(s.detail)), 1)}});
    }
    return out;
  }

  static void add_errors(std::vector<Figure>& out, const ServeErrors& s) {
    const auto share = [](const char* key, const char* label, const std::optional<double>& value, int importance = 0) {
      return with_importance(figure(key, label, Format::kFraction, cell_of(value)), importance);
    };
    out.push_back(figure("rows", "rows", Format::kInteger, cell_of(s.rows)));
    out.push_back(figure("predicted", "predicted", Format::kInteger, cell_of(s.predicted)));
    out.push_back(share("median_abs_error", "median error", s.median_abs));
    out.push_back(share("mean_abs_error", "mean", s.mean_abs));
    out.push_back(share("p90_abs_error", "p90", s.p90_abs, 1));
    out.push_back(share("max_abs_error", "largest", s.max_abs, 2));
    out.push_back(share("bias", "bias", s.bias));
    out.push_back(share("coverage", "in band", s.coverage, 3));
    out.push_back(share("naive_median_abs_error", "naive median", s.naive_median_abs, 1));
    out.push_back(share("naive_mean_abs_error", "naive mean", s.naive_mean_abs, 2));
    out.push_back(figure("first_tokens", "", Format::kInteger, cell_of(s.first_tokens)));
    out.push_back(share("ttft_median_abs_error", "ttft median", s.first_token_median_abs, 3));
    out.push_back(share("ttft_bias", "", s.first_token_bias));
    out.push_back(figure("by_default_stack", "", Format::kInteger, cell_of(s.by_default)));
    out.push_back(figure("below_floor", "", Format::kInteger, cell_of(s.below_floor)));
    for (const auto& [reason, count] : s.skipped) {
      out.push_back(figure("skipped." + reason, "", Format::kInteger, cell_of(count)));
    }
  }

  Block groups_block() const {
    Block out{.key = "groups"};
    for (const ServeGroup& group : v_.groups) {
      Record record = error_group(group.by, group.name);
      add_errors(record.figures, group.errors);
      out.records.push_back(std::move(record));
    }
    return out;
  }

  Block summary_block() const {
    Record record;
    add_errors(record.figures, v_.summary);
    return error_summary(std::move(record));
  }

  const ServeValidation& v_;
  const ServeValidateQuestion& q_;
  const ValidateView& view_;
};

}  // namespace

Sheet serve_validate_sheet(const ServeValidation& validation, const ServeValidateQuestion& question,
                           const ValidateView& view) {
  return ServingSheet(validation, question, view).run();
}

}  // namespace scalecalc
