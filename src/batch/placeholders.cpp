#include "batch/placeholders.h"

namespace scalecalc {

std::vector<TextPart> split_placeholders(std::string_view text) {
  std::vector<TextPart> out;
  std::string plain;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if ((c == '{' || c == '}') && at + 1 < text.size() && text[at + 1] == c) {
      plain += c;
      ++at;
      continue;
    }
    const std::size_t end = c == '{' ? text.find('}', at) : std::string_view::npos;
    if (end == std::string_view::npos) {
      plain += c;
      continue;
    }
    if (!plain.empty()) out.push_back({std::move(plain), false});
    plain.clear();
    out.push_back({std::string(text.substr(at + 1, end - at - 1)), true});
    at = end;
  }
  if (!plain.empty()) out.push_back({std::move(plain), false});
  return out;
}

}  // namespace scalecalc
