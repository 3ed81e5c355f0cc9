// What people type who come from other tools, by what it is called here: flags, and words that a value may be. The only
// table of them; names of models and chips are understood by read_names.h.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/explained.h"
#include "cli/flag.h"

namespace scalecalc::cli {

struct ForeignFlag {
  std::string_view names;    ///< between blanks: "--gpus --num-gpus -n"
  std::string_view ours;     ///< flags of ours between blanks; the first that a command has is meant
  std::string_view value{};  ///< of a switch: what ours is given; "tp=": what stands before the value there
  bool clear = true;         ///< false: it may mean several of ours, or another kind of value, and is only answered
};
std::span<const ForeignFlag> foreign_flags();

/// Read once the chip is known (read_names.h): hosts, whose chips make up --chips, and chips of each.
inline constexpr std::string_view kHostsFlag = "--nodes";
inline constexpr std::string_view kChipsOfHostFlag = "--gpus-per-node";

/// The words with each foreign flag replaced by the one of `flags` that it means, and how each was read added to
/// `readings`. Hosts are spelled kHostsFlag and kChipsOfHostFlag. Others stay as they are. UserError if a value is
/// missing.
std::vector<std::string> own_words(const std::vector<std::string>& words, std::span<const Flag> flags,
                                   std::vector<Assumption>& readings);

/// For the message that a flag is unknown: what it may mean, or whose it is. Empty if nothing is known of it.
std::string meaning_of(std::string_view flag, std::span<const Flag> flags);

/// Position of the word that is meant: exactly, but for case and separators (BF16, allgather), or by what others call
/// it (bfloat16).
std::optional<std::size_t> word_meant(std::string_view text, LegalWords words);

}  // namespace scalecalc::cli
