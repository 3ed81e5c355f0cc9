#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/io.h"
#include "config/yaml_reader.h"
#include "validate/kernel_measurement.h"

namespace scalecalc {
namespace {

std::string sample(const char* name) { return SCALECALC_SOURCE_DIR "/tests/data/nccl-tests/" + std::string(name); }

std::vector<KernelMeasurement> read_sample(const char* name) {
  return read_nccl_tests(read_text_file(sample(name)), sample(name));
}

/// A table of so many ranks of one host, below the lines `before`.
std::string table_of(int ranks, const std::string& rows, const std::string& before = "") {
  std::string out = before;
  for (int r = 0; r < ranks; ++r) {
    out += fmt::format("#  Rank {:2} Group  0 Pid   1655 on   a-host device {:2} [0x0f] NVIDIA H100\n", r, r);
  }
  return out +
         "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "
         "busbw "
         "#wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n" +
         rows;
}

const std::string kRow =
    "    33554432       8388608     float     sum      -1    274.3  122.31  214.04      0    274.7  "
    "122.17  213.80      0\n";

/// The first problem as it is shown.
std::string problem_in(const std::string& text, const std::string& file) {
  try {
    read_nccl_tests(text, file);
  } catch (const UserError& error) {
    return render(error.diagnostics().front());
  }
  return "none";
}

TEST(NcclTests, ReadsOneNode) {
  const std::vector<KernelMeasurement> rows = read_sample("all_reduce_8.txt");
  ASSERT_EQ(rows.size(), 8U);
  const auto& first = std::get<TimedCollective>(rows.front().work);
  EXPECT_EQ(first.op, CollectiveOp::kAllReduce);
  EXPECT_EQ(first.ranks, 8);
  EXPECT_EQ(first.nodes, 1);
  EXPECT_EQ(first.bytes, 1 << 20);
  EXPECT_NEAR(rows.front().seconds, 28.55e-6, 1e-9) << "out of place, as the table has it";
  EXPECT_EQ(rows.front().where.line, 18);
}

TEST(NcclTests, CountsHosts) {
  const auto& last = std::get<TimedCollective>(read_sample("all_gather_16.txt").back().work);
  EXPECT_EQ(last.op, CollectiveOp::kAllGather);
  EXPECT_EQ(last.ranks, 16);
  EXPECT_EQ(last.nodes, 2);
}

TEST(NcclTests, OlderOnesAreNamedByTheirFile) {
  EXPECT_EQ(read_nccl_tests(table_of(8, kRow), "runs/all_reduce_perf.log").size(), 1U);
  EXPECT_NE(problem_in(table_of(8, kRow), "runs/nccl.log").find("runs/nccl.log:9:1: error: nothing says which"),
            std::string::npos)
      << problem_in(table_of(8, kRow), "runs/nccl.log");
  EXPECT_NE(
      problem_in(table_of(8, kRow), "all_gather.txt").find("busbw is 1.75 times algbw, expected 0.875 of 8 ranks"),
      std::string::npos)
      << "the file is named after another test";
}

/// A rank of an all-to-all holds the printed size; the array is all that the ranks hold.
TEST(NcclTests, AnAllToAllsArrayIsWholeGroups) {
  const std::string row = "  1048576  262144  float  none  -1  20.0  52.43  45.88  0  20.0  52.43  45.88  0\n";
  const auto rows = read_nccl_tests(table_of(8, row), "alltoall_perf.txt");
  EXPECT_EQ(std::get<TimedCollective>(rows.front().work).bytes, 8.0 * (1 << 20));
}

TEST(NcclTests, SeveralTestsInOneFile) {
  const std::string again = "# Collective test starting: reduce_scatter_perf\n# nThread 1 nGpus 1\n";
  const std::string row = "  33554432  8388608  float  sum  -1  100.0  335.54  167.77  0  100.0  335.54  167.77  0\n";
  const auto rows = read_nccl_tests(
      table_of(8, kRow, "# Collective test starting: all_reduce_perf\n") + table_of(2, row, again), "both.txt");
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(std::get<TimedCollective>(rows.back().work).op, CollectiveOp::kReduceScatter);
  EXPECT_EQ(std::get<TimedCollective>(rows.back().work).ranks, 2);
}

TEST(NcclTests, SaysWhereAndWhatIsWrong) {
  const auto in = [](const std::string& rows) { return problem_in(table_of(8, rows), "all_reduce.txt"); };
  EXPECT_NE(in("  33554432  8388608  float  sum  -1  fast  1.31  2.04  0  274.7  122.17  213.80  0\n")
                .find("all_reduce.txt:11:38: error: time is 'fast', expected a number"),
            std::string::npos);
  EXPECT_NE(in("  33554432  8388608  float\n").find("11:3: error: a row of 3 values under 13 columns"),
            std::string::npos);
  EXPECT_NE(in("  8  2  float  sum  -1  9.0  0.00  0.00  7  9.0  0.00  0.00  0\n").find("7 wrong elements"),
            std::string::npos);
  EXPECT_NE(in("").find("the table has no rows"), std::string::npos);
  EXPECT_NE(problem_in(table_of(0, kRow), "all_reduce.txt").find("no line says which ranks took part"),
            std::string::npos);
  EXPECT_NE(problem_in(table_of(1, kRow), "all_reduce.txt").find("built with MPI=1"), std::string::npos);
  const std::string other = problem_in("# Collective test starting: all_reduc_perf\n" + table_of(8, kRow), "x.txt");
  EXPECT_NE(other.find("did you mean 'all_reduce_perf'?"), std::string::npos) << other;
}

TEST(NcclTests, KnowsItsOwnTables) {
  EXPECT_TRUE(is_nccl_tests(table_of(8, kRow)));
  EXPECT_FALSE(is_nccl_tests("- id: a\n  # size and busbw are not known\n"));
}

std::vector<KernelMeasurement> kernels(const std::string& text) {
  return read_kernels(read_yaml(text, "kernels.yaml"));
}

TEST(Kernels, ReadsRatesAndTimes) {
  const auto rows = kernels(
      "- {id: a, kernel: matmul, format: fp8, m: 8192, n: 8192, k: 4096, tflops: 1000}\n"
      "- {id: b, kernel: copy, bandwidth: 3TB/s}\n"
      "- {id: c, kernel: attention, batch: 2, heads: 32, head_dim: 128, seq: 4096, time: 1.5ms}\n");
  ASSERT_EQ(rows.size(), 3U);
  EXPECT_NEAR(rows[0].seconds, 2.0 * 8192 * 8192 * 4096 / 1e15, 1e-12);
  EXPECT_EQ(std::get<RooflineQuestion>(rows[0].work).types.compute, DType::kFp8);
  EXPECT_NEAR(rows[1].seconds, 1e9 / 3e12, 1e-12);
  EXPECT_NEAR(rows[2].seconds, 1.5e-3, 1e-12);
}

TEST(Kernels, SaysWhatIsWrong) {
  const auto problem = [](const std::string& text) -> std::string {
    try {
      kernels(text);
    } catch (const UserError& error) {
      return render(error.diagnostics().front());
    }
    return "none";
  };
  EXPECT_NE(problem("- {id: a, kernel: matmull, m: 1, n: 1, k: 1, time: 1ms}\n").find("did you mean 'matmul'?"),
            std::string::npos);
  EXPECT_NE(problem("- {id: a, kernel: matmul, format: bf61, m: 1, n: 1, k: 1, time: 1ms}\n").find("kernels.yaml:1:35"),
            std::string::npos);
  EXPECT_NE(problem("- {id: a, kernel: matmul, m: 1, n: 1, k: 1}\n").find("time or tflops"), std::string::npos);
  EXPECT_NE(problem("- {id: a, kernel: copy, time: 1ms}\n").find("bytes and time, or bandwidth"), std::string::npos);
}

}  // namespace
}  // namespace scalecalc
