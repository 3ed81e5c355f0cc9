// Words the refusal of an input beyond a limit, and counts the levels of a JSON text.
#include "base/limits.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"

namespace scalecalc::limits {

std::string Expansion::message() const {
  const std::uint64_t most = limit_.free + limit_.times * read_;
  const std::string all = format_quantity(static_cast<double>(most), UnitKind::kBytes);
  if (limit_.times == 0) return fmt::format("expands to more than {}", all);
  return fmt::format("expands to more than {}, from {}", all,
                     format_quantity(static_cast<double>(read_), UnitKind::kBytes));
}

std::string too_deep(std::size_t most) { return fmt::format("nested more than {} levels deep", most); }

std::string too_many(std::uint64_t most, std::string_view what) {
  return fmt::format("more than {} {}", group_thousands(static_cast<long long>(most)), what);
}

std::string too_large(std::uint64_t most) { return fmt::format("larger than {} MiB", most / kMiB); }

bool json_exceeds(std::string_view text, std::size_t levels, std::size_t values) {
  std::size_t depth = 0, count = 1;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"') {
      while (++i < text.size() && text[i] != '"') i += text[i] == '\\' ? 1U : 0U;
    } else if (c == '[' || c == '{') {
      if (++depth > levels) return true;
    } else if (c == ']' || c == '}') {
      depth -= depth > 0 ? 1U : 0U;
    } else if (c == ',' && ++count > values) {
      return true;
    }
  }
  return false;
}

}  // namespace scalecalc::limits
