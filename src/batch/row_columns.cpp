#include "batch/row_columns.h"

#include <algorithm>
#include <array>
#include <tuple>

#include "base/check.h"

namespace scalecalc {
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

}  // namespace scalecalc
