// Launch files as people write them, against figures worked out by hand from what they say.
#include "launch/reading.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "config/catalog.h"
#include "launch/adapters.h"
#include "launch/cluster.h"
#include "launch/training.h"
#include "launch/writing.h"
#include "plan/dimensions.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

ImportedLayout layout_in(const std::string& text, const std::string& file, const char* model,
                         std::optional<std::int64_t> chips = {}, std::int64_t cores = 1, std::string_view family = {}) {
  const LaunchText read = read_launch_text(text, file);
  const ModelSpec spec = test::shipped_model(model);
  static const StackRuntime kRuntime{};
  return import_training(framework_of(read, text, file), read.settings, &spec, &kRuntime, chips, cores, family);
}

// Published: TP2 PP8 VP4 CP1 EP64 ETP1 on 1024 H100, layout Et|(tt|)*30mL (yanring/Megatron-MoE-ModelZoo,
// run_deepseek_v3_h100.sh): 32 chunks over 8 stages; data ranks 1024 / (2 x 8) = 64; 8192 / 64 = 128 microbatches.
TEST(LaunchReading, DeepSeekV3On1024H100) {
  const ImportedLayout read = layout_in(R"(#!/bin/bash
TP=2
ARGS=(
  --tensor-model-parallel-size ${TP}
  --pipeline-model-parallel-size ${PP:-8}  # stages
  --expert-model-parallel-size 64
)
ARGS+=(--expert-tensor-parallel-size 1 --sequence-parallel)
torchrun --nnodes 128 --nproc-per-node=8 pretrain_gpt.py "${ARGS[@]}" \
  --pipeline-model-parallel-layout "Et|(tt|)*30mL" --micro-batch-size 1 --global-batch-size 8192 \
  --seq-length 4096 --use-distributed-optimizer --recompute-granularity selective \
  --recompute-modules mla_up_proj mlp
)",
                                        "run.sh", "deepseek-v3");
  EXPECT_EQ(read.pins.dp, 64);
  EXPECT_EQ(read.pins.vpp, 4);
  EXPECT_EQ(read.pins.ep, 64);
  EXPECT_EQ(read.pins.etp, 1);
  EXPECT_EQ(read.pins.grad_accum, 128);
  EXPECT_EQ(read.pins.zero, 1);
  EXPECT_EQ(read.pins.remat, Remat::kMlp);
  EXPECT_EQ(read.reading.terms.number("chips"), 1024);
  EXPECT_EQ(read.reading.places.at("tp").line, 4);
}

// 128 hosts of 8: 8 x 128 = 1024 devices, one sequence each (AI-Hypercomputer/maxtext gpu/a3/llama_3.1_405b/128vm.sh).
TEST(LaunchReading, MaxTextLlama405bOn1024) {
  const ImportedLayout read = layout_in(
      "python3 -m maxtext.trainers.pre_train.train base.yml model_name=llama3.1-405b remat_policy=full \\\n"
      "  per_device_batch_size=1.0 max_target_length=8192 dcn_fsdp_parallelism=128 ici_fsdp_parallelism=8\n",
      "run.sh", "llama3.1-405b");
  EXPECT_EQ(read.pins.fsdp, 1024);
  EXPECT_EQ(read.pins.dp, 1);
  EXPECT_EQ(read.pins.zero, 3);
  EXPECT_EQ(read.pins.micro_batch_seqs, 1);
  EXPECT_EQ(read.reading.terms.number("chips"), 1024);
}

// tpu7x-4x4x8 has 128 chips and 256 devices of JAX; ici_fsdp -1 takes them all, 8 sequences each: 2048 a step, 16 a
// chip.
TEST(LaunchReading, DevicesOfTpu7xAreTwoAChip) {
  const ImportedLayout read = layout_in(
      "per_device_batch_size: 8.0\nmax_target_length: 4096\ndcn_data_parallelism: -1\nici_fsdp_parallelism: -1\n",
      "config.yml", "deepseek-v3", 128, 2);
  EXPECT_EQ(read.pins.fsdp, 128);
  EXPECT_EQ(read.pins.micro_batch_seqs, 16);
}

