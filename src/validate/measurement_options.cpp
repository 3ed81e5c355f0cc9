// Reads files of measurements and the filters on their rows, for `validate` and `calibrate`.
#include "validate/measurement_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/io.h"
#include "base/text.h"

namespace scalecalc::cli {
namespace {

std::vector<RowFilter> filters_by(std::vector<std::string> known, FlagReader& reader, const Arguments& arguments) {
  known.emplace_back("id");
  std::vector<RowFilter> out;
  for (const std::string& text : arguments.values("--only")) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos) continue;  // a section of the text
    const std::string by = text.substr(0, equals);
    if (equals + 1 == text.size()) {
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

/// What the file says if it is output of nccl-tests; names of the catalog and other files are none.
std::optional<std::string> nccl_text(const std::string& file) {
  std::error_code none;
  if (!std::filesystem::is_regular_file(file, none)) return std::nullopt;
  std::string text = read_text_file(file);
  return is_nccl_tests(text) ? std::optional(std::move(text)) : std::nullopt;
}

}  // namespace

std::vector<RowFilter> row_filters(FlagReader& reader, const Arguments& arguments) {
  return filters_by(Training::axes(), reader, arguments);
}

std::vector<RowFilter> serve_row_filters(FlagReader& reader, const Arguments& arguments) {
  return filters_by(Serving::axes(), reader, arguments);
}

std::vector<RowFilter> rl_row_filters(FlagReader& reader, const Arguments& arguments) {
  return filters_by(RlSteps::axes(), reader, arguments);
}

MeasuredRows read_measurement_files(const std::vector<std::string>& files, const Catalog& catalog) {
  MeasuredRows out;
  std::map<std::string, std::string> kinds;  // and a file of each
  const auto add = [](auto rows, auto& to) { std::move(rows.begin(), rows.end(), std::back_inserter(to)); };
  for (const std::string& file : files.empty() ? catalog.names(CatalogKind::kMeasurements) : files) {
    if (const std::optional<std::string> printed = nccl_text(file)) {
      out.files.push_back(file);
      add(read_nccl_tests(*printed, file), out.kernels);
      continue;
    }
    const ConfigNode document = catalog.load(CatalogKind::kMeasurements, file);
    const bool serves = is_serving(document);
    const bool rl = is_rl(document);
    if (files.empty() && (serves || rl || is_held_out(document))) continue;
    if (is_kernels(document)) {
      out.files.push_back(document.span.file.str());
      add(read_kernels(document), out.kernels);
      continue;
    }
    kinds[serves ? "serving figures" : rl ? "RL steps" : "training runs"] = document.span.file.str();
    out.files.push_back(document.span.file.str());
    if (rl) {
      add(read_rl_measurements(document), out.rl);
    } else if (serves) {
      add(read_serve_measurements(document), out.serving);
    } else {
      add(read_measurements(document), out.rows);
    }
  }
  if (kinds.size() > 1) {
    const auto& [one, file] = *kinds.begin();
    const auto& [other, second] = *kinds.rbegin();
    throw UserError(fmt::format("{} holds {} and {} {}", file, one, second, other), "compare them one after the other");
  }
  return out;
}

}  // namespace scalecalc::cli
