// What the parts of a hardware file share while they are read: the specification being filled, the source tags, the
// problems found. Used by the load_*.cpp files only.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "config/fields.h"
#include "config/node.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

class HardwareReading {
 public:
  /// `sources` is the file's `sources:` map, or null; it goes over what configs/sources.yaml says.
  HardwareReading(HardwareSpec& spec, const ConfigNode* sources, Problems& found);

  /// The references behind the block's `source:` tags; a block without one, and an unknown tag, is a problem.
  std::string source(Fields& fields) const;
  /// Whether the field says `unpublished`; then hw.unpublished gets `path`. `example` ("compute.matmul.bf16=1TFLOP/s")
  /// is what --set would give in its place.
  bool unpublished(Fields& fields, std::string_view key, const std::string& path,
                   const std::string& example = "") const;
  /// A figure every file must give or declare `unpublished`; nothing if it does the latter.
  std::optional<double> figure(Fields& fields, std::string_view key, UnitKind kind, const std::string& path,
                               Range range = kPositive) const;

  HardwareSpec& hw;
  Problems& problems;

 private:
  /// `given`: the block's tags.
  void unknown_tag(const ConfigNode& given, const std::string& tag) const;

  std::map<std::string, std::string> tags_;
};

/// `node` is null where the file has no such block.
void load_units(const ConfigNode* node, const HardwareReading& in);
void load_onchip(const ConfigNode* node, const HardwareReading& in);
/// After the host, whose chips share ports.
void load_network(const ConfigNode& node, const HardwareReading& in);

}  // namespace scalecalc
