// Defines the flags of `scalecalc train` and reads its question.
#include "train/train_options.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/foreign_words.h"
#include "cli/output_command.h"
#include "economics/run_options.h"
#include "plan/dimensions.h"
#include "plan/layout_options.h"
#include "train/curve_options.h"
#include "train/train_plan_output.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kLoraRankRange{1, 65'536};
constexpr std::array<std::string_view, 3> kLoraGroups{"attention", "mlp", "all"};
constexpr std::array<std::uint8_t, 3> kLoraGroupBits{kLoraAttention, kLoraMlp, kLoraAll};

std::uint8_t lora_bits(std::size_t word) {
  return word < kLoraGroups.size() ? kLoraGroupBits.at(word)
                                   : static_cast<std::uint8_t>(1U << (word - kLoraGroups.size()));
}

std::vector<std::string_view> lora_words() {
  std::vector<std::string_view> out(kLoraGroups.begin(), kLoraGroups.end());
  out.insert(out.end(), kLoraTargetNames.begin(), kLoraTargetNames.end());
  return out;
}

void read_lora_targets(FlagReader& reader, const Flag& flag, const std::string& text, FineTuneQuestion& tune) {
  const std::vector<std::string_view> words = lora_words();
  unsigned bits = 0;
  for (const std::string& part : comma_parts(text)) {
    if (const auto word = reader.word_of(flag.name, part, words)) bits |= lora_bits(*word);
  }
  tune.targets = static_cast<std::uint8_t>(bits);
}

/// A number behind it is the plan's rank.
void read_explain(FlagReader& reader, const Flag& flag, const std::string& text, TrainQuestion& q) {
  q.explain = true;
  if (text == "0") return;
  const auto rank = reader.count_of(flag.name, text, kTopRange);
  if (!rank) return;
  if (q.plan != 0 && q.plan != static_cast<std::size_t>(*rank)) {
    reader.problem(fmt::format("--explain {} contradicts --plan {}", *rank, q.plan), "keep one of the ranks");
  }
  q.plan = static_cast<std::size_t>(*rank);
}

/// A count, or several lengths: those of documents.
void read_sequences(FlagReader& reader, const Flag& flag, const std::string& text, TrainQuestion& q) {
  if (text.find(':') == std::string::npos && text.find("..") == std::string::npos) {
    q.seq = reader.count_of(flag.name, text, kSequenceRange);
    return;
  }
  const auto parsed = parse_lengths(text);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    return reader.problem(fmt::format("{}: {}", flag.name, error->message), error->hint);
  }
  const Lengths& lengths = std::get<Lengths>(parsed);
  if (lengths.largest() > kSequenceRange.most) {
    reader.problem(fmt::format("{} {} is out of range", flag.name, in_quotes(text)),
                   fmt::format("lengths up to {}", group_thousands(kSequenceRange.most)));
  }
  q.documents = lengths;
}

constexpr std::array<std::string_view, 2> kLoraExpertNames{"each", "none"};

constexpr Flag of_adapters(const Flag& flag) {
  return flag.needing("--lora", "{} says how adapters train, and the whole model does",
                      "add the adapters' rank, such as --lora 16");
}

constexpr std::array<std::string_view, 2> kMasterNames{"fp32", "none"};

constexpr Modes kOfRankings = 1U << static_cast<unsigned>(TrainMode::kRanking);
constexpr Modes kOfFronts = ~kOfRankings;

