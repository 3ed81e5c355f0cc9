// Reads Nsight Systems' SQLite export (nsys export --type sqlite): tables exist where events do, and columns differ
// between releases, so both are asked for first.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/quoting.h"
#include "base/text.h"
#include "profile/recording.h"

namespace scalecalc {
namespace {

constexpr Ticks kTicksPerNanosecond = 1000;
constexpr const char* kExportAgain = "it was cut off, changed or is damaged: export it again";

class NsightReader {
 public:
  NsightReader(const std::string& path, const Stop& stop) : stop_(stop), tables_(out_) {
    out_.file = path;
    out_.format = RecordingFormat::kNsight;
    sqlite3* made = nullptr;
    std::error_code none;
    if (!std::filesystem::exists(path, none)) {
      throw UserError({Diagnostic{SourceSpan{.file = path}, "is an SQLite database in an archive", "unpack it first"}});
    }
    const std::uintmax_t size = std::filesystem::file_size(path, none);
    cells_.reads(none ? 0 : size);
    steps_.reads(none ? 0 : size);
    check_journals();
    // immutable: the file is only looked at; no journal is made or waited for beside it.
    const std::string uri = fmt::format("file:{}?immutable=1", escaped(path));
    const int status = sqlite3_open_v2(uri.c_str(), &made, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
    open_.reset(made);
    if (status != SQLITE_OK) fail();
    // Who made the file may have put anything into its schema.
    sqlite3_db_config(made, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(made, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_limit(made, SQLITE_LIMIT_LENGTH, static_cast<int>(limits::kCellText));
    sqlite3_progress_handler(made, kStepsBetweenLooks, look, this);
  }

  Recording read() {
    // Tables that are in the file: a view or a virtual one has no page of its own.
    query("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0",
          [&](Row row) { found_.insert(row.text(0)); });
    const bool rocpd = std::any_of(found_.begin(), found_.end(), [](const auto& t) { return t.starts_with("rocpd_"); });
    if (rocpd) {
      throw UserError({Diagnostic{SourceSpan{.file = out_.file}, "is rocprofv3's database (rocpd), which is not read",
                                  "rocpd convert --output-format csv -i FILE.db, or rocprofv3 --output-format json"}});
    }
    if (!found_.contains("CUPTI_ACTIVITY_KIND_KERNEL") && !found_.contains("CUPTI_ACTIVITY_KIND_MEMCPY")) {
      throw UserError({Diagnostic{SourceSpan{.file = out_.file},
                                  "an SQLite database without CUPTI_ACTIVITY_KIND_KERNEL: no GPU activity of Nsight "
                                  "Systems is in it",
                                  "record with nsys profile --trace cuda,nvtx and export with --type sqlite"}});
    }
    if (has("StringIds", "id") && has("StringIds", "value")) {
      query("SELECT id, value FROM StringIds", [&](Row row) { strings_[row.number(0)].text = row.text(1); });
    }
    launches();
    activity("CUPTI_ACTIVITY_KIND_KERNEL",
             has("CUPTI_ACTIVITY_KIND_KERNEL", "demangledName") ? "demangledName" : "shortName", "");
    activity("CUPTI_ACTIVITY_KIND_MEMCPY", "", "Memcpy");
    activity("CUPTI_ACTIVITY_KIND_MEMSET", "", "Memset");
    ranges();
    if (has("TARGET_INFO_GPU", "name")) {
      query("SELECT name FROM TARGET_INFO_GPU LIMIT 1", [&](Row row) { out_.chip = row.text(0); });
    }
    return std::move(out_);
  }

 private:
  /// A text of the database's own table of them, and what it is in the recording once something has that name.
  struct Text {
    std::string text;
    std::optional<std::uint32_t> name;
    SharedText marker;
  };
  static constexpr int kStepsBetweenLooks = 10'000;
  struct Row {
    sqlite3_stmt* at;
    bool is_text(int column) const { return sqlite3_column_type(at, column) == SQLITE_TEXT; }
    bool is_null(int column) const { return sqlite3_column_type(at, column) == SQLITE_NULL; }
    std::int64_t number(int column) const { return sqlite3_column_int64(at, column); }
    std::string text(int column) const {
      const unsigned char* text = sqlite3_column_text(at, column);
      return text == nullptr ? "" : reinterpret_cast<const char*>(text);
    }
  };

  static std::string escaped(const std::string& path) {
    std::string out;
    for (const char c : path) out += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", c) : std::string(1, c);
    return out;
  }

  /// What another program has written and not yet put into the file is in a journal next to it.
  void check_journals() const {
    for (const char* end : {"-wal", "-journal"}) {
      const std::string journal = out_.file + end;
      std::ifstream in(journal, std::ios::binary);
      const int first = in.get();  // that of a journal which is done is empty, or begins with zeros
      if (!in || first == 0) continue;
      throw UserError({Diagnostic{
          SourceSpan{.file = out_.file}, fmt::format("{} holds changes that are not in the database yet", journal),
          fmt::format("sqlite3 {} 'PRAGMA wal_checkpoint(TRUNCATE)'", shell_quoted(out_.file))}});
    }
  }

  /// Called by SQLite as it works: 1 ends the query.
  static int look(void* reader) {
    NsightReader& self = *static_cast<NsightReader*>(reader);
    self.stopped_ = should_stop(self.stop_);
    return self.stopped_ || !self.steps_.makes(kStepsBetweenLooks) ? 1 : 0;
  }

  [[noreturn]] void fail() const {
    throw UserError(
        {Diagnostic{SourceSpan{.file = out_.file},
                    fmt::format("the database cannot be read: {}", sqlite3_errmsg(open_.get())), kExportAgain}});
  }

  template <class Take>
  void query(const std::string& sql, const Take& take) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(open_.get(), sql.c_str(), -1, &made, nullptr) != SQLITE_OK) fail();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(made, sqlite3_finalize);
    int status = SQLITE_ROW;
    while ((status = sqlite3_step(made)) == SQLITE_ROW) {
      constexpr std::uint64_t kRow = 8;
      std::uint64_t bytes = kRow;
      for (int i = 0; i < sqlite3_column_count(made); ++i) {
        if (sqlite3_column_type(made, i) > SQLITE_FLOAT)
          bytes += static_cast<std::uint64_t>(sqlite3_column_bytes(made, i));
      }
      if (!cells_.makes(bytes))
        throw UserError({Diagnostic{SourceSpan{.file = out_.file}, cells_.message(), kExportAgain}});
      take(Row{made});
    }
    if (status == SQLITE_INTERRUPT && stopped_) throw Stopped();
    if (status != SQLITE_DONE) fail();
  }

  bool has(const std::string& table, std::string_view column) {
    if (!found_.contains(table)) return false;
    bool out = false;
    query(fmt::format("PRAGMA table_xinfo({})", table), [&](Row row) {
      if (row.text(1) != column) return;
      out = true;
      if (row.number(6) == 0) return;
      throw UserError({Diagnostic{
          SourceSpan{.file = out_.file},
          fmt::format("{}.{} is computed by the schema: Nsight Systems makes no such column", table, column),
          kExportAgain}});
    });
    return out;
  }
  /// The column, or NULL where the table has none of it.
  std::string column(const std::string& table, std::string_view name) {
    return has(table, name) ? std::string(name) : "NULL";
  }

  static std::uint64_t launch_key(std::int64_t process, std::int64_t correlation) {
    constexpr std::int64_t kThreadBits = 0x1000000;
    return static_cast<std::uint64_t>(process / kThreadBits) * 0x9E3779B97F4A7C15ULL ^
           static_cast<std::uint64_t>(correlation);
  }

  void launches() {
    const std::string table = "CUPTI_ACTIVITY_KIND_RUNTIME";
    if (!has(table, "start") || !has(table, "correlationId")) return;
    query(fmt::format("SELECT start, correlationId, {} FROM {}", column(table, "globalTid"), table), [&](Row row) {
      ++out_.read;
      room(launched_.size() / kHostEvents);
      launched_[launch_key(row.number(2), row.number(1))] = row.number(0);
    });
  }

  /// Which name of the recording a cell is; one of the table of texts is looked up once.
  std::uint32_t name_at(Row row, int column) {
    if (row.is_text(column)) return tables_.name(row.text(column));
    Text& text = text_of(row.number(column));
    if (!text.name) text.name = tables_.name(text.text);
    return *text.name;
  }
  Text& text_of(std::int64_t id) {
    const auto [at, is_new] = strings_.try_emplace(id);
    if (is_new) at->second.text = fmt::format("string {}", id);
    return at->second;
  }

  Ticks ticks(std::int64_t ns) {
    if (!base_ns_) base_ns_ = ns;
    constexpr std::int64_t kFarthest = std::int64_t{4'000'000} * 1'000'000'000;
    if (ns < *base_ns_ - kFarthest || ns > *base_ns_ + kFarthest) {
      throw UserError(
          {Diagnostic{SourceSpan{.file = out_.file}, fmt::format("an event at {} ns, months from others", ns),
                      "the database is damaged"}});
    }
    return (ns - *base_ns_) * kTicksPerNanosecond;
  }

  void activity(const std::string& table, const std::string& name, const std::string& fixed) {
    if (!has(table, "start") || !has(table, "end")) return;
    query(fmt::format("SELECT start, \"end\", {}, {}, {}, {}, {}, {} FROM {} ORDER BY start", column(table, "deviceId"),
                      column(table, "streamId"), column(table, "correlationId"), column(table, "globalPid"),
                      name.empty() ? "NULL" : column(table, name), column(table, "bytes"), table),
          [&](Row row) { event(row, fixed); });
  }

  void room(std::size_t kept) const {
    if (kept < limits::kRecordedEvents) return;
    throw UserError({Diagnostic{SourceSpan{.file = out_.file}, limits::too_many(limits::kRecordedEvents, kEventsKept),
                                "record fewer steps"}});
  }

  void event(Row row, const std::string& fixed) {
    ++out_.read;
    room(out_.events.size());
    const Ticks start = ticks(row.number(0));
    const Ticks end = ticks(row.number(1));
    if (end < start) {
      throw UserError({Diagnostic{SourceSpan{.file = out_.file},
                                  fmt::format("an event that ends at {} ns before it starts", row.number(1)),
                                  "the database is damaged"}});
    }
    const std::uint32_t device = tables_.device(fmt::format("GPU {}", row.number(2)));
    RecordedEvent out{start, end, kNoTick, 0, 0, 0, tables_.lane(device, fmt::format("stream {}", row.number(3)))};
    out.name = fixed.empty() ? name_at(row, 6) : tables_.name(fixed);
    if (!row.is_null(7)) out.op = tables_.op({.bytes = static_cast<double>(row.number(7))});
    const auto launched = launched_.find(launch_key(row.number(5), row.number(4)));
    if (!row.is_null(4) && launched != launched_.end()) out.launch = ticks(launched->second);
    out_.events.push_back(out);
  }

  SharedText marker_at(Row row) {
    const std::string own = row.text(2);
    if (!own.empty() || row.is_null(3)) return tables_.marker(own);
    if (row.is_text(3)) return tables_.marker(row.text(3));
    Text& text = text_of(row.number(3));
    if (text.marker.empty()) text.marker = tables_.marker(text.text);
    return text.marker;
  }

  void ranges() {
    const std::string table = "NVTX_EVENTS";
    if (!has(table, "start") || !has(table, "end")) return;
    query(fmt::format("SELECT start, \"end\", {}, {} FROM {} WHERE \"end\" IS NOT NULL ORDER BY start",
                      column(table, "text"), column(table, "textId"), table),
          [&](Row row) {
            ++out_.read;
            room(out_.markers.size() / kHostEvents);
            const Ticks start = ticks(row.number(0));
            const Ticks end = ticks(row.number(1));
            if (end > start) out_.markers.push_back({start, end, marker_at(row), std::nullopt});
          });
  }

  const Stop& stop_;
  Recording out_;
  RecordingTables tables_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> open_{nullptr, sqlite3_close_v2};
  std::set<std::string> found_;
  std::unordered_map<std::int64_t, Text> strings_;
  std::unordered_map<std::uint64_t, std::int64_t> launched_;
  std::optional<std::int64_t> base_ns_;
  limits::Expansion cells_{limits::kDatabaseCells}, steps_{limits::kDatabaseSteps};
  bool stopped_ = false;
};

}  // namespace

Recording read_nsight(const std::string& path, const Stop& stop) { return NsightReader(path, stop).read(); }

}  // namespace scalecalc
