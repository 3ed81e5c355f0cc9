// Writes the job files of a study for Slurm, Kubernetes and other engines. A directory's name goes through several
// languages on its way to a worker: the shell, and before it what the engine itself reads in a text (Slurm's %, braces
// of parallel and Snakemake, $ of Kubernetes). Each has its quoting here.
#include "batch/job_script.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "base/quoting.h"
#include "base/text.h"
#include "report/json_text.h"

namespace scalecalc {
namespace {

using namespace fmt::literals;

// A cluster's usual limit on the tasks of one array that run at once; users know theirs.
constexpr int kAtOnce = 16;

constexpr std::string_view kSlurm = R"(#!/bin/bash
# Submits the array of {shards} shards and a merge that waits for all of them:
#   bash {script}
# After failures: bash {script} $(scalecalc batch status {shown} --missing)
set -euo pipefail
array=${{1:-0-{last}}}
job=$(sbatch --parsable --job-name=scalecalc --array="$array%{at_once}" --cpus-per-task={threads} \
  --output={log} --wrap {run})
sbatch --parsable --job-name=scalecalc-merge --dependency="afterok:$job" --kill-on-invalid-dep=yes \
  --output={merge_log} --wrap {merge})";

constexpr std::string_view kKubernetes =
    R"(# kubectl apply -f THIS_FILE; the claim holds {shown} with its manifest and can be
# written by many pods. A pod that is replaced gets its index again. Then: scalecalc batch merge {shown} -o results.jsonl
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
          command: ["scalecalc", "batch", "run", {dir}, "--shard-env", "--jobs", "{threads}"]
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
seq 0 {last} | parallel --joblog {log} --resume-failed \
  {run}
{merge})";

constexpr std::string_view kSnakemake = R"(# snakemake --snakefile THIS_FILE --cores all
DIR = {dir}
SHARDS = {shards}

rule merge:
    input: lambda wildcards: [DIR + f"/shard-{{n:05}}-of-{padded}.jsonl" for n in range(SHARDS)]
    output: {results}
    params: dir=lambda wildcards: DIR
    shell: "scalecalc batch merge {{params.dir:q}} -o jsonl={{output:q}}"

rule shard:
    output: {shard}
    threads: {threads}
    params:
        dir=lambda wildcards: DIR,
        index=lambda wildcards: int(wildcards.i)
    shell: "scalecalc batch run {{params.dir:q}} --shard {{params.index}}/{shards} --jobs {{threads}}"
)";

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
  return text;
}

/// A text of YAML and of Python: JSON's is one of both.
std::string in_double_quotes(const std::string& text) {
  std::string out = json_text(Json(text), -1);
  out.pop_back();
  return out;
}

/// The directory as a word that no program takes for a flag.
std::string as_place(const std::string& directory) { return (directory.starts_with('-') ? "./" : "") + directory; }

/// Slurm replaces %a in the name of a log, unless there is a backslash in it; %% is a percent sign.
std::string slurm_log(const std::string& directory, std::string_view name) {
  if (directory.find('\\') != std::string::npos) return "/dev/null";
  return shell_quoted(replaced(directory, "%", "%%") + std::string(name));
}

/// GNU parallel replaces {}, {.}, {#}, {=perl=} wherever they stand, quoted or not: a pair of quotes behind each brace
/// hides it from parallel and is nothing to the shell.
std::string hidden_from_parallel(const std::string& word) { return replaced(shell_quoted(word), "{", "{''"); }

std::string slurm(const JobScope& scope, const std::string& dir) {
  const std::string run = fmt::format("scalecalc batch run {} --shard-env --jobs {}", shell_quoted(dir), scope.threads);
  const std::string merge = fmt::format("scalecalc batch merge {} -o {} --clean", shell_quoted(dir),
                                        shell_quoted("jsonl=" + dir + "/results.jsonl"));
  return fmt::format(fmt::runtime(kSlurm), "shards"_a = scope.shards, "last"_a = scope.shards - 1,
                     "threads"_a = scope.threads, "at_once"_a = kAtOnce, "script"_a = "THIS_FILE",
                     "shown"_a = shell_quoted_line(dir), "log"_a = slurm_log(dir, "/slurm-%a.log"),
                     "merge_log"_a = slurm_log(dir, "/slurm-merge.log"), "run"_a = shell_quoted(run),
                     "merge"_a = shell_quoted(merge) + "\n");
}

std::string kubernetes(const JobScope& scope, const std::string& dir) {
  // $(NAME) in a command is a variable of the pod; $$ is a dollar sign.
  return fmt::format(fmt::runtime(kKubernetes), "shown"_a = shell_quoted_line(dir), "shards"_a = scope.shards,
                     "at_once"_a = kAtOnce, "threads"_a = scope.threads,
                     "dir"_a = in_double_quotes(replaced(dir, "$", "$$")));
}

std::string parallel(const JobScope& scope, const std::string& dir) {
  const std::string run = fmt::format("scalecalc batch run {} --shard {{}}/{} --jobs {}", hidden_from_parallel(dir),
                                      scope.shards, scope.threads);
  const std::string merge = fmt::format("scalecalc batch merge {} -o {} --clean\n", shell_quoted(dir),
                                        shell_quoted("jsonl=" + dir + "/results.jsonl"));
  return fmt::format(fmt::runtime(kParallel), "last"_a = scope.shards - 1,
                     "log"_a = shell_quoted(dir + "/parallel.log"), "run"_a = shell_quoted(run), "merge"_a = merge);
}

std::string snakemake(const JobScope& scope, const std::string& dir) {
  const std::string padded = fmt::format("{:05}", scope.shards);
  // {i} of an output is a wildcard; doubled braces are braces.
  const std::string escaped = replaced(replaced(dir, "{", "{{"), "}", "}}");
  return fmt::format(fmt::runtime(kSnakemake), "dir"_a = in_double_quotes(dir), "shards"_a = scope.shards,
                     "padded"_a = padded, "threads"_a = scope.threads,
                     "results"_a = in_double_quotes(escaped + "/results.jsonl"),
                     "shard"_a = in_double_quotes(fmt::format("{}/shard-{{i}}-of-{}.jsonl", escaped, padded)));
}

}  // namespace

std::string job_script(JobEngine engine, const JobScope& scope) {
  if (invalid_utf8_at(scope.directory) != std::string::npos) {
    throw UserError(fmt::format("the name of the directory is no UTF-8: {}", in_quotes(scope.directory)),
                    "a job file is a text: rename the directory");
  }
  const std::string dir = as_place(scope.directory);
  switch (engine) {
    case JobEngine::kSlurm: return slurm(scope, dir);
    case JobEngine::kKubernetes: return kubernetes(scope, dir);
    case JobEngine::kParallel: return parallel(scope, dir);
    case JobEngine::kSnakemake: return snakemake(scope, dir);
  }
  return "";
}

}  // namespace scalecalc
