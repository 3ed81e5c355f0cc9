// Asks the questions of a shard on several threads and writes the rows in the order of the cases.
#include "batch/run_shard.h"

#include <fmt/format.h>
#include <tbb/global_control.h>
#include <tbb/parallel_pipeline.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <optional>

#include "base/diagnostic.h"
#include "base/heap.h"
#include "batch/deaths.h"
#include "plan/threads.h"

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

StudySample sample_study(const Study& study, const Cases& cases, const Ask& ask, std::uint64_t most, double seconds,
                         const KnownReplies& known) {
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
    const auto answered = known.find(number);
    StudyReply reply = answered != known.end() ? answered->second : [&] {
      const CaseAsked asked(number, true);
      return ask(question);
    }();
    ++out.asked;
    if (reply.exit == static_cast<int>(ExitCode::kQuestionWrong)) {
      out.wrong.push_back({command_line(question), reply.reason});
    }
    spent = std::chrono::duration<double>(Clock::now() - start).count();
    out.seconds_each = spent / static_cast<double>(std::max<std::uint64_t>(out.asked - 1, 1));
    if (reply.exit == static_cast<int>(ExitCode::kInterrupted)) break;
    out.replies.emplace(number, std::move(reply));
    if (spent > seconds) break;
    if (out.asked == 1) start = Clock::now();  // the first reads what the others find in memory
  }
  if (looked_at > 0) out.kept_share = static_cast<double>(out.asked) / static_cast<double>(looked_at);
  if (out.asked == 0 || out.wrong.size() < out.asked) return out;
  throw UserError(fmt::format("every question of a sample of {} is wrong, the first: {}: {}", out.asked,
                              out.wrong.front().question, out.wrong.front().reason),
                  "mend the study; scalecalc COMMAND --help says what it can be asked");
}

namespace {

/// Questions answered by one thread in one go.
struct Batch {
  std::vector<std::uint64_t> cases;
  std::uint64_t skipped = 0;  ///< points before and between them that `where` leaves out
  ShardWriter::Rows rows;
  RunEnd end = RunEnd::kDone;  ///< kDone: all cases answered
  std::string failed_question;
  StudyReply failed;
};

class ShardRunner {
 public:
  ShardRunner(const StudyManifest& manifest, const std::string& directory, std::uint64_t shard, const Ask& ask,
              const RunOptions& options)
      : manifest_(manifest),
        cases_(manifest.study),
        filter_(manifest.study, cases_),
        head_(row_head(manifest.tool_version, manifest.study.command)),
        writer_(manifest, directory, shard, head_),
        ask_(ask),
        options_(options),
        next_(writer_.first_case()) {
    tell((next_ - shard) / manifest.shards);
  }

