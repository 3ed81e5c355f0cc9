// No flag is ignored in silence. For every mode of the commands that answer at once, each flag of it is added to a
// question, with several values: the answer changes beside its query, or the flag is refused by name, or the reason why
// this question is none for it stands here.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "cli/comma_list.h"
#include "cli/commands.h"
#include "cli/run.h"
#include "report/answer_fields.h"
#include "support/scratch.h"

namespace scalecalc::cli {
namespace {

using Reasons = std::map<std::string, std::string>;

/// A question, words between blanks ('+' stands for a blank inside one), and why some flags change nothing in it.
struct FlagQuestion {
  std::string words;
  Reasons unchanged{};
};

constexpr const char* kNoTensorRanks = "no plan of the answer has tensor ranks, hidden or not";
constexpr const char* kNoContextRanks = "no plan of the answer has context ranks";
constexpr const char* kFewChips = "a chip or two meet the deadline";
constexpr const char* kOneDomain = "chips of a group that small lie in one domain of every tier";

const std::vector<FlagQuestion>& flag_questions() {
  static const std::vector<FlagQuestion> kAll{
      {"train llama3-8b --hw=h100-sxm --chips=16 --tokens=1T"},
      {"train mixtral-8x7b --hw=h100-sxm --chips=16 --tokens=1T --fix=pp=1,remat=full"},
      {"train llama3-8b --hw=tpu-v5p --chips=64"},
      {"train llama3-8b --hw=h100-sxm --chips=16 --tokens=1T --mtbf=5000h"},
      {"train llama3-8b --hw=h100-sxm --chips=8 --lora=16"},
      {"train llama3-8b --hw=h100-sxm --chips=8..32 --tokens=1T", {{"--tp-overlap", kNoTensorRanks}}},
      {"train llama3-8b --hw=h100-sxm --chips=16 --tokens=1T --pareto", {{"--tp-overlap", kNoTensorRanks}}},
      {"serve llama3-8b --hw=h100-sxm --chips=8"},
      {"serve mixtral-8x7b --hw=h100-sxm --chips=8"},
      {"serve llama3-8b --hw=h100-sxm --rate=5 --simulate=200"},
      {"serve llama3-8b --hw=h100-sxm --chips=1 --concurrency=8 --requests=80"},
      {"serve llama3-8b --hw=tpu-v5p --chips=8"},
      {"compare llama3-8b --hw=h100-sxm:8,tpu-v5p:8 --serve"},
      {"compare llama3-8b --hw=h100-sxm:8,tpu-v5p:8 --tokens=1T --fix=pp=1",
       {{"--tp-overlap", kNoTensorRanks}, {"--cp-comm", kNoContextRanks}}},
      {"compare llama3-8b --hw=h100-sxm,tpu-v5p --tokens=1G --deadline=30d --fix=pp=1",
       {{"--tp-overlap", kNoTensorRanks},
        {"--cp-comm", kNoContextRanks},
        {"--dp-overlap", kFewChips},
        {"--max", kFewChips}}},
      {"sensitivity llama3-8b --hw=h100-sxm --chips=8 --tokens=1T --fix=pp=1,remat=full",
       {{"--tp-overlap", kNoTensorRanks},
        {"--cp-comm", kNoContextRanks},
        {"--dropout", "its masks fill memory, of which the answer says nothing"}}},
      {"sensitivity serve llama3-8b --hw=h100-sxm --chips=8",
       {{"--gpu-memory-utilization", "the recommended batch fits into the smaller share too"}}},
      {"distill llama3.2-1b --teacher=llama3-8b --hw=h100-sxm --chips=8 --batch-seqs=64 --tokens=1B "
       "--teacher-on=stored "
       "--storage-bandwidth=100GB/s --fix=tp=1,pp=1",
       {{"--cp-comm", kNoContextRanks}}},
      {"distill llama3.2-1b --teacher=llama3-8b --hw=h100-sxm --chips=8 --batch-seqs=64 --tokens=1B --loss=sequence "
       "--fix=tp=1,pp=1",
       {{"--cp-comm", kNoContextRanks}}},
      {"rl llama3-8b --hw=h100-sxm --chips=8 --prompt=64 --generate=64 --prompts=8 --fix=tp=1,pp=1",
       {{"--cp-comm", kNoContextRanks}}},
      {"trace llama3-8b --hw=h100-sxm --chips=16 --batch-seqs=32 --plan=8",
       {{"--tie", "plan 8 is shown whichever is recommended"}}},
      {"profile " SCALECALC_SOURCE_DIR "/tests/data/profiles/kineto.json --hw=h100-sxm --top=2"},
      {"validate train --only=chip=mi325x"},
      {"validate memory --only=chip=h100-sxm", {{"--memory", "it asks for what was asked"}}},
      {"validate serve --only=chip=mi300x"},
      {"calibrate train --hw=mi355x --stack=primus"},
      {"calibrate train --hw=mi355x --stack=primus --dump-yaml"},
      {"calibrate serve --only=chip=h20"},
      {"model design --hw=h100-sxm --chips=8 --deadline=1h"},
      {"collective all-gather --hw=h100-sxm --group=8 --bytes=64MiB", {{"--tier", kOneDomain}}},
      {"collective all-gather --hw=tpu-v5p --mesh=X=4,Y=4,Z=4 --axes=X --bytes=64MiB"},
      {"collective reduce-scatter --hw=tpu-v5p --mesh=X=4,Y=4,Z=4 --axes=X --bytes=64MiB"},
      {"collective all-reduce --hw=h100-sxm --group=8 --bytes=64MiB", {{"--tier", kOneDomain}}},
      {"collective all-to-all --hw=h100-sxm --group=8 --bytes=64MiB", {{"--tier", kOneDomain}}},
      {"collective gather --hw=h100-sxm --group=8 --bytes=64MiB", {{"--tier", kOneDomain}}},
      {"collective scatter --hw=h100-sxm --group=8 --bytes=64MiB", {{"--tier", kOneDomain}}},
      {"collective broadcast --hw=h100-sxm --group=8 --bytes=64MiB", {{"--tier", kOneDomain}}},
      {"collective reduce --hw=h100-sxm --group=8 --bytes=64MiB", {{"--tier", kOneDomain}}},
      {"collective permute --hw=tpu-v5p --mesh=X=4,Y=4 --axes=X --bytes=64MiB"},
      {"matmul A[I_X,+J_Y]+*+B[J_Y,+K]+->+C[I_X,+K] --hw=tpu-v5e --mesh=X=4,Y=4 --dims=I=1024,J=8192,K=8192"},
      {"matmul A[I_X,+J]+->+A[I,+J] --hw=tpu-v5p --mesh=X=4,Y=4,Z=4 --dims=I=1024,J=8192"},
      {"matmul A[I_X,+J_Y] --mesh=X=4,Y=4 --dims=I=1024,J=8192"},
      {"roofline matmul 512x8192x8192 --hw=tpu-v5e"},
      {"roofline add 1Gi --hw=h100-sxm"},
      {"roofline flops 1e12 bytes=8.2e8 --hw=h100-sxm"},
      {"bounds llama3-8b --hw=h100-sxm --chips=64 --for=training"},
      {"bounds llama3-8b --hw=h100-sxm --chips=64 --for=serving"},
      {"bounds llama3-8b --hw=tpu-v5p --chips=64"},
      {"bounds 70B --hw=h100-sxm"},
      {"bounds --hw=h100-sxm"},
      {"book 1"},
      {"model llama3-8b"},
      {"model llama3-8b --dump-yaml"},
      {"model llama3-8b --keys"},
      {"model list llama"},
      {"hw list"},
      {"hw h100-sxm"},
      {"hw tpu-v5p"},
      {"hw h100-sxm --keys"},
      {"hw h100-sxm --dump-yaml"},
      {"scaling-law --flops=1e24"},
      {"scaling-law llama3-8b"},
      {"scaling-law --flops=1e24 --hw=h100-sxm --mfu=40%"}};
  return kAll;
}

/// Commands that are not asked here.
const Reasons& left_out() {
  static const Reasons kAll{{"batch", "its answers are files; tests/batch"},
                            {"export", "its question is a file; launch_files_test.cpp"},
                            {"lint", "its question is a file; launch_files_test.cpp"}};
  return kAll;
}

/// Values that differ from the default where the table's example is it, or changes nothing.
const std::map<std::string, std::vector<std::string>>& more_values() {
  static const std::map<std::string, std::vector<std::string>> kAll{{"--max", {"tp=1", "fsdp=2", "dp=1"}},
                                                                    {"--fix", {"tp=2"}},
                                                                    {"--mfu", {"30%"}},
                                                                    {"--batch", {"4"}},
                                                                    {"--slo-ttft", {"1ms"}},
                                                                    {"--set", {"model.max_seq=4096"}},
                                                                    {"--optimizer", {"sgd"}},
                                                                    {"--budget", {"1000"}},
                                                                    {"--topology", {"4x4x4", "4x4"}},
                                                                    {"--stages", {"stack"}},
                                                                    {"--measured", {"370us"}},
                                                                    {"--vendor", {"AMD"}},
                                                                    {"--family", {"tpu"}},
                                                                    {"--dims", {"I=2048"}},
                                                                    {"--axes", {"Y"}},
                                                                    {"--token-bytes", {"8"}},
                                                                    {"--from", {"0", "hbm"}},
                                                                    {"--to", {"1"}},
                                                                    {"--price", {"h100-sxm=9"}},
                                                                    {"--min-memory", {"1TB"}},
                                                                    {"--stack", {"nemo"}},
                                                                    {"--contexts", {"1Ki"}},
                                                                    {"--pad", {"100x300"}},
                                                                    {"--cloud", {"GCP"}},
                                                                    {"--dtype", {"fp8", "int8"}},
                                                                    {"--swing", {"10%"}},
                                                                    {"--teacher-max", {"dp=1", "pp=1"}},
                                                                    {"--gen-max", {"tp=1"}},
                                                                    {"--max-error", {"1%"}},
                                                                    {"--tie", {"50%"}},
                                                                    {"--tokens-per-parameter", {"100"}}};
  return kAll;
}

std::vector<std::string> flag_values(const Flag& flag) {
  if (flag.kind == FlagKind::kSwitch) return {""};
  std::vector<std::string> out{std::string(flag.example)};
  for (const std::string_view word : flag.words) out.emplace_back(word);
  if (flag.reading == Reading::kCount) out.insert(out.end(), {"1", "2", "3", "16", "4096"});
  const auto more = more_values().find(std::string(flag.name));
  if (more != more_values().end()) out.insert(out.end(), more->second.begin(), more->second.end());
  return out;
}

std::vector<std::string> question_words(const FlagQuestion& asked) {
  std::vector<std::string> out = parts_between(asked.words, ' ');
  for (std::string& word : out) std::replace(word.begin(), word.end(), '+', ' ');
  return out;
}

struct FlagReply {
  int exit = 0;
  std::string answer;
  std::string errors;
};

/// The text but for the commands that it offers, which repeat every flag.
std::string without_commands(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("  scalecalc ")) out += line + '\n';
  }
  return out;
}

