// Reads what the *_perf programs of NVIDIA/nccl-tests print (src/common.cu there; ROCm/rccl-tests prints the same):
//   # Collective test starting: all_reduce_perf            since 2.17; before, the name of the file says it
//   #  Rank  0 Group  0 Pid   1655 on node-1 device  0 [0000:06:00] NVIDIA H100 80GB HBM3
//   #       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw ...
//       33554432       8388608     float     sum      -1    274.3  122.31  229.34       0    274.7 ...
// Sizes are those of the larger buffer of a rank, bandwidths as doc/PERFORMANCE.md there defines them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <optional>
#include <set>
#include <sstream>

#include "base/text.h"
#include "config/fields.h"
#include "validate/kernel_measurement.h"

namespace scalecalc {
namespace {

struct NcclName {
  std::string_view name;
  CollectiveOp op;
};
constexpr std::array kNcclNames{
    NcclName{"all_reduce", CollectiveOp::kAllReduce}, NcclName{"all_gather", CollectiveOp::kAllGather},
    NcclName{"reduce_scatter", CollectiveOp::kReduceScatter}, NcclName{"alltoall", CollectiveOp::kAllToAll}};

struct NcclWord {
  std::string_view text;
  int column = 1;
};

std::vector<NcclWord> words_of(std::string_view line) {
  std::vector<NcclWord> out;
  for (std::size_t at = 0; at < line.size();) {
    at = line.find_first_not_of(" \t\r", at);
    if (at == std::string_view::npos) break;
    const std::size_t end = std::min(line.find_first_of(" \t\r", at), line.size());
    out.push_back({line.substr(at, end - at), static_cast<int>(at) + 1});
    at = end;
  }
  return out;
}

std::optional<double> plain_number(std::string_view text) {
  double out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

std::optional<CollectiveOp> collective_in(std::string_view text) {
  for (const NcclName& known : kNcclNames) {
    if (text.find(known.name) != std::string_view::npos) return known.op;
  }
  return std::nullopt;
}

/// Columns of a heading, without its "#"; empty for other lines.
std::vector<std::string_view> columns_of(std::string_view line) {
  std::vector<std::string_view> out;
  for (const NcclWord& word : words_of(line)) out.push_back(word.text);
  const auto has = [&](std::string_view name) { return std::find(out.begin(), out.end(), name) != out.end(); };
  if (out.empty() || out.front() != "#" || !has("size") || !has("algbw") || !has("busbw")) return {};
  out.erase(out.begin());
  return out;
}

/// Bus bandwidth over that of the algorithm.
double bus_share(CollectiveOp op, std::int64_t ranks) {
  const double n = static_cast<double>(ranks);
  return (op == CollectiveOp::kAllReduce ? 2 : 1) * (n - 1) / n;
}

class NcclReader {
 public:
  explicit NcclReader(const std::string& file)
      : file_(file), named_(collective_in(std::filesystem::path(file).filename().string())) {}

  std::vector<KernelMeasurement> run(const std::string& text) {
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      ++number_;
      take(line);
    }
    if (out_.empty() && problems_.empty()) problems_.add(at({}), "the table has no rows", "was the test interrupted?");
    problems_.throw_if_any();
    return std::move(out_);
  }

 private:
  SourceSpan at(const NcclWord& word) const {
    return {file_, number_, word.column, std::max(1, static_cast<int>(word.text.size())), line_};
  }

  void take(const std::string& line) {
    line_ = line;
    const std::vector<NcclWord> words = words_of(line);
    if (words.empty()) return;
    if (line.find("nThread") != std::string::npos) begin_test();
    if (const std::size_t name = line.find("Collective test starting:"); name != std::string::npos) {
      name_test(words.back());
    } else if (words.size() > 2 && words[0].text == "#" && words[1].text == "Rank") {
      take_rank(words);
    } else if (std::vector<std::string_view> columns = columns_of(line); !columns.empty()) {
      columns_.assign(columns.begin(), columns.end());
      begin_table();
    } else if (words.front().text != "#" && !columns_.empty() && plain_number(words.front().text)) {
      take_row(words);
    }
  }

  void begin_test() {
    if (columns_.empty()) return;  // the name stands before this line
    columns_.clear();
    hosts_.clear();
    ranks_ = 0;
    test_.reset();
  }

  void name_test(const NcclWord& word) {
    begin_test();
    test_ = collective_in(word.text);
    if (test_) return;
    std::vector<std::string> known;
    for (const NcclName& name : kNcclNames) known.push_back(std::string(name.name) + "_perf");
    const std::string near = did_you_mean(nearest(std::string(word.text), known));
    problems_.add(at(word), fmt::format("{} is no collective that steps are made of", in_quotes(word.text)),
                  fmt::format("{}{}these are: {}", near, near.empty() ? "" : " ", join(known, ", ")));
    readable_ = false;
  }

  void take_rank(const std::vector<NcclWord>& words) {
    const auto on = std::find_if(words.begin(), words.end(), [](const NcclWord& w) { return w.text == "on"; });
    const std::optional<double> rank = plain_number(words[2].text);
    if (!rank || on == words.end() || on + 1 == words.end()) return;
    ranks_ = std::max(ranks_, static_cast<std::int64_t>(*rank) + 1);
    hosts_.insert(std::string((on + 1)->text));
  }

  void begin_table() {
    if (!readable_) return;
    const NcclWord heading{line_, 1};
    if (!test_) test_ = named_;
    if (!test_) {
      problems_.add(at(heading), "nothing says which collective this table is of",
                    "nccl-tests says it since 2.17; otherwise name the file after the test: all_gather_perf.txt");
    }
    if (ranks_ < 2) {
      problems_.add(at(heading),
                    ranks_ == 0 ? std::string("no line says which ranks took part")
                                : fmt::format("every rank is rank 0: {} processes by themselves", hosts_.size()),
                    ranks_ == 0 ? "keep the lines '#  Rank  0 ... on HOST device ...' above the table"
                                : "nccl-tests runs over several processes if built with MPI=1");
    } else if (ranks_ % static_cast<std::int64_t>(hosts_.size()) != 0) {
      problems_.add(at(heading), fmt::format("{} ranks on {} hosts are not as many on each", ranks_, hosts_.size()),
                    "");
    }
    readable_ = problems_.empty();
  }

  const NcclWord* cell(const std::vector<NcclWord>& words, std::string_view column) const {
    const auto found = std::find(columns_.begin(), columns_.end(), column);
    return found == columns_.end() ? nullptr : &words[static_cast<std::size_t>(found - columns_.begin())];
  }

  std::optional<double> number(const std::vector<NcclWord>& words, std::string_view column) {
    const NcclWord* word = cell(words, column);
    if (word == nullptr) return std::nullopt;
    const std::optional<double> out = plain_number(word->text);
    if (out && *out >= 0) return out;
    problems_.add(at(*word), fmt::format("{} is {}, expected a number", column, in_quotes(word->text)), "");
    return std::nullopt;
  }

  void take_row(const std::vector<NcclWord>& words) {
    if (!readable_) return;
    if (words.size() != columns_.size()) {
      problems_.add(at(words.front()),
                    fmt::format("a row of {} values under {} columns", words.size(), columns_.size()),
                    "was the line cut off?");
      return;
    }
    const bool processor_time = cell(words, "time") == nullptr;
    const std::optional<double> bytes = number(words, "size");
    const std::optional<double> micro = number(words, processor_time ? "cputime" : "time");
    const std::optional<double> alg = number(words, "algbw");
    const std::optional<double> bus = number(words, "busbw");
    if (processor_time) {
      problems_.add(at(words.front()), "these are times of the processor", "run the test without -C");
    }
    if (!bytes || !micro || !alg || !bus) return;
    check_bus(words, *alg, *bus);
    const NcclWord* wrong = cell(words, "#wrong");
    if (wrong != nullptr && wrong->text != "0" && wrong->text != "N/A") {
      problems_.add(at(*wrong), fmt::format("{} wrong elements: the collective failed", wrong->text), "");
    }
    if (*bytes == 0 || *micro == 0) return;
    constexpr double kMicro = 1e-6;
    constexpr double kGiga = 1e9;
    // Of an all-to-all the size is what one rank holds.
    const double whole = *test_ == CollectiveOp::kAllToAll ? *bytes * static_cast<double>(ranks_) : *bytes;
    out_.push_back({at(words.front()), fmt::format("{}:{}", file_, number_), file_,
                    TimedCollective{*test_, ranks_, static_cast<std::int64_t>(hosts_.size()), whole, *bus * kGiga},
                    *micro * kMicro});
  }

  /// Catches a file named after another test, and ranks that are missing from the text.
  void check_bus(const std::vector<NcclWord>& words, double alg, double bus) {
    constexpr double kPrinted = 2;  // two decimals
    constexpr double kRounding = 0.02;
    const double expected = bus_share(*test_, ranks_);
    if (alg < kPrinted || std::abs(bus / alg / expected - 1) < kRounding) return;
    problems_.add(at(*cell(words, "busbw")),
                  fmt::format("busbw is {:.3g} times algbw, expected {:.3g} of {} ranks", bus / alg, expected, ranks_),
                  "is the file named after another test, or do lines of ranks lack?");
    readable_ = false;
  }

  std::string file_;
  std::optional<CollectiveOp> named_;  ///< by the file's name
  std::optional<CollectiveOp> test_;
  std::int64_t ranks_ = 0;
  std::set<std::string> hosts_;
  std::vector<std::string> columns_;
  bool readable_ = true;
  int number_ = 0;
  std::string line_;
  Problems problems_;
  std::vector<KernelMeasurement> out_;
};

}  // namespace

bool is_nccl_tests(std::string_view text) {
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    if (!columns_of(text.substr(begin, end - begin)).empty()) return true;
    begin = end + 1;
  }
  return false;
}

std::vector<KernelMeasurement> read_nccl_tests(const std::string& text, const std::string& file) {
  return NcclReader(file).run(text);
}

}  // namespace scalecalc
