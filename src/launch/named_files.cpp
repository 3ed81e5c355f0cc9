// Reads the files of settings that the arguments of a launch script name.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>

#include "base/io.h"
#include "launch/reading.h"

namespace scalecalc {
namespace {

/// Whether a file is in the directory of the script or below once links are followed.
bool is_below(const std::filesystem::path& file, const std::filesystem::path& script) {
  std::error_code error;
  const std::filesystem::path top = std::filesystem::weakly_canonical(script.parent_path() / ".", error);
  const std::filesystem::path inside = std::filesystem::canonical(file, error).lexically_relative(top);
  return !error && !inside.empty() && *inside.begin() != "..";
}

}  // namespace

void read_named_files(LaunchText& read, const LaunchFramework& framework, const std::string& path) {
  std::vector<LaunchSetting> found;
  for (LaunchSetting& setting : read.settings) {
    if (!names_settings(framework, setting) || !setting.open.empty()) continue;
    const std::string& name = setting.values.front();
    if (std::find(read.written.begin(), read.written.end(), name) != read.written.end()) continue;
    // Nothing above the script's directory is read for a script of somebody else.
    const std::filesystem::path inside = std::filesystem::path(name).lexically_normal();
    const bool leaves = inside.is_absolute() || inside.empty() || *inside.begin() == "..";
    const std::filesystem::path beside = std::filesystem::path(path).parent_path() / inside;
    std::error_code error;
    if (leaves || !std::filesystem::is_regular_file(beside, error) || !is_below(beside, path)) {
      setting.open = kUnreadFile;
      continue;
    }
    LaunchText named = read_launch_text(read_text_file(beside.string()), beside.string());
    std::move(named.settings.begin(), named.settings.end(), std::back_inserter(found));
  }
  // What the command line says holds over a file.
  read.settings.insert(read.settings.begin(), found.begin(), found.end());
}

std::string open_text(const LaunchSetting& setting) {
  if (setting.key == kFurtherArguments) {
    return fmt::format("{} come from {}, which the file does not set", setting.key, setting.open);
  }
  if (setting.open == kUnreadFile) return fmt::format("{} {} is {}", setting.key, setting.values.front(), setting.open);
  return fmt::format("{} is {}, which the file does not set", setting.key, setting.open);
}

}  // namespace scalecalc
