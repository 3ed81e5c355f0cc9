#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <thread>

#include "scalecalc.hpp"

namespace {
std::atomic<int> umasks_set = 0;
}  // namespace

/// In the place of the C library's: whoever reads the mask sets it, for all threads.
extern "C" mode_t umask(mode_t mask) noexcept {
  ++umasks_set;
  return static_cast<mode_t>(::syscall(SYS_umask, mask));
}

namespace scalecalc {
namespace {

using Words = std::vector<std::string>;

constexpr int kBudgetIsSpent = 75, kCutOff = 71;

/// What is the same whenever it is asked.
std::string without_times(const api::Answer& answer) {
  nlohmann::json document = nlohmann::json::parse(answer.output, nullptr, false);
  if (document.is_object() && document.contains("search")) document["search"].erase("elapsed_s");
  const bool is_json = document.is_object();
  return std::to_string(answer.status) + (is_json ? document.dump() : answer.output) + answer.messages;
}

/// The exit status of a child that does this, or of what killed it; one that hangs is ended.
int status_of_child(const std::function<int()>& work) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(60);
    ::_exit(work());
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

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

TEST(Api, TenThreadsAskAtTheSameTime) {
  const std::string study = testing::TempDir() + "/study.yaml";
  std::ofstream(study) << "command: roofline\narguments: [matmul, \"{m}x8192x8192\"]\nflags: {hw: h100-sxm}\n"
                          "axes: {m: 1..64*2}\n";
  const std::vector<Words> questions{
      {"train", "llama3-8b", "--hw", "h100-sxm", "--chips", "64", "--json"},
      {"serve", "llama3-8b", "--hw", "h100-sxm", "--chips", "8", "--json"},
      {"serve", "mixtral-8x7b", "--hw", "h100-sxm", "--chips", "16", "--disaggregate", "auto"},
      {"model", "llama3-8b", "--json"},
      {"model", "no-such-model", "--json"},
      {"train", "llama3-8b", "--hw", "tpu-v5e", "--chips", "7"},
      {"compare", "llama3-8b", "--hw", "h100-sxm", "--deadline", "60d", "--tokens", "1T"},
      {"batch", study},
      {"train", "llama3-8b", "--hw", "h100-sxm", "--chips", "8", "--export", "megatron"},
      {"hw", "list", "--json"},
      {"serve", "llama3-8b", "--hw", "h100-sxm", "--chips", "1", "--rate", "2"},
      {"train", "llama3-8b", "--hw", "h100-sxm", "--chips", "64", "-o", "json=" + testing::TempDir() + "/plan.json"},
      {"sensitivity", "llama3-8b", "--hw", "h100-sxm", "--chips", "64"},
      {"compare", "llama3-8b", "--hw", "h100-sxm,tpu-v5e", "--chips", "64"},
      {"rl", "llama3.1-8b", "--hw", "h100-sxm", "--chips", "64", "--prompt", "512", "--generate", "1024"},
      {"train", "--help"},
      {"batch", study, "--jobs", "2"},
      {"serve", "llama3-8b", "--hw", "h100-sxm", "--chips", "8", "--export", "vllm"},
      {"trace", "llama3-8b", "--hw", "h100-sxm", "--chips", "64"},
      {"scaling-law", "--flops", "1e24"},
  };
  constexpr std::size_t kThreads = 10;
  std::vector<std::string> alone, together(questions.size());
  for (const Words& question : questions) {
    alone.push_back(without_times(api::ask(question)));
    EXPECT_FALSE(alone.back().starts_with("7")) << question.front() << alone.back();
  }
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = t; i < questions.size(); i += kThreads) together[i] = without_times(api::ask(questions[i]));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < questions.size(); ++i) EXPECT_EQ(together[i], alone[i]) << i;
}

