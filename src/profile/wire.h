// Protocol Buffers' wire format, as far as reading a message field by field needs it: three kinds of value and their
// bounds. A whole library for one message type of eight fields is not worth its schema compiler.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace scalecalc {

class WireMessage {
 public:
  /// `whole` is the file, of which `bytes` is a part: errors say where in the file. Keeps pointers to all.
  WireMessage(std::string_view bytes, std::string_view whole, const std::string& file)
      : bytes_(bytes), whole_(whole), file_(&file) {}

  /// The next field; false at the end. UserError (exit 2) for what is no message.
  bool next();
  std::uint32_t field() const { return field_; }
  /// Of a varint, or of eight or four bytes; 0 for a text.
  std::uint64_t number() const { return number_; }
  double real() const { return std::bit_cast<double>(number_); }
  /// Of a field with a length; else empty.
  std::string_view text() const { return text_; }
  WireMessage message() const { return {text_, whole_, *file_}; }

 private:
  std::uint64_t varint();
  [[noreturn]] void fail(const char* what) const;

  std::string_view bytes_;
  std::string_view whole_;
  const std::string* file_;
  std::size_t at_ = 0;
  std::uint32_t field_ = 0;
  std::uint64_t number_ = 0;
  std::string_view text_;
};

}  // namespace scalecalc
