// Adds up equal kernels of a recording and compares each with its roofline.
#include "profile/kernel_totals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <unordered_set>

#include "base/text.h"
#include "network/collective_time.h"
#include "roofline/roofline.h"

namespace scalecalc {
namespace {

/// A kernel's name without its types: "elementwise_kernel", "flash_fwd_kernel".
std::string short_kernel(std::string_view name) {
  std::string out(name.starts_with("void ") ? name.substr(5) : name);
  for (const std::string_view anonymous : {"(anonymous namespace)::", "std::enable_if"}) {
    for (std::size_t at = out.find(anonymous); at != std::string::npos; at = out.find(anonymous)) {
      out.erase(at, anonymous.size());
    }
  }
  const std::string whole = out;
  out = out.substr(0, out.find_first_of("<("));
  if (out.empty()) out = whole;
  constexpr std::size_t kShown = 60;
  return count_characters(out) > kShown ? out.substr(0, kShown - 3) + "..." : out;
}

std::string what_of(const RecordedOp& op, const std::optional<ShapedWork>& shaped, std::string_view kernel) {
  std::string name = op.name.starts_with("aten::") ? op.name.substr(6) : op.name;
  if (!op.collective.empty()) {
    return op.group_size > 0 ? fmt::format("{} over {}", op.collective, op.group_size) : op.collective;
  }
  if (name.empty() || !shaped || shaped->text.empty()) return short_kernel(kernel);
  return fmt::format("{} {}", name, shaped->text);
}

struct NamedCollective {
  std::string_view name;  ///< small letters, without '_' and '-'
  CollectiveOp op;
  bool of_output;  ///< V is what comes out
};
constexpr std::array kNamedCollectives{
    NamedCollective{"allreduce", CollectiveOp::kAllReduce, false},
    NamedCollective{"allgather", CollectiveOp::kAllGather, true},
    NamedCollective{"reducescatter", CollectiveOp::kReduceScatter, false},
    NamedCollective{"alltoall", CollectiveOp::kAllToAll, false},
};

const NamedCollective* collective_of(std::string_view name) {
  std::string letters = lower_case(name);
  std::erase_if(letters, [](char c) { return c == '_' || c == '-'; });
  const auto* const found =
      std::find_if(kNamedCollectives.begin(), kNamedCollectives.end(),
                   [&](const NamedCollective& row) { return letters.find(row.name) != std::string::npos; });
  return found == kNamedCollectives.end() ? nullptr : found;
}

/// Of ranks that lie side by side behind switches, the planner's formula; nothing elsewhere.
std::optional<double> collective_seconds(const HardwareSpec& hw, const NamedCollective& what, std::int64_t ranks,
                                         double bytes) {
  if (hw.is_torus() || hw.network.empty() || ranks < 2) return std::nullopt;
  try {
    const CollectiveRequest request{
        .op = what.op, .bytes = BytesOf<Traced>(Traced(bytes)), .convention = CollectiveConvention::kExact};
    const Efficiency ideal = ideal_efficiency(hw.efficiency);
    return value_of(collective_time(collective_network(hw, ideal), switched_group(hw, ranks), request).time);
  } catch (const UserError&) {
    return std::nullopt;  // more ranks than the machine has, or unevenly many
  }
}

/// Share of whole tiles that is result, whichever way round the tile lies.
double useful_of_tiles(const Matmul& m, const KernelTile& tile) {
  const auto share = [&](double rows, double columns) {
    return m.rows * m.columns / (std::ceil(m.rows / rows) * rows * std::ceil(m.columns / columns) * columns);
  };
  return std::max(share(tile.rows, tile.columns), share(tile.columns, tile.rows));
}

/// A copy between the chip and its host, as CUPTI and ROCm name it.
bool crosses_to_host(const ProfiledKernel& kernel) {
  return kernel.work == DeviceWork::kCopy &&
         (kernel.kernel.find("HtoD") != std::string::npos || kernel.kernel.find("DtoH") != std::string::npos);
}

}  // namespace

void KernelTotals::add(const Recording& recording, std::span<const RecordedEvent> events, const LeafPieces& pieces,
                       std::span<const StepWindow> steps) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, Total*> known;  // a look-up for each name and operation
  std::unordered_set<std::uint64_t> calls;
  std::vector<bool> counted(events.size());
  for (const StepWindow& window : steps) {
    for (const LeafPiece& piece : pieces.around(window)) {
      const Ticks length = std::min(piece.end, window.end) - std::max(piece.start, window.start);
      if (length <= 0) continue;
      const RecordedEvent& event = events[piece.event];
      Total*& total = known[{event.name, event.op}];
      if (total == nullptr) {
        const RecordedName& name = recording.names[event.name];
        const RecordedOp& op = recording.ops[event.op];
        const bool shaped = !op.dims.empty() || !op.collective.empty();
        const std::string shape = shaped ? fmt::format("{} {} {} {} {} {}", op.dims, op.types, op.values,
                                                       op.elements_in, op.elements_out, op.group_size)
                                         : "";
        total = &totals_[{name.work, shaped ? op.name + op.collective : name.text, shape}];
        total->op = op;
        total->kernel.work = name.work;
      }
      const double seconds = seconds_of(length);
      total->kernel.seconds += seconds;
      if (seconds > total->longest) {
        total->longest = seconds;
        total->kernel.kernel = recording.names[event.name].text;
      }
      if (counted[piece.event]) continue;
      counted[piece.event] = true;
      total->kernel.calls += 1;
      total->bytes += recording.ops[event.op].bytes.value_or(0);
      if (event.call == 0 || calls.insert(event.call).second) total->work_calls += 1;
    }
  }
}

