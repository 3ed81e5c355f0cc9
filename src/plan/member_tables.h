// What the layouts of one member share, computed once: memory by its parts and the ends of its shardings. A layout is
// then a sum over the stages.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "cost/stage_memory.h"
#include "cost/step_bound.h"

namespace scalecalc {

class MemberTables {
 public:
  void clear();

  /// One more sharding. `in` has its layout on channels no slower than any placement's; `slowest` the longest passes
  /// of any recipe; `gathers` the gather_times of `in`, asked of a sharding that gathers weights alone.
  void add(const StepInput<double>& in, const PhaseTotals& slowest, const GatherTimes& gathers);
  /// The recipe to look at next, and for its loss the policy that keeps everything, as fit_with_remat asks for it: of
  /// some layers.
  void recipe(const StepInput<double>& in) { fill(in, pass_); }
  void keep_everything(const StepInput<double>& in) { fill(in, kept_[static_cast<std::size_t>(in.layout.loss)]); }
  bool keeps_everything(LossKind loss) const { return !kept_[static_cast<std::size_t>(loss)].empty(); }

  /// The recipe with the stack's own loss.
  void plain_loss(const StepInput<double>& in) { fill(in, plain_); }

  /// memory_use's total of the recipe with a sharding, nothing offloaded, to the last bit.
  double fullest(std::size_t sharding, double reserve) const { return total(sharding, pass_, reserve).bytes; }
  double fullest_kept(std::size_t sharding, LossKind loss, double reserve) const {
    return total(sharding, kept_[static_cast<std::size_t>(loss)], reserve).bytes;
  }
  double fullest_plain(std::size_t sharding, double reserve) const { return total(sharding, plain_, reserve).bytes; }
  /// No more than a layout with this sharding and recipe takes that offloads no more than this.
  double least(std::size_t sharding, std::uint8_t offload, double reserve) const;
  /// Whether the fullest stage has room for activations, whatever becomes of the rest.
  bool activations_fit(std::size_t sharding, double capacity, double reserve) const;
  /// By stage, memory_of_state of a sharding.
  std::span<const MemoryUse<double>> states(std::size_t sharding) const {
    return std::span(uses_).subspan(sharding * stages_, stages_);
  }
  /// Of a sharding that gathers weights.
  const GatherTimes& gathers(std::size_t sharding) const { return gathers_[sharding]; }
  /// By stage, seconds, no later than those of any layout with this sharding.
  std::span<const double> ends(std::size_t sharding) const {
    return std::span(ends_).subspan(sharding * stages_, stages_);
  }

 private:
  struct Fullest {
    std::size_t stage = 0;
    double bytes = -1;
  };
  StageBytes with_state(std::size_t sharding, std::size_t stage, const StageBytes& pass) const;
  void fill(const StepInput<double>& in, std::vector<StageBytes>& out);
  Fullest total(std::size_t sharding, const std::vector<StageBytes>& pass, double reserve) const;

  std::size_t stages_ = 0;
  std::vector<StageBytes> state_;        ///< by sharding, then stage
  std::vector<MemoryUse<double>> uses_;  ///< the same
  std::vector<double> ends_;             ///< the same
  std::vector<GatherTimes> gathers_;     ///< by sharding
  std::vector<StageBytes> pass_;         ///< by stage
  std::vector<StageBytes> plain_;
  std::array<std::vector<StageBytes>, kLossCount> kept_;  ///< by loss
};

}  // namespace scalecalc
