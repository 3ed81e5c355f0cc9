// The words of `scalecalc roofline` that say which operation: its name, its shape, then KEY=VALUE words.
//
//   matmul 512x8192x28672          [B,D] x [D,F]; matmul 8192x28672 with --batch; matmul 16x512x64x64 is 16 of them
//     weights=per-row tile=512x512x512 pad=128
//   attention heads=32 kv_heads=8 head_dim=128 query=4096 kv=4096 mask=causal pass=backward
//   contract "ij,jk->ik" i=128 j=256 k=512, or "A[I,J] * B[J,K] -> C[I,K]" I=128 J=256 K=512
//   add 1Gi inputs=2 flops=1       elementwise 1Gi inputs=1 flops=8       dot 1M       load 70B
//   flops 1e12 bytes=4GB           bytes 400GB flops=1e12
// One size may be a sweep (base/sweep.h).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "base/explained.h"
#include "cli/spoken_words.h"
#include "roofline/operation.h"

namespace scalecalc::cli {

struct SpokenOperation {
  std::vector<Operation> points;  ///< one, or as many as the sweep has values; empty if there are problems
  std::string swept;              ///< "batch", "query", "kv", "elements", "parameters", or empty
  std::vector<Assumption> assumptions;
};

/// `batch` is --batch: rows of a matmul, sequences of attention. What is wrong is added to `problems`.
SpokenOperation read_operation(const SpokenWords& words, const std::optional<std::vector<double>>& batch,
                               std::vector<Diagnostic>& problems);

SpokenOperation read_attention(const SpokenWords& words, const std::optional<std::vector<double>>& batch,
                               std::vector<Diagnostic>& problems);

/// The notation of a contraction in word `word`; its sizes come from the KEY=VALUE words.
std::optional<Contraction> read_contraction(const SpokenWords& words, std::size_t word, KeyWords& keys,
                                            std::vector<Diagnostic>& problems);

}  // namespace scalecalc::cli
