#include "launch/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/diagnostic.h"
#include "launch/training.h"

namespace scalecalc {
namespace {

// Counts and devices: the table of slice types in AI-Hypercomputer/maxtext e591f30 (accelerator_to_spec_map.py).
// Accelerator labels: GKE's documentation, quoted from memory but for tpu7x, seen in AI-Hypercomputer/tpu-recipes
// c8cfe2f.
constexpr std::array kTpus{
    TpuNames{"tpu-v4", "v4", 2, 1, "tpu-v4-podslice", 4},
    TpuNames{"tpu-v5p", "v5p", 2, 1, "tpu-v5p-slice", 4},
    TpuNames{"tpu-v5e", "v5litepod", 1, 1, "tpu-v5-lite-podslice", 4},
    TpuNames{"tpu-v6e", "v6e", 1, 1, "tpu-v6e-slice", 4},
    TpuNames{"tpu-v7", "tpu7x", 2, 2, "tpu7x", 4},
};

std::string comments(const LaunchStamp& stamp) {
  std::string out;
  for (const std::string& line : stamp) out += "# " + comment_line(line) + "\n";
  return out;
}

std::string topology(const Slice& slice) {
  std::string out;
  for (const std::int64_t axis : slice.shape) out += fmt::format("{}{}", out.empty() ? "" : "x", axis);
  return out;
}

struct Nodes {
  std::int64_t count = 1;  ///< of a slice, where there are several
  std::int64_t chips = 1;  ///< of each
};

Nodes nodes_of(const HardwareSpec& hw, std::int64_t chips) {
  const std::int64_t local = std::gcd(chips, std::max<std::int64_t>(1, std::min(hw.chips_per_host, chips)));
  return {chips / local, local};
}

/// The environment's name for a node's place in the run.
std::string with_rank(std::string text, std::string_view variable) {
  for (std::size_t at = 0; (at = text.find(kNodeRank, at)) != std::string::npos; at += variable.size()) {
    text.replace(at, kNodeRank.size(), variable);
  }
  return text;
}

std::string slurm(const HardwareSpec& hw, std::int64_t chips, const LaunchScript& script) {
  const Nodes nodes = nodes_of(hw, chips / script.servers);
  const std::size_t line = script.head.find('\n') + 1;
  std::string out = script.head.substr(0, line);
  out += fmt::format("#SBATCH --nodes={}\n#SBATCH --ntasks-per-node={}\n#SBATCH --gpus-per-node={}\n", nodes.count,
                     script.starts_ranks ? nodes.chips : 1, nodes.chips);
  const bool whole = nodes.chips == hw.chips_per_host;
  if (whole) out += "#SBATCH --exclusive\n";
  if (script.servers > 1) {
    out += fmt::format("#SBATCH --array=1-{0}\n# {0} servers, each on {1} of its own\n", script.servers,
                       whole ? "nodes" : "chips and a port");
  }
  out += script.head.substr(line);
  if (script.servers > 1) out += fmt::format("export REPLICAS={}\n", script.servers);
  out += "HEAD_NODE=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | sed -n 1p)\nexport HEAD_NODE\n";
  if (script.starts_ranks) return out + "srun --mpi=pmix " + script.command;
  if (script.servers > 1 && !whole) {  // several may share a node
    return out + "srun " + script.command.substr(0, script.command.size() - 1) +
           " \\\n  --port \"$((30000 + 100 * SLURM_ARRAY_TASK_ID))\"\n";
  }
  // What differs from node to node is expanded there: srun starts the function with each node's own environment.
  if (script.command.find(kNodeRank) == std::string::npos) return out + "srun " + script.command;
  return out + "on_node() {\nexec " + with_rank(script.command, "${SLURM_NODEID:-0}") +
         "}\nexport -f on_node\nsrun bash -c on_node\n";
}

/// Of a container that runs it whole on every node.
std::string on_each_node(const LaunchScript& script, std::string_view rank) {
  return with_rank(script.head + script.command, rank);
}

/// What Kubernetes calls the chips of a vendor's device plugin; their own documents, quoted from memory.
std::string_view resource_of(const HardwareSpec& hw) {
  if (tpu_names(hw) != nullptr) return "google.com/tpu";
  if (hw.family.starts_with("nvidia")) return "nvidia.com/gpu";
  if (hw.family == "amd") return "amd.com/gpu";
  if (hw.family == "gaudi") return "habana.ai/gaudi";
  if (hw.family == "trainium") return "aws.amazon.com/neuron";
  throw UserError(fmt::format("no name is known by which Kubernetes asks for {}", hw.title), "--cluster slurm");
}

std::string tpu_selector(const HardwareSpec& hw, const Slice& slice) {
  const TpuNames* names = tpu_names(hw);
  if (names == nullptr) return "";
  return fmt::format(
      "              nodeSelector:\n                cloud.google.com/gke-tpu-accelerator: {}\n"
      "                cloud.google.com/gke-tpu-topology: {}\n",
      quoted_text(names->accelerator), quoted_text(topology(slice)));
}

std::string job_set(const HardwareSpec& hw, const Slice& slice, std::int64_t chips, const LaunchScript& script) {
  if (script.servers > 1) {
    throw UserError(fmt::format("a JobSet starts one run, and here are {} servers", script.servers),
                    "--cluster leaderworkerset");
  }
  const std::int64_t slices = std::max<std::int64_t>(1, slice.slices);
  const Nodes nodes = nodes_of(hw, chips / slices);
  return fmt::format(
      R"(apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
metadata:
  name: train
  annotations:
    alpha.jobset.sigs.k8s.io/exclusive-topology: cloud.google.com/gke-nodepool
spec:
  failurePolicy:
    maxRestarts: 0
  replicatedJobs:
    - name: slice
      replicas: {}
      template:
        spec:
          parallelism: {}
          completions: {}
          completionMode: Indexed
          backoffLimit: 0
          template:
            spec:
{}              restartPolicy: Never
              containers:
                - name: train
                  image: "IMAGE"
                  command: ["bash", "-c", {}]
                  resources:
                    limits:
                      {}: {}
)",
      slices, nodes.count, nodes.count, tpu_selector(hw, slice),
      quoted_text("export HEAD_NODE=train-slice-0-0.train\n" + on_each_node(script, "${JOB_COMPLETION_INDEX:-0}")),
      resource_of(hw), nodes.chips);
}

std::string leader_worker_set(const HardwareSpec& hw, std::int64_t chips, const LaunchScript& script) {
  const Nodes nodes = nodes_of(hw, chips / script.servers);
  return fmt::format(R"(apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata:
  name: run
spec:
  replicas: {}
  leaderWorkerTemplate:
    size: {}
    restartPolicy: RecreateGroupOnPodRestart
    workerTemplate:
      spec:
        containers:
          - name: run
            image: "IMAGE"
            command: ["bash", "-c", {}]
            resources:
              limits:
                {}: {}
)",
                     script.servers, nodes.count,
                     quoted_text("export HEAD_NODE=\"${LWS_LEADER_ADDRESS:-localhost}\"\n" +
                                 on_each_node(script, "${LWS_WORKER_INDEX:-0}")),
                     resource_of(hw), nodes.chips);
}

}  // namespace

