// The scaling book's worked numbers as questions to this program: configs/book/chapter-NN.yaml,
// docs/howto/add-book-case.md.
//
//   chapter: 3
//   title: Sharded matrices
//   page: sharding                                     # of the book's site
//   sections:                                          # in the book's order; the second is 3.2
//     - title: AllGather
//       cases:
//         - id: ch3-q2a-allgather-one-axis
//           where: "Question 2 [AllGather latency] (1)"  # the place in the book
//           exercise: Question 2                         # if it is one
//           kind: quiz                                   # worked, quiz, claim, table, derived
//           question: "..."                              # in our words
//           run: scalecalc collective all-gather --hw book/tpu-v4p ...
//           expect:
//             - {at: /points/0/time_s, value: 2.33016888889e-05, book: 2.3e-05}
//           note: What is asked and what the figure means.         # an exercise has one
//           disagreement: why the book's own figure is another    # if it is
//
// `run` is asked with --json. `at` is a JSON pointer into its document (/bounds/name=fsdp_limit/value takes the member
// of a list by its name), `value` the exact figure (booleans as 1 and 0), `tolerance` relative and 1e-6 unless given
// (0: equal), `book` the figure as the book prints it, `within` how far that may be off where the book goes on with
// rounded figures, `by` the book's arithmetic with those, `label` what people read in place of the pointer, `run`
// another command line for this figure alone, `exit` the exit status if it is not 0.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "config/fields.h"

namespace scalecalc {

/// A number as the book prints it.
struct PrintedNumber {
  std::string text;
  double value = 0;
  std::optional<double> within;  ///< relative; the book's own rounding unless given
  std::string by;                ///< with `within`: what the book computes, of its rounded figures: "34e6 / 9e10"
};
/// Whether `value` is the printed number: off by less than one in its last digit that is not zero, since the book cuts
/// off as often as it rounds.
bool agrees(double value, const PrintedNumber& printed);

struct BookFigure {
  std::string run;  ///< the command line
  std::string at;
  double value = 0;
  double tolerance = 1e-6;
  std::optional<PrintedNumber> book;
  std::string label{};  ///< for people; empty: as `at` says
};

struct BookCase {
  std::string id;
  std::string where;
  std::string exercise;  ///< empty if it is none
  std::string kind;
  std::string question;
  std::string note;  ///< a sentence or two, which every exercise has
  std::string errata;
  std::string disagreement;
  int exit = 0;
  std::vector<BookFigure> figures;
};

struct BookSection {
  std::string number;  ///< "5.2"
  std::string title;
  std::vector<BookCase> cases;
};

struct BookChapter {
  int number = 0;
  std::string title;
  std::string page;  ///< its address
  std::vector<BookSection> sections;
};

BookChapter load_book_chapter(const ConfigNode& document, Problems& problems);
/// The chapters that the program was built with. UserError if a file is malformed or an id is there twice.
std::vector<BookChapter> scaling_book();

/// What a reader asks for.
struct BookSelection {
  const BookChapter* chapter = nullptr;  ///< null: the whole book
  const BookSection* section = nullptr;  ///< null: the whole chapter
  std::vector<const BookCase*> only;     ///< empty: all of the section

  bool names(const BookCase& item) const { return std::find(only.begin(), only.end(), &item) != only.end(); }
};
/// Of "", "5", "5.2", a case's id, or any title that an answer prints: of a chapter, a section, an exercise or a
/// question, with the number before it or without, whatever its case and punctuation; or the beginning of one. A whole
/// title goes before a beginning, a chapter before a section before a question. UserError that lists the places where
/// several fit, and the nearest where none does.
BookSelection select_of_book(const std::vector<BookChapter>& book, const std::string& place);

}  // namespace scalecalc
