// Serving engines, and what deploys them in pools.
#include <array>

#include "launch/framework.h"

namespace scalecalc {
namespace {

constexpr RowUse kJustWritten = RowUse::kWritten;
constexpr RowUse kJustRead = RowUse::kRead;

constexpr std::array kVllmRows{
    LaunchRow{"env:REPLICAS", "replicas", {}, "moe=on,replicas>1"},
    LaunchRow{"env:REPLICAS", "replicas", {}, "moe=on", "1", kJustRead},
    LaunchRow{"--tensor-parallel-size", "tp*cp", {}, {}, "1"},
    LaunchRow{"-tp", "tp*cp", {}, {}, {}, kJustRead},
    LaunchRow{"--pipeline-parallel-size", "pp", {}, {}, "1"},
    LaunchRow{"-pp", "pp", {}, {}, {}, kJustRead},
    LaunchRow{"--decode-context-parallel-size", "cp", {}, "cp>1"},
    LaunchRow{"--decode-context-parallel-size", "cp", {}, {}, "1", kJustRead},
    LaunchRow{"-dcp", "cp", {}, {}, {}, kJustRead},
    LaunchRow{"--data-parallel-size", "adp", {}, "moe=on", "1"},
    LaunchRow{"--data-parallel-size", "replicas", {}, "moe=off", "1"},
    LaunchRow{"-dp", "adp", {}, "moe=on", {}, kJustRead},
    LaunchRow{"-dp", "replicas", {}, "moe=off", {}, kJustRead},
    LaunchRow{"", "", "adp=1", "moe=off"},
    LaunchRow{"--enable-expert-parallel", "'on'", "expert_ranks=on"},
    LaunchRow{"-ep", "'on'", "expert_ranks=on", {}, {}, kJustRead},
    LaunchRow{"--enable-expert-parallel", "", "expert_ranks=off"},
    LaunchRow{"", "etp", {}, "expert_ranks=on"},
    LaunchRow{"", "", "ep=1", "expert_ranks=off"},
    LaunchRow{"--max-num-seqs", "seqs"},
    LaunchRow{"--max-num-batched-tokens", "chunk"},
    LaunchRow{"--max-model-len", "longest"},
    LaunchRow{"--gpu-memory-utilization", "share/10000", {}, "share>0"},
    LaunchRow{"--gpu-memory-utilization", "share/10000", {}, {}, {}, kJustRead},
    LaunchRow{"--kv-cache-dtype", "'auto'", "kv=bf16"},
    LaunchRow{"--kv-cache-dtype", "'fp8'", "kv=fp8"},
    LaunchRow{"--kv-cache-dtype", "'fp8_e4m3'", "kv=fp8", {}, {}, kJustRead},
    LaunchRow{"--kv-cache-dtype", "'nvfp4'", "kv=nvfp4"},
    LaunchRow{"--enable-dbo", "'on'", "ep_overlap=on"},
    LaunchRow{"--all2all-backend", "'deepep_low_latency'", {}, "ep_overlap=on", {}, kJustWritten},
    LaunchRow{"--enable-dbo", "", "ep_overlap=off"},
    LaunchRow{"--speculative-config", "@speculation", {}, "speculative=on", {}, kJustWritten},
};

constexpr std::array<std::string_view, 23> kVllmNeutral{"--model",
                                                        "--host",
                                                        "--port",
                                                        "--served-model-name",
                                                        "--trust-remote-code",
                                                        "--tokenizer*",
                                                        "--dtype",
                                                        "--api-key",
                                                        "--disable-log*",
                                                        "--download-dir",
                                                        "--load-format",
                                                        "--seed",
                                                        "--enable-auto-tool*",
                                                        "--tool-call-parser",
                                                        "--reasoning-parser",
                                                        "--chat-template*",
                                                        "--distributed-executor-backend",
                                                        "--uvicorn*",
                                                        "--root-path",
                                                        "--all2all-backend",
                                                        "--allowed-*",
                                                        "--ssl-*",
                                                        "--data-parallel-*"};

constexpr std::array kSglangRows{
    LaunchRow{"--model-path", "@model", {}, {}, {}, kJustWritten},
    LaunchRow{"env:REPLICAS", "replicas", {}, "adp_on=on,replicas>1"},
    LaunchRow{"env:REPLICAS", "replicas", {}, "adp_on=on", "1", kJustRead},
    LaunchRow{"--tp-size", "tp*adp", {}, {}, "1"},
    LaunchRow{"--tp", "tp*adp", {}, {}, {}, kJustRead},
    LaunchRow{"--tensor-parallel-size", "tp*adp", {}, {}, {}, kJustRead},
    LaunchRow{"--pp-size", "pp", {}, {}, "1"},
    LaunchRow{"--pipeline-parallel-size", "pp", {}, {}, {}, kJustRead},
    LaunchRow{"--enable-dp-attention", "'on'", "adp_on=on"},
    LaunchRow{"--enable-dp-attention", "", "adp_on=off"},
    LaunchRow{"--dp-size", "adp", {}, "adp_on=on", "1"},
    LaunchRow{"--dp-size", "replicas", {}, "adp_on=off", "1"},
    LaunchRow{"--dp", "adp", {}, "adp_on=on", {}, kJustRead},
    LaunchRow{"--dp", "replicas", {}, "adp_on=off", {}, kJustRead},
    LaunchRow{"--data-parallel-size", "adp", {}, "adp_on=on", {}, kJustRead},
    LaunchRow{"--data-parallel-size", "replicas", {}, "adp_on=off", {}, kJustRead},
    LaunchRow{"", "", "adp=1", "adp_on=off"},
    LaunchRow{"", "", "cp=1"},
    LaunchRow{"--ep-size", "ep", {}, "moe=on", "1"},
    LaunchRow{"--ep", "ep", {}, {}, {}, kJustRead},
    LaunchRow{"--expert-parallel-size", "ep", {}, {}, {}, kJustRead},
    LaunchRow{"--max-running-requests", "seqs*adp"},
    LaunchRow{"--chunked-prefill-size", "chunk"},
    LaunchRow{"--context-length", "longest"},
    LaunchRow{"--mem-fraction-static", "share/10000", {}, "share>0"},
    LaunchRow{"--mem-fraction-static", "share/10000", {}, {}, {}, kJustRead},
    LaunchRow{"--kv-cache-dtype", "'auto'", "kv=bf16"},
    LaunchRow{"--kv-cache-dtype", "'fp8_e4m3'", "kv=fp8"},
    LaunchRow{"--moe-a2a-backend", "'deepep'", {}, "ep>1", {}, kJustWritten},
    LaunchRow{"--enable-two-batch-overlap", "'on'", "ep_overlap=on"},
    LaunchRow{"--enable-two-batch-overlap", "", "ep_overlap=off"},
};

constexpr std::array kSglangLimits{
    LaunchLimit{"cp>1", "contexts are not divided while decoding: --attn-cp-size is of prompts",
                "SGLang python/sglang/srt/server_args.py @bf186cf"},
    LaunchLimit{"speculative=on", "the algorithm of a draft is not said here: --speculative-algorithm",
                "SGLang python/sglang/srt/server_args.py @bf186cf"},
};

constexpr std::array<std::string_view, 18> kSglangNeutral{"--model-path",
                                                          "--model",
                                                          "--host",
                                                          "--port",
                                                          "--trust-remote-code",
                                                          "--tokenizer*",
                                                          "--served-model-name",
                                                          "--api-key",
                                                          "--log-*",
                                                          "--download-dir",
                                                          "--load-format",
                                                          "--random-seed",
                                                          "--node-rank",
                                                          "--nnodes",
                                                          "--dist-init-addr",
                                                          "--moe-a2a-backend",
                                                          "--tool-call-parser",
                                                          "--reasoning-parser"};

constexpr std::array kTrtllmRows{
    LaunchRow{"env:REPLICAS", "replicas", {}, "replicas>1"},
    LaunchRow{"env:REPLICAS", "replicas", {}, {}, "1", kJustRead},
    LaunchRow{"backend", "'pytorch'", {}, {}, {}, kJustWritten},
    LaunchRow{"tensor_parallel_size", "tp*adp", {}, {}, "1"},
    LaunchRow{"pipeline_parallel_size", "pp", {}, {}, "1"},
    LaunchRow{"enable_attention_dp", "'true'", "adp_on=on"},
    LaunchRow{"enable_attention_dp", "'false'", "adp_on=off"},
    LaunchRow{"enable_attention_dp", "", "adp_on=off"},
    LaunchRow{"", "", "tp=1", "adp_on=on"},
    LaunchRow{"", "", "adp=1", "adp_on=off"},
    LaunchRow{"", "", "cp=1"},
    LaunchRow{"moe_expert_parallel_size", "ep", {}, "moe=on"},
    LaunchRow{"moe_tensor_parallel_size", "etp", {}, "moe=on"},
    LaunchRow{"", "", "ep_overlap=off"},
    LaunchRow{"max_batch_size", "seqs"},
    LaunchRow{"max_num_tokens", "chunk"},
    LaunchRow{"enable_chunked_prefill", "'true'", {}, {}, {}, kJustWritten},
    LaunchRow{"max_seq_len", "longest"},
    LaunchRow{"kv_cache_config.free_gpu_memory_fraction", "share/10000", {}, "share>0"},
    LaunchRow{"kv_cache_config.free_gpu_memory_fraction", "share/10000", {}, {}, {}, kJustRead},
    LaunchRow{"kv_cache_config.dtype", "'auto'", "kv=bf16"},
    LaunchRow{"kv_cache_config.dtype", "'fp8'", "kv=fp8"},
};

constexpr std::array kTrtllmLimits{
    LaunchLimit{"cp>1", "contexts are not divided by an argument written here",
                "NVIDIA/TensorRT-LLM tensorrt_llm/mapping.py @05ebebb"},
    LaunchLimit{"speculative=on", "a draft model is not said here: speculative_config",
                "NVIDIA/TensorRT-LLM tensorrt_llm/llmapi/llm_args.py"},
};

constexpr std::array<std::string_view, 6> kTrtllmNeutral{"backend",           "cuda_graph_config.*",
                                                         "print_iter_log",    "cache_transceiver_config.*",
                                                         "trust_remote_code", "enable_chunked_prefill"};

constexpr std::string_view kVllmSource =
    "vllm-project/vllm: vllm/engine/arg_utils.py, vllm/config/parallel.py 00193b8, cache.py 002f10e";

constexpr std::array kEngineFrameworks{
    LaunchFramework{.name = "vllm",
                    .title = "vLLM",
                    .stack = "vllm",
                    .job = LaunchJob::kServing,
                    .format = LaunchFormat::kShell,
                    .source = kVllmSource,
                    .command = "vllm serve",
                    .script = "@model",
                    .rows = kVllmRows,
                    .limits = {},
                    .neutral = kVllmNeutral},
    LaunchFramework{.name = "sglang",
                    .title = "SGLang",
                    .stack = "sglang",
                    .job = LaunchJob::kServing,
                    .format = LaunchFormat::kShell,
                    .source = "sgl-project/sglang: python/sglang/srt/server_args.py @bf186cf",
                    .command = "python3 -m sglang.launch_server",
                    .script = "",
                    .rows = kSglangRows,
                    .limits = kSglangLimits,
                    .neutral = kSglangNeutral},
    LaunchFramework{.name = "trtllm",
                    .title = "TensorRT-LLM",
                    .stack = "trtllm",
                    .job = LaunchJob::kServing,
                    .format = LaunchFormat::kYaml,
                    .source = "NVIDIA/TensorRT-LLM: tensorrt_llm/llmapi/llm_args.py @0004396",
                    .command = "trtllm-serve",
                    .script = "@model --extra_llm_api_options",
                    .file = "llm_api.yaml",
                    .rows = kTrtllmRows,
                    .limits = kTrtllmLimits,
                    .neutral = kTrtllmNeutral},
};

}  // namespace

std::span<const LaunchFramework> engine_frameworks() { return kEngineFrameworks; }

}  // namespace scalecalc
