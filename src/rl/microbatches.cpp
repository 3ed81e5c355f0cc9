// Packs responses into the microbatches of the trainer, for `scalecalc rl`.
#include "rl/microbatches.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "base/scalar.h"
#include "rl/rollouts.h"

namespace scalecalc {

Lengths whole_lengths(const RequestMix& mix, std::int64_t sequences) {
  if (mix.rows.empty() && mix.prompt.is_fixed()) {
    std::vector<LengthBin> bins = mix.generate.bins();
    for (LengthBin& bin : bins) {
      bin.first += mix.prompt.largest();
      bin.last += mix.prompt.largest();
    }
    return Lengths(std::move(bins));
  }
  std::vector<std::int64_t> values;
  for (const ServedRequest& r : rollout_share(mix, sequences, sequences)) values.push_back(r.prompt + r.generate);
  return Lengths::of(std::move(values));
}

PackedResponses pack_responses(std::vector<std::int64_t> lengths, std::int64_t size) {
  std::sort(lengths.begin(), lengths.end(), std::greater<>());
  PackedResponses out;
  std::multiset<std::int64_t> room;
  for (const std::int64_t length : lengths) {
    auto fullest = room.lower_bound(length);
    std::int64_t left = size;
    if (fullest == room.end()) {
      ++out.sequences;
    } else {
      left = *fullest;
      room.erase(fullest);
    }
    room.insert(left - length);
  }
  const auto all = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
  if (out.sequences > 0) out.tokens = to_double(all) / to_double(out.sequences);
  return out;
}

}  // namespace scalecalc
