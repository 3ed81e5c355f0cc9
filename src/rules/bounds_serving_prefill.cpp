// Reading prompts, and what shortens either phase: scaling book, chapter 7 "Designing an Effective Inference Engine",
// "Prefix caching" and Appendix D, chapter 8 "What about prefill?".
#include "base/scalar.h"
#include "rules/bounds_serving.h"

namespace scalecalc {
namespace {

void chunk_rule(const ServingInputs& in, BoundList& list) {
  if (!in.batch) return;
  list.add(BoundGroup::kServingTricks,
           {"free_chunk_tokens", "floor(B_crit) - B", "tokens",
            "so many tokens of a prompt ride free in a decode step, which reads the weights anyway",
            "follows from book ch. 7, general form of the step"},
           max(Traced(0.0), floor(in.critical_batch()) - *in.batch));
}

/// 1 + a + a^2 + ... + a^g: the tokens kept before the first rejection, and the one the large model adds.
Traced expected_tokens(const Traced& accept, std::int64_t drafted) {
  Traced sum(1.0);
  for (std::int64_t i = 0; i < drafted; ++i) sum = Traced(1.0) + accept * sum;
  return sum;
}

/// Time of a draft step in steps of the large model. Both read their weights and little else.
Traced draft_cost(const ServingInputs& in, const BoundSpeculation& s) {
  if (s.cost) return kReader.input(*s.cost, "draft cost", "--speculative");
  return kReader.input(s.draft_parameters.value_or(0), "draft parameters", "--speculative") / in.base().parameters;
}

void speculation_rules(const ServingInputs& in, BoundList& list) {
  if (!in.job().speculation) return;
  constexpr BoundGroup kGroup = BoundGroup::kServingTricks;
  const BoundSpeculation& s = *in.job().speculation;
  const Traced accept = kReader.input(s.accept, "a", "--speculative");
  const Traced drafted = kReader.input(static_cast<double>(s.drafted), "g", "--speculative");
  const Traced tokens = list.add(kGroup,
                                 {"speculative_tokens_per_step", "(1 - a^(g+1)) / (1 - a)", "tokens",
                                  "expected of one step of the large model", "arXiv:2211.17192, equation 1"},
                                 expected_tokens(accept, s.drafted));
  const Traced most = in.critical_batch() / (drafted + Traced(1.0));
  std::optional<bool> holds;
  if (in.batch) holds = in.batch->value() < most.value();
  if (s.cost || s.draft_parameters) {
    list.add(kGroup,
             {"speculative_speedup", "tokens per step / (1 + g x draft cost)", "",
              "of a step that stays bandwidth-bound: see the limit below", "arXiv:2211.17192, theorem 3.8"},
             tokens / (Traced(1.0) + drafted * draft_cost(in, s)), holds);
  } else {
    list.leave_out("the speed-up of speculation", "cost= or draft= in --speculative");
  }
  list.add(kGroup,
           {"speculative_batch_limit", "B_crit / (g + 1)", "sequences",
            "with fewer sequences checking the drafted tokens costs no time", "book ch. 7, Appendix D"},
           most, holds);
}

}  // namespace

void prefill_rules(const ServingInputs& in, BoundList& list) {
  constexpr BoundGroup kGroup = BoundGroup::kPrefill;
  std::optional<bool> holds;
  const Traced critical = in.critical_batch();
  if (in.prompt) holds = in.prompt->value() > critical.value();
  list.add(kGroup,
           {"critical_prompt", "as critical_batch", "tokens", "a longer prompt is compute-bound in the matmuls",
            "book ch. 7"},
           critical, holds);
  if (in.prefill_time) {
    list.add(kGroup,
             {"prefill_time", "max(2 P_act T / (n C MFU), P b_w / (n W_hbm))", "", "reading one prompt",
              "book ch. 7; ch. 8, What about prefill?"},
             *in.prefill_time);
  } else {
    list.leave_out("prefill", "--prompt");
  }
  if (const auto left = in.prompt_left()) {
    list.add(kGroup,
             {"prefill_compute_left", "(prompt - cached) / prompt", "", "share of the prompt not in the prefix cache",
              "book ch. 7, Prefix caching"},
             *left);
  }
}

void serving_trick_rules(const ServingInputs& in, BoundList& list) {
  chunk_rule(in, list);
  speculation_rules(in, list);
}

}  // namespace scalecalc
