// Slurm's flags in the spellings that people use: nodes, chips of a node and tasks, whichever framework they start.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "config/source_text.h"
#include "launch/reading.h"
#include "launch/shell_words.h"

namespace scalecalc {

inline constexpr std::string_view kOfSbatch = "#SBATCH ";  ///< in front of the key of a setting
inline constexpr std::string_view kOfSrun = "srun ";

class SlurmJob {
 public:
  /// Settings of a line of the job.
  std::vector<LaunchSetting> line(const std::vector<ShellWord>& words, const SourceText& source);
  /// Those of srun, up to the program that it starts, which is the word at `first` then. What the lines of the job say
  /// holds over a step of it.
  std::vector<LaunchSetting> step(const std::vector<ShellWord>& words, std::size_t& first, const SourceText& source);

  /// Variables that Slurm sets by what was said so far.
  std::vector<std::pair<std::string_view, std::string>> variables() const;
  /// By tasks, one for each chip, or by chips of the whole job, where chips of a node are not said.
  std::optional<std::int64_t> chips() const;

 private:
  LaunchSetting setting_at(const std::vector<ShellWord>& words, std::size_t& i, const SourceText& source) const;
  bool takes(LaunchSetting& setting, std::string_view whose);

  std::optional<std::int64_t> nodes_, node_chips_, chips_, tasks_, node_tasks_;
};

}  // namespace scalecalc
