// Shows predictions next to measurements with statistics and pictures, for `scalecalc validate`.
#include "validate/validate_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "base/text.h"
#include "plan/mechanisms.h"
#include "report/brief_blocks.h"
#include "report/plot_bars.h"
#include "train/train_words.h"
#include "validate/measured_rows_output.h"

namespace scalecalc {
namespace {

Line plain_line(std::string text) { return {std::move(text), Role::kPlain}; }

std::string title_of(Compared compared) {
  switch (compared) {
    case Compared::kStepTime: return "Predicted against measured step times";
    case Compared::kMemory: return "Predicted against measured memory of the fullest chip";
    case Compared::kRlStep: return "Predicted against measured RL steps";
    case Compared::kServing: break;
  }
  return "Predicted against measured serving";
}

// What training says of its rows.

/// Ideal efficiency has no band; what counts there is whether a run beat the bound.
Line band_line(const ErrorSummary& s, bool ideal) {
  if (!ideal) return plain_line(percent_text(*s.coverage) + " of the measurements lie in the predicted band.");
  if (s.too_slow == 0) return {"No run was faster than the bound.", Role::kGood};
  return {fmt::format("{} runs were faster than the bound: wrong rows, or a bug.", s.too_slow), Role::kBad};
}

void add_lines(std::vector<Line>& out, const ErrorSummary& s, bool ideal) {
  say(out, "Error: mean {}, median {}, 90th percentile {}, largest {}; bias {}.", percent_text(*s.mean_abs),
      percent_text(*s.median_abs), percent_text(*s.p90_abs), percent_text(*s.max_abs), signed_percent_text(*s.bias));
  say(out, "Sources counted equally: mean {}, median {}, bias {}.", percent_text(*s.source_mean_abs),
      percent_text(*s.source_median_abs), signed_percent_text(*s.source_bias));
  out.push_back(band_line(s, ideal));
  if (!ideal) {
    std::vector<std::string> classes;
    for (const auto& [name, of] : s.by_class) {
      classes.push_back(fmt::format("{} {:.0f} % of {}", name,
                                    100 * static_cast<double>(of.in_band) / static_cast<double>(of.rows), of.rows));
    }
    if (classes.size() > 1) out.push_back(plain_line(fmt::format("In the band by class: {}.", join(classes, ", "))));
    out.push_back(plain_line(
        fmt::format("Coefficients: {} rows by those of their software on their chip, {} by the chip's default ones.",
                    s.predicted - s.by_default, s.by_default)));
  }
  if (!ideal && !s.unknown_software.empty()) {
    const std::vector<std::string> names(s.unknown_software.begin(), s.unknown_software.end());
    out.push_back({fmt::format("{} of these are of software that the catalog does not know: {}.", s.of_unknown_software,
                               join(names, ", ")),
                   Role::kWarning});
  }
  const auto order = [&](const char* of, const OrderQuality& o) {
    if (!o.regret) return;
    say(out, "Order of layouts, mean of {} {}: Spearman {:.2f}, Kendall {:.2f}, regret {}.", o.sets, of,
        o.spearman.value_or(0), o.kendall.value_or(0), percent_text(*o.regret));
  };
  order("jobs with three or more", s.of_job);
  order("models with five or more on a kind of chip", s.of_model);
  if (s.made_to_fit > 0) {
    say(out, "{} runs fit only by savings that their sources do not state.", s.made_to_fit);
  }
  if (s.out_of_memory > 0) {
    say(out, Role::kWarning, "{} {} not fit by our count of memory, and ran.", s.out_of_memory,
        s.out_of_memory == 1 ? "run would" : "runs would");
  }
}

std::vector<Figure> row_figures(const PredictedRow& p, Compared compared) {
  const Measurement& m = p.row;
  const Format format = compared == Compared::kMemory ? Format::kBytes : Format::kSeconds;
  const auto names = mechanisms_beside(p.layout, p.chosen);
  const std::vector<std::string> stated(names.begin(), names.end());
  // Moved into the list: one in braces copies them, in every row.
  auto always = std::to_array<Figure>({text_figure("id", "row", m.id),
                                       text_figure("group", "", m.group),
                                       text_figure("subset", "", m.subset),
                                       text_figure("class", "", m.run_class),
                                       text_figure("chip", "chip", m.chip, 3),
                                       row_count("chips", "chips", m.chips, 3),
                                       text_figure("model", "", m.model),
                                       text_figure("family", "", m.family()),
                                       text_figure("framework", "", m.framework),
                                       text_figure("stack", "", p.stack),
                                       flag_figure("stack_measured", p.basis == StackBasis::kChip),
                                       text_figure("stack_basis", "", name_of(p.basis)),
                                       text_figure("attention", "", p.kernel),
                                       text_figure("attention_because", "", p.kernel_why),
                                       text_figure("precision", "", group_name(m, "precision")),
                                       text_figure("degrees", "layout", degrees_text(p.layout), 4),
                                       text_figure("recipe", "", recipe_text(p.layout)),
                                       number_figure("measured", "measured", format, p.measured),
                                       number_figure("predicted", "predicted", format, p.predicted),
                                       number_figure("low", "low", format, p.low, 2),
                                       number_figure("high", "high", format, p.high, 2),
                                       error_share("error", "error", p.error),
                                       flag_figure("fits", p.fits),
                                       text_figure("bound_by", "bound by", p.figures.bound_by, 5),
                                       error_share("mfu", "", p.figures.mfu),
                                       text_figure("doubt", "", m.doubt),
                                       list_figure("mechanisms", "", {stated.begin(), stated.end()}),
                                       list_figure("chosen", "", {p.chosen.begin(), p.chosen.end()}),
                                       list_figure("assumed_to_fit", "", {p.assumed.begin(), p.assumed.end()})});
  std::vector<Figure> out;
  out.reserve(always.size() + p.figures.time_s.size() + p.figures.memory_bytes.size());
  std::ranges::move(always, std::back_inserter(out));
  for (const auto& [cause, seconds] : p.figures.time_s) {
    out.push_back(number_figure("time_s." + cause, "", Format::kSeconds, seconds));
  }
  for (const auto& [part, bytes] : p.figures.memory_bytes) {
    out.push_back(number_figure("memory_bytes." + part, "", Format::kBytes, bytes));
  }
  return out;
}

std::vector<Figure> error_figures(const ErrorSummary& s) {
  const auto order = [](const char* key, const char* label, const std::optional<double>& value) {
    return number_figure(key, label, Format::kNumber, value, 2);
  };
  return {error_share("mean_abs_error", "mean error", s.mean_abs),
          error_share("median_abs_error", "median", s.median_abs),
          error_share("p90_abs_error", "p90", s.p90_abs, 1),
          error_share("max_abs_error", "largest", s.max_abs, 1),
          error_share("bias", "bias", s.bias),
          error_share("source_mean_abs_error", "mean, sources equal", s.source_mean_abs, 3),
          error_share("source_median_abs_error", "", s.source_median_abs),
          error_share("source_bias", "", s.source_bias),
          error_share("coverage", "in band", s.coverage, 3),
          row_count("slower_than_measured", "", s.too_slow),
          row_count("out_of_memory", "", s.out_of_memory),
          row_count("made_to_fit", "", s.made_to_fit),
          row_count("by_default_stack", "", s.by_default),
          row_count("unknown_software", "", s.of_unknown_software),
          row_count("layout_sets", "", s.of_job.sets),
          order("spearman", "Spearman", s.of_job.spearman),
          order("kendall", "", s.of_job.kendall),
          error_share("regret", "regret", s.of_job.regret, 2),
          row_count("model_sets", "", s.of_model.sets),
          order("model_spearman", "", s.of_model.spearman),
          order("model_median_spearman", "", s.of_model.median_spearman),
          order("model_kendall", "", s.of_model.kendall),
          error_share("model_regret", "", s.of_model.regret)};
}

// What serving says of its rows.

void add_lines(std::vector<Line>& out, const ServeErrors& s, bool ideal) {
  out.push_back(plain_line(
      fmt::format("Error of the time per token: median {}, mean {}, 90th percentile {}, largest {}; bias {}.",
                  percent_text(*s.median_abs), percent_text(*s.mean_abs), percent_text(*s.p90_abs),
                  percent_text(*s.max_abs), signed_percent_text(*s.bias))));
  if (s.naive_median_abs) {
    say(out,
        "Naive baseline (the usual share of the chip's other sources of the weights-and-contexts "
        "floor): median {}, mean {}.",
        percent_text(*s.naive_median_abs), percent_text(*s.naive_mean_abs));
  }
  if (s.first_token_median_abs) {
    say(out, "Time to the first token, {} rows whose load is known: median {}, bias {}.", s.first_tokens,
        percent_text(*s.first_token_median_abs), signed_percent_text(*s.first_token_bias));
  }
  if (s.throughput_median_abs) {
    say(out, "Tokens/s of clients, {} rows: median {}.", s.throughputs, percent_text(*s.throughput_median_abs));
  }
  if (s.unknown_loads > 0) {
    say(out, "{} more measured it and do not say how requests came: none is predicted.", s.unknown_loads);
  }
  if (!ideal) {
    out.push_back(plain_line(percent_text(*s.coverage) + " of the measurements lie in the predicted band."));
    say(out, "Coefficients: {} rows by those of their engine on their chip, {} by the family's.",
        s.predicted - s.by_default, s.by_default);
  }
  if (s.below_floor > 0) {
    say(out, Role::kBad, "{} measured faster than weights and contexts can be read: wrong rows, or a bug.",
        s.below_floor);
  }
}

/// Rates are shown as the time of a token, so that every row's figures are times.
std::vector<Figure> row_figures(const PredictedServing& p, Compared) {
  const ServeMeasurement& m = p.row;
  const bool rate = m.figure == ServeFigure::kOutputRate || m.figure == ServeFigure::kInputRate;
  const auto time = [&](double value) { return rate ? 1 / value : value; };
  const auto [fast, slow] = std::minmax({time(p.low), time(p.high)});
  std::vector<Figure> out{text_figure("id", "row", m.id),
                          text_figure("group", "", m.group),
                          text_figure("chip", "chip", m.chip, 3),
                          row_count("chips", "chips", m.chips, 3),
                          text_figure("model", "", m.model),
                          text_figure("engine", "", m.engine),
                          text_figure("stack", "stack", m.stack, 4),
                          flag_figure("stack_measured", !p.by_default),
                          text_figure("degrees", "layout", describe(p.layout), 5),
                          text_figure("phase", "", group_name(m, "phase")),
                          text_figure("batch_class", "", m.batch_class()),
                          number_figure("batch", "batch", Format::kNumber, p.batch, 2),
                          text_figure("figure", "figure", kServeFigureNames[static_cast<std::size_t>(m.figure)], 1),
                          number_figure("measured", "measured", Format::kSeconds, time(p.measured)),
                          number_figure("predicted", "predicted", Format::kSeconds, time(p.predicted)),
                          number_figure("low", "", Format::kSeconds, fast, 2),
                          number_figure("high", "", Format::kSeconds, slow, 2),
                          error_share("error", "error", p.error),
                          error_share("naive_error", "naive", p.naive_error, 3),
                          error_share("floor_share", "", 1 + served_error(m, p.floor)),
                          text_figure("doubt", "", m.doubt)};
  if (p.first_token) {
    out.push_back(number_figure("ttft", "", Format::kSeconds, *p.first_token));
    out.push_back(number_figure("ttft_measured", "", Format::kSeconds, *m.first_token));
    out.push_back(error_share("ttft_error", "", *p.first_token_error));
  }
  if (p.throughput_error) out.push_back(error_share("throughput_error", "", *p.throughput_error));
  return out;
}

std::vector<Figure> error_figures(const ServeErrors& s) {
  return {error_share("median_abs_error", "median error", s.median_abs),
          error_share("mean_abs_error", "mean", s.mean_abs),
          error_share("p90_abs_error", "p90", s.p90_abs, 1),
          error_share("max_abs_error", "largest", s.max_abs, 2),
          error_share("bias", "bias", s.bias),
          error_share("coverage", "in band", s.coverage, 3),
          error_share("naive_median_abs_error", "naive median", s.naive_median_abs, 1),
          error_share("naive_mean_abs_error", "naive mean", s.naive_mean_abs, 2),
          row_count("first_tokens", "", s.first_tokens),
          row_count("unknown_loads", "", s.unknown_loads),
          error_share("ttft_median_abs_error", "ttft median", s.first_token_median_abs, 3),
          error_share("ttft_bias", "", s.first_token_bias),
          row_count("throughputs", "", s.throughputs),
          error_share("throughput_median_abs_error", "", s.throughput_median_abs),
          row_count("by_default_stack", "", s.by_default),
          row_count("below_floor", "", s.below_floor)};
}

// What RL says of its rows.

/// A step is predicted without a band.
void add_lines(std::vector<Line>& out, const RlErrors& s, bool) {
  out.push_back(plain_line(fmt::format(
      "Error of the step: median {}, mean {}, 90th percentile {}, largest {}; bias {}.", percent_text(*s.median_abs),
      percent_text(*s.mean_abs), percent_text(*s.p90_abs), percent_text(*s.max_abs), signed_percent_text(*s.bias))));
}

std::vector<Figure> row_figures(const PredictedRl& p, Compared) {
  const RlMeasurement& m = p.row;
  std::vector<Figure> out{text_figure("id", "row", m.id),
                          text_figure("group", "", m.group),
                          text_figure("chip", "chip", m.chip, 3),
                          row_count("chips", "chips", m.chips, 3),
                          text_figure("model", "", m.model),
                          text_figure("policy", "policy", m.policy(), 4),
                          row_count("generator_chips", "", p.generator_chips),
                          row_count("trainer_chips", "", p.trainer_chips),
                          text_figure("degrees", "engine", describe(p.engine), 5),
                          text_figure("trainer_layout", "trainer", p.trainer ? degrees_text(*p.trainer) : "", 6),
                          number_figure("measured", "measured", Format::kSeconds, p.measured),
                          number_figure("predicted", "predicted", Format::kSeconds, p.predicted),
                          error_share("error", "error", p.error),
                          text_figure("doubt", "", m.doubt)};
  for (const auto& [part, seconds] : p.time_s) {
    out.push_back(number_figure("time_s." + part, "", Format::kSeconds, seconds));
  }
  return out;
}

std::vector<Figure> error_figures(const RlErrors& s) {
  return {error_share("median_abs_error", "median error", s.median_abs),
          error_share("mean_abs_error", "mean", s.mean_abs), error_share("p90_abs_error", "p90", s.p90_abs, 1),
          error_share("max_abs_error", "largest", s.max_abs, 2), error_share("bias", "bias", s.bias)};
}

// What all say.

template <class Kind>
std::vector<Line> summary_lines(const ErrorsOf<Kind>& s, bool ideal) {
  std::vector<Line> out{
      {fmt::format("{} of {} rows predicted, {} left out with a reason.", s.predicted, s.rows, s.rows - s.predicted),
       s.predicted == 0 ? Role::kBad : Role::kPlain}};
  if (s.mean_abs) add_lines(out, s, ideal);
  return out;
}

template <class Kind>
Record query_of(const ValidateQuestionOf<Kind>& q, const ValidateView& view) {
  Record only;
  for (const RowFilter& filter : q.only) {
    only.figures.push_back(list_figure(filter.by, "", {filter.names.begin(), filter.names.end()}));
  }
  return {{list_figure("files", "measurements", {view.files.begin(), view.files.end()}),
           text_figure("quantity", "compared", kComparedNames.at(static_cast<std::size_t>(q.compared))),
           object_figure("only", std::move(only))}};
}

constexpr std::size_t kFewRows = 12;

template <class Kind>
Block rows_block(const ValidationOf<Kind>& v, std::size_t worst) {
  using Predicted = PredictedOf<Kind>;
  std::vector<const Predicted*> rows;
  for (const Predicted& row : v.rows) rows.push_back(&row);
  if (worst > 0) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const Predicted* a, const Predicted* b) { return std::abs(a->error) > std::abs(b->error); });
    rows.resize(std::min(rows.size(), worst));
  }
  Block out{.key = "rows"};
  for (const Predicted* row : rows) out.records.push_back({row_figures(*row, v.compared)});
  if (worst == 0 && rows.size() > kFewRows) out.shown = Shown::kFull;
  return out;
}

