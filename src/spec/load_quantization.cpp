#include "spec/load_quantization.h"

#include <fmt/format.h>

#include "base/text.h"

namespace scalecalc {
namespace {

std::optional<WeightFormat> read_format(Fields& fields, std::string_view key) {
  const auto word = fields.optional_word(key, kWeightFormatNames);
  if (!word) return std::nullopt;
  return static_cast<WeightFormat>(*word);
}

/// A format, or {format, bits} where the part's weights take another number on average than the format prescribes.
void read_part(Fields& fields, std::size_t part, QuantizationSpec& out, Problems& problems) {
  const std::string_view key = kWeightPartNames[part];
  const ConfigNode* node = fields.node(key);
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
  const double bare = bits_of(out.weights);
  const double bits = fields.optional_quantity("bits_per_weight", UnitKind::kNumber, {1, 64}).value_or(bare);
  // Scales and zero points come on top of the elements; they never outweigh them.
  const bool plausible = bits >= bare - 0.5 && bits <= 2 * bare;
  if (!plausible) {
    problems.add(fields.node("bits_per_weight")->span,
                 fmt::format("{:g} bits for a weight of {} ({:g} bits without scales of its own)", bits,
                             name_of(out.weights), bare));
  }
  out.bits_per_weight = bits;
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
