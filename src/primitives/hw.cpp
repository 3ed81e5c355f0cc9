#include "primitives/hw.h"

#include <fmt/format.h>

#include <charconv>

#include "base/diagnostic.h"
#include "spec/load.h"

namespace scalecalc {
namespace {

/// Sets of the chip at `position` (from 1): those for all of them and those for it alone.
std::vector<std::string> sets_for(const HwQuestion& q, std::size_t position) {
  std::vector<std::string> out;
  for (const std::string& set : q.set) {
    const std::string scope = set.substr(0, set.find('.'));
    std::size_t other = 0;
    const char* end = scope.data() + scope.size();
    const bool numbered =
        scope.size() > 2 && scope.starts_with("hw") && std::from_chars(scope.data() + 2, end, other).ptr == end;
    if (numbered && (other == 0 || other > q.hardware.size())) {
      throw UserError(
          fmt::format("--set {}: there is no chip {}", set, scope),
          fmt::format("hw1 to hw{} are the chips in the order given; hw is all of them", q.hardware.size()));
    }
    if (!numbered || other == position) out.push_back(set);
  }
  return out;
}

HardwareSpec hardware_at(const HwQuestion& q, std::size_t position, const Catalog& catalog) {
  ConfigNode document = catalog.load(CatalogKind::kHardware, q.hardware[position - 1]);
  const std::string own = fmt::format("hw{}", position);
  apply_sets(sets_for(q, position), {{"hw", &document}, {own, &document}});
  return load_hardware(document, catalog, Unpublished::kAllowed);
}

HwChip chip_of(const HwQuestion& q, HardwareSpec hw, std::vector<Assumption>& assumptions) {
  HwChip out;
  out.hw = std::move(hw);
  out.rates = rates_of(out.hw, q.dtype);
  out.units = units_of(out.hw, q.registers_per_thread);
  out.onchip = onchip_of(out.hw, out.units);
  const auto total_of = [&](std::string_view name) -> Maybe<TracedBytes> {
    for (const HwMemoryLevel& level : out.onchip) {
      if (level.name == name && level.one) return level.total;
    }
    return std::nullopt;
  };
  if (const auto smem = total_of("smem"), registers = total_of("registers"); smem && registers) {
    out.registers_and_smem =
        named(*smem + *registers, "register files and shared memory", "book ch. 12, quiz 1: of all SMs");
  }
  out.slice = slice_of(out.hw, q, assumptions);
  switches_of(q, out);
  if (q.send) out.send = send_of(out.hw, q, out.slice, assumptions);
  if (q.load) out.load = load_of(out.hw, q, out.slice, assumptions);
  if (q.weight) out.padding = padding_of(out.hw, q.weight->first, q.weight->second);
  return out;
}

/// What one would otherwise miss: the file says so, and so does the answer.
void note_gaps(const HardwareSpec& hw, std::vector<Assumption>& assumptions) {
  for (const UnpublishedFigure& figure : hw.unpublished) {
    assumptions.push_back(
        {fmt::format("{} leaves {} unpublished: what follows from it is left out", hw.name, figure.path), figure.flag,
         "hardware file", true});
  }
  if (hw.announced) {
    assumptions.push_back({fmt::format("{} is announced, not sold: its figures are the vendor's plans", hw.name), "",
                           "hardware file", true});
  }
}

}  // namespace

HwAnswer answer(const HwQuestion& question, const Catalog& catalog) {
  HwAnswer out{.question = question};
  for (std::size_t i = 1; i <= question.hardware.size(); ++i) {
    HardwareSpec hw = hardware_at(question, i, catalog);
    note_gaps(hw, out.assumptions);
    out.chips.push_back(chip_of(question, std::move(hw), out.assumptions));
  }
  return out;
}

}  // namespace scalecalc
