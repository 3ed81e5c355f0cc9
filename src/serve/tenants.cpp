// Draws the requests of several users with lengths and limits of their own, and computes what each of them sees.
#include "serve/tenants.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/check.h"

namespace scalecalc {
namespace {

/// Rows of all tenants: a share is kept to half a part in so many.
constexpr std::size_t kTenantRows = 8192;

std::vector<LengthBin> shared_bins(const RequestMix& mix, double sum, const Lengths& usual,
                                   std::optional<Lengths> Tenant::*lengths) {
  std::vector<LengthBin> out;
  for (const Tenant& tenant : mix.tenants) {
    const Lengths own = (tenant.*lengths).value_or(usual);
    for (LengthBin bin : own.bins()) {
      bin.share *= tenant.share / sum;
      out.push_back(bin);
    }
  }
  return out;
}

}  // namespace

RequestMix of_tenants(const RequestMix& mix) {
  check(!mix.tenants.empty() && mix.rows.empty(), "there are tenants, and no trace");
  RequestMix out = mix;
  const double sum = std::accumulate(mix.tenants.begin(), mix.tenants.end(), 0.0,
                                     [](double all, const Tenant& tenant) { return all + tenant.share; });
  double until = 0;
  for (std::size_t i = 0; i < mix.tenants.size(); ++i) {
    Tenant& tenant = out.tenants[i];
    tenant.share /= sum;
    until += tenant.share;
    const auto end = static_cast<std::size_t>(std::round(until * static_cast<double>(kTenantRows)));
    const std::size_t count = std::max<std::size_t>(end > out.rows.size() ? end - out.rows.size() : 0, 1);
    const Lengths prompt = tenant.prompt.value_or(mix.prompt);
    const Lengths generate = tenant.generate.value_or(mix.generate);
    // A lattice of the golden ratio: both lengths lie evenly, and neither tells of the other.
    constexpr double kGolden = 0.6180339887498949;
    for (std::size_t k = 0; k < count; ++k) {
      const double along = (static_cast<double>(k) + 0.5) / static_cast<double>(count);
      const double across = (static_cast<double>(k) + 0.5) * kGolden;
      out.rows.push_back({.prompt = prompt.at(along), .generate = generate.at(across - std::floor(across))});
      out.tenant_of_row.push_back(static_cast<std::uint16_t>(i));
    }
  }
  out.prompt = Lengths(shared_bins(mix, sum, mix.prompt, &Tenant::prompt));
  out.generate = Lengths(shared_bins(mix, sum, mix.generate, &Tenant::generate));
  return out;
}

std::vector<TenantFigures> tenant_figures(const RequestMix& mix, const std::vector<RequestTimes>& requests,
                                          const std::vector<std::uint16_t>& tenants) {
  check(requests.size() == tenants.size(), "every request is a tenant's");
  std::vector<std::vector<RequestTimes>> each(mix.tenants.size());
  for (std::size_t i = 0; i < requests.size(); ++i) each[tenants[i]].push_back(requests[i]);
  std::vector<TenantFigures> out;
  for (std::size_t i = 0; i < each.size(); ++i) {
    const QueueFigures seen = each[i].empty() ? QueueFigures{} : seen_by_users(each[i]);
    out.push_back({seen, each[i].empty() || meets(seen, mix.tenants[i].limits)});
  }
  return out;
}

bool all_meet(const std::vector<TenantFigures>& tenants) {
  return std::all_of(tenants.begin(), tenants.end(), [](const TenantFigures& tenant) { return tenant.met; });
}

}  // namespace scalecalc
