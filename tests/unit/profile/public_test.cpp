// Public recordings (tests/data/profiles/public): what a reader of their own JSON adds up, in microseconds: the longest
// time between events of devices, or the step where one is marked, and the time in which any of them runs.
#include <gtest/gtest.h>

#include <numeric>

#include "profile/hlo_program.h"
#include "unit/profile/recordings.h"

namespace scalecalc {
namespace {

struct Public {
  const char* file;
  double step_us;  ///< 0: its step is not all of it, nor marked on the device
  double busy_us;
};
constexpr std::array kPublic{Public{"tracelens-qwen-h100.json.gz", 34892.421, 31905.483},
                             Public{"tracelens-mi210.json.gz", 5979.503, 5343.370},
                             Public{"tracelens-triton.json.gz", 12549.032, 12549.021},
                             Public{"tracelens-vllm-decode.json.gz", 10743.182, 10717.697},
                             Public{"tracelens-sglang-decode.json.gz", 0, 0},
                             Public{"hta-alexnet.json.gz", 12920244, 66141},
                             Public{"hta-mi250.json.gz", 8911.887, 149.042}};

ProfileAnswer read_public(const std::string& file) { return test::profiled(test::recorded("public/" + file)); }

TEST(PublicRecordings, AreReadWhole) {
  for (const Public& expected : kPublic) {
    const ProfileAnswer found = read_public(expected.file);
    const double busy = std::accumulate(found.work_s.begin(), found.work_s.end(), 0.0);
    const double idle = std::accumulate(found.idle_s.begin(), found.idle_s.end(), 0.0);
    EXPECT_GE(found.recognised, 0.95) << expected.file;
    EXPECT_NEAR(busy + idle, found.step_s, 1e-9 * found.step_s) << expected.file;
    if (expected.step_us == 0) continue;
    EXPECT_NEAR(found.step_s * 1e6 / expected.step_us, 1, 1e-4) << expected.file;
    EXPECT_NEAR(busy * 1e6 / expected.busy_us, 1, 1e-4) << expected.file;
  }
}

// Qwen1.5 0.5B on 16 x 559 tokens: 24 layers of four matrices of 1024 x 1024 and three of 1024 x 2816.
TEST(PublicRecordings, FlopsAreTheModels) {
  const ProfileAnswer found = read_public("tracelens-qwen-h100.json.gz");
  double flops = 0;
  for (const ProfiledKernel& kernel : found.kernels) {
    if (kernel.work == DeviceWork::kMatmul) flops += kernel.flops.value_or(0);
  }
  constexpr double kModel = 24 * (4.0 * 1024 * 1024 + 3.0 * 1024 * 2816) * 2 * 16 * 559;
  EXPECT_NEAR(flops / kModel, 1, 0.02);
}

// Ten rounds of a gather over eight devices and a sum over four, each with five of a scatter and a sum over eight.
TEST(PublicRecordings, AProgramWithoutTripCountsSaysSo) {
  const HloProgram p = hlo_program(read_hlo(test::recorded("public/primus-tiny.hlo")), test::switched_chip());
  EXPECT_EQ(p.collectives.size(), 4U);
  const auto says = [](const Assumption& a) { return a.text.find("do not say how often") != std::string::npos; };
  EXPECT_TRUE(std::any_of(p.assumptions.begin(), p.assumptions.end(), says));
}

}  // namespace
}  // namespace scalecalc
