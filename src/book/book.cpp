// Reads the chapters of configs/book, asks the questions in them and compares the answers with the book's figures.
#include "book/book.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/quoting.h"
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
  out.label = fields.optional_text("label").value_or("");
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
  if (!out.exercise.empty() && out.note.empty()) {
    problems.add(fields.span(), "an exercise says in its note what is asked and what the figure means");
  }
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
  std::vector<std::string> known;
  std::string chapters;
  for (const BookChapter& chapter : book) {
    chapters += fmt::format("{}{}", chapters.empty() ? "" : ", ", chapter.number);
    known.push_back(chapter.title);
    for (const BookSection& section : chapter.sections) {
      known.push_back(section.title);
      for (const BookCase& item : section.cases) known.push_back(item.id);
    }
  }
  const std::vector<std::string> near = nearest(place, known);
  return UserError(fmt::format("the book has no {}", in_quotes(place)),
                   near.empty()
                       ? fmt::format("chapters with numbers are {}; a section is 5.2, an exercise '5.7 Question 1' "
                                     "or its id; 'scalecalc book' lists the titles",
                                     chapters)
                       : did_you_mean(near));
}

/// As titles are compared: small letters and digits, points inside numbers, a blank for anything else.
std::string title_key(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const bool point = c == '.' && i > 0 && i + 1 < text.size() &&
                       std::isdigit(static_cast<unsigned char>(text[i - 1])) &&
                       std::isdigit(static_cast<unsigned char>(text[i + 1]));
    if (std::isalnum(c) || c >= 0x80 || point) {
      out += static_cast<char>(std::tolower(c));
    } else if (!out.empty() && out.back() != ' ') {
      out += ' ';
    }
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

/// A place of the book and what it is called where it is printed.
struct BookPlace {
  int level = 0;  ///< 0 a chapter, 1 a section, 2 an exercise, 3 a question
  BookSelection selection;
  std::string name;  ///< which asks for it alone: "5", "5.2", "5.7 Question 1", an id
  std::string title;
  std::vector<std::string> titles{};  ///< as title_key() writes them, each of which asks for it

  /// Whether the key is one of its titles, or begins one. A number or an id is whole or wrong.
  bool has(const std::string& key, bool whole) const {
    if (whole && key == title_key(name)) return true;
    return std::any_of(titles.begin(), titles.end(),
                       [&](const std::string& known) { return whole ? known == key : known.starts_with(key); });
  }
};

void add_questions(const BookChapter& chapter, const BookSection& section, std::vector<BookPlace>& out) {
  std::vector<std::pair<std::string, std::vector<const BookCase*>>> exercises;
  for (const BookCase& item : section.cases) {
    out.push_back({3, {&chapter, &section, {&item}}, item.id, item.question});
    for (const std::string& title : {item.question, item.where, section.number + " " + item.where}) {
      out.back().titles.push_back(title_key(title));
    }
    if (item.exercise.empty()) continue;
    auto at = std::find_if(exercises.begin(), exercises.end(), [&](const auto& e) { return e.first == item.exercise; });
    if (at == exercises.end()) at = exercises.insert(at, {item.exercise, {}});
    at->second.push_back(&item);
  }
  for (const auto& [exercise, cases] : exercises) {
    out.push_back({2, {&chapter, &section, cases}, section.number + " " + exercise, exercise, {title_key(exercise)}});
  }
}

std::vector<BookPlace> places_of(const std::vector<BookChapter>& book) {
  std::vector<BookPlace> out;
  for (const BookChapter& chapter : book) {
    const std::string whole = fmt::format("Chapter {}: {}", chapter.number, chapter.title);
    const std::string number = std::to_string(chapter.number);
    out.push_back({0, {&chapter, nullptr, {}}, number, chapter.title});
    for (const std::string& title : {chapter.title, number + " " + chapter.title, "Chapter " + number, whole}) {
      out.back().titles.push_back(title_key(title));
    }
    for (const BookSection& section : chapter.sections) {
      out.push_back({1, {&chapter, &section, {}}, section.number, section.title});
      const std::string numbered = section.number + " " + section.title;
      for (const std::string& title : {section.title, numbered, numbered + ", of " + whole}) {
        out.back().titles.push_back(title_key(title));
      }
      add_questions(chapter, section, out);
    }
  }
  return out;
}

UserError several_places(const std::vector<const BookPlace*>& found, const std::string& place) {
  constexpr std::size_t kListed = 10;
  std::string names;
  for (std::size_t i = 0; i < std::min(found.size(), kListed); ++i) {
    const BookPlace& one = *found[i];
    const std::string& chapter = one.selection.chapter->title;
    const std::string says = one.level == 1   ? fmt::format("{}, of {}", one.title, chapter)
                             : one.level == 2 ? "of " + chapter
                                              : one.title;
    names += fmt::format("{}{} ({})", i == 0 ? "" : ", ", shell_quoted(one.name), says);
  }
  if (found.size() > kListed) names += fmt::format(" and {} more", found.size() - kListed);
  return UserError(fmt::format("{} fits {} places of the book", in_quotes(place), found.size()),
                   fmt::format("scalecalc book {}, or another of {}", shell_quoted(found.front()->name), names));
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
  const std::string key = title_key(place);
  const std::vector<BookPlace> places = places_of(book);
  const auto fitting = [&](bool whole) {
    std::vector<const BookPlace*> out;
    for (const BookPlace& one : places) {
      if (one.has(key, whole)) out.push_back(&one);
    }
    return out;
  };
  std::vector<const BookPlace*> found = fitting(true);
  // Of a whole title the highest level that has it.
  const int level = found.empty() ? 0 : (*std::min_element(found.begin(), found.end(), [](auto* a, auto* b) {
                                          return a->level < b->level;
                                        }))->level;
  std::erase_if(found, [&](const BookPlace* one) { return one->level != level; });
  if (found.empty() && key.find_first_not_of("0123456789.") != std::string::npos) found = fitting(false);
  if (found.size() == 1) return found.front()->selection;
  if (!found.empty()) throw several_places(found, place);
  // A section that is not there, of a chapter that is.
  const std::string chapter_text = key.substr(0, key.find('.'));
  for (const BookChapter& chapter : book) {
    if (key.find('.') == std::string::npos || chapter_text != std::to_string(chapter.number)) continue;
    throw UserError(fmt::format("chapter {} has no section {}", chapter.number, in_quotes(place)),
                    fmt::format("{} to {}", chapter.sections.front().number, chapter.sections.back().number));
  }
  throw no_such_place(book, place);
}

}  // namespace scalecalc
