#include "run/power.h"

namespace scalecalc {
namespace {

/// The whole host that the basis counts with.
std::optional<double> whole_host(const PowerInput& in) {
  switch (in.basis) {
    case PowerBasis::kRated: return std::nullopt;
    case PowerBasis::kServers: return in.host_w;
    case PowerBasis::kActivity: return in.host_measured_w ? in.host_measured_w : in.host_w;
  }
  return std::nullopt;
}

}  // namespace

template <class R>
ChipDraw<R> chip_draw(const Reader<R>& reader, const PowerInput& in) {
  const WattsOf<R> tdp = read(reader, Watts(in.tdp_w), "hw.power.tdp", in.source);
  ChipDraw<R> out{.working = tdp, .idle = tdp};
  if (in.basis == PowerBasis::kActivity) {
    const ActivityDraw& a = kActivityDraw;
    out.idle = in.idle_w ? read(reader, Watts(*in.idle_w), "hw.power.idle", in.source)
                         : named(tdp * R(a.idle), "idle power of a chip", "20 % of its rated power (docs/model.md)");
    const auto share = [&](double value, const char* name) { return reader.input(value, name, "this plan's step"); };
    const R swing = share(in.activity.computing, "share computing") * R(a.computing) +
                    share(in.activity.reading, "share memory-bound") * R(a.reading) +
                    share(in.activity.waiting, "share waiting") * R(a.waiting);
    // The shares of draw are of the rated power, idle power included.
    out.working = named(max(out.idle, tdp * swing), "power of a working chip", "docs/model.md [POWER]");
  }
  if (const auto host = whole_host(in)) {
    const R chips = reader.input(in.chips_per_host, "hw.host.chips", "hardware file");
    out.host =
        named(max(WattsOf<R>(R(0.0)), read(reader, Watts(*host), "hw.power.host", in.source) - tdp * chips) / chips,
              "rest of the host, for each chip", "(host - chips x TDP) / chips");
  }
  if (in.pue != 1) out.pue = reader.input(in.pue, "PUE", "--pue");
  return out;
}

std::string missing_power(const PowerInput& in) {
  if (in.basis == PowerBasis::kRated || whole_host(in)) return "";
  return "power.host";
}

template ChipDraw<double> chip_draw(const Reader<double>&, const PowerInput&);
template ChipDraw<Traced> chip_draw(const Reader<Traced>&, const PowerInput&);

}  // namespace scalecalc
