// Bytes as choices: the same bytes choose the same, and where they end everything is the first choice. libFuzzer's
// mutations of bytes become changes of a question.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>

namespace scalecalc::fuzz {

class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}

  /// 0 <= result < count; a byte, or two where there are more than 256.
  std::uint64_t below(std::uint64_t count) {
    if (count <= 1) return 0;
    std::uint64_t value = byte();
    if (count > 256) value = (value << 8U) | byte();
    return value % count;
  }
  bool one_in(std::uint64_t count) { return below(count) == count - 1; }
  template <class T>
  T of(std::initializer_list<T> all) {
    return *(all.begin() + below(all.size()));
  }
  template <class List>
  const auto& from(const List& all) {
    return all[static_cast<std::size_t>(below(all.size()))];
  }
  bool empty() const { return at_ == end_; }

 private:
  std::uint64_t byte() { return at_ == end_ ? 0 : *at_++; }
  const std::uint8_t* at_;
  const std::uint8_t* end_;
};

}  // namespace scalecalc::fuzz
