// Files that grow while a study runs: written by appending, read by lines, locked while somebody works on them; and
// where a file of results grows until it is whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/io.h"
#include "base/run_files.h"

namespace scalecalc {

/// A file descriptor that closes itself. UserError: exit 74 for what cannot be written, 2 for what cannot be read.
class OpenFile {
 public:
  OpenFile() = default;
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile();

  static OpenFile for_reading(const std::string& path);
  /// A file that this run writes itself.
  static OpenFile for_reading_back(const std::string& path);
  /// Created if it does not exist, and kept as it is if it does.
  static OpenFile for_writing(const std::string& path);

  explicit operator bool() const { return fd_ >= 0; }
  /// False if another process has it, or the file system knows no locks.
  bool lock();
  /// Whether another process has it: of a lock that could not be taken, as it is not where there are no locks.
  bool locked_elsewhere();
  /// Whether the name still leads to this file: another process may have renamed it.
  bool is_still_named() const;
  std::uint64_t size() const;
  /// Bytes from `at` on; fewer at the end of the file.
  std::size_t read_at(std::uint64_t at, char* into, std::size_t count) const;
  void append(std::string_view text);
  void cut(std::uint64_t size);
  /// On the disk, whatever happens to the machine.
  void sync();

  const std::string& path() const { return path_; }

 private:
  OpenFile(int fd, std::string path) : fd_(fd), path_(std::move(path)) {}
  int fd_ = -1;
  std::string path_;
};

/// The lines of a file through a small buffer.
class LineReader {
 public:
  explicit LineReader(OpenFile file, std::size_t buffer = std::size_t{1} << 16U);
  /// Opens the file for each piece that it reads: any number of files can be read side by side.
  LineReader(std::string path, std::size_t buffer);

  /// The next line without its end; nothing at the end of the file. What follows the last line end is no line.
  std::optional<std::string_view> next();
  /// Where the line that next() gives starts.
  std::uint64_t position() const { return at_ - (buffer_.size() - used_); }

 private:
  std::string path_;  ///< empty: the file stays open
  OpenFile file_;
  std::size_t chunk_;
  std::uint64_t at_ = 0;  ///< of the file, behind the buffer
  std::string buffer_;
  std::size_t used_ = 0;
};

std::string read_whole_file(const std::string& path);
/// With its parents.
void make_directory(const std::string& path);
/// Renames that happened in it are on the disk.
void sync_directory(const std::string& path);
/// And the directory is told. UserError (exit 74).
void rename_file(const std::string& from, const std::string& to);
bool file_exists(const std::string& path);
/// The names in a directory, sorted.
std::vector<std::string> names_in(const std::string& directory);
void remove_file(const std::string& path);

/// One process at a time works on the results in a directory, which is made. UserError (exit 74) if another does.
class DirectoryLock {
 public:
  explicit DirectoryLock(std::string directory);
  /// Removes its file, and the directory if nothing else is in it.
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  /// Forgets what the directory holds, but for the lock.
  void clear() const;

 private:
  std::string directory_;
  OpenFile file_;
};

/// UserError (exit 74) if no file of this name can be written. While the claim lives, no other output has the file;
/// there is none on a device or a pipe.
std::unique_ptr<ClaimedOutput> check_result_place(const std::string& target);

/// A name for the growing file of `target`: in `directory` if a rename can take it from there to the target, else
/// beside the target.
std::string growing_name(const std::string& directory, const std::string& target);

/// Made empty and locked, so that nobody takes it for left behind.
std::unique_ptr<Unfinished> make_growing(const std::string& directory, const std::string& target, OpenFile& file);

/// It gets its name, and the directory is told. UserError (exit 74).
void give_name(Unfinished& growing, const std::string& target);

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
  std::unique_ptr<Unfinished> growing_;  ///< null: `special_` writes
  OpenFile file_;
  std::unique_ptr<AtomicFile> special_;
};

}  // namespace scalecalc
