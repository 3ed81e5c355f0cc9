#include "report/validate_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/error_blocks.h"
#include "report/train_report.h"

namespace scalecalc {
namespace {

class TrainingSheet {
 public:
  TrainingSheet(const Validation& v, const ValidateQuestion& q, const ValidateView& view) : v_(v), q_(q), view_(view) {}

  Sheet run() {
    const bool memory = v_.compared == Compared::kMemory;
    Sheet out{.command = "validate",
              .title = memory ? "Predicted against measured memory of the fullest chip"
                              : "Predicted against measured step times"};
    out.summary = summary_lines();
    out.query = query();
    out.blocks = {rows_block(), skipped_block(), groups_block(), summary_block()};
    return out;
  }

 private:
  Format format() const { return v_.compared == Compared::kMemory ? Format::kBytes : Format::kSeconds; }

  Record query() const {
    std::vector<Cell> files(view_.files.begin(), view_.files.end());
    Record out;
    out.figures = {
        list_figure("files", "measurements", std::move(files)),
        figure("quantity", "compared", Format::kText,
               Cell(std::string(v_.compared == Compared::kMemory ? "memory_bytes" : "step_time_s"))),
        figure("efficiency", "efficiency", Format::kText, Cell(std::string(q_.ideal ? "ideal" : "calibrated")))};
    if (!q_.stack.empty()) out.figures.push_back(figure("stack", "stack", Format::kText, Cell(q_.stack)));
    for (const RowFilter& filter : q_.only) {
      out.figures.push_back(
          list_figure("only." + filter.by, "only " + filter.by, {filter.names.begin(), filter.names.end()}));
    }
    return out;
  }

  /// Ideal efficiency has no band; what counts there is whether a run beat the bound.
  Line band_line() const {
    const ErrorSummary& s = v_.summary;
    if (!q_.ideal) return {percent_text(*s.coverage) + " of the measurements lie in the predicted band.", Role::kPlain};
    if (s.too_slow == 0) return {"No run was faster than the bound.", Role::kGood};
    return {fmt::format("{} runs were faster than the bound: wrong rows, or a bug.", s.too_slow), Role::kBad};
  }

  std::vector<Line> summary_lines() const {
    const ErrorSummary& s = v_.summary;
    std::vector<Line> out;
    out.push_back(
        {fmt::format("{} of {} rows predicted, {} left out with a reason.", s.predicted, s.rows, s.rows - s.predicted),
         s.predicted == 0 ? Role::kBad : Role::kPlain});
    if (!s.mean_abs) return out;
    out.push_back({fmt::format("Error: mean {}, median {}, 90th percentile {}, largest {}; bias {}.",
                               percent_text(*s.mean_abs), percent_text(*s.median_abs), percent_text(*s.p90_abs),
                               percent_text(*s.max_abs), signed_percent_text(*s.bias)),
                   Role::kPlain});
    out.push_back(
        {fmt::format("Sources counted equally: mean {}, median {}, bias {}.", percent_text(*s.source_mean_abs),
                     percent_text(*s.source_median_abs), signed_percent_text(*s.source_bias)),
         Role::kPlain});
    out.push_back(band_line());
    if (!q_.ideal) {
      out.push_back({fmt::format("Coefficients: {} rows by those of their software on their chip, {} by the chip's "
                                 "default ones.",
                                 s.predicted - s.by_default, s.by_default),
                     Role::kPlain});
    }
    const auto order = [&](const char* of, const OrderQuality& o) {
      if (!o.regret) return;
      out.push_back({fmt::format("Order of layouts, mean of {} {}: Spearman {:.2f}, Kendall {:.2f}, regret {}.", o.sets,
                                 of, o.spearman.value_or(0), o.kendall.value_or(0), percent_text(*o.regret)),
                     Role::kPlain});
    };
    order("jobs with three or more", s.of_job);
    order("models with five or more on a kind of chip", s.of_model);
    if (s.made_to_fit > 0) {
      out.push_back(
          {fmt::format("{} runs fit only by thrift that their sources do not state.", s.made_to_fit), Role::kPlain});
    }
    if (s.out_of_memory > 0) {
      out.push_back(
          {fmt::format("{} runs would not fit by our count of memory, and ran.", s.out_of_memory), Role::kWarning});
    }
    return out;
  }

  Block rows_block() const {
    std::vector<const PredictedRow*> rows;
    for (const PredictedRow& row : v_.rows) rows.push_back(&row);
    if (view_.worst > 0) {
      std::stable_sort(rows.begin(), rows.end(), [](const PredictedRow* a, const PredictedRow* b) {
        return std::abs(a->error()) > std::abs(b->error());
      });
      rows.resize(std::min(rows.size(), view_.worst));
    }
    Block out{.key = "rows"};
    for (const PredictedRow* row : rows) out.records.push_back(row_record(*row));
    return out;
  }