FlagReply ask_flag(std::vector<std::string> words, bool json) {
  std::ostringstream out;
  std::ostringstream err;
  Environment env{.out = out, .err = err};
  if (json) words.emplace_back("--json");
  FlagReply reply{run(words, env), "", ""};
  reply.answer = without_commands(std::move(out).str());
  reply.errors = std::move(err).str();
  if (!json || reply.exit == 2) return reply;
  nlohmann::json document = nlohmann::json::parse(reply.answer);
  for (const char* echo : {"query", "question", "search"}) document.erase(echo);
  reply.answer = document.dump();
  return reply;
}

/// Errors that say which flag they are about, or quote a part of what it says.
bool names_flag(const std::string& errors, const std::string& flag, const std::string& value) {
  if (errors.find(flag) != std::string::npos) return true;
  const std::vector<std::string> parts = comma_parts(value.substr(0, value.find('@')));
  return std::any_of(parts.begin(), parts.end(), [&](const std::string& part) {
    return !part.empty() && errors.find('\'' + part + '\'') != std::string::npos;
  });
}

/// In a place of its own: some flags' examples name files to write.
class FlagEffects : public testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override { std::filesystem::current_path(scratch_.path(".")); }
  void TearDown() override { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
  test::Scratch scratch_;
};

TEST_P(FlagEffects, AFlagChangesTheAnswerOrIsRefusedByName) {
  const FlagQuestion& asked = flag_questions()[GetParam()];
  const std::vector<std::string> words = question_words(asked);
  const Command& command = *find_command(words.front());
  const Arguments arguments = parse_arguments({words.begin() + 1, words.end()}, command);
  const auto mode = mode_of(arguments);
  const bool json = !mode || command.modes[*mode].has_outputs;
  const FlagReply base = ask_flag(words, json);
  const FlagReply table = ask_flag(words, false);
  ASSERT_EQ(base.exit, 0) << base.errors;
  std::set<std::string> silent;
  for (const Flag& flag : command.flags) {
    const std::string name(flag.name);
    const bool of_mode = !mode || (modes_of(command.flags, name) & (1U << *mode)) != 0;
    const bool writes = flag.writes || name == "--explain";
    if (!of_mode || writes || arguments.has(name) || find_flag(command.flags, name) != &flag) continue;
    if (flag.example.ends_with(".csv") || flag.example.ends_with(".json") || flag.example.ends_with(".sh")) {
      continue;  // reads a file
    }
    bool changed = false;
    bool refused = false;
    std::string unnamed;
    for (const std::string& value : flag_values(flag)) {
      std::vector<std::string> with = words;
      with.push_back(value.empty() ? name : name + '=' + value);
      const FlagReply reply = ask_flag(with, json);
      if (reply.exit == 2) {
        // " is missing: " asks for another flag beside it.
        const bool named =
            names_flag(reply.errors, name, value) || reply.errors.find(" is missing: ") != std::string::npos;
        refused = refused || named;
        if (!named) unnamed = reply.errors;
        continue;
      }
      changed = reply.exit != base.exit || reply.answer != base.answer || ask_flag(with, false).answer != table.answer;
      if (changed) break;
    }
    if (!changed && !refused) silent.insert(name + (unnamed.empty() ? "" : ": " + unnamed));
  }
  std::set<std::string> expected;
  for (const auto& [flag, reason] : asked.unchanged) expected.insert(flag);
  EXPECT_EQ(silent, expected) << asked.words;
}

