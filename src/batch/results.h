// Merged rows to files and streams: JSON Lines, CSV, SQLite, one JSON document, tables; checks that fail the study.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batch/answer_check.h"
#include "batch/manifest.h"
#include "batch/shard.h"
#include "report/render.h"

namespace scalecalc {

enum class ResultFormat { kJsonl, kCsv, kSqlite, kJson, kTable, kMarkdown, kHtml };

struct ResultTarget {
  ResultFormat format = ResultFormat::kJsonl;
  std::string path;  ///< empty: standard output
};

/// How results are written that are no plain rows.
struct ResultStyle {
  std::string document;              ///< a JSON object, whose member "rows" is added
  std::string title;                 ///< of a table
  std::vector<std::string> figures;  ///< its columns behind what was asked
  TextOptions text{};                ///< of standard output
  std::string made_by{};             ///< at the foot of a page
};

struct Violations {
  AnswerCheck check{};
  std::uint64_t rows = 0;                ///< that fail it
  std::vector<std::string> questions{};  ///< of the first few, and what they answered
};

/// Writes all rows to every target and counts the rows that fail each check. Files appear when everything is in them.
/// UserError as merge_shards(), for a condition that cannot be read, and (exit 74) for what cannot be written.
std::vector<Violations> write_results(const StudyManifest& manifest, const std::string& directory,
                                      const std::vector<ResultTarget>& targets, const ResultStyle& style,
                                      const std::vector<AnswerCheck>& checks,
                                      const std::function<void(std::string_view)>& standard_output);

}  // namespace scalecalc
