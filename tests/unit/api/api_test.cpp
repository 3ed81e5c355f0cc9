#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <thread>

#include "scalecalc.hpp"

namespace scalecalc {
namespace {

TEST(Api, AnswersAsTheProgramDoes) {
  const api::Answer answer =
      api::ask({"roofline", "matmul", "8192x28672", "--batch", "8", "--hw", "book/tpu-v5e", "--json"});
  ASSERT_TRUE(answer.answered()) << answer.messages;
  EXPECT_EQ(nlohmann::json::parse(answer.output)["tool"]["version"], scalecalc_version());
  const api::Answer wrong = api::ask({"roofline", "matmul", "8x8192x28672", "--hw", "no-such-chip", "--json"});
  EXPECT_EQ(wrong.status, 2);
  EXPECT_NE((wrong.output + wrong.messages).find("no-such-chip"), std::string::npos);
  EXPECT_NE(api::ask({}).status, 0);
}

TEST(Api, ThreadsAskAtTheSameTime) {
  const std::vector<std::string> question{"model", "llama3-8b", "--json"};
  const std::string alone = api::ask(question).output;
  std::vector<std::string> outputs(4);
  std::vector<std::thread> threads;
  for (std::string& output : outputs) threads.emplace_back([&] { output = api::ask(question).output; });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& output : outputs) EXPECT_EQ(output, alone);
}

}  // namespace
}  // namespace scalecalc