// TP 8 of 512 chips, the rest shards: 64 (pytorch/torchtitan llama3_405b.toml, data_parallel_shard_degree -1).
TEST(LaunchReading, TorchtitanTakesTheRestForShards) {
  const ImportedLayout read = layout_in(R"([training]
local_batch_size = 2
seq_len = 8192
[parallelism]
data_parallel_shard_degree = -1  # all that is left
tensor_parallel_degree = 8
[activation_checkpoint]
mode = "full" # ["none", "selective", "full"]
)",
                                        "train.toml", "llama3.1-405b", 512);
  EXPECT_EQ(read.pins.fsdp, 64);
  EXPECT_EQ(read.pins.zero, 3);
  EXPECT_EQ(read.pins.remat, Remat::kFull);
  EXPECT_EQ(read.pins.grad_accum, 1);
}

// 2 replicas x 2 shards x 2 tensor ranks are 8 processes (huggingface/accelerate tp_hsdp.yaml).
TEST(LaunchReading, AccelerateReplicasOfShards) {
  const ImportedLayout read = layout_in(R"(distributed_type: FSDP
fsdp_config:
  fsdp_reshard_after_forward: true
num_machines: 1
num_processes: 8
parallelism_config:
  parallelism_config_dp_replicate_size: 2
  parallelism_config_dp_shard_size: 2
  parallelism_config_tp_size: 2
)",
                                        "fsdp.yaml", "llama3-8b");
  EXPECT_EQ(read.pins.dp, 2);
  EXPECT_EQ(read.pins.fsdp, 2);
  EXPECT_EQ(read.pins.tp, 2);
  EXPECT_EQ(read.pins.zero, 3);
}

// 8 GPUs, 512 sequences a step in microbatches of 4: 512 / (8 x 4) = 16 of them.
TEST(LaunchReading, DeepSpeedsBatchImpliesItsMicrobatches) {
  const ImportedLayout read = layout_in(R"({"train_batch_size": 512, "train_micro_batch_size_per_gpu": 4,
 "gradient_accumulation_steps": "auto", "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}}})",
                                        "ds_config.json", "llama3-8b", 8);
  EXPECT_EQ(read.pins.grad_accum, 16);
  EXPECT_EQ(read.pins.zero, 2);
  EXPECT_EQ(read.pins.offload, kOffloadOptimizer);
}

TEST(LaunchReading, AnExpressionAnAbsentVariableAndADocumentInAScript) {
  const LaunchText read = read_launch_text(R"(#!/bin/bash
#SBATCH --nodes=4
GPUS=8
GBS=$(( GPUS * SLURM_NNODES * 2 ))
cat > ds_config.json <<EOF
{
  "train_batch_size": $GBS
}
EOF
deepspeed --num_nodes=$UNSET --num_gpus $GPUS train.py --deepspeed ds_config.json
)",
                                           "run.sh");
  const auto setting = [&](const std::string& key) {
    for (const LaunchSetting& s : read.settings) {
      if (s.key == key) return s;
    }
    return LaunchSetting{};
  };
  EXPECT_EQ(setting("train_batch_size").values, std::vector<std::string>{"64"});
  EXPECT_EQ(setting("train_batch_size").where.line, 7);
  EXPECT_EQ(setting("--num_nodes").open, "$UNSET");
  EXPECT_EQ(setting("--num_gpus").values.front(), "8");
}

// pytorch/torchtitan 00d1c0e: models/llama3/config_registry.py, llama3_70b, shortened: TP 8, the rest of 64 chips
// shards, 8 sequences of 8192 on each data rank, full recomputation.
TEST(LaunchReading, ARecipeOfTorchtitan) {
  const std::string text = R"(from torchtitan.trainer import Trainer

def llama3_70b() -> Trainer.Config:
    return Trainer.Config(
        hf_assets_path="./assets/hf/Llama-3.1-70B",
        model_spec=model_registry("70B"),
        training=TrainingConfig(
            local_batch_size=8,  # of a rank
            seq_len=8192,
            steps=1000,
        ),
        parallelism=ParallelismConfig(
            tensor_parallel_degree=8,
        ),
        model_converters=ModelConvertersContainer.Config(
            converters=[Float8LinearConverter.Config(filter_fqns=["output"])],
        ),
        activation_checkpoint=ActivationCheckpointConfig(mode="full"),
    )
)";
  const ImportedLayout read = layout_in(text, "config_registry.py", "llama3.1-70b", 64);
  EXPECT_EQ(read.pins.tp, 8);
  EXPECT_EQ(read.pins.fsdp, 8);
  EXPECT_EQ(read.pins.micro_batch_seqs, 8);
  EXPECT_EQ(read.pins.remat, Remat::kFull);
  EXPECT_EQ(read.reading.terms.word("precision"), "fp8");
  EXPECT_EQ(read.reading.places.at("tp").line, 13);
  const std::string two = text + text.substr(text.find("def"));
  EXPECT_THROW(read_launch_text(two, "config_registry.py"), UserError);
}

