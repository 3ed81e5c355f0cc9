// How far a study is, on a terminal behind standard error.
#pragma once

#include <chrono>
#include <cstdint>

#include "cli/environment.h"
#include "cli/log.h"

namespace scalecalc::cli {

/// Says nothing into a pipe or when it is to be quiet.
class BatchProgress {
 public:
  BatchProgress(Environment& env, Verbosity verbosity, std::uint64_t cases);
  /// Takes the line away.
  ~BatchProgress();
  BatchProgress(const BatchProgress&) = delete;
  BatchProgress& operator=(const BatchProgress&) = delete;

  /// Cases that a killed run answered count as done but not for the rate.
  void landed(std::uint64_t cases, bool before);

 private:
  using Clock = std::chrono::steady_clock;
  void show(Clock::time_point now);

  Environment& env_;
  bool shown_;
  std::uint64_t cases_;
  std::uint64_t done_ = 0;
  std::uint64_t before_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = start_;
};

}  // namespace scalecalc::cli
