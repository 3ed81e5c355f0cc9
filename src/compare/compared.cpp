#include "compare/compared.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/text.h"

namespace scalecalc {
namespace {

using FigureOf = std::optional<double> ComparedSystem::*;

/// What a row is compared by; nothing if it does not take part.
std::optional<double> entry_of(const ComparedSystem& row, FigureOf figure) {
  if (!row.answered() || (figure == &ComparedSystem::usd && !row.cost_ranked)) return std::nullopt;
  return row.*figure;
}

std::vector<std::string> best_of(const std::vector<const ComparedSystem*>& rows, FigureOf figure) {
  double least = std::numeric_limits<double>::max();
  for (const ComparedSystem* row : rows) least = std::min(least, entry_of(*row, figure).value_or(least));
  std::vector<std::string> out;
  for (const ComparedSystem* row : rows) {
    if (entry_of(*row, figure) == least) out.push_back(row->label);
  }
  return out;
}

std::vector<std::string> labels_that_are(ExpectedKey key, const std::vector<const ComparedSystem*>& rows) {
  switch (key) {
    case ExpectedKey::kCheapest: return best_of(rows, &ComparedSystem::usd);
    case ExpectedKey::kFastest: return best_of(rows, &ComparedSystem::time_s);
    case ExpectedKey::kLeastEnergy: return best_of(rows, &ComparedSystem::joules);
    case ExpectedKey::kPossible: break;
  }
  std::vector<std::string> out;
  for (const ComparedSystem* row : rows) {
    if (row->answered()) out.push_back(row->label);
  }
  return out;
}

std::size_t rank_of(const ComparedSystem& row, const std::vector<ComparedSystem*>& rows, FigureOf figure) {
  const std::optional<double> own = entry_of(row, figure);
  if (!own) return 0;
  return 1 + static_cast<std::size_t>(std::count_if(rows.begin(), rows.end(), [&](const ComparedSystem* other) {
           return entry_of(*other, figure).value_or(*own) < *own;
         }));
}

void require_system(const std::string& name, const std::vector<const ComparedSystem*>& rows) {
  std::vector<std::string> known;
  for (const ComparedSystem* row : rows) {
    if (row->label == name || row->hardware == name) return;
    known.push_back(row->label);
  }
  std::string hint = did_you_mean(nearest(name, known));
  if (!hint.empty()) hint += ' ';
  throw UserError(fmt::format("--expect names {}, which is not compared", in_quotes(name)),
                  fmt::format("{}systems: {}", hint, join(known, ", ")));
}

std::string price_label(const ComparedSystem& row) {
  return row.price ? fmt::format("@{}/{}", row.price->cloud, price_kind(*row.price)) : "";
}

}  // namespace

PriceFilter SystemAsked::prices(const PriceFilter& of_all) const {
  PriceFilter out = of_all;
  if (!cloud.empty()) out.clouds = {cloud};
  if (!kind.empty()) out.kinds = {kind};
  return out;
}

void rank_systems(const std::vector<ComparedSystem*>& rows, bool preemptions_counted) {
  const bool alike = std::all_of(rows.begin(), rows.end(), [](const ComparedSystem* row) {
    return !row->answered() || !row->price || is_preemptible(*row->price);
  });
  for (ComparedSystem* row : rows) {
    row->cost_ranked = preemptions_counted || alike || !row->price || !is_preemptible(*row->price);
  }
  for (ComparedSystem* row : rows) {
    row->rank_time = rank_of(*row, rows, &ComparedSystem::time_s);
    row->rank_cost = rank_of(*row, rows, &ComparedSystem::usd);
  }
}

std::vector<std::size_t> order_by(RankBy by, const std::vector<const ComparedSystem*>& rows) {
  const auto key = [&](std::size_t i) {
    const std::size_t rank = by == RankBy::kTime ? rows[i]->rank_time : rows[i]->rank_cost;
    return std::tuple(!rows[i]->answered(), rank == 0 ? rows.size() + 1 : rank);
  };
  std::vector<std::size_t> out(rows.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) { return key(a) < key(b); });
  return out;
}

void label_systems(const std::vector<ComparedSystem*>& rows, const std::vector<std::string>& sizes) {
  const auto taken = [&](const std::string& label, std::size_t self) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (i != self && rows[i]->label == label) return true;
    }
    return false;
  };
  const auto lengthen = [&](auto what) {
    std::vector<std::string> longer;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      longer.push_back(rows[i]->label + (taken(rows[i]->label, i) ? what(i) : std::string()));
    }
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i]->label = longer[i];
  };
  for (ComparedSystem* row : rows) row->label = row->hardware;
  lengthen([&](std::size_t i) { return sizes[i].empty() ? "" : ":" + sizes[i]; });
  lengthen([&](std::size_t i) { return price_label(*rows[i]); });
  lengthen([&](std::size_t i) { return fmt::format("#{}", i + 1); });
}

std::vector<ExpectationResult> check_expectations(const std::vector<Expectation>& asked,
                                                  const std::vector<const ComparedSystem*>& rows) {
  std::vector<ExpectationResult> out;
  for (const Expectation& e : asked) {
    require_system(e.system, rows);
    const std::vector<std::string> found = labels_that_are(e.key, rows);
    const bool holds = std::any_of(rows.begin(), rows.end(), [&](const ComparedSystem* row) {
      return (row->label == e.system || row->hardware == e.system) &&
             std::find(found.begin(), found.end(), row->label) != found.end();
    });
    out.push_back(
        {fmt::format("{}={}", kExpectedKeyNames[static_cast<std::size_t>(e.key)], e.system), holds, join(found, ", ")});
  }
  return out;
}

std::string sentence_of(const UserError& error) {
  const Diagnostic& first = error.diagnostics().front();
  return first.hint.empty() ? first.message : fmt::format("{}; {}", first.message, first.hint);
}

}  // namespace scalecalc
