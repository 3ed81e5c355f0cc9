// Reads --tenant, one of several users of a service with lengths and limits of its own.
#include "serve/tenant_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/text.h"
#include "cli/comma_list.h"

namespace scalecalc::cli {
namespace {

constexpr std::array<std::string_view, 6> kTenantKeys{"share",    "prompt",   "generate",
                                                      "slo_ttft", "slo_tpot", "slo_request"};

struct TenantItem {
  std::string key, value;
};

/// A part without "=" goes on with the value before it: lengths with shares.
std::vector<TenantItem> tenant_items(const std::string& text) {
  std::vector<TenantItem> out;
  for (const std::string& part : comma_parts(text)) {
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos && !out.empty()) {
      out.back().value += "," + part;
    } else {
      const std::size_t end = std::min(equals, part.size());
      out.push_back({part.substr(0, end), part.substr(std::min(end + 1, part.size()))});
    }
  }
  return out;
}

void read_tenant_lengths(FlagReader& reader, const std::string& name, const std::string& value,
                         std::optional<Lengths>& out) {
  const auto parsed = parse_lengths(value);
  if (const Lengths* lengths = std::get_if<Lengths>(&parsed)) {
    out = *lengths;
  } else {
    const UnitError& error = std::get<UnitError>(parsed);
    reader.problem(fmt::format("{}: {}", name, error.message), error.hint);
  }
}

void read_tenant_item(FlagReader& reader, std::size_t key, const std::string& name, const std::string& value,
                      Tenant& tenant) {
  if (key == 1 || key == 2) return read_tenant_lengths(reader, name, value, key == 1 ? tenant.prompt : tenant.generate);
  const auto number = reader.quantity_of(name, value, key == 0 ? UnitKind::kNumber : UnitKind::kSeconds);
  if (!number) return;
  if (*number <= 0) return reader.problem(fmt::format("{} {} is not above zero", name, value), "");
  LatencyLimits& limits = tenant.limits;
  switch (key) {
    case 0: tenant.share = *number; break;
    case 3: limits.ttft_s = *number; break;
    case 4: limits.tpot_s = *number; break;
    default: limits.latency_s = *number;
  }
}

}  // namespace

void read_tenant(FlagReader& reader, const Flag& flag, const std::string& text, RequestMix& mix) {
  const std::size_t colon = text.find(':');
  Tenant tenant{.name = text.substr(0, colon)};
  if (colon == std::string::npos || tenant.name.empty() || tenant.name.find('=') != std::string::npos) {
    return reader.problem(fmt::format("{}: {} has no name before a colon", flag.name, in_quotes(text)),
                          fmt::format("for example {} {}", flag.name, flag.example));
  }
  const auto same = [&](const Tenant& other) { return other.name == tenant.name; };
  if (std::any_of(mix.tenants.begin(), mix.tenants.end(), same)) {
    reader.problem(fmt::format("{}: two are called {}", flag.name, in_quotes(tenant.name)), "a name for each");
  }
  for (const TenantItem& item : tenant_items(text.substr(colon + 1))) {
    const auto key = reader.word_of(fmt::format("a key of {}", flag.name), item.key, kTenantKeys);
    if (!key) continue;
    read_tenant_item(reader, *key, fmt::format("{} {}: {}", flag.name, tenant.name, item.key), item.value, tenant);
  }
  mix.tenants.push_back(std::move(tenant));
}

}  // namespace scalecalc::cli
