// The grid of a study: a case is a point of it, its number the position when the first axis varies slowest. Numbers do
// not depend on `where`, so a condition changes which points are asked about and not what they are called.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batch/condition.h"
#include "batch/study.h"

namespace scalecalc {

/// A position on every axis.
using GridPoint = std::vector<std::size_t>;

/// Points of the grid; nothing if they are more than 2^63.
std::optional<std::uint64_t> grid_size(const Study& study);
/// The members of rows that say what was asked: "in_hw". One for each column of the axes.
std::vector<std::string> input_names(const Study& study);

class Cases {
 public:
  /// The study must outlive this, and grid_size() must know its size.
  explicit Cases(const Study& study);

  std::uint64_t size() const { return size_; }
  GridPoint point(std::uint64_t number) const;
  std::uint64_t number(const GridPoint& point) const;

  StudyQuestion question(const GridPoint& point) const;
  /// ,"in_hw":"tpu-v5p","in_batch":8 — the values of the axes as members of a JSON object.
  void write_inputs(const GridPoint& point, std::string& json) const;
  /// The value of every column: a number where the whole column is numbers.
  std::vector<Cell> values(const GridPoint& point) const;

 private:
  struct Piece {
    std::string text;
    std::optional<std::size_t> column;  ///< its value instead of the text
  };
  using Pattern = std::vector<Piece>;
  struct Column {
    const StudyColumn* values;
    std::size_t axis;
    std::vector<std::string> members;  ///< ,"in_hw":"tpu-v5p"
  };

  Pattern pattern_of(const std::string& text) const;
  std::string filled(const Pattern& pattern, const GridPoint& point) const;

  const Study& study_;
  std::uint64_t size_;
  std::vector<Column> columns_;
  std::vector<Pattern> arguments_;
  std::vector<std::vector<Pattern>> flags_;  ///< as study.flags
};

/// Which points `where` keeps. For one thread at a time.
class PointFilter {
 public:
  PointFilter(const Study& study, const Cases& cases);
  bool keeps(const GridPoint& point);

 private:
  const Cases& cases_;
  std::optional<Condition> condition_;
};

}  // namespace scalecalc
