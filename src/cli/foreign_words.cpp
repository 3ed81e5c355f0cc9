// Translates flags and words of other tools into ours, so that errors can suggest them.
#include "cli/foreign_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/diagnostic.h"
#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/commands.h"
#include "plan/dimensions.h"
#include "serve/engine_flags.h"

namespace scalecalc::cli {
namespace {

constexpr std::array kForeignFlags{
    ForeignFlag{"--gpus --num-gpus --n-gpus --ngpus --tpus --num-tpus --devices --num-devices --n-devices "
                "--accelerators --num-accelerators --num-chips --n-chips --world-size --ntasks --num-processes -n",
                "--chips"},
    ForeignFlag{"--nodes --nnodes --num-nodes --n-nodes --hosts --num-hosts -N", kHostsFlag},
    ForeignFlag{"--gpus-per-node --ngpus-per-node --num-gpus-per-node --nproc-per-node --devices-per-node "
                "--ntasks-per-node --chips-per-host",
                kChipsOfHostFlag},
    ForeignFlag{"--hardware --gpu --gpu-type --gpu-name --tpu --tpu-type --accelerator --accelerator-type "
                "--device --system --sku",
                "--hw"},
    // Training
    ForeignFlag{"--seqlen --seq-len --seq-length --sequence-length --max-seq-len --max-seqlen --max-seq-length "
                "--ctx-len --context-length",
                "--seq --context"},
    ForeignFlag{"--gbs --global-batch-size --global-batch --train-batch-size", "--batch-seqs"},
    ForeignFlag{"--train-tokens --total-tokens --num-tokens --training-tokens", "--tokens"},
    ForeignFlag{"--dtype --torch-dtype --data-type --mixed-precision", "--precision --weights"},
    ForeignFlag{"--precision", "--weights --dtype"},
    ForeignFlag{"--lora-rank --lora-r", "--lora"},
    ForeignFlag{"--lora-target-modules --target-modules", "--lora-targets"},
    ForeignFlag{"--zero-stage", "--zero"},
    ForeignFlag{"--pipeline-schedule", "--schedule"},
    ForeignFlag{"--capacity-factor --moe-expert-capacity-factor", "--expert-capacity"},
    // Serving
    ForeignFlag{"--isl --input-len --input-length --input-tokens --prompt-len --prompt-length --prompt-tokens "
                "--random-input-len --avg-input-len",
                "--prompt"},
    ForeignFlag{"--osl --output-len --output-length --output-tokens --gen-len --generate-len --max-new-tokens "
                "--random-output-len --avg-output-len",
                "--generate"},
    ForeignFlag{"--max-num-seqs --max-batch-size", "--batch"},  // where no engine is asked about
    ForeignFlag{"--max-concurrency --clients", "--concurrency"},
    ForeignFlag{"--num-prompts", "--requests"},
    ForeignFlag{"--random-range-ratio --range-ratio", "--length-ratio"},
    ForeignFlag{"--weights-dtype --weight-dtype --quantization --quant", "--weights"},
    ForeignFlag{"--kv-dtype --kv-cache-dtype", "--kv"},
    ForeignFlag{"--qps --rps --request-rate", "--rate"},
    ForeignFlag{"--expert-routing", "--expert-load"},
    ForeignFlag{"--num-redundant-experts --ep-num-redundant-experts", "--redundant-experts"},
    ForeignFlag{"--ttft", "--slo-ttft"},
    ForeignFlag{"--tpot --itl --slo-itl", "--slo-tpot"},
    ForeignFlag{"--prefix-cache-hit-rate --prefix-hit-rate", "--prefix-hit"},
    // Everywhere
    ForeignFlag{"--framework --backend --stack --engine", "--stack --engine"},
    ForeignFlag{"--gpu-price --chip-price --price-per-hour --cost-per-hour --price-per-gpu-hour", "--price"},
    ForeignFlag{"--optimize-for --goal", "--objective"},
    ForeignFlag{"--format --output-format --out", "--output"},
    ForeignFlag{"--csv", "--output", "csv"},
    ForeignFlag{"--markdown --md", "--output", "markdown"},
    ForeignFlag{"--html", "--output", "html"},
    // Degrees; those that --fix has are understood by their own name too.
    ForeignFlag{"--tp-size --tensor-parallel --tensor-parallel-size --tensor-model-parallel-size -tp", "--fix", "tp="},
    ForeignFlag{"--pp-size --pipeline-parallel --pipeline-parallel-size --pipeline-model-parallel-size -pp", "--fix",
                "pp="},
    ForeignFlag{"--dp-size --data-parallel --data-parallel-size -dp", "--fix", "dp="},
    ForeignFlag{"--cp-size --context-parallel --context-parallel-size", "--fix", "cp="},
    ForeignFlag{"--ep-size --expert-parallel --expert-parallel-size --expert-model-parallel-size -ep", "--fix", "ep="},
    ForeignFlag{"--fsdp-size --data-parallel-shard-degree", "--fix", "fsdp="},
    ForeignFlag{"--mbs --micro-batch-size --micro-batch --microbatch-size --per-device-train-batch-size", "--fix",
                "mb="},
    ForeignFlag{"--gas --grad-accum --gradient-accumulation-steps", "--fix", "ga="},
    // Several meanings
    ForeignFlag{"--batch-size --bs --batch", "--batch-seqs --batch-tokens --batch", "", false},
    ForeignFlag{"--recompute --recompute-granularity --gradient-checkpointing --activation-checkpointing",
                "--remat --checkpoints", "", false},
    ForeignFlag{"--time --duration --days --hours", "--deadline", "", false},
    ForeignFlag{"--cost --dollars --max-cost", "--budget --objective --price", "", false},
    ForeignFlag{"--max-tokens --max-model-len", "--generate --context", "", false},
    ForeignFlag{"--model --model-name --model-path", "", "", false},
};

struct ForeignWord {
  std::string_view theirs;
  std::string_view ours;
};
constexpr std::array kForeignWords{ForeignWord{"bfloat16", "bf16"},
                                   ForeignWord{"float16", "fp16"},
                                   ForeignWord{"half", "fp16"},
                                   ForeignWord{"float32", "fp32"},
                                   ForeignWord{"float", "fp32"},
                                   ForeignWord{"single", "fp32"},
                                   ForeignWord{"float8", "fp8"},
                                   ForeignWord{"fp8-e4m3", "fp8"},
                                   ForeignWord{"e4m3", "fp8"},
                                   ForeignWord{"adamw", "adam"},
                                   ForeignWord{"all2all", "all-to-all"},
                                   ForeignWord{"a2a", "all-to-all"},
                                   ForeignWord{"p2p", "permute"},
                                   ForeignWord{"send-recv", "permute"},
                                   ForeignWord{"md", "markdown"},
                                   ForeignWord{"text", "table"},
                                   ForeignWord{"ndjson", "jsonl"},
                                   ForeignWord{"flash-attention", "flash"},
                                   ForeignWord{"interleaved-1f1b", "interleaved"}};

bool has_name(std::string_view names, std::string_view name) {
  const std::vector<std::string> all = parts_between(names, ' ');
  return std::find(all.begin(), all.end(), name) != all.end();
}

std::vector<std::string> flags_meant(const ForeignFlag& foreign, std::span<const Flag> flags) {
  std::vector<std::string> out;
  for (const std::string& ours : parts_between(foreign.ours, ' ')) {
    const bool of_machine = ours == kHostsFlag || ours == kChipsOfHostFlag;
    if (find_flag(flags, of_machine ? "--chips" : ours) != nullptr) out.push_back(ours);
  }
  return out;
}

/// What a flag means: `flag`, and what stands before its value there or is its value.
struct Meaning {
  std::string flag;
  std::string_view value;
};

/// --cp-comm is --fix cp_comm= where no flag of that name is.
std::optional<Meaning> dimension_meant(std::string_view name, std::span<const Flag> flags, std::string& key) {
  if (!name.starts_with("--") || find_flag(flags, "--fix") == nullptr) return std::nullopt;
  key = name.substr(2);
  std::replace(key.begin(), key.end(), '-', '_');
  if (find_dimension(key) == nullptr) return std::nullopt;
  key += '=';
  return Meaning{"--fix", key};
}

std::optional<Meaning> flag_meant(std::string_view name, std::span<const Flag> flags, std::string& key) {
  if (const EngineFlag* of = engine_flag(name); of != nullptr && find_flag(flags, of->ours) != nullptr) {
    key = fmt::format("{}=", of->engine);  // so that another engine's is refused by name
    return Meaning{std::string(of->ours), key};
  }
  for (const ForeignFlag& foreign : kForeignFlags) {
    if (!has_name(foreign.names, name)) continue;
    const std::vector<std::string> meant = flags_meant(foreign, flags);
    // Of several meanings one may be left by the command that is asked.
    if (!meant.empty() && foreign.clear) return Meaning{meant.front(), foreign.value};
  }
  return dimension_meant(name, flags, key);
}

bool is_letter_of(char letter, std::span<const Flag> flags) {
  return std::any_of(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.letter == letter; });
}

/// A word that the command itself understands as a flag.
const Flag* own_flag(std::string_view word, std::span<const Flag> flags) {
  return find_flag(flags, word.substr(0, word.find('=')));
}

std::string command_names(std::string_view flag) {
  std::vector<std::string> out;
  for (const Command& command : commands()) {
    if (find_flag(command.flags, flag) != nullptr) out.emplace_back(command.name);
  }
  return out.empty() ? "" : fmt::format("{} is a flag of {}.", flag, join_and(out));
}

}  // namespace

