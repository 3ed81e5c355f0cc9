// Looks up keys of a config.json under all their names and remembers which were read.
#include "import/hf_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace scalecalc {
namespace {

const ConfigNode* find_path(const ConfigNode& map, std::string_view path) {
  const ConfigNode* node = &map;
  while (node != nullptr) {
    const std::size_t dot = std::min(path.find('.'), path.size());
    node = node->find(path.substr(0, dot));
    if (dot == path.size()) return node;
    path.remove_prefix(dot + 1);
  }
  return nullptr;
}

std::string other_names(HfNames names) {
  const std::vector<std::string> others(names.begin() + 1, names.end());
  return others.empty() ? "" : fmt::format("also read: {}", join(others, ", "));
}

std::optional<double> parsed(const ConfigNode& value) {
  if (value.kind != ConfigNode::Kind::kScalar || value.quoted) return std::nullopt;
  double number = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, error] = std::from_chars(value.text.data(), end, number);
  if (error != std::errc{} || stop != end || !std::isfinite(number)) return std::nullopt;
  return number;
}

}  // namespace

std::string value_text(const ConfigNode& value) {
  switch (value.kind) {
    case ConfigNode::Kind::kScalar: return value.text;
    case ConfigNode::Kind::kSequence:
      return value.items.size() == 1 ? value_text(value.items.front()) : fmt::format("{} items", value.items.size());
    case ConfigNode::Kind::kMap: return fmt::format("{} keys", value.entries.size());
  }
  return "";
}

HfKeys::HfKeys(const ConfigNode& top, const ConfigNode& text, std::string prefix, Problems& problems,
               ImportNotes& notes)
    : top_(top), text_(text), prefix_(std::move(prefix)), problems_(problems), notes_(notes) {}

void HfKeys::mark(const ConfigNode& value, std::string_view key) {
  if (!read_.insert(&value).second) return;
  notes_.read.push_back({std::string(key), value_text(value)});
}

const ConfigNode* HfKeys::find_in(const ConfigNode& map, HfNames names) {
  for (const std::string_view name : names) {
    const ConfigNode* found = find_path(map, name);
    if (found == nullptr) continue;
    const bool nested = &map == &text_ && &text_ != &top_;
    mark(*found, nested ? fmt::format("{}.{}", prefix_, name) : std::string(name));
    return found;
  }
  return nullptr;
}

const ConfigNode* HfKeys::find(HfNames names) { return find_in(text_, names); }

const ConfigNode* HfKeys::find_on_top(HfNames names) {
  const ConfigNode* found = find_in(top_, names);
  const ConfigNode* inside = &text_ == &top_ ? nullptr : find_in(text_, names);
  return found != nullptr && !found->is_null() ? found : inside != nullptr ? inside : found;
}

bool HfKeys::has(HfNames names) {
  const ConfigNode* found = find(names);
  return found != nullptr && !found->is_null();
}

bool HfKeys::is_null(HfNames names) {
  const ConfigNode* found = find(names);
  return found != nullptr && found->is_null();
}

bool HfKeys::says_none(HfNames names) {
  if (!is_null(names)) return false;
  std::string text = fmt::format("{} is null: none", said(names));
  if (std::find(notes_.remarks.begin(), notes_.remarks.end(), text) == notes_.remarks.end()) remark(std::move(text));
  return true;
}

std::optional<double> HfKeys::decimal(const ConfigNode& value, std::string_view key, Range range) {
  const std::optional<double> number = parsed(value);
  if (!number) {
    problems_.add(value.span,
                  fmt::format("'{}' must be a number, not {}", key,
                              value.kind == ConfigNode::Kind::kScalar ? in_quotes(value.text) : kind_name(value.kind)));
    return std::nullopt;
  }
  if (*number >= range.min && *number <= range.max) return number;
  problems_.add(value.span,
                fmt::format("'{}' is {}; it must be from {:g} to {:g}", key, value.text, range.min, range.max));
  return std::nullopt;
}

std::optional<Size> HfKeys::whole(const ConfigNode& value, std::string_view key, Range range) {
  const std::optional<double> number = decimal(value, key, range);
  if (!number) return std::nullopt;
  if (*number == std::floor(*number)) return Size{static_cast<std::int64_t>(*number), value.span, true};
  problems_.add(value.span, fmt::format("'{}' is {}; it must be a whole number", key, value.text));
  return std::nullopt;
}

std::string_view HfKeys::said(HfNames names) const {
  const auto* const found = std::find_if(names.begin(), names.end(),
                                         [&](std::string_view name) { return find_path(text_, name) != nullptr; });
  return found == names.end() ? *names.begin() : *found;
}

