// Lists the dimensions of a layout, one row each, for everything that pins, reads, compares or prints layouts.
#include "plan/dimensions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <type_traits>

namespace scalecalc {
namespace {

/// A row for one field of Layout and the field of LayoutFilter that pins it.
template <auto Field, auto Pin>
constexpr LayoutDimension row(std::string_view name, std::string_view json_key, DimensionKind kind, std::int64_t least,
                              std::int64_t most) {
  LayoutDimension out{.name = name, .json_key = json_key, .kind = kind, .least = least, .most = most};
  out.value = [](const Layout& l) { return static_cast<std::int64_t>(l.*Field); };
  out.set_value = [](Layout& l, std::int64_t value) {
    l.*Field = static_cast<std::remove_reference_t<decltype(l.*Field)>>(value);
  };
  out.pin = [](const LayoutFilter& f) {
    return f.*Pin ? std::optional(static_cast<std::int64_t>(*(f.*Pin))) : std::nullopt;
  };
  out.set_pin = [](LayoutFilter& f, std::optional<std::int64_t> value) {
    using Value = typename std::remove_reference_t<decltype(f.*Pin)>::value_type;
    f.*Pin = value ? std::optional(static_cast<Value>(*value)) : std::nullopt;
  };
  return out;
}

template <auto Field, auto Pin>
constexpr LayoutDimension count(std::string_view name, std::string_view json_key) {
  return row<Field, Pin>(name, json_key, DimensionKind::kCount, 1, kMostWays);
}

/// A dimension of words: the values of an enumeration that has name_of().
template <auto Field, auto Pin>
constexpr LayoutDimension words(std::string_view name, std::int64_t least, std::int64_t most) {
  LayoutDimension out = row<Field, Pin>(name, name, DimensionKind::kWord, least, most);
  out.last_word = most;
  out.word = [](std::int64_t value) {
    using Word = std::remove_reference_t<decltype(Layout{}.*Field)>;
    return std::string(name_of(static_cast<Word>(value)));
  };
  return out;
}

constexpr std::int64_t kMostLayers = 100'000;
constexpr std::int64_t kAsNeeded = kMostLayers + 1;  ///< in the place of a number of layers
constexpr std::string_view kAsNeededWord = "auto";

/// A word of `words` with a number of layers.
struct Counted {
  std::int64_t words = 1;

