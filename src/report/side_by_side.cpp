#include "report/side_by_side.h"

#include <string>
#include <utility>

namespace scalecalc {
namespace {

constexpr std::size_t kAlwaysShown = 3;

/// The lines of records shown side by side: groups of labels, with a text for each record that has the figure.
class SideBySide {
 public:
  explicit SideBySide(const std::vector<Record>& records) : columns_(records.size()) {
    for (column_ = 0; column_ < records.size(); ++column_) add(records[column_], "");
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

  Group& group(const std::string& title) {
    for (Group& known : groups_) {
      if (known.title == title) return known;
    }
    groups_.push_back({title, {}});
    return groups_.back();
  }

  void add(const Record& record, std::string title) {
    for (std::size_t i = title.empty() ? 1 : 0; i < record.figures.size(); ++i) {
      const Figure& f = record.figures[i];
      if (f.key.empty()) {
        title = f.label;
        group(title);
      } else if (f.label.empty()) {
        continue;
      } else if (!f.records.empty()) {
        for (const Record& inner : f.records) add_inner(f.label, inner);
      } else if (const Cell cell = shown_cell(f); !std::holds_alternative<std::monostate>(cell)) {
        put(group(title), f.label, text_of(cell, f.format));
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

  void put(Group& into, const std::string& label, std::string text) const {
    for (auto& [known, texts] : into.lines) {
      if (known != label) continue;
      texts[column_] = std::move(text);
      return;
    }
    into.lines.emplace_back(label, std::vector<std::string>(columns_));
    into.lines.back().second[column_] = std::move(text);
  }

  Row row_of(const std::string& label, const std::vector<std::string>& texts, Role role) const {
    Row row{.role = role};
    row.cells.emplace_back(label);
    for (std::size_t i = 0; i < columns_; ++i) row.cells.emplace_back(i < texts.size() ? texts[i] : "");
    return row;
  }

  std::size_t columns_;
  std::size_t column_ = 0;
  std::vector<Group> groups_;
};

}  // namespace

Table side_by_side(const std::vector<Record>& records) { return SideBySide(records).table(records); }

}  // namespace scalecalc
