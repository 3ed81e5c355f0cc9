// Shows a reinforcement-learning step part by part: rollouts, scoring, training, weights, the run.
#include "rl/rl_output.h"

#include <fmt/format.h>

#include <cmath>

#include "base/scalar.h"
#include "base/units.h"
#include "jobs/job_output.h"
#include "report/brief_blocks.h"
#include "report/plot_bars.h"
#include "serve/serve_output.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

std::string name_of_placement(RlPlacement placement) {
  return std::string(kRlPlacementNames[static_cast<std::size_t>(placement)]);
}

double part_s(const RlPlan& plan, std::string_view key) {
  for (const JobPart& part : plan.parts) {
    if (part.key == key) return value_of(part.time);
  }
  return 0;
}

class RlOutput {
 public:
  RlOutput(const RlAnswer& answer, bool explain) : a_(answer), q_(answer.question), explain_(explain) {}

  Output run() {
    out_.command = "rl";
    out_.title =
        fmt::format("{} of {} on {} x {}: {} prompts x {} rollouts, prompts of {}, responses of {} tokens",
                    q_.algorithm == RlAlgorithm::kPpo ? "PPO" : "GRPO", a_.model, group_thousands(q_.train.chips),
                    a_.hardware_title, group_thousands(q_.prompts), q_.rollouts,
                    group_thousands(std::llround(a_.tokens.prompt)), group_thousands(std::llround(a_.tokens.response)));
    out_.nothing_fits = a_.plans.empty();
    query();
    if (a_.plans.empty()) {
      out_.summary.push_back({"nothing fits", Role::kBad});
      for (const JobShortage& s : a_.shortages) out_.summary.push_back({shortage_text(s), Role::kBad});
    } else {
      summary();
    }
    plans();
    if (!a_.plans.empty()) best(a_.plans.front());
    if (!a_.plans.empty()) alone(a_.plans.front());
    if (a_.plans.empty()) out_.blocks.push_back(shortage_block(a_.shortages));
    search();
    out_.assumptions = a_.assumptions;
    out_.deciding = deciding_of_training();
    out_.deciding.insert(out_.deciding.end(), {"--weights", "--kv"});
    out_.notes = a_.notes;
    return std::move(out_);
  }

 private:
  void query() {
    const bool critic = q_.algorithm == RlAlgorithm::kPpo;
    out_.query.figures = {datum("model", q_.train.model),
                          datum("prompt_tokens", a_.tokens.prompt),
                          datum("response_tokens", a_.tokens.response),
                          datum("longest_response", a_.tokens.longest),
                          datum("reference", q_.reference.empty() ? "policy" : q_.reference),
                          datum("reward", q_.reward.empty() ? "rule" : q_.reward),
                          datum("critic", !critic             ? "none"
                                          : q_.critic.empty() ? "policy"
                                                              : q_.critic)};
  }

  void summary() {
    const RlPlan& p = a_.plans.front();
    const double step = value_of(p.step);
    const double generation = value_of(p.generator_busy);
    say(out_.summary, Role::kGood, "a step takes {}: {} generates for {} ({:.3g} %), training side {}",
        seconds_text(step),
        p.placement == RlPlacement::kSplit ? fmt::format("a pool of {} chips", p.generator_chips)
                                           : std::string("the engine"),
        seconds_text(generation), 100 * generation / step, seconds_text(value_of(p.trainer_busy)));
    if (p.placement == RlPlacement::kSplit) {
      say(out_.summary, Role::kPlain, "{} chips generate, {} train{}; {:.3g} % of the chips' time is idle",
          p.generator_chips, p.trainer_chips, p.idle_chips > 0 ? fmt::format(", {} are left over", p.idle_chips) : "",
          100 * p.idle_share.value());
    } else {
      out_.summary.push_back(
          {p.offloaded ? "engine and trainer take turns on all chips; the trainer's state waits in the host's memory"
                       : "engine and trainer take turns on all chips, the trainer's state stays on them",
           Role::kPlain});
    }
    if (p.generation.tail > 0.2) {
      say(out_.summary, Role::kWarning,
          "{:.3g} % of generation is the last tenth of the responses; the longest has {} "
          "tokens",
          100 * p.generation.tail, group_thousands(std::llround(a_.tokens.longest)));
    }
  }

  void plans() {
    Block block{.key = "plans", .title = a_.plans.empty() ? "" : "Placements"};
    for (const RlPlan& p : a_.plans) {
      const double step = value_of(p.step);
      std::vector<Figure> f{
          text_figure("placement", "placement", name_of_placement(p.placement)),
          count_figure("generator_chips", p.generator_chips, "generate"),
          count_figure("trainer_chips", p.trainer_chips, "train"),
          text_figure("generator_layout", "engine", describe(p.generation.layout), 2),
          text_figure("trainer_layout", "trainer", plan_words(*p.policy), 3),
          number_figure("step_time_s", "step", Format::kSeconds, step),
          number_figure("generation_time_s", "generation", Format::kSeconds, value_of(p.generator_busy), 1),
          number_figure("training_time_s", "training", Format::kSeconds, value_of(p.trainer_busy), 1),
          number_figure("weight_sync_time_s", "sync", Format::kSeconds, part_s(p, "weight_sync"), 2),
          number_figure("tokens_per_s", "", Format::kNumber, a_.step_tokens() / step),
          number_figure("tokens_per_s_per_chip", "tok/s/chip", Format::kNumber,
                        a_.step_tokens() / step / to_double(q_.train.chips), 1),
          number_figure("generation_share", "", Format::kFraction, value_of(p.generator_busy) / step),
          number_figure("idle_share", "idle", Format::kFraction, p.idle_share.value(), 2),
          flag_figure("state_offloaded", p.offloaded)};
      block.records.push_back({std::move(f), {}});
    }
    if (a_.plans.size() > 1) {
      out_.plots.push_back(record_bars(block, "placement", "step_time_s", "A step by the placement"));
    }
    Block best = best_block(block);
    out_.blocks.push_back(std::move(block));
    out_.blocks.push_back(std::move(best));
  }

