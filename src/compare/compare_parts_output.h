// What the outputs of a training and of a serving comparison share.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/train_comparison.h"
#include "report/brief_blocks.h"
#include "report/output.h"

namespace scalecalc {

/// A figure with its working.
template <class Working>
Figure traced_figure(std::string_view key, std::string_view label, Format format, const Working& working,
                     int importance = 0) {
  return with_importance(figure(key, label, format, working), importance);
}
/// Joules, which people read in watt-hours.
Figure energy_figure(std::string_view key, std::string_view label, const JoulesOf<Traced>& joules, int importance = 0);

/// Label, hardware, status, reason, ranks.
void add_identity(std::vector<Figure>& out, const ComparedSystem& row);
/// Dollars per chip and hour, and whose price that is.
void add_price(std::vector<Figure>& out, const ComparedSystem& row);

/// A row's cost, for comparison with another's.
struct PricedRow {
  std::string label;
  std::string machine;  ///< rows that share it cost the same hours at every price
  Traced chip_hours;
  std::optional<UsdOf> usd;
  std::optional<double> price;
  std::string model;  ///< another one's tokens are not the same: rows of one model are compared alone
};
/// For each pair of one model: the price of the one at which it costs as much as the other does now. Of many rows of a
/// model the pairs with its first alone. Nothing if there is no pair.
void add_break_even(Output& output, const std::vector<PricedRow>& rows);

/// Nothing if nothing was expected.
void add_expectations(Output& output, const std::vector<ExpectationResult>& results);
/// "software: torchtitan 2026-08 (h100-sxm), maxtext 2026-08 (tpu-v5p); --stack NAME chooses another". `of_rows` has
/// the label of each answered system and its software; `flag` is --stack or --engine. Empty without any.
std::string software_line(const std::vector<std::pair<std::string, std::string>>& of_rows, std::string_view flag);
/// "fastest", "cheapest": the rows of rank 1 with their figures.
std::string winners(const std::vector<const ComparedSystem*>& rows, RankBy by);
/// "cheapest: h100-sxm, $22.1k"; where systems have no price, of how many priced ones, and which have none.
/// `usd` is the winner's cost in words. Without any price it says so. Empty if no system was answered.
std::string cheapest_line(const std::vector<const ComparedSystem*>& rows, const std::string& usd);
/// For the first row of rank 1 by time and by cost the command that plans it alone; `alone` has the flags of its plan.
template <class Row, class Alone>
Block winners_alone(const std::vector<Row>& rows, const Alone& alone) {
  std::vector<Line> out;
  bool fastest = true, cheapest = true;  // not found yet
  for (const Row& row : rows) {
    const bool first = (fastest && row.rank_time == 1) || (cheapest && row.rank_cost == 1);
    if (!row.answered() || !first) continue;
    fastest = fastest && row.rank_time != 1;
    cheapest = cheapest && row.rank_cost != 1;
    NextQuestion next = alone(row);
    if (!row.asked.model.empty()) next.words = {row.asked.model};
    if (row.price) next.flags.push_back({"--price", fmt::format("{}", row.price->usd_per_chip_hour)});
    out.push_back({"the plan of " + row.label + ":"});
    out.push_back(next_line(std::move(next)));
  }
  return next_block(std::move(out));
}
/// A line of the summary with what is left out of "cheapest" and its dollars; `of`: " a million output tokens".
void add_unranked(Output& output, const std::vector<const ComparedSystem*>& rows, std::string_view of = "");
/// What either comparison says of the question beside its flags.
template <class Comparison>
Record compared_query(const char* task, const Comparison& c, const std::vector<SystemAsked>& systems) {
  std::vector<Cell> names;
  names.reserve(systems.size());
  // Of several models the systems stand there for each: here they are named as they were asked.
  const std::string first = systems.empty() ? "" : systems.front().model;
  for (const SystemAsked& s : systems) {
    if (s.model == first) names.emplace_back(s.hardware);
  }
  return {{datum("task", task), datum("model", c.model), datum("model_title", c.model_title),
           list_figure("hardware", "", std::move(names)),
           datum("ranked_by", std::string(kRankByNames[static_cast<std::size_t>(c.rank_by)]))}};
}

}  // namespace scalecalc