/// The names behind `list` in the hint of an answer that refuses a name it does not have.
std::vector<std::string> names_in_hint(const std::string& errors, const std::string& list) {
  const std::size_t at = errors.find(list);
  if (at == std::string::npos) return {};
  const std::size_t from = at + list.size();
  std::vector<std::string> out = comma_parts(errors.substr(from, errors.find('\n', from) - from));
  for (std::string& name : out) name.erase(0, name.find_first_not_of(' '));
  return out;
}

bool is_listed(const std::string& name, const std::vector<std::string>& known) {
  return std::any_of(known.begin(), known.end(), [&](std::string_view other) {
    return other.ends_with('*') ? name.starts_with(other.substr(0, other.size() - 1)) : name == other;
  });
}

// Session's check before the work knows every section and column that the answer would take.
TEST_P(FlagEffects, NoPartOfTheTextIsRefusedBeforeTheWork) {
  const FlagQuestion& asked = flag_questions()[GetParam()];
  std::vector<std::string> words = question_words(asked);
  const std::string command = words.front();
  const auto with = [&](const std::string& part) {
    std::vector<std::string> out = words;
    out.push_back(part);
    return ask_flag(out, false).errors;
  };
  std::vector<std::string> sections;
  for (const std::string& name : answer_sections(command)) {
    if (sections.empty() && !name.ends_with('*')) sections = names_in_hint(with("--only=" + name), " sections: ");
  }
  for (const std::string& name : sections) EXPECT_TRUE(is_listed(name, answer_sections(command))) << name;
  const std::vector<std::string> columns = names_in_hint(with("--columns=tool_version"), " columns: ");
  const std::string refused = with("--columns=tool_version");
  EXPECT_TRUE(!columns.empty() || refused.find(" has no table") != std::string::npos ||
              refused.find(" has no meaning ") != std::string::npos)
      << refused;
  for (std::string name : columns) {
    std::replace(name.begin(), name.end(), '.', '_');
    EXPECT_TRUE(is_listed(name, answer_fields(command))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Questions, FlagEffects, testing::Range<std::size_t>(0, flag_questions().size()));

TEST(FlagEffectsTable, AMisspeltPartOfTheTextIsFoundBeforeTheWork) {
  // The hardware does not exist: nobody has looked for it yet.
  const FlagReply column = ask_flag({"train", "llama3-8b", "--hw=no-such-chip", "--chips=8", "--columns=mfv"}, false);
  EXPECT_EQ(column.exit, 2);
  EXPECT_TRUE(column.errors.starts_with("error: --columns: no answer of train has 'mfv'\nhint: did you mean 'mfu'?"))
      << column.errors;
  const FlagReply section = ask_flag({"train", "llama3-8b", "--hw=no-such-chip", "--chips=8", "--only=plan"}, false);
  EXPECT_EQ(section.exit, 2);
  EXPECT_TRUE(section.errors.starts_with("error: --only: no answer of train has 'plan'\nhint: did you mean 'plans'?"))
      << section.errors;
}

TEST(FlagEffectsTable, ATraceWithoutTimeIsABurst) {
  const test::Scratch scratch;
  const std::string trace = scratch.put("trace.csv", "prompt,generate,arrival\n512,64,0\n256,32,0\n");
  const std::vector<std::string> words{"serve", "llama3-8b", "--hw=h100-sxm", "--trace=" + trace};
  const FlagReply served = ask_flag(words, false);
  EXPECT_EQ(served.exit, 0) << served.errors;
  EXPECT_NE(served.answer.find("2 requests at once"), std::string::npos) << served.answer;
  std::vector<std::string> stretched = words;
  stretched.push_back("--rate=5");
  const FlagReply refused = ask_flag(stretched, false);
  EXPECT_EQ(refused.exit, 2);
  EXPECT_NE(refused.errors.find("--trace: all its requests arrive at once"), std::string::npos) << refused.errors;
}

TEST(FlagEffectsTable, ClientsAreAskedRight) {
  const std::vector<std::string> words{"serve", "llama3-8b", "--hw=h100-sxm", "--chips=1", "--generate=64"};
  const auto ask = [&](std::vector<std::string> more) {
    more.insert(more.begin(), words.begin(), words.end());
    return ask_flag(more, false);
  };
  EXPECT_EQ(ask({"--concurrency=8"}).exit, 0);
  EXPECT_NE(ask({"--concurrency=8"}).answer.find("8 clients: carried by 1 replica"), std::string::npos);
  EXPECT_EQ(ask({"--concurrency=8", "--slo-ttft=1ms"}).exit, 3);
  const auto refused = [&](std::vector<std::string> more, const char* why) {
    const FlagReply reply = ask(std::move(more));
    EXPECT_EQ(reply.exit, 2);
    EXPECT_NE(reply.errors.find(why), std::string::npos) << reply.errors;
  };
  refused({"--requests=80"}, "--requests has no meaning without clients");
  refused({"--concurrency=80", "--requests=40"}, "--requests 40: of 80 clients some would send none");
  refused({"--concurrency=8", "--rate=2"}, "when requests come");
  refused({"--concurrency=8", "--routing=prefix-aware"}, "--routing prefix-aware needs prompts that share something");
  refused({"--fix=prefill.tp=1"}, "--fix and --max of prefill or decode need pools of their own");
  refused({"--routing=round-robin"}, "--routing needs a rate");
  refused({"--rate=most"}, "--rate: ");
  refused({"--length-ratio=80%", "--prompt=100..200"}, "--length-ratio needs one length");
}

TEST(FlagEffectsTable, EveryModeOfEveryCommandIsAsked) {
  std::set<std::pair<std::string, std::size_t>> asked;
  for (const FlagQuestion& one : flag_questions()) {
    const std::vector<std::string> words = question_words(one);
    const Arguments arguments = parse_arguments({words.begin() + 1, words.end()}, *find_command(words.front()));
    asked.emplace(words.front(), mode_of(arguments).value_or(0));
  }
  for (const Command& command : commands()) {
    const std::string name(command.name);
    if (left_out().contains(name)) continue;
    for (std::size_t m = 0; m < std::max<std::size_t>(1, command.modes.size()); ++m) {
      EXPECT_TRUE(asked.contains({name, m})) << name << ' ' << m;
    }
  }
}

}  // namespace
}  // namespace scalecalc::cli
