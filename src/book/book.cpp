#include "book/book.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/text.h"
#include "config/catalog.h"

namespace scalecalc {
namespace {

constexpr std::string_view kFolder = "book/";
constexpr std::string_view kSite = "https://jax-ml.github.io/scaling-book/";

double book_number(Fields& fields, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != 0) fields.problems().add(fields.span(), in_quotes(text) + " is not a number");
  return value;
}

std::optional<double> optional_number(Fields& fields, std::string_view key) {
  const auto text = fields.optional_text(key);
  return text ? std::optional(book_number(fields, *text)) : std::nullopt;
}

BookFigure load_figure(const ConfigNode& node, const std::string& run, Problems& problems) {
  Fields fields(node, "expect entry", problems);
  BookFigure out;
  out.at = fields.text("at");
  out.value = book_number(fields, fields.text("value"));
  out.tolerance = optional_number(fields, "tolerance").value_or(out.tolerance);
  if (const auto text = fields.optional_text("book")) {
    out.book = PrintedNumber{*text, book_number(fields, *text), optional_number(fields, "within"),
                             fields.optional_text("by").value_or("")};
    if (out.book->within.has_value() == out.book->by.empty()) {
      problems.add(fields.span(),
                   "within and by go together: how far the figure is off, and the book's own arithmetic");
    }
  }
  out.run = fields.optional_text("run").value_or(run);
  fields.finish();
  if (out.run.empty()) problems.add(fields.span(), "neither the case nor this figure has a command line");
  return out;
}

BookCase load_case(const ConfigNode& node, Problems& problems) {
  static constexpr std::array<std::string_view, 5> kKinds{"worked", "quiz", "claim", "table", "derived"};
  Fields fields(node, "case", problems);
  BookCase out;
  out.id = fields.text("id");
  out.where = fields.text("where");
  out.exercise = fields.optional_text("exercise").value_or("");
  out.kind = kKinds.at(fields.word("kind", {kKinds[0], kKinds[1], kKinds[2], kKinds[3], kKinds[4]}));
  out.question = fields.text("question");
  out.note = fields.optional_text("note").value_or("");
  out.errata = fields.optional_text("errata").value_or("");
  out.disagreement = fields.optional_text("disagreement").value_or("");
  out.exit = static_cast<int>(fields.optional_count("exit", {0, 255}).value_or(0));
  const std::string run = fields.optional_text("run").value_or("");
  for (const ConfigNode& item : fields.required_node("expect").items) {
    out.figures.push_back(load_figure(item, run, problems));
  }
  fields.finish();
  if (out.figures.empty()) problems.add(fields.span(), "a case expects something");
  return out;
}

BookSection load_section(const ConfigNode& node, const std::string& number, Problems& problems) {
  Fields fields(node, "section", problems);
  BookSection out{number, fields.text("title"), {}};
  for (const ConfigNode& item : fields.required_node("cases").items) out.cases.push_back(load_case(item, problems));
  fields.finish();
  return out;
}

/// One in the last digit that is not zero: 0.01 of "1.25", 100 of "4700", 1e-5 of "2.3e-04".
double last_place(const std::string& text) {
  const std::size_t exponent_at = text.find_first_of("eE");
  const std::string digits = text.substr(0, exponent_at);
  double place = exponent_at == std::string::npos ? 0 : std::strtod(text.c_str() + exponent_at + 1, nullptr);
  const std::size_t point = digits.find('.');
  std::size_t last = digits.find_last_of("123456789");
  if (last == std::string::npos) last = digits.size() - 1;
  if (point == std::string::npos) {
    place += static_cast<double>(digits.size() - 1 - last);
  } else {
    place += last > point ? -static_cast<double>(last - point) : static_cast<double>(point - 1 - last);
  }
  return std::pow(10, place);
}

UserError no_such_place(const std::vector<BookChapter>& book, const std::string& place) {
  std::vector<std::string> ids;
  std::string chapters;
  for (const BookChapter& chapter : book) {
    chapters += fmt::format("{}{}", chapters.empty() ? "" : ", ", chapter.number);
    for (const BookSection& section : chapter.sections) {
      for (const BookCase& item : section.cases) ids.push_back(item.id);
    }
  }
  const std::vector<std::string> near = nearest(place, ids);
  return UserError(
      fmt::format("the book has no {}", in_quotes(place)),
      near.empty()
          ? fmt::format("chapters with numbers are {}; a section is 5.2; 'scalecalc book' lists them", chapters)
          : did_you_mean(near));
}

}  // namespace

bool agrees(double value, const PrintedNumber& printed) {
  constexpr double kRounding = 1e-9;  // of the arithmetic
  const double off = std::fabs(value - printed.value);
  const double room = printed.within ? *printed.within * std::fabs(printed.value) : last_place(printed.text);
  return printed.within ? off <= room * (1 + kRounding) : off < room * (1 - kRounding);
}

BookChapter load_book_chapter(const ConfigNode& document, Problems& problems) {
  Fields fields(document, "chapter of the book", problems);
  BookChapter out;
  out.number = static_cast<int>(fields.count("chapter", {1, 12}));
  out.title = fields.text("title");
  out.page = std::string(kSite) + fields.text("page");
  for (const ConfigNode& node : fields.required_node("sections").items) {
    const std::string number = fmt::format("{}.{}", out.number, out.sections.size() + 1);
    out.sections.push_back(load_section(node, number, problems));
  }
  fields.finish();
  return out;
}

std::vector<BookChapter> scaling_book() {
  std::vector<BookChapter> out;
  Problems problems;
  std::set<std::string> known;
  for (const EmbeddedFile& file : embedded_catalog()) {
    if (!file.path.starts_with(kFolder)) continue;
    const ConfigNode document = document_of(file);
    out.push_back(load_book_chapter(document, problems));
    for (const BookSection& section : out.back().sections) {
      for (const BookCase& item : section.cases) {
        if (!known.insert(item.id).second) problems.add(document.span, "the id " + item.id + " is there twice");
      }
    }
  }
  problems.throw_if_any();
  std::sort(out.begin(), out.end(), [](const BookChapter& a, const BookChapter& b) { return a.number < b.number; });
  return out;
}

BookSelection select_of_book(const std::vector<BookChapter>& book, const std::string& place) {
  if (place.empty()) return {};
  for (const BookChapter& chapter : book) {
    if (place == std::to_string(chapter.number)) return {&chapter, nullptr, nullptr};
    for (const BookSection& section : chapter.sections) {
      if (place == section.number) return {&chapter, &section, nullptr};
      for (const BookCase& item : section.cases) {
        if (place == item.id) return {&chapter, &section, &item};
      }
    }
  }
  // A section that is not there, of a chapter that is.
  const std::string chapter_text = place.substr(0, place.find('.'));
  for (const BookChapter& chapter : book) {
    if (place.find('.') == std::string::npos || chapter_text != std::to_string(chapter.number)) continue;
    throw UserError(fmt::format("chapter {} has no section {}", chapter.number, in_quotes(place)),
                    fmt::format("{} to {}", chapter.sections.front().number, chapter.sections.back().number));
  }
  throw no_such_place(book, place);
}

}  // namespace scalecalc
