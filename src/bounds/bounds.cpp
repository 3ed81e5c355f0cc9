// Evaluates the rules of thumb of `scalecalc bounds` and leaves out those whose inputs are missing.
#include "bounds/bounds.h"

#include <algorithm>
#include <array>
#include <set>

#include <fmt/format.h>

#include "bounds/bound_inputs.h"
#include "model/images.h"

namespace scalecalc {
namespace {

std::optional<double> plain(const std::optional<Traced>& value) {
  if (!value) return std::nullopt;
  return value->value();
}

BoundsAsked asked(const BoundInputs& in) {
  const auto sized = [&](const Traced& count) { return in.sized() ? std::optional(count.value()) : std::nullopt; };
  return {.parameters = sized(in.parameters),
          .active_parameters = sized(in.active_parameters),
          .chips = plain(in.chips),
          .batch_tokens = plain(in.batch),
          .seq = plain(in.seq),
          .tokens = plain(in.tokens),
          .slices = in.slices()};
}

/// Whether a figure is made from another.
bool rests_on(const TracePtr& node, const TraceNode* input, std::set<const TraceNode*>& seen) {
  if (node.get() == input) return true;
  if (!seen.insert(node.get()).second) return false;
  return std::any_of(node->args.begin(), node->args.end(),
                     [&](const TracePtr& arg) { return rests_on(arg, input, seen); });
}

/// Of no model only the rules stay that hold for every one.
void leave_out_resting_on(const Traced& parameters, BoundsAnswer& answer) {
  std::erase_if(answer.bounds, [&](const Bound& bound) {
    std::set<const TraceNode*> seen;
    return rests_on(bound.value.node(), parameters.node().get(), seen);
  });
}

}  // namespace

std::string_view title_of(BoundGroup group) {
  constexpr std::array<std::string_view, 15> kTitles{"Machine",
                                                     "Model",
                                                     "Data parallelism",
                                                     "Tensor parallelism",
                                                     "FSDP and tensor parallelism together",
                                                     "Expert parallelism",
                                                     "Pipeline parallelism and degrees",
                                                     "Several slices",
                                                     "Training memory",
                                                     "Training run",
                                                     "Generation",
                                                     "Prefill",
                                                     "Serving memory",
                                                     "Serving on several chips",
                                                     "Serving tricks"};
  return kTitles[static_cast<std::size_t>(group)];
}

BoundsAnswer bounds(const BoundsQuestion& question, const Stop& stop) {
  BoundsAnswer answer;
  BoundList list(answer);
  const BoundInputs in(question, list);
  answer.asked = asked(in);
  if (question.scope != BoundScope::kServing) training_bounds(in, list);
  if (question.scope != BoundScope::kTraining) {
    if (question.model && !question.model->attention.causal) {
      list.leave_out("rules of serving", fmt::format("a model that generates: {} is an encoder", question.model->name));
    } else if (question.model && encoder_of(*question.model) != nullptr) {
      list.leave_out("rules of serving",
                     fmt::format("a model that reads its prompts itself: {} has an encoder, whose output each request "
                                 "keeps (serve counts it)",
                                 question.model->name));
    } else {
      serving_bounds(in, list, stop);
    }
  }
  if (!in.sized()) leave_out_resting_on(in.parameters, answer);
  std::stable_sort(answer.bounds.begin(), answer.bounds.end(),
                   [](const Bound& a, const Bound& b) { return a.group < b.group; });
  return answer;
}

}  // namespace scalecalc
