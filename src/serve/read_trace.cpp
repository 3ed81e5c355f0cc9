// Traces of requests as CSV or JSON Lines.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "config/json_reader.h"
#include "config/source_text.h"
#include "serve/request_mix.h"

namespace scalecalc {
namespace {

constexpr std::string_view kColumnsHint = "a trace has the columns prompt, generate and, if wanted, arrival (seconds)";

/// The columns, in the order of a row's fields here.
const std::vector<std::string>& column_names() {
  static const std::vector<std::string> kNames{"prompt", "generate", "arrival"};
  return kNames;
}
constexpr std::size_t kArrival = 2;

/// One cell: its text and its place.
struct TraceCell {
  std::string_view text;
  SourceSpan where;
};

using TraceCells = std::array<std::optional<TraceCell>, 3>;

class TraceReader {
 public:
  TraceReader(std::string_view text, const std::string& file) : source_(text, file), file_(file) {}

  RequestMix read(bool json_lines) {
    std::string_view rest = source_.text();
    for (std::size_t at = 0; at < source_.text().size() && problems_.size() < kMostProblems;) {
      const std::size_t end = std::min(rest.find('\n', at), rest.size());
      std::size_t stop = end;
      if (stop > at && rest[stop - 1] == '\r') --stop;
      ++line_;
      if (stop > at) {
        if (json_lines) {
          read_json_line(at, stop);
        } else {
          read_csv_line(at, stop);
        }
      }
      at = end + 1;
    }
    if (problems_.empty() && rows_.empty()) problem({.file = file_}, "the trace has no requests", kColumnsHint);
    if (!problems_.empty()) throw UserError(problems_);
    return mix();
  }

 private:
  void problem(SourceSpan where, std::string message, std::string_view hint) {
    problems_.push_back({std::move(where), std::move(message), std::string(hint)});
  }

  /// The column's number, or nothing with a problem said.
  std::optional<std::size_t> column_of(std::string_view name, const SourceSpan& where) {
    const auto& names = column_names();
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    const std::string meant = did_you_mean(nearest(name, names));
    problem(where, fmt::format("unknown column {}", in_quotes(name)), meant.empty() ? kColumnsHint : meant);
    return std::nullopt;
  }

  void read_csv_line(std::size_t begin, std::size_t end) {
    std::vector<TraceCell> cells;
    for (std::size_t at = begin; at <= end;) {
      const std::size_t comma = std::min(source_.text().substr(0, end).find(',', at), end);
      std::size_t from = at;
      std::size_t to = comma;
      while (from < to && source_.text()[from] == ' ') ++from;
      while (to > from && source_.text()[to - 1] == ' ') --to;
      cells.push_back({source_.text().substr(from, to - from), source_.span(from, std::max(to, from + 1))});
      at = comma + 1;
    }
    if (columns_.empty()) {
      read_header(cells);
      return;
    }
    if (cells.size() != columns_.size()) {
      problem(source_.span(begin, end),
              fmt::format("the line has {} fields, the header {}", cells.size(), columns_.size()), "");
      return;
    }
    TraceCells row;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (columns_[i]) row[*columns_[i]] = cells[i];
    }
    add_row(row, cells.front().where);
  }

  void read_header(const std::vector<TraceCell>& cells) {
    for (const TraceCell& cell : cells) {
      const std::optional<std::size_t> column = column_of(cell.text, cell.where);
      if (column && std::find(columns_.begin(), columns_.end(), column) != columns_.end()) {
        problem(cell.where, fmt::format("the column {} stands twice", in_quotes(cell.text)), "");
      }
      columns_.push_back(column);
    }
    for (std::size_t i = 0; i < kArrival; ++i) {
      if (std::find(columns_.begin(), columns_.end(), std::optional<std::size_t>(i)) == columns_.end()) {
        problem(cells.front().where, fmt::format("the column '{}' is missing", column_names()[i]), kColumnsHint);
      }
    }
  }

