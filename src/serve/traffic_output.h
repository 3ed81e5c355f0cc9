// The answer of `serve --rate`: what is added to the serving answer's output.
#pragma once

#include "report/output.h"
#include "serve/traffic.h"

namespace scalecalc {

/// `traffic` is nothing where no fleet carries what was asked.
void add_traffic(Output& output, const ServeAnswer& answer, const TrafficAsked& asked,
                 const std::optional<TrafficAnswer>& traffic);

}  // namespace scalecalc
