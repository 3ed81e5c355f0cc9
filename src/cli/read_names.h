// Models and chips as other tools call them, read as names of the catalog before a command is asked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/options.h"
#include "config/catalog.h"

namespace scalecalc::cli {

/// What another spelling of a name means.
struct NameMeant {
  std::string name;                   ///< as the catalog has it
  std::optional<std::int64_t> chips;  ///< of a system: "8xh100", "v5p-128" (whose number counts TensorCores)
  std::string why;                    ///< for the answer: "'v5p-128' is 128 TensorCores: 64 chips of tpu-v5p"
};

/// "dgx-h100", "nvidia-h100", "8xh100", "h100:8", "v5p-128". Nothing if the catalog knows the text itself, if it is a
/// path, or if it means nothing.
std::optional<NameMeant> hardware_meant(const std::string& text, const Catalog& catalog);
/// "meta-llama/Llama-3-70B", "llama-3-70b-instruct", "llama3:70b"; the same.
std::optional<NameMeant> model_meant(const std::string& text, const Catalog& catalog);

/// Words and flags that name models or chips replaced by what they mean, a system's number of chips and that of
/// --nodes by --chips, each noted in the arguments' readings. UserError if two of them say different numbers.
void read_names(Arguments& arguments, const Catalog& catalog);

}  // namespace scalecalc::cli
