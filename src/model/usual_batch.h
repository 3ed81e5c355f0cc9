// The batch that is assumed for a model whose training batch is neither published nor given.
#pragma once

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

}  // namespace scalecalc
