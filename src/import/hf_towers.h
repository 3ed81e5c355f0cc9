// Towers of a multimodal config.json: vision_config and audio_config.
#pragma once

#include <string_view>
#include <vector>

#include "config/node.h"
#include "import/hf_architecture.h"
#include "import/hf_families.h"

namespace scalecalc {

/// Adds the towers whose class is known to the architecture; of others a remark says that they are not counted.
void read_towers(HfReading& r);

/// Whether a key tells of a tower that the file names instead of describing it, as LLaVA's own do: it is not counted.
inline bool of_named_tower(const HfKeys& keys, std::string_view key) {
  return keys.text().find("mm_vision_tower") != nullptr && key.find("mm_") != std::string_view::npos;
}

ConfigNode towers_node(const std::vector<HfTower>& towers, const SourceSpan& where);

}  // namespace scalecalc
