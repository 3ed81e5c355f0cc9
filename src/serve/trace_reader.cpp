// Reads traces of requests: own columns, and the files that people have. A format is known by its header or its keys.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>

#include "base/text.h"
#include "config/json_reader.h"
#include "config/source_text.h"
#include "serve/json_parts.h"
#include "serve/request_mix.h"

namespace scalecalc {
namespace {

constexpr std::string_view kColumnsHint = "a trace has the columns prompt, generate and, if wanted, arrival (seconds)";
constexpr std::string_view kKnownHint =
    "known are prompt and generate, Azure's ContextTokens and GeneratedTokens, BurstGPT's Request tokens and Response "
    "tokens, Mooncake's input_length and output_length, ShareGPT's conversations, and input_lens and output_lens of "
    "vLLM's and SGLang's benchmarks";

enum class ArrivalUnit : std::uint8_t { kSeconds, kMilliseconds, kDate };

enum Column : std::uint8_t { kPrompt, kGenerate, kArrival, kHashIds, kColumns };

/// Columns of a CSV file, keys of a JSON line.
struct TraceFormat {
  std::string_view known_by;  ///< no other has it
  std::array<std::string_view, kColumns> columns;
  std::vector<std::string_view> others;  ///< it has them, and nobody asks
  ArrivalUnit arrival = ArrivalUnit::kSeconds;
  bool has_failures = false;  ///< requests without tokens are those that failed
};

const std::vector<TraceFormat>& formats() {
  static const std::vector<TraceFormat> kFormats{
      {.known_by = "prompt", .columns = {"prompt", "generate", "arrival", ""}},
      // AzurePublicDataset: AzureLLMInferenceDataset2023, 2024.
      {.known_by = "ContextTokens",
       .columns = {"ContextTokens", "GeneratedTokens", "TIMESTAMP", ""},
       .arrival = ArrivalUnit::kDate,
       .has_failures = true},
      // BurstGPT, arXiv:2401.17644: seconds since the first day.
      {.known_by = "Request tokens",
       .columns = {"Request tokens", "Response tokens", "Timestamp", ""},
       .others = {"Model", "Total tokens", "Log Type", "Session ID", "Elapsed time"},
       .has_failures = true},
      // Mooncake, arXiv:2407.00079 section 4: ids of blocks of 512 tokens.
      {.known_by = "input_length",
       .columns = {"input_length", "output_length", "timestamp", "hash_ids"},
       .arrival = ArrivalUnit::kMilliseconds}};
  return kFormats;
}
constexpr std::int64_t kHashedTokens = 512;
/// Rule of thumb for English text: OpenAI, "What are tokens and how to count them?".
constexpr std::int64_t kCharactersPerToken = 4;

/// One cell: its text and its place.
struct TraceCell {
  std::string_view text;
  std::size_t begin = 0, end = 0;
};
using TraceCells = std::array<std::optional<TraceCell>, kColumns>;

/// A moment: as one number of seconds since 1970 it would lose the last digits of its fraction.
struct Moment {
  std::int64_t days = 0;  ///< since 1970
  double seconds = 0;     ///< of the day; before or after it in other zones

  double since(const Moment& first) const {
    return static_cast<double>(days - first.days) * 86400 + (seconds - first.seconds);
  }
};

/// "2023-11-16 18:17:03.9799600", with "+00:00" behind it or not.
std::optional<Moment> moment_of_date(std::string_view text) {
  const auto digits = [&](std::size_t at, std::size_t count) -> std::optional<int> {
    int out = 0;
    for (std::size_t i = at; i < at + count; ++i) {
      if (i >= text.size() || text[i] < '0' || text[i] > '9') return std::nullopt;
      out = out * 10 + (text[i] - '0');
    }
    return out;
  };
  constexpr std::array<std::pair<std::size_t, char>, 4> kMarks{{{4, '-'}, {7, '-'}, {13, ':'}, {16, ':'}}};
  for (const auto& [at, mark] : kMarks) {
    if (at >= text.size() || text[at] != mark) return std::nullopt;
  }
  if (text[10] != ' ' && text[10] != 'T') return std::nullopt;
  const auto year = digits(0, 4), month = digits(5, 2), day = digits(8, 2);
  const auto hour = digits(11, 2), minute = digits(14, 2), second = digits(17, 2);
  if (!year || !month || !day || !hour || !minute || !second) return std::nullopt;
  const std::chrono::year_month_day date(std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  Moment out{std::chrono::sys_days(date).time_since_epoch().count(),
             static_cast<double>(*hour * 3600 + *minute * 60 + *second)};
  std::size_t at = 19;
  if (at < text.size() && text[at] == '.') {
    double place = 0.1;
    for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, place /= 10)
      out.seconds += place * (text[at] - '0');
  }
  if (at == text.size() || text.substr(at) == "Z") return out;
  if (text[at] != '+' && text[at] != '-') return std::nullopt;
  const auto hours = digits(at + 1, 2), minutes = digits(at + 4, 2);
  if (!hours || !minutes || text.size() != at + 6 || text[at + 3] != ':') return std::nullopt;
  out.seconds -= (text[at] == '+' ? 1 : -1) * (*hours * 3600 + *minutes * 60);
  return out;
}

class TraceReader {
 public:
  TraceReader(std::string_view text, const std::string& file) : source_(text, file), file_(file) {}

