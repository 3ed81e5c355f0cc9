#include "support/fixtures.h"

#include "config/catalog.h"
#include "spec/load.h"

namespace scalecalc::test {
namespace {

HardwareSpec chip() {
  HardwareSpec hw;
  hw.name = "test-chip";
  hw.title = "Test chip";
  hw.family = "test";
  hw.matmul_peak[static_cast<std::size_t>(DType::kBf16)] = FlopsPerSecond(100e12);
  hw.matmul_peak[static_cast<std::size_t>(DType::kFp8)] = FlopsPerSecond(200e12);
  hw.vector_peak = FlopsPerSecond(10e12);
  hw.hbm_capacity = Bytes(32e9);
  hw.hbm_bandwidth = BytesPerSecond(1e12);
  hw.chips_per_host = 8;
  hw.efficiency = ideal_efficiency({});
  return hw;
}

Tier switched(const char* name, std::int64_t chips, double bandwidth) {
  Tier tier{.name = name, .kind = TierKind::kSwitched};
  tier.switched = {.chips = chips, .bandwidth_per_chip = BytesPerSecond(bandwidth), .latency = Seconds(1e-5)};
  return tier;
}

}  // namespace

HardwareSpec torus_chip() {
  HardwareSpec hw = chip();
  hw.chips_per_host = 4;
  Tier ici{.name = "ici", .kind = TierKind::kTorus};
  ici.torus = {.link_bandwidth = BytesPerSecond(50e9),
               .hop_latency = Seconds(1e-6),
               .axes = 3,
               .pod = {8, 8, 8},
               .wraparound = Wraparound::kUnitMultiple,
               .unit = {4, 4, 4},
               .small_slices = {{1, 1, 1}, {2, 2, 1}, {2, 2, 2}, {2, 2, 4}},
               .max_chips = 512};
  hw.network = {ici, switched("dcn", 0, 5e9)};
  return hw;
}

HardwareSpec switched_chip() {
  HardwareSpec hw = chip();
  hw.network = {switched("node", 8, 400e9), switched("leaf", 32, 50e9), switched("spine", 0, 50e9)};
  return hw;
}

ModelSpec dense_model(std::int64_t layers) {
  ModelSpec model;
  model.name = "test-dense";
  model.title = "Test dense";
  model.d_model = 1024;
  model.vocab = 32000;
  model.max_seq = 1 << 20;
  model.attention = {.heads = 16, .kv_heads = 4, .head_dim = 64};
  model.mlp = {.d_ff = 4096};
  model.kinds = {{MixerKind::kFull, FfnKind::kDense}};
  model.layer_kind.assign(static_cast<std::size_t>(layers), 0);
  model.training = {.tokens = 1e12, .seq = 2048, .batch_tokens = 131072};
  return model;
}

ModelSpec moe_model(std::int64_t layers) {
  ModelSpec model = dense_model(layers);
  model.name = "test-moe";
  model.moe = MoeSpec{.experts = 8, .top_k = 2, .d_ff = 1024, .shared_experts = 1, .shared_d_ff = 1024};
  model.kinds.push_back({MixerKind::kFull, FfnKind::kMoe});
  for (std::size_t i = 1; i < model.layer_kind.size(); ++i) model.layer_kind[i] = 1;
  return model;
}

ModelSpec hybrid_model(std::int64_t layers, bool parallel) {
  ModelSpec model = moe_model(layers);
  model.name = "test-hybrid";
  model.moe->latent = 512;
  model.attention.window = 256;
  model.attention.output_gate = true;
  model.gdn = {.key_heads = 8, .key_head_dim = 64, .value_heads = 16, .value_head_dim = 64, .conv_kernel = 4};
  model.lightning = {.heads = 16, .head_dim = 64};
  model.mamba1 = {.d_inner = 2048, .d_state = 16, .d_conv = 4, .dt_rank = 64};
  model.mamba2 = {.heads = 32, .head_dim = 64, .groups = 4, .d_state = 64, .d_conv = 4};
  model.parallel_block = parallel;
  model.kinds = {{MixerKind::kFull, FfnKind::kDense},
                 {MixerKind::kSliding, FfnKind::kDense, false, 2048},
                 {MixerKind::kGdn, FfnKind::kMoe},
                 {MixerKind::kMamba1, FfnKind::kMoe},
                 {MixerKind::kLightning, FfnKind::kDense},
                 {MixerKind::kMamba2, FfnKind::kNone, false, std::nullopt, 1},
                 {MixerKind::kNone, FfnKind::kMoe, false, std::nullopt, 1}};
  model.layer_kind.clear();
  for (std::int64_t i = 0; i < layers / 7 * 7; ++i) model.layer_kind.push_back(static_cast<std::uint8_t>(i % 7));
  return model;
}

Workload workload(std::int64_t seq, double batch_seqs) {
  return {.seq = seq,
          .batch_seqs = batch_seqs,
          .tokens = 1e12,
          .precision = precision_of("bf16"),
          .optimizer = optimizer_of("adam", precision_of("bf16"))};
}

PlanRequest request(const ModelSpec& model, const HardwareSpec& hw, std::int64_t chips) {
  return {.model = &model,
          .hw = &hw,
          .efficiency = hw.efficiency,
          .workload = workload(),
          .slices = slices_of(hw, chips, 1)};
}

HardwareSpec shipped_chip(const std::string& name) {
  const Catalog catalog;
  return load_hardware(catalog.load(CatalogKind::kHardware, name), catalog);
}

ModelSpec shipped_model(const std::string& name) {
  const Catalog catalog;
  return load_model(catalog.load(CatalogKind::kModel, name));
}

}  // namespace scalecalc::test
