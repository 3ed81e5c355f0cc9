#include "collective/collective_output.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "report/render.h"
#include "support/fixtures.h"

namespace scalecalc {
namespace {

using nlohmann::ordered_json;

Output output_of(const CollectiveQuestion& question, const HardwareSpec& hw) {
  return collective_output(answer_collective(question, hw), hw);
}

CollectiveQuestion gather(std::int64_t group, std::vector<double> bytes) {
  CollectiveQuestion out;
  out.op = CollectiveOp::kAllGather;
  out.groups = {group};
  out.bytes = std::move(bytes);
  return out;
}

ordered_json collective_json(const Output& output, bool explain = false) {
  return ordered_json::parse(output_json(output, "1.0", explain));
}

TEST(CollectiveOutput, ThePromisedKeysComeFirst) {
  const ordered_json point = collective_json(output_of(gather(8, {1e9}), test::switched_chip()))["points"][0];
  std::vector<std::string> keys;
  for (const auto& [key, value] : point.items()) keys.push_back(key);
  keys.resize(8);
  EXPECT_EQ(keys, (std::vector<std::string>{"bytes", "group", "time_s", "bandwidth_time_s", "latency_s", "bound_by",
                                            "algorithm", "bytes_per_s"}));
  EXPECT_EQ(point["levels"][0]["name"], "node");
  EXPECT_EQ(point["levels"][0]["reduces"], false);
  EXPECT_FALSE(point.contains("hops")) << "there is no torus";
}

TEST(CollectiveOutput, NothingThatMovesHasNoRate) {
  const ordered_json point = collective_json(output_of(gather(1, {1e9}), test::switched_chip()))["points"][0];
  EXPECT_EQ(point["time_s"], 0);
  EXPECT_EQ(point["bytes_per_s"], nullptr);
  EXPECT_EQ(point["bound_tier"], nullptr);
  EXPECT_EQ(point["bound_by"], "none");
}

TEST(CollectiveOutput, OnePointIsShownInDetailSeveralAsATable) {
  const HardwareSpec hw = test::torus_chip();
  const std::string one = render_table(output_report(output_of(gather(8, {1e9}), hw), false), {});
  EXPECT_NE(one.find("bound by the bandwidth of ici"), std::string::npos) << one;
  EXPECT_NE(one.find("gain of the second direction"), std::string::npos) << one;
  const std::string several = render_table(output_report(output_of(gather(8, {1e3, 1e9}), hw), false), {});
  EXPECT_EQ(several.find("In detail"), std::string::npos) << several;
  EXPECT_NE(several.find("latency"), std::string::npos);
}

TEST(CollectiveOutput, EveryFigureOfAPointHasItsWorking) {
  const ordered_json json = collective_json(output_of(gather(8, {1e9}), test::torus_chip()), true);
  std::vector<std::string> names;
  for (const auto& step : json["explain"][0]["steps"]) names.push_back(step["name"]);
  for (const char* name : {"time", "bandwidth time", "hops' latency", "time of a hop", "latency-bound below",
                           "without wraparound over with it", "gain of the second direction"}) {
    EXPECT_NE(std::find(names.begin(), names.end(), name), names.end()) << name;
  }
}

TEST(CollectiveOutput, FarPointsOfACurveCarryNoWorking) {
  std::vector<double> sizes;
  for (int i = 1; i <= 20; ++i) sizes.push_back(1e6 * i);
  const Output output = output_of(gather(8, sizes), test::torus_chip());
  const auto steps = [&](std::size_t record) {
    std::size_t out = 0;
    for (const Figure& f : output.blocks[0].records[record].figures) out += f.steps().size();
    return out;
  };
  EXPECT_GT(steps(0), 0u);
  EXPECT_EQ(steps(19), 0u);
  EXPECT_EQ(collective_json(output)["points"][19]["time_s"], 20e6 / 100e9);
}

}  // namespace
}  // namespace scalecalc
