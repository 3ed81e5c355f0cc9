// Whether a document has the shape that its published schema gives it: the words of JSON Schema that docs/schema uses.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace scalecalc::relations {

/// The first place that is not as the schema says, "" if there is none. The schema is that of the document's own
/// "schema" member, "scalecalc/NAME/1".
std::string misshapen(const nlohmann::json& document);

}  // namespace scalecalc::relations
