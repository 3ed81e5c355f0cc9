#include "base/run_files.h"

#include <sys/stat.h>

#include <memory>
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

FilesOfOneRun* files_now = nullptr;

[[noreturn]] void refuse_both(const std::string& path) {
  throw UserError({Diagnostic{SourceSpan{.file = path}, "an output would replace this file, which the question reads",
                              "name another file for the output"}});
}

}  // namespace

RunFiles::RunFiles() {
  const std::lock_guard lock(run_files_mutex());
  before_ = std::exchange(files_now, std::make_unique<FilesOfOneRun>().release());
}

RunFiles::~RunFiles() {
  const std::lock_guard lock(run_files_mutex());
  const std::unique_ptr<FilesOfOneRun> own(std::exchange(files_now, static_cast<FilesOfOneRun*>(before_)));
}

void note_input(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  const std::lock_guard lock(run_files_mutex());
  if (files_now == nullptr) return;
  if (files_now->written.contains({info.st_dev, info.st_ino})) refuse_both(path);
  files_now->read.emplace(info.st_dev, info.st_ino);
}

void note_output(const std::string& path) {
  struct stat info {};
  if (path.starts_with("/dev/") || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  const std::lock_guard lock(run_files_mutex());
  if (files_now == nullptr) return;
  if (files_now->read.contains({info.st_dev, info.st_ino})) refuse_both(path);
  files_now->written.emplace(info.st_dev, info.st_ino);
}

}  // namespace scalecalc
