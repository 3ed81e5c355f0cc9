#include "batch/sqlite_table.h"

#include <fmt/format.h>

#include <filesystem>

#include "base/diagnostic.h"
#include "batch/result_place.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

std::string_view sql_type(ColumnKind kind) {
  switch (kind) {
    case ColumnKind::kFlag:
    case ColumnKind::kInteger: return "INTEGER";
    case ColumnKind::kReal: return "REAL";
    case ColumnKind::kNothing:
    case ColumnKind::kText: return "TEXT";
  }
  return "TEXT";
}

/// `kept` holds a text until the step.
void bind_json(const Statement& statement, int position, const Json& value, std::string& kept) {
  sqlite3_stmt* handle = statement.handle();
  if (value.is_boolean()) {
    sqlite3_bind_int(handle, position, value.get<bool>() ? 1 : 0);
  } else if (value.is_number_integer()) {
    sqlite3_bind_int64(handle, position, value.get<std::int64_t>());
  } else if (value.is_number()) {
    sqlite3_bind_double(handle, position, value.get<double>());
  } else if (!value.is_null()) {
    kept = value.is_string() ? value.get<std::string>() : value.dump();
    sqlite3_bind_text(handle, position, kept.data(), static_cast<int>(kept.size()), SQLITE_STATIC);
  }
}

}  // namespace

SqliteTable::SqliteTable(const std::string& directory, const std::string& path, const StudyManifest& manifest,
                         const std::vector<RowColumn>& columns)
    : path_(path), temporary_(growing_name(directory, path)), columns_(columns) {
  if (file_exists(path_)) {
    std::error_code error;
    fs::copy_file(path_, temporary_, fs::copy_options::overwrite_existing, error);
    if (error) {
      throw UserError({Diagnostic{SourceSpan{.file = temporary_}, "cannot write the file: " + error.message(), ""}},
                      ExitCode::kOutputFailed);
    }
  } else {
    remove_file(temporary_);
  }
  lock_ = OpenFile::for_writing(temporary_);
  lock_.lock();
  database_ = std::make_unique<Database>(temporary_);
  create(manifest);
  describe(manifest);
}

SqliteTable::~SqliteTable() {
  if (temporary_.empty()) return;
  database_.reset();
  remove_file(temporary_);
}

void SqliteTable::create(const StudyManifest& manifest) {
  // The copy is thrown away if anything fails, so it needs no journal.
  database_->execute("PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF");
  const std::string table = sql_name(manifest.study.command);
  std::string columns;
  std::string places;
  for (const RowColumn& column : columns_) {
    columns += fmt::format("{}{} {}", columns.empty() ? "" : ", ", sql_name(column.name), sql_type(column.kind));
    places += places.empty() ? "?" : ", ?";
  }
  if (columns_.empty()) columns = "\"case\" INTEGER";
  database_->execute(fmt::format("BEGIN; DROP TABLE IF EXISTS {0}; CREATE TABLE {0} ({1})", table, columns));
  if (!columns_.empty()) insert_ = database_->prepare(fmt::format("INSERT INTO {} VALUES ({})", table, places));
}

/// What the table was computed from.
void SqliteTable::describe(const StudyManifest& manifest) {
  database_->execute(
      "CREATE TABLE IF NOT EXISTS studies (command TEXT PRIMARY KEY, tool_version TEXT, manifest_sha256 TEXT, "
      "catalog_sha256 TEXT, arguments TEXT, flags TEXT, \"where\" TEXT)");
  Statement statement = database_->prepare("INSERT OR REPLACE INTO studies VALUES (?, ?, ?, ?, ?, ?, ?)");
  Json flags = Json::object();
  for (const StudyFlag& flag : manifest.study.flags) flags[flag.flag] = flag.values;
  const std::vector<Cell> values{manifest.study.command,
                                 manifest.tool_version,
                                 manifest.hash,
                                 manifest.catalog_sha256,
                                 Json(manifest.study.arguments).dump(),
                                 flags.dump(),
                                 manifest.study.where.empty() ? Cell{} : Cell(manifest.study.where)};
  for (std::size_t i = 0; i < values.size(); ++i) statement.bind(static_cast<int>(i) + 1, values[i]);
  database_->step(statement);
}

void SqliteTable::add(const Json& row) {
  sqlite3_clear_bindings(insert_.handle());
  std::vector<std::string> kept(columns_.size());  // texts must live until the step
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const auto found = row.find(columns_[i].name);
    if (found != row.end()) bind_json(insert_, static_cast<int>(i) + 1, *found, kept[i]);
  }
  database_->step(insert_);
}

void SqliteTable::finish() {
  insert_ = Statement();
  database_->execute("COMMIT");
  database_.reset();
  lock_.sync();
  rename_file(temporary_, path_);
  temporary_.clear();
}

}  // namespace scalecalc
