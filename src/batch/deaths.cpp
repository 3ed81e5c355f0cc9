// Notes the cases a study died in and starts the program again. What runs in the signal handler calls nothing but
// functions that POSIX allows there, on a stack of its own, because a fault may be that the stack is full.
#include "batch/deaths.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <csignal>
#include <filesystem>

#include "base/diagnostic.h"
#include "batch/files.h"

namespace scalecalc {
namespace {

struct FaultSignal {
  int number;
  std::string_view name;
};
constexpr std::array kFaults{FaultSignal{SIGSEGV, "SIGSEGV"}, FaultSignal{SIGBUS, "SIGBUS"},
                             FaultSignal{SIGFPE, "SIGFPE"}, FaultSignal{SIGILL, "SIGILL"},
                             FaultSignal{SIGABRT, "SIGABRT"}};

constexpr std::uint64_t kNoCase = ~std::uint64_t{0};
constexpr const char* kHandedOn = "SCALECALC_BATCH_GOES_ON";

/// Of the hash as names of unfinished shards are: another study in the same place has other cases.
std::string deaths_path(const std::string& directory, const StudyManifest& manifest) {
  constexpr std::size_t kShort = 12;
  return (std::filesystem::path(directory) / fmt::format("died.{}", manifest.hash.substr(0, kShort))).string();
}

/// Of a thread, for handlers that run because its own stack is full. A sanitizer's is left in place.
class HandlerStack {
 public:
  HandlerStack() {
    stack_t now{};
    if (::sigaltstack(nullptr, &now) != 0 || (now.ss_flags & SS_DISABLE) == 0) return;
    constexpr std::size_t kSize = std::size_t{64} << 10U;
    place_ = std::make_unique<char[]>(kSize);
    const stack_t own{.ss_sp = place_.get(), .ss_flags = 0, .ss_size = kSize};
    ::sigaltstack(&own, nullptr);
  }
  ~HandlerStack() {
    const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    if (place_) ::sigaltstack(&none, nullptr);
  }
  HandlerStack(const HandlerStack&) = delete;
  HandlerStack& operator=(const HandlerStack&) = delete;

