// Evaluates a condition over named values with SQLite, for --fail-if and for `where:` of studies.
#include "batch/condition.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <utility>

#include "base/limits.h"
#include "base/text.h"
#include "batch/database.h"

namespace scalecalc {
namespace {

// A condition may come with a study from elsewhere, and is asked of every row: it computes the same from the same
// values, in little time and memory.

constexpr int kStepsBetweenLooks = 1'000;

/// SQLite's functions of one row that give the same for the same values and nothing much longer than these.
constexpr std::array<std::string_view, 51> kFunctions{
    "abs",       "acos",     "acosh",  "asin",  "asinh",      "atan",   "atan2",  "atanh", "ceil",
    "ceiling",   "coalesce", "cos",    "cosh",  "degrees",    "exp",    "floor",  "glob",  "ifnull",
    "iif",       "instr",    "length", "like",  "likelihood", "likely", "ln",     "log",   "log10",
    "log2",      "lower",    "ltrim",  "max",   "min",        "mod",    "nullif", "pi",    "pow",
    "power",     "radians",  "round",  "rtrim", "sign",       "sin",    "sinh",   "sqrt",  "substr",
    "substring", "tan",      "trim",   "trunc", "typeof",     "upper"};

/// No tables, no files, no settings, no clock and no chance. A function that is none of these goes into `refused`,
/// because SQLite's own message names nothing.
int only_computing(void* refused, int action, const char*, const char* function, const char*, const char*) {
  if (action == SQLITE_SELECT || action == SQLITE_READ) return SQLITE_OK;
  if (action != SQLITE_FUNCTION || function == nullptr) return SQLITE_DENY;
  const std::string name = lower_case(function);
  if (std::find(kFunctions.begin(), kFunctions.end(), name) != kFunctions.end()) return SQLITE_OK;
  *static_cast<std::string*>(refused) = name;
  return SQLITE_DENY;
}

void set_limits(sqlite3* handle) {
  constexpr std::array<std::pair<int, int>, 8> kLimits{{{SQLITE_LIMIT_LENGTH, limits::kConditionValue},
                                                        {SQLITE_LIMIT_EXPR_DEPTH, limits::kConditionLevels},
                                                        {SQLITE_LIMIT_COMPOUND_SELECT, 10},
                                                        {SQLITE_LIMIT_FUNCTION_ARG, 20},
                                                        {SQLITE_LIMIT_ATTACHED, 0},
                                                        {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1000},
                                                        {SQLITE_LIMIT_TRIGGER_DEPTH, 0},
                                                        {SQLITE_LIMIT_WORKER_THREADS, 0}}};
  for (const auto& [which, most] : kLimits) sqlite3_limit(handle, which, most);
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
  std::string refused;  ///< the function
  int looks = 0;        ///< of the progress handler, for the row at hand
};

namespace {

/// Why the text is no expression of these columns; empty, and the statement made, if it is one.
std::string prepared(sqlite3* handle, const std::string& sql, std::size_t columns, Statement& out) {
  sqlite3_stmt* made = nullptr;
  const char* rest = nullptr;
  const int failed = sqlite3_prepare_v2(handle, sql.c_str(), -1, &made, &rest);
  out = Statement(made);
  if (failed == SQLITE_NOMEM) throw std::bad_alloc();
  if (failed != SQLITE_OK) return sqlite3_errmsg(handle);
  if (made == nullptr || (rest != nullptr && *rest != '\0') || sqlite3_column_count(made) != 1) {
    return "it is more than one expression";
  }
  for (int i = 1; i <= sqlite3_bind_parameter_count(made); ++i) {
    const char* name = sqlite3_bind_parameter_name(made, i);
    const bool ours = static_cast<std::size_t>(i) <= columns && name != nullptr && fmt::format(":value_{}", i) == name;
    if (!ours) return fmt::format("nothing is bound to {}", name == nullptr ? "?" : name);
  }
  return "";
}

}  // namespace

namespace {

/// A word that begins another query, whose size nothing bounds; empty if there is none.
std::string word_of_query(const std::string& text, const std::vector<std::string>& columns) {
  constexpr std::array<std::string_view, 3> kQueries{"select", "values", "with"};
  for (const std::string& word : names_in(text)) {
    const std::string lower = lower_case(word);
    const bool begins = std::find(kQueries.begin(), kQueries.end(), lower) != kQueries.end();
    if (begins && std::find(columns.begin(), columns.end(), word) == columns.end()) return word;
  }
  return "";
}

}  // namespace

Condition::Condition(const std::string& text, const std::vector<std::string>& columns, const SourceSpan& where)
    : state_(std::make_unique<State>()) {
  const auto refuse = [&](const std::string& why, const std::string& hint) {
    throw UserError({Diagnostic{where, fmt::format("cannot read the condition {}: {}", in_quotes(text), why), hint}});
  };
  if (text.size() > limits::kConditionText)
    refuse(fmt::format("it is longer than {} characters", limits::kConditionText), "");
  if (const std::string query = word_of_query(text, columns); !query.empty()) {
    refuse(fmt::format("{} begins a query of its own", query), "a condition computes from one row alone");
  }
  sqlite3* handle = state_->database.handle();
  // An unknown name in double quotes would be taken for a text.
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DQS_DML, 0, nullptr);
  sqlite3_set_authorizer(handle, only_computing, &state_->refused);
  set_limits(handle);
  std::string inner;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    inner += fmt::format("{}:value_{} AS {}", i == 0 ? "" : ", ", i + 1, sql_name(columns[i]));
  }
  // Of an expression both can be read; of "1) OR (1" the second cannot. A line end closes a comment.
  for (const char* form : {"SELECT ({}\n) FROM (SELECT {})", "SELECT {}\n FROM (SELECT {})"}) {
    const std::string why =
        prepared(handle, fmt::format(fmt::runtime(form), text, inner), columns.size(), state_->statement);
    if (why.empty()) continue;
    const std::string& function = state_->refused;
    if (function.empty()) refuse(why, hint_for(why, columns));
    refuse(fmt::format("it may not call {}()", function),
           fmt::format("a condition computes from one row, with {}", fmt::join(kFunctions, ", ")));
  }
  const auto look = [](void* looks) {
    return ++*static_cast<int*>(looks) > limits::kConditionSteps / kStepsBetweenLooks ? 1 : 0;
  };
  sqlite3_progress_handler(handle, kStepsBetweenLooks, look, &state_->looks);
}

Condition::~Condition() = default;
Condition::Condition(Condition&&) noexcept = default;
Condition& Condition::operator=(Condition&&) noexcept = default;

bool Condition::holds(const std::vector<Cell>& values) {
  sqlite3_stmt* statement = state_->statement.handle();
  sqlite3_reset(statement);
  state_->looks = 0;
  const auto used = static_cast<std::size_t>(sqlite3_bind_parameter_count(statement));
  for (std::size_t i = 0; i < values.size() && i < used; ++i)
    state_->statement.bind(static_cast<int>(i) + 1, values[i]);
  const int came = sqlite3_step(statement);
  if (came == SQLITE_NOMEM) throw std::bad_alloc();
  if (came == SQLITE_INTERRUPT) {
    throw UserError("cannot compute the condition: it takes too long",
                    fmt::format("at most {} steps of SQLite for a row", limits::kConditionSteps));
  }
  if (came != SQLITE_ROW) {
    throw UserError(fmt::format("cannot compute the condition: {}", sqlite3_errmsg(state_->database.handle())), "");
  }
  return sqlite3_column_double(statement, 0) != 0;
}

}  // namespace scalecalc
