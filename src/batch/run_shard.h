// Asking the questions of a shard on several threads, in the order of the cases.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "batch/manifest.h"
#include "batch/shard.h"

namespace scalecalc {

struct RunOptions {
  unsigned jobs = 0;                              ///< threads; 0 = all cores
  bool strict = false;                            ///< the first question without an answer ends the run
  std::function<bool()> stop;                     ///< polled; empty = never
  std::function<void(std::uint64_t cases)> tell;  ///< cases that landed since it was called last; empty = nobody asks
};

enum class RunEnd { kDone, kStopped, kFailed };

struct ShardRun {
  RunEnd end = RunEnd::kDone;
  StatusCounts statuses{};
  std::string failed_question;  ///< of kFailed
  StudyReply failed;
};

/// Answers what has not landed yet; nothing to do if the shard is there. The rows are the same for any number of
/// threads.
ShardRun run_shard(const StudyManifest& manifest, const std::string& directory, std::uint64_t shard, const Ask& ask,
                   const RunOptions& options);

}  // namespace scalecalc
