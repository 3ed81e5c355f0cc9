// A flag's list of NAME=VALUE, as of axes and dimensions.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/flag_reader.h"

namespace scalecalc::cli {

inline bool is_axis_name(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
  return !text.empty() && letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return letter(c) || (c >= '0' && c <= '9'); });
}

/// NAME=VALUE,...
template <class Use>
void each_pair(FlagReader& reader, const Flag& flag, std::string_view text, Use&& use) {
  for (std::string item : comma_parts(text)) {
    item.erase(0, std::min(item.find_first_not_of(' '), item.size()));
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == item.size()) {
      reader.problem(fmt::format("{}: {} is not NAME=SIZE", flag.name, in_quotes(item)),
                     fmt::format("for example {} {}", flag.name, flag.example));
      continue;
    }
    const std::string name = item.substr(0, equals);
    if (!is_axis_name(name)) {
      reader.problem(fmt::format("{}: {} is no name", flag.name, in_quotes(name)),
                     "letters and digits, a letter first");
      continue;
    }
    use(name, std::string_view(item).substr(equals + 1));
  }
}

}  // namespace scalecalc::cli
