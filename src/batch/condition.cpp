#include "batch/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/text.h"
#include "batch/database.h"

namespace scalecalc {
namespace {

/// An expression computes from the values it is given: no tables, no files, no settings.
int only_computing(void*, int action, const char*, const char*, const char*, const char*) {
  const bool allowed = action == SQLITE_SELECT || action == SQLITE_READ || action == SQLITE_FUNCTION;
  return allowed ? SQLITE_OK : SQLITE_DENY;
}

std::string hint_for(const std::string& message, const std::vector<std::string>& columns) {
  constexpr std::string_view kNoColumn = "no such column: ";
  constexpr std::size_t kReadable = 80;
  const std::string all =
      columns.size() > kReadable ? "-o row shows the names" : fmt::format("names: {}", join(columns, ", "));
  const std::size_t at = message.find(kNoColumn);
  if (at == std::string::npos) return "SQL, for example mfu < 0.35 AND in_hw = 'tpu-v5p'; " + all;
  const std::string hint = did_you_mean(nearest(message.substr(at + kNoColumn.size()), columns));
  return hint.empty() ? all : fmt::format("{} {}", hint, all);
}

}  // namespace

std::vector<std::string> names_in(std::string_view condition) {
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::vector<std::string> out;
  bool text = false;
  for (std::size_t at = 0; at < condition.size();) {
    if (condition[at] == '\'') text = !text;
    std::size_t end = at;
    while (end < condition.size() && in_name(condition[end])) ++end;
    const std::string word(condition.substr(at, end - at));
    if (!text && !word.empty() && std::find(out.begin(), out.end(), word) == out.end()) out.push_back(word);
    at = std::max(end, at + 1);
  }
  return out;
}

void check_names(const std::vector<std::string>& conditions, const std::vector<std::string>& names) {
  for (const std::string& text : conditions) {
    std::vector<std::string> known;
    for (const std::string& name : names) {
      if (!name.ends_with('*')) {
        known.push_back(name);
        continue;
      }
      const std::string_view start = std::string_view(name).substr(0, name.size() - 1);
      for (std::string& word : names_in(text)) {
        if (word.starts_with(start) && std::find(names.begin(), names.end(), word) == names.end()) {
          known.push_back(std::move(word));
        }
      }
    }
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    Condition(text, known, SourceSpan{});
  }
}

struct Condition::State {
  Database database{":memory:"};
  Statement statement;
};

Condition::Condition(const std::string& text, const std::vector<std::string>& columns, const SourceSpan& where)
    : state_(std::make_unique<State>()) {
  sqlite3* handle = state_->database.handle();
  // An unknown name in double quotes would be taken for a text.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_set_authorizer(handle, only_computing, nullptr);
  std::string inner;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    inner += fmt::format("{}?{} AS {}", i == 0 ? "" : ", ", i + 1, sql_name(columns[i]));
  }
  // A line end closes a comment.
  const std::string sql = fmt::format("SELECT ({}\n) FROM (SELECT {})", text, inner);
  sqlite3_stmt* made = nullptr;
  const char* rest = nullptr;
  const int failed = sqlite3_prepare_v2(handle, sql.c_str(), -1, &made, &rest);
  state_->statement = Statement(made);
  const bool more = failed == SQLITE_OK && rest != nullptr && *rest != '\0';
  if (failed == SQLITE_OK && !more && made != nullptr && sqlite3_column_count(made) == 1) return;
  const std::string why = failed != SQLITE_OK ? sqlite3_errmsg(handle) : "it is more than one expression";
  throw UserError({Diagnostic{where, fmt::format("cannot read the condition {}: {}", in_quotes(text), why),
                              hint_for(why, columns)}});
}

Condition::~Condition() = default;
Condition::Condition(Condition&&) noexcept = default;
Condition& Condition::operator=(Condition&&) noexcept = default;

bool Condition::holds(const std::vector<Cell>& values) {
  sqlite3_stmt* statement = state_->statement.handle();
  sqlite3_reset(statement);
  const auto used = static_cast<std::size_t>(sqlite3_bind_parameter_count(statement));
  for (std::size_t i = 0; i < values.size() && i < used; ++i)
    state_->statement.bind(static_cast<int>(i) + 1, values[i]);
  if (sqlite3_step(statement) != SQLITE_ROW) {
    throw UserError(fmt::format("cannot compute the condition: {}", sqlite3_errmsg(state_->database.handle())), "");
  }
  return sqlite3_column_double(statement, 0) != 0;
}

}  // namespace scalecalc
