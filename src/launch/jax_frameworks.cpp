// MaxText, and plain JAX.
#include <array>

#include "launch/framework.h"

namespace scalecalc {
namespace {

constexpr RowUse kWriteOnly = RowUse::kWritten;
constexpr RowUse kReadOnly = RowUse::kRead;

/// The mesh of both: expert ranks take theirs from the fsdp axis, and all axes but data shard the weights.
constexpr std::array kMeshRows{
    LaunchRow{"", "", "zero=3", "fsdp_axis>1"},
    LaunchRow{"", "", "zero=3", "ep>1"},
    LaunchRow{"", "", "zero=3", "cp>1"},
    LaunchRow{"", "data_axis*fsdp_axis*ep*tp*cp*pp/chips/cores"},
    LaunchRow{"", "fsdp*cores/fsdp_axis/ep", {}, "zero=3"},
    LaunchRow{"", "dp/data_axis", {}, "zero=3"},
    LaunchRow{"", "dp*cores/data_axis", {}, "zero<3"},
    LaunchRow{"", "etp/tp", {}, "moe=on"},
    LaunchRow{"", "", "zero=1", "optimizer_shards=on"},
    LaunchRow{"", "", "zero=0"},
    LaunchRow{"", "", "replicas=1", "zero=1"},
};

template <std::size_t kA, std::size_t kB, std::size_t kC>
constexpr auto joined(const std::array<LaunchRow, kA>& a, const std::array<LaunchRow, kB>& b,
                      const std::array<LaunchRow, kC>& c) {
  std::array<LaunchRow, kA + kB + kC> out{};
  for (std::size_t i = 0; i < kA; ++i) out[i] = a[i];
  for (std::size_t i = 0; i < kB; ++i) out[kA + i] = b[i];
  for (std::size_t i = 0; i < kC; ++i) out[kA + kB + i] = c[i];
  return out;
}

constexpr std::array kMaxTextAxes{
    LaunchRow{"base_config", "'base.yml'", {}, {}, {}, kWriteOnly},
    LaunchRow{"model_name", "@model", {}, {}, {}, kWriteOnly},
    LaunchRow{"hardware", "'gpu'", {}, "torus=off", {}, kWriteOnly},
    LaunchRow{"max_target_length", "seq", {}, {}, "2048"},
    LaunchRow{"dcn_data_parallelism", "dcn_data", {}, {}, "1"},
    LaunchRow{"dcn_fsdp_parallelism", "dcn_fsdp", {}, {}, "1"},
    LaunchRow{"dcn_context_parallelism", "dcn_cp", {}, {}, "1"},
    LaunchRow{"dcn_tensor_parallelism", "dcn_tp", {}, "sp!on", {}, kWriteOnly},
    LaunchRow{"dcn_tensor_sequence_parallelism", "dcn_tp", {}, "sp=on", {}, kWriteOnly},
    LaunchRow{"dcn_tensor_parallelism", "dcn_tp", {}, {}, "1", kReadOnly},
    LaunchRow{"dcn_pipeline_parallelism", "dcn_pp", {}, {}, "1"},
    LaunchRow{"dcn_expert_parallelism", "'1'", {}, {}, {}, kWriteOnly},
    LaunchRow{"dcn_expert_parallelism", "dcn_ep", {}, {}, "1", kReadOnly},
    LaunchRow{"ici_data_parallelism", "data_axis/dcn_data", {}, {}, "1"},
    LaunchRow{"ici_fsdp_parallelism", "fsdp_axis/dcn_fsdp"},
    LaunchRow{"ici_context_parallelism", "cp/dcn_cp", {}, {}, "1"},
    LaunchRow{"ici_tensor_parallelism", "tp/dcn_tp", {}, "sp!on", {}, kWriteOnly},
    LaunchRow{"ici_tensor_sequence_parallelism", "tp/dcn_tp", {}, "sp=on", {}, kWriteOnly},
    LaunchRow{"ici_tensor_parallelism", "tensor/dcn_tp", {}, {}, "1", kReadOnly},
    LaunchRow{"ici_tensor_sequence_parallelism", "tensor_sequence/dcn_tp", {}, {}, "1", kReadOnly},
    LaunchRow{"", "", "sp=on", "tensor_sequence>1"},
    LaunchRow{"", "", "sp=off"},
    LaunchRow{"", "tp/tensor/tensor_sequence"},
    LaunchRow{"ici_pipeline_parallelism", "pp/dcn_pp", {}, {}, "1"},
    LaunchRow{"ici_expert_parallelism", "ep/dcn_ep", {}, {}, "1"},
    LaunchRow{"shard_optimizer_over_data", "'true'", "optimizer_shards=on", "zero=1"},
    LaunchRow{"shard_optimizer_over_data", "'true'", "optimizer_shards=on", {}, {}, kReadOnly},
    LaunchRow{"shard_optimizer_over_data", "'false'", "optimizer_shards=off", {}, {}, kReadOnly},
    LaunchRow{"shard_optimizer_over_data", "", "optimizer_shards=off"},
};

constexpr std::array kMaxTextRest{
    LaunchRow{"per_device_batch_size", "mb*replicas*shards/chips/cores", {}, "pp=1", "12"},
    LaunchRow{"per_device_batch_size", "mb*ga*replicas*shards/chips/cores", {}, "pp>1", "12"},
    LaunchRow{"gradient_accumulation_steps", "ga", {}, "pp=1", "1"},
    LaunchRow{"num_pipeline_microbatches", "ga", {}, "pp>1", "pp"},
    LaunchRow{"num_layers_per_pipeline_stage", "layers/pp/vpp", {}, "pp>1", "1"},
    LaunchRow{"num_pipeline_repeats", "vpp", {}, "pp>1"},
    LaunchRow{"", "", "vpp=1", "pp=1"},
    LaunchRow{"", "", "schedule=gpipe", "pp>1"},
    LaunchRow{"context_parallel_strategy", "'all_gather'", "cp_comm=all-gather", "cp>1"},
    LaunchRow{"context_parallel_strategy", "'ring'", "cp_comm=ring", "cp>1"},
    LaunchRow{"context_parallel_strategy", "'ulysses'", "cp_comm=ulysses", "cp>1"},
    LaunchRow{"context_parallel_strategy", "", "cp_comm=all-gather", "cp>1"},
    LaunchRow{"use_batch_split_schedule", "'true'", "ep_overlap=on", "ep>1"},
    LaunchRow{"use_batch_split_schedule", "", "ep_overlap=off"},
    LaunchRow{"remat_policy", "'none'", "remat=none", "offload_activations!on"},
    LaunchRow{"remat_policy", "'save_qkv_proj'", "remat=selective", "offload_activations!on"},
    LaunchRow{"remat_policy", "'full'", "remat=full", "offload_activations!on"},
    LaunchRow{"remat_policy", "'none'", "remat=none", {}, {}, kReadOnly},
    LaunchRow{"remat_policy", "'save_qkv_proj'", "remat=selective", {}, {}, kReadOnly},
    LaunchRow{"remat_policy", "'full'", "remat=full", {}, {}, kReadOnly},
    LaunchRow{"remat_policy", "'custom'", {}, "remat=full,offload_activations=on", {}, kWriteOnly},
    LaunchRow{"decoder_layer_input", "'offload'", "offload_activations=on,remat=full"},
    LaunchRow{"remat_policy", "", "remat=full"},
    LaunchRow{"", "", "remat_layers=0"},
    LaunchRow{"", "", "offload_layers=0"},
    LaunchRow{"optimizer_memory_host_offload", "'true'", "offload_optimizer=on"},
    LaunchRow{"parameter_memory_host_offload", "'true'", "offload_weights=on"},
    LaunchRow{"num_vocab_tiling", "'8'", "loss=chunked"},
    LaunchRow{"num_vocab_tiling", "", "loss=whole"},
    LaunchRow{"dtype", "'bfloat16'", "precision=bf16"},
    LaunchRow{"dtype", "'float32'", "precision=fp32"},
    LaunchRow{"dtype", "'bfloat16'", {}, "precision=fp8", {}, kWriteOnly},
    LaunchRow{"dtype", "'bfloat16'", {}, "precision=int8", {}, kWriteOnly},
    LaunchRow{"dtype", "", "precision=bf16"},
    LaunchRow{"quantization", "'fp8'", "precision=fp8"},
    LaunchRow{"quantization", "'fp8_full'", "precision=fp8", {}, {}, kReadOnly},
    LaunchRow{"quantization", "'int8'", "precision=int8"},
    LaunchRow{"", "", "grad_overlap=on"},
};

// Models of the catalog that MaxText knows by a name of its own: AI-Hypercomputer/maxtext e591f30, configs/models and
// configs/types.py, ModelName.
constexpr std::array kMaxTextModels{
    LaunchModelName{"deepseek-v2-lite", "deepseek2-16b"},
    LaunchModelName{"deepseek-v2", "deepseek2-236b"},
    LaunchModelName{"deepseek-v3", "deepseek3-671b"},
    LaunchModelName{"deepseek-v3.2", "deepseek3.2-671b"},
    LaunchModelName{"gemma-1-2b", "gemma-2b"},
    LaunchModelName{"gemma-1-7b", "gemma-7b"},
    LaunchModelName{"gemma-2-2b", "gemma2-2b"},
    LaunchModelName{"gemma-2-9b", "gemma2-9b"},
    LaunchModelName{"gemma-2-27b", "gemma2-27b"},
    LaunchModelName{"gemma-3-4b", "gemma3-4b"},
    LaunchModelName{"gemma-3-12b", "gemma3-12b"},
    LaunchModelName{"gemma-3-27b", "gemma3-27b"},
    LaunchModelName{"gpt-oss-20b", "gpt-oss-20b"},
    LaunchModelName{"gpt-oss-120b", "gpt-oss-120b"},
    LaunchModelName{"gpt3-175b", "gpt3-175b"},
    LaunchModelName{"kimi-k2", "kimi-k2-1t"},
    LaunchModelName{"llama2-7b", "llama2-7b"},
    LaunchModelName{"llama2-13b", "llama2-13b"},
    LaunchModelName{"llama2-70b", "llama2-70b"},
    LaunchModelName{"llama3-8b", "llama3-8b"},
    LaunchModelName{"llama3-70b", "llama3-70b"},
    LaunchModelName{"llama3.1-8b", "llama3.1-8b"},
    LaunchModelName{"llama3.1-70b", "llama3.1-70b"},
    LaunchModelName{"llama3.1-405b", "llama3.1-405b"},
    LaunchModelName{"llama3.3-70b", "llama3.3-70b"},
    LaunchModelName{"llama4-scout", "llama4-17b-16e"},
    LaunchModelName{"llama4-maverick", "llama4-17b-128e"},
    LaunchModelName{"mistral-7b-v0.1", "mistral-7b"},
    LaunchModelName{"mixtral-8x7b", "mixtral-8x7b"},
    LaunchModelName{"mixtral-8x22b", "mixtral-8x22b"},
    LaunchModelName{"olmo-3-7b", "olmo3-7b"},
    LaunchModelName{"olmo-3-32b", "olmo3-32b"},
    LaunchModelName{"qwen2.5-1.5b", "qwen2.5-1.5b"},
    LaunchModelName{"qwen2.5-7b", "qwen2.5-7b"},
    LaunchModelName{"qwen2.5-14b", "qwen2.5-14b"},
    LaunchModelName{"qwen3-0.6b", "qwen3-0.6b"},
    LaunchModelName{"qwen3-1.7b", "qwen3-1.7b"},
    LaunchModelName{"qwen3-4b", "qwen3-4b"},
    LaunchModelName{"qwen3-8b", "qwen3-8b"},
    LaunchModelName{"qwen3-14b", "qwen3-14b"},
    LaunchModelName{"qwen3-32b", "qwen3-32b"},
    LaunchModelName{"qwen3-30b-a3b", "qwen3-30b-a3b"},
    LaunchModelName{"qwen3-235b-a22b", "qwen3-235b-a22b"},
    LaunchModelName{"qwen3-coder-480b-a35b", "qwen3-480b-a35b"},
    LaunchModelName{"qwen3-next-80b-a3b", "qwen3-next-80b-a3b"},
    LaunchModelName{"qwen3.5-35b-a3b", "qwen3.5-35b-a3b"},
    LaunchModelName{"qwen3.5-397b-a17b", "qwen3.5-397b-a17b"},
};

constexpr auto kMaxTextRows = joined(kMaxTextAxes, kMeshRows, kMaxTextRest);

constexpr std::array kMaxTextLimits{
    LaunchLimit{"tune=lora", "adapters are of another trainer, post_train.sft, whose files are not written here",
                "AI-Hypercomputer/maxtext e591f30: configs/post_train/sft.yml, lora"},
    LaunchLimit{"zero<3,ep>1", "expert ranks shard all weights: embed lies on the expert axis too",
                "AI-Hypercomputer/maxtext e591f30: configs/base.yml, logical_axis_rules"},
    LaunchLimit{"zero<3,cp>1", "context ranks shard all weights: embed lies on the context axis too",
                "AI-Hypercomputer/maxtext e591f30: configs/base.yml, logical_axis_rules"},
    LaunchLimit{"expert_axis=0", "expert ranks are taken from the fsdp axis, which they do not divide",
                "AI-Hypercomputer/maxtext e591f30: configs/base.yml, mesh_axes"},
    LaunchLimit{"dcn_tp>1", "tensor ranks lie within a slice: across slices they are marked never recommended",
                "AI-Hypercomputer/maxtext e591f30: configs/base.yml, dcn_tensor_parallelism"},
};

constexpr std::array<std::string_view, 28> kMaxTextNeutral{"megablox",
                                                           "sparse_matmul",
                                                           "scan_layers",
                                                           "max_segments_per_seq",
                                                           "base_config",
                                                           "model_name",
                                                           "hardware",
                                                           "run_name",
                                                           "base_output_directory",
                                                           "dataset_*",
                                                           "tokenizer_*",
                                                           "steps",
                                                           "enable_checkpointing*",
                                                           "async_checkpointing",
                                                           "checkpoint_*",
                                                           "learning_rate*",
                                                           "log_*",
                                                           "profiler*",
                                                           "enable_goodput*",
                                                           "skip_first_n*",
                                                           "max_checkify",
                                                           "reuse_example_batch",
                                                           "monitor_goodput",
                                                           "gcs_metrics",
                                                           "attention",
                                                           "-*",
                                                           "use_iota_embed",
                                                           "logits_dot_in_fp32"};

constexpr std::array kJaxAxes{
    LaunchRow{"SEQUENCE", "seq"},
    LaunchRow{"MICROBATCH", "mb"},
    LaunchRow{"ACCUMULATE", "ga"},
    LaunchRow{"DATA", "data_axis"},
    LaunchRow{"FSDP", "fsdp_axis"},
    LaunchRow{"EXPERT", "ep"},
    LaunchRow{"CONTEXT", "cp"},
    LaunchRow{"TENSOR", "tp"},
    LaunchRow{"SHARD_SEQUENCE", "'True'", "sp=on"},
    LaunchRow{"SHARD_SEQUENCE", "'False'", "sp=off"},
    LaunchRow{"SHARD_SEQUENCE", "'False'", {}, "tp=1", {}, kWriteOnly},
    LaunchRow{"SHARD_OPTIMIZER", "'True'", "optimizer_shards=on", "zero=1"},
    LaunchRow{"SHARD_OPTIMIZER", "'True'", "optimizer_shards=on", {}, {}, kReadOnly},
    LaunchRow{"SHARD_OPTIMIZER", "'False'", {}, "zero!1", {}, kWriteOnly},
    LaunchRow{"SHARD_OPTIMIZER", "'False'", "optimizer_shards=off", {}, {}, kReadOnly},
};

constexpr std::array kJaxRest{
    LaunchRow{"REMAT", "'none'", "remat=none"},
    LaunchRow{"REMAT", "'selective'", "remat=selective"},
    LaunchRow{"REMAT", "'full'", "remat=full"},
    LaunchRow{"DTYPE", "'bfloat16'", "precision=bf16"},
    LaunchRow{"DTYPE", "'float32'", "precision=fp32"},
    LaunchRow{"", "", "pp=1"},
    LaunchRow{"", "", "vpp=1"},
    LaunchRow{"", "", "cp_comm=all-gather", "cp>1"},
    LaunchRow{"", "", "remat_layers=0"},
    LaunchRow{"", "", "offload=none"},
    LaunchRow{"", "", "ep_overlap=off"},
    LaunchRow{"", "", "loss=whole"},
    LaunchRow{"", "", "grad_overlap=on"},
};

constexpr auto kJaxRows = joined(kJaxAxes, kMeshRows, kJaxRest);

constexpr std::array kJaxLimits{
    LaunchLimit{"pp>1", "a mesh of jax.jit has no pipeline", "jax.make_mesh, jax.sharding.PartitionSpec"},
    LaunchLimit{"cp_comm!all-gather,cp>1", "the compiler gathers keys and values over context ranks",
                "jax.sharding.PartitionSpec"},
    LaunchLimit{"zero=2", "gradients alone have no axis of the mesh", "jax.sharding.PartitionSpec"},
    LaunchLimit{"expert_axis=0", "expert ranks are taken from the fsdp axis, which they do not divide",
                "the mesh written here"},
    LaunchLimit{"zero<3,ep>1", "expert ranks are taken from the axis that shards weights", "the mesh written here"},
    LaunchLimit{"zero<3,cp>1", "context ranks shard the weights too", "the mesh written here"},
};

constexpr std::array kJaxFrameworks{
    LaunchFramework{.name = "maxtext",
                    .title = "MaxText",
                    .stack = "maxtext",
                    .format = LaunchFormat::kYaml,
                    .source = "AI-Hypercomputer/maxtext e591f30: src/maxtext/configs/base.yml, configs/types.py, "
                              "layers/decoders.py",
                    .command = "python3 -m maxtext.trainers.pre_train.train",
                    .script = "",
                    .file = "config.yml",
                    .rows = kMaxTextRows,
                    .limits = kMaxTextLimits,
                    .neutral = kMaxTextNeutral,
                    .naming = ModelNaming::kOwn,
                    .models = kMaxTextModels,
                    .yours = "run_name, base_output_directory, data, learning rate, steps"},
    LaunchFramework{.name = "jax",
                    .title = "plain JAX",
                    .stack = "",
                    .format = LaunchFormat::kPython,
                    .source = "jax-ml/jax: jax.make_mesh, jax.sharding.NamedSharding, jax.checkpoint_policies",
                    .command = "python3",
                    .script = "",
                    .file = "sharding.py",
                    .rows = kJaxRows,
                    .limits = kJaxLimits,
                    .neutral = {}},
};

}  // namespace

std::span<const LaunchFramework> jax_frameworks() { return kJaxFrameworks; }

}  // namespace scalecalc
