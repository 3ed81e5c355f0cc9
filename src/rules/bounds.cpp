#include "rules/bounds.h"

#include <algorithm>
#include <array>

#include "rules/bound_inputs.h"

namespace scalecalc {
namespace {

std::optional<double> plain(const std::optional<Traced>& value) {
  if (!value) return std::nullopt;
  return value->value();
}

BoundsAsked asked(const BoundInputs& in) {
  return {.parameters = in.parameters.value(),
          .active_parameters = in.active_parameters.value(),
          .chips = plain(in.chips),
          .batch_tokens = plain(in.batch),
          .seq = plain(in.seq),
          .tokens = plain(in.tokens),
          .slices = in.slices()};
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
  if (question.scope != BoundScope::kTraining) serving_bounds(in, list, stop);
  std::stable_sort(answer.bounds.begin(), answer.bounds.end(),
                   [](const Bound& a, const Bound& b) { return a.group < b.group; });
  return answer;
}

}  // namespace scalecalc
