// Shows a service on several systems: the cheapest point of each, its cost and its rank.
#include <fmt/format.h>

#include <algorithm>

#include "base/scalar.h"
#include "base/units.h"
#include "compare/compare_output.h"
#include "compare/compare_parts_output.h"
#include "report/brief_blocks.h"
#include "report/plot_bars.h"
#include "serve/requests.h"
#include "serve/serve_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

class ServiceOutput {
 public:
  ServiceOutput(const ServeComparison& comparison, bool explain) : c_(comparison), explain_(explain) {
    for (const ComparedService& row : c_.systems) {
      rows_.push_back(&row);
      texts_ = texts_ || (row.answered() && one_pass(*row.answer));
    }
  }

  Output run() {
    const ServeQuestion& q = c_.question.serve;
    out_.command = "compare";
    out_.title = fmt::format("Serving {} on {} system{}: ", c_.model_title, c_.systems.size(),
                             c_.systems.size() == 1 ? "" : "s");
    const std::string prompt = group_thousands(static_cast<long long>(q.prompt));
    out_.title += texts_ ? fmt::format("texts of {} tokens, one pass and one answer each", prompt)
                         : fmt::format("prompts of {}, answers of {} tokens", prompt,
                                       group_thousands(static_cast<long long>(q.generate)));
    out_.nothing_fits = !c_.baseline;
    out_.query = compared_query("serve", c_, c_.question.systems);
    out_.query.figures.push_back(datum("prompt", q.prompt));
    out_.query.figures.push_back(datum("generate", q.generate));
    summary();
    systems();
    if (c_.baseline) {
      out_.blocks.push_back(
          {.is_list = false, .records = {{{text_figure("baseline", "", rows_[*c_.baseline]->label)}}}});
    }
    break_even();
    add_expectations(out_, c_.expectations);
    out_.blocks.push_back({.key = "search", .is_list = false, .records = {{{flag_figure("complete", c_.complete)}}}});
    out_.blocks.push_back(
        winners_alone(c_.systems, [](const ComparedService& row) { return point_alone(*row.answer, row.best()); }));
    out_.assumptions = c_.assumptions;
    out_.deciding = deciding_of_training();
    out_.deciding.insert(out_.deciding.end(), {"--cloud", "--price-kind", "--weights", "--kv", "--engine"});
    if (!c_.complete) out_.notes.emplace_back("interrupted: systems may be missing");
    return std::move(out_);
  }

 private:
  static std::string engine_of(const ComparedService& row) {
    return row.answer->systems[row.best().system].serving.engine.title();
  }

  void summary() {
    if (!c_.baseline) {
      out_.summary.push_back(
          {c_.complete ? "none of the systems can do it" : "interrupted before any system was answered", Role::kBad});
      return;
    }
    const auto least = std::find_if(c_.systems.begin(), c_.systems.end(),
                                    [](const ComparedService& row) { return row.rank_cost == 1; });
    const std::string line = cheapest_line(
        rows_, least == c_.systems.end()
                   ? ""
                   : fmt::format("{} a million {}", compact_usd(*least->usd), texts_ ? "texts" : "output tokens"));
    if (!line.empty()) out_.summary.push_back({line, Role::kGood});
    for (const ComparedService& row : c_.systems) {
      if (row.rank_time != 1) continue;
      say(out_.summary, Role::kGood, "fastest: {}, a request in {}", winners(rows_, RankBy::kTime),
          seconds_text(*row.time_s));
      break;
    }
    std::vector<std::pair<std::string, std::string>> engines;
    for (const ComparedService& row : c_.systems) {
      if (row.answered()) engines.emplace_back(row.label, engine_of(row));
    }
    if (const std::string said = software_line(engines, "--engine"); !said.empty()) out_.summary.push_back({said});
    add_unranked(out_, rows_, texts_ ? " a million texts" : " a million output tokens");
  }

