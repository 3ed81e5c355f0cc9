// Writes the merged rows of a study in each format that was asked for, and counts the checks that fail.
#include "batch/results.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/diagnostic.h"
#include "batch/database.h"
#include "batch/files.h"
#include "batch/manifest.h"
#include "batch/merge.h"
#include "batch/results_table.h"
#include "batch/row.h"
#include "report/page.h"
#include "report/render.h"

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

/// Rows as a table of an SQLite database, named like the command, beside the tables of other commands.
/// The database of `path` gets its new table when finish() returns; until then a copy is worked on.
class SqliteTable {
 public:
  /// Until then the copy lies in the study's `directory`.
  SqliteTable(const std::string& directory, const std::string& path, const StudyManifest& manifest,
              const std::vector<RowColumn>& columns);
  ~SqliteTable() = default;
  SqliteTable(const SqliteTable&) = delete;
  SqliteTable& operator=(const SqliteTable&) = delete;

  void add(const Json& row);
  void finish();

 private:
  void create(const StudyManifest& manifest);
  void describe(const StudyManifest& manifest);

  std::string path_;
  OpenFile lock_;  ///< somebody is at it
  std::unique_ptr<Unfinished> temporary_;
  std::vector<RowColumn> columns_;
  std::unique_ptr<Database> database_;
  Statement insert_;
};

SqliteTable::SqliteTable(const std::string& directory, const std::string& path, const StudyManifest& manifest,
                         const std::vector<RowColumn>& columns)
    : path_(path), temporary_(make_growing(directory, path, lock_)), columns_(columns) {
  if (file_exists(path_)) {
    std::error_code error;
    fs::copy_file(path_, temporary_->path(), fs::copy_options::overwrite_existing, error);
    if (error) {
      throw UserError(
          {Diagnostic{SourceSpan{.file = temporary_->path()}, "cannot write the file: " + error.message(), ""}},
          ExitCode::kOutputFailed);
    }
  }
  database_ = std::make_unique<Database>(temporary_->path());
  create(manifest);
  describe(manifest);
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
  give_name(*temporary_, path_);
}

/// Text that is gathered and written in large pieces, to a file that appears when it is whole or to a stream.
class TextResult {
 public:
  TextResult(const std::string& directory, const std::string& path, const std::function<void(std::string_view)>& stream)
      : stream_(stream) {
    if (!path.empty()) file_ = std::make_unique<ResultFile>(directory, path);
  }

  void add(std::string_view text) {
    constexpr std::size_t kPiece = std::size_t{1} << 18U;
    text_ += text;
    if (text_.size() >= kPiece) flush();
  }
  void finish() {
    flush();
    if (file_) file_->commit();
  }

 private:
  void flush() {
    if (file_) {
      file_->append(text_);
    } else {
      stream_(text_);
    }
    text_.clear();
  }

  std::unique_ptr<ResultFile> file_;
  const std::function<void(std::string_view)>& stream_;
  std::string text_;
};

std::string csv_text(const Json& value) {
  if (value.is_null()) return "";
  return csv_field(value.is_string() ? value.get<std::string>() : value.dump());
}

/// A row for one reader after the other, parsed only if one of them asks.
class ParsedRow {
 public:
  explicit ParsedRow(std::string_view line) : line_(line) {}

  std::string_view line() const { return line_; }
  const Json& json() {
    if (parsed_.is_null()) parsed_ = Json::parse(line_);
    return parsed_;
  }
  /// nullptr if the row has no such member.
  const Json* member(const std::string& name) {
    const auto found = json().find(name);
    return found == parsed_.end() ? nullptr : &*found;
  }

 private:
  std::string_view line_;
  Json parsed_;
};

std::vector<std::string> names_of(const std::vector<RowColumn>& columns) {
  std::vector<std::string> out;
  out.reserve(columns.size());
  for (const RowColumn& column : columns) out.push_back(column.name);
  return out;
}

class CountedChecks {
 public:
  CountedChecks(const std::vector<AnswerCheck>& checks, const std::vector<std::string>& columns)
      : checks_(checks, columns) {
    for (const AnswerCheck& check : checks) out_.push_back({.check = check});
  }

  void look_at(ParsedRow& row) {
    constexpr std::size_t kShown = 5;
    if (out_.empty()) return;
    for (const std::size_t i : checks_.failing(row.json())) {
      if (++out_[i].rows > kShown) continue;
      out_[i].questions.push_back(fmt::format("{}: {}", row.member("question")->get_ref<const std::string&>(),
                                              values_in(out_[i].check, row.json())));
    }
  }

