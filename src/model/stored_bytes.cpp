// Counts the bytes that a checkpoint stores of each operation's weights, by format.
#include "model/stored_bytes.h"

#include <algorithm>

namespace scalecalc {

WeightPart weight_part(Part part, const LayerKind* kind) {
  switch (part) {
    case Part::kAttention:
    case Part::kNorm:
    case Part::kTower:
    case Part::kMtp: return WeightPart::kAttention;
    case Part::kMlp: return kind != nullptr && kind->ffn == FfnKind::kMoe ? WeightPart::kShared : WeightPart::kMlp;
    case Part::kExperts: return WeightPart::kExperts;
    case Part::kRouter: return WeightPart::kRouter;
    case Part::kEmbedding: return WeightPart::kEmbedding;
    case Part::kHead: return WeightPart::kHead;
  }
  return WeightPart::kMlp;
}

namespace {

/// Of each part, norms and the like, and MTP modules: weights and bytes by format.
class StoredTable {
 public:
  explicit StoredTable(const QuantizationSpec& formats) : formats_(formats), of_modules_(formats.of_modules()) {}

  void add(const std::vector<Op<double>>& ops, const LayerKind* kind, double times, bool module = false) {
    const QuantizationSpec& formats = module ? of_modules_ : formats_;
    for (const Op<double>& op : ops) {
      const WeightPart part = weight_part(op.part, kind);
      const std::string_view name = module ? kStoredModules : kWeightPartNames[static_cast<std::size_t>(part)];
      double matrices = op.tied ? 0 : op.weight_parameters();
      if (op.part == Part::kTower || op.part == Part::kNorm) {
        const WeightFormat beside = formats.format_beside();
        put(op.part == Part::kTower ? kStoredTowers
            : module                ? kStoredModules
                                    : kStoredBeside,
            {beside, 1, bits_of(beside)}, times * (matrices + op.extra_parameters));
        continue;
      }
      if (op.part == Part::kEmbedding) {
        matrices += op.extra_parameters;
      } else {
        const WeightFormat beside = formats.format_beside();
        put(module ? kStoredModules : kStoredBeside, {beside, 1, bits_of(beside)}, times * op.extra_parameters);
      }
      for (const StoredShare& share : formats.shares(part)) put(name, share, times * matrices * share.share);
    }
  }

  std::vector<StoredWeights> take() {
    const auto order = [](const StoredWeights& row) {
      const auto* const found = std::find(kWeightPartNames.begin(), kWeightPartNames.end(), row.part);
      return (found - kWeightPartNames.begin()) + (row.part == kStoredModules ? 1 : row.part == kStoredTowers ? 2 : 0);
    };
    std::stable_sort(rows_.begin(), rows_.end(),
                     [&](const StoredWeights& a, const StoredWeights& b) { return order(a) < order(b); });
    return std::move(rows_);
  }

 private:
  void put(std::string_view part, const StoredShare& share, double parameters) {
    if (parameters == 0) return;
    auto row = std::find_if(rows_.begin(), rows_.end(), [&](const StoredWeights& known) {
      return known.part == part && known.format == share.format;
    });
    if (row == rows_.end()) row = rows_.insert(row, {part, share.format, 0, 0});
    row->parameters += parameters;
    row->bytes += parameters * share.bits / 8;
  }

  const QuantizationSpec& formats_;
  QuantizationSpec of_modules_;
  std::vector<StoredWeights> rows_;
};

}  // namespace

std::vector<StoredWeights> stored_weights(const ModelSpec& model, const QuantizationSpec& formats) {
  const ModelDims<double> dims = read_dims(Reader<double>{}, model);
  StoredTable table(formats);
  table.add(embedding_ops(model, dims), nullptr, 1);
  table.add(head_ops(model, dims), nullptr, 1);
  for (std::size_t k = 0; k < model.kinds.size(); ++k) {
    const auto layers = std::count(model.layer_kind.begin(), model.layer_kind.end(), static_cast<std::uint8_t>(k));
    table.add(layer_ops(model, model.kinds[k], dims), &model.kinds[k], static_cast<double>(layers));
  }
  if (model.mtp_layers > 0) {
    const LayerKind& kind = model.kinds[model.mtp_kind];
    const auto modules = static_cast<double>(model.mtp_layers);
    table.add(mtp_ops(model, dims), nullptr, modules, true);
    table.add(layer_ops(model, kind, dims), &kind, modules, true);
  }
  return table.take();
}

double total_bytes(const std::vector<StoredWeights>& stored) {
  double out = 0;
  for (const StoredWeights& row : stored)
    out += row.part == kStoredModules || row.part == kStoredTowers ? 0 : row.bytes;
  return out;
}

}  // namespace scalecalc