  void best(const RlPlan& p) {
    std::vector<Figure> f;
    add_parts(f, p.parts, p.step);
    out_.plots.push_back(parts_plot(p.parts));
    const SecondsOf<Traced> step = p.step;
    const Traced tokens = Traced::leaf(a_.step_tokens(), "tokens of a step", "prompts and responses", {});
    f.push_back(figure("tokens_per_s", "tokens/s", Format::kNumber, tokens / step));
    f.push_back(figure("tokens_per_s_per_chip", "tokens/s of a chip", Format::kNumber,
                       tokens / (step * Traced::leaf(to_double(q_.train.chips), "chips", "asked", {}))));
    f.push_back(figure("generation_share", "share of generation", Format::kFraction, p.generator_busy / step));
    f.push_back(figure("training_time_s", "training side", Format::kSeconds, p.trainer_busy));
    f.push_back(figure("idle_share", "idle", Format::kFraction, p.idle_share));
    out_.blocks.push_back(
        in_full({.key = "step", .title = "A step", .is_list = false, .records = {{std::move(f), {}}}}));
    out_.blocks.push_back(brief_parts_block(p.parts, p.step));
    rollouts(p.generation);
    out_.blocks.push_back(brief_trainer_block("policy", *p.policy, a_.capacity));
    out_.blocks.push_back(in_full(trainer_block("trainer", "The trainer's plan", *p.policy, a_.capacity, explain_)));
    if (p.critic) {
      out_.blocks.push_back(in_full(trainer_block("critic", "The critic's plan", *p.critic, a_.capacity, explain_)));
    }
    if (a_.run) out_.blocks.push_back(run_block(*a_.run, to_double(q_.steps)));
  }

  /// What runs it, and the question that leaves this plan.
  void alone(const RlPlan& p) {
    out_.software = fmt::format("{}; engine {}", software_text(p.policy->resolved->software, q_.train),
                                a_.engine->systems.front().serving.engine.title());
    NextQuestion next{.flags = {{"--placement", name_of_placement(p.placement)}}};
    if (p.placement == RlPlacement::kSplit) {
      next.flags.push_back({"--gen-chips", std::to_string(p.generator_chips)});
    } else {
      const auto state = p.offloaded ? TrainerState::kOffloaded : TrainerState::kResident;
      next.flags.push_back({"--trainer-state", std::string(kTrainerStateNames[static_cast<std::size_t>(state)])});
      next.flags.push_back({"--async", ""});
    }
    next.flags.push_back({"--gen-fix", serve_fix(*a_.engine, p.generation.layout).value});
    // A pinned pipeline pads the sequences ([RL-BATCH]); the other degrees leave it no choice.
    next.flags.push_back(fix_flag(p.policy->ranked.plan.layout, "pp"));
    out_.blocks.push_back(next_block({next_line(std::move(next))}));
  }

  void rollouts(const Generation& g) {
    std::vector<Figure> f{
        count_figure("sequences", a_.sequences(), "sequences"),
        number_figure("tokens", "tokens of a step", Format::kCount, a_.step_tokens()),
        number_figure("longest_tokens", "longest response", Format::kInteger, a_.tokens.longest),
        number_figure("longest_time_s", "from first to last token of it", Format::kSeconds, g.longest_s),
        number_figure("tail_share", g.tail > 0 ? "last tenth of the responses" : "", Format::kFraction, g.tail),
        number_figure("mean_batch", "sequences of a replica's step", Format::kNumber, g.mean_batch),
        explain_ ? figure("decode_step_s", "a step of so many", Format::kSeconds,
                          explain_decode(a_.engine->systems.front().serving, g), "at the mean context")
                 : number_figure("decode_step_s", "a step of so many", Format::kSeconds, g.decode_s),
        count_figure("evictions", g.evictions, g.evictions > 0 ? "evictions of a replica" : ""),
        number_figure("memory_bytes.weights", "weights of a chip", Format::kBytes, g.weight_bytes),
        number_figure("memory_bytes.kv", "KV cache of a chip", Format::kBytes, g.kv_bytes),
        number_figure("memory_bytes.runtime", "runtime of a chip", Format::kBytes, g.fixed_bytes),
        number_figure("memory_bytes.capacity", "", Format::kBytes, a_.capacity)};
    out_.blocks.push_back({.key = "rollouts",
                           .title = "Generation",
                           .is_list = false,
                           .records = {{std::move(f), {}}},
                           .brief_keys = {"sequences", "longest_", "tail_share", "mean_batch"}});
  }

  void search() {
    out_.blocks.push_back({.key = "search",
                           .is_list = false,
                           .records = {{{count_figure("splits", a_.splits), count_figure("left_out", a_.left_out),
                                         count_figure("simulated", a_.evaluated)},
                                        {}}}});
  }

  const RlAnswer& a_;
  const RlQuestion& q_;
  bool explain_;
  Output out_;
};

}  // namespace

Output rl_output(const RlAnswer& answer, bool explain) { return RlOutput(answer, explain).run(); }

}  // namespace scalecalc
