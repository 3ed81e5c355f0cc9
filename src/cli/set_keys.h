// --keys of hw and model: everything that --set can change in a file.
#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "cli/flag.h"
#include "config/fields.h"
#include "config/node.h"
#include "report/output.h"

namespace scalecalc::cli {

constexpr Flag keys_flag() {
  return toggle("--keys", "list the keys of --set with their values here and what they may be").of_output();
}

/// Reads a document, adding the fields it asks for; may throw UserError.
using DocumentReader = std::function<void(const ConfigNode&, std::vector<AskedField>&)>;

/// Every key of a document, in the order in which its reader asks for them: what is there, and of blocks that are not
/// what could be. `scope` is what keys start with: "hw".
Output set_keys_output(std::string_view scope, ConfigNode document, const DocumentReader& read);

}  // namespace scalecalc::cli
