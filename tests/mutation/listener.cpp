// In a build of mutants: writes to $SCALECALC_REACHED, for each test, how long it took and the mutants it came by.
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "base/mutant.h"
#include "gtest/gtest.h"

namespace {

class ReachedMutants : public testing::EmptyTestEventListener {
 public:
  explicit ReachedMutants(const char* path) : out_(path, std::ios::app) {}

 private:
  void OnTestStart(const testing::TestInfo&) override {
    std::memset(scalecalc::mutation::reached, 0, sizeof scalecalc::mutation::reached);
  }
  void OnTestEnd(const testing::TestInfo& test) override {
    out_ << test.test_suite_name() << '.' << test.name() << ' ' << (test.result()->Passed() ? "passed" : "failed")
         << ' ' << test.result()->elapsed_time();
    for (int id = 1; id < scalecalc::mutation::kMost; ++id) {
      if (scalecalc::mutation::reached[id] != 0) out_ << ' ' << id;
    }
    out_ << std::endl;
  }
  std::ofstream out_;
};

const bool kListening = [] {
  if (const char* path = std::getenv("SCALECALC_REACHED")) {
    testing::UnitTest::GetInstance()->listeners().Append(new ReachedMutants(path));
  }
  return true;
}();

}  // namespace
