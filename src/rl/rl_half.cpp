#include "rl/rl_half.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "jobs/forward_pass.h"
#include "jobs/job_links.h"
#include "serve/serve_resolve.h"

namespace scalecalc {
namespace {

constexpr std::string_view kTrainSource = "the plan that `scalecalc train` ranks first for these sequences";
constexpr std::string_view kSwapSource = "frozen weights wait in the host's memory (docs/model.md [RL-STEP])";

TrainQuestion critic_question(const RlQuestion& q) {
  TrainQuestion out = q.train;
  if (!q.critic.empty()) out.model = q.critic;
  // Pins and --set model. are of the policy.
  out.fix = {};
  out.max = {};
  if (!q.critic.empty()) std::erase_if(out.set, [](const std::string& set) { return set.starts_with("model."); });
  return out;
}

ServeQuestion reward_question(const RlQuestion& q) {
  ServeQuestion out = q.engine;
  out.model = q.reward;
  out.assume.clear();
  out.weights.reset();
  out.kv.reset();
  out.fix = {};
  out.max = {};
  std::erase_if(out.set, [](const std::string& set) { return set.starts_with("model."); });
  return out;
}

Traced times(std::int64_t count, std::string_view name) {
  return Traced::leaf(static_cast<double>(count), name, "asked", {});
}

}  // namespace

RlTrainers::RlTrainers(const RlQuestion& question, const RolloutTokens& tokens, const Catalog& catalog)
    : q_(question), tokens_(tokens), policy_(question.train, catalog) {
  assumptions_ = policy_.job().assumptions;
  if (q_.algorithm == RlAlgorithm::kPpo) critic_.emplace(critic_question(q_), catalog);
  if (!q_.reward.empty()) reward_ = resolve_serving(reward_question(q_), catalog);
}

double RlTrainers::bound(std::int64_t chips) const {
  const auto passes = static_cast<double>(q_.updates * q_.epochs);
  return passes * (policy_.bound(chips) + (critic_ ? critic_->bound(chips) : 0));
}

std::optional<JobShortage> RlTrainers::shortage() const {
  for (const JobTrainer* trainer : {&policy_, critic_ ? &*critic_ : nullptr}) {
    if (trainer == nullptr || !trainer->nearest_miss()) continue;
    return JobShortage{trainer == &policy_ ? "training" : "critic", trainer->nearest_miss()->memory.total().value(),
                       trainer->job().hw.hbm_capacity.value(), "the nearest layout"};
  }
  return std::nullopt;
}

/// Weights of a frozen model of the policy's layout come from the host for their pass.
JobPart RlTrainers::swap_in(TrainingHalf& half, std::string key, std::string label, double bytes) const {
  SecondsOf<Traced> time(Traced(0.0));
  half.host_bytes += bytes;
  if (const auto link = host_link(half.policy->resolved->hw)) {
    time = named(searched_bytes(bytes, "weights of a chip", kTrainSource) / *link, label, kSwapSource);
  }
  return {std::move(key), std::move(label), time};
}

void RlTrainers::add_passes(TrainingHalf& half) const {
  const TrainedPlan& p = *half.policy;
  const SecondsOf<Traced> pass =
      searched_seconds(p.forward_s, "forward pass over an update's tokens", "phases of the policy's plan, forward") *
      times(q_.updates, "updates");
  if (!q_.engine_logprobs) {
    half.parts.push_back({"old_logprobs", "log-probabilities",
                          named(pass, "log-probabilities", "the policy's own before the update: HybridFlow fig. 1")});
  }
  if (q_.reference != "none") {
    half.parts.push_back({"reference", "reference pass",
                          named(pass, "reference pass", "the first weights in the policy's layout: arXiv:2402.03300")});
    half.parts.push_back(
        swap_in(half, "reference_weights", "reference weights in", p.ranked.plan.memory.weights.value()));
  }
  if (half.critic) {
    const SecondsOf<Traced> values =
        searched_seconds(half.critic->forward_s, "critic's forward pass over an update's tokens",
                         "phases of the critic's plan, forward") *
        times(q_.updates, "updates");
    half.parts.push_back({"values", "critic's values", named(values, "critic's values", "arXiv:2203.02155")});
  }
}

/// Its weights wait in the host's memory too, or beside the trainer's where there is no link to it.
bool RlTrainers::add_reward(TrainingHalf& half, std::int64_t chips) const {
  if (!reward_) return true;
  const ServeSystem& system = reward_->systems.front();
  const ServeBasis<double> basis(Reader<double>{}, system.serving);
  const double room = half.policy->resolved->hw.hbm_capacity.value() - half.state_bytes;
  const ForwardLoad load{.sequences = static_cast<double>(q_.prompts * q_.rollouts), .tokens = tokens_.packed()};
  const std::vector<ForwardPass> passes = forward_passes(basis, chips, load, room);
  if (passes.empty()) return false;
  const ForwardPass& pass = passes.front();
  half.reward_layout = pass.layout;
  half.parts.push_back({"reward", "reward pass",
                        searched_seconds(pass.seconds, "reward pass", "prefill of all responses, best layout")});
  half.parts.push_back(swap_in(half, "reward_weights", "reward weights in", pass.weight_bytes));
  return true;
}

/// In the host's memory, or for chips without a link to one beside the trainers in their own.
bool RlTrainers::frozen_weights_fit(const TrainingHalf& half) const {
  const HardwareSpec& hw = half.policy->resolved->hw;
  if (host_link(hw)) return half.host_bytes <= hw.host_memory().value();
  const double fullest =
      std::max(half.policy->total_bytes(), half.critic ? half.critic->total_bytes() : 0) + half.host_bytes;
  return fullest <= hw.hbm_capacity.value();
}

void RlTrainers::add_updates(TrainingHalf& half) const {
  const Traced count = times(q_.updates, "updates") * times(q_.epochs, "epochs");
  const auto update = [&](const TrainedPlan& plan, const char* key, const char* label) {
    half.parts.push_back({key, label,
                          named(searched_seconds(plan.step_s, fmt::format("{}, one step", label), kTrainSource) * count,
                                label, "updates x epochs x step")});
  };
  update(*half.policy, "policy_update", "policy update");
  if (half.critic) update(*half.critic, "critic_update", "critic update");
}

/// Policy and critic train in turn; where both do not fit, each goes to the host while the other works.
bool RlTrainers::share_memory(TrainingHalf& half) const {
  const TrainedPlan& p = *half.policy;
  half.state_bytes = p.state_bytes();
  half.kept_bytes = p.kept_bytes();
  half.host_bytes = p.ranked.plan.memory.host.value();
  if (!half.critic) return true;
  const TrainedPlan& c = *half.critic;
  half.state_bytes += c.state_bytes();
  half.kept_bytes += c.kept_bytes();
  half.host_bytes += c.ranked.plan.memory.host.value();
  const double capacity = p.resolved->hw.hbm_capacity.value();
  if (p.total_bytes() + c.state_bytes() <= capacity && c.total_bytes() + p.state_bytes() <= capacity) return true;
  const auto link = host_link(p.resolved->hw);
  if (!link) return false;
  half.host_bytes += std::max(p.kept_bytes(), c.kept_bytes());
  const BytesOf<Traced> both = searched_bytes(p.kept_bytes(), "state of the policy", kTrainSource) +
                               searched_bytes(c.kept_bytes(), "state of the critic", kTrainSource);
  half.parts.push_back({"critic_swap", "policy and critic swapped",
                        named(both * Traced(2.0) / *link, "policy and critic swapped", "out and in, once a step")});
  half.state_bytes = std::max(p.state_bytes(), c.state_bytes());
  return true;
}

std::optional<TrainingHalf> RlTrainers::on(std::int64_t chips, double taken) {
  TrainingHalf out{.policy = policy_.on(chips, taken)};
  if (!out.policy) return std::nullopt;
  if (critic_) {
    out.critic = critic_->on(chips, taken);
    if (!out.critic) return std::nullopt;
  }
  if (!share_memory(out)) return std::nullopt;
  add_passes(out);
  if (!add_reward(out, chips) || !frozen_weights_fit(out)) return std::nullopt;
  add_updates(out);
  out.time = named(sum_of_parts(out.parts), "training side", "its parts, one after another");
  return out;
}

}  // namespace scalecalc
