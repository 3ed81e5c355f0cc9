// Towers of a multimodal config.json: vision_config and audio_config.
#pragma once

#include <vector>

#include "config/node.h"
#include "import/hf_architecture.h"
#include "import/hf_families.h"

namespace scalecalc {

/// Adds the towers whose class is known to the architecture; of others a remark says that they are not counted.
void read_towers(HfReading& r);

ConfigNode towers_node(const std::vector<HfTower>& towers, const SourceSpan& where);

}  // namespace scalecalc
