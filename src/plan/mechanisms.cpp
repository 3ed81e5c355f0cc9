// Counts the mechanisms that a layout uses, so that the simplest of equally fast plans can be recommended.
#include "plan/mechanisms.h"

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>
#include <utility>

namespace scalecalc {
namespace {

// Zero-bubble and DualPipe weigh more than one: few launchers have them, and DualPipe keeps two copies of the model.
constexpr std::array kMechanisms{
    Mechanism{"data", "dp", 1, [](const Layout& l) { return l.data() > 1; }},
    Mechanism{"hybrid sharding", "fsdp", 1, [](const Layout& l) { return l.dp > 1 && l.fsdp > 1; }},
    Mechanism{"tensor", "tp", 1, nullptr, [](const Layout& l) { return l.tp; }},
    Mechanism{"context", "cp", 1, nullptr, [](const Layout& l) { return l.cp; }},
    Mechanism{"ring", "cp_comm", 1, [](const Layout& l) { return l.cp > 1 && l.cp_comm == CpComm::kRing; }},
    Mechanism{"ulysses", "cp_comm", 1, [](const Layout& l) { return l.cp > 1 && l.cp_comm == CpComm::kUlysses; }},
    Mechanism{"expert", "ep", 1, nullptr, [](const Layout& l) { return l.ep; }},
    Mechanism{"expert-tensor", "etp", 1, nullptr, [](const Layout& l) { return l.etp; }},
    Mechanism{"pipeline", "pp", 1, nullptr, [](const Layout& l) { return l.pp; }},
    Mechanism{"interleaved", "vpp", 1, [](const Layout& l) { return l.vpp > 1; }},
    Mechanism{"zero-bubble", "schedule", 2, [](const Layout& l) { return l.schedule == Schedule::kZeroBubble; }},
    Mechanism{"dualpipe", "schedule", 3, [](const Layout& l) { return l.schedule == Schedule::kDualPipe; }},
    Mechanism{"expert overlap", "ep_overlap", 1,
              [](const Layout& l) { return l.ep_overlap && l.schedule != Schedule::kDualPipe; }},
    Mechanism{"remat of one part", "remat", 1,
              [](const Layout& l) { return l.remat == Remat::kAttention || l.remat == Remat::kMlp; }},
    Mechanism{"remat of some layers", "remat_layers", 1, [](const Layout& l) { return l.remat_layers > 0; }},
    Mechanism{"optimizer offload", "offload", 1, [](const Layout& l) { return (l.offload & kOffloadOptimizer) != 0; }},
    Mechanism{"activation offload", "offload", 1,
              [](const Layout& l) { return (l.offload & kOffloadActivations) != 0; }},
    Mechanism{"chunked loss", "loss", 1, [](const Layout& l) { return l.loss == LossKind::kChunked; }},
    Mechanism{"weight offload", "offload", 1, [](const Layout& l) { return (l.offload & kOffloadWeights) != 0; }},
    Mechanism{"chosen stages", "split", 1, [](const Layout& l) { return l.split.chosen(); }},
};

bool uses(const Layout& layout, const Mechanism& m) { return m.used == nullptr ? m.ways(layout) > 1 : m.used(layout); }

}  // namespace

std::span<const Mechanism> mechanisms() { return kMechanisms; }

std::vector<std::string_view> mechanisms_of(const Layout& layout) {
  std::vector<std::string_view> out;
  for (const Mechanism& m : kMechanisms) {
    if (uses(layout, m)) out.push_back(m.name);
  }
  return out;
}

std::vector<std::string_view> mechanisms_beside(const Layout& layout, const std::vector<std::string>& dimensions) {
  std::vector<std::string_view> out;
  for (const Mechanism& m : kMechanisms) {
    const bool among = std::find(dimensions.begin(), dimensions.end(), m.dimension) != dimensions.end();
    if (uses(layout, m) && !among) out.push_back(m.name);
  }
  return out;
}

namespace {

/// `visit(i)` for the position of each, known when this is compiled: a search asks millions of layouts.
template <class Visit>
void each_mechanism(const Visit& visit) {
  [&]<std::size_t... kI>(std::index_sequence<kI...>) { (visit(std::integral_constant<std::size_t, kI>{}), ...); }
  (std::make_index_sequence<kMechanisms.size()>{});
}

}  // namespace

MechanismSet used_by(const Layout& layout) {
  MechanismSet out = 0;
  each_mechanism([&](auto i) {
    constexpr Mechanism kOne = kMechanisms[i];
    if constexpr (kOne.used == nullptr) {
      out |= MechanismSet{kOne.ways(layout) > 1} << i;
    } else {
      out |= MechanismSet{kOne.used(layout)} << i;
    }
  });
  return out;
}

MechanismSet unmeasured_in(const Layout& layout, const MeasuredExtent& measured) {
  MechanismSet out = used_by(layout) & measured.never;
  each_mechanism([&](auto i) {
    constexpr auto kWays = kMechanisms[i].ways;
    if constexpr (kWays != nullptr) {
      const std::int64_t most = measured.most_ways[i];
      if (most > 0 && kWays(layout) > kBeyondMeasured * most) out |= MechanismSet{1} << i;
    }
  });
  return out;
}

int complexity(const Layout& layout, const MeasuredExtent& measured) {
  const MechanismSet used = used_by(layout);
  int out = std::popcount(unmeasured_in(layout, measured));
  for (std::size_t i = 0; i < kMechanisms.size(); ++i) out += (used >> i & 1) != 0 ? kMechanisms.at(i).weight : 0;
  return out;
}

}  // namespace scalecalc
