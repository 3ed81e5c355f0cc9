// Chooses a price for each compared system, ranks the systems and checks the expected order.
#include "compare/compared.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include "base/diagnostic.h"
#include "base/text.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

std::optional<int> digits(std::string_view text, std::size_t length) {
  int value = 0;
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  if (text.size() != length || error != std::errc() || at != end || value < 0) return std::nullopt;
  return value;
}

/// Clouds are names, so case does not tell them apart.
bool same(std::string_view a, std::string_view b) { return lower_case(a) == lower_case(b); }

bool allows(const std::vector<std::string>& words, std::string_view word) {
  return words.empty() || std::any_of(words.begin(), words.end(),
                                      [&](const std::string& w) { return w == kAllPrices || same(w, word); });
}

bool several(const std::vector<std::string>& words) {
  return words.size() > 1 || (words.size() == 1 && words.front() == kAllPrices);
}

bool allows(const PriceFilter& filter, const Price& price) {
  if (!allows(filter.clouds, price.cloud) || !allows(filter.kinds, price_kind(price))) return false;
  if (!filter.date) return true;
  const auto months = months_of(price.date);
  return months && months->meets(*filter.date);
}

void require_word(std::string_view flag, const std::vector<std::string>& asked, std::vector<std::string> known,
                  std::vector<Diagnostic>& problems) {
  std::sort(known.begin(), known.end());
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const std::string& word : asked) {
    if (word == kAllPrices || allows(known, word)) continue;
    std::string hint = did_you_mean(nearest(word, known));
    if (!hint.empty()) hint += ' ';
    problems.push_back({{},
                        fmt::format("{}: none of the systems has a price of {}", flag, in_quotes(word)),
                        known.empty() ? "their files have no price; give one: --price 2.5"
                                      : fmt::format("{}there are: {}", hint, join(known, ", "))});
  }
}

}  // namespace

std::optional<MonthRange> months_of(std::string_view text) {
  constexpr int kMonths = 12;
  const std::size_t dash = text.find('-');
  const auto year = digits(text.substr(0, dash), 4);
  if (!year) return std::nullopt;
  const int january = *year * kMonths;
  if (dash == std::string_view::npos) return MonthRange{january, january + kMonths - 1};
  const std::string_view rest = text.substr(dash + 1);
  if (rest.starts_with('Q')) {
    const auto quarter = digits(rest.substr(1), 1);
    if (!quarter || *quarter < 1 || *quarter > 4) return std::nullopt;
    return MonthRange{january + 3 * (*quarter - 1), january + 3 * *quarter - 1};
  }
  if (const auto month = digits(rest, 2)) {
    if (*month < 1 || *month > kMonths) return std::nullopt;
    return MonthRange{january + *month - 1, january + *month - 1};
  }
  const auto until = digits(rest, 4);
  if (!until || *until < *year) return std::nullopt;
  return MonthRange{january, *until * kMonths + kMonths - 1};
}

std::string price_kind(const Price& price) {
  std::string words = price.terms.substr(0, price.terms.find('('));
  while (words.ends_with(' ')) words.pop_back();
  if (const std::size_t at = words.find("-year commitment"); at != std::string::npos) {
    return fmt::format("reserved-{}y", words.substr(0, at));
  }
  std::replace(words.begin(), words.end(), ' ', '-');
  return words;
}

bool is_preemptible(const Price& price) {
  const std::string kind = price_kind(price);
  return same(kind, "spot") || same(kind, "preemptible");
}

std::string price_text(const Price& p) {
  return fmt::format("{:g} USD per chip-hour ({} {}{}{}, {})", p.usd_per_chip_hour, p.cloud, p.terms,
                     p.region.empty() ? "" : " ", p.region, p.date);
}

std::vector<Price> chosen_prices(const std::vector<Price>& prices, const PriceFilter& filter) {
  const bool each = several(filter.clouds) || several(filter.kinds);
  std::vector<Price> out;
  for (const Price& price : prices) {
    if (!allows(filter, price) || (!each && !out.empty())) continue;
    const bool known = std::any_of(out.begin(), out.end(), [&](const Price& p) {
      return same(p.cloud, price.cloud) && price_kind(p) == price_kind(price);
    });
    if (!known) out.push_back(price);
  }
  return out;
}

void require_known(const PriceFilter& filter, const std::vector<Price>& prices) {
  std::vector<std::string> clouds;
  std::vector<std::string> kinds;
  for (const Price& price : prices) {
    clouds.push_back(price.cloud);
    kinds.push_back(price_kind(price));
  }
  std::vector<Diagnostic> problems;
  require_word("--cloud", filter.clouds, clouds, problems);
  require_word("--price-kind", filter.kinds, kinds, problems);
  if (!problems.empty()) throw UserError(std::move(problems));
}

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

std::vector<std::string> without_price(const std::vector<const ComparedSystem*>& rows) {
  std::vector<std::string> out;
  for (const ComparedSystem* row : rows) {
    if (row->answered() && !row->usd) out.push_back(row->label);
  }
  return out;
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
  const bool several = several_models({rows.begin(), rows.end()});
  for (ComparedSystem* row : rows) {
    row->label = several ? fmt::format("{} on {}", row->model, row->hardware) : row->hardware;
  }
  lengthen([&](std::size_t i) { return sizes[i].empty() ? "" : ":" + sizes[i]; });
  lengthen([&](std::size_t i) { return price_label(*rows[i]); });
  lengthen([&](std::size_t i) { return fmt::format("#{}", i + 1); });
}

