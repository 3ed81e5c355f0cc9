#include "plan/dimensions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
  out.word = [](std::int64_t value) {
    using Word = std::remove_reference_t<decltype(Layout{}.*Field)>;
    return name_of(static_cast<Word>(value));
  };
  return out;
}

/// A set of bits; every set has its word.
constexpr LayoutDimension offload() {
  LayoutDimension out =
      row<&Layout::offload, &LayoutFilter::offload>("offload", "offload", DimensionKind::kWord, 0, kOffloadAll);
  out.word = [](std::int64_t value) { return offload_name(static_cast<std::uint8_t>(value)); };
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
    count<&L::ep, &F::ep>("ep", "ep"),
    count<&L::etp, &F::etp>("etp", "etp"),
    row<&L::ep_overlap, &F::ep_overlap>("ep_overlap", "ep_overlap", DimensionKind::kSwitch, 0, 1),
    row<&L::zero, &F::zero>("zero", "zero", DimensionKind::kCount, 0, 3),
    words<&L::remat, &F::remat>("remat", static_cast<std::int64_t>(Remat::kNone),
                                static_cast<std::int64_t>(Remat::kFull)),
    row<&L::remat_layers, &F::remat_layers>("remat_layers", "remat_layers", DimensionKind::kCount, 0, 100'000),
    words<&L::cp_comm, &F::cp_comm>("cp_comm", static_cast<std::int64_t>(CpComm::kAllGather),
                                    static_cast<std::int64_t>(CpComm::kUlysses)),
    offload(),
    words<&L::schedule, &F::schedule>("schedule", static_cast<std::int64_t>(Schedule::kGpipe),
                                      static_cast<std::int64_t>(Schedule::kDualPipe)),
    count<&L::micro_batch_seqs, &F::micro_batch_seqs>("mb", "micro_batch_seqs"),
    count<&L::grad_accum, &F::grad_accum>("ga", "grad_accum"),
};

}  // namespace

std::span<const LayoutDimension> layout_dimensions() { return kDimensions; }

const LayoutDimension* find_dimension(std::string_view name) {
  const auto* const found = std::find_if(kDimensions.begin(), kDimensions.end(), [&](const LayoutDimension& d) {
    return d.name == name || d.json_key == name;
  });
  return found == kDimensions.end() ? nullptr : found;
}

std::string value_text(const LayoutDimension& dimension, std::int64_t value) {
  return dimension.word == nullptr ? std::to_string(value) : std::string(dimension.word(value));
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

}  // namespace scalecalc
