// The answer of a command: named figures, once. The table, the CSV, the JSON and --explain are all made from it, so
// they cannot disagree, and a command is its formulas and one line per figure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/explained.h"
#include "config/catalog.h"
#include "report/plot.h"
#include "report/report.h"

namespace scalecalc {

struct Record;

/// Who reads a figure or a block. Of everyone's figures people read those with a label, files those with a key.
enum class Readers : std::uint8_t { kAll, kPeople, kCsv, kJson };

/// One figure: a JSON member and a table cell.
struct Figure {
  std::string key;    ///< JSON member with its unit: "time_s"; dots nest: "critical_intensity_flops_per_byte.hbm"
  std::string label;  ///< for people: "time"; empty = in JSON and CSV only
  Cell value;         ///< nothing = null
  Format format = Format::kText;
  int importance = 0;             ///< as Column::importance
  std::optional<Traced> working;  ///< how it came about, in words only when steps() asks; nothing for an input
  bool is_list = false;           ///< JSON: an array of `records`, or of `items` if there are no records
  bool is_object = false;         ///< JSON: the object `records.front()`, null without one
  std::vector<Record> records;    ///< people read `value` instead, e.g. "all-gather X 1.2 ms"
  std::vector<Cell> items;
  std::string shown;   ///< people read this instead of the value, e.g. a number with a unit of its own
  std::string column;  ///< CSV column; empty = the key
  Readers readers = Readers::kAll;
  bool rigid = false;  ///< a text that stays on one line of a table

