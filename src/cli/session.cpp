#include "cli/session.h"

#include <algorithm>

#include "cli/flag_reader.h"

namespace scalecalc::cli {

std::string_view tool_version() { return SCALECALC_VERSION; }

Session read_session(const Arguments& arguments, const Environment& env) {
  Session out;
  FlagReader reader(arguments, common_flags());
  if (const auto word = reader.word("--color")) out.color = static_cast<ColorMode>(*word);
  if (arguments.has("--verbose")) out.verbosity = Verbosity::kVerbose;
  if (arguments.has("--quiet")) out.verbosity = Verbosity::kQuiet;
  if (arguments.has("--quiet") && arguments.has("--verbose")) {
    reader.problem("--quiet and --verbose contradict each other", "give one of them");
  }
  reader.finish();
  out.remembered = env.remembered;
  out.config_directories = arguments.values("--config-dir");
  const std::string path = env.get("SCALECALC_CONFIG_PATH").value_or("");
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find(':', at), path.size());
    if (end > at) out.config_directories.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

}  // namespace scalecalc::cli
