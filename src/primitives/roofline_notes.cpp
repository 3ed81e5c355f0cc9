// What a roofline takes for granted, and what should make its reader careful.
#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "primitives/roofline.h"

namespace scalecalc {
namespace {

using Notes = std::vector<Assumption>;

std::string_view place_of(OperandHome home) {
  switch (home) {
    case OperandHome::kHbm: return "HBM";
    case OperandHome::kVmem: return "VMEM";
    case OperandHome::kHost: return "host memory over PCIe";
  }
  return "";
}

std::string bytes_text(double bytes) { return format_quantity(bytes, UnitKind::kBytes); }

void note_rates(const RooflineQuestion& question, const HardwareSpec& hw, const RooflineAnswer& found, Notes& notes) {
  if (!question.calibrated) {
    notes.push_back({"peak rates: kernels and links reach less", "--efficiency calibrated", "book ch. 1"});
    return;
  }
  notes.push_back({fmt::format("efficiency calibrated: {}; {}", hw.efficiency.confidence, hw.efficiency.basis),
                   "--efficiency ideal", "hardware file"});
  if (question.from != OperandHome::kHbm) {
    notes.push_back(
        {fmt::format("{} at its full rate: the hardware file has no coefficient for it", found.rates.memory_name), "",
         "hardware file"});
  }
  if (found.rates.half_dim.value() != 0) {
    notes.push_back(
        {fmt::format("matmuls reach x / (x + {:.4g}) of that in each dimension x; the critical batch counts "
                     "it{}",
                     found.rates.half_dim.value(), found.rates.link ? ", the critical D or F does not" : ""),
         "--set hw.efficiency.matmul_half_dim.value", "hardware file"});
  }
  if (found.rates.attention.half_context.value() != 0 || found.rates.attention.half_head_dim.value() != 0) {
    notes.push_back(
        {"attention reaches less of that in short contexts and narrow heads; the critical prompt does not "
         "count it",
         "--set hw.efficiency.attention_half_context.value", "docs/model.md"});
  }
  if (found.rates.half_dim.value() != 0 && question.sharing.chips > 1 && question.sharing.split == MatmulSplit::kEven) {
    notes.push_back({"each chip's matmul is as efficient as the whole one: how it is cut is not said", "--split", ""});
  }
}

void note_bytes(const RooflineQuestion& question, Notes& notes) {
  const Operation& operation = question.operations.front();
  const Matmul* matmul = std::get_if<Matmul>(&operation);
  switch (question.counted) {
    case Counted::kAll:
      if (std::holds_alternative<GivenWork>(operation)) return;
      if (matmul != nullptr && matmul->tile) {
        notes.push_back({fmt::format("from {} the input is read once for each column of tiles, the weights once for "
                                     "each row of tiles, and the result is written once",
                                     place_of(question.from)),
                         "tile=", "book ch. 1"});
        return;
      }
      notes.push_back(
          {fmt::format("every operand is read once from {} and the result written once", place_of(question.from)),
           "--from, --count", "book ch. 1"});
      return;
    case Counted::kWeights:
      notes.push_back({"only the weights' bytes count: the approximation for small batches", "--count", "book ch. 1"});
      return;
    case Counted::kNone:
      notes.push_back({"no bytes count: operands lie where the units read them", "--count", "book ch. 1"});
      return;
  }
}

void note_exchange(const RooflineQuestion& question, const RooflineAnswer& found, Notes& notes) {
  const CollectiveTime all_to_all = all_to_all_seconds(question, found.rates, found.points.front().work.exchanged);
  notes.push_back(
      {fmt::format("convention {}: {}, as in collective; latency {}",
                   kCollectiveConventionNames[static_cast<std::size_t>(question.convention)], all_to_all.algorithm,
                   question.convention == CollectiveConvention::kExact ? "counted" : "not counted"),
       "--convention", "book ch. 3 and 12"});
}

void note_sharing(const RooflineQuestion& question, const RooflineAnswer& found, Notes& notes) {
  if (question.sharing.chips == 1) return;
  const std::string chips = group_thousands(question.sharing.chips);
  switch (question.sharing.split) {
    case MatmulSplit::kEven:
      notes.push_back({fmt::format("FLOPs and bytes divide evenly over {} chips, and nothing is exchanged", chips),
                       "--split", "book ch. 2"});
      return;
    case MatmulSplit::kBatch:
      notes.push_back(
          {fmt::format("{} chips hold all weights each and divide the rows", chips), "--split", "book ch. 1"});
      return;
    case MatmulSplit::kContraction:
      notes.push_back({fmt::format("{} chips divide D and add up their partial results: an all-reduce", chips),
                       "--split, --over", "book ch. 1 and 3"});
      return note_exchange(question, found, notes);
    case MatmulSplit::kOutput:
      notes.push_back({fmt::format("{} chips divide F and gather the input: an all-gather", chips), "--split, --over",
                       "book ch. 3"});
      return note_exchange(question, found, notes);
  }
}

/// Operands that HBM cannot hold are no roofline of this chip.
void warn_of_capacity(const RooflineQuestion& question, const HardwareSpec& hw, const RooflineAnswer& found,
                      Notes& notes) {
  if (question.from != OperandHome::kHbm || std::holds_alternative<GivenWork>(question.operations.front())) return;
  double most = 0;
  for (const RooflinePoint& point : found.points) most = std::max(most, value_of(point.bytes));
  most /= static_cast<double>(question.sharing.chips);
  const double capacity = hw.hbm_capacity.value();
  const Matmul* matmul = std::get_if<Matmul>(&question.operations.front());
  const bool rereads = matmul != nullptr && matmul->tile.has_value();
  if (most <= capacity || rereads) return;
  notes.push_back(
      {fmt::format("the operands take {} of each chip, which has {}", bytes_text(most), bytes_text(capacity)),
       "--chips", hw.hbm_source, true});
}

void warn_of_impossible_times(const RooflineAnswer& found, Notes& notes) {
  const bool faster = std::any_of(found.measured.begin(), found.measured.end(),
                                  [](const MeasuredTime& m) { return m.roofline_fraction.value() > 1; });
  if (!faster) return;
  notes.push_back({"a measured time is shorter than the roofline allows: check the shape, the formats and the rates",
                   "--measured", "", true});
}

}  // namespace

void note_assumptions(const RooflineQuestion& question, const HardwareSpec& hw, RooflineAnswer& found) {
  Notes& notes = found.assumptions;
  note_bytes(question, notes);
  note_sharing(question, found, notes);
  const Matmul* matmul = std::get_if<Matmul>(&question.operations.front());
  if (matmul != nullptr && matmul->pad != 1) {
    notes.push_back({"padding is computed and not moved: bytes are those of the arrays", "", "book ch. 2"});
  }
  const Attention* attention = std::get_if<Attention>(&question.operations.front());
  if (attention != nullptr && attention->backward) {
    notes.push_back({"backward: 2.5 times the forward's FLOPs, twice its bytes", "pass=forward", "arXiv:2307.08691"});
  }
  note_rates(question, hw, found, notes);
  warn_of_capacity(question, hw, found, notes);
  warn_of_impossible_times(found, notes);
}

}  // namespace scalecalc