TEST(LaunchReading, AQuantizedBaseTrainsAdaptersAlone) {
  const std::string script =
      "accelerate launch --num_processes 8 train.py --model_name_or_path meta-llama/Meta-Llama-3-8B"
      " --per_device_train_batch_size 1 --load_in_4bit";
  EXPECT_THROW(layout_in(script + "\n", "run.sh", "llama3-8b", 8), UserError);
  EXPECT_NO_THROW(layout_in(script + " --use_peft\n", "run.sh", "llama3-8b", 8));
}

// As llama3_debugmodel_float8 of pytorch/torchtitan b5bcd76 changes llama3_debugmodel: what is set last holds.
TEST(LaunchReading, ARecipeThatChangesAnother) {
  const std::string base = R"(def llama3_70b() -> Trainer.Config:
    model_spec = model_registry("70B")
    return Trainer.Config(
        model_spec=model_spec,
        training=TrainingConfig(local_batch_size=8, seq_len=8192),
        parallelism=ParallelismConfig(tensor_parallel_degree=8),
        activation_checkpoint=SelectiveAC.Config(),
    )

)";
  const std::string changed = R"(def llama3_70b_float8() -> Trainer.Config:
    config = llama3_70b()
    config.parallelism.tensor_parallel_degree = 4
    config.activation_checkpoint = FullAC.Config()
    config.model_spec = model_registry(
        "70B",
        converters=[
            Float8LinearConverter.Config(model_compile_enabled=True),
        ],
    )
    config.training.local_batch_size = 2
    return config
)";
  const ImportedLayout read = layout_in(base + changed, "config_registry.py", "llama3.1-70b", 64);
  EXPECT_EQ(read.pins.tp, 4);
  EXPECT_EQ(read.pins.fsdp, 16);
  EXPECT_EQ(read.pins.micro_batch_seqs, 2);
  EXPECT_EQ(read.pins.remat, Remat::kFull);
  EXPECT_EQ(read.reading.terms.word("precision"), "fp8");
  EXPECT_EQ(read.reading.places.at("tp").line, 12);
  EXPECT_EQ(layout_in(base, "config_registry.py", "llama3.1-70b", 64).pins.tp, 8);
  try {
    read_launch_text(changed, "config_registry.py");
    FAIL() << "the recipe that it changes is not there";
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().front().where.line, 2);
  }
}

TEST(LaunchReading, AFileOfNobodyIsRefused) {
  const std::string text = "[section]\nkey = 1\n";
  const LaunchText read = read_launch_text(text, "some.toml");
  EXPECT_THROW(framework_of(read, text, "some.toml"), UserError);
}

TEST(LaunchReading, BrokenTomlSaysWhere) {
  try {
    read_launch_text("[training]\nseq_len = \"8192\nsteps = 3\n", "a.toml");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().front().where.line, 2);
  }
}

// Python's tomllib reads 4 and 8192 and 2 here: a text over several lines sets nothing, a table in braces is a section.
TEST(LaunchReading, TomlIsReadAsItsStandardSays) {
  const LaunchText read = read_launch_text(
      "[job]\ndescription = \"\"\"\ntensor_parallel_degree = 8\n[training]\nseq_len = 1\n\"\"\"\n"
      "[parallelism]\ntensor_parallel_degree = 0x4\n[training]\nseq_len = 8_192\nlr = 8e-4\n"
      "[activation_checkpoint]\nmode = 'full'\n[quantize]\nlinear = {float8 = {filter_fqns = [\"output\", 'a']}}\n"
      "[[data.mixture]]\nname = \"c4\"\n",
      "train.toml");
  std::vector<std::string> lines;
  for (const LaunchSetting& setting : read.settings) {
    std::string values;
    for (const std::string& value : setting.values) values += " " + value;
    lines.push_back(std::to_string(setting.where.line) + ":" + std::to_string(setting.where.column) + " " +
                    setting.key + values);
  }
  EXPECT_EQ(lines, (std::vector<std::string>{
                       "2:1 job.description tensor_parallel_degree = 8\n[training]\nseq_len = 1\n",
                       "8:1 parallelism.tensor_parallel_degree 4", "10:1 training.seq_len 8192",
                       "11:1 training.lr 0.0008", "13:1 activation_checkpoint.mode full",
                       "15:21 quantize.linear.float8.filter_fqns output a", "17:1 data.mixture.name c4"}));
}

