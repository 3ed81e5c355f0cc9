// Flags that several commands have. A command says where they go (Flag::to) and, where it means something narrower by
// them, its own help.
#pragma once

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "cli/flag_reader.h"
#include "cost/workload.h"
#include "network/slice.h"
#include "spec/dtype.h"

namespace scalecalc::cli {

inline constexpr std::int64_t kMostChips = 16'777'216;  // what the engine answers in a second, and any machine today
inline constexpr CountRange kChipRange{1, kMostChips};
inline constexpr CountRange kSequenceRange{1, 1'000'000'000};
inline constexpr CountRange kTopRange{1, 10'000};

inline constexpr Flag kHwFlag = text("--hw", "HW", "hardware: a catalog name or a YAML file", "tpu-v5p")
                                    .asking("on which hardware?")
                                    .key("hardware");
inline constexpr Flag kSetFlag =
    text("--set", "KEY=VALUE",
         "replace one field of the hardware (hw.) or the model (model.), such as hw.hbm.bandwidth=5TB/s",
         "hw.hbm.bandwidth=5TB/s")
        .repeatable();
inline constexpr Flag kAssumeFlag =
    text("--assume", "FAMILY|weights=FORMAT",
         "read a Hugging Face config.json as a model of this family, or its linear layers as stored in this format "
         "(default: as it says)",
         "llama");
inline constexpr Flag kExplainFlag =
    toggle("--explain", "the formula behind each figure, with its numbers").of_output();
inline constexpr Flag kPriceFlag = quantity("--price", UnitKind::kUsdPerHour, "USD",
                                            "dollars per chip and hour (default: the hardware file's first)", "4.2");
inline constexpr Flag kTopologyFlag =
    text("--topology", "AxBxC", "shape of the slice (default: the best the vendor builds)", "16x20x28");
inline constexpr Flag kSlicesFlag =
    count("--slices", kChipRange, "K", "slices joined by the outer network (default 1)", "2");
/// Whose coefficients a question is answered with.
inline constexpr Flag kStackFlag =
    text("--stack", "NAME[@VERSION]",
         "software stack, or a framework of it, whose coefficients to use and whose layouts to search (default: the "
         "chip's usual one, newest release; any: its coefficients, layouts of every stack)",
         "megatron@0.14");

/// Whose memory rule, defaults and coefficients a server has.
inline constexpr Flag kEngineFlag =
    text("--engine", "NAME[@VERSION]",
         "serving engine, in its newest release or that of a version: its memory rule, its defaults and its "
         "coefficients (default: the chip's usual one)",
         "vllm@0.11");

inline constexpr Flag kExpertLoadFlag =
    text("--expert-load", "FILE|zipf:ALPHA",
         "how unevenly experts are chosen: tokens of each (CSV, YAML or JSON), or a power law (default: the chip's "
         "imbalance)",
         "zipf:0.5");

inline constexpr std::array<std::string_view, 2> kEfficiencyNames{"ideal", "calibrated"};
constexpr Flag efficiency_flag(std::string_view help) { return word("--efficiency", kEfficiencyNames, help); }

template <auto... kMembers>
constexpr Flag precision_flag(std::string_view help) {
  return word<kMembers...>("--precision", kPrecisionNames, help).called("NAME").like("bf16");
}
template <auto... kMembers>
constexpr Flag optimizer_flag(std::string_view help) {
  return word<kMembers...>("--optimizer", kOptimizerNames, help).called("NAME").like("adam");
}

inline constexpr std::string_view kUsualLaw = "chinchilla-besiroglu";

inline void refuse_stack_of_ideal(FlagReader& reader, bool ideal, const std::string& stack) {
  if (!ideal || stack.empty()) return;
  reader.problem("--stack chooses measured coefficients, and --efficiency ideal has none", "give one of them");
}

template <auto... kMembers>
constexpr Flag dtype_flag(std::string_view name, std::string_view help, std::string_view example = "bf16") {
  return word<kMembers...>(name, kDTypeNames, help).called("DTYPE").like(example);
}

/// A question of the hardware's own way: absent, or whether.
inline constexpr std::array<std::string_view, 3> kAutoOnOff{"auto", "on", "off"};

/// "16x20x28"; a problem if it is none.
template <auto kShape, class Question>
void read_shape_into(FlagReader& reader, const Flag& flag, const std::string& text, Question& question) {
  question.*kShape = parse_shape(text);
  if (!parse_shape(text).empty()) return;
  reader.problem(fmt::format("{}: {} is not a shape", flag.name, in_quotes(text)),
                 fmt::format("axis sizes with x between them, such as {}", flag.example));
}
template <auto kShape>
inline constexpr auto kReadShape = &read_shape_into<kShape, typename detail::FirstOf<kShape>::Question>;

/// How a collective's time is counted.
template <auto... kMembers>
constexpr Flag convention_flag(LegalWords names) {
  return word<kMembers...>(
      "--convention", names,
      "book (default): rings drop (N-1)/N, switches keep it and have no latency; first-order: dropped "
      "everywhere; exact: kept everywhere, with latencies, as train computes");
}
template <auto... kMembers>
constexpr Flag in_network_flag(LegalWords names) {
  return word<kMembers...>("--in-network", names,
                           "switches reduce (SHARP); auto (default): where the hardware file says so");
}

}  // namespace scalecalc::cli
