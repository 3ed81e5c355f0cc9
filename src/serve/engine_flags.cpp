// Maps each engine's names of its settings to ours, for the flags of `serve` and for launch files.
#include "serve/engine_flags.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "base/text.h"

namespace scalecalc {

const EngineFlag* engine_flag(std::string_view name) {
  const auto found = std::find_if(kEngineFlags.begin(), kEngineFlags.end(), [&](const EngineFlag& flag) {
    return fmt::format(" {} ", flag.names).find(fmt::format(" {} ", name)) != std::string::npos;
  });
  return found == kEngineFlags.end() ? nullptr : &*found;
}

const EngineFlag* engine_flag(EngineFact fact, std::string_view engine) {
  const auto found = std::find_if(kEngineFlags.begin(), kEngineFlags.end(),
                                  [&](const EngineFlag& flag) { return flag.fact == fact && flag.engine == engine; });
  return found == kEngineFlags.end() ? nullptr : &*found;
}

const EngineFlag* engine_flag(EngineFact fact) {
  return &*std::find_if(kEngineFlags.begin(), kEngineFlags.end(),
                        [&](const EngineFlag& flag) { return flag.fact == fact; });
}

void apply_settings(const std::vector<EngineSetting>& settings, EngineRules& rules) {
  std::vector<Diagnostic> problems;
  for (const EngineSetting& s : settings) {
    const EngineFlag* own = engine_flag(s.fact, rules.name);
    const bool any = s.engine.empty();
    if (any ? own == nullptr && s.fact != EngineFact::kTokens : s.engine != rules.name) {
      const EngineFlag* theirs = any ? engine_flag(s.fact) : engine_flag(s.fact, s.engine);
      problems.push_back({{},
                          fmt::format("{} is a flag of {}, and the engine is {}", any ? theirs->ours : theirs->name(),
                                      theirs->engine, rules.name),
                          own != nullptr ? fmt::format("{} calls it {}", rules.name, own->name())
                                         : fmt::format("--engine {}, or leave it out", theirs->engine)});
      continue;
    }
    switch (s.fact) {
      case EngineFact::kShare: rules.fix_share(s.value); break;
      case EngineFact::kSequences: rules.most_sequences = static_cast<std::int64_t>(s.value); break;
      case EngineFact::kTokens: rules.chunk_tokens = s.value; break;
      case EngineFact::kLength: rules.longest = s.value; break;
      case EngineFact::kStream: rules.stream_interval = static_cast<std::int64_t>(s.value); break;
      case EngineFact::kReceive: rules.receive_interval = static_cast<std::int64_t>(s.value); break;
    }
  }
  if (!problems.empty()) throw UserError(std::move(problems));
}

}  // namespace scalecalc
