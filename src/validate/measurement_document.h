// What measurement files of training and of serving have in common: a list of rows, or a map with `rows`, the
// `models` and `sources` that rows share by name, and what is `common` to all rows.
#pragma once

#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "config/field_recorder.h"
#include "config/fields.h"
#include "spec/months.h"
#include "validate/measurement.h"

namespace scalecalc {

// The architecture as a row of measurements states it.

/// A `model_shape` in the keys of docs/accuracy.md. Keys it has no place for are kept by name.
ModelShape read_shape(const ConfigNode& node, Problems& problems);

/// The same in the keys of a Hugging Face configuration (num_hidden_layers, hidden_size ...), as sources of serving
/// figures quote them.
ModelShape read_hf_shape(const ConfigNode& node, Problems& problems);

/// What the rows of a document share; null where it has none.
struct SharedFacts {
  const ConfigNode* models = nullptr;
  const ConfigNode* sources = nullptr;
  const ConfigNode* common = nullptr;  ///< keys of every row that does not say otherwise

  /// The row's `source`, in full if the document lists them. A problem if it lists others only.
  std::string source_of(Fields& row, Problems& problems) const {
    std::string source = row.text("source");
    if (sources == nullptr) return source;
    if (const ConfigNode* text = sources->find(source)) return text->text;
    problems.add(row.span(), fmt::format("source {} is not among the file's sources", in_quotes(source)));
    return source;
  }
  /// All but the stack and the shape.
  void read(Fields& row, MeasuredFacts& out, Problems& problems) const {
    out.where = row.span();
    out.id = row.text("id");
    out.source = source_of(row, problems);
    out.reference = row.optional_text("source_ref").value_or("");
    out.group = row.optional_text("group").value_or(out.source);
    out.date = row.optional_text("date").value_or("");
    if (!out.date.empty() && month_of(out.date).empty()) {
      problems.add(
          row.node("date")->span,
          fmt::format("'date' is {}; it must be a month such as 2024-05, a day or a year", in_quotes(out.date)));
    }
    out.model = row.text("model");
    out.chip = row.text("chip");
    out.chips = row.count("chips", {1, 16'777'216});
    const std::vector<std::string> flags = row.text_list("flag");
    const std::vector<std::string> doubts = row.text_list("doubt");
    out.doubt = join(flags.empty() ? doubts : flags, "; ");
  }
  /// The row's `model_shape`, or the document's of that model; null if neither is there.
  const ConfigNode* shape_of(Fields& row, const std::string& model) const {
    const ConfigNode* shape = row.node("model_shape");
    return shape == nullptr && models != nullptr ? models->find(model) : shape;
  }
  /// What read_shape says of it. A shape of the document is read once where nothing is wrong: problems are told by each
  /// row that has them.
  ModelShape shape(const ConfigNode& node, const std::string& model, Problems& problems) const {
    if (models == nullptr || models->find(model) != &node || !problems.empty()) return read_shape(node, problems);
    const auto [at, added] = shapes.try_emplace(model);
    if (added) at->second = read_shape(node, problems);
    return at->second;
  }

  mutable std::map<std::string, ModelShape, std::less<>> shapes;  ///< of the document's models, as rows ask
};

/// The row with what it leaves to `common`, made in `room` where it leaves anything. To who listens for fields rows are
/// maps of anything: no row needs what it may leave to `common`.
inline const ConfigNode& with_common(const ConfigNode& row, const ConfigNode* common, ConfigNode& room) {
  if (common == nullptr && FieldRecorder::current() == nullptr) return row;
  room = row;
  if (common == nullptr || row.kind != ConfigNode::Kind::kMap) return room;
  for (const ConfigNode::Entry& entry : common->entries) {
    if (row.find(entry.key) == nullptr) room.entries.push_back(entry);
  }
  return room;
}

/// The document's list of rows; null if it has none.
inline const ConfigNode* rows_of(const ConfigNode& document) {
  return document.kind == ConfigNode::Kind::kSequence ? &document : document.find("rows");
}

/// Every row by a `RowReader(node, shared, problems).run()`. UserError with every problem found.
template <class RowReader>
auto read_rows(const ConfigNode& document) {
  Problems problems;
  SharedFacts shared;
  const ConfigNode* rows = &document;
  if (document.kind != ConfigNode::Kind::kSequence) {
    Fields fields(document, "measurements", problems);
    fields.schema("scalecalc-measurements/1");
    fields.optional_text("title");
    fields.optional_text("note");
    fields.flag("held_out", false);
    shared = {fields.node("models"), fields.node("sources"), fields.node("common")};
    rows = &fields.required_node("rows");
    fields.finish();
  }
  if (problems.empty() && rows->kind != ConfigNode::Kind::kSequence) {
    problems.add(rows->span, "measurements must be a list of rows");
  }
  std::vector<decltype(RowReader(document, shared, problems).run())> out;
  std::set<std::string> ids;
  for (const ConfigNode& row : rows->items) {
    ConfigNode room;
    const ConfigNode& item = with_common(row, shared.common, room);
    out.push_back(RowReader(item, shared, problems).run());
    if (!ids.insert(out.back().id).second) {
      problems.add(item.span, fmt::format("the id {} is used twice", in_quotes(out.back().id)));
    }
  }
  problems.throw_if_any();
  return out;
}

}  // namespace scalecalc
