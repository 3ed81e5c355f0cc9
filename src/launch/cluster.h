// What runs a launch script on many nodes: Slurm, Kubernetes, slices of TPUs by their names.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "launch/writing.h"
#include "network/slice.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

enum class LaunchCluster : std::uint8_t { kSlurm, kJobSet, kLeaderWorkerSet, kGkeTpu };
inline constexpr std::array<std::string_view, 4> kLaunchClusterNames{"slurm", "jobset", "leaderworkerset", "gke-tpu"};

/// A TPU by the names of its clouds.
struct TpuNames {
  std::string_view chip;         ///< ours
  std::string_view prefix;       ///< of an accelerator type: "v5p" of v5p-16
  std::int64_t counted;          ///< what the number behind it counts of each chip: 2 of TensorCores, 1 of chips
  std::int64_t devices;          ///< that JAX shows of each chip
  std::string_view accelerator;  ///< cloud.google.com/gke-tpu-accelerator
  std::int64_t host_chips;
};
/// Null for a chip that is none of these.
const TpuNames* tpu_names(const HardwareSpec& hw);
/// "v5p-16": the accelerator type of a slice.
std::string tpu_type(const TpuNames& names, std::int64_t chips);

/// `script` on the machine of a plan. UserError for a cluster that does not have such chips.
std::string on_cluster(LaunchCluster cluster, const HardwareSpec& hw, const Slice& slice, std::int64_t chips,
                       const LaunchScript& script, const LaunchStamp& stamp);

}  // namespace scalecalc
