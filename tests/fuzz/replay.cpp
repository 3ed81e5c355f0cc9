// Runs a fuzz target without libFuzzer: over every file of the given directories, so that seeds and old crashes are
// ordinary tests; with --mutants N [--seed S] also over N random changes of them, in any build (sanitizers' too). What
// fails is written to found-SEED in the working directory.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

struct Asked {
  std::uint64_t mutants = 0;
  std::uint64_t seed = 1;
  std::vector<std::string> places;
};

Asked asked_of(int count, char** words) {
  Asked out;
  for (int i = 1; i < count; ++i) {
    const std::string_view word = words[i];
    if (word == "--mutants" && i + 1 < count) {
      out.mutants = std::strtoull(words[++i], nullptr, 10);
    } else if (word == "--seed" && i + 1 < count) {
      out.seed = std::strtoull(words[++i], nullptr, 10);
    } else {
      out.places.emplace_back(word);
    }
  }
  return out;
}

std::vector<fs::path> inputs(const std::vector<std::string>& places) {
  std::vector<fs::path> files;
  for (const std::string& place : places) {
    for (const fs::directory_entry& entry : fs::recursive_directory_iterator(place)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

Bytes now;         // what the target is asked, for the moment at which it ends the process
std::string kept;  // where that goes

void keep() {
  if (std::FILE* out = std::fopen(kept.c_str(), "wb")) {
    std::fwrite(now.data(), 1, now.size(), out);
    std::fclose(out);
  }
}

extern "C" void keep_and_end(int signal) {
  keep();
  std::fprintf(stderr, "signal %d: the input is in %s\n", signal, kept.c_str());
  std::_Exit(1);
}

void insert_text(Bytes& bytes, std::size_t at, std::string_view text) {
  bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(at), text.begin(), text.end());
}

void mutate(Bytes& bytes, const std::vector<Bytes>& corpus, std::mt19937_64& random) {
  static const std::vector<std::string_view> kWords{"0",
                                                    "-1",
                                                    "1e308",
                                                    "1e-320",
                                                    "9007199254740993",
                                                    "nan",
                                                    "inf",
                                                    "18446744073709551616",
                                                    "\x1b[31m",
                                                    "\n",
                                                    "\t",
                                                    "\"",
                                                    "'",
                                                    "{",
                                                    "}",
                                                    "[",
                                                    "]",
                                                    ":",
                                                    ",",
                                                    "null",
                                                    "true",
                                                    "..",
                                                    "*",
                                                    "_",
                                                    "GiB",
                                                    "%",
                                                    "us",
                                                    "<<:",
                                                    "&a ",
                                                    "*a",
                                                    "$(",
                                                    "`",
                                                    "\\",
                                                    "#",
                                                    "\xff",
                                                    "\xc2\x85",
                                                    "- ",
                                                    "  ",
                                                    "=",
                                                    "/",
                                                    "->",
                                                    "{U_X}"};
  const auto below = [&](std::size_t count) { return count == 0 ? 0 : static_cast<std::size_t>(random() % count); };
  const std::size_t at = below(bytes.size() + 1);
  const std::size_t length = std::min(bytes.size() - at, 1 + below(16));
  const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
  switch (below(7)) {
    case 0:
      if (at < bytes.size()) bytes[at] = static_cast<std::uint8_t>(random());
      break;
    case 1:
      if (at < bytes.size()) bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1U << below(8)));
      break;
    case 2: bytes.erase(from, from + static_cast<std::ptrdiff_t>(length)); break;
    case 3: {
      const Bytes again(from, from + static_cast<std::ptrdiff_t>(length));
      bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() + 1)), again.begin(), again.end());
      break;
    }
    case 4: insert_text(bytes, at, kWords[below(kWords.size())]); break;
    case 5: {  // the end of another one
      const Bytes& other = corpus[below(corpus.size())];
      bytes.resize(at);
      bytes.insert(bytes.end(), other.begin() + static_cast<std::ptrdiff_t>(below(other.size() + 1)), other.end());
      break;
    }
    default: insert_text(bytes, at, std::to_string(random() >> below(64)));
  }
  constexpr std::size_t kMost = 8192;
  if (bytes.size() > kMost) bytes.resize(kMost);
}

void run_mutants(const Asked& asked, const std::vector<Bytes>& corpus) {
  constexpr unsigned kMostSeconds = 20;
  for (const int signal : {SIGSEGV, SIGABRT, SIGFPE, SIGBUS, SIGILL, SIGALRM}) std::signal(signal, keep_and_end);
  std::mt19937_64 random(asked.seed);
  for (std::uint64_t i = 0; i < asked.mutants; ++i) {
    now = corpus[random() % corpus.size()];
    for (std::uint64_t changes = 1 + random() % 6; changes > 0; --changes) mutate(now, corpus, random);
    if (i % 256 == 0) alarm(kMostSeconds);
    LLVMFuzzerTestOneInput(now.data(), now.size());
  }
  alarm(0);
}

}  // namespace

int main(int argc, char** argv) {
  const Asked asked = asked_of(argc, argv);
  kept = "found-" + std::to_string(asked.seed);
  try {
    const std::vector<fs::path> files = inputs(asked.places);
    std::vector<Bytes> corpus;
    for (const fs::path& file : files) {
      std::printf("%s\n", file.c_str());
      std::fflush(stdout);  // the last name printed is the one that crashed
      std::ifstream in(file, std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
      corpus.emplace_back(bytes.begin(), bytes.end());
      LLVMFuzzerTestOneInput(corpus.back().data(), corpus.back().size());
    }
    std::printf("%zu inputs replayed\n", files.size());
    if (files.empty()) return 1;
    if (asked.mutants > 0) {
      run_mutants(asked, corpus);
      std::printf("%llu mutants run\n", static_cast<unsigned long long>(asked.mutants));
    }
    return 0;
  } catch (const std::exception& error) {
    if (!now.empty()) keep();
    std::fprintf(stderr, "%s%s\n", error.what(), now.empty() ? "" : (": the input is in " + kept).c_str());
    return 1;
  }
}
