// Texts with {names} of axes in them: "{batch}x8192x28672".
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace scalecalc {

/// One part of such a text: as written, or the name of an axis.
struct TextPart {
  std::string text;
  bool is_name = false;
};

/// "{{" and "}}" stand for braces. A brace that is never closed is taken as written.
std::vector<TextPart> split_placeholders(std::string_view text);

}  // namespace scalecalc
