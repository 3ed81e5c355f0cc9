// Appends rows to the file of a shard, resumes it after a kill, and closes it with its hash.
#include "batch/shard.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>

#include "base/check.h"
#include "base/limits.h"
#include "report/json_text.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEndStart = R"({"end":true,)";

std::string host_name() {
  std::string out(256, '\0');
  if (::gethostname(out.data(), out.size() - 1) != 0) return "host";
  out.resize(out.find('\0'));
  return out;
}

}  // namespace

std::string shard_name(std::uint64_t shard, std::uint64_t shards) {
  return fmt::format("shard-{:05}-of-{:05}.jsonl", shard, shards);
}

std::string shard_path(const std::string& directory, std::uint64_t shard, std::uint64_t shards) {
  return (fs::path(directory) / shard_name(shard, shards)).string();
}

std::string end_line(const ShardEnd& end, std::uint64_t shard, std::uint64_t shards) {
  Json statuses = Json::object();
  for (std::size_t i = 0; i < kRowStatuses; ++i) {
    statuses[std::string(status_name(static_cast<RowStatus>(i)))] = end.statuses[i];
  }
  const Json json = {{"end", true},
                     {"shard", shard},
                     {"shards", shards},
                     {"rows", end.rows},
                     {"statuses", statuses},
                     {"sha256", end.sha256},
                     {"manifest", end.manifest},
                     {"columns", columns_json(end.columns)}};
  return json_text(json, -1);
}

std::optional<ShardEnd> read_end_line(std::string_view line) {
  if (!line.starts_with(kEndStart) || limits::json_exceeds(line, limits::kTreeLevels)) return std::nullopt;
  try {
    const Json json = Json::parse(line);
    ShardEnd out;
    out.rows = json.at("rows");
    for (std::size_t i = 0; i < kRowStatuses; ++i) {
      out.statuses[i] = json.at("statuses").at(std::string(status_name(static_cast<RowStatus>(i))));
    }
    out.sha256 = json.at("sha256");
    out.manifest = json.at("manifest");
    out.columns = columns_from(json.at("columns"));
    return out;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

std::optional<ShardEnd> shard_end(const std::string& path) {
  const OpenFile file = OpenFile::for_reading(path);
  const std::uint64_t size = file.size();
  std::string tail;
  // The last line is as long as there are columns; read back until it is whole.
  for (std::uint64_t back = 1U << 14U;; back *= 4) {
    const std::uint64_t from = back < size ? size - back : 0;
    tail.resize(size - from);
    tail.resize(file.read_at(from, tail.data(), tail.size()));
    if (!tail.ends_with('\n')) return std::nullopt;
    tail.pop_back();
    const std::size_t start = tail.rfind('\n');
    if (start != std::string::npos) return read_end_line(std::string_view(tail).substr(start + 1));
    if (from == 0) return read_end_line(tail);
  }
}

bool is_unfinished(std::string_view name) {
  return name.starts_with("shard-") && (name.ends_with(".part") || name.find(".jsonl.tmp.") != std::string_view::npos);
}

ShardWriter::ShardWriter(const StudyManifest& manifest, const std::string& directory, std::uint64_t shard,
                         std::string_view head)
    : manifest_(manifest), directory_(directory), shard_(shard), head_(head), first_case_(shard) {
  end_.manifest = manifest.hash;
  open();
  resume();
}

void ShardWriter::open() {
  constexpr std::size_t kShort = 12;
  const std::string name = shard_path(directory_, shard_, manifest_.shards);
  // The hash keeps rows of another study in the same place apart.
  const std::string part = fmt::format("{}.{}.part", name, manifest_.hash.substr(0, kShort));
  for (;;) {
    file_ = OpenFile::for_writing(part);
    if (!file_.lock()) break;
    if (file_.is_still_named()) return;
  }
  file_ = OpenFile::for_writing(fmt::format("{}.tmp.{}.{}", name, host_name(), ::getpid()));
  file_.cut(0);
}

ShardWriter::Landed ShardWriter::landed() const {
  LineReader lines(OpenFile::for_reading_back(file_.path()));
  Landed out{0, shard_};
  std::optional<std::uint64_t> last;
  RowColumns ignored;
  for (std::uint64_t start = 0;; start = lines.position()) {
    const auto line = lines.next();
    const auto facts = line ? read_row(*line, head_, ignored) : std::nullopt;
    if (!facts || facts->number % manifest_.shards != shard_ || facts->number >= manifest_.cases) break;
    if (last && facts->number < *last) break;
    if (!manifest_.study.all_records) {
      out = {lines.position(), facts->number + manifest_.shards};
    } else if (facts->number != last) {
      // The last of several rows of a case may be missing, so that a case is whole when the next has begun.
      out = {start, facts->number};
    }
    last = facts->number;
  }
  return out;
}

void ShardWriter::resume() {
  const Landed landed_before = landed();
  file_.cut(landed_before.bytes);
  first_case_ = landed_before.next_case;
  LineReader lines(OpenFile::for_reading_back(file_.path()));
  Rows rows;
  while (const auto line = lines.next()) {
    digest_.add(*line);
    digest_.add("\n");
    rows.note(*line, head_);
  }
  count(rows);
}

void ShardWriter::count(const Rows& rows) {
  end_.rows += rows.count;
  for (std::size_t i = 0; i < kRowStatuses; ++i) end_.statuses[i] += rows.statuses[i];
  columns_.merge(rows.columns.sorted());
}

void ShardWriter::append(const Rows& rows) {
  file_.append(rows.text);
  digest_.add(rows.text);
  count(rows);
}

void ShardWriter::Rows::note(std::string_view line, std::string_view head) {
  const auto facts = read_row(line, head, columns);
  check(facts.has_value(), "a row can be read back");
  ++count;
  ++statuses[static_cast<std::size_t>(facts->status)];
}

void ShardWriter::Rows::add(std::string_view lines, std::string_view head) {
  text += lines;
  while (!lines.empty()) {
    const std::size_t end = lines.find('\n');
    note(lines.substr(0, end), head);
    lines.remove_prefix(end + 1);
  }
}

void ShardWriter::finish() {
  end_.sha256 = digest_.take();
  end_.columns = columns_.sorted();
  file_.append(end_line(end_, shard_, manifest_.shards));
  file_.sync();
  rename_file(file_.path(), shard_path(directory_, shard_, manifest_.shards));
}

}  // namespace scalecalc
