#include <gtest/gtest.h>

#include "config/catalog.h"
#include "config/fields.h"
#include "config/yaml_reader.h"
#include "support/errors.h"

namespace scalecalc {
namespace {

constexpr const char* kDocument =
    "name: x\nhbm: {capacity: 95GiB, bandwidth: 3TB/s}\nnetwork:\n  - {tier: ici, rate: 1GB/s}\n  - {tier: "
    "dcn}\nlayers: [{repeat: 80}]\n";

std::string override_problem(const std::string& path, const std::string& value) {
  ConfigNode document = read_yaml(kDocument, "x.yaml");
  return test::problems_of([&] { apply_override(document, path, value, "--set hw." + path + "=" + value); });
}

TEST(ApplyOverride, ReplacesAddsAndIndexes) {
  ConfigNode document = read_yaml(kDocument, "x.yaml");
  apply_override(document, "hbm.bandwidth", "5TB/s", "--set hw.hbm.bandwidth=5TB/s");
  apply_override(document, "network.0.rate", "2GB/s", "--set hw.network.0.rate=2GB/s");
  apply_override(document, "power.tdp", "700W", "--set hw.power.tdp=700W");
  apply_override(document, "layers", "96", "--set model.layers=96");
  EXPECT_EQ(document.find("hbm")->find("bandwidth")->text, "5TB/s");
  EXPECT_EQ(document.find("hbm")->find("capacity")->text, "95GiB");
  EXPECT_EQ(document.find("network")->items[0].find("rate")->text, "2GB/s");
  EXPECT_EQ(document.find("power")->find("tdp")->text, "700W");
  EXPECT_EQ(document.find("layers")->kind, ConfigNode::Kind::kScalar);
  EXPECT_EQ(document.find("layers")->text, "96");
}

/// Repeats of the runs of `layers` after setting it, or the error.
std::string layers_set_to(const std::string& layers, const std::string& value) {
  ConfigNode document = read_yaml("layers: " + layers + "\n", "x.yaml");
  try {
    apply_override(document, "layers", value, "--set model.layers=" + value);
  } catch (const UserError& error) {
    return render(error.diagnostics().front());
  }
  std::string out;
  for (const ConfigNode& run : document.find("layers")->items) out += run.find("repeat")->text + " ";
  return out;
}

TEST(ApplyOverride, ACountOfLayersChangesTheLongestRun) {
  constexpr const char* kExperts = "[{repeat: 3, kinds: [mla/dense]}, {repeat: 58, kinds: [mla/moe]}]";
  EXPECT_EQ(layers_set_to("[{repeat: 80, kinds: [full/dense]}]", "96"), "96 ");
  EXPECT_EQ(layers_set_to("[{repeat: 80, kinds: [full/dense]}]", "1"), "1 ");
  EXPECT_EQ(layers_set_to(kExperts, "96"), "3 93 ");
  EXPECT_EQ(layers_set_to(kExperts, "4"), "3 1 ");
  // Longest in layers, not in repeats; and of two alike the first.
  EXPECT_EQ(layers_set_to("[{repeat: 5, kinds: [a]}, {repeat: 2, kinds: [a, b, c]}]", "14"), "5 3 ");
  EXPECT_EQ(layers_set_to("[{repeat: 2, kinds: [a]}, {repeat: 1, kinds: [a, b]}]", "7"), "5 1 ");
}

TEST(ApplyOverride, ACountOfLayersThatNoRepeatGivesIsRefused) {
  const std::string pairs = "[{repeat: 1, kinds: [full/dense]}, {repeat: 23, kinds: [sliding/dense, full/dense]}]";
  EXPECT_EQ(layers_set_to(pairs, "48"),
            "<command line>: error: 'layers' cannot be 48: its longest run repeats 2 layers and the others make 1\n"
            "     | --set model.layers=48\n"
            "     |                    ^~\n"
            "hint: nearest: 47 or 49; each run by itself: layers.1.repeat=N\n");
  EXPECT_EQ(layers_set_to(pairs, "2"),
            "<command line>: error: 'layers' cannot be 2: its longest run repeats 2 layers and the others make 1\n"
            "     | --set model.layers=2\n"
            "     |                    ^\n"
            "hint: nearest: 3 or more; each run by itself: layers.1.repeat=N\n");
  for (const char* value : {"0", "-1", "many", "2.5"}) {
    EXPECT_NE(layers_set_to(pairs, value).find("is not a count for its length"), std::string::npos) << value;
  }
}

TEST(ApplyOverride, ErrorsAboutItsValueAndKeyQuoteTheFlag) {
  ConfigNode document = read_yaml(kDocument, "x.yaml");
  apply_override(document, "hbm.bandwidth", "5TBs", "--set hw.hbm.bandwidth=5TBs");
  apply_override(document, "hbm.bandwith", "5TB/s", "--set hw.hbm.bandwith=5TB/s");
  Problems problems;
  Fields hbm(*document.find("hbm"), "hbm", problems);
  hbm.quantity("capacity", UnitKind::kBytes);
  hbm.quantity("bandwidth", UnitKind::kBytesPerSecond);
  hbm.finish();
  std::string shown;
  try {
    problems.throw_if_any();
  } catch (const UserError& error) {
    for (const Diagnostic& d : error.diagnostics()) shown += render(d);
  }
  EXPECT_EQ(shown,
            "<command line>: error: 'bandwidth': '5TBs' is not a bandwidth: unknown unit 'TBs'\n"
            "     | --set hw.hbm.bandwidth=5TBs\n"
            "     |                        ^~~~\n"
            "hint: did you mean '5TB/s'? accepted: 3.35TB/s, 900 GB/s, 400Gbps\n"
            "<command line>: error: unknown key 'bandwith' in hbm\n"
            "     | --set hw.hbm.bandwith=5TB/s\n"
            "     |              ^~~~~~~~\n"
            "hint: did you mean 'bandwidth'? scalecalc hw or model NAME --keys lists what --set takes\n");
}

TEST(ApplyOverride, ItemsOfAListGoByTheirNameToo) {
  const std::string text = "network: [{tier: nvlink, rate: 1}, {tier: leaf, rate: 2}]\n";
  ConfigNode document = read_yaml(text, "x.yaml");
  apply_override(document, "network.leaf.rate", "3", "--set hw.network.leaf.rate=3");
  apply_override(document, "network.0.rate", "4", "--set hw.network.0.rate=4");
  EXPECT_EQ(document.find("network")->items[0].find("rate")->text, "4");
  EXPECT_EQ(document.find("network")->items[1].find("rate")->text, "3");
  try {
    apply_override(document, "network.leef.rate", "3", "--set hw.network.leef.rate=3");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostics().at(0).hint, "did you mean 'leaf'? its items are 0 to 1, by name nvlink, leaf");
  }
}

TEST(ApplyOverride, RefusesPathsThatLeadNowhere) {
  EXPECT_EQ(override_problem("hbm.capacity.x", "1"),
            "<command line>: error: 'hbm.capacity' is '95GiB', which has no fields\n"
            "     | --set hw.hbm.capacity.x=1\n"
            "     |                       ^\n"
            "hint: set 'hbm.capacity' itself\n");
  EXPECT_EQ(override_problem("network.2.rate", "1"),
            "<command line>: error: 'network' has no item 2\n"
            "     | --set hw.network.2.rate=1\n"
            "     |                  ^\n"
            "hint: its items are 0 to 1, by name ici, dcn\n");
  EXPECT_EQ(override_problem("network.99999999999999999999.rate", "1"),
            "<command line>: error: 'network' has no item 99999999999999999999\n"
            "     | --set hw.network.99999999999999999999.rate=1\n"
            "     |                  ^~~~~~~~~~~~~~~~~~~~\n"
            "hint: its items are 0 to 1, by name ici, dcn\n");
  EXPECT_EQ(override_problem("network.first.rate", "1"),
            "<command line>: error: 'network' is a list, and 'first' is no position or name in it\n"
            "     | --set hw.network.first.rate=1\n"
            "     |                  ^~~~~\n"
            "hint: its items are 0 to 1, by name ici, dcn\n");
  EXPECT_EQ(override_problem("hbm..x", "1"),
            "<command line>: error: 'hbm..x' has an empty part\n"
            "     | --set hw.hbm..x=1\n"
            "     |              ^\n"
            "hint: write KEY=VALUE, as in hbm.bandwidth=5TB/s\n");
  EXPECT_EQ(override_problem("hbm.bandwidth", ""),
            "<command line>: error: no value for 'hbm.bandwidth'\n"
            "     | --set hw.hbm.bandwidth=\n"
            "     |          ^~~~~~~~~~~~~\n"
            "hint: write KEY=VALUE\n");
  EXPECT_NE(override_problem("", "1"), "");
  EXPECT_NE(override_problem(std::string(1000, '.'), "1"), "");
}

}  // namespace
}  // namespace scalecalc
