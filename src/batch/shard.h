// One shard of a study: the cases k with k mod N = i, one after the other, in DIR/shard-00005-of-00008.jsonl.
//
// Rows are appended to a .part file as they are answered; a process that is killed loses the rows of some milliseconds,
// and the next one goes on behind the last whole row. The last line says what the file must hold; then the file gets
// its name. The shards of a directory therefore are whole or not there.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/digest.h"
#include "batch/files.h"
#include "batch/manifest.h"
#include "batch/row.h"

namespace scalecalc {

using StatusCounts = std::array<std::uint64_t, kRowStatuses>;

/// What the last line of a shard says of those before it.
struct ShardEnd {
  std::uint64_t rows = 0;
  StatusCounts statuses{};  ///< rows by status
  std::string sha256;       ///< of all lines before
  std::string manifest;     ///< hash
  std::vector<RowColumn> columns;
};

std::string shard_name(std::uint64_t shard, std::uint64_t shards);
std::string shard_path(const std::string& directory, std::uint64_t shard, std::uint64_t shards);

std::string end_line(const ShardEnd& end, std::uint64_t shard, std::uint64_t shards);
/// Nothing if the line is none.
std::optional<ShardEnd> read_end_line(std::string_view line);
/// The end of a shard that landed; nothing if the file is cut or not a shard.
std::optional<ShardEnd> shard_end(const std::string& path);

class ShardWriter {
 public:
  /// Lines that belong together, counted where they are made and not where they are written.
  struct Rows {
    std::string text;
    std::uint64_t count = 0;
    StatusCounts statuses{};
    RowColumns columns;

    void add(std::string_view lines, std::string_view head);
    void note(std::string_view line, std::string_view head);
  };

  /// Goes on where another process was killed, unless one is still at it: then this one works on a file of its own, and
  /// whoever is done last gives the shard its name, with the same bytes.
  ShardWriter(const StudyManifest& manifest, const std::string& directory, std::uint64_t shard, std::string_view head);

  /// Cases before this one have landed.
  std::uint64_t first_case() const { return first_case_; }
  const StatusCounts& statuses() const { return end_.statuses; }

  /// All lines of some cases that follow.
  void append(const Rows& rows);
  void finish();

 private:
  struct Landed {
    std::uint64_t bytes;
    std::uint64_t next_case;
  };

  void open();
  void resume();
  /// How far the file can be kept.
  Landed landed() const;
  void count(const Rows& rows);

  const StudyManifest& manifest_;
  std::string directory_;
  std::uint64_t shard_;
  std::string head_;
  OpenFile file_;
  Sha256 digest_;
  RowColumns columns_;
  ShardEnd end_;
  std::uint64_t first_case_;
};

/// Whether a name in the directory is unfinished work of a shard.
bool is_unfinished(std::string_view name);

}  // namespace scalecalc
