#include "serve/gap_log.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/check.h"

namespace scalecalc {

std::int64_t GapLog::GapRun::up_to(double seconds) const {
  if (seconds < low) return 0;
  if (seconds >= high) return steps * times;
  const double position = (seconds - low) / (high - low) * static_cast<double>(steps - 1);
  return std::min(static_cast<std::int64_t>(position) + 1, steps) * times;
}

void GapLog::add_run(double first, double last, std::int64_t steps, std::int64_t times) {
  if (steps <= 0 || times <= 0) return;
  count_ += steps * times;
  sum_ += (first + last) / 2 * static_cast<double>(steps * times);
  if (steps == 1 && !runs_.empty() && runs_.back().steps == 1 && runs_.back().low == first) {
    runs_.back().times += times;
    return;
  }
  runs_.push_back({std::min(first, last), std::max(first, last), steps, times});
}

void GapLog::add_all(const GapLog& other) {
  runs_.insert(runs_.end(), other.runs_.begin(), other.runs_.end());
  count_ += other.count_;
  sum_ += other.sum_;
}

double GapLog::mean() const { return count_ > 0 ? sum_ / static_cast<double>(count_) : 0; }

double GapLog::quantile(double p) const {
  check(count_ > 0, "a quantile is of something");
  const auto rank = std::max<std::int64_t>(static_cast<std::int64_t>(std::ceil(p * static_cast<double>(count_))), 1);
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  for (const GapRun& run : runs_) {
    low = std::min(low, run.low);
    high = std::max(high, run.high);
  }
  // Halving, with the runs that lie on one side taken out of the search.
  std::vector<GapRun> open = runs_;
  std::int64_t below = 0;
  while (high - low > 1e-9 * high) {
    const double middle = low + (high - low) / 2;
    std::int64_t found = below;
    for (const GapRun& run : open) found += run.up_to(middle);
    if (found >= rank) {
      high = middle;
      std::erase_if(open, [&](const GapRun& run) { return run.low > middle; });
    } else {
      low = middle;
      std::erase_if(open, [&](const GapRun& run) {
        if (run.high > middle) return false;
        below += run.steps * run.times;
        return true;
      });
    }
  }
  return high;
}

}  // namespace scalecalc
