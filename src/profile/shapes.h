// From the operands that a profiler recorded to the work of an operation.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "profile/recording.h"
#include "roofline/operation.h"

namespace scalecalc {

/// What an operation of a recording computes and moves.
struct ShapedWork {
  Operation operation;
  OperandTypes types;
  std::string text;         ///< "[8944,1024] x [1024,2816] bf16"
  bool moves_only = false;  ///< its bytes alone are known, from its operands
};

/// Nothing if the shapes are not recorded, or the operation is none that we know.
std::optional<ShapedWork> shaped_work(const RecordedOp& op, DeviceWork work, std::string_view kernel);

/// Rows and columns of the result that one block of threads computes, as the kernel's name says: "tilesize128x256x64",
/// "MT256x192x64".
struct KernelTile {
  double rows = 0;
  double columns = 0;
};
std::optional<KernelTile> tile_of_kernel(std::string_view name);

/// Bytes of an element as PyTorch, NCCL or XLA call it; 0 if unknown.
double recorded_element_bytes(std::string_view type);

}  // namespace scalecalc
