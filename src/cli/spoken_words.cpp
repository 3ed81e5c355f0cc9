// Reads words that are not flags, such as a shape or KEY=VALUE, and marks where one is wrong.
#include "cli/spoken_words.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/sweep.h"
#include "base/text.h"
#include "cli/foreign_words.h"

namespace scalecalc::cli {
namespace {

std::string limits(const SizeRule& rule) {
  if (rule.kind == UnitKind::kCount) {
    return fmt::format("a whole number from {} to {}", group_thousands(static_cast<long long>(rule.least)),
                       group_thousands(static_cast<long long>(rule.most)));
  }
  return std::string(accepted_forms(rule.kind));
}

}  // namespace

SpokenWords::SpokenWords(std::vector<std::string> words) : words_(std::move(words)) {
  for (const std::string& word : words_) {
    if (!line_.empty()) line_ += ' ';
    starts_.push_back(line_.size());
    line_ += word;
  }
}

SourceSpan SpokenWords::marked(std::size_t begin, std::size_t size) const {
  SourceSpan out;
  out.file = "<command line>";
  out.line_text = line_;
  const std::string_view line = line_;
  out.column = static_cast<int>(count_characters(line.substr(0, begin)) + 1);
  out.length = std::max(1, static_cast<int>(count_characters(line.substr(begin, size))));
  return out;
}

SourceSpan SpokenWords::span(std::size_t word, std::size_t at, std::size_t size) const {
  return marked(starts_[word] + at, size);
}

SourceSpan SpokenWords::end() const { return marked(line_.size(), 0); }

std::vector<double> read_sizes(std::string_view text, const SourceSpan& where, const SizeRule& rule,
                               std::vector<Diagnostic>& problems) {
  // Sizes in bytes are all behind a word that says so: bytes=8.2e8.
  const auto parsed = parse_sweep(text, rule.kind, rule.kind == UnitKind::kBytes);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    problems.push_back({where, error->message, error->hint});
    return {};
  }
  const auto& values = std::get<std::vector<double>>(parsed);
  const bool within =
      std::all_of(values.begin(), values.end(), [&](double v) { return v >= rule.least && v <= rule.most; });
  if (within) return values;
  problems.push_back({where, fmt::format("{} is out of range", in_quotes(text)), limits(rule)});
  return {};
}

std::optional<double> read_size(std::string_view text, const SourceSpan& where, const SizeRule& rule,
                                std::vector<Diagnostic>& problems) {
  const std::vector<double> values = read_sizes(text, where, rule, problems);
  if (values.size() == 1) return values.front();
  if (!values.empty()) {
    problems.push_back({where, fmt::format("{} is a sweep, and one size is expected here", in_quotes(text)), ""});
  }
  return std::nullopt;
}

KeyWords::KeyWords(const SpokenWords& words, std::size_t first, std::vector<Diagnostic>& problems)
    : words_(words), problems_(problems) {
  for (std::size_t i = first; i < words.size(); ++i) {
    const std::string& word = words[i];
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == word.size()) {
      problems_.push_back({words.span(i), fmt::format("{} is not KEY=VALUE", in_quotes(word)), ""});
      continue;
    }
    const std::string key = word.substr(0, equals);
    const bool again = std::any_of(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
    if (again) {
      problems_.push_back({words.span(i, 0, equals), fmt::format("{} is given twice", in_quotes(key)), ""});
      continue;
    }
    entries_.push_back({key, word.substr(equals + 1), i});
  }
}

const KeyWords::Entry* KeyWords::find(std::string_view key) {
  known_.emplace_back(key);
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  return found == entries_.end() ? nullptr : &*found;
}

SourceSpan KeyWords::span(std::string_view key) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.key == key; });
  if (found == entries_.end()) return words_.end();
  return words_.span(found->word, found->key.size() + 1, found->value.size());
}

std::optional<std::vector<double>> KeyWords::sizes(std::string_view key, const SizeRule& rule) {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  return read_sizes(entry->value, span(key), rule, problems_);
}

std::optional<double> KeyWords::size(std::string_view key, const SizeRule& rule) {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  return read_size(entry->value, span(key), rule, problems_);
}

std::optional<std::string> KeyWords::text(std::string_view key) {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  return entry->value;
}

std::optional<std::size_t> KeyWords::word(std::string_view key, std::span<const std::string_view> choices) {
  const Entry* entry = find(key);
  if (entry == nullptr) return std::nullopt;
  if (const auto meant = word_meant(entry->value, choices)) return meant;
  const std::vector<std::string> known(choices.begin(), choices.end());
  std::string hint = did_you_mean(nearest(entry->value, known));
  if (!hint.empty()) hint += ' ';
  problems_.push_back({span(key), fmt::format("{} cannot be {}", key, in_quotes(entry->value)),
                       fmt::format("{}accepted: {}", hint, join(known, ", "))});
  return std::nullopt;
}

void KeyWords::missing(std::string_view key, std::string_view example) {
  if (find(key) != nullptr) return;  // given, and wrong in another way
  problems_.push_back(
      {words_.end(), fmt::format("{}= is missing", key), fmt::format("for example {}={}", key, example)});
}

void KeyWords::finish() {
  for (const Entry& entry : entries_) {
    if (std::find(known_.begin(), known_.end(), entry.key) != known_.end()) continue;
    std::string hint = did_you_mean(nearest(entry.key, known_));
    if (!hint.empty()) hint += ' ';
    std::vector<std::string> keys;
    for (const std::string& key : known_) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    }
    hint += keys.empty() ? "this operation takes no KEY=VALUE words" : fmt::format("keys: {}", join(keys, ", "));
    problems_.push_back(
        {words_.span(entry.word, 0, entry.key.size()), fmt::format("unknown key {}", in_quotes(entry.key)), hint});
  }
}

}  // namespace scalecalc::cli
