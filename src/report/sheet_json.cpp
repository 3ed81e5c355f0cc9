// A Sheet as JSON: the figures' keys, dots nesting, in the order they were given.
#include <algorithm>

#include "report/json_text.h"
#include "report/sheet.h"

namespace scalecalc {
namespace {

Json record_json(const Record& record);

Json cell_json(const Cell& cell, Format format) {
  if (const std::string* text = std::get_if<std::string>(&cell)) return *text;
  const double* number = std::get_if<double>(&cell);
  if (number == nullptr) return nullptr;
  if (format == Format::kFlag) return *number != 0;
  return whole(*number);
}

Json figure_json(const Figure& f) {
  if (!f.is_list) return cell_json(f.value, f.format);
  Json out = Json::array();
  for (const Record& record : f.records) out.push_back(record_json(record));
  for (const Cell& item : f.items) out.push_back(cell_json(item, f.format));
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

Json record_json(const Record& record) {
  Json out = Json::object();
  for (const Figure& f : record.figures) {
    if (!f.key.empty()) place(out, f.key, figure_json(f));
  }
  return out;
}

Json block_json(const Block& block) {
  if (!block.is_list) return record_json(block.records.front());
  Json out = Json::array();
  for (const Record& record : block.records) out.push_back(record_json(record));
  return out;
}

std::string schema_of(const Sheet& sheet) { return "scalecalc/" + sheet.command + "/1"; }

}  // namespace

std::string sheet_json(const Sheet& sheet, std::string_view tool_version, bool explain) {
  Json out = document_head(schema_of(sheet), tool_version);
  out["query"] = record_json(sheet.query);
  out["assumptions"] = assumptions_json(sheet.assumptions);
  for (const Block& block : sheet.blocks) {
    if (block.for_people) continue;
    if (block.key.empty()) {
      out.update(block_json(block));
    } else {
      out[block.key] = block_json(block);
    }
  }
  if (!sheet.notes.empty()) out["notes"] = sheet.notes;
  if (explain) out["explain"] = explain_json(sheet_explanation(sheet));
  return json_text(out, 2);
}

std::string sheet_jsonl(const Sheet& sheet, std::string_view tool_version) {
  const Block* block = record_block(sheet);
  if (block == nullptr) return "";
  std::string out;
  for (const Record& record : block->records) {
    Json line = {{"schema", schema_of(sheet)}, {"tool_version", tool_version}};
    line["query"] = record_json(sheet.query);
    line.update(record_json(record));
    out += json_text(line, -1);
  }
  return out;
}

}  // namespace scalecalc
