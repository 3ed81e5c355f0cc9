// Reads the files of measured rows that validate and calibrate are given.

#include "validate/measurement_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>
#include <type_traits>
#include <utility>

#include "base/io.h"
#include "base/text.h"
#include "validate/training_rows_options.h"

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

/// Adds the rows of one half. Kernels timed by themselves have no half.
template <class Row>
void add_rows(std::vector<Row> rows, RowHalf half, std::vector<Row>& to) {
  const Splits& splits = Splits::shipped();
  const auto is_wanted = [&](const Row& row) {
    if constexpr (std::is_base_of_v<MeasuredFacts, Row>) {
      return half == RowHalf::kAll || splits.half_of(splits.publication_of(row)) == half;
    }
    return true;
  };
  std::copy_if(std::move_iterator(rows.begin()), std::move_iterator(rows.end()), std::back_inserter(to), is_wanted);
}

RowHalf half_by_default(const ConfigNode& document) {
  const ConfigNode* title = document.find("title");
  return title != nullptr && Splits::shipped().divides(title->text) ? RowHalf::kFit : RowHalf::kAll;
}

std::string with_half(const std::string& file, RowHalf half) {
  return half == RowHalf::kAll ? file
                               : fmt::format("{} ({} half)", file, kRowHalfNames.at(static_cast<std::size_t>(half)));
}

}  // namespace

std::optional<RowHalf> asked_half(const Arguments& arguments) {
  const std::optional<std::string> text = arguments.value("--half");
  const auto at = text ? word_like(*text, kRowHalfNames) : std::nullopt;
  return at ? std::optional(static_cast<RowHalf>(*at)) : std::nullopt;
}

std::vector<RowFilter> row_filters(FlagReader& reader, const Arguments& arguments) {
  return filters_by(Training::axes(), reader, arguments);
}

std::vector<RowFilter> serve_row_filters(FlagReader& reader, const Arguments& arguments) {
  return filters_by(Serving::axes(), reader, arguments);
}

std::vector<RowFilter> rl_row_filters(FlagReader& reader, const Arguments& arguments) {
  return filters_by(RlSteps::axes(), reader, arguments);
}

MeasuredRows read_measurement_files(const std::vector<std::string>& files, std::optional<RowHalf> half,
                                    const Catalog& catalog) {
  MeasuredRows out;
  std::map<std::string, std::string> kinds;  // and a file of each
  std::vector<std::string> described;
  const auto note = [&](const std::string& file, RowHalf read) {
    out.files.push_back(file);
    described.push_back(with_half(file, read));
  };
  for (const std::string& file : files.empty() ? catalog.names(CatalogKind::kMeasurements) : files) {
    if (const std::optional<std::string> printed = nccl_text(file)) {
      note(file, RowHalf::kAll);
      add_rows(read_nccl_tests(*printed, file), RowHalf::kAll, out.kernels);
      continue;
    }
    const ConfigNode document = catalog.load(CatalogKind::kMeasurements, file);
    const bool serves = is_serving(document);
    const bool rl = is_rl(document);
    if (files.empty() && (serves || rl || is_held_out(document))) continue;
    if (is_kernels(document)) {
      note(document.span.file.str(), RowHalf::kAll);
      add_rows(read_kernels(document), RowHalf::kAll, out.kernels);
      continue;
    }
    kinds[serves ? "serving figures" : rl ? "RL steps" : "training runs"] = document.span.file.str();
    const RowHalf read = half.value_or(half_by_default(document));
    note(document.span.file.str(), read);
    if (rl) {
      add_rows(read_rl_measurements(document), read, out.rl);
    } else if (serves) {
      add_rows(read_serve_measurements(document), read, out.serving);
    } else {
      add_rows(read_measurements(document), read, out.rows);
    }
  }
  if (kinds.size() > 1) {
    const auto& [one, file] = *kinds.begin();
    const auto& [other, second] = *kinds.rbegin();
    throw UserError(fmt::format("{} holds {} and {} {}", file, one, second, other), "compare them one after the other");
  }
  const bool none = out.rows.empty() && out.serving.empty() && out.rl.empty() && out.kernels.empty();
  if (none && half.value_or(RowHalf::kAll) != RowHalf::kAll) {
    throw UserError(fmt::format("no row of {} is in the {} half", join(out.files, ", "),
                                kRowHalfNames.at(static_cast<std::size_t>(*half))),
                    "configs/splits.yaml says which half a source is in; --half all reads every row");
  }
  out.files_and_half = join(described, ", ");
  return out;
}

}  // namespace scalecalc::cli
