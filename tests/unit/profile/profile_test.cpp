// Figures are derived by hand from the times and shapes in tests/data/profiles and the round rates of switched_chip():
// 100 TFLOP/s, 1 TB/s.
#include "profile/profile.h"

#include <gtest/gtest.h>
#include <zlib.h>

#include "support/errors.h"
#include "support/scratch.h"
#include "unit/profile/recordings.h"

namespace scalecalc {
namespace {

using test::idle_us;
using test::kernel_of;
using test::profiled;
using test::recorded;
using test::work_us;

constexpr double kExact = 1e-6;

// Step 1 from 100 (its first kernel) to 600 (the next step's), step 2 from 600 to 830, its last end. In both: matmul
// 40, 10 queued, elementwise 10, of the all-reduce's 30 the 25 that outlast it, copy 20; before the copy the host is
// late by 115 and the copy starts 10 after its launch. Step 1 then waits for 270: the host launches 220 into it.
TEST(Profile, EveryMomentOfAStepIsCountedOnce) {
  const ProfileAnswer found = profiled(recorded("kineto.json"));
  EXPECT_NEAR(found.step_s * 1e6, (500 + 230) / 2.0, kExact);
  EXPECT_NEAR(work_us(found, DeviceWork::kMatmul), 40, kExact);
  EXPECT_NEAR(work_us(found, DeviceWork::kVector), 10, kExact);
  EXPECT_NEAR(work_us(found, DeviceWork::kCollective), 25, kExact);
  EXPECT_NEAR(work_us(found, DeviceWork::kCopy), 20, kExact);
  EXPECT_NEAR(idle_us(found, IdleCause::kHost), 115 + 220 / 2.0, kExact);
  EXPECT_NEAR(idle_us(found, IdleCause::kQueued), 10 + 10 + 50 / 2.0, kExact);
  EXPECT_NEAR(idle_us(found, IdleCause::kUnknown), 0, kExact);
  EXPECT_NEAR(found.communication_s * 1e6, 30, kExact);
  EXPECT_NEAR(found.hidden_s * 1e6, 5, kExact);
  EXPECT_DOUBLE_EQ(found.recognised, 1);
  EXPECT_EQ(found.ranks.front().rank, 3);
  EXPECT_EQ(found.recorded_chip, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(found.steps_how, "ProfilerStep#");
}

TEST(Profile, KernelsStandBesideTheirRoofline) {
  const ProfileAnswer found = profiled(recorded("kineto.json"));
  const ProfiledKernel* matmul = kernel_of(found, DeviceWork::kMatmul);
  ASSERT_NE(matmul, nullptr);
  EXPECT_EQ(matmul->what, "mm [1000,1000] x [1000,1000] bf16");  // of the innermost operation
  EXPECT_NEAR(*matmul->flops, 2e9, 1);
  EXPECT_NEAR(*matmul->roofline_s * 1e6, 20, kExact);
  EXPECT_NEAR(*matmul->of_peak, 0.5, kExact);
  EXPECT_EQ(matmul->bound_by, "compute");
  EXPECT_NEAR(*matmul->useful, 1e6 / (1024.0 * 1024.0), kExact);  // 8 x 8 tiles of 128 x 128
  const ProfiledKernel* vector = kernel_of(found, DeviceWork::kVector);
  ASSERT_NE(vector, nullptr);
  EXPECT_NEAR(*vector->bytes, 6e6, 1);  // two read, one written
  EXPECT_NEAR(*vector->of_roofline, 0.6, kExact);
  const ProfiledKernel* collective = kernel_of(found, DeviceWork::kCollective);
  ASSERT_NE(collective, nullptr);
  EXPECT_EQ(collective->what, "allreduce over 8");
  EXPECT_NEAR(*collective->bytes, 2e6, 1);
  EXPECT_GE(*collective->roofline_s, 2 * 7.0 / 8 * 2e6 / 400e9);
  EXPECT_NEAR(*kernel_of(found, DeviceWork::kCopy)->bytes, 1e6, 1);
}

// On XLA's line parents contain what they run: while.4 keeps the 20 of its 110 in which nothing else runs.
TEST(Profile, TraceViewerCountsLeavesOfTheOpsLineAlone) {
  const ProfileAnswer found = profiled(recorded("trace-viewer.json"));
  EXPECT_EQ(found.format, RecordingFormat::kTraceViewer);
  EXPECT_NEAR(found.step_s * 1e6, (200 + 190) / 2.0, kExact);
  EXPECT_NEAR(work_us(found, DeviceWork::kMatmul), 60, kExact);
  EXPECT_NEAR(work_us(found, DeviceWork::kVector), 30, kExact);
  EXPECT_NEAR(work_us(found, DeviceWork::kUnknown), 20, kExact);
  EXPECT_NEAR(work_us(found, DeviceWork::kCollective), 40, kExact);
  EXPECT_NEAR(idle_us(found, IdleCause::kUnknown), 45, kExact);
  EXPECT_NEAR(*kernel_of(found, DeviceWork::kMatmul)->of_peak, 20 / 60.0, kExact);
}

TEST(Profile, GzipIsReadAsWhatIsInIt) {
  const test::Scratch scratch;
  const std::string path = scratch.path("trace.json.gz");
  std::ostringstream text;
  text << std::ifstream(recorded("kineto.json")).rdbuf();
  const std::string plain = text.str();
  const gzFile out = gzopen(path.c_str(), "wb");
  gzwrite(out, plain.data(), static_cast<unsigned>(plain.size()));
  gzclose(out);
  EXPECT_EQ(profiled(path).step_s, profiled(recorded("kineto.json")).step_s);
  std::filesystem::resize_file(path, std::filesystem::file_size(path) - 20);
  EXPECT_NE(test::problems_of([&] { profiled(path); }).find("ends within its data"), std::string::npos);
}

// Whatever is cut off, and wherever: refused with a place, never figures of the rest.
TEST(Profile, AFileThatIsCutOffIsRefused) {
  const test::Scratch scratch;
  std::ostringstream text;
  text << std::ifstream(recorded("kineto.json")).rdbuf();
  const std::string whole = text.str();
  const std::size_t end = whole.find_last_of('}');
  for (std::size_t cut = 1; cut <= end; cut += 97) {
    const std::string path = scratch.put("cut.json", whole.substr(0, cut));
    EXPECT_NE(test::problems_of([&] { profiled(path); }), "") << cut;
  }
  const std::string mixed = whole.substr(0, whole.size() / 2) + "{\"ph\": \"X\", " + whole.substr(whole.size() / 2);
  EXPECT_NE(test::problems_of([&] { profiled(scratch.put("mixed.json", mixed)); }).find("mixed.json:"),
            std::string::npos);
}

TEST(Profile, HostileEventsAreRefusedWithTheirPlace) {
  const test::Scratch scratch;
  const auto refused = [&](const std::string& event) {
    const std::string path = scratch.put("bad.json", "{\"traceEvents\": [\n" + event + "]}");
    return test::problems_of([&] { profiled(path); });
  };
  const std::string kernel = R"({"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,)";
  EXPECT_NE(refused(kernel + R"("ts":NaN,"dur":1})").find("bad.json:2:"), std::string::npos);
  EXPECT_NE(refused(kernel + R"("ts":1})").find("dur is missing"), std::string::npos);
  EXPECT_NE(refused(kernel + R"("ts":1,"dur":-3})").find("takes -3 microseconds"), std::string::npos);
  EXPECT_NE(refused(kernel + R"("ts":1,"dur":1e300})").find("dur is '1e300'"), std::string::npos);
  EXPECT_NE(refused(kernel + R"("ts":1,"ts":2,"dur":1})").find("two members 'ts'"), std::string::npos);
  EXPECT_NE(refused(std::string(500, '[') + std::string(500, ']')), "");
  EXPECT_NE(refused(R"({"name": ")"
                    "\x01"
                    R"("})")
                .find("control character"),
            std::string::npos);
  EXPECT_NE(refused(R"({"name": "\ud800"})").find("surrogate"), std::string::npos);
  EXPECT_NE(refused("").find("no device did anything"), std::string::npos);
  EXPECT_NE(test::problems_of([&] { profiled(scratch.put("empty", "")); }).find("the file is empty"),
            std::string::npos);
  EXPECT_NE(test::problems_of([&] { profiled(scratch.put("x", "hello")); }).find("is no recording"), std::string::npos);
  EXPECT_NE(test::problems_of([&] { profiled(scratch.path("none")); }).find("cannot be read"), std::string::npos);
}

