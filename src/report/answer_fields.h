// The names that a row of a command's answer and the sections of its text may have, from the schemas of its documents
// (docs/schema): what --fail-if, --columns and --only are checked against before there is an answer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scalecalc {

/// Every member of the command's documents by its own name and with those of the objects around it before it; more than
/// any one row has. "matmul_flops_per_s_*" stands for members that no schema names. Sorted, each once. Empty for what
/// is no command.
std::vector<std::string> answer_fields(std::string_view command);

/// Of the text of its answers; more than any one answer has. "why-not-*" stands for names that depend on the question.
/// Sorted, each once; empty for commands whose schemas list none.
std::vector<std::string> answer_sections(std::string_view command);

}  // namespace scalecalc
