#include "serve/request_mix.h"

#include <gtest/gtest.h>

#include "support/errors.h"

namespace scalecalc {
namespace {

std::string trace_problem(std::string_view text, const std::string& file = "t.csv") {
  return test::problems_of([&] { read_trace(text, file); });
}

TEST(RequestMix, DecodeContextIsTheMeanOverDecodeSteps) {
  // One prompt of 10 and 4 tokens: three steps that attend to 11, 12 and 13 keys.
  const RequestMix fixed{.prompt = Lengths::fixed(10), .generate = Lengths::fixed(4)};
  EXPECT_DOUBLE_EQ(fixed.decode_context(), 12);
  EXPECT_EQ(fixed.largest_cached(), 13);
  // A trace weighs its rows by their steps: 11 and 12 of the first, 101 of the second.
  const RequestMix trace = read_trace("prompt,generate\n10,3\n100,2\n", "t.csv");
  EXPECT_DOUBLE_EQ(trace.decode_context(), (11 + 12 + 101) / 3.0);
  EXPECT_EQ(trace.largest_cached(), 101);
}

TEST(RequestMix, NothingToDecode) {
  const RequestMix mix{.prompt = Lengths::fixed(10), .generate = Lengths::fixed(1)};
  EXPECT_EQ(mix.decode_context(), 0);
}

TEST(Trace, Csv) {
  const RequestMix mix = read_trace("arrival, generate ,prompt\r\n0.5,2,100\r\n\r\n750ms,3,1k\r\n", "t.csv");
  ASSERT_EQ(mix.rows.size(), 2U);
  EXPECT_TRUE(mix.has_arrivals);
  EXPECT_EQ(mix.rows[1].arrival_s, 0.75);
  EXPECT_EQ(mix.rows[1].prompt, 1000);
  EXPECT_EQ(mix.rows[1].generate, 3);
  EXPECT_EQ(mix.prompt.mean(), 550);
}

TEST(Trace, JsonLines) {
  const RequestMix mix = read_trace("{\"prompt\": 100, \"generate\": 2}\n{\"generate\": 4, \"prompt\": 50}", "t.jsonl");
  ASSERT_EQ(mix.rows.size(), 2U);
  EXPECT_FALSE(mix.has_arrivals);
  EXPECT_EQ(mix.rows[1].prompt, 50);
}

TEST(Trace, ProblemsHaveTheirPlaces) {
  EXPECT_EQ(trace_problem("prompt,generat\n1,2\n"),
            "t.csv:1:8: error: unknown column 'generat'\n"
            "   1 | prompt,generat\n"
            "     |        ^~~~~~~\n"
            "hint: did you mean 'generate'?\n"
            "t.csv:1:1: error: the column 'generate' is missing\n"
            "   1 | prompt,generat\n"
            "     | ^~~~~~\n"
            "hint: a trace has the columns prompt, generate and, if wanted, arrival (seconds)\n"
            "t.csv:2:1: error: the request has no 'generate'\n"
            "   2 | 1,2\n"
            "     | ^\n"
            "hint: a trace has the columns prompt, generate and, if wanted, arrival (seconds)\n");
  EXPECT_NE(trace_problem("prompt,generate\n1,2\n10,x2\n").find("t.csv:3:4: error: 'x2' is not a"), std::string::npos);
  EXPECT_NE(trace_problem("prompt,generate\n1,0\n").find("t.csv:2:3: error: generate of 0 tokens"), std::string::npos);
  EXPECT_NE(trace_problem("prompt,generate\n1\n").find("the line has 1 fields, the header 2"), std::string::npos);
  EXPECT_NE(
      trace_problem("prompt,generate,arrival\n1,1,5\n1,1,4\n").find("t.csv:3:5: error: the request arrives before"),
      std::string::npos);
  EXPECT_NE(trace_problem("prompt,generate\n").find("the trace has no requests"), std::string::npos);
  EXPECT_NE(trace_problem("").find("the trace has no requests"), std::string::npos);
}

TEST(Trace, JsonProblemsHaveTheirLines) {
  EXPECT_NE(trace_problem("{\"prompt\": 1, \"generate\": 2}\n{\"prompt\": 1,}\n", "t.jsonl").find("t.jsonl:2:"),
            std::string::npos);
  EXPECT_NE(
      trace_problem("{\"prompt\": 1, \"output\": 2}\n", "t.jsonl").find("t.jsonl:1:15: error: unknown column 'output'"),
      std::string::npos);
  EXPECT_NE(trace_problem("[1, 2]\n", "t.jsonl").find("a list where one request is expected"), std::string::npos);
  EXPECT_NE(
      trace_problem("{\"prompt\": 1, \"generate\": 2, \"arrival\": 1}\n{\"prompt\": 1, \"generate\": 2}\n", "t.jsonl")
          .find("t.jsonl:2:1: error: some requests have an arrival"),
      std::string::npos);
}

TEST(PoissonRequests, SameSeedSameRequestsAtAnyRate) {
  const RequestMix mix{.prompt = Lengths({{100, 1000, 1}}), .generate = Lengths({{1, 50, 1}})};
  const auto slow = poisson_requests(mix, 1, 1000, 3);
  const auto fast = poisson_requests(mix, 4, 1000, 3);
  for (std::size_t i = 0; i < slow.size(); ++i) {
    EXPECT_EQ(slow[i].prompt, fast[i].prompt);
    EXPECT_EQ(slow[i].generate, fast[i].generate);
    EXPECT_DOUBLE_EQ(slow[i].arrival_s, 4 * fast[i].arrival_s);
  }
  EXPECT_NEAR(slow.back().arrival_s, 1000, 100);
  EXPECT_NE(poisson_requests(mix, 1, 1, 4)[0].arrival_s, slow[0].arrival_s);
}

TEST(ReplayedRequests, StartAtZeroAndStretchToARate) {
  const RequestMix mix = read_trace("prompt,generate,arrival\n1,1,10\n1,1,11\n1,1,14\n", "t.csv");
  const auto as_it_was = replayed_requests(mix, 10);
  ASSERT_EQ(as_it_was.size(), 3U);
  EXPECT_EQ(as_it_was[0].arrival_s, 0);
  EXPECT_EQ(as_it_was[2].arrival_s, 4);
  const auto faster = replayed_requests(mix, 10, 3.0);  // three requests in a second
  EXPECT_DOUBLE_EQ(faster[2].arrival_s, 1);
  EXPECT_DOUBLE_EQ(faster[1].arrival_s, 0.25);
}

}  // namespace
}  // namespace scalecalc
