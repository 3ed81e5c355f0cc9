// rocprofv3's JSON and CSV, with the members and columns of ROCprofiler-SDK's documentation
// (docs/how-to/using-rocprofv3).
#include <gtest/gtest.h>

#include <algorithm>

#include "support/errors.h"
#include "support/scratch.h"
#include "support/wire_fields.h"
#include "unit/profile/recordings.h"

namespace scalecalc {
namespace {

ProfileAnswer profiled_file(const std::string& file) {
  return answer(ProfileQuestion{.files = {file}, .top = 100}, test::switched_chip());
}

// One process: a matmul of 40 us launched 10 us before it runs, a copy of 5 us to the device, then 5 us of nothing and
// an all-reduce of 20 us.
constexpr const char* kRocJson = R"({"rocprofiler-sdk-tool":[{"metadata":{"pid":7},
"agents":[{"id":{"handle":1},"type":1,"product_name":"EPYC"},
 {"id":{"handle":2},"type":2,"product_name":"AMD Instinct MI300X","logical_node_type_id":0}],
"strings":{"buffer_records":[{"kind":"NONE","operations":[]},{"kind":"MEMORY_COPY","operations":["NONE","MEMORY_COPY_HOST_TO_DEVICE"]}],
 "marker_api":[{"key":9,"value":"note"}]},
"buffer_records":{"kernel_dispatch":[
 {"kind":11,"operation":2,"correlation_id":{"internal":1,"external":0},"start_timestamp":1000010000,"end_timestamp":1000050000,"dispatch_info":{"agent_id":{"handle":2},"queue_id":{"handle":3},"kernel_id":5},"stream_id":{"handle":0}},
 {"kind":11,"operation":2,"correlation_id":{"internal":3,"external":0},"start_timestamp":1000060000,"end_timestamp":1000080000,"dispatch_info":{"agent_id":{"handle":2},"queue_id":{"handle":3},"kernel_id":6},"stream_id":{"handle":0}}],
 "memory_copy":[{"kind":1,"operation":1,"correlation_id":{"internal":2},"start_timestamp":1000050000,"end_timestamp":1000055000,"dst_agent_id":{"handle":2},"src_agent_id":{"handle":1},"bytes":4096}],
 "hip_api":[{"kind":2,"operation":3,"correlation_id":{"internal":1},"start_timestamp":1000000000,"end_timestamp":1000001000,"thread_id":7}]},
"kernel_symbols":[{"kernel_id":5,"formatted_kernel_name":"Cijk_Ailk_Bljk_BBS_BH_MT128x128x32"},
 {"kernel_id":6,"kernel_name":"ncclDevKernel_AllReduce_Sum_bf16"}]}]}
)";

constexpr const char* kRocCsv =
    "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Stream_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\","
    "\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n"
    "\"KERNEL_DISPATCH\",\"Agent 7\",3,0,7,1,5,\"Cijk_Ailk_Bljk_BBS_BH_MT128x128x32\",1,1000010000,1000050000\n"
    "\"KERNEL_DISPATCH\",\"Agent 7\",3,0,7,2,6,\"void f<1, 2>(\"\"x\"\") ncclDevKernel_AllReduce_Sum_bf16\",3,"
    "1000060000,1000080000\n";

void expect_step(const ProfileAnswer& found, double copy_us) {
  EXPECT_EQ(found.format, RecordingFormat::kRocprof);
  EXPECT_NEAR(found.step_s, 70e-6, 1e-12);
  EXPECT_NEAR(test::work_us(found, DeviceWork::kMatmul), 40, 1e-6);
  EXPECT_NEAR(test::work_us(found, DeviceWork::kCollective), 20, 1e-6);
  EXPECT_NEAR(test::work_us(found, DeviceWork::kCopy), copy_us, 1e-6);
  ASSERT_EQ(found.groups.size(), 1U);
  EXPECT_EQ(found.groups[0].group.kind, "all-reduce");
  EXPECT_NEAR(found.groups[0].exposed_s, 20e-6, 1e-12);
}

TEST(Rocprof, JsonSaysKernelsCopiesAndLaunches) {
  const test::Scratch scratch;
  const ProfileAnswer found = profiled_file(scratch.put("7_results.json", kRocJson));
  expect_step(found, 5);
  EXPECT_EQ(found.recorded_chip, "AMD Instinct MI300X");
  EXPECT_EQ(found.ranks.front().device, "GPU 0");
}

TEST(Rocprof, CsvOfKernelsWithItsTablesBeside) {
  const test::Scratch scratch;
  const std::string kernels = scratch.put("7_kernel_trace.csv", kRocCsv);
  expect_step(profiled_file(kernels), 0);
  scratch.put(
      "7_memory_copy_trace.csv",
      "\"Kind\",\"Direction\",\"Source_Agent_Id\",\"Destination_Agent_Id\",\"Correlation_Id\",\"Start_Timestamp\","
      "\"End_Timestamp\"\n\"MEMORY_COPY\",\"MEMORY_COPY_HOST_TO_DEVICE\",0,7,2,1000050000,1000055000\n");
  expect_step(profiled_file(kernels), 5);
}

