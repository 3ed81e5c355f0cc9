// One flag of a command, whole: its spelling, how its value is read, what help says of it, which modes of the command
// use it, what it needs and contradicts, where in a question its value goes and under which key an answer repeats it. A
// command's table of these is all that CLI11, the reader (flag_reader.h), help, the refusals, the query of its answers
// (query.h) and a study's check of its keys know of its flags.
//
//   share<&SensitivityQuestion::swing>("--swing", "how far each input is moved ...", "20%"),
//   word<&HwListQuestion::order>("--sort", kHwOrderNames, "order of the list").in(kOfLists),
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace scalecalc {
struct Figure;
}

namespace scalecalc::cli {

class FlagReader;

using LegalWords = std::span<const std::string_view>;

/// How many values the command line gives it.
enum class FlagKind {
  kSwitch,         ///< takes no value
  kValue,          ///< takes one
  kRepeatable,     ///< takes one each time
  kOptionalCount,  ///< may take a number
  kOptionalWord,   ///< may take one of its words
};

/// What a value may be.
enum class Reading {
  kText,       ///< any
  kCount,      ///< a whole number of Flag::range
  kQuantity,   ///< above zero, of Flag::unit
  kShare,      ///< from 0 to 1
  kSomeShare,  ///< above 0, to 1
  kSweep,      ///< one or more quantities above zero of Flag::unit (base/sweep.h)
  kWord,       ///< one of Flag::words
};

/// What a member of a question is in an answer's query (as_asked of flag_reader.h).
enum class QueryForm : std::uint8_t { kTyped, kFlag, kWord, kInteger, kNumber, kText, kTexts, kNumbers, kLayout };

struct CountRange {
  std::int64_t least = 1;
  std::int64_t most = 0;
};

/// What must stand beside a flag.
struct FlagNeed {
  std::string_view flags;  ///< one of them: "--mtbf --mtbf-node"
  std::string_view why;    ///< "{} has no meaning without failures"; {} is the flag
  std::string_view hint;   ///< "say how often a chip fails: --mtbf 50000h"
};

/// Modes of a command as bits: 1U << m stands for its mode m (Command::modes).
using Modes = unsigned;
inline constexpr Modes kAllModes = ~0U;

struct Flag {
  std::string_view name;  ///< "--chips"
  char letter = 0;        ///< 'o' for -o
  FlagKind kind = FlagKind::kValue;
  Reading reading = Reading::kText;
  std::string_view value;    ///< what help calls the value: "N"; empty: its words
  std::string_view help;     ///< "{}" stands for its words
  std::string_view alone;    ///< the value of one of kOptionalWord without any
  std::string_view example;  ///< a right value, for the message that one is missing and for tests
  LegalWords words{};
  UnitKind unit = UnitKind::kCount;
  CountRange range{};

  Modes modes = kAllModes;
  std::string_view says;            ///< flags of one command with the same text contradict: "how large a step is"
  std::string_view excludes;        ///< flags that contradict it alone: "--chips --slices"
  std::string_view excludes_as;     ///< what both say: "which chips"
  std::array<FlagNeed, 3> needs{};  ///< all of these, but for empty ones
  std::string_view ask;             ///< of a flag that must be given: "on which hardware?"

  using Store = void (*)(FlagReader&, const Flag&, void* question);
  const void* question = nullptr;  ///< which question it goes into (flag_reader.h); nullptr: read by hand
  Store store = nullptr;

  std::string_view row;   ///< its key in a row of measurements; empty: rows say it in words of their own, or not
  std::string_view term;  ///< its word in launch files (launch/terms.h); empty: none

  std::string_view query_key;    ///< in the answer's query; empty: by its name and unit (query.h)
  std::string_view query_group;  ///< what holds it there: "serving."
  bool asks = true;              ///< false: it says how the answer is given
  bool of_several = false;       ///< it lists, ranks or judges plans: says nothing where the layout is pinned
  bool writes = false;           ///< its value is a file that is written: no study may say it
  using Show = Figure (*)(const Flag&, const void* question);
  Show show = nullptr;                 ///< the value it has in a question that was answered; nullptr: what was typed
  QueryForm form = QueryForm::kTyped;  ///< of that value, for the schemas of answers
  bool may_be_null = false;            ///< the same

  constexpr bool is_of(std::size_t mode) const { return (modes & (1U << mode)) != 0; }

  /// Reads into a member, or into a member of a member. Its type says how: an enum takes the word's position.
  template <auto... kMembers>
  constexpr Flag to() const;
  /// Whether the word is this one.
  template <std::size_t kWord, auto... kMembers>
  constexpr Flag when() const;
  /// Reads each value by a function (FlagReader&, const Flag&, const std::string& text, Question&).
  template <auto kRead>
  constexpr Flag by() const;
  /// Of a flag that is read by hand or by a function: the member with what was understood.
  template <auto... kMembers>
  constexpr Flag shown() const;

