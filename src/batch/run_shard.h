// Asking the questions of a shard on several threads, in the order of the cases.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "batch/cases.h"
#include "batch/manifest.h"
#include "batch/shard.h"

namespace scalecalc {

/// By the number of their case.
using KnownReplies = std::map<std::uint64_t, StudyReply>;

struct RunOptions {
  unsigned jobs = 0;                              ///< threads; 0 = usable_cores
  bool strict = false;                            ///< the first question without an answer ends the run
  std::function<bool()> stop;                     ///< polled; empty = never
  std::function<void(std::uint64_t cases)> tell;  ///< cases that landed since it was called last; empty = nobody asks
  const KnownReplies* known = nullptr;            ///< of cases that are not asked again; null: none
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

// A few questions of a study asked beforehand: how long all will take, and whether they make sense at all.
struct StudySample {
  struct Wrong {
    std::string question;
    std::string reason;
  };
  std::uint64_t asked = 0;
  std::vector<Wrong> wrong;  ///< the question itself is wrong
  double seconds_each = 0;   ///< of one thread and one question
  double kept_share = 1;     ///< of the points, by `where`
  KnownReplies replies;      ///< all but that of a question that was interrupted
};

/// Asks at most `most` questions spread over the grid, for at most `seconds` (and at least one), but for cases whose
/// replies are `known`. UserError if `where`
/// keeps none of the points looked at and the grid is small enough to know that it keeps none at all, or if every
/// question is wrong.
StudySample sample_study(const Study& study, const Cases& cases, const Ask& ask, std::uint64_t most, double seconds,
                         const KnownReplies& known = {});

}  // namespace scalecalc
