// Canonical chips and models for tests: round numbers, one torus and one switched machine, a dense and an MoE model.
// Never the shipped catalog, whose figures may be corrected without a formula being wrong.
#pragma once

#include <string>

#include "plan/request.h"

namespace scalecalc::test {

/// 100 TFLOP/s, 10 TFLOP/s vector, 32 GB at 1 TB/s; torus 8x8x8 of 4x4x4 units with 50 GB/s links, DCN 5 GB/s.
HardwareSpec torus_chip();
/// The same chip, 8 a node at 400 GB/s, 4 nodes a leaf at 50 GB/s, then an unlimited spine.
HardwareSpec switched_chip();
/// d_model 1024, 16 heads of 64, 4 kv heads, d_ff 4096, vocab 32000, `layers` full/dense layers.
ModelSpec dense_model(std::int64_t layers = 8);
/// The same with 8 experts of width 1024, top 2, one shared expert, in every layer but the first.
ModelSpec moe_model(std::int64_t layers = 8);
/// The same width with a layer of each other mixer: sliding, gdn, mamba1, lightning, mamba2 alone, experts alone in a
/// latent width; `layers` is rounded down to whole rounds of seven. Parallel blocks if asked for.
ModelSpec hybrid_model(std::int64_t layers = 7, bool parallel = false);
Workload workload(std::int64_t seq = 2048, double batch_seqs = 64);
PlanRequest request(const ModelSpec& model, const HardwareSpec& hw, std::int64_t chips);

/// A chip's or model's shipped file.
HardwareSpec shipped_chip(const std::string& name);
ModelSpec shipped_model(const std::string& name);

}  // namespace scalecalc::test
