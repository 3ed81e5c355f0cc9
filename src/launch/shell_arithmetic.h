// $((...)) of a script, as bash computes it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace scalecalc {

struct ShellNumber {
  std::optional<std::int64_t> value;  ///< nothing for what is not read: names, assignments, "++"
  std::string problem;                ///< why bash would end the script here, or `too_deep`
  bool too_deep = false;
};

/// The value of an expression of whole numbers: 64 bits that wrap around, all of bash's operators but assignments.
ShellNumber shell_number(std::string_view text);

}  // namespace scalecalc
