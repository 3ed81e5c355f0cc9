// Turns an Output into the report that people read: title, lines, tables, assumptions.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/text.h"
#include "base/units.h"
#include "report/output.h"
#include "report/people_tables.h"

namespace scalecalc {
namespace {

std::string value_text(const ExplainedStep& step) {
  if (step.unit == kByteDim) return format_quantity(step.value, UnitKind::kBytes, 4);
  if (step.unit == kSecondDim) return format_quantity(step.value, UnitKind::kSeconds, 4);
  if (step.unit == kByteDim - kSecondDim) return format_quantity(step.value, UnitKind::kBytesPerSecond, 4);
  if (step.unit == kFlopDim - kSecondDim) return format_quantity(step.value, UnitKind::kFlopsPerSecond, 4);
  const std::string unit = unit_name(step.unit);
  return format_quantity(step.value, UnitKind::kNumber, 4) + (unit.empty() ? "" : " " + unit);
}

Line explained_line(const ExplainedStep& step) {
  std::string text = fmt::format("{} = {}\n= {}\n= {}", step.name, step.formula, step.numbers, value_text(step));
  if (!step.source.empty()) text += fmt::format(" [{}]", step.source);
  return {std::move(text)};
}

// Assumptions and workings as people read them, the same below every command's table.

/// The section "Assumed": a line each, with its source and the flag that changes it.
Section assumed_section(const std::vector<Assumption>& assumptions) {
  Section out{.title = "Assumed"};
  for (const Assumption& assumption : assumptions) {
    std::string text = assumption.warning ? "warning: " + assumption.text : assumption.text;
    if (!assumption.source.empty()) text += fmt::format(" [{}]", assumption.source);
    if (!assumption.flag.empty()) text += fmt::format(" (change: {})", assumption.flag);
    out.lines.push_back({std::move(text), assumption.warning ? Role::kWarning : Role::kPlain});
  }
  return out;
}

/// Of the assumptions those that warn or that Output::deciding names (all if it names none), without their sources.
Section deciding_section(const Output& output) {
  Section out;
  std::vector<std::string> texts;
  std::size_t shown = 0;
  for (const Assumption& a : output.assumptions) {
    const std::vector<std::string>& deciding = output.deciding;
    const std::string& name = a.flag.empty() ? a.key : a.flag;
    const bool decides = deciding.empty() || std::find(deciding.begin(), deciding.end(), name) != deciding.end();
    std::string text = a.flag.empty() ? a.text : fmt::format("{} ({})", a.text, a.flag);
    shown += a.warning || decides ? 1 : 0;
    if (a.warning) {
      out.lines.push_back({"warning: " + text, Role::kWarning});
    } else if (decides) {
      texts.push_back(std::move(text));
    }
  }
  if (!texts.empty()) out.lines.insert(out.lines.begin(), {join(texts, "; ")});
  const std::size_t all = output.assumptions.size();
  out.title = shown == all ? "Assumed (sources: --verbose)"
                           : fmt::format("Assumed ({} of {}; all with their sources: --verbose)", shown, all);
  return out;
}

/// name = formula = numbers = value [source], a line each, then the remarks.
Section explained_section(const ExplainSection& part, std::string title) {
  Section out{.title = std::move(title)};
  for (const ExplainedStep& step : part.steps) out.lines.push_back(explained_line(step));
  for (const std::string& remark : part.remarks) out.lines.push_back({remark, Role::kDim});
  return out;
}

/// "Where the step goes (809 ms)" -> "where-the-step-goes".
std::string name_of_title(std::string_view title) {
  std::string out;
  for (const char c : title.substr(0, title.find_first_of(":(;,"))) {
    const bool upper = c >= 'A' && c <= 'Z';
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    if (upper || plain) {
      out += upper ? static_cast<char>(c - 'A' + 'a') : c;
    } else if (!out.empty() && out.back() != '-') {
      out += '-';
    }
  }
  while (out.ends_with('-')) out.pop_back();
  return out;
}

/// By which --only asks for it.
std::string section_name(const Block& block, const Block& part) {
  if (!block.section.empty()) return block.section;
  const bool grouped = part.title != block.title && !part.title.empty();
  if (!grouped && !block.key.empty()) return block.key;
  return name_of_title(part.title);
}

class ReportOf {
 public:
  ReportOf(const Output& output, const AskedText& asked)
      : output_(output), asked_(asked), brief_(asked.depth == Depth::kBrief && asked.only.empty()) {
    // The first list stands right below the summary.
    leading_ = leading_block(output);
  }