/// In a brief answer only where the runs are one's own, which one can mend, or few.
template <class Kind>
Block left_out_block(const std::vector<SkippedOf<Kind>>& skipped) {
  Block out = skipped_block(skipped, 1, [](std::vector<Figure>& figures, const auto& row) {
    figures.push_back(text_figure("group", "", row.group));
    figures.push_back(text_figure("chip", "", row.chip));
  });
  const bool own = std::any_of(skipped.begin(), skipped.end(), [](const SkippedOf<Kind>& s) {
    return !s.row.where.file.str().starts_with("built-in:");
  });
  const bool few = skipped.size() <= kFewRows;
  if (skipped.empty() || (!own && !few)) out.shown = Shown::kFull;
  if (!few) out.brief_rows = kFewRows;
  return out;
}

/// In a brief answer: chips and stacks with most rows, without the figures that only a study of errors needs.
void shorten(Block& groups) {
  constexpr std::size_t kMost = 10;
  if (groups.records.empty()) return;
  groups.brief_rows = kMost;
  constexpr std::array<std::string_view, 6> kLeft{"p90_abs_error", "max_abs_error", "source_mean_abs_error",
                                                  "spearman",      "regret",        "naive_mean_abs_error"};
  for (const Figure* f : people_figures(widest_record(groups.records))) {
    const bool brief = std::find(kLeft.begin(), kLeft.end(), column_of(*f)) == kLeft.end();
    groups.columns.push_back({column_of(*f), f->importance, "", brief});
  }
  for (const std::string_view by : {"By chip", "By stack"}) {
    std::vector<Record*> of;
    for (Record& r : groups.records) {
      if (r.group == by) of.push_back(&r);
    }
    const auto predicted = [](const Record* r) {
      return std::get<double>(find_figure(people_figures(*r), "predicted")->value);
    };
    std::stable_sort(of.begin(), of.end(),
                     [&](const Record* a, const Record* b) { return predicted(a) > predicted(b); });
    for (std::size_t i = 0; i < of.size(); ++i)
      of[i]->brief = i < (by == "By chip" ? kMost : kMost - 4) && predicted(of[i]) > 0;
  }
  for (Record& r : groups.records) r.brief = r.brief && (r.group == "By chip" || r.group == "By stack");
}

