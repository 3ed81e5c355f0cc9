// A flag's list: "h200,tpu-v6e".
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace scalecalc::cli {

/// What stands between the separators, empty parts too: "a,,b" is three.
inline std::vector<std::string> parts_between(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

inline std::vector<std::string> comma_parts(std::string_view text) { return parts_between(text, ','); }

}  // namespace scalecalc::cli
