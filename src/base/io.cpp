// Reads and writes files through POSIX calls, and removes unfinished ones: errno is what a user needs to read, and
// iostreams lose it.
#include "base/io.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <random>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/run_files.h"
#include "base/text.h"

namespace scalecalc {
namespace {

[[noreturn]] void fail(const std::string& path, std::string message, std::string hint, ExitCode code, int line = 0) {
  SourceSpan where;
  where.file = path == "-" ? "<standard input>" : path;
  where.line = line;
  throw UserError({Diagnostic{std::move(where), std::move(message), std::move(hint)}}, code);
}

[[noreturn]] void cannot_read(const std::string& path, std::string_view why, std::string hint = "") {
  fail(path, fmt::format("cannot read the file: {}", why), std::move(hint), ExitCode::kQuestionWrong);
}

[[noreturn]] void cannot_write(const std::string& path, std::string_view why) {
  SourceSpan where;
  where.file = path == "-" ? "<standard output>" : path;
  throw UserError({Diagnostic{std::move(where), fmt::format("cannot write the file: {}", why), ""}},
                  ExitCode::kOutputFailed);
}

}  // namespace

/// Closes a descriptor on every way out; close() hands errors to the caller who wants them.
class Descriptor {
 public:
  Descriptor(int fd, bool owned) : fd_(fd), owned_(owned) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool close() {
    const int fd = std::exchange(fd_, -1);
    return fd < 0 || !owned_ || ::close(fd) == 0;
  }

 private:
  int fd_;
  bool owned_;
};

namespace {

std::string read_all(int fd, const std::string& path) {
  std::string text;
  std::string chunk(64 << 10, '\0');
  while (true) {
    const ssize_t got = ::read(fd, chunk.data(), chunk.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) cannot_read(path, std::strerror(errno));
    if (got == 0) return text;
    text.append(chunk, 0, static_cast<std::size_t>(got));
    if (text.size() > limits::kTextFile) {
      cannot_read(path, "it is " + limits::too_large(limits::kTextFile),
                  "a model or hardware file is a few kilobytes: is this the right file?");
    }
  }
}

void check_is_text(const std::string& text, const std::string& path) {
  const std::size_t bad = std::min(invalid_utf8_at(text), text.find('\0'));
  if (bad == std::string::npos) return;
  const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(bad), '\n') + 1;
  fail(
      path,
      fmt::format("not a UTF-8 text file: byte 0x{:02x}", static_cast<unsigned>(static_cast<unsigned char>(text[bad]))),
      "is this the right file? A text in another encoding can be converted with iconv -t UTF-8",
      ExitCode::kQuestionWrong, static_cast<int>(line));
}

/// Creates `place`/.NAME.XXXXXX with a name that is not taken, and takes it into `name`; -1 and errno where it cannot.
/// Permissions are less the process's umask, which the kernel knows: to read it would be to change it, for a moment and
/// for all threads.
int create_beside(const std::filesystem::path& target, mode_t mode, std::string& name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  constexpr int kTries = 100;
  std::random_device chance;
  for (int i = 0; i < kTries; ++i) {
    std::string end(6, '.');
    for (char& letter : end) letter = kLetters[chance() % kLetters.size()];
    name = (target.parent_path() / ("." + target.filename().string() + "." + end)).string();
    const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

void write_all(int fd, std::string_view content, const std::string& path) {
  while (!content.empty()) {
    const ssize_t put = ::write(fd, content.data(), content.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) cannot_write(path, std::strerror(errno));
    content.remove_prefix(static_cast<std::size_t>(put));
  }
}

/// The file behind symbolic links, so that writing replaces the file and not the link.
std::string resolve_links(const std::string& path) {
  std::error_code ignored;
  const std::filesystem::path real = std::filesystem::canonical(path, ignored);
  return ignored ? path : real.string();
}

}  // namespace

std::string read_text_file(const std::string& path) {
  const bool standard_input = path == "-";
  if (path.empty()) throw UserError("the file name is empty", "");
  Descriptor file(standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC), !standard_input);
  if (file.get() < 0) cannot_read(path, std::strerror(errno));
  struct stat info {};
  if (::fstat(file.get(), &info) == 0 && S_ISDIR(info.st_mode)) cannot_read(path, "it is a directory");
  note_input(file.get(), path);
  std::string text = read_all(file.get(), path);
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  check_is_text(text, path);
  return text;
}

namespace {

/// Never destroyed: the process may end while a thread holds one. Recursive: memory may run out while it is held.
struct AllUnfinished {
  std::recursive_mutex mutex;
  std::set<std::string> paths;
};

AllUnfinished& all_unfinished() {
  static AllUnfinished* const kAll = new AllUnfinished;
  return *kAll;
}

void remove_quietly(const std::string& path) {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

}  // namespace

Unfinished::Unfinished(const std::function<std::string()>& make) {
  AllUnfinished& all = all_unfinished();
  const std::lock_guard lock(all.mutex);
  path_ = make();
  if (!path_.empty()) all.paths.insert(path_);
}

Unfinished::~Unfinished() {
  if (path_.empty()) return;
  AllUnfinished& all = all_unfinished();
  const std::lock_guard lock(all.mutex);
  remove_quietly(path_);
  all.paths.erase(path_);
}

bool Unfinished::rename_to(const std::string& target) {
  AllUnfinished& all = all_unfinished();
  const std::lock_guard lock(all.mutex);
  if (::rename(path_.c_str(), target.c_str()) != 0) return false;
  all.paths.erase(std::exchange(path_, ""));
  return true;
}

void discard_unfinished() {
  AllUnfinished& all = all_unfinished();
  all.mutex.lock();  // and never unlocked
  for (const std::string& path : all.paths) {
    // The first needs no memory, of which there may be none.
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) remove_quietly(path);
  }
}

/// Where the content goes: a temporary to be renamed, or (none) the target itself.
struct AtomicFile::State {
  std::string path;
  std::string target;
  std::unique_ptr<Unfinished> temporary;
  std::unique_ptr<ClaimedOutput> claim;  ///< of a temporary's target
  Descriptor file{-1, false};