  void read_json_line(std::size_t begin, std::size_t end) {
    ConfigNode node;
    try {
      node = read_json(source_.text().substr(begin, end - begin), file_);
    } catch (const UserError& error) {
      for (Diagnostic diagnostic : error.diagnostics()) {
        diagnostic.where.line = line_;
        problems_.push_back(std::move(diagnostic));
      }
      return;
    }
    const auto place = [&](SourceSpan span) {
      span.line = line_;
      return span;
    };
    if (node.kind != ConfigNode::Kind::kMap) {
      problem(place(node.span), fmt::format("{} where one request is expected", kind_name(node.kind)),
              "one object a line: {\"prompt\": 1024, \"generate\": 128, \"arrival\": 0.25}");
      return;
    }
    TraceCells row;
    for (const ConfigNode::Entry& entry : node.entries) {
      const std::optional<std::size_t> column = column_of(entry.key, place(entry.key_span));
      if (!column) continue;
      if (entry.value.kind != ConfigNode::Kind::kScalar) {
        problem(place(entry.value.span), fmt::format("{} where a number is expected", kind_name(entry.value.kind)), "");
        return;
      }
      row[*column] = TraceCell{entry.value.text, place(entry.value.span)};
    }
    add_row(row, place(node.span));
  }

  std::optional<double> number(const TraceCell& cell, UnitKind kind) {
    const auto value = parse_quantity(cell.text, kind, true);
    if (const UnitError* error = std::get_if<UnitError>(&value)) {
      problem(cell.where, error->message, error->hint);
      return std::nullopt;
    }
    return std::get<double>(value);
  }

  void add_row(const TraceCells& cells, const SourceSpan& where) {
    std::array<std::int64_t, kArrival> lengths{};
    for (std::size_t i = 0; i < kArrival; ++i) {
      if (!cells[i]) {
        problem(where, fmt::format("the request has no '{}'", column_names()[i]), kColumnsHint);
        return;
      }
      const std::optional<double> value = number(*cells[i], UnitKind::kCount);
      if (!value) return;
      if (*value < 1) {
        problem(cells[i]->where, fmt::format("{} of 0 tokens", column_names()[i]), "a length is 1 or more");
        return;
      }
      lengths[i] = static_cast<std::int64_t>(*value);
    }
    ServedRequest row{.prompt = lengths[0], .generate = lengths[1]};
    if (!rows_.empty() && cells[kArrival].has_value() != has_arrivals_) {
      problem(where, "some requests have an arrival and others none", "give it to all or to none");
      return;
    }
    has_arrivals_ = cells[kArrival].has_value();
    if (has_arrivals_) {
      const std::optional<double> arrival = number(*cells[kArrival], UnitKind::kSeconds);
      if (!arrival) return;
      row.arrival_s = *arrival;
      if (!rows_.empty() && row.arrival_s < rows_.back().arrival_s) {
        problem(cells[kArrival]->where, "the request arrives before the one above it", "sort the trace by arrival");
        return;
      }
    }
    rows_.push_back(row);
  }

  RequestMix mix() const {
    std::vector<std::int64_t> prompts;
    std::vector<std::int64_t> generations;
    for (const ServedRequest& row : rows_) {
      prompts.push_back(row.prompt);
      generations.push_back(row.generate);
    }
    return {.prompt = Lengths::of(prompts),
            .generate = Lengths::of(generations),
            .rows = rows_,
            .has_arrivals = has_arrivals_};
  }

  SourceText source_;
  std::string file_;
  int line_ = 0;
  std::vector<std::optional<std::size_t>> columns_;
  std::vector<ServedRequest> rows_;
  bool has_arrivals_ = false;
  std::vector<Diagnostic> problems_;
};

}  // namespace

RequestMix read_trace(std::string_view text, const std::string& file) {
  return TraceReader(text, file).read(file.ends_with(".jsonl"));
}

}  // namespace scalecalc