  constexpr std::int64_t word_of(std::int64_t value) const { return value % words; }
  constexpr std::int64_t layers_of(std::int64_t value) const { return value / words; }
  constexpr std::int64_t value(std::int64_t word, std::int64_t layers) const { return word + words * layers; }
};
constexpr Counted kPolicies{kRematCount};
constexpr Counted kOffloads{kOffloadAll + 1};

std::string with_layers(std::string word, std::int64_t layers) {
  if (layers == kAsNeeded) return word.append(":").append(kAsNeededWord);
  return layers == 0 ? word : word.append(":").append(std::to_string(layers));
}

std::optional<std::int64_t> number_of(std::string_view text, std::int64_t least) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  const bool read = error == std::errc() && end == text.data() + text.size();
  return read && out >= least && out <= kMostLayers ? std::optional(out) : std::nullopt;
}

/// The policy and its number of layers, 0 for all.
constexpr LayoutDimension remat() {
  LayoutDimension out = words<&Layout::remat, &LayoutFilter::remat>("remat", static_cast<std::int64_t>(Remat::kNone),
                                                                    static_cast<std::int64_t>(Remat::kFull));
  out.most = kPolicies.value(out.last_word, kAsNeeded);
  out.counted = [](std::int64_t word) { return static_cast<Remat>(word) != Remat::kNone; };
  out.value = [](const Layout& l) { return kPolicies.value(static_cast<std::int64_t>(l.remat), l.remat_layers); };
  out.set_value = [](Layout& l, std::int64_t value) {
    l.remat = static_cast<Remat>(kPolicies.word_of(value));
    l.remat_layers = kPolicies.layers_of(value);
  };
  out.pin = [](const LayoutFilter& f) {
    return f.remat
               ? std::optional(kPolicies.value(static_cast<std::int64_t>(*f.remat), f.remat_layers.value_or(kAsNeeded)))
               : std::nullopt;
  };
  out.set_pin = [](LayoutFilter& f, std::optional<std::int64_t> value) {
    f.remat.reset();
    f.remat_layers.reset();
    if (!value) return;
    f.remat = static_cast<Remat>(kPolicies.word_of(*value));
    if (kPolicies.layers_of(*value) != kAsNeeded) f.remat_layers = kPolicies.layers_of(*value);
  };
  out.word = [](std::int64_t value) {
    return with_layers(std::string(name_of(static_cast<Remat>(kPolicies.word_of(value)))), kPolicies.layers_of(value));
  };
  return out;
}

constexpr LayoutDimension remat_layers() {
  LayoutDimension out = row<&Layout::remat_layers, &LayoutFilter::remat_layers>("remat_layers", "remat_layers",
                                                                                DimensionKind::kCount, 0, kMostLayers);
  out.pin = [](const LayoutFilter& f) { return f.remat ? std::nullopt : f.remat_layers; };
  return out;
}

constexpr std::int64_t kEndsBase = kMostLayers + 1;
constexpr std::int64_t split_value(const ChunkEnds& ends) {
  return ends.chosen() ? 1 + ends.first * kEndsBase + ends.last : 0;
}
constexpr ChunkEnds ends_of(std::int64_t value) {
  return value == 0 ? ChunkEnds{} : ChunkEnds{(value - 1) / kEndsBase, (value - 1) % kEndsBase};
}

constexpr LayoutDimension split() {
  LayoutDimension out{.name = "split", .json_key = "split", .kind = DimensionKind::kWord, .least = 0};
  out.most = split_value({kMostLayers, kMostLayers});
  out.value = [](const Layout& l) { return split_value(l.split); };
  out.set_value = [](Layout& l, std::int64_t value) { l.split = ends_of(value); };
  out.pin = [](const LayoutFilter& f) { return f.split ? std::optional(split_value(*f.split)) : std::nullopt; };
  out.set_pin = [](LayoutFilter& f, std::optional<std::int64_t> value) {
    f.split = value ? std::optional(ends_of(*value)) : std::nullopt;
  };
  out.word = [](std::int64_t value) {
    const ChunkEnds ends = ends_of(value);
    return ends.chosen() ? fmt::format("{}:{}", ends.first, ends.last) : std::string("default");
  };
  out.numbered = [](std::string_view text) -> std::optional<std::int64_t> {
    const std::size_t colon = std::min(text.find(':'), text.size());
    const auto first = number_of(text.substr(0, colon), 0);
    const auto last = number_of(text.substr(std::min(colon + 1, text.size())), 0);
    return first && last ? std::optional(split_value({*first, *last})) : std::nullopt;
  };
  return out;
}

/// A set of bits, each with its word, and the number of layers whose activations go; 0 for all.
constexpr LayoutDimension offload() {
  LayoutDimension out =
      row<&Layout::offload, &LayoutFilter::offload>("offload", "offload", DimensionKind::kWord, 0, kOffloadAll);
  out.last_word = kOffloadAll;
  out.most = kOffloads.value(kOffloadAll, kAsNeeded);
  out.counted = [](std::int64_t word) { return (word & kOffloadActivations) != 0; };
  out.value = [](const Layout& l) { return kOffloads.value(l.offload, l.offload_layers); };
  out.set_value = [](Layout& l, std::int64_t value) {
    l.offload = static_cast<std::uint8_t>(kOffloads.word_of(value));
    l.offload_layers = kOffloads.layers_of(value);
  };
  out.pin = [](const LayoutFilter& f) -> std::optional<std::int64_t> {
    if (!f.offload) return std::nullopt;
    const bool counts = (*f.offload & kOffloadActivations) != 0;
    return kOffloads.value(*f.offload, counts ? f.offload_layers.value_or(kAsNeeded) : 0);
  };
  out.set_pin = [](LayoutFilter& f, std::optional<std::int64_t> value) {
    f.offload.reset();
    f.offload_layers.reset();
    if (!value) return;
    f.offload = static_cast<std::uint8_t>(kOffloads.word_of(*value));
    if (kOffloads.layers_of(*value) != kAsNeeded) f.offload_layers = kOffloads.layers_of(*value);
  };
  out.word = [](std::int64_t value) {
    return with_layers(std::string(offload_name(static_cast<std::uint8_t>(kOffloads.word_of(value)))),
                       kOffloads.layers_of(value));
  };
  return out;
}

using L = Layout;
using F = LayoutFilter;

constexpr std::array kDimensions{
    count<&L::dp, &F::dp>("dp", "dp"),
    count<&L::fsdp, &F::fsdp>("fsdp", "fsdp"),
    count<&L::tp, &F::tp>("tp", "tp"),
    row<&L::sp, &F::sp>("sp", "sp", DimensionKind::kSwitch, 0, 1),
    count<&L::cp, &F::cp>("cp", "cp"),
    count<&L::pp, &F::pp>("pp", "pp"),
    count<&L::vpp, &F::vpp>("vpp", "vpp"),
    split(),
    count<&L::ep, &F::ep>("ep", "ep"),
    count<&L::etp, &F::etp>("etp", "etp"),
    row<&L::ep_overlap, &F::ep_overlap>("ep_overlap", "ep_overlap", DimensionKind::kSwitch, 0, 1),
    row<&L::zero, &F::zero>("zero", "zero", DimensionKind::kCount, 0, 3),
    remat(),
    words<&L::cp_comm, &F::cp_comm>("cp_comm", static_cast<std::int64_t>(CpComm::kAllGather),
                                    static_cast<std::int64_t>(CpComm::kUlysses)),
    offload(),
    words<&L::schedule, &F::schedule>("schedule", static_cast<std::int64_t>(Schedule::kGpipe),
                                      static_cast<std::int64_t>(Schedule::kDualPipe)),
    count<&L::micro_batch_seqs, &F::micro_batch_seqs>("mb", "micro_batch_seqs"),
    count<&L::grad_accum, &F::grad_accum>("ga", "grad_accum"),
    words<&L::loss, &F::loss>("loss", static_cast<std::int64_t>(LossKind::kWhole),
                              static_cast<std::int64_t>(LossKind::kChunked)),
    remat_layers(),
};

}  // namespace

