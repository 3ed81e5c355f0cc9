#include "serve/request_mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

#include "base/check.h"
#include "base/text.h"
#include "config/json_reader.h"
#include "config/source_text.h"

namespace scalecalc {

// Traces of requests as CSV or JSON Lines.

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

double RequestMix::decode_context() const {
  double steps = 0;
  double context = 0;
  if (rows.empty()) {
    steps = decode_steps();
    context = prompt.mean() * steps + (generate.mean_square() - generate.mean()) / 2;
  }
  for (const ServedRequest& row : rows) {
    const double g = static_cast<double>(row.generate);
    steps += g - 1;
    // Step j of g - 1 attends to prompt + j keys.
    context += (g - 1) * static_cast<double>(row.prompt) + g * (g - 1) / 2;
  }
  return steps > 0 ? context / steps : 0;
}

std::int64_t RequestMix::largest_cached() const {
  if (rows.empty()) return prompt.largest() + generate.largest() - 1;
  std::int64_t largest = 0;
  for (const ServedRequest& row : rows) largest = std::max(largest, row.prompt + row.generate - 1);
  return largest;
}

std::vector<ServedRequest> poisson_requests(const RequestMix& mix, double rate, std::int64_t count,
                                            std::uint64_t seed) {
  check(rate > 0 && count > 0, "requests arrive");
  // Streams of their own, so that another rate or another length leaves the other numbers as they are.
  RandomStream arrivals(seed);
  RandomStream prompts(seed ^ 0x9E3779B97F4A7C15ULL);
  RandomStream generations(seed ^ 0xC2B2AE3D27D4EB4FULL);
  std::vector<ServedRequest> out;
  out.reserve(static_cast<std::size_t>(count));
  double unit_time = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    unit_time += arrivals.exponential();
    ServedRequest request{.arrival_s = unit_time / rate};
    if (mix.rows.empty()) {
      request.prompt = mix.prompt.at(prompts.uniform());
      request.generate = mix.generate.at(generations.uniform());
    } else {
      const double at = prompts.uniform() * static_cast<double>(mix.rows.size());
      const ServedRequest& row = mix.rows[static_cast<std::size_t>(at)];
      request.prompt = row.prompt;
      request.generate = row.generate;
    }
    out.push_back(request);
  }
  return out;
}

std::vector<ServedRequest> replayed_requests(const RequestMix& mix, std::int64_t count, std::optional<double> rate) {
  check(mix.has_arrivals && count > 0, "a trace with arrivals is replayed");
  const auto kept = std::min<std::size_t>(static_cast<std::size_t>(count), mix.rows.size());
  std::vector<ServedRequest> out(mix.rows.begin(), mix.rows.begin() + static_cast<std::ptrdiff_t>(kept));
  const double start = out.front().arrival_s;
  const double span = out.back().arrival_s - start;
  const double stretch = rate && span > 0 ? static_cast<double>(kept) / *rate / span : 1.0;
  for (ServedRequest& request : out) request.arrival_s = (request.arrival_s - start) * stretch;
  return out;
}

}  // namespace scalecalc
