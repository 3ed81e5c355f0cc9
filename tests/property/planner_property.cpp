// The search against brute force on small random problems: every layout of the space costed on every placement, without
// bounds, dominance or threads. 500 problems; the whole ranking must be the same, ties included.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <tuple>

#include "cli/commands.h"
#include "cli/options.h"
#include "plan/anything_fits.h"
#include "plan/dimensions.h"
#include "plan/enumerate.h"
#include "plan/ranking.h"
#include "plan/request.h"
#include "plan/run_bounds.h"
#include "plan/stack_supports.h"
#include "plan/ways_to_fit.h"
#include "property/cases.h"
#include "property/random_machine.h"
#include "support/fixtures.h"
#include "train/train_options.h"

namespace scalecalc {
namespace {

struct Problem {
  HardwareSpec hw;
  ModelSpec model;
  PlanRequest request;
};

/// Any rates, and a memory that is now ample, now short.
void random_chip(HardwareSpec& hw) {
  hw.host_ram = Bytes(*rc::gen::element(0.0, 4e9, 256e9));
  hw.hbm_capacity = Bytes(*rc::gen::element(0.5e9, 1e9, 2e9, 4e9, 32e9, 32e9));
  test::draw_rates(hw, *rc::gen::element(0.25, 1.0, 4.0));
}

ModelSpec random_model() {
  switch (*rc::gen::inRange(0, 5)) {
    case 0: return test::hybrid_model();
    case 1:
    case 2: return test::moe_model(*rc::gen::element(2, 3, 4));
    default: return test::dense_model(*rc::gen::element(2, 3, 4, 6));
  }
}

void random_stack(StackMemory& memory) {
  memory.sharded_master = *rc::gen::arbitrary<bool>();
  memory.gradient_bytes["bf16"] = *rc::gen::element(2.0, 4.0, 6.0);
  memory.update_bytes = *rc::gen::element(0.0, 4.5, 40.0);
  memory.shard_update_bytes = *rc::gen::element(0.0, 12.0);
  memory.logit_bytes = *rc::gen::element(2.0, 14.0);
  memory.chunks_run_again = *rc::gen::arbitrary<bool>();
  memory.layer_share = *rc::gen::element(0.5, 1.0);
  using Names = std::vector<std::string>;
  memory.selective = *rc::gen::element(
      Names{}, Names{"attention"},
      Names{"norm output", "attention", "mlp gate projection", "mlp up projection", "mlp activation"});
  memory.gathered_layers = *rc::gen::element(0.3, 2.0);
  memory.fragmentation.value = *rc::gen::element(0.0, 0.07, 0.3);
}

/// Adapters of any kind beside weights in any format, in one problem of three.
std::optional<FineTune> random_fine_tune() {
  if (*rc::gen::inRange(0, 3) > 0) return std::nullopt;
  FineTune out{.rank = *rc::gen::element(1, 16, 256),
               .targets = static_cast<std::uint8_t>(*rc::gen::inRange(1, 256)),
               .experts = *rc::gen::arbitrary<bool>()};
  if (const int format = *rc::gen::inRange(-1, 4); format >= 0) out.base = static_cast<BaseFormat>(format);
  return out;
}

/// The newest release of some stacks that have rules of their own, or any stack's layouts.
std::shared_ptr<const StackRelease> random_launcher() {
  static const Catalog catalog;
  static const std::vector<std::shared_ptr<const StackRelease>> kReleases = [] {
    std::vector<std::shared_ptr<const StackRelease>> out;
    // JAX stacks twice: only they search circular pipelines, which few problems have room for.
    for (const char* name :
         {"megatron", "maxtext", "torchtitan", "paxml", "deepspeed", "maxtext", "megatron-deepspeed", "primus"}) {
      out.push_back(stack_release(catalog, name, ""));
    }
    out.push_back(stack_release(catalog, "megatron", "0.9"));
    return out;
  }();
  const int which = *rc::gen::inRange(0, 2 * static_cast<int>(kReleases.size()));
  return which % 2 > 0 ? nullptr : kReleases[static_cast<std::size_t>(which / 2)];
}

Problem random_problem(std::int64_t most_chips = 16) {
  Problem p{.hw = test::random_kind_of_machine(), .model = random_model()};
  random_chip(p.hw);
  std::int64_t chips = 0;
  std::vector<Slice> slices;
  while (slices.empty()) {
    chips = std::min<std::int64_t>(most_chips, *rc::gen::element(1, 2, 4, 4, 6, 8, 8, 16));
    slices = slices_of(p.hw, chips, 1);
  }
  p.request = test::request(p.model, p.hw, chips);
  p.request.slices = slices;
  if (*rc::gen::inRange(0, 4) == 0) {
    const std::vector<Slice> half = slices_of(p.hw, std::max<std::int64_t>(1, chips / 2), 1);
    p.request.slices.insert(p.request.slices.end(), half.begin(), half.end());
  }
  p.request.workload = test::workload(*rc::gen::element(512, 1024, 2048), *rc::gen::element(4.0, 6.0, 8.0, 16.0));
  p.request.workload.fine_tune = random_fine_tune();
  if (*rc::gen::arbitrary<bool>()) random_stack(p.request.workload.memory);
  p.request.objective =
      *rc::gen::element(Objective::kTime, Objective::kTime, Objective::kCost, Objective::kMemory, Objective::kChips);
  p.request.stack = random_launcher();
  p.request.variants = *rc::gen::arbitrary<bool>();
  p.request.top = 20;
  p.request.threads = 1;
  p.model.vocab = *rc::gen::element(32'000, 32'000, 200'000);  // whose head weighs many layers
  p.request.efficiency.scale_loss.value = *rc::gen::element(0.0, 0.0, 0.05);
  return p;
}

/// What the step and the memory of any layout need, computed anew for each inner degree and placement.
class BruteForce {
 public:
  explicit BruteForce(const PlanRequest& request)
      : request_(request),
        any_(lifted(request)),
        chip_(read_chip(kReader, *request.hw, request.efficiency, request.workload.precision.high)),
        network_(read_network(kReader, *request.hw, request.efficiency)),
        overlap_(read_overlap(kReader, request.efficiency)),
        ops_(read_model(kReader, *request.model, request.workload.fine_tune)) {}

  /// Of the layouts of any stack, those that no fact of the request's refuses; GPipe's where it is the only schedule.
  std::deque<Candidate> all() {
    walk(false);
    const auto runs = [&](Schedule schedule) {
      for (std::int64_t pp = 2; pp <= request_.model->layers(); ++pp) {  // some facts divide the layers by the stages
        const Layout layout{.pp = pp, .schedule = schedule};
        const SupportSubject subject{layout, *request_.model, request_.workload, *request_.hw};
        if (!request_.stack || !request_.stack->refusal(FactGroup::kPipeline, subject)) return true;
      }
      return false;
    };
    if (runs(Schedule::kGpipe) && !runs(Schedule::k1F1B)) {
      any_.fix.schedule = Schedule::kGpipe;
      walk(true);
    }
    return std::move(out_);
  }

 private:
  void walk(bool pipelines_only) {
    SearchStats stats;
    const Space space(any_, stats);
    for (const Family& family : space.families()) {
      space.members(family, stats, [&](const Branch& branch) {
        if (pipelines_only && branch.layout.pp == 1) return;
        const std::vector<StageShape> stages = partition(*request_.model, branch.layout);
        if (stages.empty()) return;
        for (const StateSharding& sharding : space.shardings(branch, stats)) {
          Layout layout = sharded(branch.layout, sharding);
          const std::vector<MeshChannels<double>> placed = placed_channels(branch.slice, layout);
          if (placed.empty()) continue;
          for (const Recipe& recipe : recipes(any_, stats)) {
            layout.remat = recipe.remat;
            layout.remat_layers = recipe.some ? 1 : 0;
            layout.loss = recipe.loss;
            cost(branch.slice, layout, stages, placed);
          }
        }
      });
    }
  }

  const NetworkCost<double>& cost_of(const Layout& layout) {
    const InnerDegrees inner = inner_of(layout);
    const auto at = costs_.find(inner);
    if (at != costs_.end()) return at->second;
    return costs_.emplace(inner, network_cost(kReader, *request_.model, ops_, chip_, request_.workload, inner))
        .first->second;
  }

  /// On every placement the machine allows.
  std::vector<MeshChannels<double>> placed_channels(std::size_t slice_index, const Layout& layout) const {
    const Slice& slice = request_.slices[slice_index];
    std::vector<MeshChannels<double>> out;
    for (const Placement& p :
         placements(*request_.hw, slice, {layout.tp, layout.cp, layout.fsdp, layout.dp, layout.pp})) {
      if (!experts_fold(p, layout)) continue;
      out.push_back(make_channels(*request_.hw, slice, network_, p, layout,
                                  routing_of(*request_.model, request_.workload.runtime.dispatch)));
    }
    return out;
  }

  /// Memory knows the sizes of groups alone, so every placement settles alike.
  void cost(std::size_t slice_index, const Layout& layout, const std::vector<StageShape>& stages,
            const std::vector<MeshChannels<double>>& placed) {
    StepInput<double> in{.model = request_.model,
                         .workload = &request_.workload,
                         .network = &cost_of(layout),
                         .channels = &placed.front(),
                         .overlap = &overlap_,
                         .chip = &chip_,
                         .stages = &stages,
                         .memory_reserve = Bytes(request_.efficiency.memory_reserve.value),
                         .layout = layout};
    std::vector<FittedLayout> ways;
    if (layout.remat_layers > 0) {
      fit_with_remat(request_, in, ways);
    } else {
      fit_with_offload(request_, in, ways);
    }
    for (const FittedLayout& way : ways) {
      in.layout = way.layout;
      cost(slice_index, in, way.memory, placed);
    }
  }

  void cost(std::size_t slice_index, StepInput<double> in, const MemoryUse<double>& memory,
            const std::vector<MeshChannels<double>>& placed) {
    if (request_.stack && request_.stack->refusal({in.layout, *request_.model, request_.workload, *request_.hw})) {
      return;
    }
    for (std::size_t i = 0; i < placed.size(); ++i) {
      in.channels = &placed[i];
      Candidate c{.slice = slice_index, .placement = i};
      c.plan.layout = in.layout;
      c.plan.slice = request_.slices[slice_index];
      c.plan.time = step_time(kReader, in);
      c.plan.step_s = c.plan.time.total().value();
      c.plan.memory = memory;
      out_.push_back(std::move(c));
    }
  }

  static PlanRequest lifted(PlanRequest request) {
    request.stack = nullptr;
    return request;
  }

  static constexpr Reader<double> kReader{};
  const PlanRequest& request_;
  PlanRequest any_;  ///< the same without a stack
  ChipRates<double> chip_;
  NetworkRates<double> network_;
  OverlapRates<double> overlap_;
  ModelOps<double> ops_;
  std::map<InnerDegrees, NetworkCost<double>> costs_;
  std::deque<Candidate> out_;  ///< candidates are large: none is moved as they become more
};

double tokens_of(const PlanRequest& request, const Candidate& c) {
  return static_cast<double>(c.plan.layout.batch_seqs() * request.workload.seq);
}

double goal_of(const PlanRequest& request, const Candidate& c) {
  const double time = c.plan.step_s / tokens_of(request, c);
  return request.objective == Objective::kCost ? static_cast<double>(c.plan.slice.chips) * time : time;
}

/// The ranking as docs/design.md states it: strictly by the objective; one line for each set of parallel degrees unless
/// variants are asked for.
std::vector<Candidate> expected_ranking(const PlanRequest& request, std::deque<Candidate> all) {
  for (Candidate& c : all) {
    const double time = c.plan.step_s / tokens_of(request, c);
    const double memory = c.plan.memory.total().value();
    switch (request.objective) {
      case Objective::kTime: c.rank = {time, memory, 0}; break;
      case Objective::kCost: c.rank = {goal_of(request, c), time, memory}; break;
      case Objective::kMemory: c.rank = {memory, time, 0}; break;
      case Objective::kChips: c.rank = {static_cast<double>(c.plan.slice.chips), time, memory}; break;
    }
  }
  // Candidates are large: their order is sorted, not they.
  std::vector<Candidate*> order;
  for (Candidate& c : all) order.push_back(&c);
  std::stable_sort(order.begin(), order.end(), [](const Candidate* a, const Candidate* b) { return *a < *b; });
  std::vector<Candidate> out;
  for (Candidate* at : order) {
    Candidate& c = *at;
    const auto line = [&](const Candidate& x) {
      Layout l = x.plan.layout;
      if (!request.variants) l = {.dp = l.data(), .tp = l.tp, .cp = l.cp, .pp = l.pp, .ep = l.ep, .etp = l.etp};
      return std::tuple(x.plan.slice.chips, l);
    };
    if (std::any_of(out.begin(), out.end(), [&](const Candidate& o) { return line(o) == line(c); })) continue;
    out.push_back(std::move(c));
    if (out.size() == request.top) break;
  }
  return out;
}

/// The simplest within `tie` of the best, then the best; nullptr if nothing fits.
const Candidate* expected_simplest(const PlanRequest& request, const std::deque<Candidate>& all, double tie) {
  double best = 1e300;
  for (const Candidate& c : all) best = std::min(best, goal_of(request, c));
  const auto order = [&](const Candidate& c) {
    return std::tuple(complexity(c.plan.layout), goal_of(request, c), c.plan.memory.total().value(), c.slice);
  };
  const Candidate* out = nullptr;
  for (const Candidate& c : all) {
    if (goal_of(request, c) > (1 + tie) * best) continue;
    if (out == nullptr || order(c) < order(*out) ||
        (order(c) == order(*out) && (c.plan.layout <=> out->plan.layout) < 0)) {
      out = &c;
    }
  }
  return out;
}

/// What the plans compared were made of.
struct Compared {
  bool zero_bubble = false, dualpipe = false, interleaved = false, ring = false, ulysses = false, experts = false,
       ep_overlap = false, offload = false, some_layers = false, full_sharding = false, adapters = false,
       packed = false, launched = false, circular = false, some_offloaded = false, fused = false, chunked = false,
       chosen_stages = false;

  void add(const PlanRequest& request, const Layout& l) {
    launched |= request.stack != nullptr;
    chosen_stages |= l.split.chosen();
    circular |= l.schedule == Schedule::kGpipe && l.vpp > 1;
    adapters |= request.workload.fine_tune.has_value();
    packed |= l.zero == 3 && request.workload.fine_tune &&
              is_unpacked(*request.workload.fine_tune, request.workload.precision);
    zero_bubble |= l.schedule == Schedule::kZeroBubble;
    dualpipe |= l.schedule == Schedule::kDualPipe;
    interleaved |= l.schedule == Schedule::kInterleaved;
    ring |= l.cp > 1 && l.cp_comm == CpComm::kRing;
    ulysses |= l.cp > 1 && l.cp_comm == CpComm::kUlysses;
    experts |= l.ep > 1;
    ep_overlap |= l.ep_overlap && l.schedule != Schedule::kDualPipe;
    offload |= l.offload != 0;
    some_layers |= l.remat_layers > 0;
    some_offloaded |= l.offload_layers > 0;
    fused |= l.loss == LossKind::kFused;
    chunked |= l.loss == LossKind::kChunked;
    full_sharding |= l.zero == 3;
  }
};

// rapidcheck runs a property 100 times, and each run has this many problems: a test for the first of each run, one for
// the second and so on, which may run beside each other.
const std::size_t kOfARun = test::runs(5);

class SearchProperty : public testing::TestWithParam<std::size_t> {};

TEST_P(SearchProperty, EqualsBruteForce) {
  std::size_t with_plans = 0;
  Compared compared;
  const bool held = rc::check("top 20", [&] {
    // Sixteen chips have ten times the layouts of eight: one run has them.
    const std::int64_t most_chips = GetParam() == 0 ? 16 : 8;
    for (std::size_t before = 0; before < GetParam(); ++before) random_problem(most_chips);
    const Problem problem = random_problem(most_chips);
    const PlanResult found = plan(problem.request);
    const std::vector<Candidate> expected = expected_ranking(problem.request, BruteForce(problem.request).all());
    RC_ASSERT(found.plans.size() == expected.size());
    if (!expected.empty()) ++with_plans;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      compared.add(problem.request, expected[i].plan.layout);
      if (!(found.plans[i].layout == expected[i].plan.layout)) {
        for (const Plan* p : {&found.plans[i], &expected[i].plan}) {
          const Layout& l = p->layout;
          RC_LOG() << "rank " << i + 1 << " of " << expected.size() << ": dp " << l.dp << " fsdp " << l.fsdp << " tp "
                   << l.tp << " sp " << l.sp << " cp " << l.cp << " pp " << l.pp << " vpp " << l.vpp << " ep " << l.ep
                   << " etp " << l.etp << " zero " << int(l.zero) << " mb " << l.micro_batch_seqs << " ga "
                   << l.grad_accum << ' ' << name_of(l.remat) << ' ' << name_of(l.schedule) << " chips "
                   << p->slice.chips << " step " << p->step_s << " memory " << p->memory.total().value() << std::endl;
        }
      }
      RC_ASSERT(found.plans[i].layout == expected[i].plan.layout);
      RC_ASSERT(found.plans[i].slice.shape == expected[i].plan.slice.shape);
      RC_ASSERT(found.plans[i].step_s == expected[i].plan.step_s);
      RC_ASSERT(found.plans[i].memory.total().value() == expected[i].plan.memory.total().value());
    }
  });
  EXPECT_TRUE(held);
  if (!test::all_cases()) return;
  EXPECT_GE(with_plans, 65U) << "problems whose ranking had plans to compare";
  EXPECT_TRUE(compared.zero_bubble && compared.dualpipe && compared.interleaved);
  EXPECT_TRUE(compared.ring && compared.ulysses && compared.experts && compared.full_sharding);
  EXPECT_TRUE(compared.ep_overlap);
  if (GetParam() > 0) return;  // what is rare is asked of one run
  EXPECT_TRUE(compared.offload && compared.some_layers);
  EXPECT_TRUE(compared.fused && compared.chunked);
  EXPECT_TRUE(compared.adapters && compared.packed);
  EXPECT_TRUE(compared.launched && compared.circular);
  EXPECT_TRUE(compared.chosen_stages);
}

INSTANTIATE_TEST_SUITE_P(Problems, SearchProperty, testing::Range<std::size_t>(0, kOfARun));

/// With a little less room than the best plan takes, where the numbers of offloaded layers and the losses differ most.
TEST(PlannerProperty, WaysToFitEqualBruteForce) {
  Compared compared;
  EXPECT_TRUE(rc::check("top 20, in less memory than the best takes", [&] {
    Problem problem = random_problem();
    PlanRequest& request = problem.request;
    problem.model = test::dense_model(8);
    problem.hw.host_ram = Bytes(256e9);
    problem.hw.hbm_capacity = Bytes(32e9);
    if (*rc::gen::arbitrary<bool>()) request.fix.remat = Remat::kNone;
    if (*rc::gen::arbitrary<bool>()) request.stack = nullptr;
    request.objective = Objective::kTime;
    const PlanResult ample = plan(request);
    if (ample.plans.empty()) return;
    const double share = *rc::gen::inRange(40, 100) / 100.0;
    problem.hw.hbm_capacity = ample.plans.front().memory.total() * share;
    const PlanResult found = plan(request);
    const std::vector<Candidate> expected = expected_ranking(request, BruteForce(request).all());
    RC_ASSERT(found.plans.size() == expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      compared.add(request, expected[i].plan.layout);
      if (!(found.plans[i].layout == expected[i].plan.layout)) {
        const auto told = [](const Plan& p) {
          return pins_text(pins_of(p.layout)) +
                 fmt::format(" {:.17g} s, {:.17g} bytes", p.step_s, p.memory.total().value());
        };
        RC_FAIL(told(found.plans[i]) + " for " + told(expected[i].plan));
      }
      RC_ASSERT(found.plans[i].step_s == expected[i].plan.step_s);
      RC_ASSERT(found.plans[i].memory.total().value() == expected[i].plan.memory.total().value());
    }
  }));
  if (!test::all_cases()) return;
  EXPECT_TRUE(compared.some_offloaded && compared.some_layers && compared.fused && compared.chunked);
}

/// In about as much memory as the leanest plan of an ample chip takes, with a host and without, pinned and not.
TEST(PlannerProperty, AnythingFitsWhereBruteForceFindsAPlan) {
  std::size_t fit = 0;
  std::size_t short_of_memory = 0;
  EXPECT_TRUE(rc::check("in less and less memory", [&] {
    Problem problem = random_problem();
    PlanRequest& request = problem.request;
    problem.hw.hbm_capacity = Bytes(32e9);
    request.objective = Objective::kMemory;
    const PlanResult ample = plan(request);
    if (ample.plans.empty()) return;
    switch (*rc::gen::inRange(0, 4)) {
      case 0: request.fix.offload = *rc::gen::element<std::uint8_t>(0, kOffloadOptimizer, kOffloadAll); break;
      case 1: request.fix.remat_layers = *rc::gen::element(0, 1); break;
      case 2: request.fix.loss = LossKind::kWhole; break;
      default: break;
    }
    const double share = *rc::gen::element(0.3, 0.6, 0.9, 0.99, 1.0, 1.01, 1.2);
    problem.hw.hbm_capacity = ample.plans.front().memory.total() * share;
    const bool expected = !BruteForce(request).all().empty();
    ++(expected ? fit : short_of_memory);
    RC_ASSERT(anything_fits(request) == expected);
    RC_ASSERT(!anything_fits(request, [] { return true; }));
  }));
  if (!test::all_cases()) return;
  EXPECT_GE(fit, 15U);
  EXPECT_GE(short_of_memory, 15U);
}

TEST(PlannerProperty, TheSimplestNearTheBestEqualsBruteForce) {
  EXPECT_TRUE(rc::check("within a tie, with room in memory", [] {
    Problem problem = random_problem();
    PlanRequest& request = problem.request;
    request.objective = *rc::gen::element(Objective::kTime, Objective::kCost);
    const double tie = *rc::gen::element(0.0, 0.02, 0.2);
    const double usable = *rc::gen::element(1.0, 0.95, 0.7);
    Planner planner(request);
    const PlanResult best = planner.best({.objective = request.objective, .top = 1, .usable = usable});
    request.usable = usable;
    const std::deque<Candidate> all = BruteForce(request).all();
    RC_ASSERT(best.plans.empty() == all.empty());
    if (all.empty()) return;
    double goal = 1e300;
    for (const Candidate& c : all) goal = std::min(goal, goal_of(request, c));
    const PlanResult found = planner.best({.objective = request.objective,
                                           .top = 1,
                                           .below = std::nextafter((1 + tie) * goal, 1e300),
                                           .simplest = true,
                                           .usable = usable});
    RC_ASSERT(found.plans.size() == 1U);
    const Candidate* expected = expected_simplest(request, all, tie);
    RC_ASSERT(found.plans.front().layout == expected->plan.layout);
    RC_ASSERT(found.plans.front().step_s == expected->plan.step_s);
  }));
}

/// What --fix makes of a text.
LayoutFilter read_fix(const std::string& text) {
  const cli::Arguments arguments =
      cli::parse_arguments({"m", "--hw", "h", "--chips", "8", "--fix", text}, cli::train_command());
  return cli::train_question(arguments).fix;
}

/// What one pin, or all, make of a question.
PlanResult pinned(PlanRequest request, const LayoutFilter& fix) {
  request.fix = fix;
  request.top = 1;
  return plan(request);
}

/// Time per token or, ranked by cost, chips x that: what pins cannot better.
double goal_of(const PlanRequest& request, const Plan& p) {
  Candidate c;
  c.plan = p;
  return goal_of(request, c);
}

class PinProperty : public testing::TestWithParam<std::size_t> {};

TEST_P(PinProperty, AListedPlansOwnFlagsGiveThePlan) {
  std::size_t plans = 0;
  Compared met;
  EXPECT_TRUE(rc::check("the text of plans[].fix, read by --fix", [&] {
    for (std::size_t before = 0; before < GetParam(); ++before) random_problem();
    const Problem problem = random_problem();
    const PlanRequest& request = problem.request;
    for (const Plan& listed : plan(request).plans) {
      ++plans;
      met.add(request, listed.layout);
      const std::string text = pins_text(pins_of(listed.layout));
      const PlanResult again = pinned(request, read_fix(text));
      if (again.plans.empty()) RC_FAIL("nothing fits " + text);
      const Plan& same = again.plans.front();
      if (!(same.layout == listed.layout)) RC_FAIL(text + " gives " + pins_text(pins_of(same.layout)));
      RC_ASSERT(same.step_s == listed.step_s);
      RC_ASSERT(same.memory.total().value() == listed.memory.total().value());
      RC_ASSERT(same.memory.host.value() == listed.memory.host.value());
      RC_ASSERT(same.slice.chips == listed.slice.chips);
      RC_ASSERT(same.batch_seqs == listed.batch_seqs);
    }
  }));
  if (!test::all_cases()) return;
  EXPECT_GE(plans, 600U);
  EXPECT_TRUE(met.interleaved && met.experts && met.full_sharding);
  EXPECT_TRUE(GetParam() > 0 || (met.offload && met.some_layers)) << "rare: asked of one run";
}

INSTANTIATE_TEST_SUITE_P(Problems, PinProperty, testing::Range<std::size_t>(0, kOfARun));

class OnePinProperty : public testing::TestWithParam<std::size_t> {};

TEST_P(OnePinProperty, NeverBeatsNoneAndKeepsThePlan) {
  std::size_t questions = 0;
  std::size_t pins = 0;
  std::map<std::string_view, std::size_t> moved;  // dimensions whose pin left the first plan out
  EXPECT_TRUE(rc::check("the first and another listed plan, dimension by dimension", [&] {
    constexpr std::int64_t kFewChips = 8;  // every pin is a search of its own
    for (std::size_t before = 0; before < GetParam(); ++before) random_problem(kFewChips);
    std::unique_ptr<Problem> problem;  // its request points into it
    PlanRequest request;
    PlanResult open;
    constexpr int kDraws = 3;  // a sixth of the problems have no plan
    for (int draw = 0; draw < kDraws && open.plans.empty(); ++draw) {
      problem.reset(new Problem(random_problem(kFewChips)));
      request = problem->request;
      if (request.objective != Objective::kCost) request.objective = Objective::kTime;
      request.top = 3;
      open = plan(request);
    }
    if (open.plans.empty()) return;
    ++questions;
    const Plan& first = open.plans.front();
    const Plan& listed = open.plans[*rc::gen::inRange<std::size_t>(0, open.plans.size())];
    const LayoutFilter all = pins_of(listed.layout);
    for (const LayoutDimension& d : layout_dimensions()) {
      // Of a policy the number of layers is a part; alone it is a pin of its own.
      const std::optional<std::int64_t> value =
          d.name == "remat_layers" ? std::optional<std::int64_t>(listed.layout.remat_layers) : d.pin(all);
      if (!value) continue;
      ++pins;
      LayoutFilter one;
      d.set_pin(one, value);
      const std::string text = pins_text(one);
      const PlanResult found = pinned(request, read_fix(text));
      if (found.plans.empty()) RC_FAIL("nothing fits " + text);
      const Plan& best = found.plans.front();
      if (goal_of(request, best) < goal_of(request, first))
        RC_FAIL(fmt::format("{} is better than no pin: {} {} {} against {} {} {}", text, goal_of(request, best),
                            pins_text(pins_of(best.layout)), best.memory.total().value(), goal_of(request, first),
                            pins_text(pins_of(first.layout)), first.memory.total().value()));
      if (goal_of(request, best) > goal_of(request, listed)) RC_FAIL(text + " loses " + pins_text(all));
      // How ranks work together says nothing of a layout without them.
      const bool moot = (one.cp_comm && best.layout.cp == 1) || (one.ep_overlap && best.layout.ep == 1) ||
                        (one.sp && best.layout.tp == 1) || (one.schedule && best.layout.pp == 1);
      if (d.value(best.layout) != *value && !moot) RC_FAIL(text + " gives " + pins_text(pins_of(best.layout)));
      if (d.value(first.layout) == *value && goal_of(request, best) != goal_of(request, first)) {
        RC_FAIL(text + " gives " + pins_text(pins_of(best.layout)) + " before " + pins_text(pins_of(first.layout)));
      }
      if (!(best.layout == first.layout)) ++moved[d.name];
    }
  }));
  if (!test::all_cases()) return;
  EXPECT_GE(questions, 95U) << "with plans, of 100";
  EXPECT_GE(pins, 1000U);
  EXPECT_GE(moved.size(), 6U) << "dimensions whose pin changed the answer";
}

INSTANTIATE_TEST_SUITE_P(Problems, OnePinProperty, testing::Range<std::size_t>(0, test::runs(2)));

TEST(PlannerProperty, AnyNumberOfThreadsGivesTheSameAnswer) {
  EXPECT_TRUE(rc::check("1, 2 and 8 threads", [] {
    Problem problem = random_problem();
    const PlanResult one = plan(problem.request);
    for (const std::size_t threads : {2U, 8U}) {
      problem.request.threads = threads;
      const PlanResult many = plan(problem.request);
      RC_ASSERT(many.plans.size() == one.plans.size());
      for (std::size_t i = 0; i < one.plans.size(); ++i) {
        RC_ASSERT(many.plans[i].layout == one.plans[i].layout);
        RC_ASSERT(many.plans[i].placement.dims == one.plans[i].placement.dims);
        RC_ASSERT(many.plans[i].step_s == one.plans[i].step_s);
      }
      RC_ASSERT(many.stats.candidates == one.stats.candidates);
      RC_ASSERT(many.stats.evaluated == one.stats.evaluated);
      RC_ASSERT(many.stats.feasible == one.stats.feasible);
      RC_ASSERT(many.stats.pruned == one.stats.pruned);
      RC_ASSERT(many.stats.rejected == one.stats.rejected);
    }
  }));
}

bool same_plans(const PlanResult& a, const PlanResult& b) {
  return std::equal(a.plans.begin(), a.plans.end(), b.plans.begin(), b.plans.end(), [](const Plan& x, const Plan& y) {
    return x.layout == y.layout && x.placement.dims == y.placement.dims && x.step_s == y.step_s;
  });
}

/// What a visit proved of a family serves the goals after it.
TEST(PlannerProperty, LaterGoalsOfOneSearchFindWhatAFreshSearchDoes) {
  EXPECT_TRUE(rc::check("a ranking, then other goals", [] {
    Problem problem = random_problem();
    PlanRequest& request = problem.request;
    Planner planner(request);
    const PlanResult first = planner.best({.objective = request.objective, .top = 3});
    Goal goal{.objective = *rc::gen::element(Objective::kTime, Objective::kCost, Objective::kMemory), .top = 2};
    goal.simplest = goal.objective != Objective::kMemory && *rc::gen::arbitrary<bool>();
    goal.usable = *rc::gen::element(1.0, 1.0, 0.9, 0.6);
    goal.without = *rc::gen::element(MechanismSet{0}, kAllMechanisms, MechanismSet{0x3FF});
    if (!first.plans.empty() && *rc::gen::arbitrary<bool>()) {
      const Plan& best = first.plans.front();
      const double token_s = best.step_s / (best.batch_seqs * static_cast<double>(request.workload.seq));
      const double chips = goal.objective == Objective::kCost ? static_cast<double>(best.slice.chips) : 1;
      goal.below = *rc::gen::element(1.0, 1.02, 1.5) * chips * token_s;
    }
    if (*rc::gen::inRange(0, 4) == 0) goal.fewer_chips = request.slices.front().chips;
    request.counts = *rc::gen::arbitrary<bool>();
    RC_ASSERT(same_plans(planner.best(goal), Planner(request).best(goal)));
  }));
}

/// What searches on other machines, and for other goals, left behind changes neither the answer nor what is counted.
TEST(PlannerProperty, SharedBoundsChangeNothing) {
  std::size_t machines = 0;
  EXPECT_TRUE(rc::check("machines of one job, one after the other", [&] {
    Problem problem = random_problem();
    PlanRequest& request = problem.request;
    request.top = 2;
    request.counts = *rc::gen::arbitrary<bool>();
    const std::vector<Slice> slices = request.slices;
    const auto shared = std::make_shared<RunBounds>();
    for (const Slice& slice : slices) {
      request.slices = {slice};
      request.bounds = nullptr;
      const PlanResult alone = plan(request);
      request.bounds = shared;
      const PlanResult after = plan(request);
      RC_ASSERT(same_plans(after, alone));
      RC_ASSERT(after.stats.candidates == alone.stats.candidates);
      RC_ASSERT(after.stats.evaluated == alone.stats.evaluated);
      RC_ASSERT(after.stats.pruned == alone.stats.pruned);
      RC_ASSERT(after.stats.rejected == alone.stats.rejected);
      RC_ASSERT(after.nearest_miss.has_value() == alone.nearest_miss.has_value());
      ++machines;
    }
    request.slices = slices;
    const PlanResult all = plan(request);
    request.bounds = nullptr;
    RC_ASSERT(same_plans(all, plan(request)));
  }));
  if (!test::all_cases()) return;
  EXPECT_GE(machines, 100U) << "of 100 problems";
}

}  // namespace
}  // namespace scalecalc
