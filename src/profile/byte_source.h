// The bytes of a recording, piece by piece: a plain file or a gzip one, told apart by its first bytes. A profile of
// several hundred megabytes is never in memory whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace scalecalc {

class ByteSource {
 public:
  /// UserError (exit 2) if it cannot be read.
  explicit ByteSource(std::string path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& path() const;
  bool is_gzip() const;
  /// Up to `size` bytes to `out`; 0 at the end. UserError where a gzip stream is damaged or ends early.
  std::size_t read(char* out, std::size_t size);

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

/// The first bytes, unpacked: what tells the formats apart.
std::string first_bytes(const std::string& path, std::size_t size);

}  // namespace scalecalc
