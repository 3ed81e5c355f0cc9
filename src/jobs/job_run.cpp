#include "jobs/job_run.h"

namespace scalecalc {

JobRun job_run(const ResolvedQuestion& job, std::int64_t chips, const SecondsOf<Traced>& time) {
  const Traced count = Traced::leaf(static_cast<double>(chips), "chips", "asked", {});
  const SecondsOf<Traced> hour(Traced::leaf(3600, "an hour", "", kSecondDim));
  JobRun out{.time = time, .chip_hours = named(time * count / hour, "chip-hours", "chips x time")};
  if (job.usd_per_chip_hour) {
    const Quantity<kUsdDim, Traced> price(
        Traced::leaf(*job.usd_per_chip_hour, "price of a chip-hour", "--price or the hardware file", kUsdDim));
    out.cost = named(price * out.chip_hours, "cost", "chip-hours x price");
  }
  if (job.hw.tdp) {
    const auto power = read(Reader<Traced>{}, *job.hw.tdp, "hw.power.tdp", job.hw.tdp_source);
    out.energy = named(time * power * count, "energy", "every chip at its full power, idle or not");
  }
  return out;
}

}  // namespace scalecalc
