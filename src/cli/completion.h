// What a shell completes: from the table of commands, their flags and the catalog's names.
#pragma once

#include <string>
#include <vector>

#include "config/catalog.h"

namespace scalecalc::cli {

/// The script of the shell that the words name: bash, zsh or fish. It asks `scalecalc complete` for every word, so that
/// it never grows old. UserError for another shell.
std::string completion_script(const std::vector<std::string>& words);

/// What the last of the words, those behind `scalecalc`, may become: a line each. Empty where a file is wanted.
std::string completions(const std::vector<std::string>& words, const Catalog& catalog);

}  // namespace scalecalc::cli
