#include "base/run_files.h"

#include <sys/stat.h>

#include <mutex>
#include <set>
#include <utility>

#include "base/diagnostic.h"

namespace scalecalc {
namespace {

using FileId = std::pair<dev_t, ino_t>;

struct FilesOfOneRun {
  std::set<FileId> read;
  std::set<FileId> written;
};

std::mutex& run_files_mutex() {
  static std::mutex mutex;
  return mutex;
}

/// Of all runs that go on, which may overlap in one process: their number, and their files until the last ends.
struct FilesNow {
  int runs = 0;
  FilesOfOneRun files;
};
FilesNow files_now;

[[noreturn]] void refuse_both(const std::string& path) {
  throw UserError({Diagnostic{SourceSpan{.file = path}, "an output would replace this file, which the question reads",
                              "name another file for the output"}});
}

}  // namespace

RunFiles::RunFiles() {
  const std::lock_guard lock(run_files_mutex());
  ++files_now.runs;
}

RunFiles::~RunFiles() {
  const std::lock_guard lock(run_files_mutex());
  if (--files_now.runs == 0) files_now.files = {};
}

void note_input(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  const std::lock_guard lock(run_files_mutex());
  if (files_now.runs == 0) return;
  if (files_now.files.written.contains({info.st_dev, info.st_ino})) refuse_both(path);
  files_now.files.read.emplace(info.st_dev, info.st_ino);
}

void note_output(const std::string& path) {
  struct stat info {};
  if (path.starts_with("/dev/") || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  const std::lock_guard lock(run_files_mutex());
  if (files_now.runs == 0) return;
  if (files_now.files.read.contains({info.st_dev, info.st_ino})) refuse_both(path);
  files_now.files.written.emplace(info.st_dev, info.st_ino);
}

}  // namespace scalecalc
