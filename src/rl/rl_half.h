// Training side of an RL step on some chips: scoring passes and updates, with what they need on each chip.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "rl/rl.h"

namespace scalecalc {

struct TrainingHalf {
  std::shared_ptr<const TrainedPlan> policy{}, critic{};
  std::optional<ServeLayout> reward_layout{};
  std::vector<JobPart> parts{};
  SecondsOf<Traced> time{};
  double state_bytes = 0;  ///< of a chip, between steps
  double kept_bytes = 0;   ///< of these, without gradients: what must come back if it goes
  double host_bytes = 0;   ///< of a chip's part of the host: what plans offload, frozen weights
};

class RlTrainers {
 public:
  /// Keeps references. `question.train` has its sequence and batch.
  RlTrainers(const RlQuestion& question, const RolloutTokens& tokens, const Catalog& catalog);

  /// The training side on so many chips with `taken` bytes of each somebody else's; nothing if it does not fit.
  std::optional<TrainingHalf> on(std::int64_t chips, double taken);
  /// No training side on so many chips is faster.
  double bound(std::int64_t chips) const;
  const JobTrainer& policy() const { return policy_; }
  std::optional<JobShortage> shortage() const;
  const std::vector<Assumption>& assumptions() const { return assumptions_; }
  const ServeAnswer* reward() const { return reward_ ? &*reward_ : nullptr; }

 private:
  void add_passes(TrainingHalf& half) const;
  bool add_reward(TrainingHalf& half, std::int64_t chips) const;
  void add_updates(TrainingHalf& half) const;
  bool share_memory(TrainingHalf& half) const;
  bool frozen_weights_fit(const TrainingHalf& half) const;
  JobPart swap_in(TrainingHalf& half, std::string key, std::string label, double bytes) const;

  const RlQuestion& q_;
  const RolloutTokens& tokens_;
  JobTrainer policy_;
  std::optional<JobTrainer> critic_;
  std::optional<ServeAnswer> reward_;
  std::vector<Assumption> assumptions_;
};

}  // namespace scalecalc