  Report run() {
    if (leading_ != nullptr) check_columns(*leading_, asked_.columns);
    if (leading_ == nullptr && !asked_.columns.empty()) throw UserError("--columns: the answer has no table", "");
    if (asked_.headline_alone) {
      out_.summary = headline_of(output_);
      return std::move(out_);
    }
    out_.title = output_.title;
    out_.summary = output_.summary;
    out_.warnings = output_.warnings;
    out_.summary.insert(out_.summary.end(), output_.headline.begin(), output_.headline.end());
    if (!output_.software.empty()) out_.summary.push_back({output_.software, Role::kDim});
    add_all(false);
    const auto& notes = brief_ && output_.brief_notes ? *output_.brief_notes : output_.notes;
    out_.notes.insert(out_.notes.end(), notes.begin(), notes.end());
    if (output_.elapsed_s) out_.notes.push_back("answered in " + seconds_text(*output_.elapsed_s));
    explained();
    assumed();
    add_all(true);
    if (!asked_.only.empty()) choose();
    return std::move(out_);
  }

 private:
  bool hidden(const Block& b) const {
    if (b.for_files) return true;
    if (&b == leading_ && !asked_.columns.empty()) return false;
    if (!asked_.only.empty() && b.shown == Shown::kBrief) return has_whole(b.section);
    return b.shown == (brief_ ? Shown::kFull : Shown::kBrief);
  }

  /// Whether a block of this section is read in full.
  bool has_whole(const std::string& section) const {
    return section.empty() || std::any_of(output_.blocks.begin(), output_.blocks.end(), [&](const Block& b) {
             return b.section == section && b.shown != Shown::kBrief && !b.for_files;
           });
  }

  void add_all(bool last) {
    for (const Block& block : output_.blocks) {
      if (block.last == last && !hidden(block)) add(block);
    }
  }

  void add(const Block& block) {
    const bool chosen = &block == leading_ && !asked_.columns.empty();
    const bool first = &block == leading_ && block.is_list && block.title.empty();
    // Parts of a block with a title of its own say little without it.
    if (!asked_.only.empty() && block.by_figure && block.is_list && block.title.empty() && !chosen) {
      for (Block& part : headed_parts(block)) {
        std::string name = name_of_title(part.title);
        add_section(std::move(name), std::move(part), false);
      }
    }
    if (first && is_whole(block)) return show_main(block, section_name(block, block), false, chosen);
    for (Block& part : grouped_blocks(block)) {
      if (first && part.title.empty()) {
        main_table(block, std::move(part), chosen);
      } else {
        std::string name = section_name(block, part);
        add_section(std::move(name), std::move(part), chosen);
      }
    }
  }

  /// One table with all that is in it, which needs no copy of a list of hundreds.
  bool is_whole(const Block& block) const {
    const bool brief = brief_ && (block.brief_rows > 0 || !block.brief_keys.empty());
    return !brief && std::none_of(block.records.begin(), block.records.end(),
                                  [](const Record& record) { return !record.group.empty(); });
  }

  void main_table(const Block& block, Block whole, bool chosen) {
    const bool shortened = brief_ && whole.brief_rows > 0;
    std::string name = section_name(block, whole);
    show_main(brief_ ? brief_block(std::move(whole)) : std::move(whole), std::move(name), shortened, chosen);
  }

  void show_main(const Block& part, std::string name, bool shortened, bool chosen) {
    out_.plans_name = std::move(name);
    out_.plans = table_of(part, shortened, chosen);
    if (shortened) {
      if (std::string equal = chosen ? "" : fold_equal(out_.plans); !equal.empty()) {
        out_.plans_heading = fmt::format("In every row: {}", equal);
      }
    }
    for (const Line& line : shortened ? part.brief_lines : part.lines) out_.notes.push_back(line.text);
  }

  Table table_of(const Block& part, bool shortened, bool chosen) const {
    if (!chosen) return people_table(part, shortened);
    return part.by_figure ? people_table(chosen_figures(part, asked_.columns), false)
                          : chosen_table(part, asked_.columns);
  }

