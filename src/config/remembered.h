// Values made from files once and kept for the questions that follow: a study asks about the same chip a million times.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace scalecalc {

/// By a key that names everything the value is made from. Safe to share between threads.
class Remembered {
 public:
  /// The value of `key`, made by `make()` when it is asked for first. A key always belongs to the same T.
  template <class T, class Make>
  std::shared_ptr<const T> get(const std::string& key, Make make) {
    if (std::shared_ptr<const void> known = find(key)) return std::static_pointer_cast<const T>(known);
    auto made = std::make_shared<const T>(make());
    keep(key, made);
    return made;
  }

 private:
  /// Enough for every chip of the catalog; a study that changes a rate in each question must not fill the memory.
  static constexpr std::size_t kMost = 256;

  std::shared_ptr<const void> find(const std::string& key) {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    return found == values_.end() ? nullptr : found->second;
  }
  void keep(const std::string& key, std::shared_ptr<const void> value) {
    const std::lock_guard lock(mutex_);
    if (values_.size() >= kMost) values_.clear();
    values_[key] = std::move(value);
  }

  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<const void>> values_;
};

}  // namespace scalecalc
