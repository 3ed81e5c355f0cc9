#include "cli/train_options.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "cli/curve_options.h"
#include "cli/layout_flags.h"
#include "cli/lora_options.h"
#include "cli/run_options.h"
#include "cli/sheet_command.h"
#include "cli/stack_flag.h"
#include "network/slice.h"
#include "plan/dimensions.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kSequenceRange{1, 1'000'000'000};
constexpr CountRange kTopRange{1, 10'000};

constexpr std::array kFlags{
    Flag{"--hw", 0, FlagKind::kValue, "HW", "hardware: a catalog name or a YAML file", "tpu-v5p"},
    Flag{"--chips", 0, FlagKind::kValue, "N",
         "chips of the machine, up to 16,777,216; several (256..16384*2 or 64,512) draw the scaling curve", "8960"},
    Flag{"--topology", 0, FlagKind::kValue, "AxBxC", "shape of the slice (default: the best the vendor builds)",
         "16x20x28"},
    Flag{"--slices", 0, FlagKind::kValue, "K", "slices joined by the outer network (default 1)", "2"},
    Flag{"--seq", 0, FlagKind::kValue, "N", "tokens of a sequence (default: as the model was trained)", "8192"},
    Flag{"--batch-tokens", 0, FlagKind::kValue, "N", "tokens of a step (default: as the model was trained)", "4M"},
    Flag{"--batch-seqs", 0, FlagKind::kValue, "N", "the same in sequences", "1024"},
    Flag{"--batch-tolerance", 0, FlagKind::kValue, "SHARE",
         "how far the batch a plan runs may lie from the one asked for, to divide over its ranks (default 12.5%)",
         "5%"},
    Flag{"--tokens", 0, FlagKind::kValue, "N", "tokens of the whole run (default: as the model was trained)", "15T"},
    Flag{"--precision", 0, FlagKind::kValue, "NAME", "bf16, fp16, fp8, nvfp4, int8, tf32 or fp32", "bf16"},
    Flag{"--optimizer", 0, FlagKind::kValue, "NAME", "adam, adam-bf16, adam8bit, sgd or muon", "adam"},
    kLoraFlag,
    kLoraTargetsFlag,
    kLoraExpertsFlag,
    kBaseFlag,
    Flag{"--attention", 0, FlagKind::kValue, "flash|unfused",
         "whether attention keeps its scores out of HBM (default flash)", "unfused"},
    Flag{"--graphs", 0, FlagKind::kValue, "none|layer|step",
         "what is replayed from captured graphs: nothing, all of a layer but its experts, the step (default none)",
         "step"},
    Flag{"--ep-overlap", 0, FlagKind::kSwitch, "", "expert all-to-alls run under another microbatch's compute", ""},
    Flag{"--balanced-experts", 0, FlagKind::kSwitch, "", "routing is forced to be even, as in benchmarks", ""},
    Flag{"--expert-capacity", 0, FlagKind::kValue, "FACTOR",
         "experts take this many times their mean load, filled up or dropped (default: what is routed)", "1.25"},
    Flag{"--tp-overlap", 0, FlagKind::kValue, "stack|none|pipelined",
         "how much of the tensor ranks' communication hides: as runs of the stack show (default), nothing, or in "
         "pieces under matmuls",
         "pipelined"},
    Flag{"--dp-overlap", 0, FlagKind::kValue, "stack|none",
         "whether gradients are reduced under the backward pass (default stack)", "none"},
    Flag{"--stages", 0, FlagKind::kValue, "even|balanced",
         "how layers are dealt to pipeline stages where they divide (default: as the stack, mostly even)", "balanced"},
    Flag{"--remat", 0, FlagKind::kValue, "auto|none|selective|attention|mlp|full",
         "what the backward pass computes again", "selective"},
    Flag{"--zero", 0, FlagKind::kValue, "auto|0|1|2|3", "ZeRO stage of the data ranks", "3"},
    Flag{"--schedule", 0, FlagKind::kValue, "auto|gpipe|1f1b|interleaved|zero-bubble|dualpipe", "pipeline schedule",
         "1f1b"},
    Flag{"--cp-comm", 0, FlagKind::kValue, "auto|all-gather|ring|ulysses",
         "how context ranks bring queries and keys together", "ring"},
    Flag{"--offload", 0, FlagKind::kValue, "auto|none|WHAT+...",
         "what the host's memory keeps: optimizer, weights, activations or all (default: what makes a layout fit)",
         "optimizer+activations"},
    Flag{"--fix", 0, FlagKind::kRepeatable, "KEY=N,...",
         "pin layout dimensions: dp, fsdp, tp, sp, cp, pp, vpp, ep, etp, zero, mb (sequences of a microbatch), ga "
         "(microbatches of a step), remat, remat_layers (of a stage; 0 = all), schedule, cp_comm, offload",
         "tp=8,pp=16"},
    Flag{"--max", 0, FlagKind::kRepeatable, "KEY=N,...", "bound them from above", "tp=16"},
    Flag{"--why-not", 0, FlagKind::kRepeatable, "KEY=N,...",
         "what ruled out or outranked the layouts with these dimensions; keys as of --fix", "tp=16,pp=4"},
    Flag{"--from", 0, FlagKind::kValue, "LAYOUT",
         "what changes against a layout: KEY=N,... or FILE.json of train --json (FILE.json#2: its plan 2)",
         "answer.json"},
    Flag{"--objective", 0, FlagKind::kValue, "time|cost|memory|chips", "what to rank by (default time)", "cost"},
    Flag{"--top", 0, FlagKind::kValue, "N", "plans to show (default 10)", "10"},
    kParetoFlag,
    Flag{"--variants", 0, FlagKind::kSwitch, "", "rank variants of the same parallel degrees too", ""},
    Flag{"--price", 0, FlagKind::kValue, "USD", "dollars per chip and hour (default: the hardware file's first)",
         "4.2"},
    Flag{"--efficiency", 0, FlagKind::kValue, "ideal|calibrated",
         "ideal: the pure roofline; calibrated (default): the hardware's measured efficiencies", "calibrated"},
    kStackFlag,
    Flag{"--set", 0, FlagKind::kRepeatable, "KEY=VALUE",
         "replace one field of the model or the hardware, such as hw.hbm.bandwidth=5TB/s", "hw.hbm.bandwidth=5TB/s"},
    kAssumeFlag,
    Flag{"--explain", 0, FlagKind::kOptionalCount, "[RANK]",
         "the formulas behind a plan, with their numbers "
         "(default rank 1)",
         "1"},
};

std::string example(std::string_view command) {
  return fmt::format("for example: scalecalc {} llama3-70b --hw tpu-v5p --chips 8960", command);
}

void read_names(FlagReader& reader, const Arguments& arguments, std::string_view command, TrainQuestion& q) {
  const std::vector<std::string>& names = arguments.positionals();
  if (names.empty()) {
    reader.problem("MODEL is missing: which model is to be trained?", example(command));
  } else if (names.size() > 1) {
    reader.problem(fmt::format("unexpected argument {}: {} takes one MODEL, and that is {}", in_quotes(names[1]),
                               command, in_quotes(names[0])),
                   example(command));
  } else {
    q.model = names.front();
  }
  q.assume = arguments.value("--assume").value_or("");
  if (const auto hw = arguments.value("--hw")) {
    q.hardware = *hw;
  } else {
    reader.problem("--hw is missing: on which hardware?", example(command));
  }
  if (q.model == "-" && q.hardware == "-") {
    reader.problem("the model and the hardware cannot both be standard input", "name a file for one of them");
  }
}

/// A topology says how many chips there are, so it may stand alone.
void read_machine(FlagReader& reader, const Arguments& arguments, std::string_view command, TrainQuestion& q) {
  q.slices = reader.count("--slices", {1, kMostChips}).value_or(1);
  q.topology = arguments.value("--topology");
  double product = static_cast<double>(q.slices);
  if (q.topology) {
    const Shape shape = parse_shape(*q.topology);
    if (shape.empty()) {
      reader.problem(fmt::format("--topology: {} is not a shape", in_quotes(*q.topology)),
                     "axis sizes with x between them, such as 16x20x28");
    }
    for (const std::int64_t axis : shape) product *= static_cast<double>(axis);
    if (product > static_cast<double>(kMostChips)) {
      reader.problem(
          fmt::format("--topology {} has more than {} chips", in_quotes(*q.topology), group_thousands(kMostChips)));
    }
  }
  const auto chips = arguments.value("--chips");
  if (!chips) {
    if (q.topology && product <= static_cast<double>(kMostChips)) q.chips = static_cast<std::int64_t>(product);
    if (!q.topology) reader.problem("--chips is missing: on how many chips?", example(command));
  } else if (is_sweep(*chips)) {
    const std::vector<std::int64_t> counts = chip_counts(reader, *chips, kChipRange);
    q.chips = counts.empty() ? 0 : counts.back();
  } else {
    q.chips = reader.count("--chips", kChipRange).value_or(0);
  }
}

void read_workload(FlagReader& reader, const Arguments& arguments, TrainQuestion& q) {
  q.seq = reader.count("--seq", kSequenceRange);
  q.batch_tokens = reader.positive("--batch-tokens", UnitKind::kCount);
  q.batch_seqs = reader.positive("--batch-seqs", UnitKind::kCount);
  if (arguments.has("--batch-tokens") && arguments.has("--batch-seqs")) {
    reader.problem("--batch-tokens and --batch-seqs both say how large a step is", "give one of them");
  }
  q.batch_tolerance = reader.fraction("--batch-tolerance");
  q.tokens = reader.positive("--tokens", UnitKind::kCount);
  q.precision = arguments.value("--precision");
  q.optimizer = arguments.value("--optimizer");
  if (const auto word = reader.word("--attention", kAttentionKernelNames)) {
    q.attention = static_cast<AttentionKernel>(*word);
  }
  if (const auto word = reader.word("--graphs", kGraphCaptureNames)) q.graphs = static_cast<GraphCapture>(*word);
  q.expert_overlap = arguments.has("--ep-overlap");
  q.balanced_experts = arguments.has("--balanced-experts");
  q.expert_capacity = reader.positive("--expert-capacity", UnitKind::kNumber);
  if (const auto word = reader.word("--tp-overlap", kCommOverlapNames)) q.tp_overlap = static_cast<CommOverlap>(*word);
  if (const auto word = reader.word("--dp-overlap", std::span(kCommOverlapNames).first(2)))
    q.dp_overlap = static_cast<CommOverlap>(*word);
  if (const auto word = reader.word("--stages", kStageSplitNames)) q.stages = static_cast<StageSplit>(*word);
  q.price = reader.positive("--price", UnitKind::kUsdPerHour);
}

void read_ranking(FlagReader& reader, const Arguments& arguments, TrainQuestion& q) {
  if (const auto word = reader.word("--objective", kObjectiveNames)) q.objective = static_cast<Objective>(*word);
  if (const auto top = reader.count("--top", kTopRange)) q.top = static_cast<std::size_t>(*top);
  q.variants = arguments.has("--variants");
  constexpr std::array<std::string_view, 2> kEfficiencies{"ideal", "calibrated"};
  if (const auto word = reader.word("--efficiency", kEfficiencies)) q.ideal = *word == 0;
  q.stack = arguments.value("--stack").value_or("");
  if (q.ideal && !q.stack.empty()) {
    reader.problem("--stack chooses measured coefficients, and --efficiency ideal has none", "give one of them");
  }
  q.set = arguments.values("--set");
  if (const auto rank = reader.count("--explain", kTopRange)) {
    q.explain = static_cast<std::size_t>(*rank);
    if (q.explain > q.top) {
      reader.problem(fmt::format("--explain {} is beyond the {} plans shown", q.explain, q.top),
                     fmt::format("add --top {}", q.explain));
    }
  }
}

/// A layout whose pins contradict the question's would be asked about in vain.
void refuse_contradictions(FlagReader& reader, const LayoutFilter& pins, const TrainQuestion& q) {
  for (const LayoutDimension& d : layout_dimensions()) {
    const auto asked = d.pin(pins);
    if (!asked) continue;
    const std::string value = value_text(d, *asked);
    if (const auto fixed = d.pin(q.fix); fixed && *fixed != *asked) {
      reader.problem(
          fmt::format("--why-not {0}={1} contradicts {0} pinned to {2}", d.name, value, value_text(d, *fixed)),
          fmt::format("ask without that pin, or with {}={}", d.name, value_text(d, *fixed)));
    }
    if (const auto most = d.pin(q.max); most && *most < *asked) {
      reader.problem(fmt::format("--why-not {0}={1} lies above --max {0}={2}", d.name, value, *most),
                     fmt::format("ask with --max {}={} or more", d.name, value));
    }
  }
}

void read_why_not(FlagReader& reader, const Arguments& arguments, TrainQuestion& q) {
  for (const std::string& text : arguments.values("--why-not")) {
    LayoutFilter pins;
    read_layout_pins(reader, "--why-not", {text}, pins);
    if (pins_text(pins).empty() && text.ends_with("=auto")) {
      reader.problem(fmt::format("--why-not {} pins nothing", in_quotes(text)), "name a value, as in tp=16,pp=4");
    }
    refuse_contradictions(reader, pins, q);
    q.why_not.push_back(pins);
  }
}

/// A layout has a '=' and no file name; the rank of a plan stands behind the file's name.
void read_from(FlagReader& reader, const Arguments& arguments, TrainQuestion& q) {
  const auto text = arguments.value("--from");
  if (!text) return;
  q.from.emplace();
  const std::size_t hash = text->rfind('#');
  const std::string file = text->substr(0, hash);
  if (!file.ends_with(".json") && text->find('=') != std::string::npos) {
    return read_layout_pins(reader, "--from", {*text}, q.from->pins);
  }
  q.from->file = file;
  if (hash == std::string::npos) return;
  if (const auto rank = reader.count_of("--from FILE#RANK", text->substr(hash + 1), kTopRange)) {
    q.from->rank = static_cast<std::size_t>(*rank);
  }
}

}  // namespace

std::span<const Flag> train_flags() {
  static const std::vector<Flag> kAll = [] {
    std::vector<Flag> out;
    for (const Flag& flag : kFlags) {
      out.push_back(flag);
      if (flag.name == "--price") out.insert(out.end(), run_flags().begin(), run_flags().end());
    }
    return out;
  }();
  return kAll;
}

TrainQuestion read_train_question(FlagReader& reader, const Arguments& arguments, std::string_view command) {
  TrainQuestion question;
  read_names(reader, arguments, command, question);
  read_machine(reader, arguments, command, question);
  read_workload(reader, arguments, question);
  read_fine_tune(reader, arguments, question);
  read_layout_filter(reader, arguments, "--fix", question.fix);
  read_layout_flags(reader, question.fix);
  read_layout_filter(reader, arguments, "--max", question.max);
  read_why_not(reader, arguments, question);
  read_from(reader, arguments, question);
  read_ranking(reader, arguments, question);
  return question;
}

TrainQuestion train_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  TrainQuestion question = read_train_question(reader, arguments, "train");
  question.run = read_run_question(reader, arguments);
  check_curve_flags(reader, arguments);
  reader.finish();
  return question;
}

}  // namespace scalecalc::cli
