// What every JSON document of ours has in common.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/explained.h"

namespace scalecalc {

using Json = nlohmann::ordered_json;

/// InternalError if not finite: nlohmann would write null for NaN and infinity without a word.
double finite(double value);
/// A whole number without ".0" where a double holds it exactly.
Json whole(double value);
/// {"schema": "scalecalc/<command>/<version>", "tool": {...}}, first in every document.
Json document_head(std::string_view schema, std::string_view tool_version);
Json assumptions_json(const std::vector<Assumption>& assumptions);
Json explain_json(const std::vector<ExplainSection>& sections);
/// Text and a newline; `indent` -1 for one line. Bytes that are not UTF-8 can come in by file names on the command
/// line; they are replaced, not fatal.
std::string json_text(const Json& json, int indent);

/// docs/schema/error.schema.json.
std::string error_json(int exit_code, std::span<const Diagnostic> diagnostics);

}  // namespace scalecalc