bool several_models(const std::vector<const ComparedSystem*>& rows) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const ComparedSystem* row) { return row->model != rows.front()->model; });
}

std::pair<std::string, std::string> names_and_titles(const std::vector<const ModelSpec*>& models) {
  std::vector<std::string> names, titles;
  for (const ModelSpec* model : models) {
    if (std::find(names.begin(), names.end(), model->name) != names.end()) continue;
    names.push_back(model->name);
    titles.push_back(model->title);
  }
  return {join(names, ", "), join_and(titles)};
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
    const bool by_price = e.key == ExpectedKey::kCheapest;
    out.push_back({fmt::format("{}={}", kExpectedKeyNames[static_cast<std::size_t>(e.key)], e.system), holds,
                   join(found, ", "), by_price ? without_price(rows) : std::vector<std::string>{}});
  }
  return out;
}

std::string sentence_of(const UserError& error) {
  const Diagnostic& first = error.diagnostics().front();
  return first.hint.empty() ? first.message : fmt::format("{}; {}", first.message, first.hint);
}

namespace {

constexpr std::string_view kGivenTerms = "as given";

bool same_text(const Assumption& a, const Assumption& b) { return a.text == b.text; }

}  // namespace

HardwareSpec hardware_compared(const std::string& name, const std::vector<std::string>& sets, const Catalog& catalog) {
  ConfigNode document = catalog.load(CatalogKind::kHardware, name);
  std::vector<std::string> own;
  std::copy_if(sets.begin(), sets.end(), std::back_inserter(own),
               [](const std::string& set) { return set.starts_with("hw."); });
  apply_sets(own, {{"hw", &document}});
  return load_hardware(document, catalog, Unpublished::kAllowed);
}

std::vector<Price> offers_of(const HardwareSpec& hw, const SystemAsked& asked, const PriceFilter& filter) {
  if (asked.price) return {Price{.usd_per_chip_hour = *asked.price, .terms = std::string(kGivenTerms)}};
  return chosen_prices(hw.prices, asked.prices(filter));
}

std::vector<Assumption> shared_assumptions(const std::vector<std::string>& names,
                                           const std::vector<std::vector<Assumption>>& each) {
  std::vector<Assumption> out;
  const auto said = [&](const Assumption& a) {
    return std::any_of(out.begin(), out.end(), [&](const Assumption& o) { return same_text(o, a); });
  };
  std::vector<Assumption> own;
  for (const std::vector<Assumption>& list : each) {
    for (const Assumption& a : list) {
      std::vector<std::string> who;
      for (std::size_t i = 0; i < each.size(); ++i) {
        if (std::any_of(each[i].begin(), each[i].end(), [&](const Assumption& o) { return same_text(o, a); })) {
          who.push_back(names[i]);
        }
      }
      Assumption text = a;
      if (who.size() < each.size()) {
        const bool named = who.size() == 1 && a.text.starts_with(who.front());
        if (!named) text.text = fmt::format("{}: {}", join(who, ", "), a.text);
        text.of = join(who, ", ");
        const bool known = std::any_of(own.begin(), own.end(), [&](const Assumption& o) { return same_text(o, text); });
        if (!known) own.push_back(std::move(text));
      } else if (!said(a)) {
        out.push_back(std::move(text));
      }
    }
  }
  out.insert(out.end(), own.begin(), own.end());
  return out;
}

Assumption price_assumption(const ComparedSystem& row) {
  Assumption out{fmt::format("{}: no such price is known, so it has no dollars", row.label), "--price", "hardware file",
                 true};
  if (row.price) {
    const bool given = row.price->terms == kGivenTerms;
    const std::string what =
        given ? fmt::format("{:g} USD per chip-hour, as given", row.price->usd_per_chip_hour) : price_text(*row.price);
    out = Assumption{fmt::format("{}: {}", row.label, what), "--price", given ? "command line" : row.price->source};
    out.is(row.price->usd_per_chip_hour);
  }
  out.of = row.label;
  return out;
}

std::optional<Assumption> preemption_assumption(const std::vector<const ComparedSystem*>& rows,
                                                std::string_view failures, bool counted) {
  std::vector<std::string> labels;
  bool ranked = true;
  for (const ComparedSystem* row : rows) {
    if (!row->answered() || !row->price || !is_preemptible(*row->price)) continue;
    labels.push_back(row->label);
    ranked = ranked && row->cost_ranked;
  }
  if (labels.empty()) return std::nullopt;
  const std::string who = join(labels, ", ");
  Assumption out{fmt::format("{}: these chips can be taken back, and how often is not known: their dollars are those "
                             "of a run that never is{}",
                             who, ranked ? "" : ", and do not compete for the cheapest"),
                 std::string(failures), "hardware file", true};
  if (counted) {
    out = {fmt::format("{}: these chips are taken back as often as {} says that any fail", who, failures),
           std::string(failures), "command line"};
  }
  out.as("preemption").is(counted ? "as failures" : "never").of = who;
  return out;
}

}  // namespace scalecalc
