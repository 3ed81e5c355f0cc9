// Merges the rows of all shards in the order of their cases, one line in memory at a time.
#include "batch/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "batch/files.h"
#include "batch/row.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_result(const std::string& path, std::string message, std::string hint) {
  throw UserError({Diagnostic{SourceSpan{.file = path}, std::move(message), std::move(hint)}});
}

std::string again(const std::string& path) { return fmt::format("remove it and run its shard again: rm {}", path); }

void check_states(const ShardStates& states, const StudyManifest& manifest, const std::string& directory) {
  std::vector<Diagnostic> problems;
  const auto add = [&](const std::vector<std::uint64_t>& shards, std::string_view what, std::string_view hint) {
    if (shards.empty()) return;
    problems.push_back({SourceSpan{.file = directory},
                        fmt::format("{} of {} shards {}: {}", shards.size(), manifest.shards, what, index_list(shards)),
                        fmt::format(fmt::runtime(hint), directory)});
  };
  add(states.missing, "are missing", "scalecalc batch run {} --shard I/N computes one");
  add(states.foreign, "belong to another study", "remove their files and run them again");
  add(states.damaged, "are damaged", "remove their files and run them again");
  if (!problems.empty()) throw UserError(std::move(problems));
}

/// The lines of one shard, checked against its last one.
class ShardLines {
 public:
  ShardLines(const std::string& path, std::string_view head, std::size_t buffer)
      : path_(path), head_(head), lines_(path, buffer) {
    advance();
  }

  /// The case of the line at hand; nothing behind the last row.
  std::optional<std::uint64_t> number() const { return number_; }
  std::string_view line() const { return line_; }

  void advance() {
    const auto next = lines_.next();
    if (!next) damaged();
    line_ = *next;
    number_ = case_of(line_, head_);
    if (limits::json_exceeds(line_, limits::kTreeLevels, number_ ? limits::kRowValues : SIZE_MAX)) damaged();
    if (number_) {
      ++rows_;
      digest_.add(line_);
      digest_.add("\n");
      return;
    }
    const auto end = read_end_line(line_);
    if (!end || end->rows != rows_ || end->sha256 != digest_.take() || lines_.next()) damaged();
  }

  [[noreturn]] void damaged() const {
    refuse_result(path_, "the shard is damaged: its rows are not those its last line speaks of", again(path_));
  }

 private:
  std::string path_;
  std::string_view head_;
  LineReader lines_;
  std::string_view line_;
  std::optional<std::uint64_t> number_;
  std::uint64_t rows_ = 0;
  Sha256 digest_;
};

std::size_t buffer_for(std::uint64_t shards) {
  constexpr std::size_t kLarge = std::size_t{1} << 16U;
  constexpr std::size_t kSmall = std::size_t{1} << 12U;
  constexpr std::uint64_t kAll = std::uint64_t{1} << 25U;
  return std::clamp<std::size_t>(kAll / shards, kSmall, kLarge);
}

}  // namespace

ShardStates shard_states(const StudyManifest& manifest, const std::string& directory) {
  ShardStates out;
  RowColumns columns;
  for (std::uint64_t shard = 0; shard < manifest.shards; ++shard) {
    const std::string path = shard_path(directory, shard, manifest.shards);
    if (!file_exists(path)) {
      out.missing.push_back(shard);
      continue;
    }
    const auto end = shard_end(path);
    if (!end || end->manifest != manifest.hash) {
      (end ? out.foreign : out.damaged).push_back(shard);
      continue;
    }
    out.rows += end->rows;
    for (std::size_t i = 0; i < kRowStatuses; ++i) out.statuses[i] += end->statuses[i];
    columns.merge(end->columns);
  }
  out.columns = columns.sorted();
  return out;
}

std::string index_list(const std::vector<std::uint64_t>& numbers) {
  std::string out;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t end = i;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    out += fmt::format("{}{}", out.empty() ? "" : ",", numbers[i]);
    if (end > i) out += fmt::format("{}{}", end == i + 1 ? "," : "-", numbers[end]);
    i = end + 1;
  }
  return out;
}

void merge_shards(const StudyManifest& manifest, const std::string& directory,
                  const std::function<void(std::string_view line)>& row) {
  check_states(shard_states(manifest, directory), manifest, directory);
  const std::string head = row_head(manifest.tool_version, manifest.study.command);
  std::vector<std::unique_ptr<ShardLines>> shards;
  for (std::uint64_t shard = 0; shard < manifest.shards; ++shard) {
    shards.push_back(
        std::make_unique<ShardLines>(shard_path(directory, shard, manifest.shards), head, buffer_for(manifest.shards)));
  }
  const bool every_case = manifest.study.where.empty();
  for (std::uint64_t number = 0; number < manifest.cases; ++number) {
    ShardLines& shard = *shards[number % manifest.shards];
    if (shard.number() != number) {
      if (every_case || (shard.number() && *shard.number() < number)) shard.damaged();
      continue;
    }
    for (; shard.number() == number; shard.advance()) row(shard.line());
  }
  for (const auto& shard : shards) {
    if (shard->number()) shard->damaged();
  }
}

void clean_directory(const std::string& directory) {
  clean_growing(directory);
  for (const std::string& name : names_in(directory)) {
    if (!is_unfinished(name)) continue;
    const std::string path = (fs::path(directory) / name).string();
    if (OpenFile::for_writing(path).lock()) remove_file(path);
  }
}

}  // namespace scalecalc