/// What was left out is in words where `labelled`.
template <class Kind>
void add_errors(std::vector<Figure>& out, const ErrorsOf<Kind>& s, bool labelled) {
  out.push_back(row_count("rows", "rows", s.rows));
  out.push_back(row_count("predicted", "predicted", s.predicted));
  std::ranges::move(error_figures(s), std::back_inserter(out));
  for (const auto& [reason, rows] : s.skipped) {
    out.push_back(figure("skipped." + reason, labelled ? "left out: " + reason : "", Format::kInteger, cell_of(rows)));
  }
}

/// One line of "By chip" and the like for each group.
template <class Kind>
Block groups_block(const std::vector<GroupOf<Kind>>& groups) {
  Block out{.key = "groups"};
  for (const GroupOf<Kind>& group : groups) {
    Record record{{text_figure("by", "", group.by), text_figure("name", "name", group.name)},
                  "By " + (group.by == "group" ? "source group" : group.by)};
    add_errors(record.figures, group.errors, false);
    out.records.push_back(std::move(record));
  }
  shorten(out);
  return out;
}

template <class Kind>
Block summary_block(const ErrorsOf<Kind>& errors) {
  Block out{.key = "summary", .title = "All rows", .is_list = false, .records = {{}}};
  add_errors(out.records.front().figures, errors, true);
  return out;
}

}  // namespace

