// Rows as a table of an SQLite database, named like the command, beside the tables of other commands.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "batch/database.h"
#include "batch/files.h"
#include "batch/manifest.h"
#include "batch/row.h"

namespace scalecalc {

/// The database of `path` gets its new table when finish() returns; until then a copy is worked on.
class SqliteTable {
 public:
  /// Until then the copy lies in the study's `directory`.
  SqliteTable(const std::string& directory, const std::string& path, const StudyManifest& manifest,
              const std::vector<RowColumn>& columns);
  ~SqliteTable();
  SqliteTable(const SqliteTable&) = delete;
  SqliteTable& operator=(const SqliteTable&) = delete;

  void add(const Json& row);
  void finish();

 private:
  void create(const StudyManifest& manifest);
  void describe(const StudyManifest& manifest);

  std::string path_;
  std::string temporary_;
  OpenFile lock_;  ///< somebody is at it
  std::vector<RowColumn> columns_;
  std::unique_ptr<Database> database_;
  Statement insert_;
};

}  // namespace scalecalc
