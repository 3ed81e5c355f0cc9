// What a script runs, and objects of Kubernetes around it, against values worked out by hand as bash would.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "launch/document.h"
#include "launch/reading.h"
#include "launch/shell_conditions.h"

namespace scalecalc {
namespace {

/// "4", the value of the last setting of that name; "open: ..." where the file does not say it; "" where it is absent.
std::string last_of(const LaunchText& read, std::string_view key) {
  std::string out;
  for (const LaunchSetting& setting : read.settings) {
    if (setting.key != key) continue;
    out = !setting.open.empty() ? "open: " + setting.open : setting.values.empty() ? "on" : setting.values.front();
  }
  return out;
}

struct ShellCase {
  const char* what;
  const char* script;
  const char* tp;
};

TEST(ShellConditions, BranchesAreTakenAsBashTakesThem) {
  for (const ShellCase& c : {
           ShellCase{"a literal that is so", "M=8b\nif [ \"$M\" = 8b ]; then\n  TP=2\nelse\n  TP=4\nfi\n", "2"},
           ShellCase{"one that is not", "M=70b\nif [ \"$M\" = 8b ]; then TP=2; else TP=4; fi\n", "4"},
           ShellCase{"elif", "N=4\nif [[ $N -gt 8 ]]; then TP=8\nelif [[ $N -ge 4 ]]; then TP=4\nelse TP=1; fi\n", "4"},
           ShellCase{"a later elif after one that was taken",
                     "N=9\nif [[ $N -gt 8 ]]; then TP=8\nelif [[ $N -ge 4 ]]; then TP=4\nfi\n", "8"},
           ShellCase{"and", "A=1\nB=2\nif [[ $A == 1 && $B == 3 ]]; then TP=2; else TP=4; fi\n", "4"},
           ShellCase{"or", "A=1\nB=2\nif [ $A = 7 ] || [ $B = 2 ]; then TP=2; else TP=4; fi\n", "2"},
           ShellCase{"not", "A=1\nif [ ! $A = 1 ]; then TP=2; else TP=4; fi\n", "4"},
           ShellCase{"an empty default", "TP=1\nif [ -z \"${DEBUG:-}\" ]; then TP=4; fi\n", "4"},
           ShellCase{"case", "M=70b\ncase \"$M\" in\n  8b) TP=2 ;;\n  70b|72b) TP=4;;\n  *)\n    TP=8\n    ;;\nesac\n",
                     "4"},
           ShellCase{"case by a star", "M=x\ncase $M in\n  # sizes\n  8b) TP=2 ;;\n  *) TP=8 ;;\nesac\n", "8"},
           ShellCase{"one in another",
                     "A=1\nif [ $A = 1 ]; then\n if [ $A = 2 ]; then TP=2; else TP=4; fi\nelse TP=8\nfi\n", "4"},
           ShellCase{"a guard", "A=1\nTP=2\n[ $A = 1 ] && TP=4\n", "4"},
           ShellCase{"a guard that does not hold", "A=1\nTP=2\n[ $A = 2 ] && TP=4\n", "2"},
           ShellCase{"a guard the other way", "A=1\nTP=2\n[ $A = 2 ] || TP=4\n", "4"},
           ShellCase{"what follows a guard", "A=1\n[ $A = 2 ] && TP=4\nTP=8\n", "8"},
           ShellCase{"any other command before &&", "cd /tmp && TP=4\n", "4"},
       }) {
    const LaunchText read = read_shell(std::string(c.script) + "torchrun train.py --tp $TP\n", "run.sh");
    EXPECT_EQ(last_of(read, "--tp"), c.tp) << c.what;
  }
}

TEST(ShellConditions, WhatTheEnvironmentDecidesStaysOpen) {
  const LaunchText read = read_shell(
      "ARGS=(--tp 2)\nTP=8\nif [ \"$SIZE\" = big ]; then\n  TP=4\n  ARGS+=(--sp)\nfi\n"
      "torchrun train.py \"${ARGS[@]}\" --tensor $TP\n",
      "run.sh");
  EXPECT_EQ(last_of(read, "--tp"), "2");
  EXPECT_EQ(last_of(read, "--sp"), "open: what line 3 asks");
  EXPECT_EQ(last_of(read, "--tensor"), "open: what line 3 asks");
}

TEST(ShellConditions, ABranchThatIsNotTakenStartsNothing) {
  const LaunchText read =
      read_shell("A=1\nif [ $A = 2 ]; then\n  torchrun a.py --tp 4\n  exit\nfi\ntorchrun a.py --tp 8\n", "run.sh");
  EXPECT_EQ(std::count_if(read.settings.begin(), read.settings.end(), [](const auto& s) { return s.key == "--tp"; }),
            1);
  EXPECT_EQ(last_of(read, "--tp"), "8");
}

TEST(ShellConditions, NestsNoDeeperThanAnybodyWrites) {
  std::string script;
  for (int i = 0; i < 1000; ++i) script += "if [ $A = 1 ]; then\n";
  EXPECT_THROW(read_shell(script, "run.sh"), UserError);
}

// 4 pods of a group and 2 groups, 8 GPUs a pod: 64 chips.
TEST(Kubernetes, AGroupOfALeaderWorkerSetIsAServer) {
  const LaunchText read = read_launch_text(R"(apiVersion: v1
kind: Service
metadata: {name: front}
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: vllm}
spec:
  replicas: 2
  leaderWorkerTemplate:
    size: 4
    workerTemplate:
      spec:
        containers:
          - name: worker
            command: ["sh", "-c", "ray start --block"]
    leaderTemplate:
      spec:
        containers:
          - name: leader
            env:
              - {name: TP, value: "8"}
            command:
              - sh
              - -c
              - |
                vllm serve meta-llama/Llama-3.1-405B \
                  --tensor-parallel-size 8 --pipeline-parallel-size 4
            resources: {limits: {nvidia.com/gpu: "8"}}
)",
                                           "lws.yaml");
  EXPECT_EQ(read.chips, 64);
  EXPECT_EQ(last_of(read, "env:REPLICAS"), "2");
  EXPECT_EQ(last_of(read, "--pipeline-parallel-size"), "4");
  const auto pp = std::find_if(read.settings.begin(), read.settings.end(),
                               [](const LaunchSetting& s) { return s.key == "--pipeline-parallel-size"; });
  ASSERT_NE(pp, read.settings.end());
  EXPECT_EQ(pp->where.line, 28);
  EXPECT_EQ(pp->where.column, 44);
}

// 2 slices of 16 pods of 4: 128 chips; the words have no shell around them.
TEST(Kubernetes, AJobSetHasSlicesOfPods) {
  const LaunchText read = read_launch_text(R"(apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
spec:
  replicatedJobs:
    - name: slice
      replicas: 2
      template:
        spec:
          parallelism: 16
          completions: 16
          template:
            spec:
              containers:
                - name: train
                  command: [python3, -m, maxtext.trainers.pre_train.train]
                  args:
                    - base.yml
                    - ici_fsdp_parallelism=64
                    - "dcn_data_parallelism=2"
                  resources: {limits: {google.com/tpu: 4}}
)",
                                           "job.yaml");
  EXPECT_EQ(read.chips, 128);
  EXPECT_EQ(last_of(read, "ici_fsdp_parallelism"), "64");
  EXPECT_EQ(last_of(read, "dcn_data_parallelism"), "2");
  EXPECT_EQ(read.settings.back().where.line, 19);
}

}  // namespace
}  // namespace scalecalc
