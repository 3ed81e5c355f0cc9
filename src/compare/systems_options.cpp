// Reads the systems of a comparison and their prices from --hw, --price, --cloud and related flags.
#include "compare/systems_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/shared_flags.h"

namespace scalecalc::cli {
namespace {

constexpr std::string_view kSystemForms = "NAME, NAME:1024, NAME:2x4096, NAME@GCP or NAME@GCP/spot";

/// "1024" or "2x4096" behind the name.
void read_system_size(FlagReader& reader, const std::string& text, SystemAsked& out) {
  const std::string name = fmt::format("--hw {}: chips", out.hardware);
  const std::size_t times = text.find('x');
  if (times != std::string::npos) {
    out.slices =
        reader.count_of(fmt::format("--hw {}: slices", out.hardware), text.substr(0, times), kChipRange).value_or(1);
  }
  const auto each = reader.count_of(name, times == std::string::npos ? text : text.substr(times + 1), kChipRange);
  if (!each) return;
  if (*each > kMostChips / out.slices) {
    return reader.problem(
        fmt::format("--hw {}:{} has more than {} chips", out.hardware, text, group_thousands(kMostChips)));
  }
  out.chips = *each * out.slices;
}

std::optional<SystemAsked> system_of(FlagReader& reader, const std::string& text) {
  SystemAsked out{.hardware = text};
  const std::size_t at = text.rfind('@');
  if (at != std::string::npos) {
    const std::string price = text.substr(at + 1);
    const std::size_t slash = price.find('/');
    out.hardware = text.substr(0, at);
    out.cloud = price.substr(0, slash);
    if (slash != std::string::npos) out.kind = price.substr(slash + 1);
    if (out.cloud.empty() || (slash != std::string::npos && out.kind.empty())) {
      reader.problem(fmt::format("--hw: {} names no cloud or kind behind @ and /", in_quotes(text)),
                     std::string(kSystemForms));
      return std::nullopt;
    }
  }
  const std::size_t colon = out.hardware.rfind(':');
  std::string size;
  if (colon != std::string::npos) {
    size = out.hardware.substr(colon + 1);
    out.hardware.erase(colon);
  }
  if (out.hardware.empty()) {
    reader.problem(fmt::format("--hw: {} names no system", in_quotes(text)), std::string(kSystemForms));
    return std::nullopt;
  }
  if (colon != std::string::npos) read_system_size(reader, size, out);
  return out;
}

void read_system_price(FlagReader& reader, const std::string& text, std::vector<SystemAsked>& systems) {
  const std::size_t equals = text.rfind('=');
  const std::string name = equals == std::string::npos ? "" : text.substr(0, equals);
  const auto parsed =
      parse_quantity(equals == std::string::npos ? text : text.substr(equals + 1), UnitKind::kUsdPerHour, true);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    return reader.problem("--price: " + error->message, error->hint);
  }
  const double price = std::get<double>(parsed);
  if (price <= 0) {
    return reader.problem(fmt::format("--price {} is not above zero", in_quotes(text)),
                          std::string(accepted_forms(UnitKind::kUsdPerHour)));
  }
  bool known = name.empty();
  std::vector<std::string> names;
  for (SystemAsked& system : systems) {
    names.push_back(system.hardware);
    if (!name.empty() && system.hardware != name) continue;
    known = true;
    if (!name.empty() || !system.price) system.price = price;
  }
  if (known || systems.empty()) return;
  std::string hint = did_you_mean(nearest(name, names));
  if (!hint.empty()) hint += ' ';
  reader.problem(fmt::format("--price names {}, which --hw does not", in_quotes(name)),
                 fmt::format("{}systems: {}", hint, join(names, ", ")));
}

}  // namespace

std::vector<SystemAsked> compared_systems(FlagReader& reader, const Arguments& arguments) {
  std::vector<SystemAsked> out;
  const std::string text = reader.text("--hw");
  if (text.empty()) return out;
  for (const std::string& item : comma_parts(text)) {
    if (auto system = system_of(reader, item)) out.push_back(std::move(*system));
  }
  for (const std::string& flag : arguments.values("--price")) {
    for (const std::string& item : comma_parts(flag)) read_system_price(reader, item, out);
  }
  return out;
}

PriceFilter price_filter(FlagReader& reader, const Arguments& arguments) {
  PriceFilter out;
  if (const auto clouds = arguments.value("--cloud")) out.clouds = comma_parts(*clouds);
  if (const auto kinds = arguments.value("--price-kind")) out.kinds = comma_parts(*kinds);
  if (const auto date = arguments.value("--price-date")) {
    out.date = months_of(*date);
    out.date_text = *date;
    if (!out.date) {
      reader.problem(fmt::format("--price-date: {} is no time", in_quotes(*date)),
                     "a year, a month, a quarter or years: 2025, 2025-06, 2024-Q4, 2024-2025");
    }
  }
  return out;
}

}  // namespace scalecalc::cli
