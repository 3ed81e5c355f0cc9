// Reads the comment above launch files that we wrote, and the model that a command such as `vllm serve` names.
#include "launch/stamp.h"

#include <algorithm>

namespace scalecalc {

std::string release_in(const std::string& text) {
  const std::size_t stamp = text.find("scalecalc ");
  const std::size_t at = stamp == std::string::npos ? stamp : text.find(kByWhatIsKnown, stamp);
  if (at == std::string::npos || text.find('\n', stamp) < at) return "";
  const std::size_t begin = at + kByWhatIsKnown.size();
  return text.substr(begin, text.find_first_of(" \n", text.find(' ', begin) + 1) - begin);
}

std::string served_in(const std::string& text) {
  for (const std::string_view command : {"vllm serve ", "trtllm-serve serve ", "trtllm-serve "}) {
    const std::size_t at = text.find(command);
    if (at == std::string::npos) continue;
    std::size_t begin = at + command.size();
    while (begin < text.size() && std::string_view(" \\\n\"'").find(text[begin]) != std::string_view::npos) ++begin;
    const std::size_t end = std::min(text.find_first_of(" \\\n\"'", begin), text.size());
    const std::string word = text.substr(begin, end - begin);
    if (!word.empty() && word[0] != '-' && word.find('$') == std::string::npos) return word;
  }
  return "";
}

std::string asked_in(const std::string& text, std::string_view flag) {
  const std::size_t stamp = text.find("scalecalc ");
  const std::size_t asked = stamp == std::string::npos ? stamp : text.find(kStampAsked, stamp);
  if (asked == std::string::npos) return "";
  const std::string line = text.substr(asked, text.find('\n', asked) - asked);
  const std::string word = " " + std::string(flag) + " ";
  const std::size_t at = line.find(word);
  if (at == std::string::npos) return "";
  const std::size_t begin = at + word.size();
  return line.substr(begin, line.find(' ', begin) - begin);
}

}  // namespace scalecalc
