// The named dimensions of a layout, one row each: whatever lists, pins, reads or compares layouts goes through them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plan/request.h"

namespace scalecalc {

enum class DimensionKind : std::uint8_t { kCount, kSwitch, kWord };

/// Values are whole numbers: a switch is 0 or 1, a word the position in its enumeration.
struct LayoutDimension {
  std::string_view name;      ///< as --fix takes it: "mb"
  std::string_view json_key;  ///< as JSON and CSV have it: "micro_batch_seqs"
  DimensionKind kind = DimensionKind::kCount;
  std::int64_t least = 1;  ///< the least and the most that may be pinned
  std::int64_t most = 1;
  std::int64_t (*value)(const Layout&) = nullptr;
  void (*set_value)(Layout&, std::int64_t) = nullptr;
  std::optional<std::int64_t> (*pin)(const LayoutFilter&) = nullptr;
  void (*set_pin)(LayoutFilter&, std::optional<std::int64_t>) = nullptr;
  std::string_view (*word)(std::int64_t) = nullptr;  ///< of a value; words only
};

/// Largest degree that may be pinned: the most chips a question may have.
inline constexpr std::int64_t kMostWays = 16'777'216;

/// In the order in which layouts are listed.
std::span<const LayoutDimension> layout_dimensions();

/// By either name; nullptr if there is none.
const LayoutDimension* find_dimension(std::string_view name);

/// "8", "selective".
std::string value_text(const LayoutDimension& dimension, std::int64_t value);

/// "tp=8,pp=16,remat=full": what the filter pins, as --fix takes it.
std::string pins_text(const LayoutFilter& filter);

/// Every dimension pinned to this layout's value; those that cannot be pinned there (no schedule) stay open.
LayoutFilter pins_of(const Layout& layout);

}  // namespace scalecalc
