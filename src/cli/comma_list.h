// A flag's list: "h200,tpu-v6e".
#pragma once

#include <algorithm>
#include <string>
#include <vector>

namespace scalecalc::cli {

/// What stands between the commas, empty parts too: "a,,b" is three.
inline std::vector<std::string> comma_parts(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    out.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace scalecalc::cli
