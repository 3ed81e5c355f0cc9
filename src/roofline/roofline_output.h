// The answer of `scalecalc roofline` as an Output.
#pragma once

#include "report/output.h"
#include "roofline/roofline.h"

namespace scalecalc {

/// `noted` are assumptions of whoever asked, put before the answer's own.
Output roofline_output(const RooflineQuestion& question, const RooflineAnswer& found, const HardwareSpec& hw,
                       const std::vector<Assumption>& noted);

/// Roof, ridge and points; without FLOPs or bytes time over the size that is swept.
Plot roofline_plot(const RooflineQuestion& question, const RooflineAnswer& found);

}  // namespace scalecalc
