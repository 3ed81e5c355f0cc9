// What makes a layout fit whose remat, offload or loss is open: as few layers and as little offload as will do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/request.h"
#include "plan/stack_verdicts.h"

namespace scalecalc {

/// The most layers of one kind that a policy for some layers may treat: one fewer than a stage has. 0 if there is none,
/// or if fewer than are pinned.
std::int64_t most_treated(const PlanRequest& request, const std::vector<StageShape>& stages);

/// The same of layers whose activations are offloaded.
std::int64_t most_offloaded(const PlanRequest& request, const std::vector<StageShape>& stages);

/// The first number of 1 to `most` that is enough, where more are if fewer are; `most` where none of the others is.
template <class Enough>
std::int64_t fewest(std::int64_t most, Enough&& enough) {
  std::int64_t least = 1;
  while (least < most) {
    const std::int64_t middle = (least + most) / 2;
    if (enough(middle)) {
      most = middle;
    } else {
      least = middle + 1;
    }
  }
  return most;
}

/// How a layout whose recipe is open was made to fit.
enum class FitOutcome : std::uint8_t {
  kFits,
  kTooLarge,
  kNotNeeded,  ///< it fits without the policy, or with a loss that keeps more, which is another layout
  kRefused,    ///< the stack does not run it
};

/// One way to make a layout fit.
struct FittedLayout {
  Layout layout;
  MemoryUse<double> memory;
};

/// What is known of the member that layouts belong to, for who asks about many.
struct KnownOfMember {
  FactSet facts = kAllFacts;                    ///< that may refuse one
  std::span<const MemoryUse<double>> states{};  ///< memory_of_state of the sharding; empty: not known
  std::array<double, kOffloadAll + 1> least{};  ///< bytes on the chip, by what is offloaded; no more than it takes
};

/// A policy for some layers treats the fewest that make the layout fit (or the number pinned), where it does not fit
/// without. Sets `in.layout.remat_layers`. Time does not fall and memory does not grow with the number, so no other is
/// ever faster.
FitOutcome fit_with_remat(const PlanRequest& request, StepInput<double>& in, std::vector<FittedLayout>& ways,
                          const KnownOfMember& known = {});

/// All of what a layout may offload, however its state is sharded.
std::uint8_t most_offload(const PlanRequest& request, const Layout& layout);

/// What a layout that does not fit offloads: each of optimizer state, activations, both, weights with the state, and
/// all that the stack allows and that makes it fit, unless less does; or what the request pins. Activations of the
/// fewest layers that will do, of all where no fewer do. Less of it never makes a step longer. `most`: most_offload of
/// the layout.
FitOutcome fit_with_offload(const PlanRequest& request, StepInput<double>& in, std::vector<FittedLayout>& ways,
                            std::uint8_t most, const KnownOfMember& known = {});
inline FitOutcome fit_with_offload(const PlanRequest& request, StepInput<double>& in, std::vector<FittedLayout>& ways) {
  return fit_with_offload(request, in, ways, most_offload(request, in.layout));
}
/// Whether the chip has room for a layout in this sharding, with this policy and loss, and any offload that the stack
/// runs; all layers treated and offloaded, which leaves no more on the chip than fewer do. `some`: the policy is for
/// some of them.
bool chip_may_hold(const PlanRequest& request, StepInput<double> in, bool some);

/// Whether the stack runs the layout, all of which is decided but what the facts of earlier levels allowed.
bool runs_whole(const PlanRequest& request, const Layout& layout, FactSet facts = kAllFacts);

/// Whether what the stack says of shardings and offload may depend on a member's microbatches or data ranks.
bool looks_at_ranks(const PlanRequest& request);

}  // namespace scalecalc
