#include "batch/axis_values.h"

#include <fmt/format.h>
#include <fnmatch.h>
#include <glob.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/sweep.h"
#include "base/text.h"

namespace scalecalc {
namespace {

struct Suffix {
  UnitKind kind;
  std::string_view unit;  ///< behind a number in the base unit
};
/// Units a range may have; the first that reads its start wins.
constexpr std::array kRangeUnits{Suffix{UnitKind::kCount, ""},
                                 Suffix{UnitKind::kNumber, ""},
                                 Suffix{UnitKind::kFraction, ""},
                                 Suffix{UnitKind::kBytes, "B"},
                                 Suffix{UnitKind::kSeconds, "s"},
                                 Suffix{UnitKind::kBytesPerSecond, "B/s"},
                                 Suffix{UnitKind::kFlopsPerSecond, "FLOP/s"}};

/// The unit whose grammar reads both ends of a range; a range of wrong texts is read as counts, to be told why.
const Suffix& unit_of_range(std::string_view text) {
  const std::size_t dots = text.find("..");
  const std::string_view rest = text.substr(dots + 2);
  const std::string_view last = rest.substr(0, rest.find_first_of("*+"));
  for (const Suffix& suffix : kRangeUnits) {
    if (std::holds_alternative<double>(parse_quantity(text.substr(0, dots), suffix.kind)) &&
        std::holds_alternative<double>(parse_quantity(last, suffix.kind))) {
      return suffix;
    }
  }
  return kRangeUnits.front();
}

class ColumnReader {
 public:
  ColumnReader(const std::string& name, const Catalog& catalog, Problems& problems)
      : catalog_(catalog), problems_(problems) {
    out_.name = name;
  }

  StudyColumn read(const ConfigNode& node) {
    switch (node.kind) {
      case ConfigNode::Kind::kScalar: scalar(node); break;
      case ConfigNode::Kind::kSequence:
        for (const ConfigNode& item : node.items) list_item(item);
        break;
      case ConfigNode::Kind::kMap: patterns(node); break;
    }
    if (out_.values.empty() && problems_.empty()) {
      problems_.add(node.span, fmt::format("axis {} has no values", in_quotes(out_.name)));
    }
    out_.numbers = numbers_of(out_.values);
    return std::move(out_);
  }

 private:
  void add(std::string value, const SourceSpan& where) {
    if (out_.values.size() == kMostAxisValues) {
      problems_.add(where,
                    fmt::format("axis {} has more than {} values", in_quotes(out_.name),
                                group_thousands(static_cast<long long>(kMostAxisValues))),
                    "make two axes of it");
    }
    if (out_.values.size() >= kMostAxisValues) return;
    out_.values.push_back(std::move(value));
    out_.places.push_back(where);
  }

  void list_item(const ConfigNode& item) {
    if (item.kind == ConfigNode::Kind::kScalar) return scalar(item);
    problems_.add(item.span, fmt::format("a value of axis {} must be a text or a number, not {}", in_quotes(out_.name),
                                         kind_name(item.kind)));
  }

  void scalar(const ConfigNode& node) {
    if (node.text == "-") {
      problems_.add(node.span, "a study cannot read standard input", "name a file");
    } else if (node.is_null() || node.text.empty()) {
      problems_.add(node.span, fmt::format("a value of axis {} is empty", in_quotes(out_.name)));
    } else if (node.quoted || node.text.find("..") == std::string::npos || is_catalog_path(node.text)) {
      add(node.text, node.span);
    } else {
      range(node);
    }
  }

  void range(const ConfigNode& node) {
    const Suffix& unit = unit_of_range(node.text);
    const auto parsed = parse_sweep(node.text, unit.kind);
    if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
      problems_.add(node.span, error->message, error->hint + "; in quotes the text itself is the value");
      return;
    }
    for (const double value : std::get<std::vector<double>>(parsed)) {
      add(fmt::format("{}{}", value, unit.unit), node.span);
    }
  }

  void patterns(const ConfigNode& node) {
    Fields fields(node, fmt::format("axis {}", in_quotes(out_.name)), problems_);
    names(fields, "models", CatalogKind::kModel);
    names(fields, "hardware", CatalogKind::kHardware);
    if (const ConfigNode* files = fields.node("files")) each_text(*files, [&](const ConfigNode& n) { match_files(n); });
    fields.finish();
  }

  template <class Use>
  void each_text(const ConfigNode& node, Use use) {
    if (node.kind == ConfigNode::Kind::kScalar) return use(node);
    for (const ConfigNode& item : node.items) use(item);
  }

  void names(Fields& fields, std::string_view key, CatalogKind kind) {
    const ConfigNode* node = fields.node(key);
    if (node == nullptr) return;
    const std::vector<std::string> known = catalog_.names(kind);
    each_text(*node, [&](const ConfigNode& pattern) {
      bool found = false;
      for (const std::string& name : known) {
        if (::fnmatch(pattern.text.c_str(), name.c_str(), FNM_PATHNAME) != 0) continue;
        found = true;
        if (std::find(out_.values.begin(), out_.values.end(), name) == out_.values.end()) add(name, pattern.span);
      }
      if (found) return;
      const std::string hint = did_you_mean(nearest(pattern.text, known));
      problems_.add(pattern.span, fmt::format("no {} of the catalog is called {}", key, in_quotes(pattern.text)),
                    hint.empty() ? "a pattern such as llama3-* or tpu-v?e; a slash is matched by a slash only" : hint);
    });
  }

  void match_files(const ConfigNode& pattern) {
    glob_t found{};
    const int failed = ::glob(pattern.text.c_str(), GLOB_TILDE, nullptr, &found);
    for (std::size_t i = 0; failed == 0 && i < found.gl_pathc; ++i) {
      const std::string path = found.gl_pathv[i];
      // A bare name would be looked up in the catalog.
      add(path.find('/') == std::string::npos ? "./" + path : path, pattern.span);
    }
    ::globfree(&found);
    if (failed != 0) {
      problems_.add(pattern.span, fmt::format("no file matches {}", in_quotes(pattern.text)),
                    "paths start at the directory the program runs in");
    }
  }

  const Catalog& catalog_;
  Problems& problems_;
  StudyColumn out_;
};

}  // namespace

StudyColumn read_column(const std::string& name, const ConfigNode& node, const Catalog& catalog, Problems& problems) {
  return ColumnReader(name, catalog, problems).read(node);
}

std::vector<double> numbers_of(const std::vector<std::string>& values) {
  std::vector<double> out;
  for (const std::string& value : values) {
    if (value.ends_with('B')) return {};  // bytes or billions: only the command knows
    auto parsed = parse_quantity(value, UnitKind::kCount);
    if (std::holds_alternative<UnitError>(parsed)) parsed = parse_quantity(value, UnitKind::kNumber);
    const double* number = std::get_if<double>(&parsed);
    if (number == nullptr) return {};
    out.push_back(*number);
  }
  return out;
}

std::string row_name(std::string_view column) {
  std::string out(column);
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
}

}  // namespace scalecalc
