#include "report/render.h"

namespace scalecalc {

std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + '"';
}

std::string render_csv(const Report& report) {
  const Table& table = report.records;
  std::string out;
  for (std::size_t i = 0; i < table.columns.size(); ++i) out += (i > 0 ? "," : "") + csv_field(table.columns[i].key);
  out += '\n';
  for (const Row& row : table.rows) {
    for (std::size_t i = 0; i < row.cells.size(); ++i) out += (i > 0 ? "," : "") + csv_field(raw_text_of(row.cells[i]));
    out += '\n';
  }
  return out;
}

}  // namespace scalecalc
