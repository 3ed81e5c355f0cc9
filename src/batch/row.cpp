// Makes the row of an answer for a file of results, and reads rows back with their columns.
#include "batch/row.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "base/diagnostic.h"

namespace scalecalc {
namespace {

/// A reader that takes everything and does nothing.
struct SilentSax : nlohmann::json_sax<Json> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }
};

bool is_plain(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 127 && c != '"' && c != '\\'; });
}

}  // namespace

std::string json_string(std::string_view text) {
  if (is_plain(text)) return '"' + std::string(text) + '"';
  std::string out = json_text(Json(text), -1);
  out.pop_back();  // the end of its line
  return out;
}

namespace {

constexpr std::array<std::string_view, 5> kKinds{"nothing", "flag", "integer", "real", "text"};

/// What can hold both: a flag is no number.
ColumnKind common(ColumnKind a, ColumnKind b) {
  if (a == ColumnKind::kNothing || a == b) return b;
  if (b == ColumnKind::kNothing) return a;
  if (a == ColumnKind::kFlag || b == ColumnKind::kFlag) return ColumnKind::kText;
  return std::max(a, b);
}

}  // namespace

RowColumn& RowColumns::column(std::string_view name) {
  if (next_ < columns_.size() && columns_[next_].name == name) return columns_[next_];
  const auto found = by_name_.find(name);
  if (found != by_name_.end()) return columns_[found->second];
  by_name_.emplace(name, columns_.size());
  return columns_.emplace_back(RowColumn{std::string(name), ColumnKind::kNothing, case_, next_});
}

void RowColumns::see(std::string_view name, ColumnKind kind) {
  RowColumn& seen = column(name);
  seen.kind = common(seen.kind, kind);
  ++next_;
}

void RowColumns::merge(const std::vector<RowColumn>& others) {
  for (const RowColumn& other : others) {
    case_ = other.first_case;
    next_ = other.position;
    RowColumn& own = column(other.name);
    own.kind = common(own.kind, other.kind);
    if (std::tie(other.first_case, other.position) < std::tie(own.first_case, own.position)) {
      own.first_case = other.first_case;
      own.position = other.position;
    }
  }
}

std::vector<RowColumn> RowColumns::sorted() const {
  std::vector<RowColumn> out = columns_;
  std::stable_sort(out.begin(), out.end(), [](const RowColumn& a, const RowColumn& b) {
    return std::tie(a.first_case, a.position) < std::tie(b.first_case, b.position);
  });
  return out;
}

ColumnKind kind_of(const Json& value) {
  if (value.is_null()) return ColumnKind::kNothing;
  if (value.is_boolean()) return ColumnKind::kFlag;
  if (value.is_number_integer()) return ColumnKind::kInteger;
  return value.is_number() ? ColumnKind::kReal : ColumnKind::kText;
}

Json columns_json(const std::vector<RowColumn>& columns) {
  Json out = Json::array();
  for (const RowColumn& c : columns) {
    out.push_back(Json::array({c.name, kKinds[static_cast<std::size_t>(c.kind)], c.first_case, c.position}));
  }
  return out;
}

std::vector<RowColumn> columns_from(const Json& json) {
  std::vector<RowColumn> out;
  for (const Json& entry : json) {
    const auto kind = std::find(kKinds.begin(), kKinds.end(), entry.at(1).get<std::string>());
    check(kind != kKinds.end(), "a column kind is known");
    out.push_back({entry.at(0).get<std::string>(), static_cast<ColumnKind>(kind - kKinds.begin()),
                   entry.at(2).get<std::uint64_t>(), entry.at(3).get<std::size_t>()});
  }
  return out;
}

namespace {

constexpr std::array<std::string_view, kRowStatuses> kStatuses{"ok", "infeasible", "wrong", "bug"};

/// Notes the members of a flat object.
class ColumnSax : public SilentSax {
 public:
  explicit ColumnSax(RowColumns& columns) : columns_(columns) {}

