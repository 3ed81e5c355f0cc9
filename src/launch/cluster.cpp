// Wraps a launch command into a Slurm script, Kubernetes objects or the command of a TPU slice.
#include "launch/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/diagnostic.h"
#include "launch/training.h"

namespace scalecalc {
namespace {

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

/// As Kubernetes sees them: a slice of TPUs that is larger than a host has nodes of its own size.
Nodes pods_of(const LaunchMachine& machine, std::int64_t chips) {
  if (!machine.tpu || chips <= machine.hw.chips_per_host) return nodes_of(machine.hw, chips);
  const std::int64_t local = std::gcd(chips, machine.tpu->pod_chips);
  return {chips / local, local};
}

/// The environment's name for a node's place in the run.
std::string with_rank(std::string text, std::string_view variable) {
  for (std::size_t at = 0; (at = text.find(kNodeRank, at)) != std::string::npos; at += variable.size()) {
    text.replace(at, kNodeRank.size(), variable);
  }
  return text;
}

/// Servers of one array begin at the same time, perhaps in one directory: each writes a file of its own.
LaunchScript with_own_file(LaunchScript script) {
  const std::size_t dot = script.file.find('.');
  if (script.servers == 1 || dot == std::string::npos) return script;
  const std::string own = script.file.substr(0, dot) + "-${SLURM_ARRAY_TASK_ID:-1}" + script.file.substr(dot);
  for (std::string* text : {&script.head, &script.command}) {
    for (std::size_t at = 0; (at = text->find(script.file, at)) != std::string::npos; at += own.size()) {
      text->replace(at, script.file.size(), own);
    }
  }
  return script;
}

std::string slurm(const HardwareSpec& hw, std::int64_t chips, const LaunchScript& shared) {
  const LaunchScript script = with_own_file(shared);
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
std::string_view resource_of(const LaunchMachine& machine) {
  const HardwareSpec& hw = machine.hw;
  if (machine.tpu) return "google.com/tpu";
  if (hw.family.starts_with("nvidia")) return "nvidia.com/gpu";
  if (hw.family == "amd") return "amd.com/gpu";
  if (hw.family == "gaudi") return "habana.ai/gaudi";
  if (hw.family == "trainium") return "aws.amazon.com/neuron";
  throw UserError(fmt::format("no name is known by which Kubernetes asks for {}", hw.title), "--cluster slurm");
}

/// Which nodes a pod of a TPU's slice runs on; nothing for other chips.
std::string tpu_selector(const LaunchMachine& machine, std::string_view indent) {
  if (!machine.tpu) return "";
  return fmt::format(
      "{0}nodeSelector:\n{0}  cloud.google.com/gke-tpu-accelerator: {1}\n{0}  cloud.google.com/gke-tpu-topology: {2}\n",
      indent, quoted_text(machine.tpu->accelerator), quoted_text(topology(machine.slice)));
}

std::string job_set(const LaunchMachine& machine, const LaunchScript& script) {
  if (script.servers > 1) {
    throw UserError(fmt::format("a JobSet starts one run, and here are {} servers", script.servers),
                    "--cluster leaderworkerset");
  }
  const std::int64_t slices = std::max<std::int64_t>(1, machine.slice.slices);
  const Nodes nodes = pods_of(machine, machine.chips / slices);
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
      slices, nodes.count, nodes.count, tpu_selector(machine, "              "),
      quoted_text("export HEAD_NODE=train-slice-0-0.train\n" + on_each_node(script, "${JOB_COMPLETION_INDEX:-0}")),
      resource_of(machine), nodes.chips);
}

std::string leader_worker_set(const LaunchMachine& machine, const LaunchScript& script) {
  const Nodes nodes = pods_of(machine, machine.chips / script.servers);
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
{}        containers:
          - name: run
            image: "IMAGE"
            command: ["bash", "-c", {}]
            resources:
              limits:
                {}: {}
)",
                     script.servers, nodes.count, tpu_selector(machine, "        "),
                     quoted_text("export HEAD_NODE=\"${LWS_LEADER_ADDRESS:-localhost}\"\n" +
                                 on_each_node(script, "${LWS_WORKER_INDEX:-0}")),
                     resource_of(machine), nodes.chips);
}

}  // namespace

std::optional<TpuNames> tpu_names(const ConfigNode& hardware) {
  const ConfigNode* cloud = hardware.find("cloud");
  if (cloud == nullptr) return std::nullopt;
  const auto text = [&](std::string_view key) {  // the loader has checked them
    const ConfigNode* value = cloud->find(key);
    return value == nullptr ? std::string() : value->text;
  };
  const auto number = [&](std::string_view key) { return std::strtoll(text(key).c_str(), nullptr, 10); };
  return TpuNames{.prefix = text("accelerator_type"),
                  .counted = text("counts") == "cores" ? 2 : 1,
                  .devices = number("jax_devices"),
                  .accelerator = text("gke_accelerator"),
                  .pod_chips = number("gke_pod_chips")};
}

std::string tpu_type(const TpuNames& names, std::int64_t chips) {
  return fmt::format("{}-{}", names.prefix, chips * names.counted);
}

std::string on_cluster(LaunchCluster cluster, const LaunchMachine& machine, const LaunchScript& script,
                       const LaunchStamp& stamp) {
  const HardwareSpec& hw = machine.hw;
  if (script.starts_ranks && cluster != LaunchCluster::kSlurm) {
    throw UserError("ranks on several nodes are started by MPI here, which Kubernetes has by an operator of its own",
                    "--cluster slurm");
  }
  switch (cluster) {
    case LaunchCluster::kSlurm:
      if (machine.tpu) {
        throw UserError(fmt::format("--cluster slurm has no {}", hw.title), "--cluster gke-tpu, or jobset");
      }
      return slurm(hw, machine.chips, script);
    case LaunchCluster::kJobSet: return comments(stamp) + job_set(machine, script);
    case LaunchCluster::kLeaderWorkerSet: return comments(stamp) + leader_worker_set(machine, script);
    case LaunchCluster::kGkeTpu: break;
  }
  if (!machine.tpu) {
    throw UserError(fmt::format("--cluster gke-tpu has no {}", hw.title), "--cluster slurm, jobset or leaderworkerset");
  }
  const TpuNames& tpu = *machine.tpu;
  const std::int64_t slices = std::max<std::int64_t>(1, machine.slice.slices);
  const std::string name =
      fmt::format("{} slice{} of {} ({} chips, {} in its name), {} devices of JAX\n", slices, slices == 1 ? "" : "s",
                  tpu_type(tpu, machine.chips / slices), machine.chips / slices,
                  tpu.counted == 2 ? "TensorCores" : "chips", machine.chips * tpu.devices);
  return comments(stamp) + "# " + name + job_set(machine, script);
}

}  // namespace scalecalc
