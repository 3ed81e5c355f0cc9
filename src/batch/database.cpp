// Opens SQLite databases and runs statements on them, and turns SQLite's error codes into exceptions.
#include "batch/database.h"

#include <fmt/format.h>

#include <new>

#include "base/diagnostic.h"

namespace scalecalc {
namespace {

sqlite3* opened(const std::string& path) {
  sqlite3* out = nullptr;
  sqlite3_open_v2(path.c_str(), &out, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  return out;
}

}  // namespace

std::string sql_name(std::string_view name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

void Statement::bind(int position, const Cell& value) {
  if (const double* number = std::get_if<double>(&value)) {
    sqlite3_bind_double(handle(), position, *number);
  } else if (const std::string* text = std::get_if<std::string>(&value)) {
    sqlite3_bind_text(handle(), position, text->data(), static_cast<int>(text->size()), SQLITE_STATIC);
  } else {
    sqlite3_bind_null(handle(), position);
  }
}

// v2: while an error unwinds statements may end after the database; the old close would then keep it open for good.
Database::Database(const std::string& path) : path_(path), open_(opened(path), sqlite3_close_v2) {
  if (open_ == nullptr || sqlite3_errcode(open_.get()) != SQLITE_OK) fail();
}

void Database::execute(const std::string& sql) {
  if (sqlite3_exec(handle(), sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) fail();
}

Statement Database::prepare(const std::string& sql) {
  sqlite3_stmt* made = nullptr;
  if (sqlite3_prepare_v2(handle(), sql.c_str(), -1, &made, nullptr) != SQLITE_OK) fail();
  return Statement(made);
}

void Database::step(const Statement& statement) {
  if (sqlite3_step(statement.handle()) != SQLITE_DONE) fail();
  sqlite3_reset(statement.handle());
}

void Database::fail() const {
  if (open_ == nullptr || sqlite3_errcode(open_.get()) == SQLITE_NOMEM) throw std::bad_alloc();
  const std::string why = sqlite3_errmsg(open_.get());
  throw UserError({Diagnostic{SourceSpan{.file = path_}, fmt::format("cannot write the database: {}", why), ""}},
                  ExitCode::kOutputFailed);
}

}  // namespace scalecalc
