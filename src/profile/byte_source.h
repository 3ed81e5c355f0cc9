// The bytes of a recording, piece by piece: a plain file, a gzip one, or a member of a tar archive, which may be packed
// itself; told apart by their first bytes. A profile of several hundred megabytes is never in memory whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/stop.h"

namespace scalecalc {

class ByteSource {
 public:
  /// "FILE", or "ARCHIVE#MEMBER" where there is no such file. UserError (exit 2) if it cannot be read.
  explicit ByteSource(std::string path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  const std::string& path() const;
  /// Up to `size` bytes to `out`; 0 at the end. UserError where a gzip stream is damaged or ends early.
  std::size_t read(char* out, std::size_t size);

 private:
  struct Open;
  std::unique_ptr<Open> open_;
};

/// The first bytes, unpacked: what tells the formats apart.
std::string first_bytes(const std::string& path, std::size_t size);

struct ArchiveMember {
  std::string path;         ///< "traces.tar.gz#rank0.json.gz", which ByteSource reads
  std::string first_bytes;  ///< unpacked
};

/// The files in a tar archive, packed or not; nothing for a file that is none. Each is read through once. UserError
/// where the archive is damaged or ends early.
std::vector<ArchiveMember> archive_members(const std::string& path, const Stop& stop);

}  // namespace scalecalc
