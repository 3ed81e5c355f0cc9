// Flags, words and names of other tools: that the table says what exists, and how each is read.
#include "cli/foreign_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/diagnostic.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/read_names.h"

namespace scalecalc::cli {
namespace {

using Typed = std::vector<std::string>;

Arguments read_typed(std::string_view command, const Typed& words) {
  Arguments out = parse_arguments(words, *find_command(command));
  read_names(out, Catalog());
  return out;
}

std::string read_value(std::string_view command, const Typed& words, std::string_view flag) {
  return read_typed(command, words).value(flag).value_or("nothing");
}

/// Message and hint of the first problem.
std::string typed_complaint(std::string_view command, const Typed& words) {
  try {
    read_typed(command, words);
  } catch (const UserError& error) {
    return error.diagnostics().front().message + " | " + error.diagnostics().front().hint;
  }
  return "";
}

TEST(ForeignFlags, MeanFlagsThatExist) {
  for (const ForeignFlag& foreign : foreign_flags()) {
    for (const std::string& ours : parts_between(foreign.ours, ' ')) {
      if (ours.empty() || ours == kHostsFlag || ours == kChipsOfHostFlag) continue;
      const bool known = std::any_of(commands().begin(), commands().end(), [&](const Command& command) {
        return find_flag(flags_of(command), ours) != nullptr;
      });
      EXPECT_TRUE(known) << foreign.names << ": " << ours;
    }
  }
}

TEST(ForeignFlags, StandOnceInTheTable) {
  std::set<std::string> seen;
  for (const ForeignFlag& foreign : foreign_flags()) {
    for (const std::string& name : parts_between(foreign.names, ' ')) {
      EXPECT_TRUE(name.starts_with('-')) << name;
      EXPECT_TRUE(seen.insert(name).second) << name;
    }
  }
}

TEST(ForeignFlags, KeepWhoseTheyAreWhereEnginesDiffer) {
  const Typed asked{"llama3-8b", "--hw", "h100-sxm"};
  const auto value = [&](const char* flag, const char* ours) {
    Typed words = asked;
    words.insert(words.end(), {flag, "16"});
    return read_value("serve", words, ours);
  };
  EXPECT_EQ(value("--mem-fraction-static", "--gpu-memory-utilization"), "sglang=16");
  EXPECT_EQ(value("--kv_cache_free_gpu_mem_fraction", "--gpu-memory-utilization"), "trtllm=16");
  EXPECT_EQ(value("--max-running-requests", "--max-num-seqs"), "sglang=16");
  EXPECT_EQ(value("--max_batch_size", "--max-num-seqs"), "trtllm=16");
  EXPECT_EQ(value("--max-num-seqs", "--max-num-seqs"), "16");
  EXPECT_EQ(value("--max-num-batched-tokens", "--chunk"), "vllm=16");
  EXPECT_EQ(value("--chunked-prefill-size", "--chunk"), "sglang=16");
  EXPECT_EQ(value("--max_num_tokens", "--chunk"), "trtllm=16");
  EXPECT_EQ(value("--context-length", "--max-model-len"), "sglang=16");
  EXPECT_EQ(value("--max_seq_len", "--max-model-len"), "trtllm=16");
  EXPECT_EQ(value("--scheduler-recv-interval", "--receive-interval"), "sglang=16");
  EXPECT_EQ(
      read_value("bounds", {"llama3-8b", "--hw", "h100-sxm", "--for", "serving", "--max-num-seqs", "16"}, "--batch"),
      "16")
      << "where no engine is asked about, sequences are a batch";
}

TEST(ForeignFlags, AreReadAsOurs) {
  const Typed job{"llama3-8b", "--hw", "h100-sxm"};
  const auto with = [&](Typed more) {
    more.insert(more.begin(), job.begin(), job.end());
    return more;
  };
  EXPECT_EQ(read_value("train", with({"--gpus", "1024"}), "--chips"), "1024");
  EXPECT_EQ(read_value("train", with({"--num-gpus=1024"}), "--chips"), "1024");
  EXPECT_EQ(read_value("train", with({"-n", "64"}), "--chips"), "64");
  EXPECT_EQ(read_value("train", {"llama3-8b", "--hardware", "h100-sxm", "--chips", "8"}, "--hw"), "h100-sxm");
  EXPECT_EQ(read_value("serve", with({"--isl", "1024"}), "--prompt"), "1024");
  EXPECT_EQ(read_value("serve", with({"--osl=128"}), "--generate"), "128");
  EXPECT_EQ(read_value("serve", with({"--input-len", "1024"}), "--prompt"), "1024");
  EXPECT_EQ(read_value("serve", with({"--output-len", "128"}), "--generate"), "128");
  EXPECT_EQ(read_value("train", with({"--seq-len", "4096"}), "--seq"), "4096");
  EXPECT_EQ(read_value("train", with({"--dtype", "bfloat16"}), "--precision"), "bf16");
  EXPECT_EQ(read_value("serve", with({"--dtype", "fp8"}), "--weights"), "fp8");
  EXPECT_EQ(read_value("train", with({"--csv"}), "--output"), "csv");
}

TEST(ForeignFlags, DegreesArePins) {
  const Arguments read_as = read_typed("train", {"llama3-8b", "--hw=h100-sxm", "--chips=64", "--tp", "8", "-pp", "2",
                                                 "--dp=4", "--micro-batch-size", "1"});
  EXPECT_EQ(read_as.values("--fix"), (Typed{"tp=8", "pp=2", "dp=4", "mb=1"}));
  ASSERT_EQ(read_as.readings().size(), 4U);
  EXPECT_EQ(read_as.readings()[0].text, "--tp 8 is read as --fix tp=8");
  EXPECT_EQ(read_as.readings()[0].flag, "--fix");
}

TEST(ForeignFlags, OwnFlagsAndValuesStayAsTheyAre) {
  const Arguments own = read_typed("hw", {"h100-sxm", "--dtype", "fp8"});
  EXPECT_EQ(own.value("--dtype"), "fp8");
  EXPECT_TRUE(own.readings().empty());
  EXPECT_EQ(read_value("train", {"llama3-8b", "--stack", "--gpus", "--chips", "8"}, "--stack"), "--gpus");
}

TEST(ForeignFlags, UnclearOnesAreAnswered) {
  EXPECT_EQ(
      typed_complaint("train", {"llama3-8b", "--batch-size", "8"}),
      "unknown flag '--batch-size' | did you mean '--batch-seqs' or '--batch-tokens'? scalecalc train --help lists "
      "the flags");
  EXPECT_NE(typed_complaint("roofline", {"add", "--mtbf", "5h"}).find("--mtbf is a flag of train and compare"),
            std::string::npos);
  EXPECT_EQ(typed_complaint("train", {"llama3-8b", "--gpus"}), "--gpus needs a value | for example --gpus 8960");
}

TEST(ForeignFlags, DashesAreNoLettersOfAName) {
  EXPECT_EQ(typed_complaint("train", {"llama3-8b", "--batch-toke", "1"}).find("did you mean '--batch-tokens'?") ==
                std::string::npos,
            false);
  EXPECT_EQ(typed_complaint("train", {"llama3-8b", "--zzz", "1"}),
            "unknown flag '--zzz' | scalecalc train --help lists the flags");
}

TEST(ForeignWords, AreReadInEveryCase) {
  constexpr std::array<std::string_view, 3> kFormats{"bf16", "fp16", "all-gather"};
  EXPECT_EQ(word_meant("BF16", kFormats), 0U);
  EXPECT_EQ(word_meant("bfloat16", kFormats), 0U);
  EXPECT_EQ(word_meant("half", kFormats), 1U);
  EXPECT_EQ(word_meant("AllGather", kFormats), 2U);
  EXPECT_EQ(word_meant("fp32", kFormats), std::nullopt);
}

TEST(Names, ChipsOfOtherSpellings) {
  const Catalog catalog;
  const auto meant = [&](const std::string& text) {
    const auto name = hardware_meant(text, catalog);
    return name ? name->name + (name->chips ? " " + std::to_string(*name->chips) : "") : "nothing";
  };
  EXPECT_EQ(meant("dgx-h100"), "h100-sxm");
  EXPECT_EQ(meant("HGX H200"), "h200");
  EXPECT_EQ(meant("NVIDIA-H100"), "h100-sxm");
  EXPECT_EQ(meant("amd-h100"), "nothing");
  EXPECT_EQ(meant("8xh100"), "h100-sxm 8");
  EXPECT_EQ(meant("h100x8"), "h100-sxm 8");
  EXPECT_EQ(meant("H100:4"), "h100-sxm 4");
  // Slices are named by TensorCores: two on a chip of v2, v3, v4 and v5p, one on v5e and v6e.
  EXPECT_EQ(meant("v5p-128"), "tpu-v5p 64");
  EXPECT_EQ(meant("v4-8"), "tpu-v4 4");
  EXPECT_EQ(meant("v5litepod-16"), "tpu-v5e 16");
  EXPECT_EQ(meant("v6e-256"), "tpu-v6e 256");
  EXPECT_EQ(meant("v5p-127"), "nothing");
  EXPECT_EQ(meant("h100-sxm"), "nothing") << "a name of ours is not read otherwise";
  EXPECT_EQ(meant("./h100.yaml"), "nothing");
  EXPECT_EQ(meant("zz9000"), "nothing");
}

TEST(Names, ModelsOfOtherSpellings) {
  const Catalog catalog;
  const auto meant = [&](const std::string& text) {
    const auto name = model_meant(text, catalog);
    return name ? name->name : "nothing";
  };
  EXPECT_EQ(meant("meta-llama/Llama-3-70B"), "llama3-70b");
  EXPECT_EQ(meant("llama-3-70b-instruct"), "llama3-70b");
  EXPECT_EQ(meant("llama3:70b"), "llama3-70b");
  EXPECT_EQ(meant("llama3"), "nothing") << "of two sizes";
  EXPECT_EQ(meant("llama3-70b"), "nothing");
}

TEST(Names, ASystemSaysItsChips) {
  const Arguments eight = read_typed("train", {"llama3-8b", "--hw", "8xh100"});
  EXPECT_EQ(eight.value("--hw"), "h100-sxm");
  EXPECT_EQ(eight.value("--chips"), "8");
  EXPECT_EQ(read_value("train", {"llama3-8b", "--hw", "v5p-128"}, "--chips"), "64");
  EXPECT_EQ(read_value("train", {"llama3-8b", "--hw", "v5p-128", "--slices", "2"}, "--chips"), "128");
  EXPECT_EQ(read_value("compare", {"llama3-8b", "--hw", "8xh100,v5p-128,b200:4"}, "--hw"),
            "h100-sxm:8,tpu-v5p:64,b200:4");
  EXPECT_EQ(typed_complaint("train", {"llama3-8b", "--hw", "8xh100", "--chips", "16"}),
            "--hw 8xh100 says 8 chips, and --chips 16 | give one of them");
  const Arguments chip = read_typed("hw", {"v5p-128"});
  EXPECT_EQ(chip.positionals(), Typed{"tpu-v5p"});
  EXPECT_EQ(chip.value("--chips"), "64");
}

TEST(Names, HostsAreChips) {
  EXPECT_EQ(read_value("train", {"llama3-8b", "--hw", "h100", "--nodes", "16"}, "--chips"), "128");
  EXPECT_EQ(read_value("train", {"llama3-8b", "--hw", "h100", "--nnodes=2", "--nproc-per-node=8"}, "--chips"), "16");
  EXPECT_EQ(read_value("train", {"llama3-8b", "--hw", "h100", "-N", "2", "--set", "hw.host.chips=4"}, "--chips"), "8");
  EXPECT_EQ(
      typed_complaint("train", {"llama3-8b", "--hw", "h100-sxm", "--nodes", "2", "--gpus-per-node", "4"}),
      "--gpus-per-node 4: a host of h100-sxm has 8 | --set hw.host.chips=4 changes that; or say all chips: --chips "
      "N");
  EXPECT_EQ(typed_complaint("train", {"llama3-8b", "--nodes", "2"}).find("--nodes 2: hosts of which chip?"), 0U);
  EXPECT_EQ(typed_complaint("train", {"llama3-8b", "--hw=h100", "--chips=8", "--gpus-per-node=8"})
                .find("--gpus-per-node has no meaning without --nodes"),
            0U);
}

}  // namespace
}  // namespace scalecalc::cli
