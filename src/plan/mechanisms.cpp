#include "plan/mechanisms.h"

#include <algorithm>
#include <array>
#include <bit>

namespace scalecalc {
namespace {

// Zero-bubble and DualPipe weigh more than one: few launchers have them, and DualPipe keeps two copies of the model.
constexpr std::array kMechanisms{
    Mechanism{"data", "dp", 1, [](const Layout& l) { return l.data() > 1; }},
    Mechanism{"hybrid sharding", "fsdp", 1, [](const Layout& l) { return l.dp > 1 && l.fsdp > 1; }},
    Mechanism{"tensor", "tp", 1, [](const Layout& l) { return l.tp > 1; }},
    Mechanism{"context", "cp", 1, [](const Layout& l) { return l.cp > 1; }},
    Mechanism{"ring", "cp_comm", 1, [](const Layout& l) { return l.cp > 1 && l.cp_comm == CpComm::kRing; }},
    Mechanism{"ulysses", "cp_comm", 1, [](const Layout& l) { return l.cp > 1 && l.cp_comm == CpComm::kUlysses; }},
    Mechanism{"expert", "ep", 1, [](const Layout& l) { return l.ep > 1; }},
    Mechanism{"expert-tensor", "etp", 1, [](const Layout& l) { return l.etp > 1; }},
    Mechanism{"pipeline", "pp", 1, [](const Layout& l) { return l.pp > 1; }},
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
    Mechanism{"weight offload", "offload", 1, [](const Layout& l) { return (l.offload & kOffloadWeights) != 0; }},
    Mechanism{"chosen stages", "split", 1, [](const Layout& l) { return l.split.chosen(); }},
};

}  // namespace

std::span<const Mechanism> mechanisms() { return kMechanisms; }

std::vector<std::string_view> mechanisms_of(const Layout& layout) {
  std::vector<std::string_view> out;
  for (const Mechanism& m : kMechanisms) {
    if (m.used(layout)) out.push_back(m.name);
  }
  return out;
}

std::vector<std::string_view> mechanisms_beside(const Layout& layout, const std::vector<std::string>& dimensions) {
  std::vector<std::string_view> out;
  for (const Mechanism& m : kMechanisms) {
    const bool among = std::find(dimensions.begin(), dimensions.end(), m.dimension) != dimensions.end();
    if (m.used(layout) && !among) out.push_back(m.name);
  }
  return out;
}

MechanismSet used_by(const Layout& layout) {
  MechanismSet out = 0;
  for (std::size_t i = 0; i < kMechanisms.size(); ++i) out |= MechanismSet{kMechanisms.at(i).used(layout)} << i;
  return out;
}

int complexity(const Layout& layout, MechanismSet doubtful) {
  const MechanismSet used = used_by(layout);
  int out = std::popcount(used & doubtful);
  for (std::size_t i = 0; i < kMechanisms.size(); ++i) out += (used >> i & 1) != 0 ? kMechanisms.at(i).weight : 0;
  return out;
}

}  // namespace scalecalc
