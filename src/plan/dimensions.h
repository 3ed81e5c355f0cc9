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

/// Values are whole numbers: a switch is 0 or 1, a word the position in its enumeration. Words of remat go on behind
/// theirs with those of some layers: "full:8" treats the first 8 layers of each kind on every stage, "full:auto", which
/// only pins may say, as many as make the layout fit or all. Above the word of split, "default", are the layers of the
/// first and the last pipeline chunk: "8:6".
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
  std::string (*word)(std::int64_t) = nullptr;                          ///< of a value; words only
  std::int64_t last_word = 0;                                           ///< words only: those above have a number
  bool (*counted)(std::int64_t) = nullptr;                              ///< of a word: whether it may have a number
  std::optional<std::int64_t> (*numbered)(std::string_view) = nullptr;  ///< reads one of those above otherwise
};

/// Largest degree that may be pinned: the most chips a question may have.
inline constexpr std::int64_t kMostWays = 16'777'216;

/// In the order in which layouts are listed.
std::span<const LayoutDimension> layout_dimensions();

/// And what only pins name: remat_layers, which is remat's number whatever the policy. A filter has a pin under one of
/// the two.
std::span<const LayoutDimension> pin_dimensions();

/// Of pin_dimensions(), by either name; nullptr if there is none.
const LayoutDimension* find_dimension(std::string_view name);

/// "8", "selective", "full:8".
std::string value_text(const LayoutDimension& dimension, std::int64_t value);

/// The value that a dimension of words has for such a text; nothing if it is none of them.
std::optional<std::int64_t> value_of_word(const LayoutDimension& dimension, std::string_view text);

/// "tp=8,pp=16,remat=full": what the filter pins, as --fix takes it.
std::string pins_text(const LayoutFilter& filter);

/// Every dimension pinned to this layout's value; those that cannot be pinned there (no schedule) stay open.
LayoutFilter pins_of(const Layout& layout);

/// The chips of a layout whose parallel degrees are all pinned, kMostWays at most; nothing if one is open.
std::optional<std::int64_t> pinned_chips(const LayoutFilter& filter);

}  // namespace scalecalc