std::vector<Flag> make_train_flags() {
  std::vector<Flag> out{
      kHwFlag.to<&TrainQuestion::hardware>(),
      text("--chips", "N",
           "chips of the machine, up to 16,777,216; several (256..16384*2 or 64,512) draw the scaling curve", "8960")
          .shown<&TrainQuestion::chips>(),
      kTopologyFlag.to<&TrainQuestion::topology>().spelled("topology"),
      kSlicesFlag.to<&TrainQuestion::slices>(),
      quantity<&TrainQuestion::node_bandwidth>(
          "--node-bandwidth", UnitKind::kBytesPerSecond, "BANDWIDTH",
          "outbound bandwidth of a node, shared by its chips (default: as the hardware file)", "200GB/s")
          .spelled("node_bandwidth"),
      text(
          "--seq", "LENGTHS",
          "tokens of a sequence (default: as the model was trained), or of documents that are packed into sequences: a "
          "range 512..8192, or lengths with shares 512:0.3,2048:0.7",
          "8192")
          .by<read_sequences>()
          .shown<&TrainQuestion::seq>(),
      count<&TrainQuestion::pack>(
          "--pack", kSequenceRange, "N",
          "tokens of a sequence that documents of --seq are packed into (default: the longest document's)", "8192")
          .needing("--seq", "{} fills sequences with documents, and nothing says how long these are",
                   "say how long they are: --seq 512..4096"),
      text<&TrainQuestion::images>(
          "--images", "NxHxW",
          "images in each sequence, and their height and width in pixels, of a model with a vision tower "
          "(default: none)",
          "2x1024x1024")
          .spelled("images"),
      quantity<&TrainQuestion::batch_tokens>("--batch-tokens", UnitKind::kCount, "N",
                                             "tokens of a step (default: as the model was trained)", "4M")
          .saying("how large a step is"),
      quantity<&TrainQuestion::batch_seqs>("--batch-seqs", UnitKind::kCount, "N", "the same in sequences", "1024")
          .saying("how large a step is"),
      share<&TrainQuestion::batch_tolerance>(
          "--batch-tolerance",
          "how far the batch a plan runs may lie from the one asked for, to divide over its ranks (default 12.5%)",
          "5%"),
      quantity<&TrainQuestion::tokens>("--tokens", UnitKind::kCount, "N",
                                       "tokens of the whole run (default: as the model was trained)", "15T"),
      precision_flag<&TrainQuestion::precision>("{}").spelled("", "precision"),
      optimizer_flag<&TrainQuestion::optimizer>("{}").spelled("", "optimizer"),
      count<&FineTuneQuestion::rank>(
          "--lora", kLoraRankRange, "RANK",
          "train adapters of this rank beside frozen weights (default: the whole model trains)", "16"),
      of_adapters(text("--lora-targets", "attention|mlp|all|NAME,...",
                       "projections that carry adapters: groups or q, k, v, o, gate, up, down, recurrent (default all)",
                       "q,v")
                      .by<read_lora_targets>()),
      of_adapters(
          word("--lora-experts", kLoraExpertNames, "adapters in each routed expert, or in none of them (default none)")
              .when<0, &FineTuneQuestion::experts>()),
      of_adapters(word<&FineTuneQuestion::base>("--base", kBaseFormatNames,
                                                "format of the frozen weights; nf4 is QLoRA (default: the recipe's)")),
      text<&TrainQuestion::attention>(
          "--attention", "flash|unfused|KERNEL",
          "kernel of attention: one of configs/kernels, the stack's newest fused one, or one that writes its scores to "
          "HBM (default: as the stack on the chip)",
          "flash")
          .spelled("attention", "attention"),
      word<&TrainQuestion::graphs>(
          "--graphs", kGraphCaptureNames,
          "what is replayed from captured graphs: nothing, all of a layer but its experts, the step (default none)")
          .spelled("graphs", "graphs"),
      word<&TrainQuestion::fp8_recipe>("--fp8-recipe", kScalingNames,
                                       "where scales of 8-bit operands come from: tensors before, the tensor itself, "
                                       "each of its rows, or blocks, as MXFP8 has them (default: as the stack)")
          .spelled("fp8_recipe", "scaling"),
      word<&TrainQuestion::dispatch>(
          "--moe-dispatcher", kExpertDispatchNames,
          "how tokens reach experts of other ranks: a copy for each expert, or one for each node and rank that has any "
          "of them, as DeepEP and HybridEP send them (default: deepep where the stack has it)")
          .spelled("dispatcher", "dispatch"),
      word<&TrainQuestion::dropout>("--dropout", kAutoOnOff,
                                    "dropout after attention and MLP, whose masks are kept (default: as the stack)")
          .called("[auto|on|off]")
          .alone_as("on")
          .spelled("dropout"),
      word("--master-weights", kMasterNames,
           "fp32 master copy of 16-bit weights, or none for pure 16-bit training (default fp32)")
          .when<0, &TrainQuestion::master_weights>()
          .spelled("master_weights"),
      toggle<&TrainQuestion::fp8_activation_inputs>("--fp8-activation-inputs",
                                                    "store the inputs of gated activations in 8 bits")
          .spelled("fp8_activation_inputs"),
      toggle<&TrainQuestion::balanced_experts>("--balanced-experts", "routing is forced to be even, as in benchmarks")
          .saying("how even the load of the experts is")
          .spelled("balanced_experts"),
      kExpertLoadFlag.called("FILE|zipf:ALPHA|natural")
          .to<&TrainQuestion::expert_load>()
          .saying("how even the load of the experts is")
          .spelled("expert_load"),
      quantity<&TrainQuestion::expert_capacity>(
          "--expert-capacity", UnitKind::kNumber, "FACTOR",
          "experts take this many times their mean load, filled up or dropped (default: what is routed)", "1.25")
          .spelled("expert_capacity"),
      word<&TrainQuestion::tp_overlap>(
          "--tp-overlap", kCommOverlapNames,
          "how much of the tensor ranks' communication hides: as runs of the stack show (default), nothing, or in "
          "pieces under matmuls")
          .spelled("tp_overlap", "tp_overlap"),
      word<&TrainQuestion::dp_overlap>("--dp-overlap", LegalWords(kCommOverlapNames).first(2),
                                       "whether gradients are reduced under the backward pass (default stack)")
          .spelled("dp_overlap"),
      word<&TrainQuestion::stages>(
          "--stages", kStageSplitNames,
          "how layers are dealt to pipeline stages where they divide (default: as the stack, mostly even)")
          .spelled("stages"),
      layout_flag("remat",
                  "what the backward pass computes again: full, in every layer; full:8, in the first 8 of each "
                  "stage; full:auto, in as many as must be (default: what is fastest)")
          .like("selective"),
      layout_flag("zero", "ZeRO stage of the data ranks"),
      layout_flag("schedule", "pipeline schedule").like("1f1b"),
      layout_flag("cp_comm", "how context ranks bring queries and keys together").like("ring"),
      layout_flag("ep_overlap", "whether expert all-to-alls run under another microbatch's compute; alone: on")
          .called("[auto|off|on]")
          .like("on")
          .alone_as("on"),
      layout_flag("offload",
                  "what the host's memory keeps: optimizer, weights, activations or all; activations:8, of the first 8 "
                  "layers of each stage (default: what makes a layout fit)")
          .called("auto|none|WHAT+...[:N]")
          .like("optimizer+activations"),
      layout_flag("loss",
                  "logits that are there at a time: whole, all of a microbatch; fused, all in one kernel; chunked, "
                  "those of an eighth of its tokens (default: what makes a layout fit)")
          .like("chunked"),
      text("--fix", "KEY=N,...",
           "pin layout dimensions: dp, fsdp, tp, sp, cp, pp, vpp, ep, etp, ep_overlap, zero, mb (sequences of a "
           "microbatch), ga (microbatches of a step), remat, schedule, cp_comm, offload, "
           "loss, split (layers of the first and the last pipeline chunk, 8:6)",
           "tp=8,pp=16")
          .repeatable()
          .shown<&TrainQuestion::fix>(),
      text("--max", "KEY=N,...", "bound them from above", "tp=16").repeatable().shown<&TrainQuestion::max>(),
      text("--why-not", "KEY=N,...", "what ruled out or outranked the layouts with these dimensions; keys as of --fix",
           "tp=16,pp=4")
          .repeatable()
          .among_several()
          .in(kOfRankings),
      text("--from", "LAYOUT",
           "what changes against a layout: KEY=N,..., FILE.json of train --json (FILE.json#2: its plan 2), or a launch "
           "file of Megatron-LM, MaxText, torchtitan, DeepSpeed ...",
           "answer.json")
          .in(kOfRankings),
      word<&TrainQuestion::objective>("--objective", kObjectiveNames, "what to rank by (default time)")
          .like("cost")
          .in(kOfRankings),
      count<&TrainQuestion::top>("--top", kTopRange, "N", "plans to show (default 10)", "10")
          .among_several()
          .in(kOfRankings),
      share<&TrainQuestion::tie>(
          "--tie", "a simpler plan is recommended if it is behind the best by no more than this (default 2%)", "5%")
          .in(kOfRankings),
      count<&TrainQuestion::plan>("--plan", kTopRange, "N",
                                  "which plan of the ranking is shown in detail (default: the recommended one)", "2")
          .among_several()
          .in(kOfRankings),
      toggle("--pareto", "the plans that no other beats in both time and cost, instead of a ranking")
          .among_several()
          .in(kOfFronts),
      toggle<&TrainQuestion::variants>("--variants", "rank variants of the same parallel degrees too")
          .among_several()
          .in(kOfRankings),
      kPriceFlag.to<&TrainQuestion::price>(),
  };
  out.insert(out.end(), run_flags().begin(), run_flags().end());
  Flag explain = text("--explain", "[RANK]",
                      "the formulas behind the plan shown in detail, or one of the ranking, with their numbers", "1")
                     .by<read_explain>()
                     .in(kOfRankings);
  explain.kind = FlagKind::kOptionalCount;
  explain.asks = false;
  out.insert(
      out.end(),
      {efficiency_flag("ideal: the pure roofline; calibrated (default): the hardware's measured "
                       "efficiencies")
           .when<0, &TrainQuestion::ideal>(),
       kStackFlag.to<&TrainQuestion::stack>(),
       text<&TrainQuestion::as_of>(
           "--as-of", "DATE",
           "use the release available at this date: its layouts, memory and kernels (default: the latest)", "2025-03"),
       kSetFlag
           .explained("replace one field of the model or the hardware, such as "
                      "hw.hbm.bandwidth=5TB/s")
           .to<&TrainQuestion::set>(),
       kAssumeFlag.to<&TrainQuestion::assume>(), explain});
  return out;
}

