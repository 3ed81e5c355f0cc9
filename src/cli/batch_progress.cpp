#include "cli/batch_progress.h"

#include <fmt/format.h>

#include "base/units.h"

namespace scalecalc::cli {

BatchProgress::BatchProgress(Environment& env, Verbosity verbosity, std::uint64_t cases)
    : env_(env), shown_(env.err_is_tty && verbosity != Verbosity::kQuiet), cases_(cases) {}

BatchProgress::~BatchProgress() {
  if (shown_ && last_ != start_) env_.err << "\r\x1b[K" << std::flush;
}

void BatchProgress::landed(std::uint64_t cases, bool before) {
  constexpr auto kBetween = std::chrono::milliseconds(200);
  done_ += cases;
  if (before) before_ += cases;
  if (!shown_) return;
  const auto now = Clock::now();
  if (now - last_ < kBetween) return;
  last_ = now;
  show(now);
}

void BatchProgress::show(Clock::time_point now) {
  const double seconds = std::chrono::duration<double>(now - start_).count();
  const double rate = static_cast<double>(done_ - before_) / seconds;
  const auto count = [](std::uint64_t n) { return group_thousands(static_cast<long long>(n)); };
  std::string line = fmt::format("{} of {} ({:.0f} %)", count(done_), count(cases_),
                                 100 * static_cast<double>(done_) / static_cast<double>(cases_));
  if (rate > 0) {
    const double left = static_cast<double>(cases_ - done_) / rate;
    line += fmt::format(", {:.3g} a second, {} left", rate, format_quantity(left, UnitKind::kSeconds, 2));
  }
  env_.err << "\r\x1b[K" << line << std::flush;
}

}  // namespace scalecalc::cli
