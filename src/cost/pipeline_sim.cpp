// Simulates a pipeline schedule block by block, for `scalecalc trace` and to test the closed forms.
#include "cost/pipeline_sim.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/check.h"
#include "cost/pipeline_order.h"

namespace scalecalc {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

using Task = PipelineTask;

class Simulation {
 public:
  explicit Simulation(const PipelineRun& run) : run_(run), stages_(static_cast<std::size_t>(run.pp)) {
    const std::size_t tasks = static_cast<std::size_t>(run.pp * run.vpp * run.microbatches);
    forward_end_.assign(tasks, kNever);
    backward_end_.assign(tasks, kNever);
    forward_arrival_.assign(tasks, kNever);
    backward_arrival_.assign(tasks, kNever);
    out_.busy_s.assign(stages_.size(), 0);
    out_.peak_in_flight.assign(stages_.size(), 0);
  }

  Timeline run() {
    if (run_.schedule == Schedule::kZeroBubble) {
      greedy();
    } else {
      for (std::size_t s = 0; s < stages_.size(); ++s) {
        stages_[s].order = pipeline_order(run_, static_cast<std::int64_t>(s));
      }
      in_order();
    }
    tails();
    if (!dual()) {
      for (double& peak : out_.peak_in_flight) peak /= static_cast<double>(run_.vpp);
    }
    std::stable_sort(out_.blocks.begin(), out_.blocks.end(),
                     [](const PipelineBlock& a, const PipelineBlock& b) { return a.start_s < b.start_s; });
    return std::move(out_);
  }

 private:
  struct Stage {
    std::vector<Task> order;  ///< schedules with a fixed order
    std::size_t next = 0;
    std::vector<Task> weights;  ///< weight gradients put off
    double free_s = 0;
    double in_flight = 0;  ///< chunks
    double last_backward_s = 0;
    std::array<double, 2> link_free_s{};  ///< of the link to the next stage, and of that to the one before
  };

  bool dual() const { return run_.schedule == Schedule::kDualPipe; }
  std::int64_t chunks() const { return dual() ? run_.pp : run_.pp * run_.vpp; }

  /// DualPipe sends every second microbatch in from the other end: what is its chunk c runs on stage pp - 1 - c.
  bool from_the_end(const Task& task) const { return dual() && task.microbatch % 2 == 1; }
  std::int64_t stage_of(const Task& task) const {
    return from_the_end(task) ? run_.pp - 1 - task.chunk : task.chunk % run_.pp;
  }
  const ChunkTimes& times(const Task& task) const { return run_.chunks[static_cast<std::size_t>(task.chunk)]; }
  std::size_t index(const Task& task) const {
    return static_cast<std::size_t>(task.microbatch * chunks() + task.chunk);
  }

  /// When the input of a task has arrived; kNever if what makes it has not run.
  double ready(const Task& task) const {
    const bool first = task.forward ? task.chunk == 0 : task.chunk == chunks() - 1;
    if (first) return task.forward ? 0 : forward_end_[index(task)];
    Task before = task;
    before.chunk += task.forward ? -1 : 1;
    const double arrival = (task.forward ? forward_arrival_ : backward_arrival_)[index(before)];
    return task.forward ? arrival : std::max(arrival, forward_end_[index(task)]);
  }

  void block(BlockKind kind, const Task& task, double start, double length) {
    if (length <= 0) return;
    out_.blocks.push_back({kind, stage_of(task), task.chunk, task.microbatch, start, start + length});
  }

  /// Runs a task at the earliest, and the send that follows it.
  void execute(const Task& task, double start) {
    Stage& stage = stages_[static_cast<std::size_t>(stage_of(task))];
    const ChunkTimes& t = times(task);
    const bool split = task.puts_off;
    const double length = task.forward ? t.forward : t.backward_input + (split ? 0 : t.backward_weight);
    const BlockKind backward = split ? BlockKind::kBackwardInput : BlockKind::kBackward;
    block(task.forward ? BlockKind::kForward : backward, task, start, length);
    finish(stage, task, start, length);
    (task.forward ? forward_end_ : backward_end_)[index(task)] = start + length;
    stage.in_flight += task.forward ? 1 : -1;
    double& peak = out_.peak_in_flight[static_cast<std::size_t>(stage_of(task))];
    peak = std::max(peak, stage.in_flight);
    if (!task.forward) {
      stage.last_backward_s = stage.free_s;
      if (split) stage.weights.push_back(task);
    }
    (task.forward ? forward_arrival_ : backward_arrival_)[index(task)] = send(stage, task, start + length);
  }

  /// Sends what a task made to whoever needs it; when it is there.
  double send(Stage& stage, const Task& task, double made) {
    Task next = task;
    next.chunk += task.forward ? 1 : -1;
    if (next.chunk < 0 || next.chunk >= chunks() || stage_of(next) == stage_of(task)) return made;
    const bool onward = task.forward != from_the_end(task);
    double& free = stage.link_free_s[onward ? 0 : 1];
    const double start = std::max(made, free);
    free = start + run_.send_s;
    block(task.forward ? BlockKind::kSendActivation : BlockKind::kSendGradient, task, start, run_.send_s);
    if (run_.send_s > 0) out_.blocks.back().onward = onward;
    return free;
  }