// The parser itself knows no limit of a key's names, and leaves its tables by recursion.
TEST(LaunchReading, TomlOfTooManyNamesOrValuesIsRefused) {
  std::string names = "a", values = "a = [1";
  for (int i = 0; i < 200'000; ++i) names += ".a";
  for (int i = 0; i < 100'001; ++i) values += ",1";
  for (const std::string& text : {std::string("[[:00Z\n"), names + " = 1\n", "[" + names + "]\n", values + "]\n",
                                  "a = " + std::string(9999, '[')}) {
    EXPECT_THROW(read_toml(text, "a.toml"), UserError) << text.substr(0, 20);
  }
}

TEST(LaunchReading, ConstantsInATextOfPythonAreNone) {
  const LaunchText read =
      read_launch_text("import jax\n\"\"\"\nTENSOR = 8\n\"\"\"\nTENSOR = 4  # of 8\nREMAT = 'full'\n", "run.py");
  ASSERT_EQ(read.settings.size(), 2U);
  EXPECT_EQ(read.settings[0].values, (std::vector<std::string>{"4"}));
  EXPECT_EQ(read.settings[0].where.line, 5);
  EXPECT_EQ(read.settings[1].values, (std::vector<std::string>{"full"}));
}

TEST(LaunchWriting, ATextIsQuotedForEveryFormat) {
  EXPECT_EQ(quoted_text("a\"b\\c\nd\x01"), "\"a\\\"b\\\\c\\nd\\u0001\"");
  EXPECT_EQ(quoted_text("\xc3\xa9"), "\"\xc3\xa9\"");
  EXPECT_EQ(comment_line("a\nrm -rf /"), "a\\x0arm -rf /");
}

TEST(LaunchWriting, NamesOfTpuSlicesCountChipsOrTensorCores) {
  struct Case {
    const char* chip;
    std::int64_t chips;
    const char* name;
  };
  for (const Case& c :
       {Case{"tpu-v5p", 8960, "v5p-17920"}, Case{"tpu-v6e", 256, "v6e-256"}, Case{"tpu-v5e", 256, "v5litepod-256"},
        Case{"tpu-v7", 64, "tpu7x-128"}, Case{"tpu-v4", 64, "v4-128"}}) {
    const auto names = tpu_names(Catalog().load(CatalogKind::kHardware, c.chip));
    ASSERT_TRUE(names.has_value()) << c.chip;
    EXPECT_EQ(tpu_type(*names, c.chips), c.name);
  }
}

// GKE: a slice of v5e within a host (8 chips, 2x4) is one node of 8; a larger one has nodes of 4 (ct5lp-hightpu-4t).
TEST(LaunchWriting, PodsOfTpuSlicesAreNodesOfTheirPools) {
  struct Case {
    const char* chip;
    std::int64_t chips;
    const char *pods, *limit;
  };
  const LaunchScript script{.head = "#!/bin/bash\n", .command = "true\n"};
  for (const Case& c : {Case{"tpu-v5e", 8, "parallelism: 1\n", "google.com/tpu: 8\n"},
                        Case{"tpu-v5e", 64, "parallelism: 16\n", "google.com/tpu: 4\n"},
                        Case{"tpu-v6e", 16, "parallelism: 4\n", "google.com/tpu: 4\n"},
                        Case{"tpu-v5p", 64, "parallelism: 16\n", "google.com/tpu: 4\n"}}) {
    const HardwareSpec hw = test::shipped_chip(c.chip);
    const Slice slice{};
    const LaunchMachine machine{hw, slice, c.chips, tpu_names(Catalog().load(CatalogKind::kHardware, c.chip))};
    const std::string text = on_cluster(LaunchCluster::kGkeTpu, machine, script, {});
    EXPECT_NE(text.find(c.pods), std::string::npos) << c.chip << " x " << c.chips << "\n" << text;
    EXPECT_NE(text.find(c.limit), std::string::npos) << text;
    const std::string group = on_cluster(LaunchCluster::kLeaderWorkerSet, machine, script, {});
    EXPECT_NE(group.find("cloud.google.com/gke-tpu-accelerator"), std::string::npos) << group;
  }
}

// Servers of one array that share a directory: what one writes, another does not read half written.
TEST(LaunchWriting, ServersOfAnArrayWriteFilesOfTheirOwn) {
  const LaunchScript script{.head = "#!/bin/bash\ncat > llm_api.yaml <<'END'\nEND\n",
                            .command = "trtllm-serve m --extra_llm_api_options llm_api.yaml\n",
                            .servers = 2,
                            .file = "llm_api.yaml"};
  const HardwareSpec hw = test::shipped_chip("h100-sxm");
  const Slice slice{};
  const std::string text = on_cluster(LaunchCluster::kSlurm, {hw, slice, 16}, script, {});
  EXPECT_EQ(text.find("llm_api.yaml"), std::string::npos) << text;
  EXPECT_NE(text.find("cat > llm_api-${SLURM_ARRAY_TASK_ID:-1}.yaml"), std::string::npos) << text;
}

// Without layernorm or moe_act only the attention is recomputed (Megatron-LM d98e8a6 transformer_config.py,
// recompute_modules, default core_attn), which under delayed scaling is all that its check lets through.
TEST(LaunchReading, RecomputedAttentionAloneIsNoRecomputeOfNorms) {
  const auto remat = [](const std::string& more) {
    const std::string text =
        "torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 1 --bf16 "
        "--recompute-granularity selective" +
        more;
    return layout_in(text, "run.sh", "llama3-8b", 8).reading.terms.word("remat").value_or("open");
  };
  EXPECT_EQ(remat(""), "selective");
  EXPECT_EQ(remat(" --fp8-format hybrid"), "none");
  EXPECT_EQ(remat(" --fp8-format hybrid --recompute-modules core_attn"), "none");
  EXPECT_EQ(remat(" --fp8-format hybrid --recompute-modules core_attn layernorm"), "selective");
  EXPECT_EQ(remat(" --fp8-format hybrid --fp8-recipe tensorwise"), "selective");
  EXPECT_EQ(remat(" --fp8-format hybrid --recompute-modules layernorm mlp"), "mlp");
}

// Scales of 8-bit operands by the argument of each framework, and by its absence: Megatron-LM d98e8a6
// transformer_config.py (fp8_recipe, "delayed"), Megatron-Bridge 067f987 mixed_precision.py, torchtitan v0.2.2
// job_config.py (recipe_name, None: of the tensor), maxtext e591f30 quantizations.py, accelerate 16cb6eb accelerator.py
// (of several back ends whichever is installed).
TEST(LaunchReading, ScalesOfEightBitOperands) {
  const auto scaling = [](const std::string& text, const std::string& file) {
    const ImportedLayout read = layout_in(text, file, "llama3-8b", 8);
    EXPECT_EQ(read.reading.terms.word("precision"), "fp8") << text;
    return read.reading.terms.word("scaling").value_or("open");
  };
  const auto megatron = [&](const std::string& more) {
    return scaling("torchrun --nproc_per_node 8 pretrain_gpt.py --micro-batch-size 1 --bf16 --fp8-format hybrid" + more,
                   "run.sh");
  };
  EXPECT_EQ(megatron(""), "delayed");
  EXPECT_EQ(megatron(" --fp8-recipe tensorwise"), "tensorwise");
  EXPECT_EQ(megatron(" --fp8-recipe blockwise"), "blockwise");
  EXPECT_EQ(megatron(" --fp8-recipe mxfp8"), "blockwise");
  EXPECT_EQ(megatron(" --fp8-recipe custom"), "open");
  const auto bridge = [&](const std::string& name) {
    return scaling(
        "model:\n  seq_length: 4096\ntrain:\n  micro_batch_size: 1\n  global_batch_size: 16\nmixed_precision: " + name +
            "\n",
        "recipe.yaml");
  };
  EXPECT_EQ(bridge("bf16_with_fp8_current_scaling_mixed"), "tensorwise");
  EXPECT_EQ(bridge("bf16_with_fp8_delayed_scaling_mixed"), "delayed");
  EXPECT_EQ(bridge("bf16_with_fp8_subchannel_scaling_mixed"), "blockwise");
  EXPECT_EQ(bridge("bf16_with_mxfp8_mixed"), "blockwise");
  const auto titan = [&](const std::string& converter, const std::string& recipe) {
    return scaling("[model]\nconverters = [\"quantize.linear." + converter +
                       "\"]\n[parallelism]\ndata_parallel_shard_degree = 8\n" + recipe,
                   "train.toml");
  };
  EXPECT_EQ(titan("float8", ""), "tensorwise");
  EXPECT_EQ(titan("float8", "[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n"), "rowwise");
  EXPECT_EQ(titan("float8", "[quantize.linear.float8]\nrecipe_name = \"rowwise_with_gw_hp\"\n"), "open");
  EXPECT_EQ(titan("mx", ""), "blockwise");
  EXPECT_EQ(titan("mx", "[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n"), "blockwise");
  const auto maxtext = [&](const std::string& name) {
    return scaling(
        "per_device_batch_size: 1.0\nmax_target_length: 4096\nici_fsdp_parallelism: -1\nquantization: " + name + "\n",
        "config.yml");
  };
  EXPECT_EQ(maxtext("fp8"), "delayed");
  EXPECT_EQ(maxtext("te_fp8_currentscaling"), "tensorwise");
  EXPECT_EQ(maxtext("te_mxfp8"), "blockwise");
  EXPECT_EQ(maxtext("fp8_full"), "open");
  const auto accelerate = [&](const std::string& more) {
    return scaling("distributed_type: FSDP\nnum_processes: 8\nmixed_precision: fp8\n" + more, "fsdp.yaml");
  };
  EXPECT_EQ(accelerate(""), "open");
  EXPECT_EQ(accelerate("fp8_config:\n  backend: TE\n"), "delayed");
  EXPECT_EQ(accelerate("fp8_config:\n  backend: AO\n"), "tensorwise");
}

// Converters of experts alone say nothing of the other matmuls, and are no figure that nobody reads.
TEST(LaunchReading, ConvertersThatAreNotKnownAreNotNeutral) {
  const ImportedLayout read = layout_in(
      "[model]\nconverters = [\"quantize.grouped_mm.float8\"]\n[parallelism]\ndata_parallel_shard_degree = 8\n"
      "[quantize.linear.float8]\nenable_fsdp_float8_all_gather = true\n",
      "train.toml", "llama3-8b", 8);
  std::vector<std::string> unread;
  for (const LaunchSetting& setting : read.reading.unread) unread.push_back(setting.key);
  EXPECT_EQ(unread,
            (std::vector<std::string>{"model.converters", "quantize.linear.float8.enable_fsdp_float8_all_gather"}));
}

// Experts are cast by a converter of their own (pytorch/torchtitan v0.2.2 components/quantization/float8.py); without
// it they stay in 16 bits, which no precision of a plan says.
TEST(LaunchReading, ExpertsInEightBitsHaveAConverter) {
  const auto precision = [](const std::string& converters) {
    const ImportedLayout read =
        layout_in("[model]\nconverters = [" + converters + "]\n[parallelism]\ndata_parallel_shard_degree = 8\n",
                  "train.toml", "qwen3-30b-a3b", 8);
    return read.reading.terms.word("precision").value_or("open");
  };
  EXPECT_EQ(precision(R"("quantize.linear.float8", "quantize.grouped_mm.float8")"), "fp8");
  EXPECT_EQ(precision(R"("quantize.grouped_mm.mx", "quantize.linear.mx")"), "fp8");
  EXPECT_EQ(precision(R"("quantize.linear.float8")"), "open");
  EXPECT_EQ(precision(R"("quantize.grouped_mm.float8")"), "open");
}

// TRL's own example of adapters: rank 32 on queries and values of a base in 4 bits.
TEST(LaunchReading, AdaptersOfPeft) {
  const ImportedLayout read = layout_in(R"(#!/bin/bash
accelerate launch --num_machines 1 --num_processes 8 train.py --model_name_or_path meta-llama/Meta-Llama-3-8B \
  --max_length 2048 --per_device_train_batch_size 2 --gradient_accumulation_steps 4 \
  --use_peft --lora_r 32 --lora_alpha 16 --lora_target_modules q_proj v_proj --load_in_4bit
)",
                                        "run.sh", "llama3-8b");
  ASSERT_TRUE(read.tune);
  EXPECT_EQ(read.tune->rank, 32);
  EXPECT_EQ(read.tune->targets, kLoraQ | kLoraV);
  EXPECT_EQ(read.tune->base, BaseFormat::kNf4);
  EXPECT_TRUE(read.reading.unread.empty());
}

// Fused modules of Megatron Bridge's LoRA: queries, keys and values, gate and up. Its rank where none is said is 32.
TEST(LaunchReading, AdaptersOfMegatronBridge) {
  const ImportedLayout read = layout_in(R"(model:
  tensor_model_parallel_size: 2
  seq_length: 4096
train:
  micro_batch_size: 1
  global_batch_size: 16
peft:
  _target_: megatron.bridge.peft.lora.LoRA
  target_modules: [linear_qkv, linear_fc1]
  alpha: 16
)",
                                        "recipe.yaml", "llama3-8b", 8);
  ASSERT_TRUE(read.tune);
  EXPECT_EQ(read.tune->rank, 32);
  EXPECT_EQ(read.tune->targets, kLoraQ | kLoraK | kLoraV | kLoraGate | kLoraUp);
  EXPECT_FALSE(read.tune->base);
}

