#include "serve/request_mix.h"

#include <gtest/gtest.h>

#include "base/diagnostic.h"
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

TEST(Trace, AHeaderOfManyUnknownColumnsIsToldTwentyProblemsAtMost) {
  std::string header = "prompt,generate";
  for (int i = 0; i < 30; ++i) header += ",unknown" + std::to_string(i);
  const std::string said = trace_problem(header + "\n1,1\n");
  std::size_t problems = 0;
  for (std::size_t at = said.find("error: "); at != std::string::npos; at = said.find("error: ", at + 1)) ++problems;
  EXPECT_EQ(problems, kMostProblems);
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

TEST(Trace, TimesOfOtherZonesAreTheSameMoments) {
  const RequestMix mix = read_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-12-01 00:00:00Z,1,1\n"
      "2023-12-01 05:30:01+05:30,1,1\n"
      "2023-11-30 20:30:02-03:30,1,1\n"
      "2024-02-29 00:00:00,1,1\n",
      "a.csv");
  ASSERT_EQ(mix.rows.size(), 4U);
  EXPECT_DOUBLE_EQ(mix.rows[1].arrival_s - mix.rows[0].arrival_s, 1);
  EXPECT_DOUBLE_EQ(mix.rows[2].arrival_s - mix.rows[0].arrival_s, 2);
  EXPECT_DOUBLE_EQ(mix.rows[3].arrival_s - mix.rows[0].arrival_s, 90 * 86400.0) << "31 + 31 + 28 days";
}

/// Dates count from the first, whichever it is, to the last digit that they have.
TEST(Trace, TimesCountFromTheFirstRequest) {
  const RequestMix mix = read_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "1012-11-16 18:01:51.1627340,374,44\n1012-11-16 18:01:51.1627341,396,109\n1012-11-17 18:01:51.1627340,1,1\n",
      "a.csv");
  ASSERT_EQ(mix.rows.size(), 3U);
  EXPECT_EQ(mix.rows[0].arrival_s, 0);
  EXPECT_NEAR(mix.rows[1].arrival_s, 1e-7, 1e-11);
  EXPECT_DOUBLE_EQ(mix.rows[2].arrival_s, 86400);
}

TEST(Trace, Azure) {
  const RequestMix mix = read_trace(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2023-11-30 23:59:59.5000000,4808,10\n"
      "2023-12-01 00:00:01.2500000+00:00,3180,8\n"
      "2023-12-01 02:00:02+02:00,100,0\n",
      "a.csv");
  ASSERT_EQ(mix.rows.size(), 2U);
  EXPECT_NEAR(mix.rows[1].arrival_s - mix.rows[0].arrival_s, 1.75, 1e-6);
  EXPECT_EQ(mix.rows[0].prompt, 4808);
  ASSERT_EQ(mix.notes.size(), 1U);
  EXPECT_NE(mix.notes[0].find("1 request of the trace left out"), std::string::npos);
  EXPECT_NE(
      trace_problem("TIMESTAMP,ContextTokens,GeneratedTokens\n2023-13-30 23:59:59,1,1\n").find("t.csv:2:1: error"),
      std::string::npos);
}

TEST(Trace, BurstGpt) {
  const RequestMix mix = read_trace(
      "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,ChatGPT,472,18,490,Conversation log\n45,GPT-4,17,0,17,API log\n"
      "118,GPT-4,417,276,693,API log\n",
      "b.csv");
  ASSERT_EQ(mix.rows.size(), 2U);
  EXPECT_EQ(mix.rows[1].arrival_s, 118);
  EXPECT_EQ(mix.rows[1].generate, 276);
}

TEST(Trace, Mooncake) {
  const RequestMix mix = read_trace(
      "{\"timestamp\": 0, \"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [0, 1, 2]}\n"
      "{\"timestamp\": 1500, \"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [0, 1, 3]}\n"
      "{\"timestamp\": 3000, \"input_length\": 512, \"output_length\": 5, \"hash_ids\": [0]}\n",
      "m.jsonl");
  ASSERT_EQ(mix.rows.size(), 3U);
  EXPECT_EQ(mix.rows[1].arrival_s, 1.5);
  ASSERT_TRUE(mix.blocks);
  EXPECT_EQ(mix.rows[1].blocks->ids.size(), 3U);
  EXPECT_EQ(mix.rows[1].blocks->ids[2], 3U);
  EXPECT_EQ(mix.rows[1].blocks->tokens, 512);
  // The second finds 1024 of 1100, the third all but its last token.
  EXPECT_NEAR(mix.most_found(), (1024.0 + 511) / 2712, 1e-12);
  EXPECT_NE(trace_problem("{\"input_length\": 1100, \"output_length\": 5, \"hash_ids\": [0, 1]}\n", "t.jsonl")
                .find("t.jsonl:1:56: error: 2 hash_ids for 1100 tokens"),
            std::string::npos);
  // Other traces have the same keys and blocks of another length.
  EXPECT_NE(
      trace_problem("{\"chat_id\": 1, \"input_length\": 11, \"output_length\": 5, \"hash_ids\": [0]}\n", "t.jsonl")
          .find("unknown column 'chat_id'"),
      std::string::npos);
}