  void finish(Stage& stage, const Task& task, double start, double length) {
    stage.free_s = start + length;
    out_.busy_s[static_cast<std::size_t>(stage_of(task))] += length;
    out_.compute_end_s = std::max(out_.compute_end_s, stage.free_s);
  }

  void put_off_weight(Stage& stage) {
    const Task task = stage.weights.front();
    stage.weights.erase(stage.weights.begin());
    const double start = stage.free_s;
    block(BlockKind::kBackwardWeight, task, start, times(task).backward_weight);
    finish(stage, task, start, times(task).backward_weight);
    stage.last_backward_s = stage.free_s;
  }

  void in_order() {
    for (bool progress = true; progress;) {
      progress = false;
      for (Stage& stage : stages_) {
        while (stage.next < stage.order.size()) {
          const Task& task = stage.order[stage.next];
          if (task.weights) {
            put_off_weight(stage);
          } else {
            const double at = ready(task);
            if (at == kNever) break;
            execute(task, std::max(at, stage.free_s));
          }
          ++stage.next;
          progress = true;
        }
      }
    }
    for (const Stage& stage : stages_) check(stage.next == stage.order.size(), "a pipeline schedule that deadlocks");
  }

  // Zero-bubble: each stage takes a backward if one is there, else a forward while its memory allows, else a weight
  // gradient.

  struct Choice {
    Task task;
    double start = kNever;
  };

  Choice choose(std::int64_t s) const {
    const Stage& stage = stages_[static_cast<std::size_t>(s)];
    const Front& front = fronts_[static_cast<std::size_t>(s)];
    Choice best;
    const auto offer = [&](const Task& task) {
      const double at = ready(task);
      if (at == kNever) return;
      const double start = std::max(at, stage.free_s);
      if (start < best.start || (start == best.start && best.task.forward && !task.forward)) best = {task, start};
    };
    const bool room = stage.in_flight < static_cast<double>(run_.pp - s);
    if (front.backward < run_.microbatches)
      offer({.forward = false, .chunk = s, .microbatch = front.backward, .puts_off = true});
    if (room && front.forward < run_.microbatches) offer({true, s, front.forward});
    return best;
  }

  void greedy() {
    fronts_.assign(stages_.size(), {});
    while (true) {
      std::int64_t soonest = -1;
      Choice best;
      for (std::int64_t s = 0; s < run_.pp; ++s) {
        const Choice choice = choose(s);
        if (choice.start < best.start) {
          best = choice;
          soonest = s;
        }
      }
      if (soonest < 0) break;
      fill(soonest, best.start);
      Front& front = fronts_[static_cast<std::size_t>(soonest)];
      ++(best.task.forward ? front.forward : front.backward);
      execute(best.task, std::max(best.start, stages_[static_cast<std::size_t>(soonest)].free_s));
    }
    for (Stage& stage : stages_) {
      while (!stage.weights.empty()) put_off_weight(stage);
    }
  }

  /// Weight gradients that end before the stage's next task can start.
  void fill(std::int64_t s, double until) {
    Stage& stage = stages_[static_cast<std::size_t>(s)];
    while (!stage.weights.empty() &&
           stage.free_s + times(stage.weights.front()).backward_weight <= until * (1 + 1e-12)) {
      put_off_weight(stage);
    }
  }

  void tails() {
    out_.end_s = out_.compute_end_s;
    for (std::size_t s = 0; s < run_.tails.size(); ++s) {
      const StageTail& tail = run_.tails[s];
      const double done = stages_[s].last_backward_s;
      const double reduced = done + tail.reduce_s;
      const double updated = reduced + tail.update_s;
      tail_block(BlockKind::kReduce, s, std::max(0.0, done - tail.reduce_hidden_s), reduced);
      tail_block(BlockKind::kUpdate, s, reduced, updated);
      tail_block(BlockKind::kGather, s, updated, updated + tail.gather_s);
      out_.end_s = std::max(out_.end_s, updated + tail.gather_s);
    }
  }

  void tail_block(BlockKind kind, std::size_t stage, double start, double end) {
    if (end > start) out_.blocks.push_back({kind, static_cast<std::int64_t>(stage), 0, 0, start, end});
  }

  /// The next microbatch to go forward and backward on one stage.
  struct Front {
    std::int64_t forward = 0;
    std::int64_t backward = 0;
  };

  const PipelineRun& run_;
  std::vector<Stage> stages_;
  std::vector<Front> fronts_;
  std::vector<double> forward_end_;
  std::vector<double> backward_end_;
  std::vector<double> forward_arrival_;  ///< at the stage that goes on with it
  std::vector<double> backward_arrival_;
  Timeline out_;
};

}  // namespace

Timeline simulate(const PipelineRun& run) {
  const std::size_t chunks = static_cast<std::size_t>(run.pp * (run.schedule == Schedule::kDualPipe ? 1 : run.vpp));
  check(run.chunks.size() == chunks, "a time for every chunk of the pipeline");
  return Simulation(run).run();
}

}  // namespace scalecalc