TEST(LaunchReading, AnUnknownModuleIsAProblemAtItsLine) {
  try {
    layout_in(
        "peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n  target_modules: [linear_kqv]\n"
        "model:\n  seq_length: 4096\n",
        "recipe.yaml", "llama3-8b", 8);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().front().where.line, 3);
    EXPECT_NE(error.diagnostics().front().hint.find("linear_qkv"), std::string::npos);
  }
}

// TRL's lora_target_modules is None, and PEFT then takes q_proj and v_proj of Llama and its like
// (huggingface/peft 00073fe src/peft/utils/constants.py); Megatron Bridge's LoRA takes all four fused modules.
TEST(LaunchReading, AdaptersOnWhatTheFrameworkTakesWhereNoModulesAreSaid) {
  const std::string tail =
      " train.py --model_name_or_path meta-llama/Meta-Llama-3-8B --max_length 2048 --per_device_train_batch_size 2 "
      "--use_peft --load_in_4bit";
  for (const std::string command :
       {"accelerate launch --num_machines 1 --num_processes 8", "deepspeed --num_nodes 1 --num_gpus 8"}) {
    const ImportedLayout read = layout_in("#!/bin/bash\n" + command + tail + "\n", "run.sh", "llama3-8b");
    ASSERT_TRUE(read.tune) << command;
    EXPECT_EQ(read.tune->targets, kLoraQ | kLoraV) << command;
    const auto& defaults = read.reading.defaults;
    EXPECT_NE(std::find(defaults.begin(), defaults.end(), "adapters on q,v"), defaults.end()) << command;
    const ImportedLayout open =
        layout_in("#!/bin/bash\n" + command + tail + " --lora_target_modules $MODULES\n", "run.sh", "llama3-8b");
    EXPECT_EQ(std::find(open.reading.defaults.begin(), open.reading.defaults.end(), "adapters on q,v"),
              open.reading.defaults.end());
    EXPECT_EQ(open.reading.open.size(), 1U);
  }
  const ImportedLayout bridge = layout_in(
      "model:\n  seq_length: 4096\ntrain:\n  micro_batch_size: 1\n  global_batch_size: 16\n"
      "peft:\n  _target_: megatron.bridge.peft.lora.LoRA\n",
      "recipe.yaml", "llama3-8b", 8);
  ASSERT_TRUE(bridge.tune);
  EXPECT_EQ(bridge.tune->targets, kLoraAttention | kLoraMlp);
}