  RequestMix read() {
    const std::string_view text = source_.text();
    const std::size_t first = skip_blanks(text, 0);
    const bool lines = file_.ends_with(".jsonl");
    if (!lines && first < text.size() && (text[first] == '[' || text[first] == '{')) {
      read_whole_json(first);
    } else {
      read_lines(lines);
    }
    if (problems_.empty() && rows_.empty()) problem({.file = file_}, "the trace has no requests", kColumnsHint);
    if (!problems_.empty()) throw UserError(problems_);
    return mix();
  }

 private:
  void problem(SourceSpan where, std::string message, std::string_view hint) {
    if (problems_.size() >= kMostProblems) return;  // a header of many columns, a line of many wrong fields
    problems_.push_back({std::move(where), std::move(message), std::string(hint)});
  }
  SourceSpan place(const TraceCell& cell) const { return source_.span(cell.begin, cell.end); }

  void read_lines(bool json) {
    const std::string_view text = source_.text();
    for (std::size_t at = 0; at < text.size() && problems_.size() < kMostProblems;) {
      const std::size_t end = std::min(text.find('\n', at), text.size());
      std::size_t stop = end;
      if (stop > at && text[stop - 1] == '\r') --stop;
      if (stop > at) {
        if (json) {
          read_json_line(at, stop);
        } else {
          read_csv_line(at, stop);
        }
      }
      at = end + 1;
    }
  }

  // --- CSV ---

