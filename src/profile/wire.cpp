// Decodes the fields of Protocol Buffers messages, for the readers of XPlane and Perfetto files.
#include "profile/wire.h"

#include <fmt/format.h>

#include <cstring>

#include "base/diagnostic.h"

namespace scalecalc {

void WireMessage::fail(const char* what) const {
  const auto offset = static_cast<std::size_t>(bytes_.data() - whole_.data()) + at_;
  throw UserError({Diagnostic{SourceSpan{.file = *file_}, fmt::format("{} at byte {}", what, offset),
                              "the file was cut off or changed on its way (a copy as text does that): nothing of a "
                              "damaged file is used"}});
}

std::uint64_t WireMessage::varint() {
  std::uint64_t out = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (at_ >= bytes_.size()) fail("the message ends within a number");
    const auto byte = static_cast<unsigned char>(bytes_[at_++]);
    out |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return out;
  }
  fail("a number of more than ten bytes");
}

bool WireMessage::next() {
  if (at_ >= bytes_.size()) return false;
  const std::uint64_t key = varint();
  constexpr std::uint64_t kMostField = (1U << 29U) - 1;
  if (key >> 3U == 0 || key >> 3U > kMostField) fail("a field that cannot be");
  field_ = static_cast<std::uint32_t>(key >> 3U);
  number_ = 0;
  text_ = {};
  std::size_t length = 0;
  switch (key & 7U) {
    case 0: number_ = varint(); return true;
    case 1: length = 8; break;
    case 5: length = 4; break;
    case 2: {
      const std::uint64_t said = varint();
      if (said > bytes_.size() - at_) fail("a field that reaches beyond its message");
      text_ = bytes_.substr(at_, said);
      at_ += said;
      return true;
    }
    default: fail("a kind of field that is no more");
  }
  if (length > bytes_.size() - at_) fail("the message ends within a field");
  std::memcpy(&number_, bytes_.data() + at_, length);
  at_ += length;
  return true;
}

}  // namespace scalecalc
