// What frameworks call the models that they launch.
#include <gtest/gtest.h>

#include <set>

#include "config/catalog.h"
#include "launch/framework.h"

namespace scalecalc {
namespace {

LaunchTerms terms_of(std::string_view framework, const LaunchedModel& model, std::string* note = nullptr) {
  LaunchTerms terms;
  terms.words["model"] = "ours";
  const std::string said = name_model(launch_framework(framework), model, terms);
  if (note != nullptr) *note = said;
  return terms;
}

TEST(LaunchNames, AFrameworkIsToldItsOwnNameOfAModel) {
  const LaunchedModel deepseek{.catalog = "deepseek-v3", .repository = "deepseek-ai/DeepSeek-V3"};
  EXPECT_EQ(terms_of("maxtext", deepseek).word("model"), "deepseek3-671b");
  EXPECT_EQ(terms_of("torchtitan", deepseek).word("model"), "deepseek_v3");
  EXPECT_EQ(terms_of("torchtitan", deepseek).word("flavor"), "671B");
  EXPECT_EQ(terms_of("vllm", deepseek).word("model"), "deepseek-ai/DeepSeek-V3");
  EXPECT_EQ(terms_of("megatron", deepseek).word("model"), "ours");  // by its shapes
}

TEST(LaunchNames, WhatAFrameworkDoesNotKnowIsLeftToTheReader) {
  std::string note;
  EXPECT_EQ(terms_of("maxtext", {.catalog = "yi-34b", .repository = "01-ai/Yi-34B"}, &note).word("model"), "MODEL");
  EXPECT_NE(note.find("ours"), std::string::npos);
  EXPECT_NE(note.find("MaxText"), std::string::npos);
  EXPECT_EQ(terms_of("sglang", {}, &note).word("model"), "MODEL");
  EXPECT_NE(note.find("Hugging Face"), std::string::npos);
}

TEST(LaunchNames, EveryModelOfATableIsOneOfTheCatalogAndStandsOnce) {
  const Catalog catalog;
  for (const LaunchFramework& framework : launch_frameworks()) {
    std::set<std::string_view> seen;
    for (const LaunchModelName& known : framework.models) {
      EXPECT_EQ(catalog.name_of(CatalogKind::kModel, std::string(known.model)), known.model) << framework.name;
      EXPECT_TRUE(seen.insert(known.model).second) << known.model;
    }
  }
}

}  // namespace
}  // namespace scalecalc
