// Small text helpers: nearest names, display width, wrapping.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace scalecalc {

/// Damerau-Levenshtein distance (adjacent transpositions count one), ASCII case-insensitive.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Up to three candidates that `word` may be meant as: those that share its separator-insensitive form (llama370b finds
/// llama3-70b), else those that start with three or more characters of it and nothing else, shortest first (h100 finds
/// h100-sxm), else the nearest within max(2, length/3) edits that leave half of the word standing. Empty if nothing is
/// near.
std::vector<std::string> nearest(std::string_view word, std::span<const std::string> candidates);

/// Position of the word that is `text`, or the only one that is but for case and '-', '_', '.' and blanks.
std::optional<std::size_t> word_like(std::string_view text, std::span<const std::string_view> words);

/// "did you mean 'x'?" / "did you mean 'x' or 'y'?" / "" when `names` is empty.
std::string did_you_mean(const std::vector<std::string>& names);

/// Takes one code point off the front of a non-empty text; U+FFFD for a byte that is not UTF-8.
char32_t next_code_point(std::string_view& rest);
/// Position of the first byte that is not UTF-8, or npos.
std::size_t invalid_utf8_at(std::string_view text);
/// Characters (code points) of a text: what columns count.
std::size_t count_characters(std::string_view utf8);
/// The text in single quotes for a message, with its middle left out when it is long.
std::string in_quotes(std::string_view text);

/// Columns a UTF-8 text takes on a terminal (wide characters two, combining none).
std::size_t display_width(std::string_view utf8);

/// Breaks at spaces so that no line is wider than `width` (longer words stay whole). A number stays with the word
/// behind it, its unit. Lines after the first start with `indent` spaces.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent = 0);

/// The text with a no-break space behind each number, so that whoever breaks its lines leaves the number with its unit.
std::string with_fixed_units(std::string_view text);

/// For text and attributes of HTML and XML. Line breaks stay; other control characters, which XML 1.0 has not, are
/// blanks.
std::string markup_escaped(std::string_view text);

/// Whether `part` stands in `text`, whatever the case of ASCII letters.
bool contains_in_any_case(std::string_view text, std::string_view part);

/// ASCII letters in lower case.
std::string lower_case(std::string_view text);

/// "a, b and c".
std::string join_and(const std::vector<std::string>& items);
std::string join(const std::vector<std::string>& items, std::string_view separator);

}  // namespace scalecalc
