// What AMD's profilers recorded of a process, whichever file it stands in, as a recording.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "profile/recording.h"

namespace scalecalc {

/// What a table or an array of records tells of one.
struct RocRecord {
  std::string name, agent, stream, direction;
  std::optional<std::int64_t> start, end;
  std::uint64_t correlation = 0;
  std::int64_t kernel = -1, kind = -1, operation = -1;
  std::string from, to;
  double bytes = 0;
};

enum class RocTable : std::uint8_t { kKernels, kCopies, kCalls, kRanges, kOther };

/// Records into a recording, whichever file they stand in.
class RocRecords {
 public:
  explicit RocRecords(const std::string& path);

  /// What is wrong with it; empty if nothing is.
  std::string take(RocTable table, const RocRecord& record);
  Recording finish();
  Recording& recording() { return out_; }

 private:
  void event(Ticks start, Ticks end, const std::string& name, const std::string& agent, const RocRecord& r,
             std::uint32_t op);
  void copy(Ticks start, Ticks end, const RocRecord& r);

  Recording out_;
  RecordingTables tables_;
  std::optional<std::int64_t> base_;
  std::unordered_map<std::uint64_t, Ticks> launches_;
  std::vector<std::uint64_t> correlations_;  ///< beside out_.events
};

}  // namespace scalecalc
