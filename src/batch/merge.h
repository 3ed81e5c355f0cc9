// The rows of all shards in the order of the cases, read line by line: memory does not grow with the study.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "batch/manifest.h"
#include "batch/shard.h"

namespace scalecalc {

struct ShardStates {
  std::vector<std::uint64_t> missing;
  std::vector<std::uint64_t> foreign;  ///< of another manifest
  std::vector<std::uint64_t> damaged;  ///< without their last line
  std::uint64_t rows = 0;              ///< of the shards that are there
  StatusCounts statuses{};
  std::vector<RowColumn> columns;  ///< of all rows of the shards that are there
};

/// From the last lines alone.
ShardStates shard_states(const StudyManifest& manifest, const std::string& directory);

/// "0,3,5-9", as job schedulers write arrays.
std::string index_list(const std::vector<std::uint64_t>& numbers);

/// UserError (exit 2) if a shard is missing, foreign or damaged; found at the latest when its last row was given, so
/// the caller must not let go of what it made before this returns.
void merge_shards(const StudyManifest& manifest, const std::string& directory,
                  const std::function<void(std::string_view line)>& row);

/// Removes unfinished shards and results that nobody is at.
void clean_directory(const std::string& directory);

}  // namespace scalecalc
