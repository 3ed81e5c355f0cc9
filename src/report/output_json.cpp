// Writes an Output as JSON: the figures' keys, dots nesting, in the order they were given.
#include <algorithm>
#include <cmath>
#include <set>

#include "report/json_text.h"
#include "report/output.h"

namespace scalecalc {
namespace {

Json record_json(const Record& record, bool keep_points);

Json cell_json(const Cell& cell, Format format, bool keep_points) {
  if (const std::string* text = std::get_if<std::string>(&cell)) return *text;
  const double* number = std::get_if<double>(&cell);
  if (number == nullptr) return nullptr;
  if (format == Format::kFlag) return *number != 0;
  const bool counted = format == Format::kInteger || format == Format::kCount;
  return keep_points && !counted ? Json(finite(*number)) : whole(*number);
}

Json figure_json(const Figure& f, bool keep_points) {
  if (f.is_object) return f.records.empty() ? Json(nullptr) : record_json(f.records.front(), keep_points);
  if (!f.is_list) return cell_json(f.value, f.format, keep_points);
  Json out = Json::array();
  for (const Record& record : f.records) out.push_back(record_json(record, keep_points));
  for (const Cell& item : f.items) out.push_back(cell_json(item, f.format, keep_points));
  return out;
}

void place(Json& object, std::string_view key, Json value) {
  const std::size_t dot = key.find('.');
  Json& member = object[std::string(key.substr(0, dot))];
  if (dot == std::string_view::npos) {
    member = std::move(value);
  } else {
    place(member, key.substr(dot + 1), std::move(value));
  }
}

Json record_json(const Record& record, bool keep_points) {
  Json out = Json::object();
  for (const Figure& f : record.figures) {
    const bool read = f.readers == Readers::kAll || f.readers == Readers::kJson;
    if (read && !f.key.empty()) place(out, f.key, figure_json(f, keep_points));
  }
  return out;
}

Json block_json(const Block& block, bool keep_points) {
  if (!block.is_list) return block.records.empty() ? Json(nullptr) : record_json(block.records.front(), keep_points);
  Json out = Json::array();
  for (const Record& record : block.records) out.push_back(record_json(record, keep_points));
  return out;
}

/// As keys end; nothing of a plain number.
Json unit_of(Format format) {
  switch (format) {
    case Format::kBytes: return "bytes";
    case Format::kSeconds: return "s";
    case Format::kUsd: return "usd";
    case Format::kFlops: return "flops";
    case Format::kFlopsPerSecond: return "flops_per_s";
    case Format::kBytesPerSecond: return "bytes_per_s";
    case Format::kWatts: return "w";
    case Format::kHertz: return "hz";
    default: return nullptr;
  }
}

Json axis_json(const PlotAxis& axis) {
  return {{"title", axis.title}, {"unit", unit_of(axis.format)}, {"log", axis.log}};
}

/// What a writer of pictures would be given.
Json picture_json(const Plot& plot) {
  Json series = Json::array(), marks = Json::array(), bars = Json::array();
  for (const PlotSeries& s : plot.series) {
    Json x = Json::array(), y = Json::array();
    for (const PlotPoint& p : s.points) {
      if (!std::isfinite(p.x) || !std::isfinite(p.y)) continue;  // no writer draws it
      x.push_back(whole(p.x));
      y.push_back(whole(p.y));
    }
    series.push_back({{"name", s.name}, {"x", std::move(x)}, {"y", std::move(y)}});
  }
  for (const PlotMark& m : plot.marks) {
    marks.push_back({{"x", m.kind == PlotMarkKind::kAtY ? Json(nullptr) : whole(m.at.x)},
                     {"y", m.kind == PlotMarkKind::kAtX ? Json(nullptr) : whole(m.at.y)},
                     {"text", m.text}});
  }
  for (const PlotBar& b : plot.bars) {
    Json spans = Json::array();
    for (const PlotSpan& s : b.spans) {
      const Json kind = plot.bar_kinds.empty() ? Json(nullptr) : Json(plot.bar_kinds.at(s.kind));
      spans.push_back({{"from", s.from}, {"to", s.to}, {"kind", kind}});
    }
    bars.push_back({{"label", b.label}, {"spans", std::move(spans)}});
  }
  return {{"title", plot.title},
          {"x", axis_json(plot.x)},
          {"y", plot.bars.empty() ? axis_json(plot.y) : Json(nullptr)},
          {"series", std::move(series)},
          {"marks", std::move(marks)},
          {"bars", std::move(bars)}};
}

std::string schema_of(const std::string& document) { return "scalecalc/" + document + "/1"; }

}  // namespace

std::string output_json(const Output& output, std::string_view tool_version, bool explain) {
  Json out = document_head(schema_of(output.command), tool_version);
  if (!output.complete) out["partial"] = true;
  out["query"] = record_json(output.query, output.keeps_points);
  if (!output.question.empty()) out["question"] = output.question;
  for (const ReplacedFile& file : output.read_from) {
    out["read_from"].push_back({{"kind", file.kind}, {"name", file.name}, {"file", file.file}});
  }
  out["assumptions"] = assumptions_json(output.assumptions);
  for (const Block& block : output.blocks) {
    if (block.for_people) continue;
    if (block.key.empty()) {
      out.update(block_json(block, output.keeps_points));
    } else {
      out[block.key] = block_json(block, output.keeps_points);
    }
  }
  if (!output.notes.empty()) out["notes"] = output.notes;
  for (const Plot& plot : output.plots) {
    if (has_data(plot)) out["pictures"].push_back(picture_json(plot));
  }
  if (output.elapsed_s) out["search"]["elapsed_s"] = finite(*output.elapsed_s);
  if (explain) out["explain"] = explain_json(output_explanation(output));
  return json_text(out, 2);
}

std::string output_jsonl(const Output& output, std::string_view tool_version) {
  const Block* block = record_block(output);
  if (block == nullptr) return "";
  std::string out;
  for (const Record& record : block->records) {
    Json line = {{"schema", schema_of(output.line_schema.empty() ? output.command : output.line_schema)},
                 {"tool_version", tool_version}};
    if (output.line_head) {
      line.update(record_json(*output.line_head, output.keeps_points));
    } else {
      line["query"] = record_json(output.query, output.keeps_points);
    }
    line.update(record_json(record, output.keeps_points));
    if (!output.question.empty()) line["question"] = output.question;
    if (!output.complete) line["partial"] = true;
    out += json_text(line, -1);
  }
  return out;
}

namespace {

/// What CSV alone has of a record says under its own name what JSON has in an object.
std::set<std::string> of_csv_alone(const Record& record) {
  std::set<std::string> out;
  for (const Figure& f : record.figures) {
    if (f.readers == Readers::kCsv) out.insert(column_of(f));
  }
  return out;
}

/// `in_csv`: the objects around it are opened in CSV. Names of `said` are left to CSV's own figures.
void flatten(const Record& record, const std::string& around, bool in_csv, bool keep_points,
             const std::set<std::string>& said, Json& out) {
  for (const Figure& f : record.figures) {
    if (f.readers == Readers::kPeople || (f.key.empty() && f.column.empty())) continue;
    const bool opened = in_csv && f.readers != Readers::kJson;
    if (f.is_object) {
      if (f.records.empty()) continue;
      std::set<std::string> inside = said;
      if (opened) inside.merge(of_csv_alone(f.records.front()));
      const bool named = !opened && f.key != "layout";
      flatten(f.records.front(), named ? around + column_of(f) + '_' : around, opened, keep_points, inside, out);
      continue;
    }
    if (f.readers != Readers::kCsv && said.contains(column_of(f))) continue;
    std::string name = f.column.empty() && !opened ? around + column_of(f) : column_of(f);
    if (std::find(kRowMembers.begin(), kRowMembers.end(), name) != kRowMembers.end()) name.insert(0, "out_");
    out[name] = figure_json(f, keep_points);
  }
}

}  // namespace

std::string output_rows(const Output& output, bool all) {
  const bool one = !all && output.answer;
  const Block* block = record_block(output);
  if (block == nullptr ? !one : block->records.empty()) return "";
  Json head = Json::object();
  if (output.line_head) flatten(*output.line_head, "", true, output.keeps_points, {}, head);
  if (!output.complete) head["partial"] = true;
  std::string out;
  const auto add = [&](const Record& record) {
    Json line = head;
    flatten(record, "", true, output.keeps_points, of_csv_alone(record), line);
    if (output.elapsed_s) line["elapsed_s"] = finite(*output.elapsed_s);
    if (!output.question.empty()) line["question"] = output.question;
    out += json_text(line, -1);
  };
  if (!all) {
    add(one ? *output.answer : block->records.front());
  } else {
    for (const Record& record : block->records) add(record);
  }
  return out;
}

}  // namespace scalecalc
