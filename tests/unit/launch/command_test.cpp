// What a script says besides its framework's own arguments: variables of the environment, Slurm, files that it names.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/diagnostic.h"
#include "launch/reading.h"
#include "support/scratch.h"

namespace scalecalc {
namespace {

LaunchReading reading_of(const std::string& text, const std::string& file = "run.sh") {
  LaunchText read = read_launch_text(text, file);
  const LaunchFramework& framework = framework_of(read, text, file);
  read_named_files(read, framework, file);
  std::vector<std::pair<std::string, std::int64_t>> otherwise;
  if (read.chips) otherwise.emplace_back("chips", *read.chips);
  LaunchTerms known;
  known.words["moe"] = "off";
  return solve(framework, read.settings, known, otherwise);
}

std::string framework_named(const std::string& text) {
  try {
    return std::string(framework_of(read_launch_text(text, "run.sh"), text, "run.sh").name);
  } catch (const UserError& error) {
    return error.diagnostics().front().message;
  }
}

std::vector<std::string> open_texts(const LaunchReading& reading) {
  std::vector<std::string> out;
  for (const LaunchSetting& setting : reading.open) out.push_back(open_text(setting));
  return out;
}

const std::string kMegatron = "pretrain_gpt.py --micro-batch-size 1 --global-batch-size 64 --seq-length 4096 --bf16 ";

TEST(LaunchCommand, FurtherArgumentsOfTheEnvironmentLeaveTheLastOneAsItIs) {
  for (const std::string more : {"$EXTRA_ARGS", "${EXTRA_ARGS}", "${EXTRA_ARGS[@]}", "\"$@\"", "$MORE"}) {
    const LaunchReading read = reading_of("torchrun --nnodes 2 --nproc_per_node 8 " + kMegatron +
                                          "--tensor-model-parallel-size 4 " + more + "\n");
    EXPECT_EQ(read.terms.number("tp"), 4) << more;
    ASSERT_EQ(read.open.size(), 1U) << more;
    EXPECT_EQ(open_text(read.open.front()).find("further arguments come from $"), 0U) << open_text(read.open.front());
  }
}

TEST(LaunchCommand, FurtherArgumentsAreListedBehindASwitchAndBeforeTheProgram) {
  const std::string begin = "torchrun --nnodes 2 --nproc_per_node 8 " + kMegatron;
  const std::vector<std::string> listed{"further arguments come from $GPT_ARGS, which the file does not set"};
  EXPECT_EQ(open_texts(reading_of(begin + "--log-interval 10 $GPT_ARGS\n")), listed);
  EXPECT_EQ(open_texts(reading_of(begin + "--use-mcore-models $GPT_ARGS\n")), listed);
  EXPECT_EQ(open_texts(reading_of("torchrun $GPT_ARGS " + kMegatron + "\n")), listed);
}

TEST(LaunchCommand, AVariableInAListOfArgumentsIsOpenWhereItStands) {
  const LaunchReading read = reading_of(
      "ARGS=\"--tensor-model-parallel-size 4 $MORE --pipeline-model-parallel-size 2\"\n"
      "torchrun --nnodes 2 --nproc_per_node 8 " +
      kMegatron + "$ARGS\n");
  EXPECT_EQ(read.terms.number("tp"), 4);
  EXPECT_EQ(read.terms.number("pp"), 2);
  EXPECT_EQ(read.open.size(), 1U);
}

TEST(LaunchCommand, AVariableThatIsAValueStaysItsArguments) {
  const LaunchReading read =
      reading_of("torchrun --nproc_per_node 8 " + kMegatron + "--tensor-model-parallel-size $TP\n");
  EXPECT_EQ(open_texts(read),
            std::vector<std::string>{"--tensor-model-parallel-size is $TP, which the file does not set"});
}

TEST(LaunchCommand, WhatIsRedirectedIsNoArgument) {
  EXPECT_EQ(reading_of("torchrun --nproc_per_node 8 " + kMegatron + "2>&1 | tee log.txt\n").terms.word("precision"),
            "bf16");
}

TEST(LaunchCommand, ALauncherIsOfNoFramework) {
  const std::string nobody = "no argument of a launch file is known in it";
  EXPECT_EQ(framework_named("torchrun --nnodes 2 --nproc_per_node 8 train.py --lr 1e-4 --batch-size 4\n"), nobody);
  EXPECT_EQ(framework_named("torchrun --nnodes 2 --nproc_per_node 8 --node_rank 0 --master_addr a train.py\n"), nobody);
  EXPECT_EQ(framework_named("#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\nsrun python train.py --lr 1e-4\n"), nobody);
  EXPECT_EQ(framework_named("torchrun --nproc_per_node=8 --nnodes 8 -m torchtitan.train --job.config_file a.toml "
                            "--parallelism.tensor_parallel_degree 4\n"),
            "torchtitan");
  EXPECT_EQ(framework_named("torchrun --nproc_per_node 8 run_train.py --config-file a.yaml\n"), "nanotron");
  EXPECT_EQ(framework_named("torchrun --nproc_per_node 8 run_clm.py --deepspeed ds.json --bf16 True "
                            "--per_device_train_batch_size 2 --gradient_accumulation_steps 4\n"),
            "deepspeed");
  EXPECT_EQ(framework_named("torchrun --nproc_per_node 8 " + kMegatron + "\n"), "megatron");
}

TEST(LaunchCommand, FieldsOfTorchtitansFileOnItsCommandLine) {
  const LaunchReading read = reading_of(
      "torchrun --nproc_per_node=8 --nnodes 8 -m torchtitan.train --training.seq_len 4096 "
      "--parallelism.tensor_parallel_degree=4\n");
  EXPECT_EQ(read.terms.number("seq"), 4096);
  EXPECT_EQ(read.terms.number("tp"), 4);
  EXPECT_EQ(read.terms.number("chips"), 64);
}

// 16 nodes of 8 in each spelling of sbatch and srun.
TEST(LaunchCommand, SlurmSaysTheMachineInAllItsSpellings) {
  const std::string run = "python " + kMegatron + "--tensor-model-parallel-size 4\n";
  for (const std::string head : {
           "#SBATCH --nodes=16\n#SBATCH --gpus-per-node=8\nsrun ",
           "#SBATCH -N 16\n#SBATCH --gres=gpu:8\nsrun ",
           "#SBATCH -N16\n#SBATCH --gres=gpu:h100:8,nvme:1\nsrun ",
           "#SBATCH --nodes 16\n#SBATCH --gpus-per-node=h100:8\n#SBATCH --ntasks-per-node=1\nsrun --label ",
           "#SBATCH -N 16\n#SBATCH --ntasks-per-node=8\nsrun -l --mpi=pmix ",
           "#SBATCH -n 128\nsrun ",
           "#SBATCH -G 128\nsrun ",
           "srun -N 16 --gres=gpu:8 ",
           "#SBATCH --nodes=16\n#SBATCH --gpus-per-node=8\nsrun --nodes 1 true\nsrun ",
           "#SBATCH -N 16\ntorchrun --nnodes $SLURM_NNODES --nproc_per_node 8 ",
       }) {
    const LaunchReading read = reading_of(head + run);
    EXPECT_EQ(read.terms.number("chips"), 128) << head;
    EXPECT_TRUE(read.unread.empty()) << head;
    EXPECT_TRUE(read.open.empty()) << head;
  }
}

TEST(LaunchCommand, SlurmIsReadBeforeServersToo) {
  const LaunchReading read = reading_of(
      "#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\n#SBATCH --partition=a\n"
      "srun python -m sglang.launch_server --model-path m --tp 16\n");
  EXPECT_EQ(read.terms.number("chips"), 16);
  EXPECT_TRUE(read.unread.empty());
}

const std::string kDeepSpeed =
    "deepspeed --num_gpus 8 train.py --deepspeed ds.json --max_length 2048 --gradient_checkpointing\n";

TEST(LaunchCommand, AFileThatAnArgumentNamesIsReadBesideTheScript) {
  const test::Scratch directory;
  std::ofstream(directory.path("ds.json"))
      << R"({"train_micro_batch_size_per_gpu": 2, "zero_optimization": {"stage": 3}, "bf16": {"enabled": true}})";
  const LaunchReading read = reading_of(kDeepSpeed, directory.path("run.sh"));
  EXPECT_EQ(read.terms.number("zero"), 3);
  EXPECT_EQ(read.terms.number("mb"), 2);
  EXPECT_EQ(read.terms.word("precision"), "bf16");
  EXPECT_TRUE(read.open.empty());
}

TEST(LaunchCommand, OfANamedFileThatIsNotThereNoDefaultHolds) {
  const test::Scratch directory;
  const LaunchReading read = reading_of(kDeepSpeed, directory.path("run.sh"));
  EXPECT_EQ(open_texts(read), std::vector<std::string>{"--deepspeed ds.json is a file of its own that was not read"});
  EXPECT_FALSE(read.terms.number("zero"));
  EXPECT_FALSE(read.terms.knows("precision"));
  EXPECT_EQ(read.terms.word("remat"), "full");
}

TEST(LaunchCommand, NoFileOutsideOfTheScriptsDirectoryIsRead) {
  const test::Scratch directory;
  std::filesystem::create_directories(directory.path("scripts"));
  std::ofstream(directory.path("ds.json")) << R"({"zero_optimization": {"stage": 3}})";
  std::filesystem::create_symlink("../ds.json", directory.path("scripts/link.json"));
  std::filesystem::create_directory_symlink("..", directory.path("scripts/up"));
  for (const std::string& name : {directory.path("ds.json"), std::string("../ds.json"), std::string("a/../../ds.json"),
                                  std::string("link.json"), std::string("up/ds.json")}) {
    const LaunchReading read =
        reading_of("deepspeed --num_gpus 8 train.py --max_length 2048 --deepspeed " + name + "\n",
                   directory.path("scripts/run.sh"));
    EXPECT_FALSE(read.terms.number("zero")) << name;
    EXPECT_EQ(open_texts(read).size(), 1U) << name;
  }
}

TEST(LaunchCommand, AFileThatTheScriptWritesIsReadInIt) {
  const LaunchReading read =
      reading_of("cat > ds.json <<END\n{\"zero_optimization\": {\"stage\": 2}}\nEND\n" + kDeepSpeed);
  EXPECT_EQ(read.terms.number("zero"), 2);
  EXPECT_TRUE(read.open.empty());
}

TEST(LaunchCommand, LettersBehindVllmsCounts) {
  const auto longest = [](const std::string& count) {
    return reading_of("vllm serve m --tensor-parallel-size 1 --max-model-len " + count + "\n").terms.number("longest");
  };
  EXPECT_EQ(longest("8192"), 8192);
  EXPECT_EQ(longest("16k"), 16'000);
  EXPECT_EQ(longest("16K"), 16'384);
}

TEST(LaunchCommand, NoDropoutHasSeveralSpellings) {
  for (const std::string none : {"0", "0.0", "0.", "0e0"}) {
    const LaunchReading read = reading_of("torchrun --nproc_per_node 8 " + kMegatron + "--hidden-dropout " + none +
                                          " --attention-dropout " + none + "\n");
    EXPECT_TRUE(read.unread.empty()) << none;
  }
}

TEST(LaunchCommand, UnfusedAttentionOfMegatronIsRead) {
  const auto attention = [](const std::string& backend) {
    return reading_of("torchrun --nproc_per_node 8 " + kMegatron + "--attention-backend " + backend + "\n")
        .terms.word("attention");
  };
  EXPECT_EQ(attention("unfused"), "unfused");
  EXPECT_FALSE(attention("flash"));
}

}  // namespace
}  // namespace scalecalc
