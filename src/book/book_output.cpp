// Shows each exercise of the book with our figure and the book's, for `scalecalc book`.
#include "book/book_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "base/diagnostic.h"
#include "base/quoting.h"
#include "base/text.h"

namespace scalecalc {
namespace {

Cell cell(std::string_view value) { return std::string(value); }

struct BookCounts {
  std::size_t questions = 0, exercises = 0, figures = 0, errata = 0;

  void add(const BookSection& section) {
    for (const BookCase& item : section.cases) {
      ++questions;
      if (!item.exercise.empty()) ++exercises;
      figures += item.figures.size();
      if (!item.disagreement.empty()) ++errata;
    }
  }
};
std::string counts_text(const BookCounts& counts) {
  return fmt::format("{} questions, {} of them exercises, with {} figures and {} errata", counts.questions,
                     counts.exercises, counts.figures, counts.errata);
}

void add_counts(Record& record, const BookCounts& counts) {
  record.figures.push_back(count_figure("questions", counts.questions, "questions"));
  record.figures.push_back(count_figure("exercises", counts.exercises, "exercises"));
  record.figures.push_back(count_figure("figures", counts.figures, "figures"));
  record.figures.push_back(count_figure("errata", counts.errata, "errata"));
}

Record chapter_record(const BookChapter& chapter) {
  Record out{{count_figure("chapter", chapter.number, "#"),
              figure("title", "chapter", Format::kText, cell(chapter.title)),
              count_figure("sections", chapter.sections.size(), "sections")}};
  BookCounts counts;
  for (const BookSection& section : chapter.sections) counts.add(section);
  add_counts(out, counts);
  out.figures.push_back(figure("page", "", Format::kText, cell(chapter.page)));
  return out;
}

Record section_record(const BookSection& section) {
  Record out{{figure("section", "#", Format::kText, cell(section.number)),
              figure("title", "section", Format::kText, cell(section.title))}};
  BookCounts counts;
  counts.add(section);
  add_counts(out, counts);
  return out;
}

Record exercise_record(const BookSection& section, const BookCase& item) {
  return {{figure("section", "#", Format::kText, cell(section.number)),
           figure("exercise", "exercise", Format::kText, cell(item.exercise)),
           figure("asks", "question", Format::kText, cell(item.question)),
           figure("id", "id", Format::kText, cell(item.id))}};
}

/// A unit that people read as a prefix of it: "2.10 ms".
std::optional<Format> format_of_unit(std::string_view unit) {
  if (unit == "s") return Format::kSeconds;
  if (unit == "bytes") return Format::kBytes;
  if (unit == "FLOPs") return Format::kFlops;
  return std::nullopt;
}

/// A number of the book as printed, in the unit of ours.
std::string printed_text(const PrintedNumber& printed, const FigureName& name, const FoundFigure& found) {
  if (found.is_flag) return printed.value != 0 ? "yes" : "no";
  return text_of(Cell(printed.value), name.format);
}

constexpr std::string_view kBookExplain =
    "--explain after a command shows the formula of each figure with the numbers in it";

class BookWriter {
 public:
  BookWriter(const AskCommand& ask, const Stop& stop, Output& out) : ask_(ask), stop_(stop), out_(out) {
    figures_.key = "figures";
    figures_.for_files = true;
  }

  void solve(const BookSection& section, const BookCase& item) {
    Block block;
    block.title = item.question;
    block.section = item.id;
    block.for_people = true;
    std::string said;
    for (const BookFigure& asked : item.figures) {
      if (should_stop(stop_)) throw Stopped();
      Record record = figure_record(section, item, asked);
      if (asked.run != said) block.lines.push_back({"$ " + asked.run, Role::kDim});
      if (asked.book && !asked.book->by.empty()) {
        block.lines.push_back({fmt::format("the book's {}: {}", asked.book->text, asked.book->by), Role::kDim});
      }
      if (asked.run != said) note_chips(asked.run);
      said = asked.run;
      figures_.records.push_back(record);
      block.records.push_back(std::move(record));
    }
    block.lines.insert(block.lines.begin(), {fmt::format("{}, {}", section.number, item.where), Role::kPlain});
    if (!item.disagreement.empty()) block.lines.push_back({"erratum: " + item.disagreement, Role::kWarning});
    if (!item.errata.empty()) block.lines.push_back({"editions: " + item.errata, Role::kDim});
    if (!item.note.empty()) block.lines.push_back({item.note, Role::kDim});
    out_.blocks.push_back(std::move(block));
  }

  /// "12 figures, of 9 that the book prints 8 agree".
  std::string summary() const {
    if (figures_.records.empty()) return "";
    std::string out = fmt::format("{} figure{}", figures_.records.size(), figures_.records.size() == 1 ? "" : "s");
    if (printed_ == 0) return out + ", none of them printed in the book";
    return out + fmt::format("; of {} that the book prints {} agree{}", printed_, agreeing_, agreeing_ == 1 ? "s" : "");
  }