/// The same step as Perfetto's SDK writes it: clock 64 counts from where its snapshot says, names stand in a table.
std::string perfetto() {
  using test::number_field;
  using test::text_field;
  constexpr std::uint32_t kSequence = 10, kTimestamp = 8, kEvent = 11;
  const auto packet = [](const std::string& fields) { return text_field(1, fields + number_field(kSequence, 9)); };
  const auto clock = [](std::uint64_t id, std::uint64_t time) {
    return text_field(1, number_field(1, id) + number_field(2, time));
  };
  const auto name = [](std::uint32_t table, std::uint64_t id, const std::string& text) {
    return text_field(table, number_field(1, id) + text_field(2, text));
  };
  const auto track = [&](std::uint64_t id, const std::string& text) {
    return packet(text_field(60, number_field(1, id) + text_field(2, text)));
  };
  const auto slice = [&](std::uint64_t later, std::uint64_t type, std::uint64_t on, const std::string& rest) {
    return packet(number_field(kTimestamp, later) +
                  text_field(kEvent, number_field(9, type) + number_field(11, on) + rest));
  };
  return packet(text_field(6, clock(6, 1000000000) + clock(64, 1000000000)) + text_field(59, number_field(58, 64)) +
                number_field(13, 1)) +
         track(5, "COMPUTE AGENT [7] QUEUE [0] (GPU)") + track(6, "COPY to AGENT [7] (GPU)") + track(8, "THREAD 1") +
         packet(text_field(12, name(1, 1, "kernel_dispatch") + name(1, 2, "memory_copy") + name(1, 3, "hip_api") +
                                   name(2, 4, "Cijk_Ailk_Bljk_BBS_BH_MT128x128x32"))) +
         slice(0, 1, 8, number_field(3, 3) + text_field(23, "hipLaunchKernel")) +
         slice(10000, 1, 5, number_field(3, 1) + number_field(10, 4)) + slice(40000, 2, 5, "") +
         slice(0, 1, 6, number_field(3, 2) + text_field(23, "MEMORY_COPY_HOST_TO_DEVICE")) + slice(5000, 2, 6, "") +
         slice(5000, 1, 5, number_field(3, 1) + text_field(23, "ncclDevKernel_AllReduce_Sum_bf16")) +
         slice(20000, 2, 5, "");
}

TEST(Rocprof, PerfettosFormat) {
  const test::Scratch scratch;
  const ProfileAnswer found = profiled_file(scratch.put("7_results.pftrace", perfetto()));
  expect_step(found, 5);
  EXPECT_EQ(found.ranks.size(), 1U);
  EXPECT_EQ(found.ranks.front().device, "GPU 7");
  const auto says = [](const Assumption& a) { return a.text.find("1 slices have no end") != std::string::npos; };
  EXPECT_TRUE(std::any_of(found.assumptions.begin(), found.assumptions.end(), says));
}

TEST(Rocprof, WhatIsCutOffOrWrongIsRefused) {
  const test::Scratch scratch;
  const std::string csv = kRocCsv;
  const auto problems = [&](const std::string& name, const std::string& text) {
    const std::string file = scratch.put(name, text);
    return test::problems_of([&] { profiled_file(file); });
  };
  const std::size_t rows = csv.find('\n') + 1;
  EXPECT_NE(problems("a.csv", csv.substr(0, rows + 30)).find("a row of"), std::string::npos);
  EXPECT_NE(problems("b.csv", csv.substr(0, rows + 50)).find("cut off"), std::string::npos);
  EXPECT_NE(problems("c.csv", csv + "\"KERNEL_DISPATCH\",1,1,1,1,1,1,\"k\",1,200,100\n").find("before it starts"),
            std::string::npos);
  EXPECT_NE(problems("d.csv", csv + "\"KERNEL_DISPATCH\",1,1,1,1,1,1,\"k\",1,,100\n").find(":4"), std::string::npos);
  EXPECT_NE(problems("e.csv", "Start_Timestamp,End_Timestamp\n1,2\n").find("neither kernels"), std::string::npos);
  const std::string json = kRocJson;
  for (std::size_t cut = 30; cut + 2 < json.size(); cut += 83) {
    EXPECT_NE(problems("cut.json", json.substr(0, cut)), "") << cut;
  }
  // Cut within a packet, not between two.
  const std::string packets = perfetto();
  EXPECT_NE(problems("cut.pftrace", packets.substr(0, packets.size() - 3)).find("at byte"), std::string::npos);
  EXPECT_NE(problems("packed.pftrace", packets + test::text_field(1, test::text_field(50, "x"))).find("packed"),
            std::string::npos);
  std::string backwards = json;
  backwards.replace(backwards.find("1000050000"), 10, "1000000000");
  EXPECT_NE(problems("f.json", backwards).find("before it starts"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
