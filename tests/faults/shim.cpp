// Preloaded into the program, makes the FAULT_AT-th call of FAULT_CALL fail from main() on: open, write, fsync, rename,
// mmap, thread or alloc. With FAULT_COUNT=FILE the process writes there, at its end, how often it came by. Whoever
// reads a file whose path contains DIES_READING gets the signal DIES_OF, or with DIES_OF=stack runs out of stack.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

std::atomic<bool> armed{false};
std::atomic<long> came_by{0};
char call[16] = "";
long fails_at = 0;
int fails_with = EIO;

template <class F>
F real(const char* name) {
  return reinterpret_cast<F>(dlsym(RTLD_NEXT, name));
}

bool fails(const char* name) {
  if (!armed || std::strcmp(call, name) != 0) return false;
  if (++came_by != fails_at) return false;
  errno = fails_with;
  return true;
}

int (*program)(int, char**, char**) = nullptr;

void write_count() {
  armed = false;
  const char* file = std::getenv("FAULT_COUNT");
  if (file == nullptr) return;
  char text[32];
  const int size = std::snprintf(text, sizeof text, "%ld", came_by.load());
  const int fd = ::open(file, O_WRONLY | O_CREAT | O_TRUNC, 0644);
  if (fd < 0 || ::write(fd, text, static_cast<std::size_t>(size)) != size) std::abort();
  ::close(fd);
}

int armed_main(int count, char** words, char** environment) {
  const char* which = std::getenv("FAULT_CALL");
  const char* at = std::getenv("FAULT_AT");
  const char* error = std::getenv("FAULT_ERRNO");
  if (which != nullptr) std::strncpy(call, which, sizeof call - 1);
  if (at != nullptr) fails_at = std::atol(at);
  if (error != nullptr) fails_with = std::atoi(error);
  armed = true;
  const int status = program(count, words, environment);
  write_count();
  return status;
}

int run_out_of_stack(int depth) {
  volatile char block[4096] = {};
  block[depth % 4096] = 1;
  return run_out_of_stack(depth + 1) + block[0];
}

void die_reading(int fd) {
  const char* part = std::getenv("DIES_READING");
  const char* of = std::getenv("DIES_OF");
  if (!armed || part == nullptr || of == nullptr) return;
  char link[32];
  char path[4096] = "";
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  if (::readlink(link, path, sizeof path - 1) < 0 || std::strstr(path, part) == nullptr) return;
  if (std::strcmp(of, "stack") == 0) run_out_of_stack(0);
  std::raise(std::atoi(of));
}

int open_with(const char* name, const char* path, int flags, mode_t mode) {
  static const auto next = real<int (*)(const char*, int, ...)>("open");
  return fails("open") ? -1 : (static_cast<void>(name), next(path, flags, mode));
}

}  // namespace

extern "C" {

int __libc_start_main(int (*entry)(int, char**, char**), int count, char** words, void (*init)(), void (*fini)(),
                      void (*rtld_fini)(), void* stack_end) {
  program = entry;
  using Start = int (*)(int (*)(int, char**, char**), int, char**, void (*)(), void (*)(), void (*)(), void*);
  return real<Start>("__libc_start_main")(armed_main, count, words, init, fini, rtld_fini, stack_end);
}

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_with("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_with("open64", path, flags, mode);
}

int mkostemp(char* name, int flags) {
  static const auto next = real<int (*)(char*, int)>("mkostemp");
  return fails("open") ? -1 : next(name, flags);
}

ssize_t read(int fd, void* into, size_t size) {
  static const auto next = real<ssize_t (*)(int, void*, size_t)>("read");
  die_reading(fd);
  return next(fd, into, size);
}

ssize_t write(int fd, const void* data, size_t size) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
  return fails("write") ? -1 : next(fd, data, size);
}

int fsync(int fd) {
  static const auto next = real<int (*)(int)>("fsync");
  return fails("fsync") ? -1 : next(fd);
}

int rename(const char* from, const char* to) {
  static const auto next = real<int (*)(const char*, const char*)>("rename");
  return fails("rename") ? -1 : next(from, to);
}

void* mmap(void* address, size_t size, int protection, int flags, int fd, off_t offset) {
  static const auto next = real<void* (*)(void*, size_t, int, int, int, off_t)>("mmap");
  return fails("mmap") ? MAP_FAILED : next(address, size, protection, flags, fd, offset);
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*start)(void*), void* argument) {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto next = real<Create>("pthread_create");
  return fails("thread") ? EAGAIN : next(thread, attributes, start, argument);
}

ssize_t pwrite(int fd, const void* data, size_t size, off_t at) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  return fails("write") ? -1 : next(fd, data, size, at);
}

ssize_t pwrite64(int fd, const void* data, size_t size, off64_t at) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t, off64_t)>("pwrite64");
  return fails("write") ? -1 : next(fd, data, size, at);
}

void* __libc_malloc(size_t size);  // dlsym may ask for memory itself

void* malloc(size_t size) { return fails("alloc") ? nullptr : __libc_malloc(size); }

}  // extern "C"
