// What stands above a file that was written here, and what a command of others says of its model.
#pragma once

#include <string>
#include <string_view>

namespace scalecalc {

inline constexpr std::string_view kByWhatIsKnown = "by what is known of ";
inline constexpr std::string_view kStampAsked = "asked: ";

/// The release in the stamp of a file that was written here; empty of others.
std::string release_in(const std::string& text);
/// The value that a flag of the stamp's question has; empty where it has none.
std::string asked_in(const std::string& text, std::string_view flag);
/// "vllm serve MODEL" and the like: the model, where it is a literal.
std::string served_in(const std::string& text);

}  // namespace scalecalc
