// The groups of rules. Each adds what the inputs allow and names what they do not.
#pragma once

#include "rules/bound_inputs.h"

namespace scalecalc {

void training_bounds(const BoundInputs& in, BoundList& list);
void serving_bounds(const BoundInputs& in, BoundList& list);

// What training_bounds is made of.
void machine_bounds(const BoundInputs& in, BoundList& list);   ///< rates against each other
void torus_bounds(const BoundInputs& in, BoundList& list);     ///< data, tensor and mixed parallelism, slices (ch. 5)
void switched_bounds(const BoundInputs& in, BoundList& list);  ///< the same behind switches, experts (ch. 12)
void degree_bounds(const BoundInputs& in, BoundList& list);    ///< pipeline, and the degrees together
void memory_bounds(const BoundInputs& in, BoundList& list);
void run_bounds(const BoundInputs& in, BoundList& list);

/// The passes through one layer under the degrees given, or under `tensor_degree` where they are not.
void layer_passes(const BoundInputs& in, std::optional<std::int64_t> tensor_degree, BoundList& list);

// Shared between groups.

/// What a step's data-parallel reduction goes through when `inner` chips hold one copy of the model: on a torus the
/// array is that much smaller; behind switches a chip's own links and then the nodes that the copy spans (ch. 12,
/// reductions of an array sharded over an inner axis).
BytesPerSecondOf<Traced> reduction_rate(const BoundInputs& in, std::int64_t inner, std::int64_t axes);
/// Chips of one copy of the model: whole nodes if --nodes-spanned says how many, otherwise as the degrees say.
std::int64_t copy_chips(const BoundInputs& in);
/// "468", "73.4k": tokens in a sentence.
std::string tokens_text(double tokens);
/// mfu of the question, or the book's 40 %, which it records once.
Traced assumed_mfu(const BoundInputs& in);

}  // namespace scalecalc
