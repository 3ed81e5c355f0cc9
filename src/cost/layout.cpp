// Names the values of a layout and compares two layouts.
#include "cost/layout.h"

#include <array>
#include <tuple>

namespace scalecalc {

std::string_view name_of(Remat remat) {
  constexpr std::array<std::string_view, kRematCount> kNames{"none", "selective", "attention", "mlp", "full"};
  return kNames[static_cast<std::size_t>(remat)];
}

std::string_view name_of(Schedule schedule) {
  constexpr std::array<std::string_view, 6> kNames{"none", "gpipe", "1f1b", "interleaved", "zero-bubble", "dualpipe"};
  return kNames[static_cast<std::size_t>(schedule)];
}

std::string_view name_of(CpComm comm) {
  constexpr std::array<std::string_view, kCpCommCount> kNames{"all-gather", "ring", "ulysses"};
  return kNames[static_cast<std::size_t>(comm)];
}

std::string_view name_of(LossKind loss) {
  constexpr std::array<std::string_view, kLossCount> kNames{"whole", "fused", "chunked"};
  return kNames[static_cast<std::size_t>(loss)];
}

std::string_view offload_name(std::uint8_t offload) {
  constexpr std::array<std::string_view, kOffloadAll + 1> kNames{"none",
                                                                 "optimizer",
                                                                 "weights",
                                                                 "optimizer+weights",
                                                                 "activations",
                                                                 "optimizer+activations",
                                                                 "weights+activations",
                                                                 "optimizer+weights+activations"};
  return kNames.at(offload);
}

std::strong_ordering operator<=>(const Layout& a, const Layout& b) {
  const auto key = [](const Layout& l) {
    return std::tuple(l.pp, l.vpp, l.tp, l.cp, l.ep, l.etp, l.zero, l.fsdp, l.dp, l.micro_batch_seqs, l.grad_accum,
                      l.remat, l.remat_layers, l.schedule, l.cp_comm, l.offload, l.sp, l.ep_overlap, l.offload_layers,
                      l.loss, l.split);
  };
  return key(a) <=> key(b);
}

}  // namespace scalecalc
