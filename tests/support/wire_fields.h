// Fields of Protocol Buffers' wire format, written by hand.
#pragma once

#include <cstdint>
#include <string>

namespace scalecalc::test {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>(value | 0x80U);
  return out + static_cast<char>(value);
}
inline std::string number_field(unsigned field, std::uint64_t value) { return varint(field << 3U) + varint(value); }
inline std::string text_field(unsigned field, const std::string& value) {
  return varint(field << 3U | 2U) + varint(value.size()) + value;
}

}  // namespace scalecalc::test
