// Walks the catalog: writes the questions down and asks each in a process of its own, so that one that dies is a line
// of the report and not the end of it.
#include "relations/catalog.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "cli/commands.h"
#include "cli/help.h"
#include "compare/train_comparison.h"
#include "config/catalog.h"
#include "relations/truth.h"

namespace scalecalc::relations {
namespace {

/// "{hw}" and "{chips}" stand for a chip and a count. A command that takes a chip and is not here is an error below.
const std::multimap<std::string, Words>& chip_questions() {
  const std::string data = std::string(SCALECALC_SOURCE_DIR) + "/tests/data/";
  static const std::multimap<std::string, Words> kAll{
      {"train", {"llama3-8b", "--hw={hw}", "--chips={chips}"}},
      {"trace", {"llama3-8b", "--hw={hw}", "--chips={chips}"}},
      {"sensitivity", {"llama3-8b", "--hw={hw}", "--chips={chips}"}},
      {"sensitivity", {"serve", "llama3-8b", "--hw={hw}", "--chips={chips}"}},
      {"serve", {"llama3-8b", "--hw={hw}", "--chips={chips}"}},
      {"compare", {"llama3-8b", "--hw={hw},h100-sxm", "--chips={chips}"}},
      {"compare", {"llama3-8b", "--serve", "--hw={hw},h100-sxm", "--chips={chips}"}},
      {"distill", {"llama3.2-1b", "--teacher=llama3-8b", "--tokens=10B", "--hw={hw}", "--chips={chips}"}},
      {"rl", {"llama3.2-1b", "--prompt=512", "--generate=1024", "--hw={hw}", "--chips={chips}"}},
      {"model", {"design", "--deadline=30d", "--hw={hw}", "--chips={chips}"}},
      {"scaling-law", {"llama3-8b", "--budget=1M", "--hw={hw}", "--chips={chips}"}},
      {"bounds", {"llama3-8b", "--hw={hw}", "--chips={chips}"}},
      {"roofline", {"matmul", "512x8192x28672", "--hw={hw}", "--chips={chips}"}},
      {"roofline", {"attention", "heads=32", "kv_heads=8", "head_dim=128", "query=1", "kv=8192", "--hw={hw}"}},
      {"collective", {"all-reduce", "--bytes=1MiB", "--group={chips}", "--hw={hw}"}},
      {"collective", {"all-to-all", "--bytes=1MiB", "--mesh=X={chips}", "--hw={hw}"}},
      {"matmul", {"A[I_X, J] * B[J, K]", "--mesh=X={chips}", "--dims=I=16384,J=8192,K=8192", "--hw={hw}"}},
      {"hw", {"{hw}", "--chips={chips}"}},
      {"lint", {data + "launch/megatron.sh", "--model=llama3-8b", "--hw={hw}"}},
      {"profile", {data + "profiles/kineto.json", "--hw={hw}"}},
      {"profile", {data + "profiles/step.hlo", "--hw={hw}"}},
      {"calibrate", {"--hw={hw}"}},
  };
  return kAll;
}

/// Likewise of "{model}".
const std::vector<Words>& model_questions() {
  static const std::vector<Words> kAll{
      {"model", "{model}"},
      {"bounds", "{model}", "--hw=h100-sxm"},
      {"train", "{model}", "--hw=h100-sxm", "--chips=1"},
      {"train", "{model}", "--hw=h100-sxm", "--chips=64"},
      {"train", "{model}", "--hw=tpu-v5p", "--chips=64"},
      {"serve", "{model}", "--hw=h100-sxm", "--chips=1"},
      {"serve", "{model}", "--hw=h100-sxm", "--chips=8"},
      {"serve", "{model}", "--hw=tpu-v5e", "--chips=8"},
  };
  return kAll;
}

Words filled(Words words, const std::string& name, const std::string& value) {
  for (std::string& word : words) {
    if (const std::size_t at = word.find(name); at != std::string::npos) word.replace(at, name.size(), value);
  }
  return words;
}

std::set<std::int64_t> sizes_of(const std::string& chip) {
  const HardwareSpec& hw = chip_named(chip);
  const bool switched = !hw.network.empty() && !hw.is_torus();
  const std::int64_t node =
      switched ? std::max(hw.chips_per_host, hw.network.front().switched.chips) : hw.chips_per_host;
  return {1, 2, node, 2 * node, std::max<std::int64_t>(most_chips_of(hw, 1), 1)};
}

bool takes_chips(const cli::Command& command) {
  return command.names == CatalogKind::kHardware ||
         std::ranges::any_of(command.flags, [](const cli::Flag& flag) { return flag.name == "--hw"; });
}

constexpr int kStoppedEarly = 75;

/// A refusal quotes words of the question, not ones that the program gave itself.
bool quotes_only(const std::string& refusal, const Words& words) {
  const std::string typed = as_typed(words);
  std::istringstream lines(refusal);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t quoted = line.starts_with("     | --") ? 7 : std::string::npos;
    if (quoted != std::string::npos &&
        typed.find(line.substr(quoted, line.find_first_of(" =", quoted) - quoted)) == std::string::npos) {
      return false;
    }
  }
  return true;
}

/// Never returns: the processor's time that it may take is that of one question. Ends with 0, kStoppedEarly, or 1 after
/// it said what is wrong.
[[noreturn]] void answer_in_child(const Words& words) {
  constexpr rlimit kMost{.rlim_cur = 60, .rlim_max = 65};
  ::setrlimit(RLIMIT_CPU, &kMost);
  const Reply reply = ask(words);
  if (reply.status == kStoppedEarly) ::_exit(kStoppedEarly);
  const bool known = reply.status == 0 || reply.status == 2 || reply.status == 3;
  const bool said = reply.status == 2 ? reply.err.find("error: ") != std::string::npos && quotes_only(reply.err, words)
                                      : !(reply.out + reply.err).empty();
  if (known && said) ::_exit(0);
  fmt::print("exit {}, {}: {}\n", reply.status, said || reply.status == 2 ? reply.err : "without a word",
             as_typed(words));
  std::fflush(stdout);
  ::_exit(1);
}

/// Of two numbers one that neither shows (splitmix64).
std::uint64_t mixed(std::uint64_t a, std::uint64_t b) {
  std::uint64_t out = a + 0x9e3779b97f4a7c15U * (b + 1);
  out = (out ^ (out >> 30U)) * 0xbf58476d1ce4e5b9U;
  out = (out ^ (out >> 27U)) * 0x94d049bb133111ebU;
  return out ^ (out >> 31U);
}

std::vector<Words> chosen(std::vector<Words> all, const CatalogWalk& walk) {
  if (walk.sample == 0 || walk.sample >= all.size()) return all;
  std::vector<std::pair<std::uint64_t, std::size_t>> order;
  for (std::size_t i = 0; i < all.size(); ++i) order.emplace_back(mixed(walk.seed, i), i);
  std::ranges::sort(order);
  std::vector<Words> out;
  for (std::size_t i = 0; i < walk.sample; ++i) out.push_back(std::move(all[order[i].second]));
  return out;
}

double seconds_of(const rusage& use) {
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

class Walk {
 public:
  explicit Walk(std::vector<Words> questions) : questions_(std::move(questions)) {}

  int run() {
    const std::size_t at_once = std::max(1U, std::thread::hardware_concurrency());
    for (const Words& words : questions_) {
      if (running_.size() == at_once) wait();
      std::fflush(stdout);
      const pid_t child = ::fork();
      if (child < 0) throw std::runtime_error("no process can be started");
      if (child == 0) answer_in_child(words);
      running_.emplace(child, &words);
    }
    while (!running_.empty()) wait();
    fmt::print("{:>10}  questions of the catalog, {:.0f} s of processor time; {} stopped early, {} do not hold\n",
               questions_.size(), seconds_, stopped_, wrong_);
    fmt::print("{:>10.1f}  seconds of the longest: {}\n", longest_, slowest_);
    return wrong_ == 0 ? 0 : 1;
  }

 private:
  void wait() {
    int status = 0;
    rusage use{};
    const auto ended = running_.find(::wait4(-1, &status, 0, &use));
    if (ended == running_.end()) throw std::runtime_error("a process that was not started ended");
    const Words& words = *ended->second;
    running_.erase(ended);
    const double seconds = seconds_of(use);
    seconds_ += seconds;
    if (seconds > longest_) {
      longest_ = seconds;
      slowest_ = as_typed(words);
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return;
    if (WIFEXITED(status) && WEXITSTATUS(status) == kStoppedEarly) {
      ++stopped_;
      return;
    }
    ++wrong_;
    if (!WIFSIGNALED(status)) return;  // the child said it
    fmt::print("ended by signal {}{}: {}\n", WTERMSIG(status), WTERMSIG(status) == SIGXCPU ? " (too long)" : "",
               as_typed(words));
  }

  std::vector<Words> questions_;
  std::map<pid_t, const Words*> running_;
  std::uint64_t wrong_ = 0;
  std::uint64_t stopped_ = 0;
  double seconds_ = 0;
  double longest_ = 0;
  std::string slowest_;
};

}  // namespace

std::vector<Words> catalog_questions() {
  for (const cli::Command& command : cli::commands()) {
    if (takes_chips(command) && !chip_questions().contains(std::string(command.name))) {
      throw std::runtime_error(fmt::format("the catalog is not asked with the command {}", command.name));
    }
  }
  std::set<Words> out;  // those without a count come once
  for (const std::string& chip : Catalog().names(CatalogKind::kHardware)) {
    for (const std::int64_t chips : sizes_of(chip)) {
      for (const auto& [command, words] : chip_questions()) {
        Words question{command};
        for (const std::string& word : filled(filled(words, "{hw}", chip), "{chips}", std::to_string(chips))) {
          question.push_back(word);
        }
        out.insert(std::move(question));
      }
    }
  }
  for (const std::string& model : Catalog().names(CatalogKind::kModel)) {
    for (const Words& words : model_questions()) out.insert(filled(words, "{model}", model));
  }
  return {out.begin(), out.end()};
}

int walk_catalog(const CatalogWalk& walk) {
  std::vector<Words> all = catalog_questions();
  if (walk.sample > 0) fmt::print("{} of {} questions, seed {}\n", walk.sample, all.size(), walk.seed);
  return Walk(chosen(std::move(all), walk)).run();
}

std::uint64_t seed_of_commit() {
  std::uint64_t out = 0;
  for (const char c : cli::commit_built()) out = mixed(out, static_cast<unsigned char>(c));
  return out % 1'000'000;
}

}  // namespace scalecalc::relations
