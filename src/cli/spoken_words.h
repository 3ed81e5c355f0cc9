// Words of the command line that are no flags, with their places, so that a problem is shown under the word it is in;
// and KEY=VALUE words among them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/units.h"

namespace scalecalc::cli {

/// The words as one line.
class SpokenWords {
 public:
  explicit SpokenWords(std::vector<std::string> words);

  std::size_t size() const { return words_.size(); }
  const std::string& operator[](std::size_t word) const { return words_[word]; }

  /// `size` bytes from byte `at` of a word.
  SourceSpan span(std::size_t word, std::size_t at, std::size_t size) const;
  SourceSpan span(std::size_t word) const { return span(word, 0, words_[word].size()); }
  /// Behind the last word, where something is missing.
  SourceSpan end() const;

 private:
  SourceSpan marked(std::size_t begin, std::size_t size) const;

  std::vector<std::string> words_;
  std::vector<std::size_t> starts_;
  std::string line_;
};

/// What a size may be. A count is whole.
struct SizeRule {
  UnitKind kind = UnitKind::kCount;
  double least = 1;
  double most = 1e15;
};

/// The values of a text, which may be a sweep (base/sweep.h); empty, and a problem added, if it is none.
std::vector<double> read_sizes(std::string_view text, const SourceSpan& where, const SizeRule& rule,
                               std::vector<Diagnostic>& problems);
/// One value; nothing, and a problem added, if the text is none or a sweep.
std::optional<double> read_size(std::string_view text, const SourceSpan& where, const SizeRule& rule,
                                std::vector<Diagnostic>& problems);

/// The words from `first` on, each KEY=VALUE. Getters mark their key as known; finish() reports the others with the
/// nearest that is.
class KeyWords {
 public:
  KeyWords(const SpokenWords& words, std::size_t first, std::vector<Diagnostic>& problems);

  /// Nothing if the key is not given.
  std::optional<std::vector<double>> sizes(std::string_view key, const SizeRule& rule = {});
  std::optional<double> size(std::string_view key, const SizeRule& rule = {});
  std::optional<std::size_t> word(std::string_view key, std::span<const std::string_view> choices);
  std::optional<std::string> text(std::string_view key);
  /// Place of the key's value; of the end of the words if it is not given.
  SourceSpan span(std::string_view key) const;
  void missing(std::string_view key, std::string_view example);
  void finish();

 private:
  struct Entry {
    std::string key;
    std::string value;
    std::size_t word = 0;
  };
  const Entry* find(std::string_view key);

  const SpokenWords& words_;
  std::vector<Diagnostic>& problems_;
  std::vector<Entry> entries_;
  std::vector<std::string> known_;
};

}  // namespace scalecalc::cli
