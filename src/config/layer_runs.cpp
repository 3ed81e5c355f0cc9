#include "config/layer_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "base/units.h"

namespace scalecalc {
namespace {

struct Run {
  std::int64_t repeat = 0;
  std::int64_t kinds = 0;
  std::int64_t length() const { return repeat * kinds; }
};

std::optional<Run> run_of(const ConfigNode& node) {
  if (node.kind != ConfigNode::Kind::kMap) return std::nullopt;
  const ConfigNode* repeat = node.find("repeat");
  const ConfigNode* kinds = node.find("kinds");
  if (repeat == nullptr || repeat->kind != ConfigNode::Kind::kScalar) return std::nullopt;
  if (kinds == nullptr || kinds->kind != ConfigNode::Kind::kSequence || kinds->items.empty()) return std::nullopt;
  const auto count = parse_quantity(repeat->text, UnitKind::kCount);
  const double* value = std::get_if<double>(&count);
  constexpr double kMost = 1e9;  // keeps the products exact
  if (value == nullptr || *value < 1 || *value > kMost) return std::nullopt;
  return Run{static_cast<std::int64_t>(*value), static_cast<std::int64_t>(kinds->items.size())};
}

std::vector<Run> runs_of(const ConfigNode& node) {
  std::vector<Run> out;
  for (const ConfigNode& item : node.items) {
    const auto run = run_of(item);
    if (!run) return {};
    out.push_back(*run);
  }
  return out;
}

std::int64_t length_of(const std::vector<Run>& runs) {
  std::int64_t out = 0;
  for (const Run& run : runs) out += run.length();
  return out;
}

}  // namespace

std::optional<std::int64_t> run_length(const ConfigNode& node) {
  const std::vector<Run> runs = runs_of(node);
  if (node.kind != ConfigNode::Kind::kSequence || runs.empty()) return std::nullopt;
  return length_of(runs);
}

void set_run_length(ConfigNode& list, std::int64_t total, std::string_view name, const SourceSpan& where) {
  const std::vector<Run> runs = runs_of(list);
  const auto longest =
      std::max_element(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.length() < b.length(); });
  const std::int64_t others = length_of(runs) - longest->length();
  const std::int64_t left = total - others;
  if (left < longest->kinds || left % longest->kinds != 0) {
    const std::int64_t below = others + std::max<std::int64_t>(1, left / longest->kinds) * longest->kinds;
    const std::string nearest = left < longest->kinds ? fmt::format("{} or more", below)
                                                      : fmt::format("{} or {}", below, below + longest->kinds);
    throw UserError({Diagnostic{
        where,
        fmt::format("'{}' cannot be {}: its longest run repeats {} and the others make {}", name, total,
                    longest->kinds == 1 ? "one layer" : fmt::format("{} layers", longest->kinds), others),
        fmt::format("nearest: {}; each run by itself: {}.{}.repeat=N", nearest, name, longest - runs.begin())}});
  }
  ConfigNode& item = list.items[static_cast<std::size_t>(longest - runs.begin())];
  const auto repeat = std::find_if(item.entries.begin(), item.entries.end(),
                                   [](const ConfigNode::Entry& entry) { return entry.key == "repeat"; });
  repeat->value = ConfigNode{};
  repeat->value.text = std::to_string(left / longest->kinds);
  repeat->value.span = where;
}

}  // namespace scalecalc