std::span<const ForeignFlag> foreign_flags() { return kForeignFlags; }

std::vector<std::string> own_words(const std::vector<std::string>& words, std::span<const Flag> flags,
                                   std::vector<Assumption>& readings) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const Flag* own = own_flag(word, flags);
    const std::size_t equals = word.find('=');
    const bool takes = own != nullptr && (own->kind == FlagKind::kValue || own->kind == FlagKind::kRepeatable);
    const bool lettered = word.size() == 2 && word[0] == '-' && is_letter_of(word[1], flags);
    std::string key;
    const auto meant = own != nullptr || lettered || !word.starts_with('-')
                           ? std::nullopt
                           : flag_meant(word.substr(0, equals), flags, key);
    if (!meant) {
      out.push_back(word);
      // A flag's value is no flag, whatever it looks like.
      if ((takes || lettered) && equals == std::string::npos && i + 1 < words.size()) out.push_back(words[++i]);
      continue;
    }
    const bool is_switch = !meant->value.empty() && !meant->value.ends_with('=');
    std::string typed = word;
    std::string value(meant->value);
    if (!is_switch && equals != std::string::npos) {
      value += word.substr(equals + 1);
    } else if (!is_switch && i + 1 < words.size() && own_flag(words[i + 1], flags) == nullptr) {
      value += words[++i];
      typed += ' ' + words[i];
    }
    if (value == meant->value && !is_switch) {
      const Flag* ours = find_flag(flags, meant->flag);
      throw UserError(fmt::format("{} needs a value", word),
                      fmt::format("for example {} {}", word, meant->value.empty() ? ours->example : "8"));
    }
    if (meant->flag != kHostsFlag && meant->flag != kChipsOfHostFlag) {
      readings.push_back({fmt::format("{} is read as {} {}", typed, meant->flag, value), meant->flag, "command line"});
    }
    out.push_back(fmt::format("{}={}", meant->flag, value));
  }
  return out;
}

std::string meaning_of(std::string_view flag, std::span<const Flag> flags) {
  for (const ForeignFlag& foreign : kForeignFlags) {
    if (!has_name(foreign.names, flag)) continue;
    if (foreign.ours.empty()) return "the model is a word of its own: scalecalc train llama3-70b ...";
    if (const std::vector<std::string> meant = flags_meant(foreign, flags); !meant.empty()) return did_you_mean(meant);
  }
  return command_names(flag);
}

std::optional<std::size_t> word_meant(std::string_view text, LegalWords words) {
  if (const auto like = word_like(text, words)) return like;
  for (const ForeignWord& foreign : kForeignWords) {
    const std::array theirs{foreign.theirs};
    if (word_like(text, theirs)) return word_like(foreign.ours, words);
  }
  return std::nullopt;
}

}  // namespace scalecalc::cli
