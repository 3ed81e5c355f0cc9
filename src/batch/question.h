// One question of a study as the command line would ask it, and what came back. Who answers is handed in, so that a
// study can ask every command there is.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace scalecalc {

using FlagValues = std::map<std::string, std::vector<std::string>, std::less<>>;  ///< "--chips" to its values

struct StudyQuestion {
  std::string command;
  std::vector<std::string> positionals;
  FlagValues flags;  ///< a switch has no values
};

/// "scalecalc train llama3-8b --hw h100-sxm --chips 8", quoted for a shell.
std::string command_line(const StudyQuestion& question);

struct StudyReply {
  int exit = 0;          ///< as the command's own exit status
  std::string records;   ///< the command's JSON Lines
  std::string reason;    ///< on one line, if there is no answer
  std::string warnings;  ///< what the answer rests on and should be known, on one line
};

using Ask = std::function<StudyReply(const StudyQuestion&)>;

/// What a study may say to a command.
struct CommandForm {
  struct Option {
    std::string flag;  ///< "--chips"
    bool takes_value = true;
    bool repeatable = false;
  };
  std::string name;
  std::vector<Option> options;
};

}  // namespace scalecalc
