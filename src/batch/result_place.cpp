#include "batch/result_place.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/diagnostic.h"

namespace scalecalc {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kGrowing = "growing-";

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

void check_result_place(const std::string& target) {
  const fs::path path(target);
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  std::error_code ignored;
  int error = 0;
  if (fs::is_directory(path, ignored)) {
    error = EISDIR;
  } else if (::access(fs::exists(path, ignored) ? target.c_str() : parent.c_str(), W_OK) != 0) {
    error = errno;
  }
  if (error == 0) return;
  throw UserError(
      {Diagnostic{SourceSpan{.file = target}, fmt::format("cannot write the file: {}", std::strerror(error)), ""}},
      ExitCode::kOutputFailed);
}

std::string growing_name(const std::string& directory, const std::string& target) {
  const fs::path path(target);
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string name = fmt::format("{}{}.{}", kGrowing, ::getpid(), path.filename().string());
  return ((on_one_device(directory, parent.string()) ? fs::path(directory) : parent) / name).string();
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
  growing_ = growing_name(directory, target_);
  file_ = OpenFile::for_writing(growing_);
  file_.lock();
  file_.cut(0);
}

ResultFile::~ResultFile() {
  if (!growing_.empty()) remove_file(growing_);
}

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
  rename_file(growing_, target_);
  growing_.clear();
}

}  // namespace scalecalc
