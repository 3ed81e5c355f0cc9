// A record of a command's JSON Lines as flat members: {"layout":{"tp":8}} is "layout_tp":8. Read as a stream of events,
// because a study flattens a million of them, and numbers keep the digits they came with.
#pragma once

#include <string>
#include <string_view>

#include "report/json_text.h"

namespace scalecalc {

/// A reader that takes everything and does nothing.
struct SilentSax : nlohmann::json_sax<Json> {
  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_object(std::size_t) override { return true; }
  bool key(string_t&) override { return true; }
  bool end_object() override { return true; }
  bool start_array(std::size_t) override { return true; }
  bool end_array() override { return true; }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }
};

/// A text in quotes; bytes that are not UTF-8 are replaced.
std::string json_string(std::string_view text);

/// Appends ,"name":value for every member but those that rows have already (schema, tool_version, command, query).
/// Lists stay lists. A name that a row uses itself gets "out_" before it. InternalError if `record` is no JSON object.
void write_flat_record(std::string_view record, std::string& out);

}  // namespace scalecalc
