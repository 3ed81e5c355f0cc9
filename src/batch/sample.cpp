#include "batch/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/diagnostic.h"

namespace scalecalc {
namespace {

/// Points from the first to the last, equally far apart.
std::vector<std::uint64_t> spread(std::uint64_t size, std::uint64_t most) {
  std::vector<std::uint64_t> out;
  const std::uint64_t points = std::min(size, most);
  for (std::uint64_t i = 0; i < points; ++i) {
    const std::uint64_t at =
        points == 1 ? 0 : i * ((size - 1) / (points - 1)) + i * ((size - 1) % (points - 1)) / (points - 1);
    out.push_back(at);
  }
  return out;
}

void check_some_are_kept(const Study& study, const Cases& cases, PointFilter& filter) {
  constexpr std::uint64_t kLookedAt = 1'000'000;
  if (study.where.empty() || cases.size() > kLookedAt) return;
  for (std::uint64_t number = 0; number < cases.size(); ++number) {
    if (filter.keeps(cases.point(number))) return;
  }
  throw UserError(fmt::format("'where' keeps none of the study's {} points", cases.size()), study.where);
}

}  // namespace

StudySample sample_study(const Study& study, const Cases& cases, const Ask& ask, std::uint64_t most, double seconds) {
  using Clock = std::chrono::steady_clock;
  PointFilter filter(study, cases);
  check_some_are_kept(study, cases, filter);
  StudySample out;
  auto start = Clock::now();
  double spent = 0;
  std::uint64_t looked_at = 0;
  for (const std::uint64_t number : spread(cases.size(), most)) {
    const GridPoint point = cases.point(number);
    ++looked_at;
    if (!filter.keeps(point)) continue;
    const StudyQuestion question = cases.question(point);
    const StudyReply reply = ask(question);
    ++out.asked;
    if (reply.exit == static_cast<int>(ExitCode::kQuestionWrong)) {
      out.wrong.push_back({command_line(question), reply.reason});
    }
    spent = std::chrono::duration<double>(Clock::now() - start).count();
    out.seconds_each = spent / static_cast<double>(std::max<std::uint64_t>(out.asked - 1, 1));
    if (spent > seconds || reply.exit == static_cast<int>(ExitCode::kInterrupted)) break;
    if (out.asked == 1) start = Clock::now();  // the first reads what the others find in memory
  }
  if (looked_at > 0) out.kept_share = static_cast<double>(out.asked) / static_cast<double>(looked_at);
  if (out.asked == 0 || out.wrong.size() < out.asked) return out;
  throw UserError(fmt::format("every question of a sample of {} is wrong, the first: {}: {}", out.asked,
                              out.wrong.front().question, out.wrong.front().reason),
                  "mend the study; scalecalc COMMAND --help says what it can be asked");
}

}  // namespace scalecalc
