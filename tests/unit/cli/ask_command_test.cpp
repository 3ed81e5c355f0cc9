#include "cli/ask_command.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <sstream>
#include <thread>
#include <vector>

#include "cli/run.h"
#include "support/scratch.h"

namespace scalecalc::cli {
namespace {

StudyQuestion roofline(const std::string& shape) {
  return {"roofline", {"matmul", shape}, {{"--hw", {"tpu-v5e"}}, {"--weight", {"int8"}}}};
}

Ask ask() {
  std::ostringstream nowhere;
  return ask_commands(Environment{.out = nowhere, .err = nowhere}, {}, false);
}

TEST(AskCommand, AnswersAsTheCommandLineDoes) {
  std::ostringstream out;
  std::ostringstream err;
  Environment env{.out = out, .err = err};
  run({"roofline", "matmul", "512x8192x28672", "--hw", "tpu-v5e", "--weight", "int8", "-o", "row"}, env);
  const Ask asked = ask();
  EXPECT_EQ(asked(roofline("512x8192x28672")).records, out.str());
  EXPECT_EQ(asked(roofline("512x8192x28672")).records, out.str());  // from what is remembered too
}

TEST(AskCommand, WhatIsRememberedIsNotMixedUp) {
  const Ask asked = ask();
  StudyQuestion slow = roofline("8x8192x28672");
  slow.flags["--set"] = {"hw.hbm.bandwidth=100GB/s"};
  const std::string fast = asked(roofline("8x8192x28672")).records;
  const std::string other = asked(slow).records;
  EXPECT_NE(fast, other);
  EXPECT_EQ(asked(roofline("8x8192x28672")).records, fast);
  EXPECT_EQ(asked(slow).records, other);
}

TEST(AskCommand, AWrongQuestionHasAReasonOnOneLine) {
  const StudyReply reply = ask()(roofline("0x8192"));
  EXPECT_EQ(reply.exit, 2);
  EXPECT_EQ(reply.records, "");
  EXPECT_NE(reply.reason, "");
  EXPECT_EQ(reply.reason.find('\n'), std::string::npos);
  StudyQuestion unknown = roofline("8x8192x28672");
  unknown.flags["--hw"] = {"tpu-v55"};
  EXPECT_TRUE(ask()(unknown).reason.starts_with("unknown hardware 'tpu-v55' (did you mean")) << ask()(unknown).reason;
}

/// Names as other tools spell them are those of the command line.
TEST(AskCommand, ReadsNamesAsTheCommandLineDoes) {
  const auto answer = [](const std::string& model, const StudyQuestion& question) {
    StudyQuestion asked = question;
    asked.positionals = {model};
    return ask()(asked);
  };
  const StudyQuestion of_eight{"bounds", {}, {{"--hw", {"8xh100"}}, {"--for", {"training"}}}};
  const StudyQuestion plain{"bounds", {}, {{"--hw", {"h100-sxm"}}, {"--chips", {"8"}}, {"--for", {"training"}}}};
  const StudyReply theirs = answer("meta-llama/Llama-3-8B", of_eight);
  EXPECT_EQ(theirs.exit, 0) << theirs.reason;
  EXPECT_EQ(theirs.records, answer("llama3-8b", plain).records);
}

TEST(AskCommand, AFlagOfOtherToolsIsAnsweredWithOurs) {
  for (const CommandForm& form : command_forms()) {
    if (form.name != "train") continue;
    EXPECT_EQ(form.meaning("--gpus"), "did you mean '--chips'?");
  }
}

/// As on the command line: a row that another --set would not change says nothing of it.
TEST(AskCommand, ASetWithoutEffectIsAWrongQuestion) {
  const Ask asked = ask();
  const auto with = [&](std::vector<std::string> sets) {
    StudyQuestion question = roofline("8x8192x28672");
    question.flags["--set"] = std::move(sets);
    return asked(question);
  };
  const std::string idle = "hw.network.0.link_bandwidth=1GB/s";
  for (int again = 0; again < 2; ++again) {  // also where neighbours were asked before
    const StudyReply refused = with({idle});
    EXPECT_EQ(refused.exit, 2);
    EXPECT_EQ(refused.records, "");
    EXPECT_TRUE(refused.reason.starts_with("--set " + idle + ": no figure of this answer depends on it (leave it out"))
        << refused.reason;
    EXPECT_EQ(with({"hw.hbm.bandwidth=2TB/s", idle}).reason, refused.reason);
    EXPECT_EQ(with({"hw.hbm.bandwidth=2TB/s"}).exit, 0);
    EXPECT_EQ(with({}).exit, 0);
  }
}

TEST(AskCommand, ASetMaySayWhatTheFileSays) {
  StudyQuestion question{"train", {"llama3-8b"}, {{"--hw", {"h100-sxm"}}, {"--chips", {"8"}}}};
  const std::string plain = ask()(question).records;
  question.flags["--set"] = {"hw.hbm.capacity=80GiB"};
  const StudyReply said = ask()(question);
  EXPECT_EQ(said.exit, 0) << said.reason;
  EXPECT_EQ(said.records.substr(0, said.records.find("\"question\"")), plain.substr(0, plain.find("\"question\"")));
}

/// A mistake of the whole study is seen before it runs.
TEST(AskCommand, AStudyOfSetsWithoutEffectIsRefused) {
  const test::Scratch scratch;
  scratch.put("study.yaml",
              "command: roofline\narguments: [matmul, \"{rows}x8192x28672\"]\n"
              "flags: {hw: tpu-v5e, set: [\"hw.network.0.link_bandwidth={rate}\"]}\n"
              "axes: {rate: [1GB/s, 2GB/s], rows: 8..32*2}\n");
  std::ostringstream out;
  std::ostringstream err;
  Environment env{.out = out, .err = err};
  EXPECT_EQ(run({"batch", scratch.path("study.yaml"), "-o", scratch.path("rows.jsonl")}, env), 2);
  EXPECT_NE(err.str().find("every question of a sample of"), std::string::npos) << err.str();
  EXPECT_NE(err.str().find("no figure of this answer depends on it"), std::string::npos) << err.str();
}

TEST(AskCommand, NothingFitsIsAReasonToo) {
  const StudyReply reply = ask()({"train", {"llama3.1-405b"}, {{"--hw", {"h100-sxm"}}, {"--chips", {"8"}}}});
  EXPECT_EQ(reply.exit, 3);
  EXPECT_TRUE(reply.reason.starts_with("Nothing fits.")) << reply.reason;
}

/// Questions of a study share bounds of families, and rows leave asides out: the rows are those of a question alone.
TEST(AskCommand, NeighboursAreAnsweredAsIfAlone) {
  const Ask asked = ask();
  for (const char* chips : {"16", "24", "64", "16"}) {
    for (const char* batch : {"1M", "4M"}) {
      const StudyQuestion question{
          "train", {"llama3-8b"}, {{"--hw", {"h100-sxm"}}, {"--chips", {chips}}, {"--batch-tokens", {batch}}}};
      const StudyReply together = asked(question);
      EXPECT_EQ(together.exit, 0) << together.reason;
      std::ostringstream alone;
      std::ostringstream err;
      Environment env{.out = alone, .err = err};
      run({"train", "llama3-8b", "--hw", "h100-sxm", "--chips", chips, "--batch-tokens", batch, "-o", "row"}, env);
      EXPECT_EQ(together.records, alone.str()) << chips << " chips, " << batch;
    }
  }
}

TEST(AskCommand, SeveralThreadsMayAsk) {
  const Ask asked = ask();
  const std::string expected = asked(roofline("512x8192x28672")).records;
  std::vector<std::thread> threads;
  std::atomic<int> same = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) same += asked(roofline("512x8192x28672")).records == expected ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(same, 200);
}

TEST(CommandForms, AreAllCommandsButBatch) {
  const std::vector<CommandForm> forms = command_forms();
  const auto has = [&](std::string_view name) {
    return std::any_of(forms.begin(), forms.end(), [&](const CommandForm& form) { return form.name == name; });
  };
  EXPECT_TRUE(has("train"));
  EXPECT_TRUE(has("roofline"));
  EXPECT_FALSE(has("batch"));
}

TEST(AskCommand, WritesNoFiles) {
  const test::Scratch scratch;
  const StudyReply reply = ask()(
      {"model",
       {"design"},
       {{"--hw", {"h100-sxm"}}, {"--chips", {"8"}}, {"--deadline", {"30d"}}, {"--write", {scratch.path("w.yaml")}}}});
  EXPECT_EQ(reply.exit, 2);
  EXPECT_NE(reply.reason.find("--write"), std::string::npos) << reply.reason;
  EXPECT_FALSE(std::filesystem::exists(scratch.path("w.yaml")));
}

}  // namespace
}  // namespace scalecalc::cli
