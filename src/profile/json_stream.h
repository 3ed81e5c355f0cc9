// JSON of any size as a stream: who reads asks for the next value and skips what it does not want. The grammar is that
// of RFC 8259 (and NaN and Infinity, which Python writes), also in what is skipped: a file that was cut off or into
// which two processes wrote is an error with its place.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "profile/byte_source.h"

namespace scalecalc {

class JsonStream {
 public:
  /// Keeps a reference to `source`.
  explicit JsonStream(ByteSource& source);

  /// The first character of the next value; '\0' at the end of the file.
  char peek();
  /// Calls `member(key)` for each member of an object; it has to read or skip the value, and the key is its own until
  /// then.
  template <class Member>
  void members(const Member& member) {
    open('{');
    if (closes('}')) return;
    for (;;) {
      key(key_);
      const std::string name = key_;
      member(std::string_view(name));
      if (ends('{', '}')) return;
    }
  }
  template <class Item>
  void items(const Item& item) {
    open('[');
    if (closes(']')) return;
    for (;;) {
      item();
      if (ends('[', ']')) return;
    }
  }
  /// A text. The view is good until the next call.
  std::string_view text();
  /// A number or a word (true, false, null, NaN), as written.
  std::string_view bare();
  /// A text, a number or a word; anything else is skipped and is "".
  std::string_view scalar();
  void skip();
  /// The value as written, without blanks, at most `most` bytes of it: more is an error.
  void raw(std::string& out, std::size_t most);
  /// Nothing but blanks may follow.
  void finish();

  /// Bytes before what is read next.
  std::uint64_t offset() const { return dropped_ + at_; }
  /// UserError (exit 2) at what was read last.
  [[noreturn]] void fail(const std::string& message, const std::string& hint = "") const;

 private:
  void open(char bracket);
  bool closes(char bracket);
  bool ends(char opening, char closing);
  void key(std::string& out);
  void blanks();
  /// More bytes behind those from `keep` on, which stay; false at the end. Moves all positions by what it drops.
  bool refill(std::size_t& keep);
  void value(std::string* out, std::size_t most);
  void put(std::string* out, std::string_view piece, std::size_t most) const;
  [[noreturn]] void unexpected(const char* wanted) const;
  void unescape(std::string_view inside);
  std::string_view quoted_as_written();

  ByteSource& source_;
  std::vector<char> buffer_;
  std::size_t at_ = 0;
  std::size_t end_ = 0;
  std::size_t token_ = 0;  ///< where what was read last begins
  std::uint64_t dropped_ = 0;
  std::uint64_t lines_ = 0;       ///< in what was dropped
  std::uint64_t line_start_ = 0;  ///< offset of the line that the first byte of the buffer is on
  std::string unescaped_;
  std::string key_;
  std::size_t depth_ = 0;
};

}  // namespace scalecalc
