// Streams the bytes of a recording from plain, gzipped or archived files, for the readers of all formats.
#include "profile/byte_source.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/run_files.h"
#include "base/text.h"
#include "profile/tar.h"

namespace scalecalc {

/// Bytes from below, some of which may be looked at before they are taken.
class ByteLayer {
 public:
  ByteLayer() = default;
  virtual ~ByteLayer() = default;
  ByteLayer(const ByteLayer&) = delete;
  ByteLayer& operator=(const ByteLayer&) = delete;

  /// Fewer than `size` at the end alone.
  std::size_t read(char* out, std::size_t size) {
    const std::size_t ready = std::min(size, peeked_.size() - taken_);
    std::copy_n(peeked_.begin() + static_cast<std::ptrdiff_t>(taken_), ready, out);
    taken_ += ready;
    if (taken_ == peeked_.size()) {
      peeked_.clear();
      taken_ = 0;
    }
    return ready + (ready < size ? more(out + ready, size - ready) : 0);
  }
  /// Up to so many of the next bytes, which stay.
  std::string_view peek(std::size_t size) {
    const std::size_t had = peeked_.size() - taken_;
    if (had < size) {
      peeked_.erase(0, taken_);
      taken_ = 0;
      peeked_.resize(size);
      peeked_.resize(had + more(peeked_.data() + had, size - had));
    }
    return std::string_view(peeked_).substr(taken_, size);
  }

 protected:
  virtual std::size_t more(char* out, std::size_t size) = 0;

 private:
  std::string peeked_;
  std::size_t taken_ = 0;
};

/// A file's layers, the archive's packing with them.
struct ByteLayers {
  limits::Expansion unpacked{limits::kUnpacked};  ///< by all of them, of the file's bytes
  std::vector<std::unique_ptr<ByteLayer>> all;
  ByteLayer& top() { return *all.back(); }
  /// One more where the bytes are packed.
  void unpack(const std::string& path);
};

namespace {

constexpr std::size_t kPacked = 1 << 18;

[[noreturn]] void unreadable(const std::string& path, std::string message, std::string hint) {
  throw UserError({Diagnostic{SourceSpan{.file = path}, std::move(message), std::move(hint)}});
}

class FileLayer : public ByteLayer {
 public:
  FileLayer(const std::string& path, limits::Expansion& unpacked)
      : path_(path), file_(std::fopen(path.c_str(), "rb"), std::fclose), unpacked_(unpacked) {
    std::error_code none;
    if (std::filesystem::is_directory(path, none)) {
      unreadable(path, "is a directory, not a recording", "name the files in it");
    }
    if (!file_) unreadable(path, fmt::format("cannot be read: {}", std::strerror(errno)), "");
    note_input(::fileno(file_.get()), path);
  }

 protected:
  std::size_t more(char* out, std::size_t size) override {
    const std::size_t got = std::fread(out, 1, size, file_.get());
    if (got < size && std::ferror(file_.get()) != 0) {
      unreadable(path_, fmt::format("cannot be read: {}", std::strerror(errno)), "");
    }
    unpacked_.reads(got);
    return got;
  }

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  limits::Expansion& unpacked_;
};

class GzipLayer : public ByteLayer {
 public:
  GzipLayer(ByteLayer& below, std::string path, limits::Expansion& unpacked)
      : below_(below), path_(std::move(path)), unpacked_(unpacked) {
    constexpr int kGzipWindow = 15 + 16;
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) unreadable(path_, "cannot be unpacked", "");
  }
  ~GzipLayer() override { inflateEnd(&stream_); }

  static bool is(ByteLayer& below) {
    const std::string_view magic = below.peek(2);
    return magic == "\x1f\x8b";
  }

 protected:
  std::size_t more(char* out, std::size_t size) override {
    std::size_t done = 0;
    while (!ended_ && done < size) {
      constexpr std::size_t kAtOnce = std::size_t{1} << 30U;
      const std::size_t piece = std::min(size - done, kAtOnce);
      stream_.next_out = reinterpret_cast<unsigned char*>(out + done);
      stream_.avail_out = static_cast<uInt>(piece);
      if (stream_.avail_in == 0) refill();
      if (stream_.avail_in == 0) damaged("the file ends within its data");
      const int state = inflate(&stream_, Z_NO_FLUSH);
      done += piece - stream_.avail_out;
      if (!unpacked_.makes(piece - stream_.avail_out)) {
        unreadable(path_, unpacked_.message(), "no recording shrinks that much; unpack it first if it is one");
      }
      if (state == Z_STREAM_END) {
        if (stream_.avail_in == 0) refill();
        ended_ = stream_.avail_in == 0;
        if (!ended_ && inflateReset(&stream_) != Z_OK) damaged("damaged data");
      } else if (state != Z_OK) {
        damaged(stream_.msg != nullptr ? stream_.msg : "damaged data");
      }
    }
    return done;
  }

 private:
  [[noreturn]] void damaged(const char* what) const {
    unreadable(path_, fmt::format("{} at byte {} of the gzip file", what, packed_read_ - stream_.avail_in),
               "copy the file again, or record it again: nothing of a damaged file is used");
  }
  void refill() {
    stream_.next_in = packed_.data();
    stream_.avail_in = static_cast<uInt>(below_.read(reinterpret_cast<char*>(packed_.data()), packed_.size()));
    packed_read_ += stream_.avail_in;
  }

  ByteLayer& below_;
  std::string path_;
  limits::Expansion& unpacked_;
  bool ended_ = false;  ///< all its members are read
  z_stream stream_{};
  std::array<unsigned char, kPacked> packed_{};
  std::size_t packed_read_ = 0;
};

/// The bytes of one member of an archive.
class MemberLayer : public ByteLayer {
 public:
  MemberLayer(ByteLayer& archive, std::uint64_t size, std::string path)
      : archive_(archive), left_(size), path_(std::move(path)) {}

