// The collectives of the book commands against the planner's channels: one set of formulas, so their exact convention
// is the channel, and the others differ from it by the shares they drop.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "collective/collective_place.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

bool close(double a, double b) { return std::abs(a - b) <= 1e-12 * std::max(std::abs(a), std::abs(b)); }

struct Asked {
  HardwareSpec hw;
  CollectiveGroup group;
  Group placed;  ///< the same, as the planner describes it
  Slice slice;
};

Asked random_torus() {
  Asked out{.hw = test::torus_chip()};
  std::vector<CollectiveAxis> axes;
  std::int64_t chips = 1;
  for (const char* name : {"X", "Y", "Z"}) {
    const CollectiveAxis axis{name, *rc::gen::element<std::int64_t>(1, 2, 4, 6, 16), *rc::gen::arbitrary<bool>()};
    out.placed.axes[axes.size()] = {.size = axis.size, .ring = axis.wraps};
    axes.push_back(axis);
    chips *= axis.size;
    out.slice.shape.push_back(axis.size);
  }
  const std::int64_t slices = *rc::gen::element<std::int64_t>(1, 1, 2, 8);
  out.placed.tiers[1] = slices;
  out.group = torus_group(out.hw, axes, slices);
  return out;
}

Asked random_switched() {
  Asked out{.hw = test::switched_chip()};
  for (Tier& tier : out.hw.network) {
    tier.switched.in_network_reduction = *rc::gen::arbitrary<bool>();
    tier.switched.oversubscription = *rc::gen::element(1.0, 4.0);
    tier.switched.latency_per = *rc::gen::element(LatencyPer::kOperation, LatencyPer::kMessage);
    tier.switched.algorithm = *rc::gen::element(MessageOrder::kTree, MessageOrder::kRing);
  }
  const std::int64_t size = *rc::gen::element<std::int64_t>(2, 4, 8, 16, 32, 64, 256);
  const std::int64_t inner = *rc::gen::element<std::int64_t>(1, 2, 4, 8, 16, 64);
  out.group = switched_group(out.hw, size, inner);
  for (const CollectiveLevel& level : out.group.levels) out.placed.tiers[level.tier] = level.members;
  return out;
}

double channel_time(const Channel<double>& channel, CollectiveOp op, double bytes, double held) {
  switch (op) {
    case CollectiveOp::kAllGather:
    case CollectiveOp::kReduceScatter: return all_gather_time(channel, Bytes(bytes)).value();
    case CollectiveOp::kAllReduce: return all_reduce_time(channel, Bytes(bytes)).value();
    default: break;  // the planner has none with a root
  }
  return all_to_all_time(channel, Bytes(held)).value();
}

RC_GTEST_PROP(Collectives, ExactIsThePlannersChannel, ()) {
  const Asked asked = *rc::gen::arbitrary<bool>() ? random_torus() : random_switched();
  RC_PRE(asked.group.size() > 1);
  Efficiency efficiency = asked.hw.efficiency;
  efficiency.link_scale_up.value = 0.8;
  efficiency.in_network_gain.value = *rc::gen::element<double>(1.0, 1.3, 2.0);
  ServingEfficiency& kernels = efficiency.serving;
  kernels.latency_scale_up.value = *rc::gen::element<double>(0, 4e-6);
  kernels.latency_scale_out.value = *rc::gen::element<double>(0, 20e-6);
  kernels.latency_growth.value = *rc::gen::element<double>(0, 0.25);
  kernels.all_to_all_scale_up.value = *rc::gen::element<double>(0, 25e-6);
  kernels.collective_ramp.value = *rc::gen::element<double>(0, 6e-6);
  kernels.collective_factor.value = *rc::gen::element<double>(1, 2.4);
  CollectiveKernels& training = efficiency.collectives;
  training.latency_scale_up.value = *rc::gen::element<double>(0, 7e-6);
  training.latency_scale_out.value = *rc::gen::element<double>(0, 20e-6);
  training.latency_growth.value = *rc::gen::element<double>(0, 0.65);
  training.ring_hop_scale_up.value = *rc::gen::element<double>(0, 2e-6);
  training.ring_hop_scale_out.value = *rc::gen::element<double>(0, 8e-6);
  const bool serving = *rc::gen::arbitrary<bool>();
  const auto op = *rc::gen::element(CollectiveOp::kAllGather, CollectiveOp::kReduceScatter, CollectiveOp::kAllReduce,
                                    CollectiveOp::kAllToAll);
  const double bytes = *rc::gen::element<double>(1e3, 1e6, 1e9);
  // Elements: what inRange draws grows with the number of the try.
  const double top_k = op == CollectiveOp::kAllToAll ? *rc::gen::element<double>(0, 1, 2, 4, 8) : 0;
  const double size = static_cast<double>(asked.group.size());
  const CollectiveTime found = collective_time(
      collective_network(asked.hw, efficiency, serving), asked.group,
      {.op = op, .bytes = BytesOf<Traced>(bytes), .convention = CollectiveConvention::kExact, .top_k = top_k});
  const Routing routing{.top_k = top_k == 0 ? 1 : std::min(top_k, size)};
  const Channel<double> channel = make_channel(
      asked.hw, asked.slice, read_network(Reader<double>{}, asked.hw, efficiency, serving), asked.placed, "", routing);
  const double held = bytes / size * (top_k == 0 ? 1 : std::min(top_k / size, 1.0));
  RC_ASSERT(asked.group.size() == asked.placed.size());
  RC_ASSERT(close(value_of(found.time), channel_time(channel, op, bytes, held)));
}

