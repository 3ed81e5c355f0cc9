// Defines formats, optimizers and bytes per parameter of a training job. Bytes per parameter: Rajbhandari et al. 2020
// (ZeRO), arXiv:1910.02054 section 3.1, for Adam with an fp32 master copy; bf16 moments as in the DeepSeek-V3 report,
// arXiv:2412.19437 section 3.3.3; 8-bit states from Dettmers et al. 2022, arXiv:2110.02861; Muon from Jordan et al.
// 2024 and Liu et al. 2025, arXiv:2502.16982.
#include "cost/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/diagnostic.h"
#include "base/text.h"

namespace scalecalc {
namespace {

const std::vector<Precision>& precisions() {
  static const std::vector<Precision> kAll{
      {.name = "bf16"},
      {.name = "fp16", .compute = DType::kFp16, .high = DType::kFp16},
      {.name = "fp8", .compute = DType::kFp8, .dispatch_bytes = 1},
      {.name = "nvfp4", .compute = DType::kFp4},
      {.name = "int8", .compute = DType::kInt8},
      {.name = "tf32",
       .compute = DType::kTf32,
       .high = DType::kTf32,
       .weight_bytes = 4,
       .activation_bytes = 4,
       .dispatch_bytes = 4},
      {.name = "fp32",
       .compute = DType::kFp32,
       .high = DType::kFp32,
       .weight_bytes = 4,
       .activation_bytes = 4,
       .dispatch_bytes = 4},
  };
  return kAll;
}

Optimizer optimizer(const char* name, double moments, double moment_bytes, double flops, bool orthogonalizes = false) {
  return {.name = name,
          .moments = moments,
          .moment_bytes = moment_bytes,
          .update_flops = flops,
          .orthogonalizes = orthogonalizes};
}

const std::vector<Optimizer>& optimizers() {
  static const std::vector<Optimizer> kAll{optimizer("adam", 2, 4, 14), optimizer("adam-bf16", 2, 2, 14),
                                           optimizer("adam8bit", 2, 1, 20), optimizer("sgd", 1, 4, 4),
                                           optimizer("muon", 1, 4, 4, true)};
  return kAll;
}

template <class T>
const T& by_name(const std::vector<T>& all, std::string_view name, const char* what, const char* flag) {
  const auto it = std::find_if(all.begin(), all.end(), [&](const T& x) { return x.name == name; });
  if (it != all.end()) return *it;
  std::vector<std::string> names;
  names.reserve(all.size());
  for (const T& x : all) names.push_back(x.name);
  const std::string near = did_you_mean(nearest(name, names));
  throw UserError(fmt::format("unknown {} '{}' for {}", what, name, flag),
                  fmt::format("{}{}known: {}", near, near.empty() ? "" : " ", join(names, ", ")));
}

}  // namespace

std::optional<Precision> precision_computing_in(DType compute) {
  const auto& all = precisions();
  const auto it = std::find_if(all.begin(), all.end(), [&](const Precision& p) { return p.compute == compute; });
  return it == all.end() ? std::nullopt : std::optional(*it);
}

double base_bytes(const FineTune& tune, const Precision& precision) {
  return tune.base ? bits_of(*tune.base) / 8 : precision.weight_bytes;
}

bool is_unpacked(const FineTune& tune, const Precision& precision) {
  if (!tune.base || base_bytes(tune, precision) == precision.weight_bytes) return false;
  // Matmuls read it as it is; recipes of 4 bits quantize frozen weights once, before the run (MLPerf Training 5.1,
  // llama2_70b_lora, config_common_fp4.sh: PRE_QUANTIZED_MODEL).
  return !(*tune.base == BaseFormat::kFp8 && bytes_per_element(precision.compute) <= 1);
}

std::string reduction_format(const Precision& precision) {
  if (precision.reduced_bytes == 4) return "gradients are accumulated and reduced in fp32";
  return fmt::format("gradients are accumulated in fp32 and reduced in {:g} bytes", precision.reduced_bytes);
}

double gradient_bytes(const Workload& workload) {
  const auto by = workload.memory.gradient_bytes.find(workload.precision.name);
  return by == workload.memory.gradient_bytes.end() ? workload.precision.gradient_bytes : by->second;
}

void use_reduced_format(Workload& workload) {
  Precision& p = workload.precision;
  const auto put = [&](const std::map<std::string, double>& bytes, double& out) {
    const auto by = bytes.find(p.name);
    if (by != bytes.end()) out = by->second;
  };
  put(workload.runtime.reduced_bytes, p.reduced_bytes);
  put(workload.runtime.dispatched_bytes, p.dispatch_bytes);
}

void train_in_16_bits(Workload& workload) {
  workload.memory.sharded_master = false;
  Optimizer& optimizer = workload.optimizer;
  if (optimizer.master_bytes == 0) return;
  optimizer.state_bytes -= std::exchange(optimizer.master_bytes, 0);
  // The update reads and writes the weights themselves.
  optimizer.update_bytes -= 2 * kMasterBytes - workload.precision.weight_bytes;
}

Precision precision_of(std::string_view name) { return by_name(precisions(), name, "precision", "--precision"); }

/// Weights in fp32 are their own master copy. Traffic of an update: the gradient is read, moments and fp32 weights are
/// read and written, a narrower working copy is written.
Optimizer optimizer_of(std::string_view name, const Precision& precision) {
  Optimizer out = by_name(optimizers(), name, "optimizer", "--optimizer");
  const bool own_master = precision.weight_bytes >= kMasterBytes;
  out.master_bytes = own_master ? 0 : kMasterBytes;
  out.state_bytes = out.moments * out.moment_bytes + out.master_bytes;
  out.update_bytes =
      4 + 2 * (out.moments * out.moment_bytes + kMasterBytes) + (own_master ? 0 : precision.weight_bytes);
  return out;
}

}  // namespace scalecalc
