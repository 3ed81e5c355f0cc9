#include "serve/serve_layout.h"

#include <fmt/format.h>

#include <utility>

namespace scalecalc {

std::string describe(const ServeLayout& layout) {
  std::string out;
  const std::array<std::pair<const char*, std::int64_t>, 8> degrees{{{"tp", layout.tp},
                                                                     {"cp", layout.cp},
                                                                     {"attention dp", layout.attention_dp},
                                                                     {"ep", layout.ep},
                                                                     {"etp", layout.etp},
                                                                     {"pp", layout.pp},
                                                                     {"dp", layout.dp}}};
  for (const auto& [name, degree] : degrees) {
    if (name == nullptr || degree == 1) continue;
    const bool implied = std::string_view(name) == "etp" && layout.ep == 1 && layout.etp == layout.group();
    if (!implied) out += fmt::format("{}{} {}", out.empty() ? "" : ", ", name, degree);
  }
  if (layout.scheme == ServeScheme::kStationary2d)
    out += fmt::format(", 2d {} x {}", layout.tp_x, layout.tp / layout.tp_x);
  if (layout.scheme == ServeScheme::kGathered) out += ", weights gathered";
  return out.empty() ? "one chip" : out;
}

}  // namespace scalecalc
