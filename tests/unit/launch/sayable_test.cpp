// What a launch file cannot say, beside what its stack cannot run: none of it is left out.
#include "launch/sayable.h"

#include <gtest/gtest.h>

#include <string>

#include "base/diagnostic.h"
#include "config/catalog.h"

namespace scalecalc {
namespace {

TEST(SayableRelease, HoldsAllFactsOfEveryReleaseThatAFrameworkMayWrite) {
  std::size_t added = 0;
  for (const LaunchFramework& framework : launch_frameworks()) {
    if (framework.job != LaunchJob::kTraining || framework.stack.empty()) continue;
    const std::string stack(framework.stack.substr(0, framework.stack.find('@')));
    for (const StackRelease& release : load_supports(Catalog(), stack).releases) {
      const StackRelease said = sayable_release(framework, release);
      ASSERT_GE(said.facts.size(), release.facts.size());
      added += said.facts.size() - release.facts.size();
      for (std::size_t f = 0; f < release.facts.size(); ++f) EXPECT_EQ(said.facts[f].name, release.facts[f].name);
    }
  }
  EXPECT_GT(added, 0U);
}

TEST(SayableRelease, RefusesMoreFactsThanDecideALayout) {
  const LaunchFramework& framework = launch_framework("megatron");
  StackRelease release = load_supports(Catalog(), "megatron").releases.back();
  while (release.facts.size() < kMostFacts) release.facts.push_back(release.facts.front());
  try {
    sayable_release(framework, release);
    FAIL() << "some facts were left out";
  } catch (const UserError& error) {
    EXPECT_NE(std::string(error.what()).find("facts"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace scalecalc
