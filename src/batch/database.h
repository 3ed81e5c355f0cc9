// SQLite handles that close themselves. With condition.cpp and results.cpp all that knows SQLite.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>

#include "report/report.h"

namespace scalecalc {

/// A name as SQL writes it, whatever is in it.
std::string sql_name(std::string_view name);

class Statement {
 public:
  explicit Statement(sqlite3_stmt* made = nullptr) : made_(made, sqlite3_finalize) {}

  sqlite3_stmt* handle() const { return made_.get(); }
  /// The text must live until the step.
  void bind(int position, const Cell& value);

 private:
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> made_;
};

class Database {
 public:
  /// UserError (exit 74) if it cannot be opened for writing.
  explicit Database(const std::string& path);

  sqlite3* handle() const { return open_.get(); }
  /// UserError (exit 74) if it fails.
  void execute(const std::string& sql);
  Statement prepare(const std::string& sql);
  /// One row written.
  void step(const Statement& statement);

 private:
  [[noreturn]] void fail() const;

  std::string path_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> open_;
};

}  // namespace scalecalc
