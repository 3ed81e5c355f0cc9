// The batch that is assumed for a model whose training batch is neither published nor given.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace scalecalc {

/// Tokens of a step for a model of N active parameters: kBatchScale N^kBatchExponent, to the nearest power of two.
/// docs/model.md, [BATCH].
double usual_batch(double active_parameters);

/// Least squares of log B over log N, by the 62 training runs of the catalog whose batch is published (GPT-2 and GPT-3
/// to DeepSeek-V3 and Kimi K2). The batches of one size lie apart by far more than the law tells sizes apart.
inline constexpr double kBatchScale = 10'500;
inline constexpr double kBatchExponent = 0.245;
/// exp of the standard deviation of log B around it.
inline constexpr double kBatchScatter = 2.45;

/// Where it comes from, as assumptions say it.
std::string usual_batch_source();

/// Sequences of a step and tokens of a sequence that are assumed where adapters train: those of published recipes.
inline constexpr std::int64_t kTuningSequences = 128;
inline constexpr std::int64_t kTuningLength = 4'096;
inline constexpr std::string_view kTuningSource =
    "assumed: 128 sequences of 4,096, as allenai/open-instruct@0becd2c scripts/train/tulu3/finetune_8b.sh; 128 a step: "
    "pytorch/torchtune@0031bfb recipes/configs/llama3_1/8B_lora.yaml on 2 GPUs, NVIDIA-NeMo/Megatron-Bridge@0eca073 "
    "recipes/common.py (PEFT); packed to 4,096: axolotl-ai-cloud/axolotl@107c67a examples/llama-3/lora-8b.yml";

/// Throws UserError if a run of these tokens ends before its first step does. `usual` is how many tokens such a run
/// has, for the hint; `typed`: --tokens was given.
void refuse_run_below_step(double tokens, double step_tokens, std::optional<double> usual, bool typed);

}  // namespace scalecalc
