// Writes an answer as one HTML page with tables, pictures and all scripts included.
#include "report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/text.h"
#include "report/page_assets.h"
#include "report/page_chart.h"

namespace scalecalc {
namespace {

/// Lines stay lines.
std::string html_of(const std::string& text) {
  std::string out = markup_escaped(text);
  for (std::size_t at = 0; (at = out.find('\n', at)) != std::string::npos;) out.replace(at, 1, "<br>");
  return out;
}

std::string_view class_of(Role role) {
  switch (role) {
    case Role::kGood: return " class=\"good\"";
    case Role::kWarning: return " class=\"warning\"";
    case Role::kBad: return " class=\"bad\"";
    case Role::kDim: return " class=\"dim\"";
    case Role::kHeading: return " class=\"heading\"";
    case Role::kCommand:
    case Role::kPlain: break;
  }
  return "";
}

/// A Content-Security-Policy names scripts by the base64 of their SHA-256.
std::string base64_of_hex(std::string_view hex) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  unsigned bits = 0;
  int held = 0;
  for (const char c : hex) {
    bits = bits << 4U | static_cast<unsigned>(kDigits.find(c));
    held += 4;
    if (held < 6) continue;
    held -= 6;
    out += kBase64[bits >> static_cast<unsigned>(held) & 63U];
  }
  if (held > 0) out += kBase64[bits << static_cast<unsigned>(6 - held) & 63U];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

/// JSON inside a script element: nothing of it may end the element or open a comment.
std::string script_safe(const std::string& json) {
  std::string out;
  for (const char c : json) {
    switch (c) {
      case '<': out += "\\u003c"; break;
      case '>': out += "\\u003e"; break;
      case '&': out += "\\u0026"; break;
      default: out += c;
    }
  }
  return out;
}

/// What a reader looks for first, by its column in files.
constexpr std::array<std::string_view, 14> kAnswers{"run_time_s",
                                                    "run_cost_usd",
                                                    "time_s",
                                                    "ttft_s",
                                                    "tpot_s",
                                                    "tokens_per_s",
                                                    "tokens_per_s_per_chip",
                                                    "usd_per_million_output_tokens",
                                                    "measured",
                                                    "predicted",
                                                    "error",
                                                    "bound_by",
                                                    "step_time_s",
                                                    "mfu"};

/// The order of a table's columns on a page: what a row is (the first column, a study's axes), then the answers, then
/// what tells the layouts apart. A table wider than the screen scrolls only past the answers.
std::vector<std::size_t> page_order(const Table& table) {
  const auto rank = [&](std::size_t i) {
    const std::string& key = table.columns[i].key;
    if (i == 0 || key.starts_with("in_")) return kAnswers.begin();
    return std::find(kAnswers.begin(), kAnswers.end(), key) + 1;
  };
  std::vector<std::size_t> out(table.columns.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::stable_sort(out.begin(), out.end(), [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
  return out;
}

class PageText {
 public:
  explicit PageText(const Page& page) : page_(page) {
    for (const Plot& plot : page.plots) {
      if (has_data(plot)) plots_.push_back(&plot);
    }
    draws_ = page_has_charts() && !plots_.empty();
  }

  std::string run() {
    head();
    const Report& report = page_.report;
    for (const Line& line : report.summary) tagged("p", line.text, line.role);
    for (const std::string& warning : report.warnings) tagged("p", "Warning: " + warning, Role::kWarning);
    if (!page_has_charts() && !plots_.empty()) tagged("p", std::string(kNoCharts), Role::kWarning);
    // Of a table that fills the screen pictures say more.
    constexpr std::size_t kMany = 25;
    const bool long_table = report.plans.rows.size() > kMany;
    if (!long_table) main_table();
    if (draws_) {
      for (std::size_t i = 0; i < plots_.size(); ++i) figure(i);
    }
    if (long_table) main_table();
    for (const Section& section : report.sections) add(section);
    foot();
    return std::move(out_);
  }

 private:
  /// The class of the table behind a picture.
  static constexpr std::string_view kNumbers = "numbers";

  void tagged(std::string_view tag, const std::string& text, Role role) {
    if (role == Role::kCommand) {
      const std::string command = fmt::format("<pre tabindex=\"0\"><code>{}</code></pre>", markup_escaped(text));
      out_ += tag == "li" ? fmt::format("<li class=\"command\">{}</li>\n", command) : command + "\n";
      return;
    }
    out_ += fmt::format("<{0}{1}>{2}</{0}>\n", tag, class_of(role), html_of(with_fixed_units(text)));
  }

  void head() {
    std::string scripts = source_of(page_script());
    if (draws_) {
      for (const PageScript& library : chart_libraries()) scripts += " " + source_of(library);
    }
    out_ = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src {}; "
        "style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>{}</title>\n<style>\n{}</style>\n</head>\n<body>\n"
        "<main>\n<h1>{}</h1>\n",
        scripts, html_of(page_.report.title), page_style(), html_of(page_.report.title));
  }

  static std::string source_of(const PageScript& script) {
    return fmt::format("'sha256-{}'", base64_of_hex(script.sha256));
  }

  void main_table() {
    const Report& report = page_.report;
    if (!report.plans.rows.empty()) {
      out_ += "<h2>Results</h2>\n";
      if (!report.plans_heading.empty()) tagged("p", report.plans_heading, Role::kDim);
      table(report.plans, "Results", "ranked");
    }
    for (const std::string& note : report.notes) tagged("p", note, Role::kDim);
  }

  void add(const Section& section) {
    if (!section.title.empty()) tagged("h2", section.title, Role::kPlain);
    table(section.table, section.title.empty() ? page_.report.title : section.title, "");
    if (section.lines.empty()) return;
    out_ += "<ul>\n";
    for (const Line& line : section.lines) tagged("li", line.text, line.role);
    out_ += "</ul>\n";
  }

  /// Numbers carry their raw value, by which they are sorted, and cells their heading where a phone shows a row as a
  /// card.
  void table(const Table& table, const std::string& name, std::string_view cls) {
    if (table.rows.empty()) return;
    constexpr std::size_t kNarrow = 3;  // columns that fit a phone side by side
    const bool titled =
        std::any_of(table.columns.begin(), table.columns.end(), [](const Column& c) { return !c.title.empty(); });
    const bool cards = titled && cls != kNumbers && table.columns.size() > kNarrow;
    const std::string classes = fmt::format("{}{}{}", cls, cards && !cls.empty() ? " " : "", cards ? "cards" : "");
    out_ += fmt::format("<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"Table: {}\">\n<table{}>\n",
                        markup_escaped(name), classes.empty() ? "" : fmt::format(" class=\"{}\"", classes));
    const std::vector<std::size_t> order = page_order(table);
    out_ += titled ? "<thead><tr>" : "<tbody>\n";
    for (const std::size_t i : titled ? order : std::vector<std::size_t>{}) {
      const Column& column = table.columns[i];
      const bool number = is_number(column.format);
      // A column without a title is a bar or a mark: a cell, no heading.
      const std::string_view tag = column.title.empty() ? "td" : "th";
      out_ += fmt::format("<{0}{1}{2}>{3}</{0}>", tag, tag == "th" ? " scope=\"col\"" : "",
                          number ? " class=\"n\"" : "", html_of(column.title));
    }
    if (titled) out_ += "</tr></thead>\n<tbody>\n";
    for (const Row& row : table.rows) {
      out_ += fmt::format("<tr{}>", class_of(row.role));
      for (const std::size_t i : order) cell(row, i, table.columns[i], cards);
      out_ += "</tr>\n";
    }
    out_ += "</tbody>\n</table>\n</div>\n";
  }

  void cell(const Row& row, std::size_t i, const Column& column, bool card) {
    const Cell value = i < row.cells.size() ? row.cells[i] : Cell{};
    const double* number = std::get_if<double>(&value);
    const std::string text = text_of(value, column.format);
    constexpr std::size_t kLong = 18;
    const std::string_view cls = is_number(column.format) || text.empty() ? " class=\"n\""
                                 : text.size() > kLong                    ? " class=\"long\""
                                                                          : " class=\"short\"";
    out_ += fmt::format(
        "<td{}{}{}>{}</td>", cls, number == nullptr ? "" : fmt::format(" data-v=\"{}\"", raw_text_of(value)),
        card && !text.empty() ? fmt::format(" data-l=\"{}\"", markup_escaped(column.title)) : "", html_of(text));
  }

  static std::string title_of(const Plot& plot) {
    if (!plot.title.empty()) return plot.title;
    return plot.bars.empty() ? fmt::format("{} by {}", plot.y.title, plot.x.title) : plot.x.title;
  }

  void figure(std::size_t i) {
    const Plot& plot = *plots_[i];
    const std::string title = title_of(plot);
    out_ += fmt::format("<figure>\n<figcaption><h2>{}</h2></figcaption>\n<div class=\"chart\" id=\"chart-{}\"></div>\n",
                        html_of(title), i);
    const std::vector<std::string> key = chart_key(plot);
    if (!key.empty()) {
      out_ += "<ul class=\"key\">\n";
      for (const std::string& line : key) tagged("li", line, Role::kPlain);
      out_ += "</ul>\n";
    }
    const Table numbers = chart_table(plot);
    if (!numbers.rows.empty()) {
      out_ += "<details>\n<summary>The numbers</summary>\n";
      table(numbers, "numbers of " + title, kNumbers);
      out_ += "</details>\n";
    }
    out_ += "</figure>\n";
  }

  void foot() {
    out_ += "</main>\n<footer>\n";
    if (!page_.question.empty()) {
      out_ += fmt::format("<p>Ask again: <code>{}</code></p>\n", html_of(page_.question));
    }
    if (!page_.made_by.empty()) tagged("p", page_.made_by, Role::kDim);
    out_ += "</footer>\n";
    if (draws_) data_and_libraries();
    out_ += fmt::format("<script>{}</script>\n</body>\n</html>\n", text_of(page_script()));
  }

  void data_and_libraries() {
    Json data = {{"config", chart_config()}, {"charts", Json::array()}};
    for (const Plot* plot : plots_) data["charts"].push_back(chart_spec(*plot));
    std::string json = json_text(data, -1);
    json.pop_back();
    out_ += fmt::format("<script type=\"application/json\" id=\"charts\">{}</script>\n", script_safe(json));
    for (const PageScript& library : chart_libraries()) {
      out_ += fmt::format("<!-- {} -->\n<script>{}</script>\n", library.licence, text_of(library));
    }
  }

  const Page& page_;
  std::vector<const Plot*> plots_;
  bool draws_ = false;
  std::string out_;
};

}  // namespace

bool page_has_charts() { return !chart_libraries().empty(); }

std::string render_page(const Page& page) { return PageText(page).run(); }

}  // namespace scalecalc
