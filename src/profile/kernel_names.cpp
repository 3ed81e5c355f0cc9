// Classifies kernels by their names and HLO categories, for `scalecalc profile`.
#include "profile/kernel_names.h"

#include <algorithm>
#include <array>

#include "profile/hlo_category.h"

namespace scalecalc {
namespace {

using enum DeviceWork;

constexpr std::string_view kKineto = "public PyTorch profiler traces (docs/profiles.md)";
constexpr std::string_view kNccl = "NCCL and RCCL kernels in public traces";
constexpr std::string_view kDeepEp = "deepseek-ai/profile-data train.json";
constexpr std::string_view kCublas = "cuBLAS, cuBLASLt and CUTLASS kernels in public traces";
constexpr std::string_view kTensile = "hipBLASLt (Tensile) kernels in public MI300X traces";
constexpr std::string_view kXla = "openxla/xla: opcodes and fusion names of HLO";
constexpr std::string_view kServing = "vLLM and SGLang traces of TraceLens";
constexpr std::string_view kRecall = "recall";

// Rows that would hide others stand behind them: a fused all-reduce with a norm is a collective, an attention kernel
// built of GEMM tiles is attention, an optimizer's multi_tensor_apply is no elementwise kernel.
constexpr std::array kPatterns{
    // Communication.
    KernelPattern{"nccl sendrecv", kSendReceive, kNccl},
    KernelPattern{"nccl", kCollective, kNccl},
    KernelPattern{"rccl", kCollective, kNccl},
    KernelPattern{"multimem_ all_reduce", kCollective, kKineto},
    KernelPattern{"multimem", kCollective, kRecall},
    KernelPattern{"all_reduce", kCollective, kServing},
    KernelPattern{"allreduce", kCollective, kServing},
    KernelPattern{"all-reduce", kCollective, kXla},
    KernelPattern{"allgather", kCollective, kRecall},
    KernelPattern{"all_gather", kCollective, kRecall},
    KernelPattern{"all-gather", kCollective, kXla},
    KernelPattern{"reduce-scatter", kCollective, kXla},
    KernelPattern{"reduce_scatter", kCollective, kRecall},
    KernelPattern{"reducescatter", kCollective, kRecall},
    KernelPattern{"all-to-all", kCollective, kXla},
    KernelPattern{"alltoall", kCollective, kRecall},
    KernelPattern{"collective-permute", kSendReceive, kXla},
    KernelPattern{"collective-broadcast", kCollective, kXla},
    KernelPattern{"cross_device_reduce", kCollective, kServing},
    KernelPattern{"::internode::", kCollective, kDeepEp},
    KernelPattern{"::intranode::", kCollective, kDeepEp},
    KernelPattern{"internode_ll", kCollective, kRecall},
    KernelPattern{"nvshmem", kCollective, kRecall},
    KernelPattern{"userbuffers", kCollective, kRecall},
    // Copies.
    KernelPattern{"memcpy", kCopy, kKineto},
    KernelPattern{"memset", kCopy, kKineto},
    KernelPattern{"copybuffer", kCopy, kKineto},
    KernelPattern{"fillbuffer", kCopy, kKineto},
    KernelPattern{"copy-start", kCopy, kXla},
    KernelPattern{"copy-done", kCopy, kXla},
    // Optimizers.
    KernelPattern{"adam", kOptimizer, kKineto},
    KernelPattern{"multi_tensor_apply", kOptimizer, kKineto},
    KernelPattern{"multitensorapply", kOptimizer, kKineto},
    KernelPattern{"multi_tensor", kOptimizer, kKineto},
    KernelPattern{"adagrad", kOptimizer, kKineto},
    KernelPattern{"sgd_", kOptimizer, kRecall},
    KernelPattern{"lamb_", kOptimizer, kRecall},
    // Attention.
    KernelPattern{"flash", kAttention, kKineto},
    KernelPattern{"fmha", kAttention, kServing},
    KernelPattern{"attn", kAttention, kKineto},
    KernelPattern{"attention", kAttention, kServing},
    KernelPattern{"paged", kAttention, kServing},
    KernelPattern{"sage_", kAttention, "xDiT traces of TraceLens"},
    KernelPattern{"sdpa", kAttention, kRecall},
    KernelPattern{"bwd_kernel_fuse", kAttention, "rocprofv3 results of TraceLens (AOTriton)"},
    KernelPattern{"mha_", kAttention, kRecall},
    KernelPattern{"mla_", kAttention, kRecall},
    // Experts' routing.
    KernelPattern{"topk", kRouting, kServing},
    KernelPattern{"dispatch_layout", kRouting, kDeepEp},
    KernelPattern{"fused_mapping", kRouting, kDeepEp},
    KernelPattern{"expand_to_fused", kRouting, kDeepEp},
    KernelPattern{"indices_kernel", kRouting, kKineto},
    KernelPattern{"moe permute", kRouting, kRecall},
    KernelPattern{"moe finalize", kRouting, kServing},
    KernelPattern{"moe routing", kRouting, kServing},
    KernelPattern{"moe align", kRouting, kRecall},
    KernelPattern{"routing", kRouting, kServing},
    KernelPattern{"radixsort", kRouting, kKineto},
    KernelPattern{"bitmatrix", kRouting, kServing},
    KernelPattern{"finalize_matmul_scatter", kRouting, kServing},
    KernelPattern{"permute_2d", kRouting, kKineto},
    KernelPattern{"permute", kRouting, kRecall},
    KernelPattern{"convert", kVector, kXla},  // before what it begins with
    // Convolutions.
    KernelPattern{"conv", kConvolution, kKineto},
    KernelPattern{"scudnn", kConvolution, kKineto},
    KernelPattern{"fprop", kConvolution, kKineto},
    KernelPattern{"dgrad", kConvolution, kKineto},
    KernelPattern{"wgrad_alg", kConvolution, kKineto},
    KernelPattern{"winograd", kConvolution, kKineto},
    KernelPattern{"igemm_", kConvolution, kKineto},
    KernelPattern{"implicit", kConvolution, kKineto},
    KernelPattern{"fft2d", kConvolution, kKineto},
    // Matrix products.
    KernelPattern{"gemm", kMatmul, kCublas},
    KernelPattern{"gemv", kMatmul, kCublas},
    KernelPattern{"nvjet", kMatmul, kCublas},
    KernelPattern{"cijk_", kMatmul, kTensile},
    KernelPattern{"matmul", kMatmul, kServing},
    KernelPattern{"wmma", kMatmul, kCublas},
    KernelPattern{"xmma", kMatmul, kCublas},
    KernelPattern{"bmm_", kMatmul, kServing},
    KernelPattern{"splitk", kMatmul, kCublas},
    KernelPattern{"split_k", kMatmul, kCublas},
    KernelPattern{"_moe_kernel", kMatmul, kServing},
    KernelPattern{"fused_moe", kMatmul, kServing},
    KernelPattern{"mfma", kMatmul, kTensile},
    KernelPattern{"cutlass kernel", kMatmul, kCublas},
    KernelPattern{"dot_general", kMatmul, kXla},
    KernelPattern{"dot.", kMatmul, kXla},
    KernelPattern{"wvsplitk", kMatmul, kServing},
    // Norms, activations, elementwise.
    KernelPattern{"norm", kVector, kKineto},
    KernelPattern{"elementwise", kVector, kKineto},
    KernelPattern{"at::native", kVector, kKineto},
    KernelPattern{"triton_", kVector, "torch.compile's pointwise, reduction and persistent kernels"},
    KernelPattern{"softmax", kVector, kKineto},
    KernelPattern{"reduce", kVector, kKineto},
    KernelPattern{"rotary", kVector, kServing},
    KernelPattern{"rope", kVector, kRecall},
    KernelPattern{"silu", kVector, kServing},
    KernelPattern{"gelu", kVector, kKineto},
    KernelPattern{"swiglu", kVector, kRecall},
    KernelPattern{"act_and_mul", kVector, kServing},
    KernelPattern{"kvcache", kVector, kServing},
    KernelPattern{"cache_kernel", kVector, kServing},
    KernelPattern{"reshape_and_cache", kVector, kServing},
    KernelPattern{"cast", kVector, kDeepEp},
    KernelPattern{"quant", kVector, kServing},
    KernelPattern{"transpose", kVector, kKineto},
    KernelPattern{"embedding", kVector, kKineto},
    KernelPattern{"cross_entropy", kVector, kRecall},
    KernelPattern{"bn_fw", kVector, kKineto},
    KernelPattern{"bn_bw", kVector, kKineto},
    KernelPattern{"cudnn::", kVector, kKineto},
    KernelPattern{"nchwto", kVector, kKineto},
    KernelPattern{"nhwcto", kVector, kKineto},
    KernelPattern{"pool", kVector, kKineto},
    KernelPattern{"epilogue", kVector, kKineto},
    KernelPattern{"subtensorop", kVector, kKineto},
    KernelPattern{"op1d", kVector, kKineto},
    KernelPattern{"op2d", kVector, kKineto},
    KernelPattern{"optensor", kVector, kKineto},
    KernelPattern{"scatter", kVector, kKineto},
    KernelPattern{"gather", kVector, kKineto},
    KernelPattern{"index", kVector, kKineto},
    KernelPattern{"scan", kVector, kKineto},
    KernelPattern{"sort", kVector, kKineto},
    KernelPattern{"fill", kVector, kKineto},
    KernelPattern{"copy", kVector, kKineto},
    KernelPattern{"dropout", kVector, kKineto},
    KernelPattern{"prepare_", kVector, kServing},
    KernelPattern{"sampl", kVector, kServing},
    KernelPattern{"spin_kernel", kVector, kKineto},
    KernelPattern{"fusion", kVector, kXla},
    KernelPattern{"input_", kVector, kXla},
    KernelPattern{"loop_", kVector, kXla},
    KernelPattern{"broadcast", kVector, kXla},
    KernelPattern{"bitcast", kVector, kXla},
    KernelPattern{"slice", kVector, kXla},
    KernelPattern{"select", kVector, kXla},
    KernelPattern{"wrapped_", kVector, kXla},
    KernelPattern{"add", kVector, kXla},
    KernelPattern{"multiply", kVector, kXla},
};

struct HloCategory {
  std::string_view part;
  DeviceWork work;
};
// The first that the category holds decides. XProf's documents and public XPlanes of TPUs.
constexpr std::array kHloCategories{
    HloCategory{"convolution", kMatmul},
    HloCategory{"dot", kMatmul},
    HloCategory{"all-reduce", kCollective},
    HloCategory{"all-gather", kCollective},
    HloCategory{"reduce-scatter", kCollective},
    HloCategory{"all-to-all", kCollective},
    HloCategory{"collective-permute", kSendReceive},
    HloCategory{"copy", kCopy},
    HloCategory{"infeed", kCopy},
    HloCategory{"outfeed", kCopy},
    HloCategory{"host send", kCopy},
    HloCategory{"host recv", kCopy},
    HloCategory{"sort", kRouting},
    HloCategory{"fusion", kVector},
    HloCategory{"elementwise", kVector},
    HloCategory{"data formatting", kVector},
    HloCategory{"dynamic-", kVector},
    HloCategory{"broadcast", kVector},
    HloCategory{"reduce", kVector},
    HloCategory{"gather", kVector},
    HloCategory{"scatter", kVector},
    HloCategory{"rng", kVector},
};

bool letters_alike(char part, char in_name) {
  return part == in_name || (part >= 'a' && part <= 'z' && in_name == part - 'a' + 'A');
}

bool holds(std::string_view name, std::string_view parts) {
  while (!parts.empty()) {
    const std::string_view part = parts.substr(0, parts.find(' '));
    if (std::search(name.begin(), name.end(), part.begin(), part.end(),
                    [](char in_name, char wanted) { return letters_alike(wanted, in_name); }) == name.end()) {
      return false;
    }
    parts.remove_prefix(std::min(parts.size(), part.size() + 1));
  }
  return true;
}

}  // namespace

std::optional<DeviceWork> work_of_hlo_category(std::string_view category) {
  for (const HloCategory& row : kHloCategories) {
    if (category.find(row.part) != std::string_view::npos) return row.work;
  }
  return std::nullopt;
}

std::span<const KernelPattern> kernel_patterns() { return kPatterns; }

DeviceWork work_of_kernel(std::string_view name) {
  for (const KernelPattern& pattern : kPatterns) {
    if (holds(name, pattern.parts)) return pattern.work;
  }
  return kUnknown;
}

}  // namespace scalecalc
