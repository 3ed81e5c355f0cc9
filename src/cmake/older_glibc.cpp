// What newer releases of glibc have and 2.31 lacks, for the libraries inside the tarball, which were built on a newer
// one (src/cmake/older_glibc.py points them here). C only, over what glibc 2.31 has; of no use where glibc is newer.
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

struct Object {
  uintptr_t address;
  dl_find_object* found;
};

int holds(dl_phdr_info* info, size_t, void* of) {
  Object& wanted = *static_cast<Object*>(of);
  const uintptr_t base = info->dlpi_addr;
  uintptr_t start = UINTPTR_MAX, end = 0, frames = 0;
  bool inside = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const uintptr_t from = base + part.p_vaddr;
    if (part.p_type == PT_GNU_EH_FRAME) frames = from;
    if (part.p_type != PT_LOAD) continue;
    if (from < start) start = from;
    if (from + part.p_memsz > end) end = from + part.p_memsz;
    inside = inside || (wanted.address >= from && wanted.address < from + part.p_memsz);
  }
  if (!inside || frames == 0) return 0;
  wanted.found->dlfo_map_start = reinterpret_cast<void*>(start);
  wanted.found->dlfo_map_end = reinterpret_cast<void*>(end);
  wanted.found->dlfo_eh_frame = reinterpret_cast<void*>(frames);
  return 1;
}

}  // namespace

#define EXPORTED extern "C" __attribute__((visibility("default")))

// 2.32: whether no second thread was ever started; "no" is always safe.
EXPORTED char __libc_single_threaded;
char __libc_single_threaded = 0;

// 2.35: whose frames an address belongs to; libgcc asks it for every frame that an exception passes.
EXPORTED int _dl_find_object(void* address, dl_find_object* found) noexcept {
  *found = {};
  Object wanted{reinterpret_cast<uintptr_t>(address), found};
  return dl_iterate_phdr(holds, &wanted) == 1 ? 0 : -1;
}

// 2.36
EXPORTED uint32_t arc4random() noexcept {
  uint32_t value = 0;
  while (getrandom(&value, sizeof value, 0) != sizeof value) {
    if (errno != EINTR) abort();
  }
  return value;
}

// 2.33: functions of their own; before, they were __xstat and the like, whose structure was this one.
static_assert(sizeof(struct stat) == sizeof(struct stat64), "one structure for both");

#define STATS(suffix)                                                                                      \
  EXPORTED int fstatat##suffix(int place, const char* path, struct stat##suffix* of, int flags) noexcept { \
    return static_cast<int>(syscall(SYS_newfstatat, place, path, of, flags));                              \
  }                                                                                                        \
  EXPORTED int stat##suffix(const char* path, struct stat##suffix* of) noexcept {                          \
    return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, of, 0));                               \
  }                                                                                                        \
  EXPORTED int lstat##suffix(const char* path, struct stat##suffix* of) noexcept {                         \
    return static_cast<int>(syscall(SYS_newfstatat, AT_FDCWD, path, of, AT_SYMLINK_NOFOLLOW));             \
  }                                                                                                        \
  EXPORTED int fstat##suffix(int file, struct stat##suffix* of) noexcept {                                 \
    return static_cast<int>(syscall(SYS_fstat, file, of));                                                 \
  }
STATS()
STATS(64)
