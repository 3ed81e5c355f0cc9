// --keys: that what it lists is what --set takes.
#include "cli/set_keys.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/environment.h"
#include "cli/run.h"

namespace scalecalc::cli {
namespace {

struct Ran {
  int exit = 0;
  std::string out;
  std::string err;
};

Ran run_keys(const std::vector<std::string>& words) {
  std::ostringstream out;
  std::ostringstream err;
  Environment env{.out = out, .err = err};
  const int exit = run(words, env);
  return {exit, std::move(out).str(), std::move(err).str()};
}

nlohmann::json keys_listed(const std::vector<std::string>& words) {
  std::vector<std::string> all = words;
  all.insert(all.end(), {"--keys", "--json"});
  const Ran ran = run_keys(all);
  EXPECT_EQ(ran.exit, 0) << ran.err;
  return nlohmann::json::parse(ran.out)["keys"];
}

const nlohmann::json* key_named(const nlohmann::json& keys, const std::string& name) {
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const auto& key) { return key["key"] == name; });
  return found == keys.end() ? nullptr : &*found;
}

TEST(SetKeys, ListsWhatAFileSaysAndWhatItCould) {
  const nlohmann::json keys = keys_listed({"hw", "h100-sxm"});
  const nlohmann::json* bandwidth = key_named(keys, "hw.hbm.bandwidth");
  ASSERT_NE(bandwidth, nullptr);
  EXPECT_EQ((*bandwidth)["value"], "3350GB/s");
  EXPECT_NE((*bandwidth)["form"].get<std::string>().find("3.35TB/s"), std::string::npos);
  ASSERT_NE(key_named(keys, "hw.network.node.switches"), nullptr) << keys.dump();
  const nlohmann::json* usable = key_named(keys, "hw.hbm.usable");
  ASSERT_NE(usable, nullptr);
  EXPECT_TRUE((*usable)["value"].is_null());
  EXPECT_NE(key_named(keys, "hw.offload.capacity"), nullptr) << "of a block that the file does not have";
  EXPECT_EQ(key_named(keys, "hw.hbm"), nullptr) << "a block cannot be set";
}

TEST(SetKeys, ShowsWhatSetChanges) {
  const nlohmann::json keys = keys_listed({"hw", "h100-sxm", "--set", "hw.hbm.bandwidth=5TB/s"});
  EXPECT_EQ((*key_named(keys, "hw.hbm.bandwidth"))["value"], "5TB/s");
}

/// Every key with one value takes that value back.
TEST(SetKeys, EveryKeyListedCanBeSet) {
  const std::vector<std::vector<std::string>> files{
      {"hw", "h100-sxm"}, {"hw", "tpu-v5p"}, {"model", "deepseek-v3"}, {"model", "gemma-2-27b"}};
  for (const std::vector<std::string>& file : files) {
    std::size_t set = 0;
    for (const nlohmann::json& key : keys_listed(file)) {
      const std::string value = key["value"].is_null() ? "" : key["value"].get<std::string>();
      const bool list = key["form"].get<std::string>().find("list") != std::string::npos;
      if (value.empty() || list) continue;
      std::vector<std::string> words = file;
      words.insert(words.end(), {"--set", key["key"].get<std::string>() + '=' + value, "--dump-yaml"});
      const Ran ran = run_keys(words);
      EXPECT_EQ(ran.exit, 0) << words.back() << ran.err;
      ++set;
    }
    EXPECT_GT(set, 15U) << file.back();
  }
}

TEST(SetKeys, AMisspeltKeyIsAnsweredByTheNearest) {
  const Ran ran = run_keys({"hw", "h100-sxm", "--set", "hw.hbm.bandwith=5TB/s"});
  EXPECT_EQ(ran.exit, 2);
  EXPECT_NE(ran.err.find("did you mean 'bandwidth'?"), std::string::npos) << ran.err;
  EXPECT_NE(ran.err.find("--keys lists"), std::string::npos) << ran.err;
}

/// Its file says how much of the label programs can allocate, which is what counts.
TEST(SetKeys, TheLabelAloneIsRefusedWhereTheUsableIsKnown) {
  const std::string label = "hw.hbm.capacity=100GB";
  const Ran alone = run_keys({"hw", "h200", "--set", label});
  EXPECT_EQ(alone.exit, 2);
  EXPECT_NE(alone.err.find("--set hw.hbm.usable=100GB"), std::string::npos) << alone.err;
  EXPECT_EQ(run_keys({"hw", "h200", "--set", label, "--set", "hw.hbm.usable=90GB"}).exit, 0);
  EXPECT_EQ(run_keys({"hw", "h100-sxm", "--set", label}).exit, 0);
}

}  // namespace
}  // namespace scalecalc::cli