// Phi-3 has one matrix for queries, keys and values and one for gate and up (huggingface/transformers 06053b8
// modular_phi3.py); PEFT takes nothing of phi3 by itself (00073fe constants.py), of gpt_neox its one matrix.
TEST(LaunchReading, AdaptersByTheNamesOfTheFamily) {
  const std::string command =
      "accelerate launch --num_machines 1 --num_processes 8 train.py --model_name_or_path m --max_length 2048 "
      "--per_device_train_batch_size 2 --use_peft";
  const auto read = [&](const std::string& modules, std::string_view family) {
    return layout_in("#!/bin/bash\n" + command + modules + "\n", "run.sh", "llama3-8b", {}, 1, family);
  };
  EXPECT_EQ(read(" --lora_target_modules qkv_proj gate_up_proj", "phi3").tune->targets,
            kLoraQ | kLoraK | kLoraV | kLoraGate | kLoraUp);
  EXPECT_EQ(read(" --lora_target_modules q_proj gate_up_proj", "glm4").tune->targets, kLoraQ | kLoraGate | kLoraUp);
  EXPECT_EQ(read("", "gpt_neox").tune->targets, kLoraQ | kLoraK | kLoraV);
  EXPECT_EQ(read("", "qwen2").tune->targets, kLoraQ | kLoraV);
  EXPECT_THROW(read(" --lora_target_modules q_proj", "phi3"), UserError);
  try {
    read("", "phi3");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().front().where.line, 2);
    EXPECT_NE(error.diagnostics().front().hint.find("qkv_proj (q,k,v)"), std::string::npos)
        << error.diagnostics().front().hint;
  }
}

