// Headers of tar archives (POSIX ustar and pax, GNU), one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace scalecalc {

inline constexpr std::size_t kTarBlock = 512;

struct TarMember {
  std::string name;
  std::uint64_t size = 0;
  bool is_file = false;
  std::uint64_t padded() const { return (size + kTarBlock - 1) / kTarBlock * kTarBlock; }
};

/// Whether a block is a header whose checksum is right.
bool is_tar_header(std::string_view block);

/// Walks an archive: names longer than a header holds stand in members before theirs.
class TarReader {
 public:
  /// Up to so many bytes; fewer at the end alone.
  using Read = std::function<std::size_t(char*, std::size_t)>;
  using Fail = std::function<void(const std::string&)>;  ///< does not return

  TarReader(Read read, Fail fail) : read_(std::move(read)), fail_(std::move(fail)) {}
  /// The next member, whose bytes (`padded()`) have to be read before the next call; nothing at the end of the archive.
  std::optional<TarMember> next();

 private:
  std::string text(std::uint64_t size);
  void pax(const std::string& records);

  Read read_;
  Fail fail_;
  std::string long_name_;
  std::optional<std::uint64_t> long_size_;
  std::uint64_t members_ = 0;
};

}  // namespace scalecalc
