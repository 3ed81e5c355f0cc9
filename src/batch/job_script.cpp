#include "batch/job_script.h"

#include <fmt/format.h>

namespace scalecalc {
namespace {

using namespace fmt::literals;

// A cluster's usual limit on the tasks of one array that run at once; users know theirs.
constexpr int kAtOnce = 16;

constexpr std::string_view kSlurm = R"(#!/bin/bash
# Submits the array of {shards} shards and a merge that waits for all of them:
#   bash {script}
# After failures: bash {script} $(scalecalc batch status {dir} --missing)
set -euo pipefail
array=${{1:-0-{last}}}
job=$(sbatch --parsable --job-name=scalecalc --array="$array%{at_once}" --cpus-per-task={threads} \
  --output={dir}/slurm-%a.log --wrap 'scalecalc batch run {dir} --shard-env --jobs {threads}')
sbatch --parsable --job-name=scalecalc-merge --dependency="afterok:$job" --kill-on-invalid-dep=yes \
  --output={dir}/slurm-merge.log --wrap 'scalecalc batch merge {dir} -o {dir}/results.jsonl --clean'
)";

constexpr std::string_view kKubernetes =
    R"(# kubectl apply -f THIS_FILE; the claim holds {dir} with its manifest and can be
# written by many pods. A pod that is replaced gets its index again. Then: scalecalc batch merge {dir} -o results.jsonl
apiVersion: batch/v1
kind: Job
metadata:
  name: scalecalc-batch
spec:
  completionMode: Indexed
  completions: {shards}
  parallelism: {at_once}
  backoffLimitPerIndex: 3
  template:
    spec:
      restartPolicy: Never
      containers:
        - name: shard
          image: scalecalc:latest
          workingDir: /data
          command: ["scalecalc", "batch", "run", "{dir}", "--shard-env", "--jobs", "{threads}"]
          resources:
            requests:
              cpu: "{threads}"
          volumeMounts:
            - name: data
              mountPath: /data
      volumes:
        - name: data
          persistentVolumeClaim:
            claimName: scalecalc-data
)";

constexpr std::string_view kParallel = R"(#!/bin/bash
# Runs what is missing on this machine; run again after failures. Other hosts that share the directory:
# add --sshlogin host1,host2 --workdir . to parallel.
set -euo pipefail
seq 0 {last} | parallel --joblog {dir}/parallel.log --resume-failed \
  'scalecalc batch run {dir} --shard {{}}/{shards} --jobs {threads}'
scalecalc batch merge {dir} -o {dir}/results.jsonl --clean
)";

constexpr std::string_view kSnakemake = R"(# snakemake --snakefile THIS_FILE --cores all
SHARDS = {shards}

rule merge:
    input: expand("{dir}/shard-{{i}}-of-{padded}.jsonl", i=[f"{{n:05}}" for n in range(SHARDS)])
    output: "{dir}/results.jsonl"
    shell: "scalecalc batch merge {dir} -o {{output}}"

rule shard:
    output: "{dir}/shard-{{i}}-of-{padded}.jsonl"
    threads: {threads}
    params: index=lambda wildcards: int(wildcards.i)
    shell: "scalecalc batch run {dir} --shard {{params.index}}/{shards} --jobs {{threads}}"
)";

std::string_view text_for(JobEngine engine) {
  switch (engine) {
    case JobEngine::kSlurm: return kSlurm;
    case JobEngine::kKubernetes: return kKubernetes;
    case JobEngine::kParallel: return kParallel;
    case JobEngine::kSnakemake: return kSnakemake;
  }
  return "";
}

}  // namespace

std::string job_script(JobEngine engine, const JobScope& scope) {
  return fmt::format(fmt::runtime(text_for(engine)), "dir"_a = scope.directory, "shards"_a = scope.shards,
                     "last"_a = scope.shards - 1, "threads"_a = scope.threads, "at_once"_a = kAtOnce,
                     "padded"_a = fmt::format("{:05}", scope.shards), "script"_a = "THIS_FILE");
}

}  // namespace scalecalc
