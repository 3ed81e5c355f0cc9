// Compares the tensors of a checkpoint's index with the parameters that we count.
#include "model/checkpoint_check.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "base/text.h"
#include "base/units.h"
#include "model/accounting.h"
#include "model/stored_bytes.h"

namespace scalecalc {
namespace {

/// Of the model, and of what the index names beside it: its modules with their copies of the ends, a tied head that is
/// stored once more.
double counted_bytes(const ModelSpec& model, const SafetensorsIndex& index) {
  const QuantizationSpec formats = model.quantization.value_or(QuantizationSpec{});
  const std::vector<StoredWeights> stored = stored_weights(model, formats);
  double out = total_bytes(stored);
  if (index.towers > 0) {
    for (const StoredWeights& row : stored) out += row.part == kStoredTowers ? row.bytes : 0;
  }
  const auto width = static_cast<double>(model.embedding_dim > 0 ? model.embedding_dim : model.d_model);
  const double table = static_cast<double>(model.vocab) * width;
  const double embedding = table * formats.bits(WeightPart::kEmbedding) / 8;
  const double head = table * formats.bits(WeightPart::kHead) / 8;
  if (model.tied_embeddings && index.head) out += head;
  if (index.modules == 0 || model.mtp_layers == 0) return out;
  for (const StoredWeights& row : stored) out += row.part == kStoredModules ? row.bytes : 0;
  return out + static_cast<double>(index.module_embeddings) * embedding +
         static_cast<double>(index.module_heads) * head;
}

std::string tensors(std::size_t count) { return group_thousands(static_cast<long long>(count)); }

}  // namespace

CheckpointCheck check_checkpoint(const ModelSpec& model, const SafetensorsIndex& index) {
  constexpr double kSame = 1e-3;      // scales of blocks cut off at an edge, of rows and whole matrices; routers' own
  constexpr double kExpected = 0.01;  // more is another format or another shape
  const std::string file = std::filesystem::path(index.file).filename().string();
  if (!index.problem.empty()) return {fmt::format("{} is not compared: {}", file, index.problem), true};
  if (!index.total_bytes) return {fmt::format("{} says no total_size to compare with", file), false};
  const double counted = counted_bytes(model, index);
  const double more = *index.total_bytes / counted - 1;
  const bool modules = index.modules > 0 && model.mtp_layers == 0;
  CheckpointCheck out;
  out.text =
      fmt::format("{} has {} of weights in {} tensors, ", file, bytes_text(*index.total_bytes), tensors(index.tensors));
  if (std::abs(more) <= kSame) {
    out.text += "as counted here";
  } else {
    out.text += fmt::format("{:.2g}% {} than the {} counted here", 100 * std::abs(more), more > 0 ? "more" : "less",
                            bytes_text(counted));
  }
  const bool towers = index.towers > 0 && count_parameters(model).towers == 0;
  if (towers) out.text += fmt::format("; {} of towers are not counted", tensors(index.towers));
  if (modules) out.text += fmt::format("; {} of prediction modules are not counted", tensors(index.modules));
  const bool explained = more > 0 && (towers || modules);
  out.warning = std::abs(more) > kExpected && !explained;
  return out;
}

}  // namespace scalecalc
