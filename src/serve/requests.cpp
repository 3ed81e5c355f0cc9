// Says what one request means for a model: a prompt that is continued, or a text that passes once.
#include "serve/requests.h"

#include <algorithm>
#include <cmath>

#include "model/images.h"

namespace scalecalc {

double decoder_prompt(const ServeAnswer& answer) {
  const TowerSpec* encoder = encoder_of(*answer.model);
  return encoder == nullptr ? answer.question.prompt : encoder->positions / encoder->per_token;
}

double decode_context(const ServeAnswer& answer) {
  const ServeQuestion& q = answer.question;
  if (!q.context && q.mean_context && continues_prompts(answer)) return *q.mean_context;
  return q.context.value_or(decoder_prompt(answer) + q.generate / 2);
}

bool continues_prompts(const ServeAnswer& answer) { return !one_pass(answer) && encoder_of(*answer.model) == nullptr; }

double longest_request(const ServeAnswer& answer) {
  const double answered = one_pass(answer) ? 0 : answer.question.generate;
  return std::max(answer.question.prompt, decoder_prompt(answer) + answered);
}

double texts_of_a_pass(const ServeAnswer& answer, const ServingSystem& system, const ServeLayout& layout,
                       double batch) {
  const double each = std::max(1.0, std::floor(system.rank_chunk(layout) / decoder_prompt(answer)));
  return std::min(batch, each * serve_lanes(layout));
}

ServeStep pass_of(const ServeAnswer& answer, double texts) {
  return {
      .prefill_sequences = texts, .prefill_tokens = decoder_prompt(answer), .all_logits = !answer.model->head_outputs};
}

}  // namespace scalecalc
