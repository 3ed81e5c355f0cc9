// A chip whose links, overlaps and overheads are drawn at random.
#pragma once

#include <rapidcheck.h>

#include "support/fixtures.h"

namespace scalecalc::test {

inline double random_share() { return *rc::gen::inRange(0, 101) / 100.0; }

inline HardwareSpec random_kind_of_machine() { return *rc::gen::arbitrary<bool>() ? torus_chip() : switched_chip(); }

/// Every link `links` times as fast as the fixture's, and any overlaps and overheads.
inline void draw_rates(HardwareSpec& hw, double links) {
  hw.pcie_bandwidth = BytesPerSecond(32e9);
  for (Tier& tier : hw.network) {
    tier.torus.link_bandwidth = tier.torus.link_bandwidth * links;
    tier.switched.bandwidth_per_chip = tier.switched.bandwidth_per_chip * links;
  }
  Efficiency& e = hw.efficiency;
  for (Coefficient* c : {&e.overlap_tp, &e.overlap_fsdp, &e.overlap_dp, &e.overlap_cp, &e.overlap_ep, &e.overlap_pp,
                         &e.overlap_cp_gather, &e.overlap_ep_paired, &e.overlap_host}) {
    c->value = random_share();
  }
  e.contention_scale_up.value = random_share() / 2;
  e.contention_scale_out.value = random_share() / 2;
  e.kernel_overhead.value = *rc::gen::element(0.0, 5e-6);
  e.host_overhead.value = *rc::gen::element(0.0, 10e-6, 100e-6);
}

}  // namespace scalecalc::test
