// One question asked of the whole program, in-process, and numbers read from its JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace scalecalc::agreement {

using Json = nlohmann::json;

/// What `scalecalc WORDS --json` prints; words as a shell splits them, quotes too. Asked once however many rows want
/// it. std::runtime_error with what the program said where it answers nothing.
const Json& ask(const std::string& command);

/// What `scalecalc WORDS` prints for people.
std::string told(const std::string& command);

/// The value of `plans[0].memory_bytes.weights / 2`: paths into the answer and numbers, joined by * / + - as usual.
/// `[name=fsdp_limit]` takes the element of a list whose key is that word, `[title~Rules]` the first one whose key
/// starts with it. std::runtime_error for a path that leads to no number.
double value_of(const Json& answer, const std::string& expression);

}  // namespace scalecalc::agreement