  void read_csv_line(std::size_t begin, std::size_t end) {
    const std::string_view text = source_.text();
    std::vector<TraceCell> cells;
    for (std::size_t at = begin; at <= end;) {
      const std::size_t comma = std::min(text.substr(0, end).find(',', at), end);
      std::size_t from = at;
      std::size_t to = comma;
      while (from < to && text[from] == ' ') ++from;
      while (to > from && text[to - 1] == ' ') --to;
      cells.push_back({text.substr(from, to - from), from, std::max(to, from + 1)});
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
    add_row(row, cells.front());
  }

  void read_header(const std::vector<TraceCell>& cells) {
    choose_format(cells.front(), [&](std::string_view name) {
      return std::any_of(cells.begin(), cells.end(), [&](const TraceCell& c) { return c.text == name; });
    });
    for (const TraceCell& cell : cells) {
      const std::optional<std::size_t> column = column_of(cell.text, cell);
      if (column && std::find(columns_.begin(), columns_.end(), column) != columns_.end()) {
        problem(place(cell), fmt::format("the column {} stands twice", in_quotes(cell.text)), "");
      }
      columns_.push_back(column);
    }
    for (const std::size_t i : {kPrompt, kGenerate}) {
      if (std::find(columns_.begin(), columns_.end(), std::optional<std::size_t>(i)) == columns_.end()) {
        problem(place(cells.front()), fmt::format("the column '{}' is missing", format_->columns[i]), kColumnsHint);
      }
    }
  }

  template <class Has>
  void choose_format(const TraceCell& where, Has has) {
    for (const TraceFormat& format : formats()) {
      if (has(format.known_by) || has(format.columns[kGenerate])) format_ = &format;
    }
    if (format_ != nullptr) return;
    problem(place(where), "no known trace has these columns", kKnownHint);
    throw UserError(problems_);
  }

  /// The column's number; nothing if nobody asks for it, or with a problem said.
  std::optional<std::size_t> column_of(std::string_view name, const TraceCell& where) {
    const auto& names = format_->columns;
    const auto found = std::find(names.begin(), names.end(), name);
    if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
    if (std::find(format_->others.begin(), format_->others.end(), name) != format_->others.end()) return std::nullopt;
    const std::vector<std::string> legal(names.begin(), names.begin() + kHashIds);
    const std::string meant = did_you_mean(nearest(name, legal));
    problem(place(where), fmt::format("unknown column {}", in_quotes(name)), meant.empty() ? kColumnsHint : meant);
    return std::nullopt;
  }

  // --- JSON ---

  TraceCell cell_of(const JsonPart& part) const {
    return {source_.text().substr(part.begin, part.end - part.begin), part.begin, part.end};
  }
  TraceCell key_of(const JsonPart& part) const { return {part.key, part.key_at, part.key_at + part.key.size() + 2}; }

  /// What a JSON reader has to say of a text that has no parts.
  void refuse_json(std::size_t begin, std::size_t end) {
    try {
      const ConfigNode node = read_json(source_.text().substr(begin, end - begin), file_);
      problem(source_.span(begin, end), fmt::format("{} where one request is expected", kind_name(node.kind)),
              "one object a line: {\"prompt\": 1024, \"generate\": 128, \"arrival\": 0.25}");
    } catch (const UserError& error) {
      const int before = source_.span(begin).line - 1;
      for (Diagnostic diagnostic : error.diagnostics()) {
        diagnostic.where.line += before;
        problems_.push_back(std::move(diagnostic));
      }
    }
  }

  void read_json_line(std::size_t begin, std::size_t end) {
    const std::string_view line = source_.text().substr(0, end);
    const auto parts = json_parts(line, begin);
    if (!parts || !parts->is_map || skip_blanks(line, parts->end) < end) {
      refuse_json(begin, end);
    } else {
      read_object(*parts, begin);
    }
  }

  /// A list of conversations, one result of a benchmark, or several after each other.
  void read_whole_json(std::size_t begin) {
    const std::string_view text = source_.text();
    const auto parts = json_parts(text, begin);
    if (!parts) {
      refuse_json(begin, text.size());
    } else if (!parts->is_map) {
      for (const JsonPart& item : parts->parts) {
        if (problems_.size() >= kMostProblems) return;
        const auto object = json_parts(text, item.begin);
        if (object && object->is_map) {
          read_object(*object, item.begin);
        } else {
          refuse_json(item.begin, item.end);
        }
      }
    } else if (skip_blanks(text, parts->end) < text.size()) {
      read_lines(true);
    } else {
      read_object(*parts, begin);
    }
  }

  void read_object(const JsonParts& object, std::size_t at) {
    const JsonPart* prompt = object.find("prompt");
    if (object.find("conversations") != nullptr) {
      read_conversation(*object.find("conversations"));
    } else if (object.find("input_lens") != nullptr) {
      read_result(object);
    } else if (object.find("request_throughput") != nullptr) {
      problem(source_.span(at), "the result of the benchmark does not say how long each request was",
              "with --save-detailed (vLLM) or --output-details (SGLang) it has input_lens and output_lens");
    } else if (prompt != nullptr && source_.text()[prompt->begin] == '"') {
      problem(place(cell_of(*prompt)), "a prompt as text, and nothing says how many tokens are made of it",
              "numbers of tokens: {\"prompt\": 1024, \"generate\": 128}");
    } else {
      read_request(object, at);
    }
  }

  void read_request(const JsonParts& object, std::size_t at) {
    const TraceCell here{"", at, at + 1};
    if (format_ == nullptr) choose_format(here, [&](std::string_view name) { return object.find(name) != nullptr; });
    TraceCells row;
    for (const JsonPart& part : object.parts) {
      const std::optional<std::size_t> column = column_of(part.key, key_of(part));
      if (!column) continue;
      const TraceCell value = cell_of(part);
      const bool is_list = value.text.front() == '[';
      if (is_list != (*column == kHashIds) || value.text.front() == '{') {
        problem(place(value),
                fmt::format("{} where {} is expected", is_list ? "a list" : "no list",
                            *column == kHashIds ? "a list" : "a number"),
                "");
        return;
      }
      row[*column] = value;
    }
    add_row(row, here);
  }

  /// As the benchmarks sample it: the first turn is the prompt, the second the answer; shorter ones are left out.
  void read_conversation(const JsonPart& turns) {
    const std::string_view text = source_.text();
    from_characters_ = true;
    const auto list = json_parts(text, turns.begin);
    std::array<std::int64_t, 2> tokens{};
    for (std::size_t i = 0; i < 2; ++i) {
      if (!list || list->parts.size() < 2) {
        ++left_out_;
        return;
      }
      const auto turn = json_parts(text, list->parts[i].begin);
      const JsonPart* value = turn ? turn->find("value") : nullptr;
      if (value == nullptr || text[value->begin] != '"') {
        problem(source_.span(list->parts[i].begin), "a turn of a conversation without its text",
                "{\"from\": \"human\", \"value\": \"...\"}");
        return;
      }
      const std::int64_t characters = json_characters(text.substr(value->begin + 1, value->end - value->begin - 2));
      tokens[i] = (characters + kCharactersPerToken - 1) / kCharactersPerToken;
    }
    if (tokens[0] == 0 || tokens[1] == 0) {
      ++left_out_;
    } else {
      rows_.push_back({.prompt = tokens[0], .generate = tokens[1]});
    }
  }

  /// Detailed results: lists of as many lengths, and of the moments they were sent if the release keeps them.
  void read_result(const JsonParts& object) {
    std::array<std::vector<JsonPart>, 3> lists;
    constexpr std::array<std::string_view, 3> kKeys{"input_lens", "output_lens", "start_times"};
    for (std::size_t i = 0; i < kKeys.size(); ++i) {
      const JsonPart* part = object.find(kKeys[i]);
      if (part == nullptr && i == kArrival) continue;
      const auto list = part != nullptr ? json_parts(source_.text(), part->begin) : std::nullopt;
      if (!list || list->is_map || (i > 0 && list->parts.size() != lists[0].size())) {
        const JsonPart& where = part != nullptr ? *part : object.parts.front();
        problem(source_.span(where.key_at),
                fmt::format("a result needs the list '{}', as long as 'input_lens'", kKeys[i]),
                "--save-detailed (vLLM) or --output-details (SGLang)");
        return;
      }
      lists[i] = list->parts;
    }
    static const TraceFormat kResult{.columns = {"input_lens", "output_lens", "start_times", ""}, .has_failures = true};
    format_ = &kResult;
    is_result_ = true;
    for (std::size_t r = 0; r < lists[0].size() && problems_.size() < kMostProblems; ++r) {
      TraceCells row;
      for (std::size_t i = 0; i < lists.size(); ++i) {
        if (!lists[i].empty()) row[i] = cell_of(lists[i][r]);
      }
      add_row(row, *row[0]);
    }
  }

  // --- Rows ---

  std::optional<double> number(const TraceCell& cell, UnitKind kind) {
    const auto value = parse_quantity(cell.text, kind, true);
    if (const UnitError* error = std::get_if<UnitError>(&value)) {
      problem(place(cell), error->message, error->hint);
      return std::nullopt;
    }
    return std::get<double>(value);
  }

  /// Of a date: seconds after the first.
  std::optional<double> arrival_of(const TraceCell& cell) {
    if (format_->arrival == ArrivalUnit::kDate) {
      const auto moment = moment_of_date(cell.text);
      if (!moment) {
        problem(place(cell), fmt::format("{} is no date", in_quotes(cell.text)), "2023-11-16 18:17:03.9799600");
        return std::nullopt;
      }
      if (rows_.empty()) first_moment_ = *moment;
      return moment->since(first_moment_);
    }
    const auto value = number(cell, UnitKind::kSeconds);
    if (!value) return std::nullopt;
    constexpr double kMilli = 1e-3;
    return format_->arrival == ArrivalUnit::kMilliseconds ? *value * kMilli : *value;
  }

  void add_row(const TraceCells& cells, const TraceCell& where) {
    std::array<std::int64_t, 2> lengths{};
    for (const std::size_t i : {kPrompt, kGenerate}) {
      if (!cells[i]) {
        problem(place(where), fmt::format("the request has no '{}'", format_->columns[i]), kColumnsHint);
        return;
      }
      const std::optional<double> value = number(*cells[i], UnitKind::kCount);
      if (!value) return;
      if (*value < 1 && format_->has_failures) {
        ++left_out_;
        return;
      }
      if (*value < 1) {
        problem(place(*cells[i]), fmt::format("{} of 0 tokens", format_->columns[i]), "a length is 1 or more");
        return;
      }
      lengths[i] = static_cast<std::int64_t>(*value);
    }
    ServedRequest row{.prompt = lengths[0], .generate = lengths[1]};
    if (!rows_.empty() && cells[kArrival].has_value() != has_arrivals_) {
      problem(place(where), "some requests have an arrival and others none", "give it to all or to none");
      return;
    }
    if (!rows_.empty() && cells[kHashIds].has_value() != !first_id_.empty()) {
      problem(place(where), "some requests have hash_ids and others none", "give them to all or to none");
      return;
    }
    has_arrivals_ = cells[kArrival].has_value();
    if (has_arrivals_) {
      const std::optional<double> arrival = arrival_of(*cells[kArrival]);
      if (!arrival) return;
      row.arrival_s = *arrival;
      if (!rows_.empty() && row.arrival_s < rows_.back().arrival_s && !is_result_) {
        problem(place(*cells[kArrival]), "the request arrives before the one above it", "sort the trace by arrival");
        return;
      }
    }
    if (cells[kHashIds] && !add_ids(*cells[kHashIds], row.prompt)) return;
    rows_.push_back(row);
  }

  bool add_ids(const TraceCell& cell, std::int64_t prompt) {
    const auto list = json_parts(source_.text(), cell.begin);
    const auto blocks = static_cast<std::size_t>((prompt + kHashedTokens - 1) / kHashedTokens);
    if (!list || list->parts.size() != blocks) {
      problem(place(cell), fmt::format("{} hash_ids for {} tokens", list ? list->parts.size() : 0, prompt),
              fmt::format("one for each block of {} tokens: {}", kHashedTokens, blocks));
      return false;
    }
    first_id_.push_back(ids_.size());
    for (const JsonPart& part : list->parts) {
      const std::optional<double> id = number(cell_of(part), UnitKind::kCount);
      if (!id) return false;
      ids_.push_back(static_cast<std::uint64_t>(*id));
    }
    return true;
  }

  RequestMix mix() {
    if (is_result_ && has_arrivals_) {
      std::stable_sort(rows_.begin(), rows_.end(),
                       [](const ServedRequest& a, const ServedRequest& b) { return a.arrival_s < b.arrival_s; });
    }
    std::vector<std::int64_t> prompts;
    std::vector<std::int64_t> generations;
    for (const ServedRequest& row : rows_) {
      prompts.push_back(row.prompt);
      generations.push_back(row.generate);
    }
    RequestMix out{.prompt = Lengths::of(prompts),
                   .generate = Lengths::of(generations),
                   .rows = std::move(rows_),
                   .has_arrivals = has_arrivals_};
    if (!first_id_.empty()) {
      const auto blocks = std::make_shared<TraceBlocks>();
      blocks->ids = std::move(ids_);
      first_id_.push_back(blocks->ids.size());
      for (std::size_t i = 0; i < out.rows.size(); ++i) {
        const std::span<const std::uint64_t> all(blocks->ids);
        blocks->prompts.push_back({all.subspan(first_id_[i], first_id_[i + 1] - first_id_[i]), kHashedTokens});
      }
      for (std::size_t i = 0; i < out.rows.size(); ++i) out.rows[i].blocks = &blocks->prompts[i];
      out.blocks = blocks;
    }
    if (from_characters_) {
      out.notes.push_back(
          fmt::format("lengths of the trace are {} characters a token, as of English text; the first "
                      "turn of a conversation is the prompt, the second the answer",
                      kCharactersPerToken));
    }
    if (left_out_ > 0) {
      out.notes.push_back(fmt::format("{} request{} of the trace left out: {}", left_out_, left_out_ == 1 ? "" : "s",
                                      from_characters_ ? "without an answer" : "of 0 tokens, which failed"));
    }
    return out;
  }

  SourceText source_;
  std::string file_;
  const TraceFormat* format_ = nullptr;
  std::vector<std::optional<std::size_t>> columns_;
  std::vector<ServedRequest> rows_;
  std::vector<std::uint64_t> ids_;
  std::vector<std::size_t> first_id_;  ///< of each row
  bool has_arrivals_ = false;
  Moment first_moment_;
  bool from_characters_ = false;
  bool is_result_ = false;
  std::int64_t left_out_ = 0;
  std::vector<Diagnostic> problems_;
};

}  // namespace

RequestMix read_trace(std::string_view text, const std::string& file) { return TraceReader(text, file).read(); }

}  // namespace scalecalc
