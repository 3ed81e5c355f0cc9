#include "serve/requests.h"

#include <algorithm>

namespace scalecalc {

const TowerSpec* encoder_of(const ModelSpec& model) {
  const bool across =
      std::any_of(model.kinds.begin(), model.kinds.end(), [](const LayerKind& k) { return attends_across(k.mixer); });
  return across && !model.towers.empty() && model.towers.front().counted ? &model.towers.front() : nullptr;
}

double decoder_prompt(const ServeAnswer& answer) {
  const TowerSpec* encoder = encoder_of(*answer.model);
  return encoder == nullptr ? answer.question.prompt : encoder->positions / encoder->per_token;
}

double decode_context(const ServeAnswer& answer) {
  return answer.question.context.value_or(decoder_prompt(answer) + answer.question.generate / 2);
}

bool continues_prompts(const ServeAnswer& answer) { return !one_pass(answer) && encoder_of(*answer.model) == nullptr; }

}  // namespace scalecalc