  /// As rows of measurements and launch files call it.
  constexpr Flag spelled(std::string_view in_row, std::string_view in_launch_file = "") const {
    Flag out = *this;
    out.row = in_row;
    out.term = in_launch_file;
    return out;
  }
  constexpr Flag key(std::string_view in_query) const {
    Flag out = *this;
    out.query_key = in_query;
    return out;
  }
  constexpr Flag of_output() const {
    Flag out = *this;
    out.asks = false;
    return out;
  }
  constexpr Flag among_several() const {
    Flag out = *this;
    out.of_several = true;
    return out;
  }
  constexpr Flag writing() const {
    Flag out = *this;
    out.writes = true;
    return out;
  }
  constexpr Flag in(Modes those) const {
    Flag out = *this;
    out.modes = those;
    return out;
  }
  constexpr Flag saying(std::string_view what) const {
    Flag out = *this;
    out.says = what;
    return out;
  }
  constexpr Flag excluding(std::string_view flags, std::string_view both_say) const {
    Flag out = *this;
    out.excludes = flags;
    out.excludes_as = both_say;
    return out;
  }
  constexpr Flag needing(std::string_view flags, std::string_view why, std::string_view hint) const {
    Flag out = *this;
    *std::find_if(out.needs.begin(), out.needs.end(), [](const FlagNeed& need) { return need.flags.empty(); }) = {
        flags, why, hint};
    return out;
  }
  constexpr Flag asking(std::string_view text) const {
    Flag out = *this;
    out.ask = text;
    return out;
  }
  constexpr Flag called(std::string_view its_value) const {
    Flag out = *this;
    out.value = its_value;
    return out;
  }
  constexpr Flag explained(std::string_view its_help) const {
    Flag out = *this;
    out.help = its_help;
    return out;
  }
  constexpr Flag like(std::string_view its_example) const {
    Flag out = *this;
    out.example = its_example;
    return out;
  }
  constexpr Flag repeatable() const {
    Flag out = *this;
    out.kind = FlagKind::kRepeatable;
    return out;
  }
  constexpr Flag alone_as(std::string_view its_value) const {
    Flag out = *this;
    out.kind = FlagKind::kOptionalWord;
    out.alone = its_value;
    return out;
  }
  constexpr Flag lettered(char its_letter) const {
    Flag out = *this;
    out.letter = its_letter;
    return out;
  }
};

// One builder for each kind. Their template arguments are those of Flag::to().

template <auto... kMembers>
constexpr Flag bound(const Flag& flag) {
  if constexpr (sizeof...(kMembers) > 0) {
    return flag.template to<kMembers...>();
  } else {
    return flag;
  }
}

template <auto... kMembers>
constexpr Flag toggle(std::string_view name, std::string_view help) {
  return bound<kMembers...>({.name = name, .kind = FlagKind::kSwitch, .help = help});
}
template <auto... kMembers>
constexpr Flag text(std::string_view name, std::string_view value, std::string_view help, std::string_view example) {
  return bound<kMembers...>({.name = name, .value = value, .help = help, .example = example});
}
template <auto... kMembers>
constexpr Flag count(std::string_view name, CountRange range, std::string_view value, std::string_view help,
                     std::string_view example) {
  Flag out = text<kMembers...>(name, value, help, example);
  out.reading = Reading::kCount;
  out.range = range;
  return out;
}
template <auto... kMembers>
constexpr Flag quantity(std::string_view name, UnitKind unit, std::string_view value, std::string_view help,
                        std::string_view example) {
  Flag out = text<kMembers...>(name, value, help, example);
  out.reading = Reading::kQuantity;
  out.unit = unit;
  return out;
}
template <auto... kMembers>
constexpr Flag sweep(std::string_view name, UnitKind unit, std::string_view value, std::string_view help,
                     std::string_view example) {
  Flag out = quantity<kMembers...>(name, unit, value, help, example);
  out.reading = Reading::kSweep;
  return out;
}
template <auto... kMembers>
constexpr Flag share(std::string_view name, std::string_view help, std::string_view example) {
  Flag out = text<kMembers...>(name, "SHARE", help, example);
  out.reading = Reading::kShare;
  return out;
}
template <auto... kMembers>
constexpr Flag some_share(std::string_view name, std::string_view help, std::string_view example) {
  Flag out = share<kMembers...>(name, help, example);
  out.reading = Reading::kSomeShare;
  return out;
}
/// Help shows the words unless called() names them.
template <auto... kMembers>
constexpr Flag word(std::string_view name, LegalWords words, std::string_view help) {
  Flag out = text<kMembers...>(name, "", help, words.back());
  out.reading = Reading::kWord;
  out.words = words;
  return out;
}

/// The first of that name; nullptr if there is none. A table may have one more for other modes, which reads the value
/// into another question.
const Flag* find_flag(std::span<const Flag> flags, std::string_view name);
/// Of all flags of that name.
Modes modes_of(std::span<const Flag> flags, std::string_view name);

/// A table made of others: the flags of each, for these modes of the command unless they say which themselves.
struct TablePart {
  std::span<const Flag> flags;
  Modes modes = kAllModes;
  std::string_view query_group{};
};
std::vector<Flag> composed(std::initializer_list<TablePart> parts);

/// Flags of a table for the table of another command, whose modes are others: these, or all but these.
std::vector<Flag> flags_named(std::span<const Flag> flags, std::initializer_list<std::string_view> names);
std::vector<Flag> flags_but(std::span<const Flag> flags, std::initializer_list<std::string_view> names);

/// "N", or its words: "ideal|calibrated".
std::string value_name(const Flag& flag);
/// Its help with its words in it.
std::string help_text(const Flag& flag);

}  // namespace scalecalc::cli
