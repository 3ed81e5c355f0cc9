// What runs a launch script on many nodes: Slurm, Kubernetes, slices of TPUs by their names.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "config/node.h"
#include "launch/writing.h"
#include "network/slice.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

enum class LaunchCluster : std::uint8_t { kSlurm, kJobSet, kLeaderWorkerSet, kGkeTpu };
inline constexpr std::array<std::string_view, 4> kLaunchClusterNames{"slurm", "jobset", "leaderworkerset", "gke-tpu"};

/// A TPU by the names of its clouds, `cloud:` of its hardware file.
struct TpuNames {
  std::string prefix;          ///< of an accelerator type: "v5p" of v5p-16
  std::int64_t counted = 1;    ///< what the number behind it counts of each chip: 2 of TensorCores, 1 of chips
  std::int64_t devices = 1;    ///< that JAX shows of each chip
  std::string accelerator;     ///< cloud.google.com/gke-tpu-accelerator
  std::int64_t pod_chips = 1;  ///< of each node of a slice of several
};
/// Nothing for a chip that has no such names.
std::optional<TpuNames> tpu_names(const ConfigNode& hardware);
/// "v5p-16": the accelerator type of a slice.
std::string tpu_type(const TpuNames& names, std::int64_t chips);

/// What a plan runs on.
struct LaunchMachine {
  const HardwareSpec& hw;
  const Slice& slice;
  std::int64_t chips = 1;
  std::optional<TpuNames> tpu{};
};

/// `script` on the machine of a plan. UserError for a cluster that does not have such chips.
std::string on_cluster(LaunchCluster cluster, const LaunchMachine& machine, const LaunchScript& script,
                       const LaunchStamp& stamp);

}  // namespace scalecalc
