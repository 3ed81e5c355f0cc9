// Reads the `quantization:` block of a model file: formats by part of the model.
#include "spec/load_quantization.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace scalecalc {
namespace {

std::optional<WeightFormat> read_format(Fields& fields, std::string_view key) {
  const auto word = fields.optional_word(key, kWeightFormatNames);
  if (!word) return std::nullopt;
  return static_cast<WeightFormat>(*word);
}

/// Of a part in several formats: {format, share, bits} each.
void read_shares(const ConfigNode& list, std::size_t part, QuantizationSpec& out, Problems& problems) {
  double sum = 0;
  double bits = 0;
  double most = 0;
  for (const ConfigNode& item : list.items) {
    Fields own(item, "quantization.parts", problems);
    own.required_node("format");
    StoredShare share;
    share.format = read_format(own, "format").value_or(WeightFormat::kBf16);
    share.share = own.quantity("share", UnitKind::kNumber, {0, 1});
    share.bits = own.optional_quantity("bits", UnitKind::kNumber, {1, 64}).value_or(bits_of(share.format));
    own.finish();
    sum += share.share;
    bits += share.share * share.bits;
    if (share.share > most) {
      most = share.share;
      out.parts[part] = share.format;
    }
    out.part_shares[part].push_back(share);
  }
  constexpr double kRounded = 1e-6;
  if (std::abs(sum - 1) > kRounded) {
    problems.add(list.span, fmt::format("shares of {} add up to {:g}, not to 1", kWeightPartNames[part], sum));
    out.part_shares[part].clear();
    return;
  }
  out.part_bits[part] = bits / sum;
}

/// A format, or {format, bits} where the part's weights take another number on average than the format prescribes, or a
/// list of the formats of its weights.
void read_part(Fields& fields, std::size_t part, QuantizationSpec& out, Problems& problems) {
  const std::string_view key = kWeightPartNames[part];
  const ConfigNode* node = fields.node(key);
  if (node != nullptr && node->kind == ConfigNode::Kind::kSequence) {
    read_shares(*node, part, out, problems);
    return;
  }
  if (node == nullptr || node->kind != ConfigNode::Kind::kMap) {
    out.parts[part] = read_format(fields, key);
    return;
  }
  Fields own(*node, "quantization.parts", problems);
  own.required_node("format");
  out.parts[part] = read_format(own, "format");
  out.part_bits[part] = own.optional_quantity("bits", UnitKind::kNumber, {1, 64});
  own.finish();
}

}  // namespace

QuantizationSpec load_quantization(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "quantization", problems);
  QuantizationSpec out;
  fields.required_node("weights");
  out.weights = read_format(fields, "weights").value_or(WeightFormat::kBf16);
  double bare = bits_of(out.weights);
  if (const std::vector<std::int64_t> block = fields.count_list("block"); !block.empty()) {
    const bool pair = block.size() == 2 && std::min(block[0], block[1]) > 0;
    if (!pair || out.weights != WeightFormat::kFp8) {
      problems.add(fields.node("block")->span,
                   "'block' is [rows, columns] of fp8 weights that share a scale of 32 bits");
    } else {
      out.block = {block[0], block[1]};
      bare += 32 / static_cast<double>(block[0] * block[1]);
    }
  }
  const double bits = fields.optional_quantity("bits_per_weight", UnitKind::kNumber, {1, 64}).value_or(bare);
  // Scales and zero points come on top of the elements; they never outweigh them.
  const bool plausible = bits >= bare - 0.5 && bits <= 2 * bare;
  if (!plausible) {
    problems.add(fields.node("bits_per_weight")->span,
                 fmt::format("{:g} bits for a weight of {} ({:g} bits without scales of its own)", bits,
                             name_of(out.weights), bare));
  }
  out.bits_per_weight = bits;
  out.mtp = read_format(fields, "mtp");
  out.kv = read_format(fields, "kv");
  if (const ConfigNode* parts = fields.node("parts")) {
    Fields each(*parts, "quantization.parts", problems);
    for (std::size_t i = 0; i < kWeightPartNames.size(); ++i) read_part(each, i, out, problems);
    each.finish();
  }
  out.source = join(fields.text_list("source"), ", ");
  fields.finish();
  return out;
}

}  // namespace scalecalc
