#include "serve/serve_basis.h"

#include <algorithm>

namespace scalecalc {
namespace {

WeightPart weight_part(Part part, const LayerKind* kind) {
  switch (part) {
    case Part::kAttention:
    case Part::kNorm:
    case Part::kMtp: return WeightPart::kAttention;
    case Part::kMlp: return kind != nullptr && kind->ffn == FfnKind::kMoe ? WeightPart::kShared : WeightPart::kMlp;
    case Part::kExperts: return WeightPart::kExperts;
    case Part::kRouter: return WeightPart::kRouter;
    case Part::kEmbedding: return WeightPart::kEmbedding;
    case Part::kHead: return WeightPart::kHead;
  }
  return WeightPart::kMlp;
}

/// Memories of the whole chip that hold what one operation hands to the next.
double onchip_bytes(const HardwareSpec& hw) {
  double out = 0;
  for (const char* name : {"vmem", "cmem", "l2", "llc", "sram"}) {
    const MemoryLevel* level = hw.onchip.find(name);
    if (level != nullptr && level->per == MemoryOwner::kChip && level->capacity) out += level->capacity->value();
  }
  return out;
}

}  // namespace

template <class R>
ServeBasis<R>::ServeBasis(const Reader<R>& reader, const ServingSystem& s) : system(s) {
  const ModelSpec& model = *system.model;
  dims = read_dims(reader, model);
  chip = read_chip(reader, *system.hw, system.efficiency, format_of(16));
  rates = read_serving(reader, *system.hw, system.efficiency, chip, format_of(16));
  network = read_network(reader, *system.hw, system.efficiency, true);
  peak_bandwidth = read(reader, system.hw->hbm_bandwidth, "hw.hbm.bandwidth", system.hw->hbm_source);
  onchip = read(reader, Bytes(onchip_bytes(*system.hw)), "hw.onchip", system.hw->onchip.source);
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    const auto count = std::count(model.layer_kind.begin(), model.layer_kind.end(), static_cast<std::uint8_t>(k));
    if (count == 0) continue;
    kinds.push_back({model.kinds[k], static_cast<double>(count), layer_ops(model, model.kinds[k], dims)});
  }
  embedding = embedding_ops(model, dims);
  head = head_ops(model, dims);
  cache = kv_cache(model);
}

template <class R>
DType ServeBasis<R>::format_of(double bits) const {
  const DType compute = system.formats.compute;
  if (bits < 16 || bytes_per_element(compute) >= 2) return compute;
  return system.hw->matmul_peak[static_cast<std::size_t>(DType::kBf16)] ? DType::kBf16 : DType::kFp16;
}

template <class R>
double ServeBasis<R>::stored_bits(Part part, const LayerKind* kind) const {
  return system.formats.weights.bits(weight_part(part, kind));
}

template struct ServeBasis<double>;
template struct ServeBasis<Dual>;
template struct ServeBasis<Traced>;
template struct ServeBasis<Interval>;

}  // namespace scalecalc