  void add_section(std::string name, Block whole, bool chosen) {
    const bool shortened = brief_ && whole.brief_rows > 0;
    const std::size_t rows = whole.records.size();
    const Block part = brief_ ? brief_block(std::move(whole)) : std::move(whole);
    Section out{.name = std::move(name), .title = part.title};
    out.lines = shortened ? part.brief_lines : part.lines;
    if (part.is_list) {
      out.table = table_of(part, shortened, chosen);
      if (rows == 0 && part.lines.empty() && !part.by_figure) out.lines.push_back({"none", Role::kDim});
      if (shortened) shorten(out, rows, chosen);
    } else if (!part.records.empty()) {
      check(part.records.size() == 1, "an object block has one record");
      out.table = pairs_table(chosen ? chosen_figures(part, asked_.columns).records.front() : part.records.front());
    }
    // Of a brief answer, what it shows nothing of.
    if (brief_ && out.table.rows.empty() && out.lines.empty() && rows > 0) return;
    const bool silent = out.title.empty() && out.table.rows.empty() && out.lines.empty();
    if (!silent) out_.sections.push_back(std::move(out));
  }

  /// What all rows share, and how many there are beside those shown, goes into the heading.
  void shorten(Section& out, std::size_t rows, bool chosen) const {
    std::vector<std::string> said;
    if (out.table.rows.size() < rows) {
      said.push_back(fmt::format("{} of {}, all with --verbose", out.table.rows.size(), rows));
    }
    if (std::string equal = chosen ? "" : fold_equal(out.table); !equal.empty()) said.push_back("all " + equal);
    if (!said.empty()) out.title += fmt::format(" ({})", join(said, "; "));
  }

  void explained() {
    if (!asked_.explain) return;
    const std::string of = output_.explained.empty() ? "" : ", " + output_.explained;
    for (const ExplainSection& part : output_explanation(output_)) {
      out_.sections.push_back(explained_section(part, fmt::format("Explained{}: {}", of, part.title)));
      out_.sections.back().name = "explained";
    }
  }

  void assumed() {
    if (output_.assumptions.empty()) return;
    Section out = brief_ ? deciding_section(output_) : assumed_section(output_.assumptions);
    if (out.lines.empty()) return;
    out.name = "assumed";
    out_.sections.push_back(std::move(out));
  }

  /// Leaves the sections that --only names.
  void choose() {
    std::vector<std::string> known{"headline"};
    const auto know = [&](const std::string& name) {
      if (!name.empty() && std::find(known.begin(), known.end(), name) == known.end()) known.push_back(name);
    };
    if (!out_.plans.rows.empty()) know(out_.plans_name);
    for (const Section& section : out_.sections) know(section.name);
    for (const std::string& name : asked_.only) {
      if (std::find(known.begin(), known.end(), name) != known.end()) continue;
      const std::string hint = did_you_mean(nearest(name, known));
      throw UserError(fmt::format("--only: the answer has no section {}", in_quotes(name)),
                      fmt::format("{}{}sections: {}", hint, hint.empty() ? "" : " ", join(known, ", ")));
    }
    const auto left = [&](const std::string& name) {
      return std::find(asked_.only.begin(), asked_.only.end(), name) == asked_.only.end();
    };
    if (left("headline")) {
      out_.title.clear();
      out_.summary.clear();
      out_.warnings.clear();
    }
    if (left(out_.plans_name)) {
      out_.plans = {};
      out_.notes.clear();
    }
    std::erase_if(out_.sections, [&](const Section& s) { return left(s.name); });
  }

  const Output& output_;
  const AskedText& asked_;
  const bool brief_;
  const Block* leading_ = nullptr;
  Report out_;
};

}  // namespace

std::vector<Line> headline_of(const Output& output) {
  if (!output.headline.empty() && !output.nothing_fits) return output.headline;
  if (!output.summary.empty()) return output.summary;
  const Block* block = record_block(output);
  if (block == nullptr || block->records.empty()) return {{output.title}};
  constexpr std::size_t kMost = 6;
  std::vector<std::string> parts;
  for (const Figure* f : people_figures(block->records.front())) {
    const std::string text = text_of(shown_cell(*f), f->shown.empty() ? f->format : Format::kText);
    if (!text.empty() && f->importance == 0 && parts.size() < kMost) parts.push_back(f->label + " " + text);
  }
  return {{parts.empty() ? output.title : join(parts, ", ")}};
}

namespace {

void mark_partial(Report& report) {
  report.summary.insert(report.summary.begin(), {std::string(kPartial), Role::kBad});
}

}  // namespace

Report output_report(const Output& output, const AskedText& asked) {
  Report out = ReportOf(output, asked).run();
  if (!output.complete) mark_partial(out);
  return out;
}

}  // namespace scalecalc