  void systems() {
    Block block{.key = "systems"};
    for (const std::size_t i : order_by(c_.rank_by, rows_)) block.records.push_back(record(c_.systems[i]));
    out_.plots = {record_bars(block, "system", "usd_per_million_output_tokens",
                              texts_ ? "Cost of a million texts" : "Cost of a million output tokens"),
                  record_bars(block, "system", "request_time_s", "Time of a request")};
    StackedBars steps, memory;
    for (const std::size_t i : order_by(c_.rank_by, rows_)) {
      const ComparedService& row = c_.systems[i];
      if (!row.answered()) continue;
      steps.emplace_back(row.label, decode_parts(row.best().time));
      memory.emplace_back(row.label, memory_parts(row.best().memory));
    }
    out_.page_plots = out_.plots;
    out_.page_plots.push_back(stacked_plot(texts_ ? "Where the pass goes" : "Where the decode step goes",
                                           {.title = texts_ ? "pass" : "decode step", .format = Format::kSeconds},
                                           steps));
    out_.page_plots.push_back(
        stacked_plot("Memory of a chip", {.title = "memory of a chip", .format = Format::kBytes}, memory));
    Block best = best_block(block);
    out_.blocks.push_back(std::move(block));
    out_.blocks.push_back(std::move(best));
  }

  Record record(const ComparedService& row) const {
    Record out;
    std::vector<Figure>& f = out.figures;
    add_identity(f, row);
    if (!row.answered()) {
      out.group = "Not possible";
      return out;
    }
    const ServePoint& p = row.best();
    f.push_back(count_figure("chips", p.chips, "chips"));
    add_price(f, row);
    f.push_back(text_figure("software", "", engine_of(row)));
    f.push_back(text_figure("layout_text", "layout", describe(p.layout), 6));
    add_serve_layout(f, "layout.", p.layout);
    f.push_back(number_figure("batch", "batch", Format::kInteger, p.batch, 1));
    f.push_back(number_figure("ttft_s", "TTFT", Format::kSeconds, p.ttft_s, 2));
    f.push_back(number_figure("tpot_s", "TPOT", Format::kSeconds, p.tpot_s, 2));
    f.push_back(explain_ ? traced_figure("decode_step_s", "", Format::kSeconds,
                                         named(explain_point(*row.answer, p).decode_step, "decode step",
                                               "sum of its causes", row.label))
                         : number_figure("decode_step_s", "", Format::kSeconds, p.decode_step_s));
    f.push_back(number_figure("request_time_s", "request", Format::kSeconds, p.request_s));
    f.push_back(number_figure("tokens_per_s", "", Format::kNumber, p.tokens_per_s));
    f.push_back(number_figure("tokens_per_s_per_chip", texts_ ? "texts/s/chip" : "tok/s/chip", Format::kNumber,
                              p.tokens_per_s_per_chip(), 4));
    f.push_back(number_figure("tokens_per_s_per_user", "", Format::kNumber, p.tokens_per_s_per_user()));
    f.push_back(number_figure("requests_per_s", "", Format::kNumber, p.requests_per_s));
    costs(row, f);
    f.push_back(text_figure("bound_by", "", p.bound_by));
    f.push_back(number_figure("memory_bytes.total", "", Format::kBytes, p.memory.total()));
    f.push_back(number_figure("memory_bytes.capacity", "", Format::kBytes, p.capacity));
    return out;
  }

  void costs(const ComparedService& row, std::vector<Figure>& f) const {
    const ServiceCosts costs = service_costs(row);
    f.push_back(traced_figure("chip_hours_per_million_output_tokens", texts_ ? "chip-h/M texts" : "chip-h/M out",
                              Format::kNumber, costs.chip_hours, 5));
    const char* dollars = texts_ ? "$/M texts" : "$/M out";
    f.push_back(costs.usd ? traced_figure("usd_per_million_output_tokens", dollars, Format::kUsd, *costs.usd)
                          : number_figure("usd_per_million_output_tokens", dollars, Format::kUsd, std::nullopt));
    f.push_back(number_figure("energy_j_per_output_token", texts_ ? "J/text" : "J/token", Format::kNumber,
                              row.best().joules_per_output_token, 3));
  }

  void break_even() {
    std::vector<PricedRow> priced;
    for (const ComparedService& row : c_.systems) {
      if (!row.answered()) continue;
      const ServiceCosts costs = service_costs(row);
      priced.push_back({row.label, fmt::format("{}:{}", row.hardware, row.best().chips), costs.chip_hours, costs.usd,
                        row.price ? std::optional(row.price->usd_per_chip_hour) : std::nullopt, row.model});
    }
    add_break_even(out_, priced);
  }

  const ServeComparison& c_;
  bool explain_;
  bool texts_ = false;  ///< [SERVE-ENCODE] answers are texts, each passed once
  std::vector<const ComparedSystem*> rows_;
  Output out_;
};

}  // namespace

Output compare_serve_output(const ServeComparison& comparison, bool explain) {
  return ServiceOutput(comparison, explain).run();
}

}  // namespace scalecalc
