// Appends to, reads and locks the files of a running study, and gives a finished file its final name.
#include "batch/files.h"

#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/diagnostic.h"
#include "base/run_files.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, std::string_view what, int error, ExitCode code) {
  throw UserError({Diagnostic{SourceSpan{.file = path}, fmt::format("cannot {}: {}", what, std::strerror(error)), ""}},
                  code);
}

[[noreturn]] void cannot_write(const std::string& path, int error = errno) {
  fail(path, "write the file", error, ExitCode::kOutputFailed);
}

}  // namespace

OpenFile::OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), path_(std::move(other.path_)) {}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(path_, other.path_);
  return *this;
}

OpenFile::~OpenFile() {
  if (fd_ >= 0) ::close(fd_);
}

OpenFile OpenFile::for_reading(const std::string& path) {
  OpenFile out = for_reading_back(path);
  note_input(out.fd_, path);
  return out;
}

OpenFile OpenFile::for_reading_back(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) fail(path, "read the file", errno, ExitCode::kQuestionWrong);
  return {fd, path};
}

OpenFile OpenFile::for_writing(const std::string& path) {
  constexpr mode_t kMode = 0666;
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, kMode);
  if (fd < 0) cannot_write(path);
  return {fd, path};
}

bool OpenFile::lock() { return ::flock(fd_, LOCK_EX | LOCK_NB) == 0; }

bool OpenFile::locked_elsewhere() { return ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK; }

bool OpenFile::is_still_named() const {
  struct stat own {};
  struct stat named {};
  return ::fstat(fd_, &own) == 0 && ::stat(path_.c_str(), &named) == 0 && own.st_ino == named.st_ino &&
         own.st_dev == named.st_dev;
}

std::uint64_t OpenFile::size() const {
  struct stat info {};
  if (::fstat(fd_, &info) != 0) fail(path_, "read the file", errno, ExitCode::kQuestionWrong);
  return static_cast<std::uint64_t>(info.st_size);
}

std::size_t OpenFile::read_at(std::uint64_t at, char* into, std::size_t count) const {
  std::size_t got = 0;
  while (got < count) {
    const ssize_t part = ::pread(fd_, into + got, count - got, static_cast<off_t>(at + got));
    if (part < 0 && errno == EINTR) continue;
    if (part < 0) fail(path_, "read the file", errno, ExitCode::kQuestionWrong);
    if (part == 0) break;
    got += static_cast<std::size_t>(part);
  }
  return got;
}

void OpenFile::append(std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd_, text.data(), text.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) cannot_write(path_);
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

void OpenFile::cut(std::uint64_t size) {
  if (::ftruncate(fd_, static_cast<off_t>(size)) != 0) cannot_write(path_);
}

void OpenFile::sync() {
  if (::fsync(fd_) != 0) cannot_write(path_);
}

LineReader::LineReader(OpenFile file, std::size_t buffer) : file_(std::move(file)), chunk_(buffer) {}

LineReader::LineReader(std::string path, std::size_t buffer) : path_(std::move(path)), chunk_(buffer) {}

std::optional<std::string_view> LineReader::next() {
  std::size_t searched = used_;
  for (;;) {
    const std::size_t end = buffer_.find('\n', searched);
    if (end != std::string::npos) {
      const std::string_view line = std::string_view(buffer_).substr(used_, end - used_);
      used_ = end + 1;
      return line;
    }
    buffer_.erase(0, used_);
    used_ = 0;
    searched = buffer_.size();
    buffer_.resize(searched + chunk_);
    if (!path_.empty()) file_ = OpenFile::for_reading(path_);
    const std::size_t got = file_.read_at(at_, buffer_.data() + searched, chunk_);
    if (!path_.empty()) file_ = OpenFile();
    buffer_.resize(searched + got);
    at_ += got;
    if (got == 0) return std::nullopt;
  }
}

std::string read_whole_file(const std::string& path) {
  const OpenFile file = OpenFile::for_reading(path);
  std::string out(file.size(), '\0');
  out.resize(file.read_at(0, out.data(), out.size()));
  return out;
}

void make_directory(const std::string& path) {
  std::error_code error;
  fs::create_directories(path, error);
  if (error) fail(path, "make the directory", error.value(), ExitCode::kOutputFailed);
}

void sync_directory(const std::string& path) {
  const int fd = ::open(path.empty() ? "." : path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return;  // its files are written; a directory that cannot be opened cannot be told
  ::fsync(fd);
  ::close(fd);
}

void rename_file(const std::string& from, const std::string& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) cannot_write(to);
  sync_directory(fs::path(to).parent_path().string());
}

