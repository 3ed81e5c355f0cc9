// Defines the flags of `distill` and `rl` and reads their questions.
#include "jobs/job_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/flag_reader.h"
#include "serve/serve_options.h"
#include "train/train_options.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kPromptRange{1, 10'000'000};
constexpr CountRange kRolloutRange{1, 100'000};
constexpr CountRange kUpdateRange{1, 100'000};
constexpr CountRange kStepRange{1, 1'000'000'000};
constexpr CountRange kDepthRange{0, 64};
constexpr CountRange kTopKRange{1, 1'000'000};
constexpr CountRange kJobChips{1, 65'536};

constexpr std::array<std::string_view, 2> kReferenceNames{"policy", "none"};
constexpr std::array<std::string_view, 2> kLogprobNames{"trainer", "engine"};

constexpr std::array kDistillModes{Mode{"distill --loss logits", "the teacher writes no text"},
                                   Mode{"distill --loss sequence", "text has no logits"}};
constexpr Modes kOfLogits = 1U << 0U;
constexpr Modes kOfSequences = 1U << 1U;

constexpr std::array kDistillFlags{
    text<&DistillQuestion::teacher, &ServeQuestion::model>(
        "--teacher", "MODEL", "who teaches: a catalog name, a YAML file or a config.json", "llama3.1-70b")
        .asking("whom does the student learn from?"),
    count<&TrainQuestion::chips>("--chips", kJobChips, "N", "chips of the job, teacher and student together", "256")
        .asking("on how many chips?"),
    word<&DistillQuestion::loss>(
        "--loss", kDistillLossNames,
        "logits (default): of every token the student trains on; sequence: text that the teacher writes"),
    word<&DistillQuestion::place>(
        "--teacher-on", kTeacherPlaceNames,
        "shared: the student's chips, in turn; split: chips of its own, a batch ahead; stored: once, before training "
        "(default: the fastest)")
        .like("split"),
    count<&DistillQuestion::top_k>("--top-k", kTopKRange, "K",
                                   "logits kept of a token (default: all online, 64 stored)", "100")
        .in(kOfLogits),
    quantity<&DistillQuestion::epochs>("--epochs", UnitKind::kNumber, "N",
                                       "times the student sees what was stored (default: 1)", "3"),
    quantity<&DistillQuestion::storage>("--storage-bandwidth", UnitKind::kBytesPerSecond, "RATE",
                                        "of all hosts together (default: the hardware file's)", "200GB/s")
        .key("storage_bytes_per_s")
        .in(kOfLogits),
};

constexpr std::array kRlFlags{
    count<&TrainQuestion::chips>("--chips", kJobChips, "N", "chips of the job, teacher and student together", "256")
        .asking("on how many chips?"),
    word<&RlQuestion::algorithm>("--algorithm", kRlAlgorithmNames, "ppo trains a critic too (default: grpo)"),
    count<&RlQuestion::prompts>("--prompts", kPromptRange, "N", "prompts of a step (default: 512)", "64"),
    count<&RlQuestion::rollouts>("--rollouts", kRolloutRange, "N", "responses to each prompt (default: 16)", "32"),
    count<&RlQuestion::updates>("--updates", kUpdateRange, "N",
                                "optimizer steps that a step's responses are divided over (default: 1)", "4"),
    count<&RlQuestion::epochs>("--epochs", kUpdateRange, "N", "times the trainer sees them (default: 1)", "2"),
    count<&RlQuestion::steps>("--steps", kStepRange, "N", "steps of the run (default: 1000)", "500"),
    count<&RlQuestion::depth>(
        "--async", kDepthRange, "N",
        "steps that generation runs ahead: 0 (default) in turn, 1 beside the training of the last, 2 and more without "
        "waiting for the longest response",
        "1"),
    word<&RlQuestion::placement>(
        "--placement", kRlPlacementNames,
        "engine and trainer in turn on all chips, or on pools of their own (default: the faster)"),
    count<&RlQuestion::generator_chips>("--gen-chips", kJobChips, "N",
                                        "chips of the engine's own pool (default: the best split)", "128"),
    quantity<&RlQuestion::engine_memory>("--gen-memory", UnitKind::kFraction, "SHARE",
                                         "of a chip's memory that the engine takes (default: as the engine)", "60%"),
    count<&RlQuestion::engine_sequences>("--gen-sequences", kRolloutRange, "N",
                                         "responses that a replica writes at once at most (default: as the engine)",
                                         "128"),
    quantity<&RlQuestion::oversample>("--oversample", UnitKind::kNumber, "X",
                                      "responses generated for each that is trained on (default: 1)", "3"),
    count<&RlQuestion::pack>("--pack", kSequenceRange, "TOKENS",
                             "a microbatch, which holds whole responses (default: of the longest)", "8192"),
    word<&RlQuestion::state>("--trainer-state", kTrainerStateNames,
                             "where the trainer's state is while the engine has the chips (default: the faster)"),
    word("--reference", kReferenceNames, "pass of the first weights for the KL term (default: policy)"),
    text<&RlQuestion::reward>("--reward", "MODEL", "model that scores the responses (default: a rule)", "llama3.1-8b"),
    text<&RlQuestion::critic>("--critic", "MODEL", "of ppo (default: as large as the policy)", "llama3.1-8b"),
    word("--old-logprobs", kLogprobNames,
         "who gives the log-probabilities before the update (default: trainer, a pass of its own)")
        .when<1, &RlQuestion::engine_logprobs>(),
};

void add(std::vector<Flag>& out, const std::vector<Flag>& more) { out.insert(out.end(), more.begin(), more.end()); }

/// A flag of an engine under a name of its own.
Flag engine_flag(std::string_view theirs, std::string_view name, std::string_view help, std::string_view example) {
  Flag out = find_flag(serve_flags(), theirs)->in(kAllModes).explained(help).like(example);
  out.name = name;
  return out;
}

/// Of the trainer, and what both parts of a job share.
void add_trainer(std::vector<Flag>& out) {
  add(out, flags_named(serve_flags(), {"--engine", "--chunk"}));
  add(out, flags_named(train_flags(), {"--precision", "--optimizer", "--attention", "--remat", "--zero", "--schedule",
                                       "--cp-comm", "--offload", "--ep-overlap", "--fix", "--batch-tolerance", "--max",
                                       "--price", "--efficiency", "--stack"}));
  // A distillation has a --loss of its own; there --fix loss=KIND pins this one.
  const bool taken = std::any_of(out.begin(), out.end(), [](const Flag& flag) { return flag.name == "--loss"; });
  if (!taken) add(out, flags_named(train_flags(), {"--loss"}));
  out.insert(out.end(), {kAssumeFlag.to<&TrainQuestion::assume>(), kSetFlag.to<&TrainQuestion::set>(), kExplainFlag});
}

std::vector<Flag> make_distill_flags() {
  std::vector<Flag> out{kHwFlag.to<&TrainQuestion::hardware>()};
  out.insert(out.end(), kDistillFlags.begin(), kDistillFlags.end());
  out.insert(out.end(), {engine_flag("--weights", "--teacher-weights",
                                     "format of the teacher's weights (default: the checkpoint's)", "fp8"),
                         engine_flag("--fix", "--teacher-fix", "pins the teacher's degrees, as --fix of serve", "tp=8"),
                         engine_flag("--max", "--teacher-max", "bounds them", "tp=8")});
  // The teacher reads whole sequences, so documents in them are not asked about.
  out.push_back(count<&TrainQuestion::seq>("--seq", kSequenceRange, "N",
                                           "tokens of a sequence (default: as the model was trained)", "8192"));
  add(out, flags_named(train_flags(), {"--batch-tokens", "--batch-seqs", "--tokens"}));
  for (const Flag& flag : flags_named(serve_flags(), {"--prompt", "--generate"})) out.push_back(flag.in(kOfSequences));
  add_trainer(out);
  return out;
}

std::vector<Flag> make_rl_flags() {
  std::vector<Flag> out{kHwFlag.to<&TrainQuestion::hardware>()};
  out.insert(out.end(), kRlFlags.begin(), kRlFlags.end());
  out.insert(out.end(), {engine_flag("--fix", "--gen-fix", "pins the engine's degrees, as --fix of serve", "tp=2"),
                         engine_flag("--max", "--gen-max", "bounds them", "tp=8")});
  add(out, flags_named(serve_flags(), {"--prompt", "--generate", "--trace", "--weights", "--kv", "--flops"}));
  out.push_back(find_flag(serve_flags(), "--prefix-hit")->to<&RlQuestion::prefix_hit>());
  add_trainer(out);
  return out;
}

/// The engine is asked about the machine of the job. --stack is of training alone.
void on_the_same_machine(ServeQuestion& engine, const TrainQuestion& train) {
  engine.hardware = {train.hardware};
  engine.chips = train.chips;
  engine.ideal = train.ideal;
  engine.price = train.price;
  engine.assume = train.assume;
  engine.set = train.set;
  engine.objective = ServeObjective::kThroughput;
  engine.suggest = false;
}

}  // namespace

std::span<const Flag> distill_flags() {
  static const std::vector<Flag> kAll = make_distill_flags();
  return kAll;
}

std::span<const Flag> rl_flags() {
  static const std::vector<Flag> kAll = make_rl_flags();
  return kAll;
}

std::span<const Mode> distill_modes() { return kDistillModes; }

std::optional<std::size_t> distill_mode(const Arguments& arguments) {
  const std::string loss = arguments.value("--loss").value_or("logits");
  const auto at = std::find(kDistillLossNames.begin(), kDistillLossNames.end(), loss);
  if (at == kDistillLossNames.end()) return std::nullopt;
  return static_cast<std::size_t>(at - kDistillLossNames.begin());
}

DistillQuestion distill_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  DistillQuestion out;
  out.student = read_train_job(reader, arguments);
  out.teacher = read_engine_question(reader, arguments).question;
  on_the_same_machine(out.teacher, out.student);
  // --assume and --set model. are about the student.
  out.teacher.assume.clear();
  std::erase_if(out.teacher.set, [](const std::string& set) { return set.starts_with("model."); });
  reader.read(out);
  if (out.epochs < 1) reader.problem("--epochs is below 1", "what is stored is seen at least once");
  if (out.loss == DistillLoss::kSequence && out.place != TeacherPlace::kAuto && out.place != TeacherPlace::kStored) {
    reader.problem("--loss sequence: the teacher writes before the student trains", "leave --teacher-on out");
  }
  for (const char* flag : {"--epochs", "--storage-bandwidth"}) {
    if (!arguments.has(flag) || (out.place != TeacherPlace::kShared && out.place != TeacherPlace::kSplit)) continue;
    reader.problem(fmt::format("{} is about what is stored, and --teacher-on {} stores nothing", flag,
                               kTeacherPlaceNames[static_cast<std::size_t>(out.place)]),
                   "leave one of them out");
  }
  reader.finish();
  return out;
}

RlQuestion rl_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  RlQuestion out;
  out.train = read_train_job(reader, arguments);
  ServeAsked asked = read_engine_question(reader, arguments);
  out.engine = std::move(asked.question);
  out.engine.model = out.train.model;
  out.mix = std::move(asked.mix);
  if (out.mix.blocks) {
    reader.problem("--trace: what its prompts share is not asked about, rollouts of a prompt share it",
                   "leave hash_ids out");
  }
  on_the_same_machine(out.engine, out.train);
  reader.read(out);
  for (const char* flag : {"--prompt", "--generate"}) {
    if (!arguments.value(flag) && !arguments.value("--trace")) {
      reader.problem(fmt::format("{} is missing: how long are they?", flag),
                     "for example: --prompt 512 --generate 8192");
    }
  }
  if (reader.word("--reference").value_or(0) == 1) out.reference = "none";
  if (!out.critic.empty() && out.algorithm != RlAlgorithm::kPpo) {
    reader.problem("--critic: grpo has none", "add --algorithm ppo");
  }
  if (out.depth > 0 && out.placement == RlPlacement::kColocated) {
    reader.problem("--async needs an engine with chips of its own", "leave --placement colocated out");
  }
  if (arguments.has("--gen-chips") && out.placement == RlPlacement::kColocated) {
    reader.problem("--gen-chips is of a pool of its own, and --placement colocated has none", "leave one of them out");
  } else if (out.generator_chips) {
    out.placement = RlPlacement::kSplit;
    if (*out.generator_chips >= out.train.chips) {
      reader.problem(
          fmt::format("--gen-chips {} leaves none of {} to the trainer", *out.generator_chips, out.train.chips),
          "fewer");
    }
  }
  if (out.engine_memory && (*out.engine_memory <= 0 || *out.engine_memory > 1)) {
    reader.problem("--gen-memory is no share of a chip's memory", "more than 0 %, at most 100 %");
  }
  if (out.oversample < 1) reader.problem("--oversample is below 1", "what is trained on was generated");
  if (arguments.has("--trainer-state") && out.placement == RlPlacement::kSplit) {
    reader.problem("--trainer-state: with --placement split the trainer keeps its chips", "leave one of them out");
  }
  reader.finish();
  return out;
}

}  // namespace scalecalc::cli
