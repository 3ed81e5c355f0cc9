// Reads nodes, chips and tasks from Slurm's flags in all their spellings.
#include "launch/slurm.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "launch/shell_flags.h"

namespace scalecalc {
namespace {

/// One flag by its usual name.
struct SlurmSpelling {
  std::string_view written, usual;
};
constexpr std::array kSlurmSpellings{
    SlurmSpelling{"-N", "--nodes"},
    SlurmSpelling{"-n", "--ntasks"},
    SlurmSpelling{"-G", "--gpus"},
};

/// Flags of srun without a value, so that the word behind them is the program.
constexpr std::array<std::string_view, 14> kSlurmSwitches{
    "--exclusive", "--label", "-l", "--unbuffered", "-u", "--overlap",    "--kill-on-bad-exit",
    "--exact",     "--pty",   "-v", "--verbose",    "-Q", "--overcommit", "-E"};

constexpr std::int64_t kMostCounted = 1'000'000;  ///< nodes, tasks of a node

std::optional<std::int64_t> count_in(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && out > 0 && out <= kMostCounted ? std::optional(out)
                                                                                                    : std::nullopt;
}

/// "gpu:h100:8,nvme:1": how many GPUs; "gpu" alone is one.
std::string gpus_of(std::string_view resources) {
  while (!resources.empty()) {
    const std::string_view one = resources.substr(0, resources.find(','));
    if (one == "gpu") return "1";
    if (one.starts_with("gpu:")) return std::string(one.substr(one.find_last_of(':') + 1));
    resources.remove_prefix(std::min(one.size() + 1, resources.size()));
  }
  return "";
}

}  // namespace

LaunchSetting SlurmJob::setting_at(const std::vector<ShellWord>& words, std::size_t& i,
                                   const SourceText& source) const {
  const ShellWord& word = words[i];
  const std::string& text = word.text.chars;
  LaunchSetting out{.key = text, .values = {}, .where = place_of_word(word, source), .open = word.open};
  const std::size_t equals = text.find('=');
  const bool attached = text.size() > 2 && text[1] != '-' && count_in(text.substr(2));  // "-N16"
  if (equals != std::string::npos || attached) {
    out.key = text.substr(0, attached ? 2 : equals);
    out.values.push_back(text.substr(attached ? 2 : equals + 1));
  } else if (std::find(kSlurmSwitches.begin(), kSlurmSwitches.end(), text) == kSlurmSwitches.end() &&
             i + 1 < words.size() && !is_shell_flag(words[i + 1].text.chars)) {
    ++i;
    out.values.push_back(words[i].text.chars);
    if (out.open.empty()) out.open = words[i].open;
  }
  ++i;
  return out;
}

/// Gives it its usual name; false for what the job said before.
bool SlurmJob::takes(LaunchSetting& setting, std::string_view whose) {
  for (const SlurmSpelling& spelling : kSlurmSpellings) {
    if (setting.key == spelling.written) setting.key = spelling.usual;
  }
  std::string value = setting.values.empty() ? "" : setting.values.front();
  if (setting.key == "--gres") {
    if (const std::string gpus = gpus_of(value); !gpus.empty()) {
      setting.key = "--gpus-per-node";
      value = gpus;
    }
  } else if (setting.key == "--gpus-per-node" || setting.key == "--gpus") {
    value = value.substr(value.find_last_of(':') + 1);  // "h100:8"
  }
  if (!setting.values.empty()) setting.values.front() = value;
  struct Count {
    std::string_view flag;
    std::optional<std::int64_t>& count;
  };
  for (const Count& each : {Count{"--nodes", nodes_}, Count{"--gpus-per-node", node_chips_}, Count{"--gpus", chips_},
                            Count{"--ntasks", tasks_}, Count{"--ntasks-per-node", node_tasks_}}) {
    if (setting.key != each.flag) continue;
    if (whose == kOfSrun && each.count) return false;
    if (setting.open.empty()) each.count = count_in(value);
  }
  setting.key.insert(0, whose);
  return true;
}

std::vector<LaunchSetting> SlurmJob::line(const std::vector<ShellWord>& words, const SourceText& source) {
  std::vector<LaunchSetting> out;
  for (std::size_t i = 0; i < words.size();) {
    if (!is_shell_flag(words[i].text.chars)) {
      ++i;
      continue;
    }
    LaunchSetting setting = setting_at(words, i, source);
    if (takes(setting, kOfSbatch)) out.push_back(std::move(setting));
  }
  return out;
}

std::vector<LaunchSetting> SlurmJob::step(const std::vector<ShellWord>& words, std::size_t& first,
                                          const SourceText& source) {
  std::vector<LaunchSetting> out;
  for (first = 1; first < words.size() && is_shell_flag(words[first].text.chars);) {
    LaunchSetting setting = setting_at(words, first, source);
    if (takes(setting, kOfSrun)) out.push_back(std::move(setting));
  }
  return out;
}

std::vector<std::pair<std::string_view, std::string>> SlurmJob::variables() const {
  std::vector<std::pair<std::string_view, std::string>> out;
  const auto set = [&](const std::optional<std::int64_t>& count, std::initializer_list<std::string_view> names) {
    for (const std::string_view name : names) {
      if (count) out.emplace_back(name, std::to_string(*count));
    }
  };
  set(nodes_, {"SLURM_NNODES", "SLURM_JOB_NUM_NODES"});
  set(node_chips_, {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"});
  set(node_tasks_, {"SLURM_NTASKS_PER_NODE"});
  const bool by_node = !tasks_ && nodes_ && node_tasks_;
  set(by_node ? std::optional(*nodes_ * *node_tasks_) : tasks_, {"SLURM_NTASKS", "SLURM_NPROCS"});
  return out;
}

std::optional<std::int64_t> SlurmJob::chips() const {
  if (node_chips_) return std::nullopt;
  if (chips_) return chips_;
  // One task of a node starts a launcher, which says how many processes there are.
  if (node_tasks_.value_or(0) > 1 && nodes_) return *node_tasks_ * *nodes_;
  return tasks_.value_or(0) > nodes_.value_or(1) ? tasks_ : std::nullopt;
}

}  // namespace scalecalc
