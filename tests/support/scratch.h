// A directory of a test's own.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace scalecalc::test {

class Scratch {
 public:
  Scratch() {
    static std::atomic<int> count = 0;
    place_ = std::filesystem::temp_directory_path() /
             ("scalecalc_test_" + std::to_string(::getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(place_);
  }
  ~Scratch() { std::filesystem::remove_all(place_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  std::string path(const std::string& name) const { return (place_ / name).string(); }
  std::string put(const std::string& name, const std::string& content) const {
    std::ofstream(place_ / name) << content;
    return path(name);
  }
  std::string text(const std::string& name) const {
    std::ostringstream out;
    out << std::ifstream(place_ / name).rdbuf();
    return out.str();
  }

 private:
  std::filesystem::path place_;
};

}  // namespace scalecalc::test