std::optional<Size> HfKeys::size(HfNames names, Range range) {
  const ConfigNode* found = find(names);
  if (found == nullptr || found->is_null()) return std::nullopt;
  // A wrong value was given and reported, so the key is not absent: reading goes on as if it were in range.
  return whole(*found, said(names), range).value_or(Size{static_cast<std::int64_t>(range.min), found->span, false});
}

Size HfKeys::required(HfNames names, std::string_view what, Range range) {
  if (const auto found = size(names, range)) return *found;
  const ConfigNode* null = find(names);
  if (null != nullptr) {
    problems_.add(null->span, fmt::format("'{}' ({}) is null, and has no default", said(names), what));
  } else {
    problems_.add(text_.span, fmt::format("the file has no '{}' ({})", *names.begin(), what), other_names(names));
  }
  return {std::max<std::int64_t>(1, static_cast<std::int64_t>(range.min)), text_.span, false};
}

Size HfKeys::size_or(HfNames names, std::int64_t otherwise, Range range) {
  if (const auto found = size(names, range)) return *found;
  defaulted(*names.begin(), std::to_string(otherwise), kClassDefault);
  return {otherwise, text_.span, true};
}

Size HfKeys::size_or_none(HfNames names, Range range) {
  if (const auto found = size(names, range)) return *found;
  if (!says_none(names)) defaulted(*names.begin(), "null", kClassDefault);
  return {0, text_.span, true};
}

bool HfKeys::flag(HfNames names, bool otherwise) {
  const ConfigNode* found = find(names);
  if (found == nullptr || found->is_null()) {
    defaulted(*names.begin(), otherwise ? "true" : "false", kClassDefault);
    return otherwise;
  }
  const bool word = found->kind == ConfigNode::Kind::kScalar && !found->quoted;
  if (word && (found->text == "true" || found->text == "false")) return found->text == "true";
  problems_.add(found->span, fmt::format("'{}' must be true or false", said(names)));
  return otherwise;
}

std::string HfKeys::text_or(HfNames names, std::string otherwise) {
  const ConfigNode* found = find(names);
  if (found == nullptr || found->is_null()) return otherwise;
  if (found->kind == ConfigNode::Kind::kScalar) return found->text;
  problems_.add(found->span, fmt::format("'{}' must be a text, not {}", said(names), kind_name(found->kind)));
  return otherwise;
}

const ConfigNode* HfKeys::list(HfNames names) {
  const ConfigNode* found = find(names);
  if (found == nullptr || found->is_null()) return nullptr;
  if (found->kind == ConfigNode::Kind::kSequence) return found;
  problems_.add(found->span, fmt::format("'{}' must be a list, not {}", said(names), kind_name(found->kind)));
  return nullptr;
}

void HfKeys::defaulted(std::string_view key, std::string value, std::string why) {
  const auto same = [&](const ImportNotes::Default& d) { return d.key == key; };
  if (std::any_of(notes_.defaults.begin(), notes_.defaults.end(), same)) return;
  notes_.defaults.push_back({std::string(key), std::move(value), std::move(why)});
}

void HfKeys::remark(std::string text) { notes_.remarks.push_back(std::move(text)); }
void HfKeys::warn(std::string text) { notes_.warnings.push_back(std::move(text)); }

bool HfKeys::any_read(const ConfigNode& map) const {
  return std::any_of(map.entries.begin(), map.entries.end(),
                     [&](const ConfigNode::Entry& e) { return was_read(e.value); });
}

void HfKeys::list_ignored(const ConfigNode& map, const std::string& prefix) {
  for (const ConfigNode::Entry& entry : map.entries) {
    if (read_.contains(&entry.value)) continue;
    if (&entry.value == &text_ || any_read(entry.value)) {
      list_ignored(entry.value, prefix + entry.key + ".");
    } else {
      notes_.ignored.push_back(prefix + entry.key);
    }
  }
}

std::vector<std::string> HfKeys::unread() const {
  std::vector<std::string> out;
  for (const ConfigNode* map : {&top_, &text_}) {
    for (const ConfigNode::Entry& entry : map->entries) {
      const bool read = was_read(entry.value) || &entry.value == &text_;
      if (!read && std::find(out.begin(), out.end(), entry.key) == out.end()) out.push_back(entry.key);
    }
    if (&text_ == &top_) break;
  }
  return out;
}

void HfKeys::list_ignored() { list_ignored(top_, ""); }

}  // namespace scalecalc
