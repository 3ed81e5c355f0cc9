// The answer of `serve --rate`: what is added to the serving answer's sheet.
#pragma once

#include "report/sheet.h"
#include "serve/traffic.h"

namespace scalecalc {

/// `traffic` is nothing where no fleet carries what was asked.
void add_traffic(Sheet& sheet, const ServeAnswer& answer, const TrafficAsked& asked,
                 const std::optional<TrafficAnswer>& traffic);

}  // namespace scalecalc