  Record row_record(const PredictedRow& p) const {
    const Measurement& m = p.row;
    const auto text = [](const char* key, const char* label, std::string value, int importance = 0) {
      return with_importance(figure(key, label, Format::kText, Cell(std::move(value))), importance);
    };
    Record out{{text("id", "row", m.id),
                text("group", "", m.group),
                text("subset", "", m.subset),
                text("chip", "chip", m.chip, 3),
                with_importance(figure("chips", "chips", Format::kInteger, Cell(static_cast<double>(m.chips))), 3),
                text("model", "", m.model),
                text("family", "", m.family()),
                text("framework", "", m.framework),
                text("stack", "", p.stack),
                figure("stack_measured", "", Format::kFlag, Cell(p.basis == StackBasis::kChip ? 1.0 : 0.0)),
                figure("stack_basis", "", Format::kText, Cell(std::string(name_of(p.basis)))),
                text("precision", "", group_name(m, "precision")),
                text("degrees", "layout", degrees_text(p.layout), 4),
                text("recipe", "", recipe_text(p.layout)),
                figure("measured", "measured", format(), Cell(p.measured)),
                figure("predicted", "predicted", format(), Cell(p.predicted)),
                with_importance(figure("low", "low", format(), Cell(p.low)), 2),
                with_importance(figure("high", "high", format(), Cell(p.high)), 2),
                figure("error", "error", Format::kFraction, Cell(p.error())),
                figure("fits", "", Format::kFlag, Cell(p.fits ? 1.0 : 0.0)),
                text("bound_by", "bound by", p.figures.bound_by, 5),
                figure("mfu", "", Format::kFraction, Cell(p.figures.mfu)),
                text("doubt", "", m.doubt),
                list_figure("chosen", "", {p.chosen.begin(), p.chosen.end()}),
                list_figure("assumed_to_fit", "", {p.assumed.begin(), p.assumed.end()})}};
    for (const auto& [cause, seconds] : p.figures.time_s) {
      out.figures.push_back(figure("time_s." + cause, "", Format::kSeconds, Cell(seconds)));
    }
    for (const auto& [part, bytes] : p.figures.memory_bytes) {
      out.figures.push_back(figure("memory_bytes." + part, "", Format::kBytes, Cell(bytes)));
    }
    return out;
  }

  Block skipped_block() const {
    Block out{.key = "skipped_rows", .title = "Left out"};
    for (const SkippedRow& s : v_.skipped) {
      out.records.push_back(
          {{figure("id", "row", Format::kText, Cell(s.row.id)), figure("group", "", Format::kText, Cell(s.row.group)),
            figure("chip", "", Format::kText, Cell(s.row.chip)),
            figure("reason", "reason", Format::kText, Cell(s.reason)),
            with_importance(figure("detail", "here", Format::kText, Cell(s.detail)), 1)}});
    }
    return out;
  }

  /// The same figures for all rows and for each group.
  static void add_errors(std::vector<Figure>& out, const ErrorSummary& s) {
    const auto share = [](const char* key, const char* label, const std::optional<double>& value, int importance = 0) {
      return with_importance(figure(key, label, Format::kFraction, cell_of(value)), importance);
    };
    const auto number = [](const char* key, const char* label, const std::optional<double>& value) {
      return with_importance(figure(key, label, Format::kNumber, cell_of(value)), 2);
    };
    out.push_back(figure("rows", "rows", Format::kInteger, cell_of(s.rows)));
    out.push_back(figure("predicted", "predicted", Format::kInteger, cell_of(s.predicted)));
    out.push_back(share("mean_abs_error", "mean error", s.mean_abs));
    out.push_back(share("median_abs_error", "median", s.median_abs));
    out.push_back(share("p90_abs_error", "p90", s.p90_abs, 1));
    out.push_back(share("max_abs_error", "largest", s.max_abs, 1));
    out.push_back(share("bias", "bias", s.bias));
    out.push_back(share("source_mean_abs_error", "mean, sources equal", s.source_mean_abs, 3));
    out.push_back(share("source_median_abs_error", "", s.source_median_abs));
    out.push_back(share("source_bias", "", s.source_bias));
    out.push_back(share("coverage", "in band", s.coverage, 3));
    out.push_back(figure("slower_than_measured", "", Format::kInteger, cell_of(s.too_slow)));
    out.push_back(figure("out_of_memory", "", Format::kInteger, cell_of(s.out_of_memory)));
    out.push_back(figure("made_to_fit", "", Format::kInteger, cell_of(s.made_to_fit)));
    out.push_back(figure("by_default_stack", "", Format::kInteger, cell_of(s.by_default)));
    out.push_back(figure("layout_sets", "", Format::kInteger, cell_of(s.of_job.sets)));
    out.push_back(number("spearman", "Spearman", s.of_job.spearman));
    out.push_back(number("kendall", "", s.of_job.kendall));
    out.push_back(share("regret", "regret", s.of_job.regret, 2));
    out.push_back(figure("model_sets", "", Format::kInteger, cell_of(s.of_model.sets)));
    out.push_back(number("model_spearman", "", s.of_model.spearman));
    out.push_back(number("model_median_spearman", "", s.of_model.median_spearman));
    out.push_back(number("model_kendall", "", s.of_model.kendall));
    out.push_back(share("model_regret", "", s.of_model.regret));
    for (const auto& [reason, count] : s.skipped) {
      out.push_back(figure("skipped." + reason, "", Format::kInteger, cell_of(count)));
    }
  }

  Block groups_block() const {
    Block out{.key = "groups"};
    for (const GroupSummary& group : v_.groups) {
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

  const Validation& v_;
  const ValidateQuestion& q_;
  const ValidateView& view_;
};

}  // namespace

Sheet validate_sheet(const Validation& validation, const ValidateQuestion& question, const ValidateView& view) {
  return TrainingSheet(validation, question, view).run();
}

}  // namespace scalecalc
