// A question's answer as lines of results: flat JSON objects, their members in one order.
//
//   {"schema":"scalecalc/batch-row/1","tool_version":"0.1.0","command":"train","case":7,"status":"ok",
//    "in_chips":256, ...what the command answers, nested members joined by _..., "warnings":"...","question":"..."}
// A question without an answer has "reason" in the place of figures.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "batch/cases.h"
#include "batch/row_columns.h"

namespace scalecalc {

enum class RowStatus {
  kOk,
  kInfeasible,  ///< well-formed, and nothing fits
  kWrong,       ///< the question is wrong
  kBug,         ///< of ours
};
inline constexpr std::size_t kRowStatuses = 4;
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