  bool null() override { return see(ColumnKind::kNothing); }
  bool boolean(bool) override { return see(ColumnKind::kFlag); }
  bool number_integer(number_integer_t) override { return see(ColumnKind::kInteger); }
  bool number_unsigned(number_unsigned_t) override { return see(ColumnKind::kInteger); }
  bool number_float(number_float_t, const string_t&) override { return see(ColumnKind::kReal); }
  bool string(string_t& text) override {
    if (depth_ == 1 && key_ == "status") status = text;
    return see(ColumnKind::kText);
  }
  bool key(string_t& name) override {
    if (depth_ == 1) key_ = name;
    return true;
  }
  bool start_object(std::size_t) override { return open(); }
  bool start_array(std::size_t) override { return open(); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  string_t status;

 private:
  bool see(ColumnKind kind) {
    if (depth_ == 1) columns_.see(key_, kind);
    return true;
  }
  bool open() {
    if (depth_ == 1) columns_.see(key_, ColumnKind::kText);
    ++depth_;
    return true;
  }
  bool close() {
    --depth_;
    return true;
  }

  RowColumns& columns_;
  int depth_ = 0;
  string_t key_;
};

}  // namespace

std::string_view status_name(RowStatus status) { return kStatuses[static_cast<std::size_t>(status)]; }

RowStatus status_of(int exit) {
  switch (static_cast<ExitCode>(exit)) {
    case ExitCode::kAnswered:
    case ExitCode::kCheckFailed: return RowStatus::kOk;  // an answer that failed a check has all its figures
    case ExitCode::kNothingFits: return RowStatus::kInfeasible;
    case ExitCode::kQuestionWrong: return RowStatus::kWrong;
    default: return RowStatus::kBug;
  }
}

std::string row_head(std::string_view tool_version, std::string_view command) {
  return R"({"schema":)" + json_string(kRowSchema) + R"(,"tool_version":)" + json_string(tool_version) +
         R"(,"command":)" + json_string(command) + R"(,"case":)";
}

std::string rows_of(std::string_view head, std::uint64_t number, const Cases& cases, const GridPoint& point,
                    const StudyQuestion& question, const StudyReply& reply, bool all_records) {
  const RowStatus status = status_of(reply.exit);
  std::string start = std::string(head) + std::to_string(number);
  std::string inputs = ",\"status\":\"" + std::string(status_name(status)) + '"';
  cases.write_inputs(point, inputs);
  std::string end;
  if (status != RowStatus::kOk) end += ",\"reason\":" + json_string(reply.reason);
  if (!reply.warnings.empty()) end += ",\"warnings\":" + json_string(reply.warnings);
  std::string out;
  std::size_t record = 0;
  std::string_view rest = status == RowStatus::kOk ? std::string_view(reply.records) : std::string_view();
  // An answer says its question itself.
  if (rest.find(",\"question\":") == std::string_view::npos) {
    end += ",\"question\":" + json_string(command_line(question));
  }
  end += "}\n";
  do {
    out += start;
    if (all_records) out += ",\"record\":" + std::to_string(record++);
    out += inputs;
    const std::size_t line_end = std::min(rest.find('\n'), rest.size());
    if (line_end > 2) (out += ',') += rest.substr(1, line_end - 2);  // a flat object without its braces
    rest.remove_prefix(std::min(line_end + 1, rest.size()));
    out += end;
  } while (all_records && !rest.empty());
  return out;
}

std::optional<std::uint64_t> case_of(std::string_view line, std::string_view head) {
  if (!line.starts_with(head)) return std::nullopt;
  std::uint64_t out = 0;
  const char* first = line.data() + head.size();
  const auto [end, error] = std::from_chars(first, line.data() + line.size(), out);
  if (error != std::errc() || end == first || end == line.data() + line.size() || *end != ',') return std::nullopt;
  return out;
}

std::optional<RowStanding> read_row(std::string_view line, std::string_view head, RowColumns& columns) {
  const std::optional<std::uint64_t> number = case_of(line, head);
  if (!number) return std::nullopt;
  columns.start(*number);
  ColumnSax sax(columns);
  if (!Json::sax_parse(line, &sax)) return std::nullopt;
  for (std::size_t i = 0; i < kStatuses.size(); ++i) {
    if (kStatuses[i] == sax.status) return RowStanding{*number, static_cast<RowStatus>(i)};
  }
  return std::nullopt;
}

}  // namespace scalecalc
