#include "base/heap.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

using namespace scalecalc;

namespace {

/// Whether the kernel was asked for huge pages where `at` lies (VmFlags of proc(5): hg); so is what it has by itself.
bool asked_for_huge_pages(const void* at) {
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    if (std::istringstream words(line); words >> std::hex >> begin >> dash >> end && dash == '-') {
      const auto place = reinterpret_cast<std::uintptr_t>(at);
      here = begin <= place && place < end;
    } else if (here && line.starts_with("VmFlags:")) {
      return line.find(" hg") != std::string::npos;
    }
  }
  return false;
}

/// Without them nothing can be asked, and madvise says so.
bool kernel_has_huge_pages() { return std::filesystem::exists("/sys/kernel/mm/transparent_hugepage"); }

/// The middle of 16 MB of small blocks, as a search allocates.
bool small_blocks_lie_in_huge_pages() {
  std::vector<std::unique_ptr<char[]>> blocks(16 << 10);
  for (auto& block : blocks) block = std::make_unique<char[]>(1 << 10);
  return asked_for_huge_pages(blocks[blocks.size() / 2].get());
}

/// Leaves room in the heap on both sides of a border of huge pages, mostly.
void cross_border() {
  const auto page = [] { return reinterpret_cast<std::uintptr_t>(sbrk(0)) >> 21; };
  static std::vector<std::unique_ptr<char[]>> blocks;
  for (const std::uintptr_t first = page(); page() == first && blocks.size() < 4000;) {
    blocks.push_back(std::make_unique<char[]>(1 << 10));  // no smaller one is free then
  }
}

/// Where pages can be asked for, they are, in each thread that wants them; elsewhere the heap stays as it is. 0, or
/// which line failed.
int failed_at(bool at_border) {
  if (at_border) cross_border();
  const bool can = use_huge_pages() && kernel_has_huge_pages();
  if (small_blocks_lie_in_huge_pages() != can) return __LINE__;
  int failed = 0;
  std::thread([&] {
    if (small_blocks_lie_in_huge_pages()) failed = __LINE__;  // nobody asked in this thread
  }).join();
  std::thread([&] {
    use_huge_pages();
    use_huge_pages();  // no more than once
    if (small_blocks_lie_in_huge_pages() != can) failed = __LINE__;
  }).join();
  return failed;
}

// In a process of its own: after other tests blocks would come from what these gave back.
TEST(HugePagesDeathTest, AreAskedForInEachThreadThatWantsThem) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (const bool at_border : {false, true}) {
    EXPECT_EXIT(std::exit(failed_at(at_border)), testing::ExitedWithCode(0), "") << at_border;
  }
}

}  // namespace