  /// What a student should know of the commands, and the figures for files, behind what people read.
  void finish() {
    if (!figures_.records.empty()) {
      out_.lines_of = figures_.key;
      std::vector<Line> lines{{std::string(kBookExplain), Role::kDim}};
      if (std::string rates = rates_line(); !rates.empty()) lines.push_back({std::move(rates), Role::kDim});
      out_.blocks.push_back(lines_block("About the commands", std::move(lines)));
      out_.blocks.back().last = true;
    }
    out_.blocks.push_back(std::move(figures_));
  }

 private:
  const BookReply& reply_to(const std::string& command, int exit) {
    const auto [at, is_new] = replies_.try_emplace(command);
    if (is_new) at->second = ask_(command);
    if (should_stop(stop_)) throw Stopped();
    if (at->second.exit == exit) return at->second;
    // A machine that has no memory or files left is not the book's fault.
    const bool ours = at->second.exit < static_cast<int>(ExitCode::kBug);
    const ExitCode code = ours ? ExitCode::kQuestionWrong : static_cast<ExitCode>(at->second.exit);
    throw UserError(fmt::format("'{}' ends with exit status {}: {}", command, at->second.exit, at->second.problems),
                    "the built-in catalog answers it otherwise; please report it", code);
  }

  /// How far the vendor's figures of the first chip asked about are from the book's, by the rate that differs most.
  std::string rates_line() {
    static constexpr std::string_view kBook = "book/";
    struct Rate {
      const char* at;
      const char* name;
      Format format;
    };
    static constexpr std::array<Rate, 5> kRates{
        {{"matmul_flops_per_s/bf16", "bf16", Format::kFlopsPerSecond},
         {"memory_bandwidth_bytes_per_s", "memory bandwidth", Format::kBytesPerSecond},
         {"memory_bytes", "memory", Format::kBytes},
         {"bandwidth_bytes_per_s/ici_one_way", "a link one way", Format::kBytesPerSecond},
         {"bandwidth_bytes_per_s/pcie", "the host link", Format::kBytesPerSecond}}};
    for (const std::string& chip : chips_) {
      const std::string plain = chip.substr(kBook.size());
      const BookReply both = ask_(fmt::format("scalecalc hw {} {}", chip, plain));
      double most = 0;
      std::string out;
      for (const Rate& rate : kRates) {
        const auto of = [&](int which) {
          return reader_.find(both.document, fmt::format("/chips/{}/{}", which, rate.at));
        };
        const auto ours = both.exit == 0 ? of(0) : std::nullopt;
        const auto vendors = both.exit == 0 ? of(1) : std::nullopt;
        if (!ours || !vendors || std::fabs(vendors->value / ours->value - 1) <= most) continue;
        most = std::fabs(vendors->value / ours->value - 1);
        out =
            fmt::format("{} has the book's rounded rates, {} the vendor's: {} {} against {} ({})", chip, plain,
                        rate.name, text_of(Cell(ours->value), rate.format), text_of(Cell(vendors->value), rate.format),
                        signed_percent_text(vendors->value / ours->value - 1));
      }
      if (!out.empty()) return out;
    }
    return "";
  }

  /// The book's chips that a command asks about; models of the book are called alike.
  void note_chips(const std::string& command) {
    const std::vector<std::string> words = shell_words(command);
    for (std::size_t i = 2; i < words.size(); ++i) {
      const bool chip = words[i].starts_with("book/") && (words[i - 1] == "--hw" || words[1] == "hw");
      if (chip && std::find(chips_.begin(), chips_.end(), words[i]) == chips_.end()) chips_.push_back(words[i]);
    }
  }

  Record figure_record(const BookSection& section, const BookCase& item, const BookFigure& asked) {
    const auto found = reader_.find(reply_to(asked.run, item.exit).document, asked.at);
    if (!found) throw UserError(fmt::format("'{}' gives no {}", asked.run, asked.at), "");
    FigureName name = name_of_figure(asked.at);
    if (!asked.label.empty()) name.label = asked.label;
    std::string unit = found->unit;
    if (const auto own = format_of_unit(unit)) {
      name.format = *own;
      unit.clear();
    }
    if (found->is_flag) {
      name.format = Format::kFlag;
      unit.clear();
    }
    Figure ours = figure("value", "ours", Format::kNumber, Cell(found->value));
    ours.shown = text_of(Cell(found->value), name.format);
    if (!unit.empty()) ours.shown += " " + unit;
    Figure book = figure("book", "the book", Format::kNumber, asked.book ? Cell(asked.book->value) : Cell{});
    if (asked.book) book.shown = printed_text(*asked.book, name, *found);
    const bool same = asked.book && agrees(found->value, *asked.book);
    if (asked.book) ++printed_;
    if (same) ++agreeing_;
    Figure verdict = figure("agrees", "agrees", Format::kFlag, asked.book ? Cell(same ? 1.0 : 0.0) : Cell{});
    Record out{
        {figure("section", "", Format::kText, cell(section.number)), figure("id", "", Format::kText, cell(item.id)),
         figure("where", "", Format::kText, cell(item.where)),
         figure("exercise", "", Format::kText, item.exercise.empty() ? Cell{} : cell(item.exercise)),
         figure("kind", "", Format::kText, cell(item.kind)), figure("asks", "", Format::kText, cell(item.question)),
         figure("command", "", Format::kText, cell(asked.run)), figure("at", "", Format::kText, cell(asked.at)),
         figure("label", "figure", Format::kText, cell(name.label)), std::move(ours), std::move(book),
         std::move(verdict),
         figure("book_by", "", Format::kText, asked.book && !asked.book->by.empty() ? cell(asked.book->by) : Cell{}),
         figure("erratum", "", Format::kText, item.disagreement.empty() ? Cell{} : cell(item.disagreement))}};
    if (asked.book && !same) out.role = Role::kWarning;
    return out;
  }

