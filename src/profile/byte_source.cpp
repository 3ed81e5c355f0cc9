#include "profile/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/diagnostic.h"
#include "base/run_files.h"

namespace scalecalc {
namespace {

constexpr std::size_t kPacked = 1 << 18;

[[noreturn]] void unreadable(const std::string& path, std::string message, std::string hint) {
  throw UserError({Diagnostic{SourceSpan{.file = path}, std::move(message), std::move(hint)}});
}

}  // namespace

struct ByteSource::Open {
  std::string path;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file{nullptr, std::fclose};
  bool gzip = false;
  bool ended = false;  ///< of a gzip file: all its members are read
  z_stream stream{};
  std::array<unsigned char, kPacked> packed{};
  std::size_t packed_read = 0;

  ~Open() {
    if (gzip) inflateEnd(&stream);
  }

  std::size_t more(void* out, std::size_t size) {
    const std::size_t got = std::fread(out, 1, size, file.get());
    if (got < size && std::ferror(file.get()) != 0) {
      unreadable(path, fmt::format("cannot be read: {}", std::strerror(errno)), "");
    }
    return got;
  }

  [[noreturn]] void damaged(const char* what) const {
    unreadable(path, fmt::format("{} at byte {} of the gzip file", what, packed_read - stream.avail_in),
               "copy the file again, or record it again: nothing of a damaged file is used");
  }

  void refill() {
    stream.next_in = packed.data();
    stream.avail_in = static_cast<uInt>(more(packed.data(), packed.size()));
    packed_read += stream.avail_in;
  }

  std::size_t inflated(char* out, std::size_t size) {
    stream.next_out = reinterpret_cast<unsigned char*>(out);
    stream.avail_out = static_cast<uInt>(size);
    while (!ended && stream.avail_out > 0) {
      if (stream.avail_in == 0) refill();
      if (stream.avail_in == 0) damaged("the file ends within its data");
      const int state = inflate(&stream, Z_NO_FLUSH);
      if (state == Z_STREAM_END) {
        if (stream.avail_in == 0) refill();
        ended = stream.avail_in == 0;
        if (!ended && inflateReset(&stream) != Z_OK) damaged("damaged data");
      } else if (state != Z_OK) {
        damaged(stream.msg != nullptr ? stream.msg : "damaged data");
      }
    }
    return size - stream.avail_out;
  }
};

ByteSource::ByteSource(std::string path) : open_(std::make_unique<Open>()) {
  open_->path = std::move(path);
  std::error_code none;
  if (std::filesystem::is_directory(open_->path, none)) {
    unreadable(open_->path, "is a directory, not a recording", "name the files in it");
  }
  open_->file.reset(std::fopen(open_->path.c_str(), "rb"));
  if (!open_->file) unreadable(open_->path, fmt::format("cannot be read: {}", std::strerror(errno)), "");
  note_input(::fileno(open_->file.get()), open_->path);
  std::array<unsigned char, 2> magic{};
  const std::size_t got = open_->more(magic.data(), magic.size());
  std::rewind(open_->file.get());
  if (got < magic.size() || magic[0] != 0x1f || magic[1] != 0x8b) return;
  constexpr int kGzipWindow = 15 + 16;
  if (inflateInit2(&open_->stream, kGzipWindow) != Z_OK) unreadable(open_->path, "cannot be unpacked", "");
  open_->gzip = true;
}

ByteSource::~ByteSource() = default;

const std::string& ByteSource::path() const { return open_->path; }
bool ByteSource::is_gzip() const { return open_->gzip; }

std::size_t ByteSource::read(char* out, std::size_t size) {
  return open_->gzip ? open_->inflated(out, size) : open_->more(out, size);
}

std::string first_bytes(const std::string& path, std::size_t size) {
  ByteSource source(path);
  std::string out(size, '\0');
  out.resize(source.read(out.data(), size));
  return out;
}

}  // namespace scalecalc
