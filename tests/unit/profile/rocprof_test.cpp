// rocprofv3's JSON and CSV, with the members and columns of ROCprofiler-SDK's documentation
// (docs/how-to/using-rocprofv3).
#include <gtest/gtest.h>

#include "support/errors.h"
#include "support/scratch.h"
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
  std::string backwards = json;
  backwards.replace(backwards.find("1000050000"), 10, "1000000000");
  EXPECT_NE(problems("f.json", backwards).find("before it starts"), std::string::npos);
  EXPECT_NE(problems("g.pftrace", std::string("\x0a\x06\x40\x01\x50\x02\x58\x03", 8)).find("Perfetto"),
            std::string::npos);
}

}  // namespace
}  // namespace scalecalc
