// Restricts a search to the layouts that a framework's launch files can express.
#include "launch/sayable.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/diagnostic.h"
#include "base/text.h"
#include "plan/layout_rules.h"

namespace scalecalc {
namespace {

using Relation = SupportCondition::Relation;

const SupportQuantity* quantity(std::string_view name) {
  const auto all = support_quantities();
  const auto found = std::find_if(all.begin(), all.end(), [&](const SupportQuantity& q) { return q.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::optional<std::int64_t> value_named(const SupportQuantity& of, std::string_view text) {
  if (of.kind == DimensionKind::kSwitch) return text == "on" ? 1 : 0;
  if (of.kind == DimensionKind::kWord) {
    const auto at = std::find(of.words.begin(), of.words.end(), text);
    if (at == of.words.end()) return std::nullopt;
    return of.least + (at - of.words.begin());
  }
  std::int64_t out = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), out);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return out;
}

SupportCondition above_one(std::string_view name) {
  return {
      .of = quantity(name), .relation = Relation::kAbove, .values = {}, .factor = 1, .factors = {}, .product = true};
}

/// Where a dimension decides anything.
std::vector<SupportCondition> where_it_matters(std::string_view name) {
  const std::string_view degree = matters_with(name);
  return degree.empty() ? std::vector<SupportCondition>{} : std::vector{above_one(degree)};
}

/// The values that rows say of each word or number; nothing of what a product counts, or of what is not said to be
/// anything where its argument is absent.
std::map<std::string, std::set<std::string>> values_said(const LaunchFramework& framework) {
  std::map<std::string, std::set<std::string>> out;
  std::set<std::string> counted, concluded;
  for (const LaunchRow& row : framework.rows) {
    if (row.value.find_first_of("'@[") != 0) {
      for (const LaunchFactor& factor : parse_product(row.value)) counted.insert(factor.name);
    }
    if (row.use == RowUse::kRead) continue;
    for (const auto& [name, value] : said(row.says)) {
      out[name].insert(value);
      if (row.value.empty()) concluded.insert(name);
    }
  }
  std::erase_if(out, [&](const auto& pair) { return !concluded.contains(pair.first); });
  for (const std::string& name : counted) out.erase(name);
  return out;
}

void refuse_parts_of_offload(const std::set<std::string>& words, const std::string& source, StackRelease& out) {
  for (const std::string part : {"optimizer", "weights", "activations"}) {
    if (std::any_of(words.begin(), words.end(), [&](const auto& w) { return w.find(part) != std::string::npos; }))
      continue;
    out.facts.push_back({.name = "file: offload=" + part,
                         .says = fmt::format("a launch file says no offload of the {}", part),
                         .source = source,
                         .refused_if = {{.of = quantity("offload_" + part), .values = {1}, .factors = {}}}});
  }
}

/// "cp>1,pp>1" as conditions; nothing if it asks for what no layout decides.
std::optional<std::vector<SupportCondition>> conditions_of(std::string_view when) {
  std::vector<SupportCondition> out;
  for (std::size_t at = 0; at < when.size();) {
    const std::size_t end = std::min(when.find(',', at), when.size());
    const std::string_view one = when.substr(at, end - at);
    at = end + 1;
    const std::size_t sign = one.find_first_of("=<>!");
    if (sign == std::string_view::npos) return std::nullopt;
    const SupportQuantity* of = quantity(one.substr(0, sign));
    const auto value = of == nullptr ? std::nullopt : value_named(*of, one.substr(sign + 1));
    if (!value) return std::nullopt;
    SupportCondition condition{.of = of, .values = {*value}, .factors = {}};
    condition.negated = one[sign] == '!';
    if (one[sign] == '<' || one[sign] == '>') {
      condition.relation = one[sign] == '<' ? Relation::kBelow : Relation::kAbove;
      condition.factor = *value;
      condition.product = true;
      condition.values.clear();
    }
    out.push_back(std::move(condition));
  }
  return out;
}

}  // namespace

StackRelease sayable_release(const LaunchFramework& framework, const StackRelease& release) {
  StackRelease out = release;
  const std::string source(framework.source);
  for (const auto& [name, words] : values_said(framework)) {
    if (name == "offload") {
      refuse_parts_of_offload(words, source, out);
      continue;
    }
    const SupportQuantity* of = quantity(name);
    if (of == nullptr || (of->level == 0 && of->dimension == nullptr)) continue;
    SupportFact fact{.name = "file: " + name,
                     .says = fmt::format("a launch file says {} {}", name, join({words.begin(), words.end()}, " or ")),
                     .source = source,
                     .refused_if = where_it_matters(name)};
    SupportCondition other{.of = of, .negated = true, .values = {}, .factors = {}};
    for (const std::string& word : words) {
      if (const auto value = value_named(*of, word)) other.values.push_back(*value);
    }
    fact.refused_if.push_back(std::move(other));
    out.facts.push_back(std::move(fact));
  }
  for (const LaunchLimit& limit : framework.limits) {
    const auto when = conditions_of(limit.when);
    if (!when) continue;
    out.facts.push_back({.name = "file: " + std::string(limit.when),
                         .says = std::string(limit.says),
                         .source = std::string(limit.source),
                         .refused_if = *when});
  }
  if (out.facts.size() > kMostFacts) {
    throw UserError(fmt::format("{} and what a file of {} cannot say are {} facts", release.name(), framework.title,
                                out.facts.size()),
                    fmt::format("at most {} decide a layout; merge facts of the stack's release", kMostFacts));
  }
  for (SupportFact& fact : out.facts) {
    if (fact.levels != 0 || !fact.name.starts_with("file: ")) continue;
    for (const SupportCondition& condition : fact.refused_if) fact.levels |= condition.levels();
  }
  out.group_facts();
  return out;
}

}  // namespace scalecalc
