// Deals a model's layers to the pipeline stages of a serving engine. Source: vLLM vllm/distributed/utils.py,
// get_pp_indices: of the layers that are left over one goes to each of the last stages but the very last.
#include "serve/stage_layers.h"

#include <algorithm>
#include <functional>

namespace scalecalc {

std::vector<LayersByKind> fullest_stages(const ModelSpec& model, std::int64_t stages) {
  const std::int64_t each = model.layers() / stages, left_over = model.layers() % stages;
  const auto within = [](const LayersByKind& a, const LayersByKind& b) {
    return std::equal(a.begin(), a.end(), b.begin(), std::less_equal<>());
  };
  std::vector<LayersByKind> out;
  auto layer = model.layer_kind.begin();
  for (std::int64_t s = 0; s < stages; ++s) {
    const bool longer = s >= stages - 1 - left_over && s < stages - 1;
    const auto end = layer + each + (longer ? 1 : 0);
    LayersByKind here{};
    for (; layer != end; ++layer) ++here[*layer];
    if (std::any_of(out.begin(), out.end(), [&](const LayersByKind& other) { return within(here, other); })) continue;
    std::erase_if(out, [&](const LayersByKind& other) { return within(other, here); });
    out.push_back(here);
  }
  return out;
}

}  // namespace scalecalc
