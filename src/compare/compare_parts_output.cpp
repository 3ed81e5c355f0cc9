// Makes the figures that comparisons of training and of serving have in common.
#include "compare/compare_parts_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace scalecalc {
namespace {

std::optional<double> rank(std::size_t place) {
  return place == 0 ? std::nullopt : std::optional(static_cast<double>(place));
}

Record break_even(const PricedRow& row, const PricedRow& other) {
  const UsdOf price = break_even_price(*other.usd, row.chip_hours);
  const std::optional<double> change = row.price ? std::optional(price.value().value() / *row.price - 1) : std::nullopt;
  Figure at = traced_figure("usd_per_chip_hour", "at $/chip-hour", Format::kUsd,
                            named(price, "break-even price against " + other.label,
                                  "other's cost / own chip-hours, docs/model.md [BREAK-EVEN]", row.label));
  return {{text_figure("system", "system", row.label), text_figure("against", "costs as much as", other.label),
           std::move(at), number_figure("usd_per_chip_hour_now", "now", Format::kUsd, row.price, 1),
           number_figure("change", "change", Format::kFraction, change, 2)}};
}

}  // namespace

Figure energy_figure(std::string_view key, std::string_view label, const JoulesOf<Traced>& joules, int importance) {
  Figure out = traced_figure(key, label, Format::kNumber, joules, importance);
  out.shown = energy_text(joules.value().value());
  return out;
}

void add_identity(std::vector<Figure>& out, const ComparedSystem& row) {
  out.push_back(text_figure("system", "system", row.label));
  out.push_back(text_figure("hardware", "", row.hardware));
  out.push_back(text_figure("hardware_title", "", row.title));
  out.push_back(text_figure("model", "", row.model));
  out.push_back(text_figure("status", "", std::string(name_of(row.status))));
  out.push_back(row.answered() ? figure("reason", "", Format::kText, Cell{})
                               : text_figure("reason", "why", row.reason));
  out.push_back(number_figure("rank_time", "", Format::kInteger, rank(row.rank_time)));
  out.push_back(number_figure("rank_cost", "", Format::kInteger, rank(row.rank_cost)));
}

void add_price(std::vector<Figure>& out, const ComparedSystem& row) {
  const Price price = row.price.value_or(Price{});
  const auto known = [&](std::string_view key, const std::string& text) {
    out.push_back(figure(key, "", Format::kText, text.empty() ? Cell{} : Cell(text)));
  };
  out.push_back(number_figure("price.usd_per_chip_hour", "$/chip-hour", Format::kUsd,
                              row.price ? std::optional(price.usd_per_chip_hour) : std::nullopt, 3));
  known("price.cloud", price.cloud);
  known("price.kind", row.price ? price_kind(price) : "");
  known("price.region", price.region);
  known("price.date", price.date);
}

void add_break_even(Output& output, const std::vector<PricedRow>& rows) {
  constexpr std::size_t kMostInAllPairs = 4;
  constexpr std::size_t kBriefRows = 4;
  Block block{.key = "break_even", .title = "Price break-even", .brief_rows = kBriefRows};
  std::vector<std::string> models;
  for (const PricedRow& row : rows) {
    if (std::find(models.begin(), models.end(), row.model) == models.end()) models.push_back(row.model);
  }
  for (const std::string& model : models) {
    std::vector<const PricedRow*> own;
    for (const PricedRow& row : rows) {
      if (row.model == model) own.push_back(&row);
    }
    for (const PricedRow* row : own) {
      for (const PricedRow* other : own) {
        if (own.size() > kMostInAllPairs && row != own.front() && other != own.front()) continue;
        if (row->machine != other->machine && other->usd) block.records.push_back(break_even(*row, *other));
      }
    }
  }
  if (!block.records.empty()) output.blocks.push_back(std::move(block));
}

void add_expectations(Output& output, const std::vector<ExpectationResult>& results) {
  if (results.empty()) return;
  Block block{.key = "expectations", .title = "Expected"};
  for (const ExpectationResult& r : results) {
    block.records.push_back(
        {{text_figure("expected", "expected", r.text), number_figure("holds", "holds", Format::kFlag, r.holds ? 1 : 0),
          text_figure("found", "found", r.found.empty() ? "none" : r.found)}});
  }
  output.blocks.push_back(std::move(block));
}

std::string software_line(const std::vector<std::pair<std::string, std::string>>& of_rows, std::string_view flag) {
  std::vector<std::pair<std::string, std::vector<std::string>>> found;  // in the order of the rows
  for (const auto& [label, software] : of_rows) {
    const auto at =
        std::find_if(found.begin(), found.end(), [&, &of = software](const auto& known) { return known.first == of; });
    (at != found.end() ? *at : found.emplace_back(software, std::vector<std::string>{})).second.push_back(label);
  }
  if (found.empty()) return "";
  std::vector<std::string> out;
  for (const auto& [software, labels] : found) {
    out.push_back(found.size() == 1 ? software : fmt::format("{} ({})", software, join(labels, ", ")));
  }
  const bool engines = flag == "--engine";
  return fmt::format("{}: {}; {} NAME chooses another", engines ? "engine" : "software", join(out, ", "), flag);
}

std::string winners(const std::vector<const ComparedSystem*>& rows, RankBy by) {
  std::vector<std::string> out;
  for (const ComparedSystem* row : rows) {
    if ((by == RankBy::kTime ? row->rank_time : row->rank_cost) == 1) out.push_back(row->label);
  }
  return join_and(out);
}

std::string cheapest_line(const std::vector<const ComparedSystem*>& rows, const std::string& usd) {
  const std::vector<std::string> unpriced = without_price(rows);
  const std::string who = winners(rows, RankBy::kCost);
  if (unpriced.empty()) return who.empty() ? "" : fmt::format("cheapest: {}, {}", who, usd);
  const auto priced =
      std::count_if(rows.begin(), rows.end(), [](const ComparedSystem* row) { return row->answered() && row->usd; });
  const std::string missing = fmt::format("no price for {} (--price {}=USD)", join_and(unpriced), unpriced.front());
  if (who.empty()) return fmt::format("cheapest: unknown, {}", missing);
  return fmt::format("cheapest of the {} with a price: {}, {}; {}", priced, who, usd, missing);
}

void add_unranked(Output& output, const std::vector<const ComparedSystem*>& rows, std::string_view of) {
  std::vector<std::string> out;
  for (const ComparedSystem* row : rows) {
    if (row->answered() && row->usd && !row->cost_ranked) {
      out.push_back(fmt::format("{}, {}{}", row->label, compact_usd(*row->usd), of));
    }
  }
  if (!out.empty()) {
    say(output.summary, Role::kWarning, "if never preempted: {}", join(out, "; "));
  }
}

}  // namespace scalecalc
