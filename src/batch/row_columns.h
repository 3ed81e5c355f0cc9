// The columns that rows have: their names in the order in which they first appear, and what stands in them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "report/json_text.h"

namespace scalecalc {

/// Each can be read as those after it.
enum class ColumnKind { kNothing, kFlag, kInteger, kReal, kText };

struct RowColumn {
  std::string name;
  ColumnKind kind = ColumnKind::kNothing;
  std::uint64_t first_case = 0;  ///< with `position`, what orders columns the same for any number of shards
  std::size_t position = 0;      ///< in the row where it first appeared
};

class RowColumns {
 public:
  /// Starts a row; its members follow in order.
  void start(std::uint64_t number) {
    case_ = number;
    next_ = 0;
  }
  void see(std::string_view name, ColumnKind kind);
  void merge(const std::vector<RowColumn>& others);

  /// Sorted by where they first appeared.
  std::vector<RowColumn> sorted() const;

 private:
  RowColumn& column(std::string_view name);

  std::uint64_t case_ = 0;
  std::size_t next_ = 0;  ///< rows mostly have the same members in the same order
  std::vector<RowColumn> columns_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

ColumnKind kind_of(const Json& value);
Json columns_json(const std::vector<RowColumn>& columns);
/// What columns_json() wrote.
std::vector<RowColumn> columns_from(const Json& json);

}  // namespace scalecalc
