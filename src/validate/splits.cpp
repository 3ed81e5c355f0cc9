// Divides measured rows into a fit half and a judge half by the publication they come from, for validate and calibrate.
#include "validate/splits.h"

#include <algorithm>
#include <vector>

#include "base/digest.h"
#include "base/text.h"
#include "config/catalog.h"

namespace scalecalc {
namespace {

constexpr std::string_view kDigits = "0123456789";
constexpr std::string_view kNameLetters = "abcdefghijklmnopqrstuvwxyz0123456789_.-";

std::vector<std::string_view> words_between_blanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  std::vector<std::string_view> out;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
    out.push_back(text.substr(at, end - at));
    at = text.find_first_not_of(kBlanks, end);
  }
  return out;
}

void drop_prefix(std::string_view& word, std::string_view prefix) {
  if (word.starts_with(prefix)) word.remove_prefix(prefix.size());
}

/// "owner" of "owner/name": letters, digits, '_', '.', '-', the first a letter or a digit.
bool is_part_of_name(std::string_view part) {
  return !part.empty() && part.find_first_of("_.-") != 0 && part.find_first_not_of(kNameLetters) == part.npos;
}

/// "intel.com": no path and one of the usual endings.
bool is_site(std::string_view word) {
  constexpr std::array<std::string_view, 6> kEndings{".com", ".org", ".net", ".ai", ".io", ".dev"};
  return is_part_of_name(word) && word.find('_') == word.npos &&
         std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) { return word.ends_with(ending); });
}

/// "arxiv:2104.04473" of that and of "arxiv.org/abs/2104.04473v2"; empty of other words.
std::string paper_named_by(std::string_view word) {
  if (!word.starts_with("arxiv:") && !word.starts_with("arxiv.org/")) return "";
  const std::size_t begin = word.find_first_of(kDigits);
  if (begin == word.npos) return "";
  const std::size_t end = std::min(word.find_first_not_of("0123456789.", begin), word.size());
  std::string number(word.substr(begin, end - begin));
  number.erase(number.find_last_not_of('.') + 1);
  return "arxiv:" + number;
}

std::string with_single_blanks(std::string_view text) {
  std::vector<std::string> out;
  for (const std::string_view word : words_between_blanks(text)) out.emplace_back(word);
  return join(out, " ");
}

/// "arXiv 2211.05102" and "arXiv:2211.05102" are one word.
std::string with_joined_papers(std::string text) {
  constexpr std::string_view kApart = "arxiv ";
  for (std::size_t at = text.find(kApart); at != text.npos; at = text.find(kApart, at)) {
    text[at + kApart.size() - 1] = ':';
  }
  return text;
}

}  // namespace

Splits::Splits(const ConfigNode& document) {
  if (const ConfigNode* salt = document.find("salt")) salt_ = salt->text;
  if (const ConfigNode* same = document.find("same")) {
    for (const ConfigNode::Entry& entry : same->entries) same_.emplace(entry.key, entry.value.text);
  }
  if (const ConfigNode* sets = document.find("sets")) {
    for (const ConfigNode& set : sets->items) {
      if (const ConfigNode* title = set.find("title")) titles_.insert(title->text);
    }
  }
}

const Splits& Splits::shipped() {
  static const Splits kShipped = [] {
    for (const EmbeddedFile& file : embedded_catalog()) {
      if (file.path == "splits.yaml") return Splits(document_of(file));
    }
    return Splits(ConfigNode{});
  }();
  return kShipped;
}

std::string Splits::same_as(std::string name) const {
  const auto found = same_.find(name);
  return found == same_.end() ? name : found->second;
}

std::string Splits::named_by(std::string_view word) const {
  word.remove_prefix(std::min(word.find_first_not_of("([<\"'"), word.size()));
  for (const std::string_view prefix : {"https://", "http://", "www.", "github.com/", "huggingface.co/"}) {
    drop_prefix(word, prefix);
  }
  if (std::string paper = paper_named_by(word); !paper.empty()) return paper;
  const std::size_t mark = word.find_first_of("#:");
  if (mark != word.npos && same_.contains(word.substr(0, mark))) return std::string(word.substr(0, mark));
  word = word.substr(0, word.find_first_of("@:,;)]#>?\"'"));
  const std::size_t slash = word.find('/');
  if (slash == word.npos) return is_site(word) ? std::string(word) : "";
  const std::size_t end = std::min(word.find('/', slash + 1), word.size());
  if (!is_part_of_name(word.substr(0, slash)) || !is_part_of_name(word.substr(slash + 1, end - slash - 1))) return "";
  std::string name(word.substr(0, end));
  name.erase(name.find_last_not_of('.') + 1);
  return name;
}

std::string Splits::publication_of(const MeasuredFacts& row) const {
  const std::string text =
      with_joined_papers(lower_case(row.source + (row.reference.empty() ? "" : "; " + row.reference)));
  constexpr std::string_view kSeries = ", series ";
  if (const std::size_t at = text.find(kSeries); at != text.npos) {
    const std::size_t begin = at + kSeries.size();
    return "series/" +
           text.substr(begin, text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_", begin) - begin);
  }
  const std::size_t cut = text.find("; ");
  const std::string_view all = text;
  const std::string_view tail = cut == text.npos ? std::string_view{} : all.substr(cut + 2);
  for (const std::string_view part : {tail, all.substr(0, cut)}) {
    for (const std::string_view word : words_between_blanks(part)) {
      if (std::string name = named_by(word); !name.empty()) return same_as(std::move(name));
    }
  }
  return same_as(with_single_blanks(lower_case(row.group)));
}

RowHalf Splits::half_of(std::string_view publication) const {
  const std::string digest = sha256(salt_ + ":" + std::string(publication));
  return digest.front() < '8' ? RowHalf::kFit : RowHalf::kJudge;
}

}  // namespace scalecalc
