// Words of --lora-targets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace scalecalc::cli {

/// Bits of FineTune::targets; nothing where a word is none of the flag's.
std::optional<std::uint8_t> lora_targets_of(const std::string& text);

}  // namespace scalecalc::cli
