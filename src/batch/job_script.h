// Ready job files for the engines that carry a planned study over many machines.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace scalecalc {

enum class JobEngine { kSlurm, kKubernetes, kParallel, kSnakemake };
inline constexpr std::array<std::string_view, 4> kJobEngines{"slurm", "kubernetes", "parallel", "snakemake"};

struct JobScope {
  std::string directory;
  std::uint64_t shards = 1;
  unsigned threads = 1;  ///< of each task
};

/// How many shards there are stands in the manifest: a file never takes it from the scheduler.
std::string job_script(JobEngine engine, const JobScope& scope);

}  // namespace scalecalc
