// What a row's `recompute:` says, as the engine's policies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cost/layout.h"
#include "spec/model_spec.h"
#include "validate/measurement.h"

namespace scalecalc {

struct RowRemat {
  std::optional<Remat> policy;         ///< absent: the row does not know
  std::optional<std::int64_t> layers;  ///< of each stage; 0 = all; absent with the policy
  std::uint8_t offload = 0;            ///< kOffload bits
  /// What selective remat runs again, where the row names modules; empty: what the stack says of it.
  std::vector<std::string> operations;
};

/// A count of layers of the whole model is dealt to the stages and rounded, at least one each: the engine treats as
/// many of every stage. `selective+offload` is `full` with offload: MaxText's policies of that kind name the few
/// tensors of a layer that go to the host, and the rest runs again. NotPredicted for words that are not known.
RowRemat remat_of(const Measurement& row, const ModelSpec& model, std::int64_t stages);

}  // namespace scalecalc