void KernelTotals::beside_roofline(ProfiledKernel& kernel, const Total& total, double steps) const {
  const double calls = total.work_calls / steps;
  if (const NamedCollective* what = collective_of(total.op.collective)) {
    const double each =
        (what->of_output ? total.op.elements_out : total.op.elements_in) * recorded_element_bytes(total.op.element);
    if (each > 0) kernel.bytes = each * calls;
    if (const auto least = collective_seconds(hw_, *what, total.op.group_size, each)) {
      kernel.roofline_s = *least * calls;
      kernel.bound_by = "link";
    }
  } else if (kernel.shaped) {
    ShapedWork work = *kernel.shaped;
    // A recording's own bytes differ from call to call of one name.
    if (GivenWork* given = std::get_if<GivenWork>(&work.operation); given != nullptr && total.bytes > 0) {
      given->bytes = total.bytes / total.work_calls;
    }
    if (Matmul* matmul = std::get_if<Matmul>(&work.operation)) {
      if (hw_.units.mxu && hw_.units.mxu->dim > 0) matmul->pad = static_cast<double>(hw_.units.mxu->dim);
      if (const auto tile = tile_of_kernel(kernel.kernel)) kernel.useful = useful_of_tiles(*matmul, *tile);
    }
    try {
      const RooflinePoint point =
          answer(RooflineQuestion{.operations = {work.operation}, .types = work.types}, hw_).points.front();
      // A plane of a recording is one core of a chip with several.
      const double cores = std::holds_alternative<GivenWork>(work.operation) && hw_.units.mxu
                               ? std::max(1.0, static_cast<double>(hw_.units.cores))
                               : 1.0;
      if (!work.moves_only) kernel.flops = value_of(point.work.flops) * calls;
      kernel.bytes = value_of(point.bytes) * calls;
      kernel.roofline_s = value_of(point.time) * calls * cores;
      kernel.bound_by = point.bound_by;
      // Read and written where it stays on the chip.
      if (kernel.work == DeviceWork::kCopy && !crosses_to_host(kernel)) {
        *kernel.bytes *= 2;
        *kernel.roofline_s *= 2;
      }
      if (crosses_to_host(kernel)) {
        kernel.roofline_s.reset();
        if (hw_.pcie_bandwidth) kernel.roofline_s = *kernel.bytes / hw_.pcie_bandwidth->value();
        kernel.bound_by = "link";
      }
      if (point.work.useful) kernel.useful = point.work.useful->value();
      if (!work.moves_only && kernel.seconds > 0) {
        kernel.of_peak = value_of(point.compute_time) * calls * cores / kernel.seconds;
      }
    } catch (const UserError&) {
      // The chip publishes no rate for this format: time alone is known.
    }
  }
  if (kernel.roofline_s && kernel.seconds > 0) kernel.of_roofline = *kernel.roofline_s / kernel.seconds;
}

std::vector<ProfiledKernel> KernelTotals::kernels(double steps) const {
  std::vector<ProfiledKernel> out;
  for (const auto& [key, total] : totals_) {
    ProfiledKernel kernel = total.kernel;
    kernel.seconds /= steps;
    kernel.calls /= steps;
    kernel.shaped = shaped_work(total.op, kernel.work, kernel.kernel);
    kernel.what = what_of(total.op, kernel.shaped, kernel.kernel);
    beside_roofline(kernel, total, steps);
    out.push_back(std::move(kernel));
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.seconds > b.seconds; });
  return out;
}

}  // namespace scalecalc