std::span<const LayoutDimension> layout_dimensions() { return std::span(kDimensions).first(kDimensions.size() - 1); }

std::span<const LayoutDimension> pin_dimensions() { return kDimensions; }

const LayoutDimension* find_dimension(std::string_view name) {
  const auto* const found = std::find_if(kDimensions.begin(), kDimensions.end(), [&](const LayoutDimension& d) {
    return d.name == name || d.json_key == name;
  });
  return found == kDimensions.end() ? nullptr : found;
}

std::string value_text(const LayoutDimension& dimension, std::int64_t value) {
  return dimension.word == nullptr ? std::to_string(value) : std::string(dimension.word(value));
}

std::optional<std::int64_t> value_of_word(const LayoutDimension& dimension, std::string_view text) {
  std::int64_t word = 0;
  const std::size_t colon = dimension.counted == nullptr ? std::string_view::npos : text.find(':');
  while (word <= dimension.last_word && dimension.word(word) != text.substr(0, colon)) ++word;
  if (word > dimension.last_word) return dimension.numbered == nullptr ? std::nullopt : dimension.numbered(text);
  if (colon == std::string_view::npos) return word;
  const Counted counted{dimension.last_word + 1};
  const std::string_view number = text.substr(colon + 1);
  if (!dimension.counted(word)) return std::nullopt;
  if (number == kAsNeededWord) return counted.value(word, kAsNeeded);
  const auto layers = number_of(number, 1);
  return layers ? std::optional(counted.value(word, *layers)) : std::nullopt;
}

std::string pins_text(const LayoutFilter& filter) {
  std::string out;
  for (const LayoutDimension& d : kDimensions) {
    const auto pinned = d.pin(filter);
    if (pinned) out += fmt::format("{}{}={}", out.empty() ? "" : ",", d.name, value_text(d, *pinned));
  }
  return out;
}

LayoutFilter pins_of(const Layout& layout) {
  LayoutFilter out;
  for (const LayoutDimension& d : kDimensions) {
    const std::int64_t value = d.value(layout);
    if (value >= d.least) d.set_pin(out, value);
  }
  return out;
}

std::optional<std::int64_t> pinned_chips(const LayoutFilter& filter) {
  std::int64_t ways = 1;
  for (const auto& degree : {filter.dp, filter.fsdp, filter.tp, filter.cp, filter.pp}) {
    if (!degree) return std::nullopt;
    ways = std::min(kMostWays, ways * *degree);
  }
  return ways;
}

}  // namespace scalecalc
