// Suggests names of the catalog for a name that it does not have: by version, by a chip's designation, by spelling.
#include "config/near_names.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string_view>
#include <utility>

#include "base/text.h"

namespace scalecalc {
namespace {

bool a_digit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool a_letter(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// Runs of letters and runs of digits, in lower case: llama3.1-70b is llama, 3, 1, 70, b.
std::vector<std::string> runs_of(std::string_view name) {
  std::vector<std::string> out;
  char before = ' ';
  for (const char c : lower_case(name)) {
    const bool part = a_digit(c) || a_letter(c);
    const bool goes_on = (a_digit(c) && a_digit(before)) || (a_letter(c) && a_letter(before));
    if (part && !goes_on) out.emplace_back();
    if (part) out.back() += c;
    before = c;
  }
  return out;
}

/// Whether `full` is `name` with numbers added that say a version.
bool adds_version(const std::vector<std::string>& name, const std::vector<std::string>& full) {
  std::size_t at = 0;
  for (const std::string& run : full) {
    if (at < name.size() && run == name[at]) {
      ++at;
    } else if (!a_digit(run.front())) {
      return false;
    }
  }
  return at == name.size() && full.size() > name.size();
}

/// What stands between the separators of a name, in lower case: A100-SXM4-80GB is a100, sxm4, 80gb.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> out(1);
  for (const char c : lower_case(name)) {
    if (a_digit(c) || a_letter(c) || c == '.') {
      out.back() += c;
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
  }
  if (out.back().empty()) out.pop_back();
  return out;
}

/// Letters and a number, as in h100 or v5p, and not an amount of memory, as in 80gb.
bool is_designation(const std::string& word) {
  return std::any_of(word.begin(), word.end(), a_digit) && a_letter(word.front());
}

/// How many of the words another name has too, an abbreviated one (80g for 80gb) included.
std::size_t shared_words(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return static_cast<std::size_t>(std::count_if(a.begin(), a.end(), [&](const std::string& word) {
    return std::any_of(b.begin(), b.end(),
                       [&](const std::string& other) { return word.starts_with(other) || other.starts_with(word); });
  }));
}

/// Chips whose designation is among the words; of these the ones that share most words.
std::vector<std::string> by_designation(const std::vector<Labels>& labels, const std::string& wrong) {
  constexpr std::size_t kMost = 4;
  const std::vector<std::string> words = words_of(wrong);
  std::vector<std::pair<std::size_t, std::string>> found;
  for (const Labels& entry : labels) {
    std::vector<std::string> known = words_of(entry.name);
    const bool same = std::any_of(words.begin(), words.end(), [&](const std::string& word) {
      return is_designation(word) && std::find(known.begin(), known.end(), word) != known.end();
    });
    if (!same) continue;
    for (const std::string& alias : entry.aliases) {
      for (std::string& word : words_of(alias)) known.push_back(std::move(word));
    }
    found.emplace_back(shared_words(words, known), entry.name);
  }
  // Of equals the plainest name first.
  std::stable_sort(found.begin(), found.end(), [](const auto& a, const auto& b) {
    return std::pair(b.first, a.second.size()) < std::pair(a.first, b.second.size());
  });
  std::vector<std::string> out;
  for (auto& [shared, name] : found) {
    if (shared == found.front().first) out.push_back(std::move(name));
  }
  // One of them mistyped is that one.
  if (std::vector<std::string> mistyped = nearest(wrong, out); !mistyped.empty()) return mistyped;
  out.resize(std::min(out.size(), kMost));
  return out;
}

std::vector<std::string> by_version(const std::vector<Labels>& labels, const std::string& wrong) {
  const std::vector<std::string> runs = runs_of(wrong);
  std::vector<std::string> out;
  for (const Labels& entry : labels) {
    if (adds_version(runs, runs_of(entry.name))) out.push_back(entry.name);
  }
  return out;
}

/// Aliases are compared too, but the name is what is suggested.
std::vector<std::string> by_spelling(const std::vector<Labels>& labels, const std::string& wrong) {
  std::vector<std::string> candidates;
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    candidates.push_back(labels[i].name);
    candidates.insert(candidates.end(), labels[i].aliases.begin(), labels[i].aliases.end());
    owners.resize(candidates.size(), i);
  }
  std::vector<std::string> out;
  for (const std::string& near : nearest(wrong, candidates)) {
    const auto at = std::find(candidates.begin(), candidates.end(), near) - candidates.begin();
    const std::string& name = labels[owners[static_cast<std::size_t>(at)]].name;
    if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(name);
  }
  return out;
}

}  // namespace

std::vector<std::string> near_names(CatalogKind kind, const std::vector<Labels>& labels, const std::string& wrong) {
  std::vector<std::string> out;
  if (kind == CatalogKind::kModel) out = by_version(labels, wrong);
  if (kind == CatalogKind::kHardware) out = by_designation(labels, wrong);
  return out.empty() ? by_spelling(labels, wrong) : out;
}

}  // namespace scalecalc
