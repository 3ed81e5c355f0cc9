#include "cli/lora_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace scalecalc::cli {
namespace {

constexpr CountRange kRankRange{1, 65'536};
constexpr std::array<std::string_view, 3> kGroups{"attention", "mlp", "all"};
constexpr std::array<std::uint8_t, 3> kGroupBits{kLoraAttention, kLoraMlp, kLoraAll};

std::uint8_t read_targets(FlagReader& reader, const std::string& text) {
  std::vector<std::string_view> words(kGroups.begin(), kGroups.end());
  words.insert(words.end(), kLoraTargetNames.begin(), kLoraTargetNames.end());
  std::uint8_t out = 0;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const auto word = reader.word_of("--lora-targets", std::string_view(text).substr(at, end - at), words);
    at = end + 1;
    if (!word) continue;
    const unsigned bits = *word < kGroups.size() ? kGroupBits.at(*word) : 1U << (*word - kGroups.size());
    out = static_cast<std::uint8_t>(out | bits);
  }
  return out;
}

}  // namespace

void read_fine_tune(FlagReader& reader, const Arguments& arguments, TrainQuestion& q) {
  constexpr std::array<std::string_view, 3> kOfAdapters{"--lora-targets", "--lora-experts", "--base"};
  if (!arguments.has("--lora")) {
    for (const std::string_view flag : kOfAdapters) {
      if (!arguments.has(flag)) continue;
      reader.problem(fmt::format("{} says how adapters train, and the whole model does", flag),
                     "add the adapters' rank, such as --lora 16");
    }
    return;
  }
  FineTuneQuestion& asked = q.fine_tune.emplace();
  asked.rank = reader.count("--lora", kRankRange).value_or(1);
  if (const auto text = arguments.value("--lora-targets")) asked.targets = read_targets(reader, *text);
  constexpr std::array<std::string_view, 2> kPolicies{"each", "none"};
  if (const auto word = reader.word("--lora-experts", kPolicies)) asked.experts = *word == 0;
  if (const auto word = reader.word("--base", kBaseFormatNames)) asked.base = static_cast<BaseFormat>(*word);
}

}  // namespace scalecalc::cli