// Names of checkpoints that come with their own code, which are not Llama's.
TEST(LaunchReading, FamiliesWithOtherNamesThanLlamas) {
  const LaunchFramework& accelerate = launch_framework("accelerate");
  struct Names {
    const char* family;
    std::uint8_t targets;
    const char* modules;
  };
  constexpr std::uint8_t kQkv = kLoraQ | kLoraK | kLoraV;
  for (const Names& each :
       {Names{"llama", kLoraQ | kLoraV | kLoraGate, "q_proj v_proj gate_proj"},
        Names{"exaone", kLoraO | kLoraGate | kLoraUp | kLoraDown, "out_proj c_fc_0 c_fc_1 c_proj"},
        Names{"baichuan", kQkv | kLoraO, "o_proj W_pack"},
        Names{"internlm2", kQkv | kLoraO | kLoraMlp, "wo w1 w3 w2 wqkv"},
        Names{"qwen", kQkv | kLoraO | kLoraMlp, "w2 w1 c_proj c_attn"},
        Names{"chatglm", kQkv | kLoraO | kLoraGate | kLoraUp, "dense dense_h_to_4h query_key_value"},
        Names{"phi3small", kLoraGate | kLoraUp | kLoraDown, "down_proj up_proj"},
        Names{"dbrx", kQkv | kLoraO, "out_proj Wqkv"}}) {
    EXPECT_EQ(modules_of(accelerate, each.family, each.targets), each.modules) << each.family;
  }
  EXPECT_THROW(modules_of(accelerate, "qwen", kLoraO), UserError);  // whose c_proj is the MLP's too
  try {
    static_cast<void>(modules_of(accelerate, "longcat_flash", kLoraQ));
    FAIL();
  } catch (const UserError& error) {
    EXPECT_NE(error.diagnostics().front().message.find("modules of longcat_flash are not known"), std::string::npos);
  }
}

