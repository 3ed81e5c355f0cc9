// Turns a few records of many figures into a table with one column per record.
#include "report/side_by_side.h"

#include <string>
#include <utility>

namespace scalecalc {
namespace {

constexpr std::size_t kAlwaysShown = 3;

/// The lines of records shown side by side: groups of labels, with a text for each record that has the figure. A group
/// or line that an earlier record lacks stands behind the one that precedes it in its own.
class SideBySide {
 public:
  explicit SideBySide(const std::vector<Record>& records) : columns_(records.size()) {
    for (column_ = 0; column_ < records.size(); ++column_) {
      group_ = line_ = kBeforeAll;
      add(records[column_], "");
    }
  }

  Table table(const std::vector<Record>& records) const {
    Table out;
    out.columns.push_back({"", "figure", Format::kText, 0, true});
    for (std::size_t i = 0; i < records.size(); ++i) {
      const Figure& name = records[i].figures.front();
      // Three fit into any terminal; of more the last are left out first.
      const int importance = i < kAlwaysShown ? 0 : static_cast<int>(i);
      out.columns.push_back({text_of(name.value, name.format), name.key, Format::kText, importance, true});
    }
    for (const Group& group : groups_) {
      if (group.lines.empty()) continue;
      if (!out.rows.empty()) out.rows.push_back(row_of("", {}, Role::kPlain));
      if (!group.title.empty()) out.rows.push_back(row_of(group.title, {}, Role::kDim));
      for (const auto& [label, texts] : group.lines) out.rows.push_back(row_of("  " + label, texts, Role::kPlain));
    }
    return out;
  }

 private:
  struct Group {
    std::string title;
    std::vector<std::pair<std::string, std::vector<std::string>>> lines;
  };

  void enter(const std::string& title) {
    std::size_t at = 0;
    while (at < groups_.size() && groups_[at].title != title) ++at;
    if (at == groups_.size()) {
      at = group_ + 1;
      groups_.insert(groups_.begin() + static_cast<std::ptrdiff_t>(at), {title, {}});
    }
    if (at != group_) line_ = kBeforeAll;
    group_ = at;
  }

  void add(const Record& record, std::string title) {
    for (std::size_t i = title.empty() ? 1 : 0; i < record.figures.size(); ++i) {
      const Figure& f = record.figures[i];
      if (f.key.empty()) {
        title = f.label;
        enter(title);
      } else if (f.label.empty()) {
        continue;
      } else if (!f.records.empty()) {
        for (const Record& inner : f.records) add_inner(f.label, inner);
      } else if (const Cell cell = shown_cell(f); !std::holds_alternative<std::monostate>(cell)) {
        enter(title);
        put(f.label, text_of(cell, f.format));
      }
    }
  }

  /// Named by its first figure, as a record of the block is.
  void add_inner(const std::string& label, const Record& inner) {
    const Figure& name = inner.figures.front();
    Record rest = inner;
    rest.figures.erase(rest.figures.begin());
    add(rest, label + " " + text_of(name.value, name.format));
  }

  void put(const std::string& label, std::string text) {
    auto& lines = groups_[group_].lines;
    std::size_t at = 0;
    while (at < lines.size() && lines[at].first != label) ++at;
    if (at == lines.size()) {
      at = line_ + 1;
      lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(at), {label, std::vector<std::string>(columns_)});
    }
    lines[at].second[column_] = std::move(text);
    line_ = at;
  }

  Row row_of(const std::string& label, const std::vector<std::string>& texts, Role role) const {
    Row row{.role = role};
    row.cells.emplace_back(label);
    for (std::size_t i = 0; i < columns_; ++i) row.cells.emplace_back(i < texts.size() ? texts[i] : "");
    return row;
  }

  static constexpr std::size_t kBeforeAll = static_cast<std::size_t>(-1);  ///< one more is the first place

  std::size_t columns_;
  std::size_t column_ = 0;
  std::size_t group_ = kBeforeAll;  ///< where the record's last line stands
  std::size_t line_ = kBeforeAll;
  std::vector<Group> groups_;
};

}  // namespace

Table side_by_side(const std::vector<Record>& records) { return SideBySide(records).table(records); }

}  // namespace scalecalc