TEST(Api, AFileHasTheModeThatTheHostGivesIt) {
  const std::string file = testing::TempDir() + "/mode.json";
  std::filesystem::remove(file);
  const mode_t before = static_cast<mode_t>(::syscall(SYS_umask, 027));
  umasks_set = 0;
  const api::Answer answer = api::ask({"model", "llama3-8b", "-o", "json=" + file});
  ::syscall(SYS_umask, before);
  ASSERT_TRUE(answer.answered()) << answer.messages;
  struct stat info {};
  ASSERT_EQ(::stat(file.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777U, 0640U);
  EXPECT_EQ(umasks_set, 0);
}

TEST(Api, LimitsAreOfOneQuestionOrRefused) {
  const Words question{"train", "llama3-70b", "--hw", "h100-sxm", "--chips", "512"};
  const auto with = [&](const char* flag, const char* value) {
    Words words = question;
    words.insert(words.end(), {flag, value});
    return api::ask(words);
  };
  const api::Answer late = with("--time-limit", "1us");
  EXPECT_EQ(late.status, kBudgetIsSpent) << late.messages;
  EXPECT_NE(late.messages.find("warning: --time-limit 1 us is reached\n"), std::string::npos) << late.messages;
  EXPECT_EQ(with("--time-limit", "1h").status, 0);
  const api::Answer large = with("--memory-limit", "4GB");
  EXPECT_EQ(large.status, 2);
  EXPECT_NE(large.messages.find("--memory-limit counts what the whole process uses"), std::string::npos);
  EXPECT_EQ(api::ask(question).status, 0);
}

TEST(Api, NoWordIsCutOrMissing) {
  using namespace std::string_literals;
  const api::Answer cut = api::ask({"model", "llama3-8b\0-of-another-name"s});
  EXPECT_EQ(cut.status, 2);
  EXPECT_EQ(cut.output, "");
  EXPECT_NE(cut.messages.find("NUL character after 'llama3-8b'"), std::string::npos);
  const char* const words[] = {"model", nullptr};
  for (const char* const* given : {static_cast<const char* const*>(nullptr), words}) {
    scalecalc_answer* answer = scalecalc_ask(2, given);
    EXPECT_EQ(scalecalc_status(answer), 2);
    scalecalc_free(answer);
  }
}

TEST(Api, AThreadWithASmallStackAsks) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 64 << 10), 0);
  api::Answer answer;
  pthread_t thread{};
  const auto ask = [](void* to) -> void* {
    *static_cast<api::Answer*>(to) = api::ask({"train", "llama3-70b", "--hw", "h100-sxm", "--chips", "64", "--json"});
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, ask, &answer), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  EXPECT_EQ(answer.status, 0) << answer.messages;
}

/// A signal would end the host.
TEST(Api, AClosedPipeIsAnErrorOfTheAnswer) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const api::Answer answer = api::ask({"model", "llama3-8b", "-o", "json=/dev/fd/" + std::to_string(ends[1])});
  ::close(ends[1]);
  EXPECT_EQ(answer.status, 74) << answer.messages;
}

TEST(Api, AForkedProcessAnswers) {
  const Words question{"train", "llama3-8b", "--hw", "h100-sxm", "--chips", "64", "--json"};
  const std::string alone = without_times(api::ask(question));
  EXPECT_EQ(status_of_child([&] { return without_times(api::ask(question)) == alone ? 0 : 1; }), 0);
}

/// Not under AddressSanitizer (tests/CMakeLists.txt): GCC 12's allocator of it takes no care of fork(), so that a child
/// forked while another thread allocates hangs in its first `new`, with nothing of scalecalc's in it.
TEST(Api, AProcessForkedBesideAQuestionAnswersOrIsRefused) {
  const Words question{"train", "llama3-70b", "--hw", "h100-sxm", "--chips", "256", "--json"};
  std::atomic<bool> ends = false;
  std::vector<std::thread> others;
  for (int i = 0; i < 3; ++i) {
    others.emplace_back([&] {
      while (!ends) api::ask(question);
    });
  }
  int refused = 0;
  for (int i = 0; i < 8; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(7 * i));
    const int status = status_of_child([&] { return api::ask({"model", "llama3-8b"}).status; });
    EXPECT_TRUE(status == 0 || status == kCutOff) << status;
    refused += status == kCutOff ? 1 : 0;
  }
  ends = true;
  for (std::thread& thread : others) thread.join();
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace scalecalc
