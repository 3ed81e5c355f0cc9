#include "config/near_names.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/errors.h"

namespace scalecalc {
namespace {

std::string error_of(CatalogKind kind, const std::string& name) {
  return test::problems_of([&] { Catalog().load(kind, name); });
}

bool suggests(const std::string& error, const std::string& name) {
  const std::size_t hint = error.find("did you mean");
  return hint != std::string::npos && error.find("'" + name + "'", hint) < error.find('?', hint);
}

TEST(NearNames, AModelWithoutItsVersionGivesEveryVersion) {
  for (const char* typed : {"llama70b", "llama-70b", "Llama 70B"}) {
    const std::string error = error_of(CatalogKind::kModel, typed);
    for (const char* name : {"llama2-70b", "llama3-70b", "llama3.1-70b", "llama3.3-70b"}) {
      EXPECT_TRUE(suggests(error, name)) << error;
    }
    EXPECT_FALSE(suggests(error, "llama3-8b")) << error;
  }
}

TEST(NearNames, AnUnknownModelMayBeGivenByItsConfig) {
  const std::string error = error_of(CatalogKind::kModel, "our-own-model");
  EXPECT_NE(error.find("'scalecalc model ./DIR/config.json'"), std::string::npos) << error;
  EXPECT_EQ(error_of(CatalogKind::kHardware, "our-own-chip").find("config.json"), std::string::npos);
}

TEST(NearNames, AChipIsFoundByItsDesignation) {
  const std::map<std::string, std::string> meant{
      {"H100-80GB", "h100-sxm"},         {"NVIDIA H100 80GB HBM3", "h100-sxm"}, {"h100-sx", "h100-sxm"},
      {"A100-SXM4-80GB", "a100-80g"},    {"NVIDIA A100-SXM4-40GB", "a100-40g"}, {"AMD Instinct MI300X OAM", "mi300x"},
      {"GeForce RTX4090 24G", "rtx4090"}};
  for (const auto& [typed, name] : meant) {
    const std::string error = error_of(CatalogKind::kHardware, typed);
    EXPECT_TRUE(suggests(error, name)) << typed << ": " << error;
  }
  EXPECT_FALSE(suggests(error_of(CatalogKind::kHardware, "H100-80GB"), "a100-80g"));
}

// A name that a person may have in mind without its version either is the only one, or asks for all that it may be.
TEST(NearNames, NoModelIsChosenAmongVersionsInSilence) {
  const Catalog catalog;
  std::map<std::string, std::vector<std::string>> versions;  // by the name without digits behind its first word
  for (const std::string& name : catalog.names(CatalogKind::kModel)) {
    const std::size_t dash = name.find('-');
    if (dash == std::string::npos || name.find('/') != std::string::npos) continue;
    const std::string family = name.substr(0, name.find_first_of("0123456789.-"));
    versions[family + name.substr(dash)].push_back(name);
  }
  for (const auto& [typed, names] : versions) {
    if (names.size() < 2 || catalog.name_of(CatalogKind::kModel, typed)) continue;
    const std::string error = error_of(CatalogKind::kModel, typed);
    for (const std::string& name : names) EXPECT_TRUE(suggests(error, name)) << typed << ": " << error;
  }
}

}  // namespace
}  // namespace scalecalc
