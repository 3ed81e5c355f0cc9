// Reads the two notations of a contraction: "ij,jk->ik", where each letter is an index, and the book's "A[I,J] *
// B[J,K] -> C[I,K]".
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "roofline/operation_options.h"

namespace scalecalc::cli {
namespace {

constexpr std::string_view kContractionForms = "\"ij,jk->ik\" or \"A[I,J] * B[J,K] -> C[I,K]\"";
constexpr std::size_t kMostIndices = 16;

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_name(char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '_'; }

/// Part of the text with its place in it.
struct Part {
  std::string_view text;
  std::size_t at = 0;
};

Part trimmed(Part part) {
  while (!part.text.empty() && part.text.front() == ' ') {
    part.text.remove_prefix(1);
    ++part.at;
  }
  while (!part.text.empty() && part.text.back() == ' ') part.text.remove_suffix(1);
  return part;
}

class ContractionReader {
 public:
  ContractionReader(const SpokenWords& words, std::size_t word, std::vector<Diagnostic>& problems)
      : words_(words), word_(word), text_(words[word]), problems_(problems) {}

  std::optional<Contraction> read() {
    out_.text = text_;
    const std::size_t arrow = text_.find("->");
    if (arrow == std::string_view::npos) return wrong({text_, 0}, "has no '->' before the result");
    const bool brackets = text_.find('[') != std::string_view::npos;
    const std::string_view operands = text_.substr(0, arrow);
    const std::size_t between = brackets ? operands.find('*') : operands.find(',');
    const char* sign = brackets ? "'*'" : "','";
    if (between == std::string_view::npos)
      return wrong({operands, 0}, fmt::format("has no {} between two arrays", sign));
    const Part first = trimmed({operands.substr(0, between), 0});
    const Part second = trimmed({operands.substr(between + 1), between + 1});
    const Part result = trimmed({text_.substr(arrow + 2), arrow + 2});
    if (!array(first, brackets, &ContractionIndex::in_first) ||
        !array(second, brackets, &ContractionIndex::in_second) ||
        !array(result, brackets, &ContractionIndex::in_result)) {
      return std::nullopt;
    }
    return std::move(out_);
  }

 private:
  using Member = bool ContractionIndex::*;

  std::optional<Contraction> wrong(const Part& part, std::string_view why) {
    complain(part, fmt::format("{} {}", in_quotes(part.text), why));
    return std::nullopt;
  }
  bool complain(const Part& part, std::string message) {
    problems_.push_back(
        {words_.span(word_, part.at, part.text.size()), std::move(message), std::string(kContractionForms)});
    return false;
  }

  bool array(const Part& part, bool brackets, Member member) {
    return brackets ? bracketed(part, member) : letters(part, member);
  }

  bool letters(const Part& part, Member member) {
    for (std::size_t i = 0; i < part.text.size(); ++i) {
      const Part one{part.text.substr(i, 1), part.at + i};
      if (!is_letter(one.text.front())) return complain(one, fmt::format("{} is no index", in_quotes(one.text)));
      if (!add(one, member)) return false;
    }
    return true;
  }

  bool bracketed(const Part& part, Member member) {
    const std::size_t open = part.text.find('[');
    if (open == std::string_view::npos || part.text.back() != ']') {
      return complain(part, fmt::format("{} is no array with its indices in brackets", in_quotes(part.text)));
    }
    Part inside{part.text.substr(open + 1, part.text.size() - open - 2), part.at + open + 1};
    if (trimmed(inside).text.empty()) return true;  // C[]: a number
    for (std::size_t at = 0; at <= inside.text.size();) {
      const std::size_t end = std::min(inside.text.find(',', at), inside.text.size());
      const Part name = trimmed({inside.text.substr(at, end - at), inside.at + at});
      const bool good = !name.text.empty() && is_letter(name.text.front()) &&
                        std::all_of(name.text.begin(), name.text.end(), is_name);
      if (!good) return complain(name, fmt::format("{} is no index", in_quotes(name.text)));
      if (!add(name, member)) return false;
      at = end + 1;
    }
    return true;
  }

  /// One index of one array.
  bool add(const Part& name, Member member) {
    auto found = std::find_if(out_.indices.begin(), out_.indices.end(),
                              [&](const ContractionIndex& index) { return index.name == name.text; });
    if (found == out_.indices.end()) {
      if (member == &ContractionIndex::in_result) {
        return complain(name, fmt::format("the result's {} is in neither array", in_quotes(name.text)));
      }
      if (out_.indices.size() == kMostIndices) {
        return complain(name, fmt::format("more than {} indices", kMostIndices));
      }
      out_.indices.push_back({.name = std::string(name.text)});
      found = out_.indices.end() - 1;
    }
    if ((*found).*member) return complain(name, fmt::format("{} is twice in one array", in_quotes(name.text)));
    (*found).*member = true;
    return true;
  }

  const SpokenWords& words_;
  std::size_t word_;
  std::string_view text_;
  std::vector<Diagnostic>& problems_;
  Contraction out_;
};

}  // namespace

std::optional<Contraction> read_contraction(const SpokenWords& words, std::size_t word, KeyWords& keys,
                                            std::vector<Diagnostic>& problems) {
  auto out = ContractionReader(words, word, problems).read();
  if (!out) return std::nullopt;
  for (ContractionIndex& index : out->indices) {
    const auto size = keys.size(index.name);
    if (!size) keys.missing(index.name, "128");
    index.size = size.value_or(1);
  }
  keys.finish();
  return out;
}

}  // namespace scalecalc::cli
