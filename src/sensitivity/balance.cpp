// Computes how much of each rate a plan can use, from the derivatives of its step.
#include "sensitivity/balance.h"

#include <algorithm>
#include <cmath>

#include "sensitivity/elasticity.h"

namespace scalecalc {
namespace {

constexpr double kWidest = 1 << 20;  ///< factors looked at: from 1 over this to this
constexpr int kHalvings = 60;        ///< of the factor's logarithm, to the last bits of a double

/// The factor at which `falling` passes from above zero to zero or below; nothing if it does not between the widest.
/// Where it jumps, the place of the jump.
std::optional<double> crossing(const std::function<double(double)>& falling) {
  double low = -std::log(kWidest);
  double high = std::log(kWidest);
  if (falling(std::exp(low)) <= 0 || falling(std::exp(high)) > 0) return std::nullopt;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (falling(std::exp(middle)) > 0 ? low : high) = middle;
  }
  return std::exp(high);
}

bool is_matmul(const HardwareRate& rate) { return rate.name.starts_with("hw.compute.matmul."); }
bool is_link(const HardwareRate& rate) { return rate.name.starts_with("hw.network.") && !rate.is_time; }

std::vector<std::string> names_of(const std::vector<HardwareRate>& rates, bool (*wanted)(const HardwareRate&)) {
  std::vector<std::string> out;
  for (const HardwareRate& rate : rates) {
    if (wanted(rate)) out.push_back(rate.read_as.front());
  }
  return out;
}

class Balancer {
 public:
  Balancer(const ResolvedQuestion& question, const PlanRequest& request, const Plan& plan)
      : rates_(hardware_rates(question)), request_(request), plan_(plan), compute_(names_of(rates_, is_matmul)) {}

  std::vector<BalanceGroup> run() {
    std::vector<BalanceGroup> out{compute()};
    for (const HardwareRate& rate : rates_) {
      if (rate.name != "hw.hbm.bandwidth" && !is_link(rate)) continue;
      if (auto group = beside_compute(rate)) out.push_back(std::move(*group));
    }
    return out;
  }

 private:
  BalanceGroup compute() const {
    const HardwareRate& first = rates_.front();
    BalanceGroup out{.name = compute_.size() == 1 ? first.name : "hw.compute.matmul",
                     .read_as = compute_,
                     .rate = first.value,
                     .unit = first.unit};
    return with_knee(std::move(out));
  }

  /// Nothing for a tier that no group of this plan crosses.
  std::optional<BalanceGroup> beside_compute(const HardwareRate& rate) const {
    BalanceGroup out = with_knee({.name = rate.name, .read_as = rate.read_as, .rate = rate.value, .unit = rate.unit});
    if (out.elasticity == 0 && elasticity(out.read_as, 1 / kWidest) == 0) return std::nullopt;
    const auto equal = crossing([&](double k) { return compute_beside(rate, k) - elasticity(out.read_as, k); });
    if (equal) out.as_compute = *equal * out.rate;
    return out;
  }

  BalanceGroup with_knee(BalanceGroup group) const {
    group.elasticity = elasticity(group.read_as, 1);
    const auto knee = crossing([&](double k) { return -elasticity(group.read_as, k) - kKneeElasticity; });
    if (knee) group.knee = *knee * group.rate;
    return group;
  }

  double elasticity(const std::vector<std::string>& of, double factor) const {
    return step_at(request_, plan_, of, factor).elasticity;
  }

  /// Of compute, while another rate has the factor.
  double compute_beside(const HardwareRate& rate, double factor) const {
    HardwareSpec hw = *request_.hw;
    rate.scale(hw, factor);
    PlanRequest moved = request_;
    moved.hw = &hw;
    return step_at(moved, plan_, compute_).elasticity;
  }

  std::vector<HardwareRate> rates_;
  const PlanRequest& request_;
  const Plan& plan_;
  std::vector<std::string> compute_;
};

}  // namespace

std::vector<BalanceGroup> balance(const ResolvedQuestion& question, const PlanRequest& request, const Plan& plan) {
  return Balancer(question, request, plan).run();
}

GroupElasticities group_elasticities(const ResolvedQuestion& question, const PlanRequest& request, const Plan& plan) {
  const std::vector<HardwareRate> rates = hardware_rates(question);
  return {.compute = step_at(request, plan, names_of(rates, is_matmul)).elasticity,
          .hbm = step_at(request, plan, {"hw.hbm.bandwidth"}).elasticity,
          .links = step_at(request, plan, names_of(rates, is_link)).elasticity};
}

}  // namespace scalecalc