bool file_exists(const std::string& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> out;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(directory, ignored)) out.push_back(entry.path().filename().string());
  std::sort(out.begin(), out.end());
  return out;
}

void remove_file(const std::string& path) {
  std::error_code ignored;
  fs::remove(path, ignored);
}

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGrowing = "growing-";
constexpr std::string_view kLockName = "lock";

bool on_one_device(const std::string& a, const std::string& b) {
  struct stat first {};
  struct stat second {};
  return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev;
}

bool is_special(const std::string& target) {
  std::error_code ignored;
  return fs::exists(target, ignored) && !fs::is_regular_file(target, ignored);
}

/// A link leads to the file that is to be replaced.
std::string behind_links(const std::string& target) {
  std::error_code error;
  const fs::path real = fs::canonical(target, error);
  return error ? target : real.string();
}

}  // namespace

std::unique_ptr<ClaimedOutput> check_result_place(const std::string& target) {
  const fs::path path(target);
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  std::error_code ignored;
  int error = 0;
  if (fs::is_directory(path, ignored)) {
    error = EISDIR;
  } else if (::access(fs::exists(path, ignored) ? target.c_str() : parent.c_str(), W_OK) != 0) {
    error = errno;
  }
  if (error != 0) cannot_write(target, error);
  note_output(target);
  return is_special(target) ? nullptr : std::make_unique<ClaimedOutput>(behind_links(target));
}

DirectoryLock::DirectoryLock(std::string directory) : directory_(std::move(directory)) {
  const std::string path = (fs::path(directory_) / kLockName).string();
  // Who held it may have removed it, and with it the directory, between the two calls.
  for (int tries = 0;; ++tries) {
    constexpr int kTries = 100;
    make_directory(directory_);
    try {
      file_ = OpenFile::for_writing(path);
    } catch (const UserError&) {
      if (tries == kTries) throw;
      continue;
    }
    if (file_.locked_elsewhere()) {
      throw UserError({Diagnostic{SourceSpan{.file = directory_}, "another scalecalc is at work on these results",
                                  "wait until it ends, or name another output"}},
                      ExitCode::kOutputFailed);
    }
    if (file_.is_still_named() || tries == kTries) return;
  }
}

DirectoryLock::~DirectoryLock() {
  if (file_ && file_.is_still_named()) remove_file(file_.path());
  remove_file(directory_);  // fails unless it is empty
}

void DirectoryLock::clear() const {
  std::error_code ignored;
  for (const std::string& name : names_in(directory_)) {
    if (name != kLockName) fs::remove_all(fs::path(directory_) / name, ignored);
  }
}

std::string growing_name(const std::string& directory, const std::string& target) {
  const fs::path path(target);
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string name = fmt::format("{}{}.{}", kGrowing, ::getpid(), path.filename().string());
  return ((on_one_device(directory, parent.string()) ? fs::path(directory) : parent) / name).string();
}

std::unique_ptr<Unfinished> make_growing(const std::string& directory, const std::string& target, OpenFile& file) {
  return std::make_unique<Unfinished>([&] {
    const std::string name = growing_name(directory, target);
    file = OpenFile::for_writing(name);
    file.lock();
    file.cut(0);
    return name;
  });
}

void give_name(Unfinished& growing, const std::string& target) {
  if (!growing.rename_to(target)) cannot_write(target);
  sync_directory(fs::path(target).parent_path().string());
}

void clean_growing(const std::string& directory) {
  for (const std::string& name : names_in(directory)) {
    if (!name.starts_with(kGrowing)) continue;
    const std::string path = (fs::path(directory) / name).string();
    if (OpenFile::for_writing(path).lock()) remove_file(path);
  }
}

ResultFile::ResultFile(const std::string& directory, const std::string& target) : target_(behind_links(target)) {
  if (is_special(target_)) {
    special_ = std::make_unique<AtomicFile>(target_);
    return;
  }
  growing_ = make_growing(directory, target_, file_);
}

ResultFile::~ResultFile() = default;

void ResultFile::append(std::string_view text) {
  if (special_) {
    special_->append(text);
  } else {
    file_.append(text);
  }
}

void ResultFile::commit() {
  if (special_) return special_->commit("");
  file_.sync();
  give_name(*growing_, target_);
}

}  // namespace scalecalc
