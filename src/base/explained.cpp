// Words alternative changes of flags as one phrase, for every answer that suggests a way out.
#include "base/explained.h"

#include "base/text.h"

namespace scalecalc {

std::string either_of(const std::vector<FlagChange>& changes) {
  std::vector<std::string> texts;
  texts.reserve(changes.size());
  for (const FlagChange& change : changes) texts.push_back(change.text());
  return join(texts, " or ");
}

}  // namespace scalecalc