const TpuNames* tpu_names(const HardwareSpec& hw) {
  const auto* const found =
      std::find_if(kTpus.begin(), kTpus.end(), [&](const TpuNames& t) { return t.chip == hw.name; });
  return found == kTpus.end() ? nullptr : found;
}

std::string tpu_type(const TpuNames& names, std::int64_t chips) {
  return fmt::format("{}-{}", names.prefix, chips * names.counted);
}

std::int64_t devices_per_chip(const HardwareSpec& hw) {
  const TpuNames* names = tpu_names(hw);
  return names == nullptr ? 1 : names->devices;
}

std::string on_cluster(LaunchCluster cluster, const HardwareSpec& hw, const Slice& slice, std::int64_t chips,
                       const LaunchScript& script, const LaunchStamp& stamp) {
  const TpuNames* tpu = tpu_names(hw);
  if (script.starts_ranks && cluster != LaunchCluster::kSlurm) {
    throw UserError("ranks on several nodes are started by MPI here, which Kubernetes has by an operator of its own",
                    "--cluster slurm");
  }
  switch (cluster) {
    case LaunchCluster::kSlurm:
      if (tpu != nullptr) {
        throw UserError(fmt::format("--cluster slurm has no {}", hw.title), "--cluster gke-tpu, or jobset");
      }
      return slurm(hw, chips, script);
    case LaunchCluster::kJobSet: return comments(stamp) + job_set(hw, slice, chips, script);
    case LaunchCluster::kLeaderWorkerSet: return comments(stamp) + leader_worker_set(hw, chips, script);
    case LaunchCluster::kGkeTpu: break;
  }
  if (tpu == nullptr) {
    throw UserError(fmt::format("--cluster gke-tpu has no {}", hw.title), "--cluster slurm, jobset or leaderworkerset");
  }
  const std::int64_t slices = std::max<std::int64_t>(1, slice.slices);
  const std::string name = fmt::format("{} slice{} of {} ({} chips, {} in its name), {} devices of JAX\n", slices,
                                       slices == 1 ? "" : "s", tpu_type(*tpu, chips / slices), chips / slices,
                                       tpu->counted == 2 ? "TensorCores" : "chips", chips * tpu->devices);
  return comments(stamp) + "# " + name + job_set(hw, slice, chips, script);
}

}  // namespace scalecalc