  std::vector<ExplainedStep> steps() const { return working ? explain(*working) : std::vector<ExplainedStep>{}; }
};

struct Record {
  std::vector<Figure> figures;
  std::string group;  ///< for people, records of a list that share it are a table of their own under this heading
  Role role = Role::kPlain;
  bool brief = true;  ///< also in a brief table
};

/// A line above the figures that follow, for people alone, in a block that is shown by figure.
Figure heading(std::string_view label);
/// A text, or a number in its base unit; Format::kFlag shows 0 and 1 as no and yes, and as booleans in JSON.
Figure figure(std::string_view key, std::string_view label, Format format, Cell value);
/// A figure with its working. An unnamed expression takes the label as its name in the explanation.
Figure figure(std::string_view key, std::string_view label, Format format, const Traced& value,
              std::string_view source = {});
template <Dim D>
Figure figure(std::string_view key, std::string_view label, Format format, const Quantity<D, Traced>& value,
              std::string_view source = {}) {
  return figure(key, label, format, value.value().with_name(label, source, D));
}
Figure text_figure(std::string_view key, std::string_view label, std::string_view text, int importance = 0);
/// Null where there is none.
Figure number_figure(std::string_view key, std::string_view label, Format format, const std::optional<double>& value,
                     int importance = 0);
/// Null where there is none.
template <class X>
Figure maybe_figure(std::string_view key, std::string_view label, Format format, const std::optional<X>& value,
                    std::string_view source = {}) {
  if (!value) return figure(key, label, format, Cell{});
  if constexpr (std::is_same_v<X, double>)
    return figure(key, label, format, Cell(*value));
  else
    return figure(key, label, format, *value, source);
}
/// On a narrow terminal the highest is left out first.
Figure with_importance(Figure figure, int importance);
Figure list_figure(std::string_view key, std::string_view label, std::vector<Cell> items);
Figure records_figure(std::string_view key, std::string_view label, std::string shown, std::vector<Record> records);
/// Figures for files alone: a text or a number, nothing (null), and a number that is whole.
Figure datum(std::string_view key, Cell value);
Figure count_figure(std::string_view key, auto count, std::string_view label = "") {
  return number_figure(key, label, Format::kInteger, static_cast<double>(count));
}
inline Figure flag_figure(std::string_view key, bool value) {
  return number_figure(key, "", Format::kFlag, value ? 1 : 0);
}
/// Changes to the question, as their flags and values.
Figure changes_figure(std::string_view key, const std::vector<FlagChange>& changes);
/// An object inside an object; null if there is none. Its figures are columns of CSV; if only JSON reads the object,
/// those that name their column.
Figure object_figure(std::string_view key, std::optional<Record> members);
template <class X, class Make>
Figure object_figure(std::string_view key, const std::optional<X>& of, const Make& make) {
  return object_figure(key, of ? std::optional<Record>(make(*of)) : std::nullopt);
}
Figure read_by(Readers readers, Figure figure);
/// A figure whose CSV column has another name than its JSON member.
Figure in_column(std::string_view column, Figure figure);

/// A column of a table for people: a figure of the block's records.
struct ShownColumn {
  std::string column;  ///< as CSV names it
  int importance = 0;  ///< on a narrow terminal the highest is left out first; 0 always stays
  std::string title;   ///< empty: the figure's label
  bool brief = true;   ///< also in a brief table
};

/// How much people read: what decides, or everything. Files always hold all of it.
enum class Depth : std::uint8_t { kBrief, kFull };
/// In which of the two a block is shown.
enum class Shown : std::uint8_t { kAlways, kBrief, kFull };

/// A table of records alike, or the members of one object.
struct Block {
  std::string key;    ///< JSON member; empty: its figures are members of the document itself
  std::string title;  ///< heading for people; empty = none
  bool is_list = true;
  std::vector<Record> records;       ///< one unless is_list, or none: null
  bool for_people = false;           ///< a view of figures that stand in another block: in tables only
  bool by_figure = false;            ///< people read it as side_by_side() lays it out
  bool for_files = false;            ///< in JSON and CSV only
  std::vector<ShownColumn> columns;  ///< what people read, in this order; empty: every figure with a label
  Record header;                     ///< whose figures are the columns of CSV; without figures the longest record's
  std::vector<Line> lines;           ///< for people, below the table
  bool last = false;                 ///< people read it below what was assumed
  Shown shown = Shown::kAlways;
  std::string
      section;  ///< its name for --only; empty: the key, of a group and without a key the title in small letters
  std::size_t brief_rows = 0;  ///< of a brief table, whose columns that are equal in every row move into its heading;
                               ///< 0: all rows and columns
  std::vector<Line> brief_lines;        ///< in the place of `lines`, with brief_rows
  std::vector<std::string> brief_keys;  ///< of a brief object, or records side by side: figures whose key starts so;
                                        ///< empty: all
};

/// For files, "best": the first record of a ranking, null if nothing answers the question.
Block best_block(const Block& ranking);
/// A block of lines for people.
Block lines_block(std::string_view title, std::vector<Line> lines);
/// For people, a sum taken apart: parts, their shares of `whole`, and the whole.
struct PartsTable {
  std::string what, value, share;  ///< titles of the columns
  Format format = Format::kSeconds;
  double whole = 0;
};
Record parts_record(const PartsTable& table, std::string_view part, double value, Role role = Role::kPlain);

struct Output {
  std::string command;  ///< "roofline": the schema is scalecalc/roofline/1
  std::string title;
  std::vector<Line> summary;          ///< what must be read first
  std::vector<Line> headline;         ///< the answer in a line or two, below the summary
  std::string software;               ///< people read below it what runs this: "software: torchtitan 2026-08 (...)"
  std::vector<std::string> deciding;  ///< flags (keys) of the assumptions that a brief answer shows; none: all
  std::vector<std::string> warnings;
  Record query;                         ///< of what was asked, what no flag says; member "query"
  std::string question;                 ///< the command line, quoted for a shell, that asks the same again
  std::vector<ReplacedFile> read_from;  ///< user's files in the place of the catalog's; member "read_from" if any
  std::vector<Block> blocks;            ///< CSV and JSON Lines write `lines_of`, or the first list, or the first block
  std::string lines_of;                 ///< key of a block; empty: as above
  std::string line_schema;              ///< of JSON Lines: "train-plan"; empty: the command
  std::optional<Record> line_head;      ///< members of each JSON line before the record's; without it "query"
  std::optional<Record> answer;         ///< of which the headline speaks, where that is not the first record
  std::vector<Assumption> assumptions;
  std::vector<std::string> notes;
  std::vector<Plot> plots;                              ///< its pictures; empty: it has none
  std::vector<Plot> page_plots;                         ///< those of its page, if they are others
  std::optional<std::vector<std::string>> brief_notes;  ///< in the place of `notes` in a brief answer
  std::vector<ExplainSection> explanation;              ///< beside the workings of the figures
  std::string explained;              ///< "plan 2": whose explanation it is; empty: of the whole output
  bool nothing_fits = false;          ///< well asked, and nothing answers it: exit status 3
  bool complete = true;               ///< false: interrupted, and marked as partial in every format
  std::optional<double> elapsed_s{};  ///< with --perf, what answering took: the one figure that differs between answers
  bool keeps_points = false;          ///< JSON writes 2.0 for a figure that is no count, where others write 2
};

/// Stands above an incomplete output; JSON has `"partial": true`, CSV a column `partial`.
inline constexpr std::string_view kPartial = "partial: interrupted; this is what was found until then";

/// What people read of a figure; nothing if they read none of it.
Cell shown_cell(const Figure& f);
/// The block whose records CSV and JSON Lines write; nullptr if the output has no block.
const Block* record_block(const Output& output);
/// The main table of what people read, on which --columns works; nullptr if the output has no block.
const Block* leading_block(const Output& output);
/// The records of a list by their group, in the order in which the groups first appear; its lines stand below the last.
std::vector<Block> grouped_blocks(const Block& block);
/// The one with most figures: a figure that some records lack stands in it.
const Record& widest_record(const std::vector<Record>& records);
/// As CSV and rows name it: its column, else its key with the objects before it, a layout's left out: "run_cost_usd"
/// of run.cost_usd, "dp" of layout.dp.
std::string column_of(const Figure& f);
const Figure* find_figure(const std::vector<const Figure*>& figures, const std::string& column);
/// The figures of a record that people read, those of objects inside it too.
std::vector<const Figure*> people_figures(const Record& record);
/// The figures of a record that have a CSV column, those of objects inside it too.
std::vector<const Figure*> csv_figures(const Record& record);
/// The records of CSV: every figure with a column.
Table csv_records(const Output& output);
/// The working of each block's figures, each formula once.
std::vector<ExplainSection> output_explanation(const Output& output);

/// Which part of an answer a reader of text wants.
struct AskedText {
  bool explain = false;  ///< a section of formulas follows
  Depth depth = Depth::kFull;
  bool headline_alone = false;
  std::vector<std::string> only;     ///< these sections, in full; empty: all
  std::vector<std::string> columns;  ///< of the main table; empty: the usual ones
};

/// For people. UserError for a section or a column that the answer does not have.
Report output_report(const Output& output, const AskedText& part);
inline Report output_report(const Output& output, bool explain) { return output_report(output, AskedText{explain}); }
/// The answer in a line or two.
std::vector<Line> headline_of(const Output& output);
std::string output_json(const Output& output, std::string_view tool_version, bool explain);
/// One line per record of the block that CSV writes, each with the query.
std::string output_jsonl(const Output& output, std::string_view tool_version);
/// The answer, or with `all` every record, as one flat JSON object a line, the question last. A figure is called as its
/// CSV column is; those that CSV has not as their JSON member, the objects around it before it: "memory_bytes_weights".
/// Members that rows of studies have themselves (kRowMembers) get "out_" before them. Lists stay lists.
std::string output_rows(const Output& output, bool all);
inline constexpr std::array<std::string_view, 6> kRowMembers{"case",   "record",   "status",
                                                             "reason", "warnings", "question"};

}  // namespace scalecalc
