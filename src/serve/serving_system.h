// What a serving cost is about, besides the layout: model, machine, formats, and the rules of the engine.
#pragma once

#include "spec/hardware_spec.h"
#include "spec/load_stack.h"
#include "spec/model_spec.h"

namespace scalecalc {

/// Formats chosen independently of each other.
struct ServeFormats {
  QuantizationSpec weights;               ///< part by part
  WeightFormat kv = WeightFormat::kBf16;  ///< keys and values; recurrent states stay fp32
  DType compute = DType::kBf16;           ///< of the matmuls with weights
  double activation_bytes = 2;            ///< of an element between operations
};

/// Keeps pointers: they must outlive whatever is made of it.
struct ServingSystem {
  const ModelSpec* model = nullptr;
  const HardwareSpec* hw = nullptr;
  Efficiency efficiency;  ///< of the engine on the chip, or the ideal
  ServeFormats formats;
  EngineRules engine;          ///< how much of the memory it gives to the cache, and what it keeps for itself
  double prefill_share = 1;    ///< of the matmul rate, on prompts alone
  double chunk_tokens = 8192;  ///< most tokens of prompts in one step
};

}  // namespace scalecalc
