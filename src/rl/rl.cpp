// Answers `scalecalc rl`: the time, the memory and the cost of a step of rollouts and training.
#include "rl/rl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>

#include "base/diagnostic.h"
#include "base/progress.h"
#include "base/scalar.h"
#include "base/units.h"
#include "jobs/job_part.h"
#include "model/accounting.h"
#include "network/slice.h"
#include "rl/microbatches.h"
#include "serve/requests.h"

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

RlTrainers::RlTrainers(const RlQuestion& question, const RolloutTokens& tokens, const Catalog& catalog,
                       const Stop& stop)
    : q_(question), tokens_(tokens), policy_(question.train, catalog, stop) {
  assumptions_ = policy_.job().assumptions;
  if (q_.algorithm == RlAlgorithm::kPpo) critic_.emplace(critic_question(q_), catalog, stop);
  if (!q_.reward.empty()) reward_ = resolve_serving(reward_question(q_), catalog);
  const std::string& stack = policy_.job().workload.memory.stack;
  if (!stack.empty()) rules_ = stack_spec(catalog, stack)->rollouts;
}

std::optional<BytesPerSecondOf<Traced>> RlTrainers::host_copies() const {
  const auto link = host_link(policy_.job().hw);
  if (!link || rules_.host_copy.value <= 0) return link;
  const BytesPerSecondOf<Traced> copies(
      Traced::leaf(rules_.host_copy.value, "copies to the host", rules_.host_copy.source, kByteDim - kSecondDim));
  return min(*link, copies);
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
  if (const auto rate = host_copies()) {
    const Traced copies = Traced::leaf(rules_.reference_copies, "copies", rules_.source, {});
    time = named(searched_bytes(bytes, "weights of a chip", kTrainSource) * copies / *rate, label, kSwapSource);
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
  const auto link = host_copies();
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

namespace {

/// Packed sequences are padded to a whole number of these, which tensor and context ranks divide.
constexpr std::int64_t kPacking = 128;

std::int64_t rounded_up(double tokens) {
  const auto length = static_cast<std::int64_t>(std::ceil(tokens));
  return length <= kPacking ? length : (length + kPacking - 1) / kPacking * kPacking;
}

/// No response is cut; what a sequence that is not full lacks is left out of each length in the same way.
Lengths up_to(const Lengths& lengths, std::int64_t most) {
  std::vector<LengthBin> bins;
  for (LengthBin bin : lengths.bins()) {
    if (bin.first < most && bin.last > most) {
      const double below = to_double(most - bin.first) / to_double(bin.last - bin.first + 1);
      bins.push_back({bin.first, most - 1, bin.share * below});
      bin.share *= 1 - below;
    }
    if (bin.last > most) bin.first = bin.last = most;
    bins.push_back(bin);
  }
  return Lengths(std::move(bins));
}

/// The training question that the rollouts make: a microbatch is one sequence, packed with whole responses. Stages of a
/// pipeline exchange tensors of one size, so under it sequences are padded to the size that they are packed into.
RlQuestion with_batch(RlQuestion q, const RolloutTokens& tokens) {
  const std::int64_t sequences = q.prompts * q.rollouts;
  const Lengths lengths = whole_lengths(q.mix, sequences);
  const std::int64_t size = q.pack.value_or(rounded_up(to_double(lengths.largest())));
  if (size < lengths.largest()) {
    throw UserError(fmt::format("--pack {}: prompts and responses have up to {} tokens, and none is cut", size,
                                group_thousands(lengths.largest())),
                    fmt::format("--pack {} or more", lengths.largest()));
  }
  const std::int64_t share = std::max<std::int64_t>(1, sequences / q.updates);
  std::vector<std::int64_t> responses;
  for (const ServedRequest& r : rollout_share(q.mix, sequences, share)) responses.push_back(r.prompt + r.generate);
  const PackedResponses packed = pack_responses(std::move(responses), size);
  const bool padded = q.train.fix.pp.value_or(1) > 1;
  q.train.seq = padded ? size : std::min(size, rounded_up(packed.tokens));
  q.train.pack = q.train.seq;
  q.train.documents = up_to(lengths, *q.train.seq);
  q.train.batch_tokens =
      padded ? to_double(packed.sequences * size) : to_double(sequences) * tokens.total() / to_double(q.updates);
  if (sequences < q.updates || *q.train.batch_tokens < to_double(*q.train.seq)) {
    throw UserError(fmt::format("--updates {} leaves each less than one packed sequence of {} tokens",
                                group_thousands(q.updates), group_thousands(*q.train.seq)),
                    "fewer updates, or more --prompts or --rollouts");
  }
  if (!q.train.fix.micro_batch_seqs) q.train.fix.micro_batch_seqs = 1;
  q.train.tokens = *q.train.batch_tokens * to_double(q.updates * q.epochs * q.steps);
  q.train.top = 1;
  return q;
}

class RlSearch {
 public:
  RlSearch(const RlQuestion& question, const Catalog& catalog, const Stop& stop)
      : catalog_(catalog), stop_(stop), tokens_(rollout_tokens(question.mix, question.prompts * question.rollouts)) {
    out_.question = with_batch(question, tokens_);
    out_.tokens = tokens_;
  }

  RlAnswer run() {
    out_.engine = std::make_shared<const ServeAnswer>(resolve_serving(out_.question.engine, catalog_));
    if (!continues_prompts(*out_.engine)) {
      throw UserError(fmt::format("{} continues no prompt: it has no rollouts", out_.engine->model->name),
                      "name a language model");
    }
    trainers_.emplace(q_, tokens_, catalog_, stop_);
    serving_ = out_.engine->systems.front().serving;
    if (q_.engine_memory) {
      if (serving_.engine.rule == CacheRule::kAll) {
        throw UserError(fmt::format("--gen-memory: {} takes no share of the memory", serving_.engine.name),
                        "leave it out");
      }
      serving_.engine.share = *q_.engine_memory;
    }
    if (q_.engine_sequences) serving_.engine.most_sequences = *q_.engine_sequences;
    const auto prompts = static_cast<std::int64_t>(std::llround(to_double(q_.prompts) * q_.oversample));
    load_ = {.mix = q_.mix, .prompts = prompts, .rollouts = q_.rollouts, .depth = q_.depth};
    load_.host_s = trainers_->rules().engine_step.value;
    load_.prefix_hit = q_.prefix_hit.value_or(1 - 1 / to_double(q_.rollouts));
    describe_job();
    try {
      if (q_.placement != RlPlacement::kSplit) colocated();
      if (q_.placement != RlPlacement::kColocated) split();
    } catch (const Stopped&) {  // the plans found until then are kept
    }
    std::stable_sort(out_.plans.begin(), out_.plans.end(),
                     [](const RlPlan& a, const RlPlan& b) { return a.step < b.step; });
    if (out_.plans.empty()) shortages();
    if (!out_.plans.empty()) out_.run = job_run(trainers_->policy().job(), q_.train.chips, total_time());
    return std::move(out_);
  }

 private:
  const ServeSystem& system() const { return out_.engine->systems.front(); }
  const HardwareSpec& hw() const { return *system().hw; }

  SecondsOf<Traced> total_time() const {
    return named(out_.plans.front().step * Traced::leaf(to_double(q_.steps), "steps", "asked", {}), "the whole run",
                 "steps x step");
  }

  Assumption& assume(std::string text, std::string flag, std::string source) {
    return out_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source)});
  }

  void describe_job() {
    out_.model = out_.engine->model->title;
    out_.hardware_title = hw().title;
    out_.capacity = hw().hbm_capacity.value();
    if (!q_.pack) {
      assume(fmt::format("whole responses are packed into microbatches of up to {} tokens, which hold {} of them",
                         group_thousands(rounded_up(tokens_.prompt + tokens_.longest)), group_thousands(*q_.train.seq)),
             "--pack", "the longest response's; NVIDIA-NeMo/RL: policy.sequence_packing.train_mb_tokens")
          .as("seq")
          .is(to_double(*q_.train.seq));
    }
    const RolloutRules& rules = trainers_->rules();
    const std::string& stack = trainers_->policy().job().workload.memory.stack;
    if (!rules.source.empty()) {
      assume("weights and state move between trainer, host and engine as in the framework of the trainer's stack",
             "--stack", rules.source)
          .as("handover")
          .is(stack);
    } else {
      assume("weights and state move at the rates of their links: what a framework adds is not known of this stack",
             "--stack", "the files of configs/stacks with a rollouts: block know it")
          .as("handover")
          .is("links");
    }
    if (!q_.prefix_hit) {
      assume(
          fmt::format("{:.3g} % of every prompt is found in the cache: its rollouts share it", 100 * load_.prefix_hit),
          "--prefix-hit", "vLLM, arXiv:2309.06180, section 4.4")
          .is(load_.prefix_hit);
    }
    if (q_.reference.empty()) {
      assume("a reference pass with the policy's first weights", "--reference", "arXiv:2402.03300, equation 4")
          .is("the policy");
    }
    if (q_.reward.empty()) {
      assume("rewards come from a rule that takes no time", "--reward", "arXiv:2501.12948, section 2.2.2").is("a rule");
    }
    if (q_.algorithm == RlAlgorithm::kPpo && q_.critic.empty()) {
      assume("the critic is as large as the policy", "--critic", "arXiv:2203.02155 took a smaller one")
          .is("the policy");
    }
    add_new(trainers_->assumptions());
    add_new(out_.engine->assumptions);
    if (trainers_->reward() != nullptr) add_new(trainers_->reward()->assumptions);
  }

  void add_new(const std::vector<Assumption>& found) {
    for (const Assumption& a : found) {
      const bool known = std::any_of(out_.assumptions.begin(), out_.assumptions.end(),
                                     [&](const Assumption& other) { return other.text == a.text; });
      // One price and one mean context are said once: the trainer's, and the engine's own lengths.
      if (!known && !(a.flag == "--price" && &found == &out_.engine->assumptions)) out_.assumptions.push_back(a);
    }
  }

  SecondsOf<Traced> weight_sync(const Generation& g, std::int64_t trainers, bool apart) const {
    const std::int64_t chips = apart ? g.chips + trainers : g.chips;
    if (chips == 1) return SecondsOf<Traced>(Traced(0.0));
    if (const Coefficient& refit = trainers_->rules().refit; refit.value > 0) {
      const ResolvedQuestion& job = trainers_->policy().job();
      const BytesOf<Traced> whole =
          searched_bytes(count_parameters(job.model).total * job.workload.precision.weight_bytes,
                         "the policy's weights", "parameters in the trainer's format");
      const BytesPerSecondOf<Traced> reached(Traced::leaf(refit.value, "refit", refit.source, kByteDim - kSecondDim));
      return named(whole / reached, "weights to the engine", "every chip is sent the whole model");
    }
    const BytesPerSecondOf<Traced> rate = chip_ingress(hw(), system().serving.efficiency, chips, apart);
    const BytesOf<Traced> in = searched_bytes(g.weight_bytes, "weights of an engine's chip", "layout of the engine");
    if (!apart) return named(in / rate, "weights to the engine", "each chip gathers the engine's part of them");
    const BytesOf<Traced> sent = searched_bytes(g.weight_bytes * to_double(g.layout.replica_chips()),
                                                "weights of a replica", "layout of the engine") /
                                 Traced::leaf(to_double(trainers), "chips that send", "split", {});
    return named(max(in, sent) / rate, "weights to the engine",
                 "a pipelined broadcast ends with the last byte into a chip or out of one");
  }

  /// Both halves on all chips, in turn.
  void colocated() {
    for (const bool offloaded : {false, true}) {
      if (q_.state == TrainerState::kResident && offloaded) continue;
      const bool swaps = q_.state == TrainerState::kAuto && trainers_->rules().swaps_state && host_link(hw());
      if ((q_.state == TrainerState::kOffloaded || swaps) && !offloaded) continue;
      in_turn(offloaded);
    }
  }

  void in_turn(bool offloaded) {
    const std::int64_t chips = q_.train.chips;
    // Captured graphs stay where they are when an engine sleeps.
    const double graphs = system().serving.engine.graph_bytes;
    const std::optional<TrainingHalf> half = trainers_->on(chips, graphs);
    if (!half) return;
    const auto link = trainers_->host_copies();
    if (offloaded && (!link || half->kept_bytes + half->host_bytes > hw().host_memory().value())) return;
    // An engine that gives its chips away finishes what it began.
    RolloutLoad load = load_;
    load.depth = 0;
    Generator generator(serving_, load, q_.engine.fix, q_.engine.max, offloaded ? 0 : half->state_bytes, stop_);
    const auto made = generator.best(chips, std::numeric_limits<double>::infinity());
    out_.evaluated += generator.simulated();
    if (!made) {
      remember(generator);
      return;
    }
    RlPlan plan{
        .placement = RlPlacement::kColocated, .offloaded = offloaded, .generator_chips = chips, .trainer_chips = chips};
    plan.parts.push_back({"generation", "generation", generation_time(*made, 0)});
    plan.parts.push_back({"weight_sync", "weights to the engine", weight_sync(*made, chips, false)});
    if (trainers_->rules().engine_sleeps && link) {
      plan.parts.push_back(
          {"engine_sleep", "engine's weights out and in",
           named(searched_bytes(made->weight_bytes, "weights of an engine's chip", "layout of the engine") *
                     Traced(2.0) / *link,
                 "engine's weights out and in", "to the host while the trainer works, and back")});
    }
    if (offloaded) {
      plan.parts.push_back(
          {"state_swap", "trainer state out and in",
           named(searched_bytes(half->kept_bytes, "state of a chip", "plan of the trainer") * Traced(2.0) / *link,
                 "trainer state out and in", "over the link to the host, once each way")});
    }
    plan.parts.insert(plan.parts.end(), half->parts.begin(), half->parts.end());
    const SecondsOf<Traced> step = named(sum_of_parts(plan.parts), "step", "its parts, one after another");
    finish(std::move(plan), *half, *made, step);
  }

  static SecondsOf<Traced> generation_time(const Generation& g, std::int64_t depth) {
    return searched_seconds(g.seconds, "generation",
                            depth < 2 ? "a replica's share through the engine, event by event, to the last token"
                                      : "responses over the engine's largest rate [RATE-MAX]");
  }

  /// Pools of their own: every split whose halves are built. A split is left when no layout of its halves can reach the
  /// best step known.
  void split() {
    const std::int64_t train = q_.train.chips - q_.generator_chips.value_or(0);
    const ChipSplits all = !q_.generator_chips ? chip_splits(hw(), q_.train.chips)
                                               : ChipSplits{{{*q_.generator_chips, nearest_below(hw(), train, 1)}}, 0};
    out_.splits = all.splits.size();
    out_.left_out = all.left_out;
    if (all.left_out > 0) {
      out_.notes.push_back(fmt::format("{} of {} splits were searched, evenly spaced", all.splits.size(),
                                       all.splits.size() + all.left_out));
    }
    Generator generator(serving_, load_, q_.engine.fix, q_.engine.max, 0, stop_);
    // Least bound first. A split's bound is made once from FLOPs, then from its training side's own time; only then, if
    // it is still the least, are engines simulated.
    struct Bounded {
      double bound = 0;
      ChipSplit split;
      bool trained = false;
      bool operator<(const Bounded& other) const { return bound > other.bound; }
    };
    std::priority_queue<Bounded> order;
    for (const ChipSplit& s : all.splits) {
      if (s.second < 1) continue;
      const std::optional<double> generation = generator.bound(s.first);
      if (generation) order.push({joined(*generation, trainers_->bound(s.second)), s});
    }
    const bool any = !order.empty();
    Progress splits("splits of the chips", all.splits.size());
    std::optional<RlPlan> best;
    const auto limit = [&] { return best ? value_of(best->step) : std::numeric_limits<double>::infinity(); };
    while (!order.empty() && order.top().bound < limit()) {
      Bounded least = order.top();
      order.pop();
      const std::optional<TrainingHalf> half = trainers_->on(least.split.second, 0);
      if (should_stop(stop_)) break;
      if (!half) continue;
      if (!least.trained) {
        least.bound = joined(*generator.bound(least.split.first), value_of(half->time));
        least.trained = true;
        order.push(least);
        continue;
      }
      splits.add();
      try {
        auto plan = apart(generator, least.split, *half, limit());
        if (plan && (!best || plan->step < best->step)) best = std::move(plan);
      } catch (const Stopped&) {
        break;
      }
    }
    out_.evaluated += generator.simulated();
    if (!any) remember(generator);
    if (best) out_.plans.push_back(std::move(*best));
  }

  /// Halves that overlap, or follow each other.
  double joined(double generation, double training) const {
    return q_.depth > 0 ? std::max(generation, training) : generation + training;
  }

  std::optional<RlPlan> apart(Generator& generator, const ChipSplit& s, const TrainingHalf& half, double limit) {
    const auto made = generator.best(s.first, q_.depth > 0 ? limit : limit - half.time.value().value());
    if (!made) return std::nullopt;
    RlPlan plan{.placement = RlPlacement::kSplit,
                .generator_chips = s.first,
                .trainer_chips = s.second,
                .idle_chips = q_.train.chips - s.first - s.second};
    const SecondsOf<Traced> generation = generation_time(*made, q_.depth);
    const SecondsOf<Traced> sync = weight_sync(*made, s.second, true);
    plan.parts.push_back({"generation", "generation", generation});
    plan.parts.push_back({"weight_sync", "weights to the engine", sync});
    if (q_.depth == 0) {
      plan.parts.insert(plan.parts.end(), half.parts.begin(), half.parts.end());
    } else {
      plan.parts.push_back({"waiting", "waiting for the trainer",
                            named(max(half.time, generation) - generation, "waiting for the trainer",
                                  "what the training side takes beyond generation")});
    }
    const SecondsOf<Traced> step = named(sum_of_parts(plan.parts), "step", "its parts");
    return finished(std::move(plan), half, *made, step);
  }

  void finish(RlPlan plan, const TrainingHalf& half, const Generation& made, const SecondsOf<Traced>& step) {
    RlPlan done = finished(std::move(plan), half, made, step);
    const auto other = std::find_if(out_.plans.begin(), out_.plans.end(),
                                    [&](const RlPlan& p) { return p.placement == done.placement; });
    if (other == out_.plans.end()) {
      out_.plans.push_back(std::move(done));
    } else if (done.step < other->step) {
      *other = std::move(done);
    }
  }

  RlPlan finished(RlPlan plan, const TrainingHalf& half, const Generation& made, const SecondsOf<Traced>& step) const {
    plan.generation = made;
    plan.policy = half.policy;
    plan.critic = half.critic;
    plan.reward_layout = half.reward_layout;
    plan.step = step;
    plan.generator_busy = plan.parts.front().time;
    plan.trainer_busy = half.time;
    const Traced all = Traced::leaf(to_double(q_.train.chips), "chips", "asked", {});
    if (plan.placement == RlPlacement::kColocated) {
      plan.idle_share = Traced(0.0);
      return plan;
    }
    const SecondsOf<Traced> moved = plan.parts[1].time;
    const Traced generators = Traced::leaf(to_double(plan.generator_chips), "generator chips", "split", {});
    // A plan may leave chips of its pool alone.
    const Traced trainers =
        Traced::leaf(to_double(half.policy->ranked.plan.layout.chips()), "trainer chips at work", "its plan", {});
    const SecondsOf<Traced> busy = (plan.generator_busy + moved) * generators + (plan.trainer_busy + moved) * trainers;
    plan.idle_share = named(Traced(1.0) - busy / (step * all), "idle share", "chips of one half wait for the other");
    return plan;
  }

  void remember(const Generator& generator) {
    if (!generator.shortage()) return;
    const BindingLimit& l = *generator.shortage();
    out_.shortages.push_back({"generation", l.nearest, l.asked, l.how});
  }

  void shortages() {
    if (const auto training = trainers_->shortage()) {
      out_.shortages.insert(out_.shortages.begin(), *training);
    } else if (out_.shortages.empty()) {
      out_.shortages.push_back({"placement", 0, out_.capacity, "no layout is legal on these chips"});
    }
  }

  const Catalog& catalog_;
  const Stop& stop_;
  RolloutTokens tokens_;
  ServingSystem serving_;
  RlAnswer out_;
  const RlQuestion& q_ = out_.question;
  std::optional<RlTrainers> trainers_;
  RolloutLoad load_;
};

}  // namespace

RlAnswer rl_answer(const RlQuestion& question, const Catalog& catalog, const Stop& stop) {
  return RlSearch(question, catalog, stop).run();
}

}  // namespace scalecalc
