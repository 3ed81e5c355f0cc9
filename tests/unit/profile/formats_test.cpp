// XPlane and Nsight Systems' SQLite, written byte by byte and row by row as their profilers write them.
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "support/errors.h"
#include "support/scratch.h"
#include "support/wire_fields.h"
#include "unit/profile/recordings.h"

namespace scalecalc {
namespace {

using test::idle_us;
using test::profiled;
using test::work_us;

constexpr double kNear = 1e-6;

using test::number_field;
using test::text_field;

std::string map_entry(unsigned field, std::uint64_t key, const std::string& message) {
  return text_field(field, number_field(1, key) + text_field(2, message));
}
std::string xevent(std::uint64_t metadata, std::uint64_t offset_ps, std::uint64_t duration_ps) {
  return text_field(4, number_field(1, metadata) + number_field(2, offset_ps) + number_field(3, duration_ps));
}

/// One module run of 100 us on a TPU: a product of 60 us, an all-reduce of 30 us, 10 us idle between them.
std::string xspace() {
  const std::string product = number_field(1, 1) + text_field(2, "%fusion.1 = bf16[1000,1000] fusion(...)") +
                              text_field(4, "fusion.1") +
                              text_field(5, number_field(1, 1) + text_field(5, "convolution fusion")) +
                              text_field(5, number_field(1, 2) + number_field(3, 2'000'000'000)) +
                              text_field(5, number_field(1, 3) + number_field(4, 6'000'000));
  const std::string reduce =
      number_field(1, 2) + text_field(2, "all-reduce.2") + text_field(5, number_field(1, 1) + number_field(7, 4));
  const std::string run = number_field(1, 3) + text_field(2, "jit_step(9)");
  const auto stat = [](std::uint64_t id, const std::string& name) {
    return map_entry(5, id, number_field(1, id) + text_field(2, name));
  };
  const std::string ops = text_field(2, "XLA Ops") + number_field(3, 1'700'000'000'000'000'000) +
                          xevent(1, 0, 60'000'000) + xevent(2, 70'000'000, 30'000'000);
  const std::string modules =
      text_field(2, "XLA Modules") + number_field(3, 1'700'000'000'000'000'000) + xevent(3, 0, 100'000'000);
  const std::string plane = number_field(1, 1) + text_field(2, "/device:TPU:0") + text_field(3, ops) +
                            text_field(3, modules) + map_entry(4, 1, product) + map_entry(4, 2, reduce) +
                            map_entry(4, 3, run) + stat(1, "hlo_category") + stat(2, "model_flops") +
                            stat(3, "bytes_accessed") + stat(4, "all-reduce") + stat(5, "device_type_string") +
                            text_field(6, number_field(1, 5) + text_field(5, "TPU v4"));
  return text_field(1, plane) + text_field(1, number_field(1, 2) + text_field(2, "/host:CPU")) + text_field(4, "host");
}

TEST(XPlane, EventsAreJoinedToTheirMetadata) {
  const test::Scratch scratch;
  const ProfileAnswer found = profiled(scratch.put("run.xplane.pb", xspace()));
  EXPECT_EQ(found.format, RecordingFormat::kXPlane);
  EXPECT_EQ(found.recorded_chip, "TPU v4");
  EXPECT_NEAR(found.step_s * 1e6, 100, kNear);
  EXPECT_NEAR(work_us(found, DeviceWork::kMatmul), 60, kNear);
  EXPECT_NEAR(work_us(found, DeviceWork::kCollective), 30, kNear);  // by a reference among the names of statistics
  EXPECT_NEAR(idle_us(found, IdleCause::kUnknown), 10, kNear);
  EXPECT_NEAR(*test::kernel_of(found, DeviceWork::kMatmul)->flops, 2e9, 1);
}

TEST(XPlane, WhatIsCutOffOrCopiedAsTextIsRefused) {
  const test::Scratch scratch;
  const std::string whole = xspace();
  // Between two planes a shorter file is a whole one, as Protocol Buffers have it.
  const std::size_t first_plane = whole.find("/host:CPU") - 6;
  for (std::size_t cut = 3; cut < first_plane; cut += 7) {
    const std::string path = scratch.put("cut.pb", whole.substr(0, cut));
    EXPECT_NE(test::problems_of([&] { profiled(path); }), "") << cut;
  }
  std::string as_text;
  for (const char c : whole) as_text += (c & 0x80) != 0 ? "\xEF\xBF\xBD" : std::string(1, c);
  EXPECT_NE(test::problems_of([&] { profiled(scratch.put("text.pb", as_text)); }).find("at byte"), std::string::npos);
}

std::string nsight_file(const test::Scratch& scratch) {
  const std::string path = scratch.path("report.sqlite");
  sqlite3* db = nullptr;
  sqlite3_open(path.c_str(), &db);
  // Step 1: product 0..40, launched at -50; all-reduce 40..70 on another stream. Step 2 starts at 200, launched at 150.
  const char* rows =
      "CREATE TABLE StringIds(id INTEGER, value TEXT);"
      "INSERT INTO StringIds VALUES (1,'sm80_xmma_gemm_f16'), (2,'ncclDevKernel_AllReduce_Sum_f16_RING_LL'),"
      " (3,'iteration 1'), (4,'iteration 2');"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INT, \"end\" INT, deviceId INT, streamId INT, correlationId INT,"
      " globalPid INT, demangledName INT, shortName INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (100000,140000,0,7,1,33554432,1,1),"
      " (140000,170000,0,9,2,33554432,2,2), (300000,340000,0,7,3,33554432,1,1);"
      "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INT, \"end\" INT, correlationId INT, globalTid INT, nameId INT);"
      "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (50000,51000,1,33554433,0), (52000,53000,2,33554433,0),"
      " (250000,251000,3,33554433,0), (1,2,3,67108865,0);"
      "CREATE TABLE NVTX_EVENTS(start INT, \"end\" INT, eventType INT, text TEXT, textId INT, globalTid INT);"
      "INSERT INTO NVTX_EVENTS VALUES (40000,200000,59,NULL,3,33554433), (240000,345000,59,NULL,4,33554433);";
  char* wrong = nullptr;
  EXPECT_EQ(sqlite3_exec(db, rows, nullptr, nullptr, &wrong), SQLITE_OK) << wrong;
  sqlite3_close(db);
  return path;
}

TEST(Nsight, KernelsLaunchesAndRangesAreJoined) {
  const test::Scratch scratch;
  const ProfileAnswer found = profiled(nsight_file(scratch));
  EXPECT_EQ(found.format, RecordingFormat::kNsight);
  EXPECT_EQ(found.steps_how, "ranges called iteration");
  EXPECT_NEAR(found.step_s * 1e6, (200 + 40) / 2.0, kNear);
  EXPECT_NEAR(work_us(found, DeviceWork::kMatmul), 40, kNear);
  EXPECT_NEAR(work_us(found, DeviceWork::kCollective), 30 / 2.0, kNear);
  EXPECT_NEAR(idle_us(found, IdleCause::kHost), 80 / 2.0, kNear);
  EXPECT_NEAR(idle_us(found, IdleCause::kQueued), 50 / 2.0, kNear);
}

TEST(Nsight, ADamagedDatabaseIsRefused) {
  const test::Scratch scratch;
  const std::string path = nsight_file(scratch);
  std::filesystem::resize_file(path, 5000);
  EXPECT_NE(test::problems_of([&] { profiled(path); }), "");
  sqlite3* db = nullptr;
  const std::string other = scratch.path("other.sqlite");
  sqlite3_open(other.c_str(), &db);
  sqlite3_exec(db, "CREATE TABLE t(a)", nullptr, nullptr, nullptr);
  sqlite3_close(db);
  EXPECT_NE(test::problems_of([&] { profiled(other); }).find("CUPTI_ACTIVITY_KIND_KERNEL"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
