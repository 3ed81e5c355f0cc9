// What a request is to a model: to most a prompt that is continued; to an encoder, or a model without a head over its
// vocabulary, a text that passes once; beside an encoder, positions of it and the tokens that the decoder begins with.
#pragma once

#include "serve/serve_question.h"
#include "serve/serving_cost.h"

namespace scalecalc {

/// Without a head over the vocabulary, or with tokens that see those behind them, nothing is generated.
inline bool generates(const ModelSpec& model) { return model.attention.causal && !model.head_outputs; }

/// Nothing is decoded: a request is one pass over its text ([SERVE-ENCODE]).
inline bool one_pass(const ServeAnswer& answer) { return !generates(*answer.model); }

/// Tokens before the first that is generated, in the layers that generate.
double decoder_prompt(const ServeAnswer& answer);
/// Tokens in the cache of these layers while they decode.
double decode_context(const ServeAnswer& answer);

/// Whether a prompt is continued by the model that reads it.
bool continues_prompts(const ServeAnswer& answer);

/// Tokens of a request in the stack that sees most of them.
double longest_request(const ServeAnswer& answer);

/// [SERVE-ENCODE] Of `batch` texts in flight in a replica, those that pass at once, and the step that they pass in.
double texts_of_a_pass(const ServeAnswer& answer, const ServingSystem& system, const ServeLayout& layout, double batch);
ServeStep pass_of(const ServeAnswer& answer, double texts);

}  // namespace scalecalc