/// A topology says how many chips there are, so it may stand alone.
void settle_machine(FlagReader& reader, const Arguments& arguments, TrainQuestion& q) {
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
    if (!q.topology) reader.problem("--chips is missing: on how many chips?", reader.example());
  } else if (is_sweep(*chips)) {
    const std::vector<std::int64_t> counts = chip_counts(reader, *chips, kChipRange);
    q.chips = counts.empty() ? 0 : counts.back();
  } else {
    q.chips = reader.count_of("--chips", *chips, kChipRange).value_or(0);
  }
}

/// A layout whose pins contradict the question's would be asked about in vain.
void refuse_contradictions(FlagReader& reader, const LayoutFilter& pins, const TrainQuestion& q) {
  for (const LayoutDimension& d : pin_dimensions()) {
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

std::optional<std::uint8_t> lora_targets_of(const std::string& text) {
  const std::vector<std::string_view> words = lora_words();
  unsigned bits = 0;
  for (const std::string& part : comma_parts(text)) {
    const auto word = word_meant(part, words);
    if (!word) return std::nullopt;
    bits |= lora_bits(*word);
  }
  return static_cast<std::uint8_t>(bits);
}

std::span<const Flag> train_flags() {
  static const std::vector<Flag> kAll = make_train_flags();
  return kAll;
}

TrainQuestion read_train_job(FlagReader& reader, const Arguments& arguments) {
  TrainQuestion q;
  q.model = reader.only_word("MODEL", "which model is to be trained?");
  reader.read(q);
  if (q.model == "-" && q.hardware == "-") {
    reader.problem("the model and the hardware cannot both be standard input", "name a file for one of them");
  }
  if (arguments.has("--lora")) reader.read(q.fine_tune.emplace());
  read_layout_filter(reader, arguments, "--fix", q.fix);
  read_layout_flags(reader, q.fix);
  read_layout_filter(reader, arguments, "--max", q.max);
  // Who says how layers are dealt leaves nothing to choose.
  if (q.stages && !q.fix.split) q.fix.split.emplace();
  refuse_stack_of_ideal(reader, q.ideal, q.stack);
  return q;
}

TrainQuestion read_train_question(FlagReader& reader, const Arguments& arguments) {
  TrainQuestion q = read_train_job(reader, arguments);
  settle_machine(reader, arguments, q);
  return q;
}

void refuse_meaningless(const Arguments& arguments, const ResolvedQuestion& job) {
  FlagReader reader(arguments, train_flags());
  const auto refuse = [&](bool unknown, std::initializer_list<std::string_view> flags, const std::string& why,
                          const std::string& hint) {
    for (const std::string_view flag : flags) {
      if (unknown && arguments.typed(flag)) reader.problem(fmt::format("{} has no meaning: {}", flag, why), hint);
    }
  };
  refuse(
      !job.workload.tokens,
      {"--mtbf", "--mtbf-node", "--straggler", "--chip-spread", "--storage-bandwidth", "--power", "--pue", "--carbon"},
      "it is of the whole run, and how many tokens that trains on is not known", "say so: --tokens 1T");
  refuse(!job.workload.tokens && arguments.value("--objective") != "cost", {"--price"},
         "dollars are of the whole run, and how many tokens that trains on is not known", "say so: --tokens 1T");
  refuse(job.workload.tokens && !job.hw.tdp, {"--power", "--pue", "--carbon"},
         fmt::format("{} publishes no power", job.hw.name), "give the watts of a chip: --set hw.power.tdp=450W");
  const Efficiency& e = job.efficiency;
  refuse(arguments.value("--graphs") != "none" && (e.kernel_overhead.value <= 0 || e.captured_share.value >= 1),
         {"--graphs"}, fmt::format("a host launches no kernels of {} one by one", job.hw.name), "leave it out");
  refuse(e.cast.value <= 0 && e.host_overhead.value <= 0 && e.row_scaled.value == 1 && e.block_scaled.value == 1,
         {"--fp8-recipe"}, fmt::format("these coefficients of {} know no cost of casts", job.hw.name), "leave it out");
  reader.finish();
}

Output with_train_query(Output output, const Arguments& arguments, const TrainAnswer& answer) {
  const TrainQuestion asked = understood(answer.question, answer.workload, answer.hw, answer.model);
  return with_query(std::move(output), arguments,
                    {answered(asked), answered(asked.fine_tune), answered(asked.run), answered(asked.run.power)});
}

TrainQuestion train_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  TrainQuestion q = read_train_question(reader, arguments);
  read_why_not(reader, arguments, q);
  read_from(reader, arguments, q);
  q.run = read_run_question(reader, arguments);
  if (q.plan > q.top) {
    reader.problem(fmt::format("plan {} is beyond the {} plans shown", q.plan, q.top),
                   fmt::format("add --top {}", q.plan));
  }
  check_curve_flags(reader, arguments);
  reader.finish();
  return q;
}

}  // namespace scalecalc::cli
