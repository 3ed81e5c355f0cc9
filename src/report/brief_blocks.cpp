// Makes the blocks of a brief answer that several commands share: time, memory, accuracy, next commands.
#include "report/brief_blocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"

namespace scalecalc {

Block brief_time_block(std::string_view title, const std::vector<std::pair<std::string, double>>& parts, double whole) {
  constexpr double kLeast = 0.02;
  constexpr double kLongest = 40;
  Block out = lines_block(title, {});
  out.section = "time";
  out.shown = Shown::kBrief;
  double rest = whole;
  std::size_t left = 0;
  const auto add = [&](const std::string& cause, double value) {
    // Blank titles: the heading says what the columns are.
    Record record = parts_record({" ", " ", " ", Format::kSeconds, whole}, cause, value);
    const auto length = static_cast<std::size_t>(std::lround(value / whole * kLongest));
    record.figures.push_back(text_figure("bar", " ", std::string(length, '#'), 1));
    record.figures.back().rigid = true;
    out.records.push_back(std::move(record));
  };
  // With the rest no more than fit beside what else a screen holds.
  constexpr std::size_t kMost = 5;
  std::vector<double> largest;
  for (const auto& part : parts) largest.push_back(part.second);
  std::sort(largest.rbegin(), largest.rend());
  const double least = largest.size() >= kMost ? std::max(kLeast * whole, largest[kMost - 2]) : kLeast * whole;
  for (const auto& [cause, value] : parts) {
    if (value < least) {
      left += value > 0 ? 1 : 0;
      continue;
    }
    add(cause, value);
    rest -= value;
  }
  if (left > 0) add("the rest", rest);
  return out;
}

Block brief_memory_block(std::string title, std::vector<std::pair<std::string, double>> parts) {
  constexpr double kLeast = 0.02;
  constexpr std::size_t kMost = 5;  // with the rest: one line of a screen, mostly
  double total = 0;
  for (const auto& part : parts) total += part.second;
  std::stable_sort(parts.begin(), parts.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  const auto large =
      std::count_if(parts.begin(), parts.end(), [&](const auto& p) { return p.second >= kLeast * total; });
  const auto most = static_cast<std::size_t>(large);
  const std::size_t named = most > kMost ? kMost - 1 : most;
  std::vector<std::string> texts;
  double rest = total;
  for (std::size_t i = 0; i < named; ++i) {
    texts.push_back(fmt::format("{} {}", parts[i].first, bytes_text(parts[i].second)));
    rest -= parts[i].second;
  }
  if (most > named) texts.push_back(fmt::format("the rest {}", bytes_text(rest)));
  Block out = lines_block(title, {{join(texts, ", ")}});
  out.section = "memory";
  out.shown = Shown::kBrief;
  return out;
}

std::string accuracy_text(const Efficiency& efficiency) {
  const std::string& fitted = efficiency.fitted;
  if (fitted.empty() && !efficiency.not_fitted.empty()) return "accuracy: not fitted: " + efficiency.not_fitted;
  // "fitted 2026-11 to FILE: 85 runs of 8 sources; mean error 8.6 %, 10.1 % on runs of a source held out, ..."
  const std::size_t runs = fitted.find(": ");
  const std::size_t end = fitted.find(" held out");
  const bool known = runs != std::string::npos && end != std::string::npos;
  return "accuracy: " + (known ? fitted.substr(runs + 2, end + 9 - runs - 2) : "fitted to no measured run");
}

Block in_full(Block block) {
  block.shown = Shown::kFull;
  return block;
}

Block brief_end_block(std::vector<Line> lines) {
  Block out = next_block(std::move(lines));
  out.shown = Shown::kBrief;
  return out;
}

Block next_block(std::vector<Line> lines) {
  Block out = lines_block("", std::move(lines));
  out.section = "next";
  out.last = true;
  out.for_files = out.lines.empty();
  return out;
}

}  // namespace scalecalc