RC_GTEST_PROP(Collectives, SendingToTheNeighbourIsThePlannersSend, ()) {
  const bool torus = *rc::gen::arbitrary<bool>();
  const HardwareSpec hw = torus ? test::torus_chip() : test::switched_chip();
  const std::int64_t size = *rc::gen::element<std::int64_t>(2, 4, 8);
  const std::int64_t inner = torus ? 8 : *rc::gen::element<std::int64_t>(1, 2, 8, 16);
  const CollectiveMesh mesh{.axes = {{"X", size}, {"Y", inner}}, .over = {"X"}};
  const CollectivePlace place = place_collective(hw, mesh);
  Group group;
  if (torus) group.axes[0] = {.size = size, .ring = place.group.axes.at(0).wraps};
  for (const CollectiveLevel& level : place.group.levels) group.tiers[level.tier] = level.members;
  const double bytes = *rc::gen::element<double>(1e3, 1e9);
  const PermuteTime found =
      permute_time(collective_network(hw, hw.efficiency), mesh, place, {.bytes = BytesOf<Traced>(bytes)});
  const Channel<double> channel =
      make_channel(hw, Slice{}, read_network(Reader<double>{}, hw, hw.efficiency), group, "");
  RC_ASSERT(close(value_of(found.time), send_time(channel, Bytes(bytes)).value()));
}

/// Where the conventions differ they drop shares below one, so they order: exact, book, first order on the torus.
RC_GTEST_PROP(Collectives, ConventionsOrder, ()) {
  const Asked asked = random_torus();
  RC_PRE(asked.group.size() > 1);
  const CollectiveNetwork network = collective_network(asked.hw, ideal_efficiency(asked.hw.efficiency));
  const auto op = static_cast<CollectiveOp>(*rc::gen::inRange(0, 8));
  const auto time = [&](CollectiveConvention convention) {
    return value_of(
        collective_time(network, asked.group, {.op = op, .bytes = BytesOf<Traced>(1e9), .convention = convention})
            .bandwidth_time);
  };
  const double exact = time(CollectiveConvention::kExact);
  const double book = time(CollectiveConvention::kBook);
  const double first = time(CollectiveConvention::kFirstOrder);
  RC_ASSERT(exact <= book * (1 + 1e-12));
  RC_ASSERT(book <= first * (1 + 1e-12));
  RC_ASSERT(first <= 2 * exact * (1 + 1e-12));
}

/// A root's links carry what those of every member of an all-gather do, or more; a broadcast moves what a gather moves
/// and the root's own part.
RC_GTEST_PROP(Collectives, ARootIsNeverFasterThanAll, ()) {
  const Asked asked = *rc::gen::arbitrary<bool>() ? random_torus() : random_switched();
  RC_PRE(asked.group.size() > 1);
  const CollectiveNetwork network = collective_network(asked.hw, ideal_efficiency(asked.hw.efficiency));
  const auto convention = static_cast<CollectiveConvention>(*rc::gen::inRange(0, 3));
  const auto time = [&](CollectiveOp op) {
    return value_of(
        collective_time(network, asked.group, {.op = op, .bytes = BytesOf<Traced>(1e9), .convention = convention})
            .bandwidth_time);
  };
  RC_ASSERT(close(time(CollectiveOp::kGather), time(CollectiveOp::kScatter)));
  RC_ASSERT(close(time(CollectiveOp::kBroadcast), time(CollectiveOp::kReduce)));
  RC_ASSERT(time(CollectiveOp::kAllGather) <= time(CollectiveOp::kGather) * (1 + 1e-12));
  RC_ASSERT(time(CollectiveOp::kGather) <= time(CollectiveOp::kBroadcast) * (1 + 1e-12));
}

/// In every convention: an all-reduce moves twice a gather's bytes where nothing reduces in the network, and waits no
/// longer than the two; more bytes never take
/// less time, and losing a wraparound never helps.
RC_GTEST_PROP(Collectives, SumsAndMonotonicity, ()) {
  Asked asked = *rc::gen::arbitrary<bool>() ? random_torus() : random_switched();
  for (Tier& tier : asked.hw.network) tier.switched.in_network_reduction = false;
  const CollectiveNetwork network = collective_network(asked.hw, ideal_efficiency(asked.hw.efficiency));
  const auto convention = static_cast<CollectiveConvention>(*rc::gen::inRange(0, 3));
  const auto time = [&](CollectiveOp op, double bytes) {
    return value_of(
        collective_time(network, asked.group, {.op = op, .bytes = BytesOf<Traced>(bytes), .convention = convention})
            .time);
  };
  const auto moving = [&](CollectiveOp op, double bytes) {
    return value_of(
        collective_time(network, asked.group, {.op = op, .bytes = BytesOf<Traced>(bytes), .convention = convention})
            .bandwidth_time);
  };
  const double bytes = *rc::gen::element<double>(1e3, 1e6, 1e9);
  RC_ASSERT(close(moving(CollectiveOp::kAllReduce, bytes),
                  moving(CollectiveOp::kReduceScatter, bytes) + moving(CollectiveOp::kAllGather, bytes)));
  RC_ASSERT(time(CollectiveOp::kAllReduce, bytes) <=
            (time(CollectiveOp::kReduceScatter, bytes) + time(CollectiveOp::kAllGather, bytes)) * (1 + 1e-12));
  for (const CollectiveOp op : {CollectiveOp::kAllGather, CollectiveOp::kAllReduce, CollectiveOp::kAllToAll}) {
    const double before = time(op, bytes);
    RC_ASSERT(before <= time(op, 2 * bytes));
    for (CollectiveAxis& axis : asked.group.axes) axis.wraps = false;
    RC_ASSERT(before <= time(op, bytes) * (1 + 1e-12));
  }
}

}  // namespace
}  // namespace scalecalc