  State(std::string given, std::string resolved, std::unique_ptr<Unfinished> unfinished, int fd, bool owned)
      : path(std::move(given)), target(std::move(resolved)), temporary(std::move(unfinished)), file(fd, owned) {}
};

AtomicFile::AtomicFile(std::string path) {
  if (path.empty()) throw UserError("the output file name is empty", "", ExitCode::kOutputFailed);
  if (path == "-") {
    state_ = std::make_unique<State>(path, path, nullptr, STDOUT_FILENO, false);
    return;
  }
  const bool device = path.starts_with("/dev/");
  const std::string target = device ? path : resolve_links(path);
  struct stat info {};
  const bool exists = ::stat(target.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) cannot_write(path, "it is a directory");
  if (exists && ::access(target.c_str(), W_OK) != 0) cannot_write(path, std::strerror(errno));
  note_output(target);
  if (device || (exists && !S_ISREG(info.st_mode))) {
    const int fd = ::open(target.c_str(), O_WRONLY | O_CLOEXEC);
    if (fd < 0) cannot_write(path, std::strerror(errno));
    state_ = std::make_unique<State>(path, target, nullptr, fd, true);
    return;
  }
  auto claim = std::make_unique<ClaimedOutput>(target);
  constexpr mode_t kOfNewFiles = 0666, kOwnersAlone = 0600;
  int fd = -1;
  int error = 0;
  auto temporary = std::make_unique<Unfinished>([&] {
    std::string name;
    fd = create_beside(target, exists ? kOwnersAlone : kOfNewFiles, name);
    error = errno;
    return fd < 0 ? "" : name;
  });
  if (fd < 0) cannot_write(path, std::strerror(error));
  state_ = std::make_unique<State>(path, target, std::move(temporary), fd, true);
  state_->claim = std::move(claim);
  // As the file before, but never with the rights of its owner for who runs it.
  if (exists && ::fchmod(fd, info.st_mode & 0777U) != 0) cannot_write(path, std::strerror(errno));
}

AtomicFile::~AtomicFile() = default;
AtomicFile::AtomicFile(AtomicFile&&) noexcept = default;

void AtomicFile::append(std::string_view content) {
  check(state_ != nullptr, "an output file is written once");
  write_all(state_->file.get(), content, state_->path);
}

void AtomicFile::commit(std::string_view content) {
  check(state_ != nullptr, "an output file is written once");
  const std::unique_ptr<State> state = std::move(state_);
  write_all(state->file.get(), content, state->path);
  if (state->temporary && ::fsync(state->file.get()) != 0) cannot_write(state->path, std::strerror(errno));
  if (!state->file.close()) cannot_write(state->path, std::strerror(errno));
  if (state->temporary && !state->temporary->rename_to(state->target)) cannot_write(state->path, std::strerror(errno));
}

}  // namespace scalecalc
