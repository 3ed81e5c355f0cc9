// Asks the kernel for pages of 2 MiB under the heap, so that a large search spends less time on page faults.
#include "base/heap.h"

#include <cstdlib>  // defines __GLIBC__

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__)
#define SCALECALC_HUGE_PAGES
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer)  // Clang's name of it
#undef SCALECALC_HUGE_PAGES
#endif
#endif

#if defined(SCALECALC_HUGE_PAGES)
#include <malloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <utility>
#endif

namespace scalecalc {

#if defined(SCALECALC_HUGE_PAGES)
namespace {

constexpr std::uintptr_t kHugePage = std::uintptr_t{2} << 20;
constexpr int kReserved = 128 << 20;    // more than most questions use
constexpr int kNeverMapped = 32 << 20;  // the largest block that malloc takes from the heap, by its own limit
constexpr std::uintptr_t kThreadHeap = std::uintptr_t{64} << 20;  // glibc: HEAP_MAX_SIZE, size and alignment
constexpr std::size_t kThreadReserved = std::size_t{60} << 20;

void advise(std::uintptr_t begin, std::uintptr_t end) {
  void* const at = reinterpret_cast<void*>(begin);  // NOLINT(performance-no-int-to-ptr)
  if (begin < end) madvise(at, end - begin, MADV_HUGEPAGE);
}

std::uintptr_t end_of_heap() { return reinterpret_cast<std::uintptr_t>(sbrk(0)); }

/// The heap of the program: grown once, so that all of it is advised, up to a border of huge pages and beyond. What
/// lies below the border is left unused and never touched.
void reserve(std::uintptr_t at) {
  mallopt(M_MMAP_THRESHOLD, kNeverMapped);
  mallopt(M_TRIM_THRESHOLD, 2 * kReserved);  // what is given back would be faulted in again
  constexpr std::uintptr_t kBelow = 4096;    // malloc writes at both ends of a block: none of it beyond the border
  // Behind all that the heap has, or what it has would do and it would not grow.
  const std::uintptr_t border = ((end_of_heap() + 2 * kBelow) / kHugePage + 1) * kHugePage;
  mallopt(M_TOP_PAD, kReserved);
  static void* unused = nullptr;
  unused = std::malloc(border - at - kBelow);
  mallopt(M_TOP_PAD, 128 << 10);
  if (unused != nullptr) advise(border, end_of_heap() / kHugePage * kHugePage);
}

/// A thread's heap grows by what each allocation lacks, and memory that ends within a huge page gets none.
void grow_by(std::size_t bytes) {
  void* volatile first = std::malloc(bytes / 2);  // volatile: or compilers leave both out
  void* volatile second = std::malloc(bytes / 2);
  std::free(second);
  std::free(first);
}

}  // namespace

bool use_huge_pages() {
  static std::atomic_flag reserved;
  // A process whose main thread does not ask is another program's, and so is its heap.
  if (!reserved.test() && ::syscall(SYS_gettid) != ::getpid()) return true;
  thread_local bool asked = false;
  if (std::exchange(asked, true)) return true;
  void* probe = std::malloc(1 << 10);
  const auto at = reinterpret_cast<std::uintptr_t>(probe);
  if (probe == nullptr) return true;
  std::free(probe);
  if (!reserved.test_and_set()) {
    reserve(at);
  } else {
    advise(at / kThreadHeap * kThreadHeap, (at / kThreadHeap + 1) * kThreadHeap);
    grow_by(kThreadReserved);
  }
  return true;
}
#else
bool use_huge_pages() { return false; }
#endif

}  // namespace scalecalc
