// The frameworks whose launch files the built-in stack files describe, worked out when the program is built: help names
// them, and reading every stack file for that would take longer than most questions.
#pragma once

#include <span>
#include <string_view>

namespace scalecalc {

struct EmbeddedLaunch {
  std::string_view name;  ///< "megatron"
  bool serves;
  std::size_t file;  ///< of embedded_catalog()
};
/// In the order of their priorities.
std::span<const EmbeddedLaunch> embedded_launches();

}  // namespace scalecalc
