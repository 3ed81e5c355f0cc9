// Chip-hours, dollars and energy of a job that holds its chips for so long.
#pragma once

#include <cstdint>

#include "jobs/job_part.h"
#include "train/resolve.h"

namespace scalecalc {

/// Price and power are those of `job`; what is not published is absent.
JobRun job_run(const ResolvedQuestion& job, std::int64_t chips, const SecondsOf<Traced>& time);

}  // namespace scalecalc
