#include <gtest/gtest.h>

#include "config/catalog.h"
#include "config/fields.h"
#include "config/yaml_reader.h"

namespace scalecalc {
namespace {

constexpr const char* kDocument =
    "name: x\nhbm: {capacity: 95GiB, bandwidth: 3TB/s}\nnetwork:\n  - {tier: ici, rate: 1GB/s}\n  - {tier: "
    "dcn}\nlayers: [{repeat: 80}]\n";

std::string override_problem(const std::string& path, const std::string& value) {
  ConfigNode document = read_yaml(kDocument, "x.yaml");
  try {
    apply_override(document, path, value, "--set hw." + path + "=" + value);
  } catch (const UserError& error) {
    EXPECT_EQ(error.exit_code(), ExitCode::kQuestionWrong);
    std::string out;
    for (const Diagnostic& d : error.diagnostics()) out += render(d);
    return out;
  }
  return "";
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
            "hint: did you mean 'bandwidth'?\n");
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
            "hint: its items are 0 to 1\n");
  EXPECT_EQ(override_problem("network.99999999999999999999.rate", "1"),
            "<command line>: error: 'network' has no item 99999999999999999999\n"
            "     | --set hw.network.99999999999999999999.rate=1\n"
            "     |                  ^~~~~~~~~~~~~~~~~~~~\n"
            "hint: its items are 0 to 1\n");
  EXPECT_EQ(override_problem("network.ici.rate", "1"),
            "<command line>: error: 'network' is a list, and 'ici' is not a position in it\n"
            "     | --set hw.network.ici.rate=1\n"
            "     |                  ^~~\n"
            "hint: its items are 0 to 1\n");
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
