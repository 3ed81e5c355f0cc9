// Which tensor degrees a model's layers divide by.
#pragma once

#include <string>
#include <vector>

#include "spec/model_spec.h"

namespace scalecalc {

/// Why heads, groups or channels of the model's mixers do not divide over `tp` ranks, a sentence each; empty if they
/// do.
std::vector<std::string> undivided_heads(const ModelSpec& model, std::int64_t tp);

/// The same for the widths of dense and shared MLPs and d_model.
std::vector<std::string> undivided_widths(const ModelSpec& model, std::int64_t tp);

/// Whether every layer's mixer is full, sliding or chunked attention, whose heads can be dealt to ranks (Ulysses).
bool all_plain_attention(const ModelSpec& model);

}  // namespace scalecalc
