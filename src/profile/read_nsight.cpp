// Nsight Systems' SQLite export (nsys export --type sqlite): tables exist where events do, and columns differ between
// releases, so both are asked for first.
#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <set>
#include <unordered_map>

#include "base/diagnostic.h"
#include "base/text.h"
#include "profile/recording.h"

namespace scalecalc {
namespace {

constexpr Ticks kTicksPerNanosecond = 1000;

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
    // immutable: the file is only looked at; no journal is made or waited for beside it.
    const std::string uri = fmt::format("file:{}?immutable=1", escaped(path));
    const int status = sqlite3_open_v2(uri.c_str(), &made, SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
    open_.reset(made);
    if (status != SQLITE_OK) fail();
    // Who made the file may have put anything into its schema.
    sqlite3_db_config(made, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    sqlite3_db_config(made, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  }

  Recording read() {
    query("SELECT name FROM sqlite_master WHERE type = 'table'", [&](Row row) { found_.insert(row.text(0)); });
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
    if (has("StringIds", "id")) {
      query("SELECT id, value FROM StringIds", [&](Row row) { strings_[row.number(0)] = row.text(1); });
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

  [[noreturn]] void fail() const {
    throw UserError({Diagnostic{SourceSpan{.file = out_.file},
                                fmt::format("the database cannot be read: {}", sqlite3_errmsg(open_.get())),
                                "it was cut off or is damaged: export it again"}});
  }

  template <class Take>
  void query(const std::string& sql, const Take& take) {
    sqlite3_stmt* made = nullptr;
    if (sqlite3_prepare_v2(open_.get(), sql.c_str(), -1, &made, nullptr) != SQLITE_OK) fail();
    const std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement(made, sqlite3_finalize);
    int status = SQLITE_ROW;
    while ((status = sqlite3_step(made)) == SQLITE_ROW) {
      constexpr std::uint64_t kPolled = 4096;
      if (++rows_ % kPolled == 0 && should_stop(stop_)) throw Stopped();
      take(Row{made});
    }
    if (status != SQLITE_DONE) fail();
  }

  bool has(const std::string& table, std::string_view column) {
    if (!found_.contains(table)) return false;
    bool out = false;
    query(fmt::format("PRAGMA table_info({})", table), [&](Row row) { out |= row.text(1) == column; });
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
    if (!has(table, "correlationId")) return;
    query(fmt::format("SELECT start, correlationId, {} FROM {}", column(table, "globalTid"), table), [&](Row row) {
      ++out_.read;
      launched_[launch_key(row.number(2), row.number(1))] = row.number(0);
    });
  }

  std::string name_at(Row row, int column) const {
    if (row.is_text(column)) return row.text(column);
    const auto found = strings_.find(row.number(column));
    return found == strings_.end() ? fmt::format("string {}", row.number(column)) : found->second;
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
    if (!has(table, "start")) return;
    query(fmt::format("SELECT start, \"end\", {}, {}, {}, {}, {}, {} FROM {} ORDER BY start", column(table, "deviceId"),
                      column(table, "streamId"), column(table, "correlationId"), column(table, "globalPid"),
                      name.empty() ? "NULL" : name, column(table, "bytes"), table),
          [&](Row row) { event(row, fixed); });
  }

  void event(Row row, const std::string& fixed) {
    ++out_.read;
    if (out_.events.size() >= kMostRecorded) {
      throw UserError({Diagnostic{SourceSpan{.file = out_.file},
                                  fmt::format("more than {} events of devices", kMostRecorded), "record fewer steps"}});
    }
    const Ticks start = ticks(row.number(0));
    const Ticks end = ticks(row.number(1));
    if (end < start) {
      throw UserError({Diagnostic{SourceSpan{.file = out_.file},
                                  fmt::format("an event that ends at {} ns before it starts", row.number(1)),
                                  "the database is damaged"}});
    }
    const std::uint32_t device = tables_.device(fmt::format("GPU {}", row.number(2)));
    RecordedEvent out{start, end, kNoTick, 0, 0, 0, tables_.lane(device, fmt::format("stream {}", row.number(3)))};
    out.name = tables_.name(fixed.empty() ? name_at(row, 6) : fixed);
    if (!row.is_null(7)) out.op = tables_.op({.bytes = static_cast<double>(row.number(7))});
    const auto launched = launched_.find(launch_key(row.number(5), row.number(4)));
    if (!row.is_null(4) && launched != launched_.end()) out.launch = ticks(launched->second);
    out_.events.push_back(out);
  }

  void ranges() {
    const std::string table = "NVTX_EVENTS";
    if (!has(table, "start") || !has(table, "end")) return;
    query(fmt::format("SELECT start, \"end\", {}, {} FROM {} WHERE \"end\" IS NOT NULL ORDER BY start",
                      column(table, "text"), column(table, "textId"), table),
          [&](Row row) {
            ++out_.read;
            std::string name = row.text(2);
            if (name.empty() && !row.is_null(3)) name = name_at(row, 3);
            const Ticks start = ticks(row.number(0));
            const Ticks end = ticks(row.number(1));
            if (end > start) out_.markers.push_back({start, end, std::move(name), std::nullopt});
          });
  }

  const Stop& stop_;
  Recording out_;
  RecordingTables tables_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> open_{nullptr, sqlite3_close_v2};
  std::set<std::string> found_;
  std::unordered_map<std::int64_t, std::string> strings_;
  std::unordered_map<std::uint64_t, std::int64_t> launched_;
  std::optional<std::int64_t> base_ns_;
  std::uint64_t rows_ = 0;
};

}  // namespace

Recording read_nsight(const std::string& path, const Stop& stop) { return NsightReader(path, stop).read(); }

}  // namespace scalecalc