TEST(Profile, RanksAreHeldAgainstEachOther) {
  const test::Scratch scratch;
  std::ostringstream text;
  text << std::ifstream(recorded("kineto.json")).rdbuf();
  std::string slow = text.str();
  for (std::size_t at = slow.find("\"dur\": 40.0"); at != std::string::npos; at = slow.find("\"dur\": 40.0")) {
    slow.replace(at, 11, "\"dur\": 48.0");
  }
  const ProfileAnswer found = answer(
      ProfileQuestion{.files = {recorded("kineto.json"), scratch.put("slow.json", slow)}}, test::switched_chip());
  ASSERT_EQ(found.ranks.size(), 2U);
  EXPECT_NEAR((found.ranks[1].compute_s() - found.ranks[0].compute_s()) * 1e6, 8, kExact);
  EXPECT_NEAR(work_us(found, DeviceWork::kMatmul), 44, kExact);
}

TEST(Profile, RanksOfOneRunAreRecordedAlike) {
  const std::string said = test::problems_of([&] {
    answer(ProfileQuestion{.files = {recorded("kineto.json"), recorded("trace-viewer.json")}}, test::switched_chip());
  });
  EXPECT_NE(said.find("trace-viewer.json"), std::string::npos) << said;
  EXPECT_NE(said.find("PyTorch profiler"), std::string::npos) << said;
}

}  // namespace
}  // namespace scalecalc
