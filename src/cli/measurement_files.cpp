#include "cli/measurement_files.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/io.h"
#include "base/text.h"
#include "config/yaml_reader.h"

namespace scalecalc::cli {

std::vector<RowFilter> row_filters(FlagReader& reader, const Arguments& arguments) {
  std::vector<std::string> known = group_axes();
  known.emplace_back("id");
  std::vector<RowFilter> out;
  for (const std::string& text : arguments.values("--only")) {
    const std::size_t equals = text.find('=');
    const std::string by = text.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == text.size()) {
      reader.problem(fmt::format("--only {} is not KEY=NAME", in_quotes(text)), "for example --only chip=h100-sxm");
      continue;
    }
    if (std::find(known.begin(), known.end(), by) == known.end()) {
      const std::string hint = did_you_mean(nearest(by, known));
      reader.problem(fmt::format("--only knows no {}", in_quotes(by)),
                     fmt::format("{}{}keys: {}", hint, hint.empty() ? "" : " ", join(known, ", ")));
      continue;
    }
    RowFilter filter{.by = by, .names = {}};
    for (std::size_t at = equals + 1; at <= text.size();) {
      const std::size_t end = std::min(text.find(',', at), text.size());
      filter.names.push_back(text.substr(at, end - at));
      at = end + 1;
    }
    out.push_back(std::move(filter));
  }
  return out;
}

MeasurementFiles read_measurement_files(const std::vector<std::string>& files, const Catalog& catalog) {
  MeasurementFiles out{.files = files, .rows = {}};
  const auto take = [&](const ConfigNode& document) {
    for (Measurement& row : read_measurements(document)) out.rows.push_back(std::move(row));
  };
  for (const std::string& file : files) take(read_yaml(read_text_file(file), file, kMostTableNodes));
  if (!files.empty()) return out;
  for (const std::string& name : catalog.names(CatalogKind::kMeasurements)) {
    const ConfigNode document = catalog.load(CatalogKind::kMeasurements, name);
    out.files.push_back(document.span.file);
    take(document);
  }
  return out;
}

}  // namespace scalecalc::cli
