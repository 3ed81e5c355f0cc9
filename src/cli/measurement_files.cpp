#include "cli/measurement_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/io.h"
#include "base/text.h"
#include "config/yaml_reader.h"

namespace scalecalc::cli {

namespace {

ConfigNode document_of(const std::string& file) { return read_yaml(read_text_file(file), file, kMostTableNodes); }

std::vector<RowFilter> filters_by(std::vector<std::string> known, FlagReader& reader, const Arguments& arguments) {
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

}  // namespace

std::vector<RowFilter> row_filters(FlagReader& reader, const Arguments& arguments) {
  return filters_by(group_axes(), reader, arguments);
}

std::vector<RowFilter> serve_row_filters(FlagReader& reader, const Arguments& arguments) {
  return filters_by(serve_axes(), reader, arguments);
}

std::vector<std::string> shipped_measurement_files(const std::vector<std::string>& directories) {
  namespace fs = std::filesystem;
  std::vector<std::string> out;
  for (const std::string& directory : directories) {
    std::vector<std::string> found;
    std::error_code ignored;
    for (const fs::directory_entry& entry : fs::directory_iterator(fs::path(directory) / "measurements", ignored)) {
      const std::string file = entry.path().string();
      if (entry.path().extension() == ".yaml" && !is_serving(document_of(file))) found.push_back(file);
    }
    std::sort(found.begin(), found.end());
    out.insert(out.end(), found.begin(), found.end());
  }
  if (out.empty()) {
    throw UserError("no file of measurements is given, and no config directory has measurements/",
                    "for example: scalecalc validate runs.yaml; or --config-dir configs for the shipped ones");
  }
  return out;
}

std::vector<Measurement> read_measurement_files(const std::vector<std::string>& files) {
  std::vector<Measurement> out;
  for (const std::string& file : files) {
    for (Measurement& row : read_measurements(document_of(file))) out.push_back(std::move(row));
  }
  return out;
}

bool are_serving(const std::vector<std::string>& files) {
  std::vector<std::string> serving, training;
  for (const std::string& file : files) (is_serving(document_of(file)) ? serving : training).push_back(file);
  if (!serving.empty() && !training.empty()) {
    throw UserError(fmt::format("{} holds serving figures and {} training runs", serving.front(), training.front()),
                    "compare them one after the other");
  }
  return !serving.empty();
}

std::vector<ServeMeasurement> read_serve_measurement_files(const std::vector<std::string>& files) {
  std::vector<ServeMeasurement> out;
  for (const std::string& file : files) {
    for (ServeMeasurement& row : read_serve_measurements(document_of(file))) out.push_back(std::move(row));
  }
  return out;
}

}  // namespace scalecalc::cli