  const AskCommand& ask_;
  const Stop& stop_;
  Output& out_;
  Block figures_;
  AnswerReader reader_;
  std::map<std::string, BookReply> replies_;
  std::vector<std::string> chips_;  ///< of the book, in the order asked about
  std::size_t printed_ = 0;
  std::size_t agreeing_ = 0;
};

/// The sections that the view is of.
std::vector<const BookSection*> sections_of(const std::vector<BookChapter>& book, const BookSelection& selected) {
  if (selected.section != nullptr) return {selected.section};
  std::vector<const BookSection*> out;
  for (const BookChapter& chapter : book) {
    if (selected.chapter != nullptr && selected.chapter != &chapter) continue;
    for (const BookSection& section : chapter.sections) out.push_back(&section);
  }
  return out;
}

std::string ids_of(const BookSelection& selected) {
  std::vector<std::string> ids;
  for (const BookCase* item : selected.only) ids.push_back(item->id);
  return join(ids, ",");
}

std::string title_of(const BookSelection& selected) {
  if (selected.chapter == nullptr) return "How To Scale Your Model: its worked numbers, asked of this program";
  const std::string chapter = fmt::format("Chapter {}: {}", selected.chapter->number, selected.chapter->title);
  if (selected.section == nullptr) return chapter;
  return fmt::format("{} {}, of {}", selected.section->number, selected.section->title, chapter);
}

}  // namespace

Output book_output(const std::vector<BookChapter>& book, const BookView& view, const AskCommand& ask,
                   const Stop& stop) {
  const BookSelection& selected = view.selected;
  Output out;
  out.command = "book";
  out.title = title_of(selected);
  out.query.figures.push_back(
      figure("chapter", "", Format::kInteger, selected.chapter ? cell_of(selected.chapter->number) : Cell{}));
  out.query.figures.push_back(
      figure("section", "", Format::kText, selected.section ? cell(selected.section->number) : Cell{}));
  out.query.figures.push_back(figure("id", "", Format::kText, selected.only.empty() ? Cell{} : cell(ids_of(selected))));
  BookCounts all;
  for (const BookSection* section : sections_of(book, selected)) all.add(*section);
  Block contents;
  if (selected.chapter == nullptr) {
    contents.key = "chapters";
    for (const BookChapter& chapter : book) contents.records.push_back(chapter_record(chapter));
    out.notes.emplace_back(
        "scalecalc book 5: its sections; book 5.2: the worked numbers of one; book 5 --solve: its exercises; a title "
        "does as "
        "well: book training");
  } else if (selected.section == nullptr) {
    contents.key = "sections";
    for (const BookSection& section : selected.chapter->sections) contents.records.push_back(section_record(section));
    out.notes.push_back("text: " + selected.chapter->page);
  }
  if (!contents.key.empty()) out.blocks.push_back(std::move(contents));
  Block unsolved{"exercises", "Exercises"};
  BookWriter writer(ask, stop, out);
  for (const BookSection* section : sections_of(book, selected)) {
    for (const BookCase& item : section->cases) {
      if (!selected.only.empty() && !selected.names(item)) continue;
      const bool exercise = !item.exercise.empty();
      const bool solved = !selected.only.empty() || (exercise ? view.solve : selected.section != nullptr);
      if (solved) {
        writer.solve(*section, item);
      } else if (exercise && selected.chapter != nullptr) {
        unsolved.records.push_back(exercise_record(*section, item));
      }
    }
  }
  const std::string summary = writer.summary();
  out.headline.push_back({summary.empty() ? counts_text(all) : summary, Role::kPlain});
  writer.finish();
  if (!unsolved.records.empty()) {
    unsolved.lines.push_back({"--solve answers them, or scalecalc book ID one of them", Role::kDim});
  } else {
    unsolved.for_files = true;
  }
  out.blocks.push_back(std::move(unsolved));
  return out;
}

}  // namespace scalecalc
