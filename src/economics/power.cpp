// Computes the power that chips, hosts and the facility draw, for training and for serving.
#include "economics/power.h"

#include <fmt/format.h>

namespace scalecalc {
namespace {

struct WholeHost {
  double watts = 0;
  std::string_view field;
};

/// What the basis counts with.
std::optional<WholeHost> whole_host(const PowerInput& in) {
  if (in.basis == PowerBasis::kRated) return std::nullopt;
  if (in.basis == PowerBasis::kActivity && in.host_measured_w) {
    return WholeHost{*in.host_measured_w, "hw.power.host_measured"};
  }
  if (in.host_w) return WholeHost{*in.host_w, "hw.power.host"};
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
        named(max(WattsOf<R>(R(0.0)), read(reader, Watts(host->watts), host->field, in.source) - tdp * chips) / chips,
              "rest of the host, for each chip", "(host - chips x TDP) / chips");
  }
  if (in.pue != 1) out.pue = reader.input(in.pue, "PUE", "--pue");
  return out;
}

PowerInput power_input(const HardwareSpec& hw, const PowerTerms& terms, const StepActivity& activity) {
  const auto watts = [](const std::optional<Watts>& w) { return w ? std::optional(w->value()) : std::nullopt; };
  return {.basis = terms.basis,
          .tdp_w = hw.tdp->value(),
          .source = hw.tdp_source,
          .idle_w = watts(hw.idle_power),
          .host_w = watts(hw.host_power),
          .host_measured_w = watts(hw.host_power_measured),
          .chips_per_host = static_cast<double>(hw.chips_per_host),
          .activity = activity,
          .pue = terms.pue.value_or(1)};
}

std::vector<Assumption> power_assumptions(const HardwareSpec& hw, const PowerTerms& terms) {
  if (!hw.tdp) {
    return {{"chip power is not published: energy is left out", "--set hw.power.tdp", "hardware file"}};
  }
  const double tdp = hw.tdp->value();
  if (terms.basis == PowerBasis::kRated) {
    return {Assumption{fmt::format("energy at the full {:g} W of each chip, without host, network{}", tdp,
                                   terms.pue ? "" : " or cooling"),
                       "--power", hw.tdp_source}
                .is("rated")};
  }
  const char* cooling = terms.pue ? "" : ", without cooling";
  std::vector<Assumption> out;
  if (terms.basis == PowerBasis::kServers) {
    out.push_back(
        {fmt::format("energy at the rated power of chips and hosts, without the network outside them{}", cooling),
         "--power", hw.tdp_source});
  } else {
    const ActivityDraw& a = kActivityDraw;
    const double idle = hw.idle_power ? *hw.idle_power / *hw.tdp : a.idle;
    out.push_back(
        {fmt::format("chips draw {:.0f} % of their {:g} W in compute, {:.0f} % in memory-bound work, {:.0f} % "
                     "while they wait in a step and {:.0f} % at rest{}",
                     100 * a.computing, tdp, 100 * a.reading, 100 * a.waiting, 100 * idle, cooling),
         "--power", "docs/model.md [POWER]"});
  }
  if (!whole_host(power_input(hw, terms, {}))) {
    out.push_back(
        {fmt::format("the power of a whole host of {} is not published: what is in it beside the chips is left "
                     "out",
                     hw.name),
         "--set hw.power.host", "hardware file", true});
  }
  return out;
}

template ChipDraw<double> chip_draw(const Reader<double>&, const PowerInput&);
template ChipDraw<Traced> chip_draw(const Reader<Traced>&, const PowerInput&);

}  // namespace scalecalc
