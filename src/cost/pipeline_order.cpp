// Lists the order in which each schedule runs its blocks, for the pipeline simulation. Sources: Narayanan et al. 2021,
// arXiv:2104.04473 section 2.2 and Megatron-LM's warm-up counts (interleaved); the DeepSeek-V3 report,
// arXiv:2412.19437 section 3.2.1 and figure 5, with the eight steps of the published DualPipe implementation.
#include "cost/pipeline_order.h"

#include <algorithm>

#include "base/check.h"

namespace scalecalc {
namespace {

/// The k-th forward (or backward) of a stage: groups of pp microbatches visit its chunks in turn, backward in the
/// opposite order.
PipelineTask virtual_task(const PipelineRun& run, bool forward, std::int64_t k, std::int64_t stage) {
  if (run.vpp == 1) return {forward, stage, k};
  const std::int64_t group = run.pp * run.vpp;
  const std::int64_t turn = (k % group) / run.pp;
  const std::int64_t turns = forward ? turn : run.vpp - 1 - turn;
  return {forward, turns * run.pp + stage, k / group * run.pp + k % run.pp};
}

/// Warm-up forwards, then one forward and one backward in turn, then the backwards that are left.
std::vector<PipelineTask> one_by_one(const PipelineRun& run, std::int64_t stage) {
  const std::int64_t total = run.microbatches * run.vpp;
  std::int64_t warm_up = total;  // GPipe
  if (run.schedule == Schedule::k1F1B || run.schedule == Schedule::kNone) warm_up = run.pp - stage - 1;
  if (run.schedule == Schedule::kInterleaved) {
    check(run.microbatches % run.pp == 0, "interleaved microbatches come in groups of pp");
    warm_up = (run.vpp - 1) * run.pp + 2 * (run.pp - stage - 1);
  }
  warm_up = std::min(warm_up, total);
  std::vector<PipelineTask> out;
  for (std::int64_t k = 0; k < warm_up; ++k) out.push_back(virtual_task(run, true, k, stage));
  for (std::int64_t k = 0; k < total; ++k) {
    if (warm_up + k < total) out.push_back(virtual_task(run, true, warm_up + k, stage));
    out.push_back(virtual_task(run, false, k, stage));
  }
  return out;
}

/// A stage feeds microbatches of its near end (0) and of the far end (1): chunk s of one copy of the model and chunk
/// pp - 1 - s of the other. Even microbatches enter at stage 0, odd ones at the last.
class DualPipeOrder {
 public:
  DualPipeOrder(const PipelineRun& run, std::int64_t stage) : pp_(run.pp), stage_(stage) {
    const bool second_half = stage >= pp_ / 2;
    const std::int64_t from_its_end = second_half ? pp_ - 1 - stage : stage;
    const std::int64_t to_the_middle = pp_ / 2 - from_its_end - 1;
    near_ = second_half ? 1 : 0;
    for (std::int64_t i = 0; i < 2 * to_the_middle; ++i) forward(0);
    for (std::int64_t i = 0; i < from_its_end + 1; ++i) {
      forward(0);
      forward(1);
    }
    for (std::int64_t i = 0; i < to_the_middle; ++i) {
      backward(1, true);
      weights();
      forward(1);
    }
    for (std::int64_t i = 0; i < run.microbatches / 2 - pp_ + from_its_end + 1; ++i) {
      forward(0);
      backward(1, false);
      forward(1);
      backward(0, false);
    }
    for (std::int64_t i = 0; i < to_the_middle; ++i) {
      backward(1, false);
      forward(1);
      backward(0, false);
    }
    drain(from_its_end);
    for (std::int64_t i = 0; i < to_the_middle; ++i) {
      weights();
      backward(0, true);
    }
    for (std::int64_t i = 0; i < from_its_end + 1; ++i) weights();
  }

  std::vector<PipelineTask> take() { return std::move(out_); }

 private:
  /// The last backwards of both ends; from half of them on, weight gradients are put off to fill the end.
  void drain(std::int64_t from_its_end) {
    bool puts_off = false;
    for (std::int64_t i = 0; i < from_its_end + 1; ++i) {
      const bool half = i == (from_its_end + 1) / 2;
      puts_off = puts_off || (half && from_its_end % 2 == 1);
      backward(1, puts_off);
      puts_off = puts_off || (half && from_its_end % 2 == 0);
      backward(0, puts_off);
    }
  }

  PipelineTask task(bool forward, std::int64_t end, std::int64_t k) const {
    const std::int64_t direction = end == 0 ? near_ : 1 - near_;
    return {forward, direction == 0 ? stage_ : pp_ - 1 - stage_, 2 * k + direction};
  }
  void forward(std::int64_t end) { out_.push_back(task(true, end, forwards_[end]++)); }
  void backward(std::int64_t end, bool puts_off) {
    out_.push_back(task(false, end, backwards_[end]++));
    out_.back().puts_off = puts_off;
  }
  void weights() {
    out_.push_back({});
    out_.back().weights = true;
  }

  std::int64_t pp_, stage_;
  std::int64_t near_ = 0;
  std::int64_t forwards_[2] = {0, 0};
  std::int64_t backwards_[2] = {0, 0};
  std::vector<PipelineTask> out_;
};

}  // namespace

std::vector<PipelineTask> pipeline_order(const PipelineRun& run, std::int64_t stage) {
  if (run.schedule != Schedule::kDualPipe) {
    check(run.schedule != Schedule::kZeroBubble, "a zero-bubble pipeline has no fixed order");
    return one_by_one(run, stage);
  }
  check(run.pp % 2 == 0 && run.microbatches % 2 == 0 && run.microbatches >= 2 * run.pp,
        "DualPipe needs an even pp and an even number of microbatches, 2 pp at least");
  return DualPipeOrder(run, stage).take();
}

}  // namespace scalecalc
