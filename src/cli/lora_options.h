// --lora, --lora-targets, --lora-experts and --base: what of the model trains.
#pragma once

#include <array>

#include "cli/flag_reader.h"
#include "cli/options.h"
#include "train/question.h"

namespace scalecalc::cli {

inline constexpr Flag kLoraFlag{"--lora",
                                0,
                                FlagKind::kValue,
                                "RANK",
                                "train adapters of this rank beside frozen weights (default: the whole model trains)",
                                "16"};
inline constexpr Flag kLoraTargetsFlag{
    "--lora-targets",
    0,
    FlagKind::kValue,
    "attention|mlp|all|NAME,...",
    "projections that carry adapters: groups or q, k, v, o, gate, up, down, recurrent (default all)",
    "q,v"};
inline constexpr Flag kLoraExpertsFlag{"--lora-experts",
                                       0,
                                       FlagKind::kValue,
                                       "each|none",
                                       "adapters in each routed expert, or in none of them (default none)",
                                       "each"};
inline constexpr Flag kBaseFlag{"--base",
                                0,
                                FlagKind::kValue,
                                "bf16|fp8|int8|nf4",
                                "format of the frozen weights; nf4 is QLoRA (default: the recipe's)",
                                "nf4"};

void read_fine_tune(FlagReader& reader, const Arguments& arguments, TrainQuestion& question);

}  // namespace scalecalc::cli
