// Finds out whether the output is a terminal, how wide it is, and whether it shows color and UTF-8.
#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <variant>

#include "base/units.h"

namespace scalecalc::cli {
namespace {

bool is_set(const Environment& env, const char* name) { return !env.get(name).value_or("").empty(); }

/// As setlocale would choose it, without calling setlocale: numbers must not depend on the locale.
bool locale_is_utf8(const Environment& env) {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const std::string value = env.get(name).value_or("");
    if (value.empty()) continue;
    for (const char* encoding : {"UTF-8", "utf-8", "UTF8", "utf8"}) {
      if (value.find(encoding) != std::string::npos) return true;
    }
    return false;
  }
  return false;
}

std::size_t columns_variable(const Environment& env) {
  constexpr double kWidest = 10000;
  const auto parsed = parse_quantity(env.get("COLUMNS").value_or(""), UnitKind::kCount);
  const double* columns = std::get_if<double>(&parsed);
  return columns != nullptr && *columns <= kWidest ? static_cast<std::size_t>(*columns) : 0;
}

}  // namespace

bool wants_colour(const Environment& env, ColorMode mode, bool is_tty) {
  if (mode != ColorMode::kAuto) return mode == ColorMode::kAlways;
  if (is_set(env, "NO_COLOR")) return false;
  if (is_set(env, "FORCE_COLOR") || is_set(env, "CLICOLOR_FORCE")) return true;
  return is_tty && env.get("TERM").value_or("") != "dumb";
}

TextOptions text_options(const Environment& env, ColorMode mode) {
  constexpr std::size_t kUsualWidth = 80;
  TextOptions out;
  out.colour = wants_colour(env, mode, env.out_is_tty);
  out.width = columns_variable(env);
  if (!env.out_is_tty) return out;
  out.unicode = env.utf8;
  if (out.width == 0) out.width = env.width > 0 ? env.width : kUsualWidth;
  return out;
}

Environment process_environment(std::ostream& out, std::ostream& err) {
  Environment env{.out = out, .err = err};
  env.variable = [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
  env.out_is_tty = ::isatty(STDOUT_FILENO) == 1;
  env.err_is_tty = ::isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (env.out_is_tty && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) env.width = size.ws_col;
  env.utf8 = locale_is_utf8(env);
  return env;
}

}  // namespace scalecalc::cli
