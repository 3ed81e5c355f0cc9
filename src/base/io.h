// Reading whole input files and writing outputs that are either complete or absent.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace scalecalc {

/// Whole text of a regular file, or of standard input for "-". UserError (exit 2) with the reason for: no such file,
/// a directory, not readable, larger than limits::kTextFile, not UTF-8 text (a NUL byte or invalid UTF-8).
std::string read_text_file(const std::string& path);

/// A file or directory that is removed if the process ends early.
class Unfinished {
 public:
  /// `make` makes it and returns its path, or "" if it could not.
  explicit Unfinished(const std::function<std::string()>& make);
  /// Removes it.
  ~Unfinished();
  Unfinished(const Unfinished&) = delete;
  Unfinished& operator=(const Unfinished&) = delete;

  const std::string& path() const { return path_; }
  /// Gives it its name. False (errno) if it cannot be.
  bool rename_to(const std::string& target);

 private:
  std::string path_;
};

/// Removes all of them, and none is made or gets its name afterwards: the process is about to end.
void discard_unfinished();

/// A file that appears under its name only when commit() succeeds. Opened (as a temporary in the same directory) in
/// the constructor, so an unwritable place fails before the work starts. UserError with exit 74 on any failure; the
/// destructor removes the temporary. "-" and "/dev/..." targets are written in place.
class AtomicFile {
 public:
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;
  AtomicFile(AtomicFile&&) noexcept;
  AtomicFile& operator=(AtomicFile&&) = delete;

  /// Writes a part; the file still appears at commit() only.
  void append(std::string_view content);
  void commit(std::string_view content);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace scalecalc
