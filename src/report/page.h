// An answer as one page that opens anywhere: tables that sort and filter, pictures, what was assumed. It asks the
// network for nothing, and its Content-Security-Policy lets it not. Every text is escaped: names come from users'
// files.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/plot.h"
#include "report/report.h"

namespace scalecalc {

struct Page {
  const Report& report;
  std::vector<Plot> plots{};
  std::string question{};  ///< the command line that asks the same again; may be empty
  std::string made_by{};   ///< program, version, catalog
};

std::string render_page(const Page& page);

/// Whether the program was built with the libraries that draw pictures, and what to do if not.
bool page_has_charts();
inline constexpr std::string_view kNoCharts =
    "built without charts: this page has tables alone; ./dev charts fetches the libraries that draw, then build again";

}  // namespace scalecalc