// Each spelling of no and of yes that YAML and argparse take.
TEST(LaunchReading, ASwitchIsOffInEverySpelling) {
  const std::string script =
      "accelerate launch --num_processes 8 train.py --model_name_or_path meta-llama/Meta-Llama-3-8B --max_length 2048"
      " --per_device_train_batch_size 1 --use_peft --load_in_8bit true --load_in_4bit ";
  for (const std::string no : {"false", "False", "FALSE", "no", "No", "off", "0"}) {
    EXPECT_EQ(layout_in(script + no + "\n", "run.sh", "llama3-8b", 8).tune->base, BaseFormat::kInt8) << no;
  }
  for (const std::string off : {"no", "Off", "FALSE"}) {
    const ImportedLayout read = layout_in(
        "distributed_type: FSDP\nnum_processes: 8\nfsdp_config:\n  fsdp_activation_checkpointing: yes\n"
        "  fsdp_reshard_after_forward: " +
            off + "\n",
        "fsdp.yaml", "llama3-8b");
    EXPECT_EQ(read.pins.zero, 2) << off;
    EXPECT_EQ(read.pins.remat, Remat::kFull) << off;
  }
}

// ModelConfig of TRL refuses both (huggingface/trl bc13ae6 trl/trainer/model_config.py, __post_init__).
TEST(LaunchReading, ABaseHasOneFormat) {
  const std::string script =
      "accelerate launch --num_processes 8 train.py --model_name_or_path meta-llama/Meta-Llama-3-8B --max_length 2048"
      " --per_device_train_batch_size 1 --use_peft";
  const auto read = [&](const std::string& more) { return layout_in(script + more + "\n", "run.sh", "llama3-8b", 8); };
  EXPECT_EQ(read(" --load_in_8bit").tune->base, BaseFormat::kInt8);
  EXPECT_EQ(read(" --load_in_4bit").tune->base, BaseFormat::kNf4);
  const ImportedLayout off = read(" --load_in_4bit False --load_in_8bit true");
  EXPECT_EQ(off.tune->base, BaseFormat::kInt8);
  EXPECT_TRUE(off.reading.unread.empty());
  EXPECT_THROW(read(" --load_in_8bit --load_in_4bit"), UserError);
}

}  // namespace
}  // namespace scalecalc
