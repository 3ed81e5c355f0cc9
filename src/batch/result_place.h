// Where a file of results grows until it is whole: in the study's directory, so that a process that is killed leaves
// nothing beside the user's files.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/io.h"
#include "batch/files.h"

namespace scalecalc {

/// UserError (exit 74) if no file of this name can be written.
void check_result_place(const std::string& target);

/// A name for the growing file of `target`: in `directory` if a rename can take it from there to the target, else
/// beside the target.
std::string growing_name(const std::string& directory, const std::string& target);

/// Removes growing files that nobody is at.
void clean_growing(const std::string& directory);

/// Text that appears under its name at commit() only. Devices and pipes are written in place.
class ResultFile {
 public:
  ResultFile(const std::string& directory, const std::string& target);
  ~ResultFile();
  ResultFile(const ResultFile&) = delete;
  ResultFile& operator=(const ResultFile&) = delete;

  void append(std::string_view text);
  void commit();

 private:
  std::string target_;
  std::string growing_;  ///< empty: `special_` writes
  OpenFile file_;
  std::unique_ptr<AtomicFile> special_;
};

}  // namespace scalecalc
