// Reads the headers of tar archives one at a time, for recordings that are packed in them.
#include "profile/tar.h"

#include <fmt/format.h>

#include <array>
#include <charconv>

#include "base/limits.h"
#include "base/text.h"

namespace scalecalc {
namespace {

constexpr std::uint64_t kLargestMember = std::uint64_t{1} << 50U;

/// Octal digits, or, the first bit set, a binary number: what does not fit octal.
std::optional<std::uint64_t> number(std::string_view field) {
  std::uint64_t out = 0;
  if ((static_cast<unsigned char>(field.front()) & 0x80U) != 0) {
    for (std::size_t i = 1; i < field.size(); ++i) {
      if (out > (kLargestMember >> 8U)) return std::nullopt;
      out = out << 8U | static_cast<unsigned char>(field[i]);
    }
    return out;
  }
  std::size_t at = field.find_first_not_of(' ');
  bool any = false;
  for (; at < field.size() && field[at] >= '0' && field[at] <= '7'; ++at) {
    out = out << 3U | static_cast<std::uint64_t>(field[at] - '0');
    any = true;
  }
  if (at < field.size() && field[at] != '\0' && field[at] != ' ') return std::nullopt;
  return any ? std::optional(out) : std::nullopt;
}

std::string until_zero(std::string_view field) { return std::string(field.substr(0, field.find('\0'))); }

}  // namespace

bool is_tar_header(std::string_view block) {
  if (block.size() < kTarBlock) return false;
  constexpr std::size_t kSum = 148, kSumEnd = 156;
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    const char counted = i >= kSum && i < kSumEnd ? ' ' : block[i];
    sum += static_cast<unsigned char>(counted);
  }
  return block.front() != '\0' && number(block.substr(kSum, kSumEnd - kSum)) == sum;
}

std::string TarReader::text(std::uint64_t size) {
  if (size > limits::kArchiveName) fail_(fmt::format("a name or its records of {} bytes in the archive", size));
  std::string out((size + kTarBlock - 1) / kTarBlock * kTarBlock, '\0');
  if (read_(out.data(), out.size()) != out.size()) fail_("the archive ends within a header: it was cut off");
  out.resize(size);
  return out;
}

/// "27 path=a/long/name.json\n", each with its own length.
void TarReader::pax(const std::string& records) {
  for (std::size_t at = 0; at < records.size();) {
    std::size_t length = 0;
    const char* const end = records.data() + records.size();
    const auto [stop, error] = std::from_chars(records.data() + at, end, length);
    const auto digits = static_cast<std::size_t>(stop - records.data()) - at;
    if (error != std::errc() || length < digits + 2 || length > records.size() - at) {
      fail_("damaged records before a member of the archive");
    }
    const std::string_view record = std::string_view(records).substr(at + digits + 1, length - digits - 2);
    if (record.starts_with("path=")) long_name_ = record.substr(5);
    if (record.starts_with("size=")) {
      std::uint64_t size = 0;
      std::from_chars(record.data() + 5, record.data() + record.size(), size);
      long_size_ = size;
    }
    at += length;
  }
}

std::optional<TarMember> TarReader::next() {
  long_name_.clear();
  long_size_.reset();
  for (;;) {
    std::array<char, kTarBlock> bytes{};
    const std::string_view block(bytes.data(), bytes.size());
    const std::size_t got = read_(bytes.data(), bytes.size());
    if (got != bytes.size()) fail_("the archive ends without its end mark: it was cut off");
    if (block.find_first_not_of('\0') == std::string_view::npos) return std::nullopt;
    if (!is_tar_header(block)) fail_("a damaged header in the archive");
    if (++members_ > limits::kArchiveMembers)
      fail_(limits::too_many(limits::kArchiveMembers, "members in the archive"));
    const std::optional<std::uint64_t> size = number(block.substr(124, 12));
    if (!size || *size > kLargestMember) fail_("a member of the archive without a size");
    const char type = block[156];
    if (type == 'L') {
      long_name_ = until_zero(text(*size));
    } else if (type == 'x') {
      pax(text(*size));
    } else if (type == 'g' || type == 'K') {
      text(*size);
    } else {
      TarMember out{.size = long_size_.value_or(*size), .is_file = type == '0' || type == '\0'};
      if (out.size > kLargestMember) fail_("a member of the archive without a size");
      const bool ustar = block.substr(257, 5) == "ustar";
      const std::string prefix = ustar && block[262] == '\0' ? until_zero(block.substr(345, 155)) : "";
      out.name =
          !long_name_.empty() ? long_name_ : (prefix.empty() ? "" : prefix + "/") + until_zero(block.substr(0, 100));
      // Links, directories and devices have no bytes behind them.
      if (!out.is_file && type >= '1' && type <= '6') out.size = 0;
      if (invalid_utf8_at(out.name) != std::string_view::npos) fail_("a member of the archive whose name is no UTF-8");
      return out;
    }
  }
}

}  // namespace scalecalc