  ShardRun run() {
    if (threads_are_here()) {
      on_all_threads();
    } else {
      while (const auto batch = next_batch()) {
        answer(*batch);
        land(*batch);
      }
    }
    if (out_.end == RunEnd::kDone) writer_.finish();
    out_.statuses = writer_.statuses();
    return std::move(out_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  void on_all_threads() {
    const unsigned jobs = options_.jobs > 0 ? options_.jobs : usable_cores();
    const tbb::global_control threads(tbb::global_control::max_allowed_parallelism, jobs);
    using Token = std::shared_ptr<Batch>;
    tbb::parallel_pipeline(
        std::size_t{4} * jobs,
        tbb::make_filter<void, Token>(tbb::filter_mode::serial_in_order, [&](tbb::flow_control& flow) -> Token {
          Token batch = next_batch();
          if (batch == nullptr) flow.stop();
          return batch;
        }) & tbb::make_filter<Token, Token>(tbb::filter_mode::parallel, [&](Token batch) {
          use_huge_pages();
          answer(*batch);
          return batch;
        }) & tbb::make_filter<Token, void>(tbb::filter_mode::serial_in_order, [&](const Token& batch) {
          land(*batch);
        }));
  }

  /// The cases that follow; as many as take some milliseconds, so that little is lost when the process is killed.
  std::shared_ptr<Batch> next_batch() {
    if (ended_ || next_ >= manifest_.cases) return nullptr;
    auto out = std::make_shared<Batch>();
    constexpr std::uint64_t kMostSkipped = 4096;  // so that a narrow condition shows progress too
    while (next_ < manifest_.cases && out->cases.size() < batch_size_ && out->skipped < kMostSkipped) {
      if (filter_.keeps(cases_.point(next_))) {
        out->cases.push_back(next_);
      } else {
        ++out->skipped;
      }
      next_ += manifest_.shards;
    }
    return out;
  }

  void answer(Batch& batch) {
    const auto start = Clock::now();
    std::size_t asked = 0;
    for (const std::uint64_t number : batch.cases) {
      if (ended_ || (options_.stop && options_.stop())) {
        batch.end = RunEnd::kStopped;
        break;
      }
      const GridPoint point = cases_.point(number);
      const StudyQuestion question = cases_.question(point);
      const StudyReply* known = known_reply(number);
      const CaseAsked case_asked(number);
      const StudyReply reply = known != nullptr ? *known : ask_(question);
      asked += known == nullptr ? 1 : 0;
      if (reply.exit == static_cast<int>(ExitCode::kInterrupted)) {
        batch.end = RunEnd::kStopped;
        break;
      }
      if (options_.strict && reply.exit != 0) {
        batch.end = RunEnd::kFailed;
        batch.failed_question = command_line(question);
        batch.failed = reply;
        break;
      }
      batch.rows.add(rows_of(head_, number, cases_, point, question, reply, manifest_.study.all_records), head_);
    }
    if (batch.end == RunEnd::kDone && asked > 0) adapt(asked, Clock::now() - start);
  }

  const StudyReply* known_reply(std::uint64_t number) const {
    if (options_.known == nullptr) return nullptr;
    const auto at = options_.known->find(number);
    return at == options_.known->end() ? nullptr : &at->second;
  }

  void adapt(std::size_t cases, Clock::duration took) {
    constexpr double kSeconds = 0.005;
    constexpr double kMost = 256;
    const double each = std::chrono::duration<double>(took).count() / static_cast<double>(cases);
    batch_size_ = static_cast<std::size_t>(std::clamp(kSeconds / std::max(each, 1e-9), 1.0, kMost));
  }

  /// In the order of the cases; behind one that was not answered nothing lands any more.
  void land(Batch& batch) {
    if (out_.end != RunEnd::kDone) return;
    writer_.append(batch.rows);
    tell(batch.cases.size() + batch.skipped);
    if (batch.end == RunEnd::kDone) return;
    ended_ = true;
    out_.end = batch.end;
    out_.failed_question = std::move(batch.failed_question);
    out_.failed = std::move(batch.failed);
  }

  void tell(std::uint64_t cases) const {
    if (options_.tell) options_.tell(cases);
  }

  const StudyManifest& manifest_;
  Cases cases_;
  PointFilter filter_;
  std::string head_;
  ShardWriter writer_;
  const Ask& ask_;
  const RunOptions& options_;
  std::uint64_t next_;
  std::atomic<std::size_t> batch_size_ = 1;
  std::atomic<bool> ended_ = false;
  ShardRun out_;
};

}  // namespace

ShardRun run_shard(const StudyManifest& manifest, const std::string& directory, std::uint64_t shard, const Ask& ask,
                   const RunOptions& options) {
  const std::string path = shard_path(directory, shard, manifest.shards);
  if (file_exists(path)) {
    if (const auto end = shard_end(path); end && end->manifest == manifest.hash) {
      if (options.tell) options.tell((manifest.cases - shard + manifest.shards - 1) / manifest.shards);
      return {.statuses = end->statuses};
    }
  }
  return ShardRunner(manifest, directory, shard, ask, options).run();
}

}  // namespace scalecalc
