// `scalecalc rl`: reinforcement learning from rollouts, as one budget. A step generates responses to its prompts with a
// serving engine, scores them with forward passes of frozen models, trains the policy (and under PPO a critic) on them,
// and sends the new weights to the engine. GRPO: Shao et al. 2024, arXiv:2402.03300, section 4.1; PPO with reference,
// reward and critic models: Ouyang et al. 2022, arXiv:2203.02155, and Sheng et al. 2024 (HybridFlow), arXiv:2409.19256,
// figure 1, whose colocated and split placements these are.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/catalog.h"
#include "jobs/job_part.h"
#include "rl/rollouts.h"
#include "serve/serve_question.h"
#include "spec/load_stack.h"
#include "train/question.h"

namespace scalecalc {

enum class RlAlgorithm : std::uint8_t { kGrpo, kPpo };
inline constexpr std::array<std::string_view, 2> kRlAlgorithmNames{"grpo", "ppo"};

/// Engine and trainer on the same chips in turn, or on pools of their own.
enum class RlPlacement : std::uint8_t { kAuto, kColocated, kSplit };
inline constexpr std::array<std::string_view, 3> kRlPlacementNames{"auto", "colocated", "split"};

/// Where weights and optimizer of the trainer are while the engine generates on the same chips.
enum class TrainerState : std::uint8_t { kAuto, kResident, kOffloaded };
inline constexpr std::array<std::string_view, 3> kTrainerStateNames{"auto", "resident", "offloaded"};

struct RlQuestion {
  TrainQuestion train;   ///< model, hardware and chips of the job; sequence and batch follow from the rollouts
  ServeQuestion engine;  ///< of the generator: formats, engine, pins
  RequestMix mix;        ///< lengths of prompts and responses
  std::int64_t prompts = 512;
  std::int64_t rollouts = 16;
  std::int64_t updates = 1;  ///< optimizer steps that the responses of a step are divided over
  std::int64_t epochs = 1;   ///< passes of the trainer over them
  std::int64_t steps = 1000;
  std::int64_t depth = 0;  ///< steps that generation runs ahead
  RlAlgorithm algorithm = RlAlgorithm::kGrpo;
  RlPlacement placement = RlPlacement::kAuto;
  TrainerState state = TrainerState::kAuto;
  std::string reference;             ///< empty: the policy's first weights; "none": no such pass
  std::string reward;                ///< a model; empty: a rule that costs nothing
  std::string critic;                ///< PPO; empty: a model as large as the policy
  bool engine_logprobs = false;      ///< the engine's own log-probabilities are trained on; no pass for them
  std::optional<double> prefix_hit;  ///< absent: the rollouts of a prompt share it
  std::optional<std::int64_t> pack;  ///< tokens of a microbatch, which holds whole responses; absent: of the longest
  std::optional<std::int64_t> generator_chips;  ///< of a split; absent: searched
  std::optional<double> engine_memory;          ///< share of a chip's memory that the engine takes; absent: its default
  std::optional<std::int64_t> engine_sequences;  ///< that a replica runs at once at most; absent: the engine's default
  double oversample = 1;  ///< responses generated for one that is trained on (dynamic sampling: arXiv:2503.14476)
};

/// One way to place the job.
struct RlPlan {
  RlPlacement placement = RlPlacement::kColocated;
  bool offloaded = false;  ///< the trainer's state goes to the host while the engine generates
  std::int64_t generator_chips = 0, trainer_chips = 0, idle_chips = 0;
  Generation generation{};
  std::shared_ptr<const TrainedPlan> policy{}, critic{};
  std::optional<ServeLayout> reward_layout{};
  std::vector<JobPart> parts{};  ///< sum to the step
  SecondsOf<Traced> step{};
  SecondsOf<Traced> generator_busy{}, trainer_busy{};  ///< of a step, of either half
  Traced idle_share{};                                 ///< of the chips' time
};

struct RlAnswer {
  RlQuestion question;
  std::shared_ptr<const ServeAnswer> engine;  ///< resolved: model, machine, formats
  std::string model, hardware_title;
  RolloutTokens tokens;
  std::vector<RlPlan> plans;  ///< the best of each placement, fastest first
  std::vector<JobShortage> shortages;
  std::optional<JobRun> run;  ///< of all steps
  double capacity = 0;        ///< bytes of a chip
  std::size_t splits = 0, evaluated = 0, left_out = 0;
  std::vector<Assumption> assumptions;
  std::vector<std::string> notes;

  std::int64_t sequences() const { return question.prompts * question.rollouts; }
  double step_tokens() const { return static_cast<double>(sequences()) * tokens.total(); }
};

/// UserError for a wrong question. Nothing that fits is an answer: `plans` is empty, `shortages` say what is short.
/// Asked to end, it has the best plans found until then.
RlAnswer rl_answer(const RlQuestion& question, const Catalog& catalog, const Stop& stop = {});

/// Training side of an RL step on some chips: scoring passes and updates, with what they need on each chip.
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
  RlTrainers(const RlQuestion& question, const RolloutTokens& tokens, const Catalog& catalog, const Stop& stop = {});

  /// The training side on so many chips with `taken` bytes of each somebody else's; nothing if it does not fit.
  std::optional<TrainingHalf> on(std::int64_t chips, double taken);
  /// No training side on so many chips is faster.
  double bound(std::int64_t chips) const;
  const JobTrainer& policy() const { return policy_; }
  std::optional<JobShortage> shortage() const;
  const std::vector<Assumption>& assumptions() const { return assumptions_; }
  const ServeAnswer* reward() const { return reward_ ? &*reward_ : nullptr; }
  /// What the framework of the trainer's stack does between generation and training.
  const RolloutRules& rules() const { return rules_; }
  /// At which a chip's state goes to the host and back; nothing where no link to it is published.
  std::optional<BytesPerSecondOf<Traced>> host_copies() const;

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
  RolloutRules rules_;
};

}  // namespace scalecalc
