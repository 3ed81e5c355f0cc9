// Turns the number of a case into its point of the study's grid and into the question to ask there.
#include "batch/cases.h"

#include <algorithm>

#include "base/check.h"
#include "report/json_text.h"

namespace scalecalc {

std::optional<std::uint64_t> grid_size(const Study& study) {
  std::uint64_t out = 1;
  constexpr std::uint64_t kMost = std::uint64_t{1} << 63U;
  for (const StudyAxis& axis : study.axes) {
    if (out > kMost / axis.size()) return std::nullopt;
    out *= axis.size();
  }
  return out;
}

std::vector<std::string> input_names(const Study& study) {
  std::vector<std::string> out;
  for (const StudyAxis& axis : study.axes) {
    for (const StudyColumn& column : axis.columns) out.push_back("in_" + row_name(column.name));
  }
  return out;
}

Cases::Cases(const Study& study) : study_(study), size_(grid_size(study).value_or(0)) {
  for (std::size_t axis = 0; axis < study.axes.size(); ++axis) {
    for (const StudyColumn& column : study.axes[axis].columns) {
      Column made{&column, axis, {}};
      const std::string key = ",\"in_" + row_name(column.name) + "\":";
      for (std::size_t i = 0; i < column.values.size(); ++i) {
        const Json value = column.numbers.empty() ? Json(column.values[i]) : whole(column.numbers[i]);
        std::string text = json_text(value, -1);
        text.pop_back();  // the end of its line
        made.members.push_back(key + text);
      }
      columns_.push_back(std::move(made));
    }
  }
  for (const std::string& argument : study.arguments) arguments_.push_back(pattern_of(argument));
  for (const StudyFlag& flag : study.flags) {
    std::vector<Pattern> values;
    for (const std::string& value : flag.values) values.push_back(pattern_of(value));
    flags_.push_back(std::move(values));
  }
}

Cases::Pattern Cases::pattern_of(const std::string& text) const {
  Pattern out;
  for (TextPart& part : split_placeholders(text)) {
    Piece piece{std::move(part.text), std::nullopt};
    if (part.is_name) {
      const auto same = [&](const Column& c) { return c.values->name == piece.text; };
      const auto found = std::find_if(columns_.begin(), columns_.end(), same);
      check(found != columns_.end(), "every placeholder is an axis");
      piece.column = static_cast<std::size_t>(found - columns_.begin());
    }
    out.push_back(std::move(piece));
  }
  return out;
}

std::string Cases::filled(const Pattern& pattern, const GridPoint& point) const {
  std::string out;
  for (const Piece& piece : pattern) {
    const Column* column = piece.column ? &columns_[*piece.column] : nullptr;
    out += column == nullptr ? piece.text : column->values->values[point[column->axis]];
  }
  return out;
}

GridPoint Cases::point(std::uint64_t number) const {
  GridPoint out(study_.axes.size());
  for (std::size_t axis = out.size(); axis-- > 0;) {
    out[axis] = number % study_.axes[axis].size();
    number /= study_.axes[axis].size();
  }
  return out;
}

std::uint64_t Cases::number(const GridPoint& point) const {
  std::uint64_t out = 0;
  for (std::size_t axis = 0; axis < point.size(); ++axis) out = out * study_.axes[axis].size() + point[axis];
  return out;
}

StudyQuestion Cases::question(const GridPoint& point) const {
  StudyQuestion out;
  out.command = study_.command;
  for (const Pattern& argument : arguments_) out.positionals.push_back(filled(argument, point));
  for (std::size_t i = 0; i < flags_.size(); ++i) {
    std::vector<std::string>& values = out.flags[study_.flags[i].flag];
    for (const Pattern& value : flags_[i]) values.push_back(filled(value, point));
  }
  return out;
}

void Cases::write_inputs(const GridPoint& point, std::string& json) const {
  for (const Column& column : columns_) json += column.members[point[column.axis]];
}

std::vector<Cell> Cases::values(const GridPoint& point) const {
  std::vector<Cell> out;
  for (const Column& column : columns_) {
    const std::size_t at = point[column.axis];
    out.push_back(column.values->numbers.empty() ? Cell(column.values->values[at]) : Cell(column.values->numbers[at]));
  }
  return out;
}

PointFilter::PointFilter(const Study& study, const Cases& cases) : cases_(cases) {
  if (!study.where.empty()) condition_.emplace(study.where, column_names(study), SourceSpan{});
}

bool PointFilter::keeps(const GridPoint& point) { return !condition_ || condition_->holds(cases_.values(point)); }

}  // namespace scalecalc
