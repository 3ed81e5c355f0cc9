// A picture as a Vega-Lite specification: data alone, which any tool that reads Vega-Lite draws. Values stand in the
// unit of their axis; what people read when they point at a mark is formatted here, as tables are.
#pragma once

#include "report/json_text.h"
#include "report/plot.h"

namespace scalecalc {

/// Fonts, colours and sizes that all pictures share.
Json chart_config();
Json chart_spec(const Plot& plot);
/// What the picture shows in words, for those who cannot see it, and as the key of its letters and limits.
std::vector<std::string> chart_key(const Plot& plot);
/// Its numbers as a table; empty for a map.
Table chart_table(const Plot& plot);

}  // namespace scalecalc
