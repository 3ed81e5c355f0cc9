// Every chip of the catalog that meets some conditions, one line each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/catalog.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

enum class HwOrder { kName, kYear, kMatmul, kMemory, kBandwidth, kPrice };

struct HwListQuestion {
  std::optional<std::string> vendor;  ///< whatever its case
  std::optional<std::string> family;
  std::optional<std::int64_t> since;  ///< year of the first systems, or later
  std::optional<DType> dtype;         ///< has a matmul rate in it
  std::optional<Bytes> min_memory;    ///< that a program can allocate
  std::optional<BytesPerSecond> min_bandwidth;
  bool priced = false;  ///< has a price
  bool sold = false;    ///< not merely announced
  bool book = false;    ///< the scaling book's rounded entries instead of the data sheets'
  HwOrder order = HwOrder::kName;
};

struct HwList {
  HwListQuestion question;
  std::vector<HardwareSpec> chips;
  std::size_t left_out = 0;  ///< chips that do not meet the conditions
};

/// UserError for a vendor or family that no chip has.
HwList list_hardware(const HwListQuestion& question, const Catalog& catalog);

/// The rate a chip is compared by: bf16, or fp16; or the format asked for. Nothing if it has none.
std::optional<FlopsPerSecond> compared_rate(const HardwareSpec& hw, std::optional<DType> dtype);

}  // namespace scalecalc
