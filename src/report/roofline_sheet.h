// The answer of `scalecalc roofline` as a Sheet.
#pragma once

#include "primitives/roofline.h"
#include "report/sheet.h"

namespace scalecalc {

/// `noted` are assumptions of whoever asked, put before the answer's own.
Sheet roofline_sheet(const RooflineQuestion& question, const RooflineAnswer& found, const HardwareSpec& hw,
                     const std::vector<Assumption>& noted);

}  // namespace scalecalc
