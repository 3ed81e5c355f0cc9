// The least that the stages of a member take under a policy, before its tables are made: tighter than the floors of
// plan/memory_floor.h, which know no stage, and still nothing of one sharding.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "cost/step.h"

namespace scalecalc {

/// Bytes of one sequence in a microbatch at least, by kind of layer and remat policy.
struct PassFloor {
  struct Layer {
    std::array<double, kRematCount> kept{};
    std::array<double, kRematCount> working{};  ///< beside it while one layer runs again
    double paired = 0;                          ///< and while another microbatch's is filled
  };
  std::vector<Layer> layers;
  std::array<double, kLossCount> logits{};  ///< and the head's, by loss
  double least_logits = 0;                  ///< of any loss
  double fragmentation = 0;                 ///< share of these that the allocator cannot use
};
/// `in` has any microbatch of the inner degrees that is no smaller: all of these grow by a line in the sequences.
PassFloor pass_floor(const StepInput<double>& in);

/// Weights, gradients and optimizer state of one layer of each kind, and of the ends, each the least of any sharding.
struct StageStateFloor {
  struct Bytes {
    double weights = 0, gradients = 0, optimizer = 0;
  };
  std::vector<Bytes> layers;
  Bytes embedding, head;
};
/// Of no sharding yet.
StageStateFloor no_state(std::size_t kinds);
/// Lowers it to what `in` takes, of a sharding. `parts`: of the stages (StageShape).
void lower(StageStateFloor& floor, const StepInput<double>& in, std::int32_t parts);

/// What a stage of a member holds and keeps in flight, whatever its recipe and however its state is sharded.
struct StageFloor {
  StageStateFloor::Bytes held;
  double layers = 0;
  double flight = 0;  ///< microbatches
  const StageShape* shape = nullptr;
};
/// Of a member's stages, which must outlive them.
void stage_floors(const StageStateFloor& state, const Layout& member, const std::vector<StageShape>& stages,
                  std::vector<StageFloor>& out);

/// No more than `layout` takes on its fullest stage, but for the reserve, however its state is sharded, with `logits`
/// of PassFloor; nor does it with the policy for fewer layers, nor with less offloaded. A stage's memory is a sum over
/// its layers and ends of what is not negative (cost/memory.cpp); what is left out is buffers, towers, prediction
/// modules' activations, and of a stage that holds both ends the embedding, which the head may share. A layer keeps no
/// more under a policy than under none, so each that is treated lowers it; so does each that is offloaded, of which two
/// layers' worth of one microbatch stays and as many as are in flight go. Without a number all are. Not for a number of
/// treated layers together with offloaded activations: those that are treated take less out. Stages after one that
/// takes more than `enough` are not looked at.
double least_on_stages(const std::vector<StageFloor>& stages, const PassFloor& pass, const Layout& layout,
                       double logits, double enough = std::numeric_limits<double>::infinity());

}  // namespace scalecalc
