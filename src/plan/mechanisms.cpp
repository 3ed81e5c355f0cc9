#include "plan/mechanisms.h"

#include <array>

namespace scalecalc {
namespace {

// Zero-bubble and DualPipe weigh more than one: few launchers have them, and DualPipe keeps two copies of the model.
constexpr std::array kMechanisms{
    Mechanism{"data", 1, [](const Layout& l) { return l.data() > 1; }},
    Mechanism{"hybrid sharding", 1, [](const Layout& l) { return l.dp > 1 && l.fsdp > 1; }},
    Mechanism{"tensor", 1, [](const Layout& l) { return l.tp > 1; }},
    Mechanism{"context", 1, [](const Layout& l) { return l.cp > 1; }},
    Mechanism{"ring", 1, [](const Layout& l) { return l.cp > 1 && l.cp_comm == CpComm::kRing; }},
    Mechanism{"ulysses", 1, [](const Layout& l) { return l.cp > 1 && l.cp_comm == CpComm::kUlysses; }},
    Mechanism{"expert", 1, [](const Layout& l) { return l.ep > 1; }},
    Mechanism{"expert-tensor", 1, [](const Layout& l) { return l.etp > 1; }},
    Mechanism{"pipeline", 1, [](const Layout& l) { return l.pp > 1; }},
    Mechanism{"interleaved", 1, [](const Layout& l) { return l.vpp > 1; }},
    Mechanism{"zero-bubble", 2, [](const Layout& l) { return l.schedule == Schedule::kZeroBubble; }},
    Mechanism{"dualpipe", 3, [](const Layout& l) { return l.schedule == Schedule::kDualPipe; }},
    Mechanism{"remat of one part", 1,
              [](const Layout& l) { return l.remat == Remat::kAttention || l.remat == Remat::kMlp; }},
    Mechanism{"remat of some layers", 1, [](const Layout& l) { return l.remat_layers > 0; }},
    Mechanism{"optimizer offload", 1, [](const Layout& l) { return (l.offload & kOffloadOptimizer) != 0; }},
    Mechanism{"activation offload", 1, [](const Layout& l) { return (l.offload & kOffloadActivations) != 0; }},
    Mechanism{"weight offload", 1, [](const Layout& l) { return (l.offload & kOffloadWeights) != 0; }},
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

int complexity(const Layout& layout) {
  int out = 0;
  for (const Mechanism& m : kMechanisms) out += m.used(layout) ? m.weight : 0;
  return out;
}

}  // namespace scalecalc
