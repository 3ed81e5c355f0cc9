// A question's answer as lines of results: flat JSON objects, their members in one order.
//
//   {"schema":"scalecalc/batch-row/1","tool_version":"0.1.0","command":"train","case":7,"status":"ok",
//    "in_chips":256, ...the answer as -o row writes it, its "question" last..., "warnings":"..."}
// A question without an answer has "reason" in the place of figures, and its question behind it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batch/cases.h"
#include "report/json_text.h"

namespace scalecalc {

/// A text in quotes; bytes that are not UTF-8 are replaced.
std::string json_string(std::string_view text);

// The columns that rows have: their names in the order in which they first appear, and what stands in them.

/// Each can be read as those after it.
enum class ColumnKind { kNothing, kFlag, kInteger, kReal, kText };

struct RowColumn {
  std::string name;
  ColumnKind kind = ColumnKind::kNothing;
  std::uint64_t first_case = 0;  ///< with `position`, what orders columns the same for any number of shards
  std::size_t position = 0;      ///< in the row where it first appeared
};

class RowColumns {
 public:
  /// Starts a row; its members follow in order.
  void start(std::uint64_t number) {
    case_ = number;
    next_ = 0;
  }
  void see(std::string_view name, ColumnKind kind);
  void merge(const std::vector<RowColumn>& others);

  /// Sorted by where they first appeared.
  std::vector<RowColumn> sorted() const;

 private:
  RowColumn& column(std::string_view name);

  std::uint64_t case_ = 0;
  std::size_t next_ = 0;  ///< rows mostly have the same members in the same order
  std::vector<RowColumn> columns_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

ColumnKind kind_of(const Json& value);
Json columns_json(const std::vector<RowColumn>& columns);
/// What columns_json() wrote.
std::vector<RowColumn> columns_from(const Json& json);

enum class RowStatus {
  kOk,
  kInfeasible,  ///< well-formed, and nothing fits
  kWrong,       ///< the question is wrong
  kBug,         ///< of ours
};
inline constexpr std::size_t kRowStatuses = 4;
inline constexpr std::string_view kRowSchema = "scalecalc/batch-row/1";
std::string_view status_name(RowStatus status);

RowStatus status_of(int exit);

/// What all rows of a study start with.
std::string row_head(std::string_view tool_version, std::string_view command);

/// The lines of one case.
std::string rows_of(std::string_view head, std::uint64_t number, const Cases& cases, const GridPoint& point,
                    const StudyQuestion& question, const StudyReply& reply, bool all_records);

/// A line read back: its case, its status, and its members noted in `columns`. Nothing if it is not a whole row; then
/// `columns` may have members of it.
struct RowStanding {
  std::uint64_t number = 0;
  RowStatus status = RowStatus::kOk;
};
std::optional<RowStanding> read_row(std::string_view line, std::string_view head, RowColumns& columns);
/// The case alone, without reading the rest.
std::optional<std::uint64_t> case_of(std::string_view line, std::string_view head);

}  // namespace scalecalc
