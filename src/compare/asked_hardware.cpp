#include "compare/asked_hardware.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "spec/load.h"

namespace scalecalc {
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
  if (!row.price) {
    return {fmt::format("{}: no such price is known, so it has no dollars", row.label), "--price", "hardware file",
            true};
  }
  if (row.price->terms == kGivenTerms) {
    return {fmt::format("{}: {:g} USD per chip-hour, as given", row.label, row.price->usd_per_chip_hour), "--price",
            "command line"};
  }
  return {fmt::format("{}: {}", row.label, price_text(*row.price)), "--price", row.price->source};
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
  if (counted) {
    return Assumption{fmt::format("{}: these chips are taken back as often as {} says that any fail", who, failures),
                      std::string(failures), "command line"};
  }
  return Assumption{
      fmt::format("{}: these chips can be taken back, and how often is not known: their dollars are those "
                  "of a run that never is{}",
                  who, ranked ? "" : ", and do not compete for the cheapest"),
      std::string(failures), "hardware file", true};
}

}  // namespace scalecalc
