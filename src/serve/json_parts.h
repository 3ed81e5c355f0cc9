// What stands directly in a JSON map or list, without a tree of all that is below it: a trace has millions of values,
// of which a few are asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace scalecalc {

struct JsonPart {
  std::string_view key;  ///< of a map, as written between its quotes
  std::size_t key_at = 0;
  std::size_t begin = 0, end = 0;  ///< of the value
};

struct JsonParts {
  bool is_map = false;
  std::vector<JsonPart> parts;
  std::size_t end = 0;  ///< one past the closing bracket

  const JsonPart* find(std::string_view key) const;
};

/// Of the map or list that opens at `begin`; nothing if it is no whole one. Values are taken by their brackets and
/// quotes, not checked.
std::optional<JsonParts> json_parts(std::string_view text, std::size_t begin);

/// One past the blanks at `at`.
std::size_t skip_blanks(std::string_view text, std::size_t at);

/// Characters (code points) of a string between its quotes.
std::int64_t json_characters(std::string_view written);

}  // namespace scalecalc
