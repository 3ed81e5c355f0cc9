// Remembers which files a run reads and writes, and refuses an output that would overwrite an input.
#include "base/run_files.h"

#include <sys/stat.h>

#include <filesystem>
#include <memory>
#include <mutex>
#include <set>
#include <tuple>
#include <utility>

#include "base/diagnostic.h"

namespace scalecalc {
namespace {

/// An inode is used again for another file, whose last change then is later.
using FileId = std::tuple<dev_t, ino_t, time_t, long>;
FileId id_of(const struct stat& info) { return {info.st_dev, info.st_ino, info.st_ctim.tv_sec, info.st_ctim.tv_nsec}; }

std::mutex& run_files_mutex() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

struct RunFiles::Files {
  std::set<FileId> read;
  std::set<FileId> written;
  std::set<std::string> claimed;  ///< places of outputs that are not yet written
};

namespace {

std::set<RunFiles::Files*> running;                 // of all threads
thread_local RunFiles::Files* of_thread = nullptr;  // of the run that this thread began last

/// Of the run that the calling thread works for: its own, or the only one; nothing where that is not known.
RunFiles::Files* files_now() {
  if (of_thread != nullptr) return of_thread;
  return running.size() == 1 ? *running.begin() : nullptr;
}

[[noreturn]] void refuse_both(const std::string& path) {
  throw UserError({Diagnostic{SourceSpan{.file = path}, "an output would replace this file, which the question reads",
                              "name another file for the output"}});
}

}  // namespace

RunFiles::RunFiles() : files_(std::make_unique<Files>()), before_(std::exchange(of_thread, files_.get())) {
  const std::lock_guard lock(run_files_mutex());
  running.insert(files_.get());
}

RunFiles::~RunFiles() {
  of_thread = before_;
  const std::lock_guard lock(run_files_mutex());
  running.erase(files_.get());
}

ClaimedOutput::ClaimedOutput(const std::string& target) {
  std::error_code unknown;
  const std::filesystem::path path(target);
  const std::filesystem::path parent = path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
  place_ = (std::filesystem::weakly_canonical(parent, unknown) / path.filename()).string();
  const std::lock_guard lock(run_files_mutex());
  RunFiles::Files* const now = files_now();
  if (now == nullptr || unknown) return;
  if (!now->claimed.insert(place_).second) {
    throw UserError({Diagnostic{SourceSpan{.file = target}, "two outputs would be written to this file, and one lost",
                                "name a file for each of them"}});
  }
  files_ = now;
}

ClaimedOutput::~ClaimedOutput() {
  const std::lock_guard lock(run_files_mutex());
  if (files_ != nullptr && running.contains(files_)) files_->claimed.erase(place_);
}

void note_input(int fd, const std::string& path) {
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return;
  const std::lock_guard lock(run_files_mutex());
  RunFiles::Files* const now = files_now();
  if (now == nullptr) return;
  if (now->written.contains(id_of(info))) refuse_both(path);
  now->read.insert(id_of(info));
}

void note_output(const std::string& path) {
  struct stat info {};
  if (path.starts_with("/dev/") || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return;
  const std::lock_guard lock(run_files_mutex());
  RunFiles::Files* const now = files_now();
  if (now == nullptr) return;
  if (now->read.contains(id_of(info))) refuse_both(path);
  now->written.insert(id_of(info));
}

}  // namespace scalecalc