 private:
  std::unique_ptr<char[]> place_;
};

thread_local std::uint64_t case_here = kNoCase;
std::atomic<std::uint64_t> case_alone = kNoCase;

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (std::string& text : texts) out.push_back(text.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace

struct FaultWatch::Noted {
  std::string path;
  bool restarts = false;
  std::vector<std::string> words;
  std::vector<std::string> variables;
  std::vector<char*> word_list;
  std::vector<char*> variable_list;
  std::array<struct sigaction, kFaults.size()> before{};

  static std::atomic<const Noted*> of_process;
  static std::atomic_flag dying;

  /// "\nCASE SIGNAL\n": a line cut short by a full disk spoils none that follows.
  bool note(std::uint64_t number, int signal) const;
  static void handle(int signal, siginfo_t* info, void* context);
};

std::atomic<const FaultWatch::Noted*> FaultWatch::Noted::of_process = nullptr;
std::atomic_flag FaultWatch::Noted::dying;

bool FaultWatch::Noted::note(std::uint64_t number, int signal) const {
  std::array<char, 64> line{};
  char* at = line.data();
  char* const end = line.data() + line.size();
  *at++ = '\n';
  at = std::to_chars(at, end, number).ptr;
  *at++ = ' ';
  at = std::to_chars(at, end, signal).ptr;
  *at++ = '\n';
  constexpr mode_t kMode = 0666;
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, kMode);
  return fd >= 0 && ::write(fd, line.data(), static_cast<std::size_t>(at - line.data())) == at - line.data();
}

void FaultWatch::Noted::handle(int signal, siginfo_t* info, void* /*context*/) {
  if (dying.test_and_set()) {
    for (;;) ::pause();  // another thread is at it, and ends this one
  }
  const Noted* const own = of_process.load();
  const std::uint64_t number = case_here != kNoCase ? case_here : case_alone.load();
  // One that another process sent is not the case's.
  const bool sent = info->si_code <= 0 && info->si_pid != ::getpid();
  const bool noted = own != nullptr && !sent && number != kNoCase && own->note(number, signal);
  sigset_t this_one;
  ::sigemptyset(&this_one);
  ::sigaddset(&this_one, signal);
  if (noted && own->restarts) {
    // The mask goes on to the program that starts.
    ::sigprocmask(SIG_UNBLOCK, &this_one, nullptr);
    ::execve("/proc/self/exe", own->word_list.data(), own->variable_list.data());
  }
  struct sigaction usual {};
  usual.sa_handler = SIG_DFL;
  ::sigaction(signal, &usual, nullptr);
  ::sigprocmask(SIG_UNBLOCK, &this_one, nullptr);
  ::raise(signal);
}

FaultWatch::FaultWatch(const std::string& directory, const StudyManifest& manifest,
                       const std::optional<std::vector<std::string>>& words)
    : noted_(std::make_unique<Noted>()) {
  noted_->path = deaths_path(directory, manifest);
  if (words) {
    noted_->restarts = true;
    noted_->words = *words;
    noted_->words.insert(noted_->words.begin(), "scalecalc");
    const std::string handed_on = std::string(kHandedOn) + '=';
    for (char** variable = environ; *variable != nullptr; ++variable) {
      if (!std::string_view(*variable).starts_with(handed_on)) noted_->variables.emplace_back(*variable);
    }
    noted_->variables.push_back(fmt::format("{}{}:{}", handed_on, ::getpid(), directory));
    noted_->word_list = pointers_to(noted_->words);
    noted_->variable_list = pointers_to(noted_->variables);
  }
  Noted::of_process = noted_.get();
  struct sigaction handler {};
  handler.sa_sigaction = Noted::handle;
  handler.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&handler.sa_mask);
  for (std::size_t i = 0; i < kFaults.size(); ++i) ::sigaction(kFaults[i].number, &handler, &noted_->before[i]);
}

FaultWatch::~FaultWatch() {
  for (std::size_t i = 0; i < kFaults.size(); ++i) ::sigaction(kFaults[i].number, &noted_->before[i], nullptr);
  Noted::of_process = nullptr;
}

CaseAsked::CaseAsked(std::uint64_t number, bool alone) : alone_(alone) {
  thread_local const HandlerStack stack;
  case_here = number;
  if (alone_) case_alone = number;
}

CaseAsked::~CaseAsked() {
  case_here = kNoCase;
  if (alone_) case_alone = kNoCase;
}

Deaths deaths_in(const std::string& directory, const StudyManifest& manifest) {
  Deaths out;
  const std::string path = deaths_path(directory, manifest);
  if (!file_exists(path)) return out;
  LineReader lines(OpenFile::for_reading_back(path));
  while (const auto line = lines.next()) {
    std::uint64_t number = 0;
    int signal = 0;
    const char* const end = line->data() + line->size();
    const auto [space, no_number] = std::from_chars(line->data(), end, number);
    if (no_number != std::errc() || space == end || *space != ' ' || number >= manifest.cases) continue;
    if (std::from_chars(space + 1, end, signal).ec == std::errc()) out.emplace(number, signal);
  }
  return out;
}

StudyReply reply_of_death(int signal) {
  const auto* const known =
      std::find_if(kFaults.begin(), kFaults.end(), [&](const FaultSignal& fault) { return fault.number == signal; });
  return {
      .exit = static_cast<int>(ExitCode::kBug),
      .reason = fmt::format("the program died of signal {}{} in this question (a bug of scalecalc; please report it "
                            "with the question)",
                            signal, known == kFaults.end() ? "" : fmt::format(" ({})", known->name))};
}

std::optional<std::string> handed_on_directory(
    const std::function<std::optional<std::string>(const std::string&)>& variable) {
  const std::optional<std::string> text = variable ? variable(kHandedOn) : std::nullopt;
  const std::string own = fmt::format("{}:", ::getpid());
  if (!text || !text->starts_with(own)) return std::nullopt;
  return text->substr(own.size());
}

}  // namespace scalecalc
