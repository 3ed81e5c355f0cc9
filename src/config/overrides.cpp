// Replaces one field of a document from the command line, for --set. The new value carries the flag as its source
// line, so that a wrong unit or an unknown key is shown in the flag itself.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/units.h"
#include "config/catalog.h"

namespace scalecalc {
namespace {

/// Of a list written as runs, `[{repeat: 3, kinds: [a]}, {repeat: 29, kinds: [b, c]}]`, stretched to another length.
struct ListRun {
  std::int64_t repeat = 0;
  std::int64_t kinds = 0;
  std::int64_t length() const { return repeat * kinds; }
};

std::optional<ListRun> run_of(const ConfigNode& node) {
  if (node.kind != ConfigNode::Kind::kMap) return std::nullopt;
  const ConfigNode* repeat = node.find("repeat");
  const ConfigNode* kinds = node.find("kinds");
  if (repeat == nullptr || repeat->kind != ConfigNode::Kind::kScalar) return std::nullopt;
  if (kinds == nullptr || kinds->kind != ConfigNode::Kind::kSequence || kinds->items.empty()) return std::nullopt;
  const auto count = parse_quantity(repeat->text, UnitKind::kCount);
  const double* value = std::get_if<double>(&count);
  constexpr double kMost = 1e9;  // keeps the products exact
  if (value == nullptr || *value < 1 || *value > kMost) return std::nullopt;
  return ListRun{static_cast<std::int64_t>(*value), static_cast<std::int64_t>(kinds->items.size())};
}

std::vector<ListRun> runs_of(const ConfigNode& node) {
  std::vector<ListRun> out;
  for (const ConfigNode& item : node.items) {
    const auto run = run_of(item);
    if (!run) return {};
    out.push_back(*run);
  }
  return out;
}

std::int64_t length_of(const std::vector<ListRun>& runs) {
  std::int64_t out = 0;
  for (const ListRun& run : runs) out += run.length();
  return out;
}

/// Entries a list of runs stands for: repeat x kinds, summed. Nothing if `node` is not such a list, or if a repeat is
/// not a count: whoever reads the document says what is wrong with it.
std::optional<std::int64_t> run_length(const ConfigNode& node) {
  const std::vector<ListRun> runs = runs_of(node);
  if (node.kind != ConfigNode::Kind::kSequence || runs.empty()) return std::nullopt;
  return length_of(runs);
}

/// Changes `repeat` of the longest run (the first of equals) so that `list` stands for `total` entries; the new value
/// stands at `where`. UserError at `where` if no repeat of one or more gives that total, naming the nearest that can.
/// `list` must have a run_length; `name` is for the message.
void set_run_length(ConfigNode& list, std::int64_t total, std::string_view name, const SourceSpan& where) {
  const std::vector<ListRun> runs = runs_of(list);
  const auto longest = std::max_element(runs.begin(), runs.end(),
                                        [](const ListRun& a, const ListRun& b) { return a.length() < b.length(); });
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

/// Places inside the flag's text. The path and the value stand at its end: "--set hw.hbm.bandwidth=5TB/s".
class Flag {
 public:
  Flag(std::string_view path, std::string_view value, std::string_view text) : text_(text) {
    if (text.ends_with(value)) value_at_ = text.size() - value.size();
    const std::size_t found = text.substr(0, value_at_).rfind(path);
    if (!path.empty() && found != std::string_view::npos) path_at_ = found;
  }

  /// A part of the path: `at` counts from the path's start.
  SourceSpan path_span(std::size_t at, std::size_t size) const { return span(path_at_ + at, size); }
  SourceSpan value_span(std::size_t size) const { return span(value_at_, size); }

 private:
  SourceSpan span(std::size_t at, std::size_t size) const {
    SourceSpan out;
    out.file = "<command line>";
    out.line_text = SharedText(text_);
    const std::size_t begin = std::min(at, text_.size());
    out.column = static_cast<int>(count_characters(text_.substr(0, begin)) + 1);
    out.length = std::max(1, static_cast<int>(count_characters(text_.substr(begin, size))));
    return out;
  }

  std::string_view text_;
  std::size_t path_at_ = 0;
  std::size_t value_at_ = 0;
};

[[noreturn]] void fail(SourceSpan where, std::string message, std::string hint = "") {
  throw UserError({Diagnostic{std::move(where), std::move(message), std::move(hint)}});
}

std::vector<std::string> item_names(const ConfigNode& list) {
  std::vector<std::string> out;
  for (const ConfigNode& item : list.items) {
    if (!item_name(item).empty()) out.emplace_back(item_name(item));
  }
  return out;
}

std::string positions(const ConfigNode& list) {
  if (list.items.empty()) return "it is empty";
  std::string out = fmt::format("its items are 0 to {}", list.items.size() - 1);
  const std::vector<std::string> names = item_names(list);
  return names.empty() ? out : out + ", by name " + join(names, ", ");
}

/// An item by its position from 0, or by its name.
ConfigNode& item_at(ConfigNode& list, std::string_view name, std::string_view segment, const SourceSpan& where) {
  for (ConfigNode& item : list.items) {
    if (item_name(item) == segment) return item;
  }
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(segment.data(), segment.data() + segment.size(), index);
  if (end != segment.data() + segment.size() || (error != std::errc{} && error != std::errc::result_out_of_range)) {
    const std::string hint = did_you_mean(nearest(segment, item_names(list)));
    fail(where, fmt::format("'{}' is a list, and {} is no position or name in it", name, in_quotes(segment)),
         hint.empty() ? positions(list) : hint + ' ' + positions(list));
  }
  if (error != std::errc{} || index >= list.items.size()) {
    fail(where, fmt::format("'{}' has no item {}", name, segment), positions(list));
  }
  return list.items[index];
}

/// The field of a map, added if it is not there: a misspelt one is reported as unknown when the document is read.
ConfigNode& field_of(ConfigNode& map, std::string_view segment, const SourceSpan& where) {
  for (ConfigNode::Entry& entry : map.entries) {
    if (entry.key == segment) return entry.value;
  }
  ConfigNode empty;
  empty.span = where;
  map.entries.push_back({std::string(segment), where, std::move(empty)});
  return map.entries.back().value;
}

/// One step down the path. `name` is the path so far, for messages.
ConfigNode& step(ConfigNode& node, std::string_view name, std::string_view segment, const SourceSpan& where) {
  // A block that its source does not give may be given here, field by field; where it comes from is then the flag.
  const bool unpublished = node.kind == ConfigNode::Kind::kScalar && node.text == "unpublished";
  if (unpublished) node.span = where;
  if (unpublished || node.is_null()) {
    node.kind = ConfigNode::Kind::kMap;
    node.text.clear();
  }
  switch (node.kind) {
    case ConfigNode::Kind::kSequence: return item_at(node, name, segment, where);
    case ConfigNode::Kind::kMap: return field_of(node, segment, where);
    case ConfigNode::Kind::kScalar: break;
  }
  fail(where, fmt::format("'{}' is {}, which has no fields", name, in_quotes(node.text)),
       fmt::format("set '{}' itself", name));
}

/// A list of runs that is set to a plain count keeps its runs.
void set_length(ConfigNode& list, std::string_view path, std::string_view value, const SourceSpan& where) {
  const auto count = parse_quantity(value, UnitKind::kCount);
  const double* total = std::get_if<double>(&count);
  if (total == nullptr || *total < 1) {
    fail(where, fmt::format("'{}' is a list; {} is not a count for its length", path, in_quotes(value)),
         fmt::format("a count such as {}={}, or one item of it: {}", path, run_length(list).value_or(1),
                     positions(list)));
  }
  set_run_length(list, static_cast<std::int64_t>(*total), path, where);
}

void add_paths(const ConfigNode& node, const std::string& path, std::map<const ConfigNode*, std::string>& out) {
  const auto below = [&](const ConfigNode& child, std::string_view segment) {
    add_paths(child, path.empty() ? std::string(segment) : fmt::format("{}.{}", path, segment), out);
  };
  if (node.kind == ConfigNode::Kind::kMap) out.emplace(&node, path);
  for (const ConfigNode::Entry& entry : node.entries) below(entry.value, entry.key);
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const std::string_view name = item_name(node.items[i]);
    below(node.items[i], name.empty() ? std::to_string(i) : std::string(name));
  }
}

}  // namespace

void apply_override(ConfigNode& document, std::string_view path, std::string_view value, std::string_view flag_text) {
  constexpr std::size_t kLongestPath = 256;
  const Flag flag(path, value, flag_text);
  if (value.empty())
    fail(flag.path_span(0, path.size()), fmt::format("no value for {}", in_quotes(path)), "write KEY=VALUE");
  if (path.size() > kLongestPath) fail(flag.path_span(0, path.size()), "the name of the field is too long");
  ConfigNode* node = &document;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('.', at), path.size());
    const std::string_view segment = path.substr(at, end - at);
    const SourceSpan where = flag.path_span(at, segment.size());
    if (segment.empty())
      fail(where, fmt::format("{} has an empty part", in_quotes(path)), "write KEY=VALUE, as in hbm.bandwidth=5TB/s");
    node = &step(*node, at == 0 ? "the document" : path.substr(0, at - 1), segment, where);
    at = end + 1;
  }
  const SourceSpan where = flag.value_span(value.size());
  if (run_length(*node)) return set_length(*node, path, value, where);
  *node = ConfigNode{};
  node->text = value;
  node->span = where;
}

void apply_sets(const std::vector<std::string>& sets, const std::vector<OverrideTarget>& targets) {
  std::vector<std::string> forms;
  for (const OverrideTarget& target : targets) forms.push_back(fmt::format("{}.KEY=VALUE", target.scope));
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    const std::size_t dot = set.find('.');
    const std::string_view scope = std::string_view(set).substr(0, std::min(dot, set.size()));
    const auto target = std::find_if(targets.begin(), targets.end(),
                                     [&](const OverrideTarget& candidate) { return candidate.scope == scope; });
    if (equals == std::string::npos || dot == std::string::npos || dot > equals || target == targets.end()) {
      throw UserError(fmt::format("--set {}: expected {}", set, join(forms, " or ")),
                      fmt::format("for example --set {}",
                                  targets.front().scope == "hw" ? "hw.hbm.bandwidth=5TB/s" : "model.vocab=32000"));
    }
    apply_override(*target->document, set.substr(dot + 1, equals - dot - 1), set.substr(equals + 1), "--set " + set);
  }
}

std::map<const ConfigNode*, std::string> override_paths(const ConfigNode& document) {
  std::map<const ConfigNode*, std::string> out;
  add_paths(document, "", out);
  return out;
}

}  // namespace scalecalc