TEST(Trace, ShareGptByItsCharacters) {
  // 9 characters (an escaped pair is one, a letter of two bytes too) are 3 tokens of 4.
  const RequestMix mix = read_trace(
      "[{\"id\": \"a\", \"conversations\": [{\"from\": \"human\", \"value\": "
      "\"12345\\n\xc3\xa9\\ud83d\\ude00!\"}, {\"from\": \"gpt\", \"value\": \"1234\"}]},\n"
      " {\"id\": \"b\", \"conversations\": [{\"from\": \"human\", \"value\": \"alone\"}]}]",
      "s.json");
  ASSERT_EQ(mix.rows.size(), 1U);
  EXPECT_EQ(mix.rows[0].prompt, 3);
  EXPECT_EQ(mix.rows[0].generate, 1);
  EXPECT_EQ(mix.notes.size(), 2U);
}

TEST(Trace, ResultsOfBenchmarks) {
  const RequestMix mix = read_trace(
      "{\"request_throughput\": 2.5, \"input_lens\": [100, 200, 300],\n"
      " \"output_lens\": [10, 0, 30], \"start_times\": [7.5, 6.5, 6.0]}",
      "r.json");
  ASSERT_EQ(mix.rows.size(), 2U);
  EXPECT_EQ(mix.rows[0].prompt, 300);
  EXPECT_EQ(mix.rows[1].arrival_s, 7.5);
  const RequestMix lines = read_trace(
      "{\"input_lens\": [100], \"output_lens\": [10]}\n"
      "{\"input_lens\": [200], \"output_lens\": [20]}\n",
      "r.jsonl");
  EXPECT_EQ(lines.rows.size(), 2U);
  EXPECT_FALSE(lines.has_arrivals);
  EXPECT_NE(trace_problem("{\"request_throughput\": 2.5}", "r.json").find("does not say how long each request was"),
            std::string::npos);
}

TEST(Trace, AnUnknownOneSaysWhatIsKnown) {
  for (const char* text : {"when,how_long\n1,2\n", "{\"when\": 1, \"how_long\": 2}", "[{\"when\": 1}]"}) {
    const std::string found = trace_problem(text, "t.json");
    EXPECT_NE(found.find("no known trace has these columns"), std::string::npos) << found;
    EXPECT_NE(found.find("t.json:1:"), std::string::npos) << found;
    EXPECT_NE(found.find("Azure's ContextTokens"), std::string::npos) << found;
  }
  EXPECT_NE(trace_problem("[{\"prompt\": 1,]", "t.json").find("t.json:1:"), std::string::npos);
  EXPECT_NE(trace_problem("{\"prompt\": \"text\"}", "t.json").find("a prompt as text"), std::string::npos);
}

TEST(Trace, WhatIsCutOrChangedIsReadOrRefused) {
  const std::vector<std::pair<std::string, std::string>> traces{
      {"prompt,generate,arrival\n100,2,0.5\n200,3,1\n", "t.csv"},
      {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.97+00:00,48,10\n", "t.csv"},
      {"{\"timestamp\": 0, \"input_length\": 600, \"output_length\": 5, \"hash_ids\": [0, 1]}\n", "t.jsonl"},
      {"[{\"conversations\": [{\"value\": \"a\\u00e9\"}, {\"value\": \"b\"}]}]", "t.json"},
      {"{\"input_lens\": [100, 200], \"output_lens\": [1, 2], \"start_times\": [1, 2]}", "t.json"}};
  RandomStream chance(7);
  for (const auto& [text, file] : traces) {
    const auto try_it = [&, &name = file](const std::string& changed) {
      try {
        EXPECT_FALSE(read_trace(changed, name).rows.empty());
      } catch (const UserError& error) {
        EXPECT_FALSE(error.diagnostics().empty());
      }
    };
    for (std::size_t end = 0; end <= text.size(); ++end) try_it(text.substr(0, end));
    for (int i = 0; i < 2000; ++i) {
      std::string changed = text;
      const auto at = static_cast<std::size_t>(chance.uniform() * static_cast<double>(text.size()));
      constexpr std::string_view kMarks = "\"\\[]{}:,0-e \n";
      changed[at] = kMarks[static_cast<std::size_t>(chance.uniform() * static_cast<double>(kMarks.size()))];
      try_it(changed);
    }
  }
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