  std::vector<Violations> take() { return std::move(out_); }

 private:
  AnswerChecks checks_;
  std::vector<Violations> out_;
};

using RowUser = std::function<void(ParsedRow&)>;

/// All rows in the member "rows" of a document, each as the line it is.
void open_document(const std::shared_ptr<TextResult>& text, std::string document, std::vector<RowUser>& each,
                   std::vector<std::function<void()>>& finish) {
  document.erase(document.rfind("\n}"));
  text->add(document + ",\n  \"rows\": [");
  each.emplace_back([text, first = true](ParsedRow& row) mutable {
    text->add(std::exchange(first, false) ? "\n    " : ",\n    ");
    text->add(row.line());
  });
  finish.emplace_back([text] {
    text->add("\n  ]\n}\n");
    text->finish();
  });
}

void open_table(const std::shared_ptr<TextResult>& text, const ResultTarget& target, const ResultStyle& style,
                const std::vector<RowColumn>& columns, std::vector<RowUser>& each,
                std::vector<std::function<void()>>& finish) {
  const auto table = std::make_shared<ResultsTable>(style.title, columns, style.figures);
  const TextOptions options = target.path.empty() ? style.text : TextOptions{.width = style.text.width};
  each.emplace_back([table](ParsedRow& row) { table->add(row.json()); });
  finish.emplace_back([text, table, options, format = target.format, made_by = style.made_by] {
    std::vector<Plot> plots = format == ResultFormat::kHtml ? table->plots() : std::vector<Plot>{};
    const Report report = std::move(*table).report();
    switch (format) {
      case ResultFormat::kMarkdown: text->add(render_markdown(report)); break;
      case ResultFormat::kHtml:
        text->add(render_page({.report = report, .plots = std::move(plots), .made_by = made_by}));
        break;
      default: text->add(render_table(report, options));
    }
    text->finish();
  });
}

/// Appends what `target` does with a row, and when all rows were there.
void open_target(const ResultTarget& target, const StudyManifest& manifest, const std::string& directory,
                 const std::vector<RowColumn>& columns, const ResultStyle& style,
                 const std::function<void(std::string_view)>& stream, std::vector<RowUser>& each,
                 std::vector<std::function<void()>>& finish) {
  if (target.format == ResultFormat::kSqlite) {
    const auto table = std::make_shared<SqliteTable>(directory, target.path, manifest, columns);
    each.emplace_back([table](ParsedRow& row) { table->add(row.json()); });
    finish.emplace_back([table] { table->finish(); });
    return;
  }
  const auto text = std::make_shared<TextResult>(directory, target.path, stream);
  if (target.format == ResultFormat::kJson) return open_document(text, style.document, each, finish);
  if (target.format == ResultFormat::kTable || target.format == ResultFormat::kMarkdown ||
      target.format == ResultFormat::kHtml) {
    return open_table(text, target, style, columns, each, finish);
  }
  finish.emplace_back([text] { text->finish(); });
  if (target.format == ResultFormat::kJsonl) {
    each.emplace_back([text](ParsedRow& row) {
      text->add(row.line());
      text->add("\n");
    });
    return;
  }
  const std::vector<std::string> names = names_of(columns);
  for (const std::string& name : names) text->add((&name == &names.front() ? "" : ",") + csv_field(name));
  text->add("\n");
  each.emplace_back([text, names](ParsedRow& row) {
    std::string line;
    for (const std::string& name : names) {
      const Json* value = row.member(name);
      if (&name != &names.front()) line += ',';
      if (value != nullptr) line += csv_text(*value);
    }
    text->add(line + '\n');
  });
}

}  // namespace

std::vector<Violations> write_results(const StudyManifest& manifest, const std::string& directory,
                                      const std::vector<ResultTarget>& targets, const ResultStyle& style,
                                      const std::vector<AnswerCheck>& checks,
                                      const std::function<void(std::string_view)>& standard_output) {
  const std::vector<RowColumn> columns = shard_states(manifest, directory).columns;
  const std::vector<std::string> names = names_of(columns);
  CountedChecks checked(checks, names);
  std::vector<RowUser> each;
  std::vector<std::function<void()>> finish;
  clean_growing(directory);
  for (const ResultTarget& target : targets)
    open_target(target, manifest, directory, columns, style, standard_output, each, finish);
  merge_shards(manifest, directory, [&](std::string_view line) {
    ParsedRow row(line);
    for (const RowUser& use : each) use(row);
    checked.look_at(row);
  });
  for (const auto& last : finish) last();
  return checked.take();
}

}  // namespace scalecalc
