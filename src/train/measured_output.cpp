// Shows a measured step next to its prediction, for `scalecalc train --measured`.
#include "train/measured_output.h"

#include <fmt/format.h>

#include "base/units.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

constexpr std::size_t kBriefTerms = 4;

Record term_record(const TermOffPrediction& term) {
  Figure cause = text_figure("cause", "term", term.cause);
  cause.shown = cause_words(term.cause);
  const bool there = term.predicted_s > 0;
  return {{std::move(cause), figure("predicted_s", "predicted", Format::kSeconds, Cell(term.predicted_s)),
           figure("low_s", "", Format::kSeconds, Cell(term.low_s)),
           figure("high_s", "at most", Format::kSeconds, Cell(term.high_s)),
           figure("needed_s", "must be", Format::kSeconds, Cell(term.needed_s)),
           number_figure("factor", "times", Format::kNumber,
                         there ? std::optional(term.needed_s / term.predicted_s) : std::nullopt),
           number_figure("within", "allowed", Format::kFlag, term.within ? 1 : 0),
           text_figure("remedy", "shortened by", term.remedy, 1)}};
}

Record convention_record(const FlopsConvention& convention) {
  return {{text_figure("name", "", convention.name), figure("mfu", "", Format::kFraction, Cell(convention.mfu)),
           figure("tflops_per_chip", "", Format::kNumber, Cell(convention.tflops_per_chip))}};
}

/// "matmuls alone would have to take 1.2 times what is predicted".
std::string likeliest(const MeasuredVerdict& verdict) {
  if (verdict.terms.empty() || verdict.terms.front().predicted_s <= 0) return "";
  const TermOffPrediction& term = verdict.terms.front();
  return fmt::format(
      "{} {}: {} instead of {} ({:.3g} times; its coefficients' errors allow {} to {})",
      term.within ? "if one term alone differs, most likely" : "no term alone differs so much; least unlikely",
      cause_words(term.cause), seconds_text(term.needed_s), seconds_text(term.predicted_s),
      term.needed_s / term.predicted_s, seconds_text(term.low_s), seconds_text(term.high_s));
}

}  // namespace

void add_measured(const MeasuredSpeed& speed, const RankedPlan& plan, const MeasuredVerdict& verdict, Output& out) {
  std::vector<Record> terms;
  std::vector<Record> conventions;
  for (const TermOffPrediction& term : verdict.terms) terms.push_back(term_record(term));
  for (const FlopsConvention& convention : verdict.conventions) conventions.push_back(convention_record(convention));
  const PlanFigures& f = plan.figures;
  Block block{.key = "measured",
              .is_list = false,
              .records = {{{figure("step_time_s", "", Format::kSeconds, Cell(verdict.step_s)),
                            figure("predicted_step_time_s", "", Format::kSeconds, Cell(plan.plan.step_s)),
                            figure("over_predicted", "", Format::kFraction, Cell(verdict.over)),
                            flag_figure("in_band", verdict.in_band),
                            figure("tokens_per_s", "", Format::kCount, Cell(verdict.tokens_per_s)),
                            figure("tokens_per_s_per_chip", "", Format::kCount, Cell(verdict.tokens_per_s_per_chip)),
                            figure("tflops_per_chip", "", Format::kNumber, Cell(verdict.tflops_per_chip)),
                            figure("mfu", "", Format::kFraction, Cell(verdict.mfu)),
                            figure("hfu", "", Format::kFraction, Cell(verdict.hfu)),
                            records_figure("mfu_conventions", "", "", std::move(conventions)),
                            records_figure("terms", "", "", terms)}}},
              .for_files = true};
  out.blocks.push_back(std::move(block));
  std::vector<Line> lines;
  say(lines, verdict.in_band ? Role::kGood : Role::kWarning,
      "Measured {}: step {}, MFU {}, HFU {}, {} tokens/s; predicted {} ({} to {}): {} {}, {} the band", speed.text,
      seconds_text(verdict.step_s), fraction_text(verdict.mfu), fraction_text(verdict.hfu),
      compact_count(verdict.tokens_per_s), seconds_text(plan.plan.step_s), seconds_text(f.step_low_s),
      seconds_text(f.step_high_s), fraction_text(verdict.over < 0 ? -verdict.over : verdict.over),
      verdict.over < 0 ? "faster" : "slower", verdict.in_band ? "inside" : "outside");
  if (const std::string likely = likeliest(verdict); !likely.empty()) say(lines, "{}", likely);
  if (!verdict.in_band) {
    say(lines, Role::kDim,
        "no coefficient's error explains it: record the step and ask `scalecalc profile` with --layout");
  }
  Block table{.title = "Measured beside predicted",
              .for_people = true,
              .lines = lines,
              .section = "measured",
              .brief_rows = kBriefTerms,
              .brief_lines = lines};
  table.records = std::move(terms);
  out.blocks.insert(out.blocks.begin() + 1, std::move(table));  // the ranking stays the main table
}

}  // namespace scalecalc