 protected:
  std::size_t more(char* out, std::size_t size) override {
    const std::size_t wanted = std::min<std::uint64_t>(size, left_);
    const std::size_t got = archive_.read(out, wanted);
    left_ -= got;
    if (got < wanted) unreadable(path_, "the archive ends within this member: it was cut off", "copy it again");
    return got;
  }

 private:
  ByteLayer& archive_;
  std::uint64_t left_;
  std::string path_;
};

bool is_archive(ByteLayer& bytes) { return is_tar_header(bytes.peek(kTarBlock)); }

TarReader tar_reader(ByteLayer& archive, const std::string& path) {
  return {[&archive](char* out, std::size_t size) { return archive.read(out, size); },
          [path](const std::string& what) {
            unreadable(path, what, "copy the archive again: nothing of a damaged one is used");
          }};
}

void skip(ByteLayer& archive, std::uint64_t bytes, const std::string& path, const Stop& stop) {
  std::array<char, 1 << 16> rest{};
  while (bytes > 0) {
    if (should_stop(stop)) throw Stopped();
    const std::size_t piece = std::min<std::uint64_t>(bytes, rest.size());
    if (archive.read(rest.data(), piece) != piece) {
      unreadable(path, "the archive ends within a member: it was cut off", "copy the archive again");
    }
    bytes -= piece;
  }
}

/// Counts what is taken of an archive's member, so that the rest can be skipped.
class CountedLayer : public ByteLayer {
 public:
  explicit CountedLayer(ByteLayer& below) : below_(below) {}
  std::uint64_t taken() const { return taken_; }

 protected:
  std::size_t more(char* out, std::size_t size) override {
    const std::size_t got = below_.read(out, size);
    taken_ += got;
    return got;
  }

 private:
  ByteLayer& below_;
  std::uint64_t taken_ = 0;
};

struct MemberPath {
  std::string archive, member;
};

/// Of "ARCHIVE#MEMBER" where that is no file itself.
std::optional<MemberPath> member_path(const std::string& path) {
  std::error_code none;
  if (std::filesystem::exists(path, none)) return std::nullopt;
  for (std::size_t at = path.find('#'); at != std::string::npos; at = path.find('#', at + 1)) {
    if (std::filesystem::is_regular_file(path.substr(0, at), none)) {
      return MemberPath{path.substr(0, at), path.substr(at + 1)};
    }
  }
  return std::nullopt;
}

}  // namespace

void ByteLayers::unpack(const std::string& path) {
  if (GzipLayer::is(top())) all.push_back(std::make_unique<GzipLayer>(top(), path, unpacked));
}

struct ByteSource::Open {
  std::string path;
  ByteLayers layers;

  void find(const MemberPath& wanted) {
    if (!is_archive(layers.top())) unreadable(wanted.archive, "is no tar archive", "leave out # and what follows");
    TarReader tar = tar_reader(layers.top(), wanted.archive);
    std::vector<std::string> names;
    while (const auto member = tar.next()) {
      if (member->is_file && member->name == wanted.member) {
        layers.all.push_back(std::make_unique<MemberLayer>(layers.top(), member->size, path));
        return;
      }
      constexpr std::size_t kNamed = 8;
      if (member->is_file && names.size() < kNamed) names.push_back(member->name);
      skip(layers.top(), member->padded(), wanted.archive, {});
    }
    unreadable(wanted.archive, fmt::format("has no member {}", in_quotes(wanted.member)),
               fmt::format("it has {}", join_and(names)));
  }
};

ByteSource::ByteSource(std::string path) : open_(std::make_unique<Open>()) {
  open_->path = std::move(path);
  const auto member = member_path(open_->path);
  const std::string file = member ? member->archive : open_->path;
  open_->layers.all.push_back(std::make_unique<FileLayer>(file, open_->layers.unpacked));
  open_->layers.unpack(file);
  if (!member) return;
  open_->find(*member);
  open_->layers.unpack(open_->path);
}

ByteSource::~ByteSource() = default;

const std::string& ByteSource::path() const { return open_->path; }

std::size_t ByteSource::read(char* out, std::size_t size) { return open_->layers.top().read(out, size); }

std::string first_bytes(const std::string& path, std::size_t size) {
  ByteSource source(path);
  std::string out(size, '\0');
  out.resize(source.read(out.data(), size));
  return out;
}

std::vector<ArchiveMember> archive_members(const std::string& path, const Stop& stop) {
  std::vector<ArchiveMember> out;
  if (member_path(path)) return out;
  ByteLayers layers;
  layers.all.push_back(std::make_unique<FileLayer>(path, layers.unpacked));
  layers.unpack(path);
  ByteLayer& archive = layers.top();
  if (!is_archive(archive)) return out;
  TarReader tar = tar_reader(archive, path);
  while (const auto member = tar.next()) {
    if (!member->is_file) {
      skip(archive, member->padded(), path, stop);
      continue;
    }
    constexpr std::size_t kFirst = 4096;
    ArchiveMember one{.path = path + "#" + member->name};
    CountedLayer counted(archive);
    {
      ByteLayers inner;
      inner.all.push_back(std::make_unique<MemberLayer>(counted, member->size, one.path));
      inner.unpack(one.path);
      one.first_bytes = inner.top().peek(kFirst);
    }
    out.push_back(std::move(one));
    skip(archive, member->padded() - counted.taken(), path, stop);
  }
  return out;
}

}  // namespace scalecalc
