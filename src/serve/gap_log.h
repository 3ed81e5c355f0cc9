// The times between the tokens of all sequences, kept as runs: a decode step's time rises evenly with the context, so
// millions of gaps are thousands of runs.
#pragma once

#include <cstdint>
#include <vector>

namespace scalecalc {

class GapLog {
 public:
  void add(double seconds, std::int64_t times = 1) { add_run(seconds, seconds, 1, times); }
  /// `steps` gaps evenly spaced from `first` to `last` seconds, each `times` over.
  void add_run(double first, double last, std::int64_t steps, std::int64_t times);
  void add_all(const GapLog& other);

  std::int64_t count() const { return count_; }
  double mean() const;
  /// The smallest gap that a share `p` of all does not exceed (nearest rank), to a part in 10^9.
  double quantile(double p) const;

 private:
  struct GapRun {
    double low;
    double high;
    std::int64_t steps;
    std::int64_t times;

    std::int64_t up_to(double seconds) const;
  };

  std::vector<GapRun> runs_;
  std::int64_t count_ = 0;
  double sum_ = 0;
};

}  // namespace scalecalc