template <class Kind>
Output validate_output(const ValidationOf<Kind>& v, const ValidateQuestionOf<Kind>& q, const ValidateView& view) {
  Block all = summary_block(v.summary);
  all.shown = Shown::kFull;
  Record summary = all.records.front();
  return {.command = v.compared == Compared::kServing ? "validate-serve" : "validate",
          .title = title_of(v.compared),
          .headline = summary_lines(v.summary, q.ideal),
          .query = query_of(q, view),
          .blocks = {rows_block(v, view.worst), left_out_block<Kind>(v.skipped), groups_block(v.groups), std::move(all),
                     brief_end_block({{"more: --verbose (every row, and by family, framework, precision and source), "
                                       "--worst 10, --only chip=NAME"}})},
          .answer = std::move(summary),
          .plots = validation_plots(v)};
}

template Output validate_output(const Validation&, const ValidateQuestion&, const ValidateView&);
template Output validate_output(const RlValidation&, const RlValidateQuestion&, const ValidateView&);
template Output validate_output(const ServeValidation&, const ServeValidateQuestion&, const ValidateView&);

namespace {

template <class Row>
std::string row_name(const Row& row) {
  return fmt::format("{}: {} on {} {}", row.row.id, row.row.model, row.row.chips, row.row.chip);
}

/// Measured and predicted as the table of rows has them: rates of serving as the time of a token.
template <class Row>
PlotPoint against(const Row& row) {
  return {row.measured, row.predicted, row_name(row)};
}
PlotPoint against(const PredictedServing& row) {
  const bool rate = row.row.figure == ServeFigure::kOutputRate || row.row.figure == ServeFigure::kInputRate;
  return rate ? PlotPoint{1 / row.measured, 1 / row.predicted, row_name(row)}
              : PlotPoint{row.measured, row.predicted, row_name(row)};
}

Plot scatter(Compared compared, std::vector<PlotPoint> points) {
  const Format format = compared == Compared::kMemory ? Format::kBytes : Format::kSeconds;
  Plot out{.title = "Each row: predicted over measured",
           .x = {.title = "measured", .format = format, .log = true},
           .y = {.title = "predicted", .format = format, .log = true}};
  if (points.empty()) return out;
  double least = points.front().x, most = least;
  for (const PlotPoint& p : points) {
    least = std::min({least, p.x, p.y});
    most = std::max({most, p.x, p.y});
  }
  out.series = {{.name = "a row", .points = std::move(points), .joined = false},
                {.name = "as measured", .points = {{least, least}, {most, most}}, .marked = false}};
  return out;
}

/// Bins of a twentieth, what is farther off at either end.
Plot error_histogram(const std::vector<double>& errors) {
  constexpr int kEnd = 6;
  constexpr double kWide = 0.05;
  std::array<double, 2 * kEnd + 2> counts{};
  for (const double error : errors) {
    const double bin = std::clamp(std::floor(error / kWide), -kEnd - 1.0, static_cast<double>(kEnd));
    ++counts.at(static_cast<std::size_t>(bin + kEnd + 1.0));
  }
  constexpr const char* kTitle = "How many rows err by how much (predicted over measured, minus 1)";
  const PlotAxis rows{.title = "rows", .format = Format::kInteger};
  std::vector<std::pair<std::string, double>> bars;
  const auto percent = [](int edge) { return edge == 0 ? "0 %" : fmt::format("{:+g} %", 100 * kWide * edge); };
  int edge = -kEnd - 1;
  for (const double count : counts) {
    const std::string range = edge < -kEnd   ? "below " + percent(-kEnd)
                              : edge == kEnd ? "above " + percent(kEnd)
                                             : fmt::format("{} to {}", percent(edge), percent(edge + 1));
    if (!errors.empty()) bars.emplace_back(range, count);
    ++edge;
  }
  return value_bars(kTitle, rows, bars);
}

}  // namespace

template <class Kind>
std::vector<Plot> validation_plots(const ValidationOf<Kind>& validation) {
  std::vector<PlotPoint> points;
  std::vector<double> errors;
  for (const auto& row : validation.rows) {
    points.push_back(against(row));
    errors.push_back(row.error);
  }
  return {scatter(validation.compared, std::move(points)), error_histogram(errors)};
}
template std::vector<Plot> validation_plots(const Validation&);
template std::vector<Plot> validation_plots(const ServeValidation&);
template std::vector<Plot> validation_plots(const RlValidation&);

}  // namespace scalecalc
