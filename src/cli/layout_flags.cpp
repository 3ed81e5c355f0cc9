#include "cli/layout_flags.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"

namespace scalecalc::cli {
namespace {

using Degree = std::optional<std::int64_t> LayoutFilter::*;

struct Key {
  std::string_view name;
  std::string_view long_name;  ///< as in JSON, where it differs
  Degree field;
  CountRange range;
};

constexpr std::int64_t kMostChips = 16'777'216;
constexpr CountRange kDegree{1, kMostChips};

constexpr std::array kKeys{
    Key{"dp", "", &LayoutFilter::dp, kDegree},
    Key{"fsdp", "", &LayoutFilter::fsdp, kDegree},
    Key{"tp", "", &LayoutFilter::tp, kDegree},
    Key{"sp", "", &LayoutFilter::sp, {0, 1}},
    Key{"cp", "", &LayoutFilter::cp, kDegree},
    Key{"pp", "", &LayoutFilter::pp, kDegree},
    Key{"vpp", "", &LayoutFilter::vpp, kDegree},
    Key{"ep", "", &LayoutFilter::ep, kDegree},
    Key{"etp", "", &LayoutFilter::etp, kDegree},
    Key{"zero", "", &LayoutFilter::zero, {0, 3}},
    Key{"mb", "micro_batch_seqs", &LayoutFilter::micro_batch_seqs, kDegree},
    Key{"ga", "grad_accum", &LayoutFilter::grad_accum, kDegree},
    Key{"remat_layers", "", &LayoutFilter::remat_layers, {0, 100'000}},
};

constexpr std::array<std::string_view, 6> kRematWords{"auto", "none", "selective", "attention", "mlp", "full"};
constexpr std::array<std::string_view, 6> kScheduleWords{"auto",        "gpipe",       "1f1b",
                                                         "interleaved", "zero-bubble", "dualpipe"};
constexpr std::array<std::string_view, 4> kCpCommWords{"auto", "all-gather", "ring", "ulysses"};
constexpr std::array<std::string_view, 5> kZeroWords{"auto", "0", "1", "2", "3"};
constexpr std::array<std::string_view, 4> kDimensionWords{"remat", "schedule", "cp_comm", "offload"};

/// "auto" is no pin.
std::optional<Remat> remat_of(std::size_t word) {
  if (word == 0) return std::nullopt;
  return static_cast<Remat>(word - 1);
}
std::optional<Schedule> schedule_of(std::size_t word) {
  if (word == 0) return std::nullopt;
  return static_cast<Schedule>(word);
}

std::optional<CpComm> cp_comm_of(std::size_t word) {
  if (word == 0) return std::nullopt;
  return static_cast<CpComm>(word - 1);
}

/// "none", or parts joined by '+': "optimizer+activations".
std::optional<std::uint8_t> offload_of(FlagReader& reader, std::string_view place, std::string_view text) {
  constexpr std::array<std::string_view, 5> kWords{"none", "optimizer", "weights", "activations", "all"};
  constexpr std::array<std::uint8_t, 5> kBits{0, kOffloadOptimizer, kOffloadWeights, kOffloadActivations, kOffloadAll};
  std::uint8_t out = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find('+', at), text.size());
    const auto word = reader.word_of(place, text.substr(at, end - at), kWords);
    if (!word) return std::nullopt;
    out |= kBits[*word];
    at = end + 1;
  }
  return out;
}

const Key* find_key(std::string_view name) {
  const auto* const found =
      std::find_if(kKeys.begin(), kKeys.end(), [&](const Key& k) { return k.name == name || k.long_name == name; });
  return found == kKeys.end() ? nullptr : found;
}

void unknown_key(FlagReader& reader, std::string_view flag, std::string_view name, bool words_too) {
  std::vector<std::string> known;
  known.reserve(kKeys.size() + kDimensionWords.size());
  for (const Key& key : kKeys) known.emplace_back(key.name);
  if (words_too) known.insert(known.end(), kDimensionWords.begin(), kDimensionWords.end());
  std::string hint = did_you_mean(nearest(name, known));
  if (!hint.empty()) hint += ' ';
  reader.problem(fmt::format("{} has no dimension {}", flag, in_quotes(name)),
                 fmt::format("{}dimensions: {}", hint, join(known, ", ")));
}

class FilterReader {
 public:
  FilterReader(FlagReader& reader, std::string_view flag, LayoutFilter& filter)
      : reader_(reader), flag_(flag), filter_(filter) {}

