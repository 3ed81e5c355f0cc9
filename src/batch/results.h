// Merged rows to files and streams: JSON Lines, CSV, SQLite; conditions that fail the study.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "batch/manifest.h"
#include "batch/shard.h"

namespace scalecalc {

enum class ResultFormat { kJsonl, kCsv, kSqlite };

struct ResultTarget {
  ResultFormat format = ResultFormat::kJsonl;
  std::string path;  ///< empty: standard output
};

struct Violations {
  std::string condition;
  std::uint64_t rows = 0;
  std::vector<std::string> questions;  ///< of the first few
};

/// Writes all rows to every target and counts the rows for which each condition holds. Files appear when everything is
/// in them. UserError as merge_shards(), for a condition that cannot be read, and (exit 74) for what cannot be written.
std::vector<Violations> write_results(const StudyManifest& manifest, const std::string& directory,
                                      const std::vector<ResultTarget>& targets,
                                      const std::vector<std::string>& conditions,
                                      const std::function<void(std::string_view)>& standard_output);

}  // namespace scalecalc
