// What a microbatch of the trainer holds: whole responses packed into sequences of so many tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "model/lengths.h"
#include "serve/request_mix.h"

namespace scalecalc {

/// Prompt and response together, of a step's sequences.
Lengths whole_lengths(const RequestMix& mix, std::int64_t sequences);

struct PackedResponses {
  std::int64_t sequences = 0;  ///< that hold them all
  double tokens = 0;           ///< of one, padding left out
};

/// Longest first, each into the fullest sequence that still has room for it, which takes at most 11/9 of the fewest
/// sequences and one more (Johnson 1973, "Near-optimal bin packing algorithms"). No length may exceed `size`.
PackedResponses pack_responses(std::vector<std::int64_t> lengths, std::int64_t size);

}  // namespace scalecalc