  void item(std::string_view text) {
    const std::size_t equals = text.find('=');
    if (equals == std::string_view::npos || equals == 0 || equals + 1 == text.size()) {
      reader_.problem(fmt::format("{}: {} is not KEY=VALUE", flag_, in_quotes(text)),
                      fmt::format("for example {} tp=8,pp=16", flag_));
      return;
    }
    const std::string_view name = text.substr(0, equals);
    const std::string_view value = text.substr(equals + 1);
    if (std::find(seen_.begin(), seen_.end(), name) != seen_.end()) {
      reader_.problem(fmt::format("{} gives {} twice", flag_, in_quotes(name)));
      return;
    }
    seen_.emplace_back(name);
    const std::string place = fmt::format("{} {}", flag_, name);
    if (const Key* key = find_key(name)) {
      filter_.*(key->field) = reader_.count_of(place, value, key->range);
    } else if (std::find(kDimensionWords.begin(), kDimensionWords.end(), name) != kDimensionWords.end()) {
      word(name, place, value);
    } else {
      unknown_key(reader_, flag_, name, flag_ == "--fix");
    }
  }

 private:
  void word(std::string_view name, const std::string& place, std::string_view value) {
    if (flag_ != "--fix") {
      reader_.problem(fmt::format("{} cannot bound {}, which has no order", flag_, name),
                      fmt::format("pin it: --fix {}={}", name, value));
    } else if (name == "remat") {
      if (const auto word = reader_.word_of(place, value, kRematWords)) filter_.remat = remat_of(*word);
    } else if (name == "cp_comm") {
      if (const auto word = reader_.word_of(place, value, kCpCommWords)) filter_.cp_comm = cp_comm_of(*word);
    } else if (name == "offload") {
      if (value != "auto") filter_.offload = offload_of(reader_, place, value);
    } else if (const auto word = reader_.word_of(place, value, kScheduleWords)) {
      filter_.schedule = schedule_of(*word);
    }
  }

  FlagReader& reader_;
  std::string_view flag_;
  LayoutFilter& filter_;
  std::vector<std::string> seen_;
};

/// Merges a pin from a flag of its own with the one from --fix.
template <class T>
void pin(FlagReader& reader, std::string_view name, const std::optional<T>& given, std::optional<T>& fixed) {
  if (!given) return;
  if (fixed && *fixed != *given) {
    const std::string key = name == "cp-comm" ? "cp_comm" : std::string(name);
    reader.problem(fmt::format("--{} and --fix {}= say different things", name, key), "give one of them");
  }
  fixed = given;
}

}  // namespace

void read_layout_filter(FlagReader& reader, const Arguments& arguments, std::string_view flag, LayoutFilter& filter) {
  FilterReader items(reader, flag, filter);
  for (const std::string& text : arguments.values(flag)) {
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      items.item(std::string_view(text).substr(at, end - at));
      at = end + 1;
    }
  }
}

void read_layout_flags(FlagReader& reader, const Arguments& arguments, LayoutFilter& fix) {
  if (const auto word = reader.word("--remat", kRematWords)) pin(reader, "remat", remat_of(*word), fix.remat);
  if (const auto word = reader.word("--schedule", kScheduleWords)) {
    pin(reader, "schedule", schedule_of(*word), fix.schedule);
  }
  if (const auto word = reader.word("--cp-comm", kCpCommWords)) {
    pin(reader, "cp-comm", cp_comm_of(*word), fix.cp_comm);
  }
  if (const auto text = arguments.value("--offload"); text && *text != "auto") {
    pin(reader, "offload", offload_of(reader, "--offload", *text), fix.offload);
  }
  const auto zero = reader.word("--zero", kZeroWords);
  if (zero && *zero > 0) {
    pin(reader, "zero", std::optional(static_cast<std::int64_t>(*zero) - 1), fix.zero);
  }
}

}  // namespace scalecalc::cli
