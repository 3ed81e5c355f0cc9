// Two texts line by line, as `diff -u` shows them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace scalecalc::test {

/// "" if the texts are equal. Otherwise hunks "@@ -first,lines +first,lines @@" with `context` equal lines around each
/// change, "-" what only `expected` has, "+" what only `found` has; a last line without line feed is told apart from
/// one with. The fewest lines change, unless the parts that differ are so long (4,000 lines against 4,000) that they
/// are shown as one replaced by the other. After `most_lines` lines the rest is counted, not shown.
std::string unified_diff(std::string_view expected, std::string_view found, std::size_t context = 3,
                         std::size_t most_lines = 80);

}  // namespace scalecalc::test
