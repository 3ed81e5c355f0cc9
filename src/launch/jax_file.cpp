// Writes a plan as a mesh and shardings of plain JAX.
#include "launch/jax_file.h"

#include <fmt/format.h>

#include <array>

namespace scalecalc {
namespace {

/// How a weight's dimensions lie: 's' on the axes that shard weights, 't' on the tensor axis, 'e' on the expert axis,
/// '-' whole.
struct WeightRow {
  std::string_view name, dimensions, of;
};
constexpr std::array kWeights{
    WeightRow{"embedding", "ts", ""},
    WeightRow{"attention.query", "st", "attention"},
    WeightRow{"attention.key", "st", "attention"},
    WeightRow{"attention.value", "st", "attention"},
    WeightRow{"attention.output", "ts", "attention"},
    WeightRow{"norm", "s", ""},
    WeightRow{"mlp.gate", "st", "mlp"},
    WeightRow{"mlp.up", "st", "mlp"},
    WeightRow{"mlp.down", "ts", "mlp"},
    WeightRow{"router", "s-", "moe"},
    WeightRow{"experts.gate", "est", "moe"},
    WeightRow{"experts.up", "est", "moe"},
    WeightRow{"experts.down", "ets", "moe"},
    WeightRow{"head", "st", ""},
};

std::string spec_of(const WeightRow& weight) {
  std::string out;
  for (const char c : weight.dimensions) {
    if (!out.empty()) out += ", ";
    const bool expert = weight.dimensions.front() == 'e';
    if (c == 's') out += expert ? "EXPERT_SHARD" : "SHARD";
    if (c == 't') out += "\"tensor\"";
    if (c == 'e') out += "\"expert\"";
    if (c == '-') out += "None";
  }
  return fmt::format("P({}{})", out, weight.dimensions.size() == 1 ? "," : "");
}

constexpr std::string_view kHead = R"(import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P

)";

constexpr std::string_view kMesh = R"(
SIZES = {"data": DATA, "fsdp": FSDP, "expert": EXPERT, "context": CONTEXT, "tensor": TENSOR}

# Axes that shard what is sharded beside the tensor axis: weights under FSDP, the optimizer's state alone under ZeRO-1.
SHARD = ("fsdp", "expert", "context")
EXPERT_SHARD = ("fsdp", "context")

# [rows, columns] of each weight, experts in front of theirs.
)";

constexpr std::string_view kTail = R"(
OPTIMIZER_AXES = ("data",) + SHARD if SHARD_OPTIMIZER else SHARD

ACTIVATIONS = P(("data", "fsdp", "expert"), "context", None)  # [batch, sequence, width]
ACTIVATIONS_BETWEEN_TENSOR_RANKS = (
    P(("data", "fsdp", "expert"), ("context", "tensor"), None) if SHARD_SEQUENCE else ACTIVATIONS)

POLICIES = {
    "none": jax.checkpoint_policies.everything_saveable,
    "selective": jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
    "full": jax.checkpoint_policies.nothing_saveable,
}


def make_mesh(devices=None):
    """The last axis is contiguous in the order of the devices."""
    devices = np.asarray(jax.devices() if devices is None else devices)
    return Mesh(devices.reshape([SIZES[axis] for axis in AXES]), AXES)


def weight_sharding(mesh, name):
    return NamedSharding(mesh, WEIGHTS[name])


def remat(layer):
    return jax.checkpoint(layer, policy=POLICIES[REMAT])
)";

}  // namespace

std::string jax_file(const std::string& constants, const LaunchTerms& terms) {
  std::string out = std::string(kHead) + constants;
  out += fmt::format("AXES = ({})  # outermost first\n", terms.word("axes").value_or(""));
  out += kMesh;
  out += "WEIGHTS = {\n";
  const bool moe = terms.word("moe") == "on";
  for (const WeightRow& weight : kWeights) {
    if (weight.of == "moe" && !moe) continue;
    if (weight.of == "mlp" && terms.number("d_ff").value_or(0) == 0) continue;
    out += fmt::format("    \"{}\": {},\n", weight.name, spec_of(weight));
  }
  return out + "}\n" + std::string(kTail);
}

}  // namespace scalecalc
