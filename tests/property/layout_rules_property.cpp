// The table of layout rules against the search: what the search yields breaks no row, and a layout of a wider grid that
// breaks none is what the search yields. A pin that is illegal is so by both, and the values named for it are legal.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <set>

#include "plan/dimensions.h"
#include "plan/enumerate.h"
#include "plan/layout_rules.h"
#include "property/cases.h"
#include "support/fixtures.h"
#include "train/legal_values.h"
#include "train/obstacles.h"

namespace scalecalc {
namespace {

struct RuleProblem {
  HardwareSpec hw = test::switched_chip();
  ModelSpec model;
  PlanRequest request;

  RuleProblem(ModelSpec of, std::int64_t chips) : model(std::move(of)) {
    request = test::request(model, hw, 8);
    request.slices.resize(1);
    request.slices.front().chips = chips;  // the search of layouts asks no more of the machine
  }
  RuleProblem(const RuleProblem&) = delete;
  RuleProblem& operator=(const RuleProblem&) = delete;

  RuleSubject subject() const {
    return {.model = &model, .workload = &request.workload, .chips = request.slices.front().chips};
  }
};

ModelSpec random_ruled_model() {
  switch (*rc::gen::inRange(0, 4)) {
    case 0: return test::hybrid_model();
    case 1: return test::dense_model(*rc::gen::element(2, 3, 4, 6));
    default: return test::moe_model(*rc::gen::element(2, 3, 4));
  }
}

template <class Visit>
void each_layout(const PlanRequest& request, const Visit& visit) {
  SearchStats stats;
  const Space space(request, stats);
  for (const Family& family : space.families()) {
    space.members(family, stats, [&](const Branch& branch) {
      for (const StateSharding& sharding : space.shardings(branch, stats)) visit(sharded(branch.layout, sharding));
    });
  }
}

std::string text_of(const Layout& layout) { return pins_text(pins_of(layout)); }

TEST(LayoutRuleProperty, TheSearchBreaksNoRow) {
  EXPECT_TRUE(rc::check("the search breaks no row", [] {
    RuleProblem p(random_ruled_model(), *rc::gen::element<std::int64_t>(1, 2, 4, 6, 8, 16));
    p.request.workload = test::workload(*rc::gen::element(512, 768, 2048), *rc::gen::element(4.0, 6.0, 8.0, 16.0));
    if (*rc::gen::arbitrary<bool>()) p.request.fix.schedule = Schedule::kGpipe;
    if (*rc::gen::arbitrary<bool>()) {
      p.request.fix.zero = *rc::gen::inRange(1, 3);
      p.request.fix.fsdp = *rc::gen::element(1, 2, 4);
    }
    each_layout(p.request, [&](const Layout& layout) {
      const LayoutRule* broken = first_broken(p.subject(), layout);
      if (broken != nullptr) RC_FAIL(fmt::format("{} breaks {}", text_of(layout), broken->name));
    });
  }));
}

/// Any layout at all, one in some legal: degrees that make the chips, a batch that they divide.
Layout any_layout_of(const ModelSpec& model) {
  const auto small = [] { return *rc::gen::element<std::int64_t>(1, 1, 1, 2, 2, 3, 4); };
  const auto rarely = [](auto value, auto otherwise) { return *rc::gen::inRange(0, 6) == 0 ? value : otherwise; };
  Layout l{.dp = small(), .fsdp = small(), .tp = small(), .cp = small(), .pp = small()};
  l.zero = static_cast<std::uint8_t>(*rc::gen::inRange(0, 4));
  if (l.zero < 3) l.fsdp = rarely(l.fsdp, std::int64_t{1});
  l.vpp = l.pp > 1 ? *rc::gen::element<std::int64_t>(1, 1, 2, 3) : rarely(2, 1);
  if (model.moe) l.ep = *rc::gen::element<std::int64_t>(1, 2, 2, 4, 8, 3);
  l.ep = rarely(std::int64_t{2}, l.ep);
  l.etp = *rc::gen::element<std::int64_t>(1, 1, l.tp, rarely(2, 1));
  l.micro_batch_seqs = *rc::gen::element<std::int64_t>(1, 1, 2, 3);
  l.grad_accum = *rc::gen::element<std::int64_t>(1, 2, 4, 6, 8);
  l.sp = l.tp > 1 ? *rc::gen::arbitrary<bool>() : rarely(true, false);
  const auto schedules = rc::gen::element(Schedule::kGpipe, Schedule::k1F1B, Schedule::kZeroBubble, Schedule::kDualPipe,
                                          Schedule::kInterleaved);
  l.schedule = l.pp > 1 ? *schedules : rarely(*schedules, Schedule::kNone);
  const auto exchange = *rc::gen::element(CpComm::kAllGather, CpComm::kRing, CpComm::kUlysses);
  l.cp_comm = l.cp > 1 ? exchange : rarely(exchange, CpComm::kAllGather);
  l.ep_overlap = l.ep > 1 ? *rc::gen::arbitrary<bool>() : rarely(true, false);
  if (*rc::gen::inRange(0, 4) == 0) l.split = {*rc::gen::inRange(0, 4), *rc::gen::inRange(0, 4)};
  return l;
}

TEST(LayoutRuleProperty, WhatBreaksNoRowIsSearched) {
  std::set<std::string_view> met;
  std::size_t legal = 0;
  EXPECT_TRUE(rc::check("what breaks no row is searched", [&] {
    for (int i = 0; i < 40; ++i) {
      ModelSpec model = random_ruled_model();
      const Layout layout = any_layout_of(model);
      const bool fits = *rc::gen::inRange(0, 8) > 0;
      RuleProblem p(std::move(model), fits ? layout.chips() : 8);
      const double batch = fits ? static_cast<double>(layout.batch_seqs()) : 8;
      p.request.workload = test::workload(*rc::gen::element(512, 768, 2048), batch);
      p.request.fix = pins_of(layout);
      const LayoutRule* broken = first_broken(p.subject(), layout);
      bool searched = false;
      each_layout(p.request, [&](const Layout& found) { searched |= found == layout; });
      if (searched != (broken == nullptr)) {
        RC_FAIL(fmt::format("{} on {} chips is {}, and breaks {}", text_of(layout), p.subject().chips,
                            searched ? "searched" : "not searched", broken == nullptr ? "no row" : broken->name));
      }
      if (broken == nullptr) ++legal;
      for (const LayoutRule& rule : kLayoutRules) {
        if (rule.concerns(false) && rule.breaks(p.subject(), layout)) met.insert(rule.name);
      }
    }
  }));
  if (!test::all_cases()) return;
  EXPECT_GT(legal, 50U);
  for (const LayoutRule& rule : kLayoutRules) {
    const bool asked = rule.concerns(false) && stage_of(rule.reads) != RuleStage::kRecipe;
    const bool rare = rule.name == "ring-attention" || rule.name == "treated-by-stage";
    EXPECT_TRUE(!asked || rare || met.contains(rule.name)) << rule.name << " was never broken";
  }
}

/// One pin: rows say why it is illegal where the search has none, and only there; what is named in its place is legal.
TEST(LayoutRuleProperty, ValuesNamedForAnIllegalPinAreLegal) {
  std::size_t illegal = 0;
  EXPECT_TRUE(rc::check("values named are legal", [&] {
    RuleProblem p(random_ruled_model(), *rc::gen::element<std::int64_t>(2, 4, 6, 8));
    p.request.workload = test::workload(*rc::gen::element(512, 768, 2048), *rc::gen::element(8.0, 12.0, 16.0));
    const char* const name = *rc::gen::element("dp", "fsdp", "tp", "cp", "pp", "ep", "etp");
    const LayoutDimension& dimension = *find_dimension(name);
    const std::int64_t pinned = *rc::gen::inRange<std::int64_t>(1, 12);
    const std::set<std::int64_t> legal = legal_values(p.request, dimension);
    const auto against = [&](std::int64_t value) {
      PlanRequest asked = p.request;
      dimension.set_pin(asked.fix, value);
      return obstacles(asked);
    };
    if (!legal.contains(pinned)) ++illegal;
    if (!against(pinned).empty()) RC_ASSERT(!legal.contains(pinned));
    const auto above = legal.upper_bound(pinned);
    if (above != legal.end()) RC_ASSERT(against(*above).empty());
    if (above != legal.begin()) RC_ASSERT(against(*std::prev(above)).empty());
  }));
  if (!test::all_cases()) return;
  EXPECT_GT(illegal, 20U);
}

}  // namespace
}  // namespace scalecalc
