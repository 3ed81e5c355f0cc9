// Launch files that nobody wrote by hand: damaged ones, and those that would grow without end.
#include <gtest/gtest.h>

#include <random>

#include "launch/reading.h"
#include "launch/training.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

const std::vector<std::pair<std::string, std::string>>& whole_files() {
  static const std::vector<std::pair<std::string, std::string>> kAll{
      {"run.sh",
       "#!/bin/bash\n#SBATCH --nodes=2\nTP=${TP:-2}\nGBS=$(( TP * 32 ))\nA=(--micro-batch-size 1 --seq-length 4096)\n"
       "cat > c.json <<EOF\n{\"train_batch_size\": $GBS}\nEOF\nA+=(\"--bf16\")\n"
       "torchrun --nnodes 2 --nproc_per_node 8 pretrain_gpt.py \"${A[@]}\" --tensor-model-parallel-size $TP \\\n"
       "  --pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et*3|(tt|)*2ttL' --global-batch-size "
       "$GBS\n"},
      {"a.toml",
       "[training]\nlocal_batch_size = 2 # x\nseq_len = 4_096\n[parallelism]\ntensor_parallel_degree = 2\n"
       "list = [\n \"a\", 'b',\n]\n[activation_checkpoint]\nmode = \"full\"\n"},
      {"a.py", "import jax\nDATA = 2\nFSDP = 4\nEXPERT = 1\nTENSOR = 2\nREMAT = \"full\"\nX = [1,\n 2]\n"},
      {"r.py",
       "def a() -> Trainer.Config:\n    tp = 2\n    return Trainer.Config(training=TrainingConfig(seq_len=4096),\n"
       "        parallelism=ParallelismConfig(tensor_parallel_degree=tp), activation_checkpoint=FullAC.Config())\n\n"
       "def b():\n    \"\"\"Text.\"\"\"\n    c = a()\n    c.parallelism.tensor_parallel_degree //= 2  # x\n"
       "    c.model_spec = model_registry('8B', converters=[Float8LinearConverter.Config()])\n    return c\n"},
      {"c.yml",
       "per_device_batch_size: 2.0\nici_fsdp_parallelism: -1\nmax_target_length: 2048\nremat_policy: 'full'\n"}};
  return kAll;
}

/// An error with its place, or a reading: never a crash and never for long.
void read_whatever(const std::string& text, const std::string& file) {
  static const ModelSpec kModel = test::dense_model(12);
  static const StackRuntime kRuntime{};
  try {
    const LaunchText read = read_launch_text(text, file);
    import_training(framework_of(read, text, file), read.settings, &kModel, &kRuntime, 16, 1);
  } catch (const UserError& error) {
    EXPECT_FALSE(error.diagnostics().empty());
  }
}

TEST(LaunchHostile, DamagedFilesAreReadOrRefused) {
  std::mt19937 random(1);
  const std::string pieces = "$\"'`\\(){}[]#=:|<>&;,-+*/ \n\t0123456789abTP~\r";
  for (int i = 0; i < 500; ++i) {
    const auto& [file, whole] = whole_files()[random() % whole_files().size()];
    std::string text = whole;
    for (int damage = 0; damage < 3; ++damage) {
      const std::size_t at = random() % text.size();
      switch (random() % 3) {
        case 0: text[at] = pieces[random() % pieces.size()]; break;
        case 1: text.insert(at, 1, pieces[random() % pieces.size()]); break;
        default: text.erase(at, 1 + random() % 9); break;
      }
      if (text.empty()) text = " ";
    }
    read_whatever(text, file);
    read_whatever(text, "file");
  }
}

TEST(LaunchHostile, VariablesThatDoubleAreRefused) {
  std::string text = "A=xxxxxxxx\n";
  for (int i = 0; i < 60; ++i) text += "A=$A$A\n";
  EXPECT_THROW(read_shell(text + "torchrun $A\n", "run.sh"), UserError);
}

TEST(LaunchHostile, NumbersBeyondAnyMachineAreRefused) {
  for (const char* number : {"1e30", "99999999999999999999", "4294967296000"}) {
    const std::string text = std::string("torchrun --nproc_per_node 8 pretrain_gpt.py --tensor-model-parallel-size ") +
                             number + " --micro-batch-size " + number + " --zero-stage 300\n";
    const LaunchText read = read_shell(text, "run.sh");
    EXPECT_THROW(import_training(launch_framework("megatron"), read.settings, nullptr, nullptr, {}, 1), UserError);
  }
}

}  // namespace
}  // namespace scalecalc
