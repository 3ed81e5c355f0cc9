// One question asked of the whole program, in-process, and one number read from its JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace scalecalc::agreement {

using Json = nlohmann::json;

/// What `scalecalc WORDS --json` prints, with `json` its object; words as a shell splits them, quotes too. Asked once
/// however many rows want it. std::runtime_error with what the program said where it exits other than 0 or 3.
const Json& ask(const std::string& command);

/// What `scalecalc WORDS` prints for people.
const std::string& ask_text(const std::string& command);

/// The number at a path of keys joined by points: `plans[0].memory_bytes.total`; `[name=fsdp_limit]` takes the first
/// element whose key is that word. A key with points of its own stands in braces: `{a.b}`. std::runtime_error where
/// there is none, saying how far it led.
double number_at(const Json& json, const std::string& path);

/// A file that questions may name: measured runs of one.
void put_file(const std::string& name, const std::string& content);

}  // namespace scalecalc::agreement
