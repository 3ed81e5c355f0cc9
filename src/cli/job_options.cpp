#include "cli/job_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "cli/flag_reader.h"
#include "cli/serve_options.h"
#include "cli/sheet_command.h"
#include "cli/train_options.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kPromptRange{1, 10'000'000};
constexpr CountRange kRolloutRange{1, 100'000};
constexpr CountRange kUpdateRange{1, 100'000};
constexpr CountRange kStepRange{1, 1'000'000'000};
constexpr CountRange kDepthRange{0, 64};
constexpr CountRange kTopKRange{1, 1'000'000};
constexpr CountRange kJobChips{1, 65'536};

/// Flags of another command under their own names: the same words, the same help.
void take(std::vector<Flag>& out, std::span<const Flag> from, std::span<const std::string_view> names) {
  for (const std::string_view name : names) {
    const auto found = std::find_if(from.begin(), from.end(), [&](const Flag& flag) { return flag.name == name; });
    check(found != from.end(), "a flag that is taken over exists");
    out.push_back(*found);
  }
}

constexpr std::array kDistillOwn{
    Flag{"--teacher", 0, FlagKind::kValue, "MODEL", "who teaches: a catalog name, a YAML file or a config.json",
         "llama3.1-70b"},
    Flag{"--chips", 0, FlagKind::kValue, "N", "chips of the job, teacher and student together", "256"},
    Flag{"--loss", 0, FlagKind::kValue, "logits|sequence",
         "logits (default): of every token the student trains on; sequence: text that the teacher writes", "sequence"},
    Flag{"--teacher-on", 0, FlagKind::kValue, "auto|shared|split|stored",
         "shared: the student's chips, in turn; split: chips of its own, a batch ahead; stored: once, before training "
         "(default: the fastest)",
         "split"},
    Flag{"--top-k", 0, FlagKind::kValue, "K", "logits kept of a token (default: all online, 64 stored)", "100"},
    Flag{"--epochs", 0, FlagKind::kValue, "N", "times the student sees what was stored (default: 1)", "3"},
    Flag{"--storage-bandwidth", 0, FlagKind::kValue, "RATE", "of all hosts together (default: the hardware file's)",
         "200GB/s"},
    Flag{"--teacher-weights", 0, FlagKind::kValue, "FORMAT",
         "format of the teacher's weights (default: the checkpoint's)", "fp8"},
    Flag{"--teacher-fix", 0, FlagKind::kRepeatable, "KEY=N,...", "pins the teacher's degrees, as --fix of serve",
         "tp=8"},
    Flag{"--teacher-max", 0, FlagKind::kRepeatable, "KEY=N,...", "bounds them", "tp=8"},
};

constexpr std::array kRlOwn{
    Flag{"--chips", 0, FlagKind::kValue, "N", "chips of the job, engine and trainer together", "64"},
    Flag{"--algorithm", 0, FlagKind::kValue, "grpo|ppo", "ppo trains a critic too (default: grpo)", "ppo"},
    Flag{"--prompts", 0, FlagKind::kValue, "N", "prompts of a step (default: 512)", "64"},
    Flag{"--rollouts", 0, FlagKind::kValue, "N", "responses to each prompt (default: 16)", "32"},
    Flag{"--updates", 0, FlagKind::kValue, "N", "optimizer steps that a step's responses are divided over (default: 1)",
         "4"},
    Flag{"--epochs", 0, FlagKind::kValue, "N", "times the trainer sees them (default: 1)", "2"},
    Flag{"--steps", 0, FlagKind::kValue, "N", "steps of the run (default: 1000)", "500"},
    Flag{"--async", 0, FlagKind::kValue, "N",
         "steps that generation runs ahead: 0 (default) in turn, 1 beside the training of the last, 2 and more without "
         "waiting for the longest response",
         "1"},
    Flag{"--placement", 0, FlagKind::kValue, "auto|colocated|split",
         "engine and trainer in turn on all chips, or on pools of their own (default: the faster)", "split"},
    Flag{"--trainer-state", 0, FlagKind::kValue, "auto|resident|offloaded",
         "where the trainer's state is while the engine has the chips (default: the faster)", "offloaded"},
    Flag{"--reference", 0, FlagKind::kValue, "policy|none",
         "pass of the first weights for the KL term (default: policy)", "none"},
    Flag{"--reward", 0, FlagKind::kValue, "MODEL", "model that scores the responses (default: a rule)", "llama3.1-8b"},
    Flag{"--critic", 0, FlagKind::kValue, "MODEL", "of ppo (default: as large as the policy)", "llama3.1-8b"},
    Flag{"--old-logprobs", 0, FlagKind::kValue, "trainer|engine",
         "who gives the log-probabilities before the update (default: trainer, a pass of its own)", "engine"},
    Flag{"--gen-fix", 0, FlagKind::kRepeatable, "KEY=N,...", "pins the engine's degrees, as --fix of serve", "tp=2"},
    Flag{"--gen-max", 0, FlagKind::kRepeatable, "KEY=N,...", "bounds them", "tp=8"},
};

constexpr std::array<std::string_view, 14> kTrainerFlags{
    "--precision", "--optimizer", "--attention",       "--remat", "--zero",  "--schedule",   "--cp-comm",
    "--offload",   "--fix",       "--batch-tolerance", "--max",   "--price", "--efficiency", "--stack"};

constexpr std::array<std::string_view, 2> kEngineFlags{"--engine", "--chunk"};
constexpr std::array<std::string_view, 4> kBatchFlags{"--seq", "--batch-tokens", "--batch-seqs", "--tokens"};
constexpr std::array<std::string_view, 2> kLengthFlags{"--prompt", "--generate"};
constexpr std::array<std::string_view, 5> kRolloutFlags{"--trace", "--prefix-hit", "--weights", "--kv", "--flops"};

void finish_table(std::vector<Flag>& out) {
  take(out, serve_flags(), kEngineFlags);
  take(out, train_flags(), kTrainerFlags);
  out.insert(out.end(), {kAssumeFlag, kSetFlag, kExplainFlag});
}

std::vector<Flag> make_distill_flags() {
  std::vector<Flag> out{kHwFlag};
  out.insert(out.end(), kDistillOwn.begin(), kDistillOwn.end());
  take(out, train_flags(), kBatchFlags);
  take(out, serve_flags(), kLengthFlags);
  finish_table(out);
  return out;
}

std::vector<Flag> make_rl_flags() {
  std::vector<Flag> out{kHwFlag};
  out.insert(out.end(), kRlOwn.begin(), kRlOwn.end());
  take(out, serve_flags(), kLengthFlags);
  take(out, serve_flags(), kRolloutFlags);
  finish_table(out);
  return out;
}

/// The engine is asked about the machine of the job. --stack is of training alone.
void on_the_same_machine(ServeQuestion& engine, const TrainQuestion& train) {
  engine.hardware = {train.hardware};
  engine.chips = train.chips;
  engine.objective = ServeObjective::kThroughput;
  engine.suggest = false;
}

void check_chips(FlagReader& reader, const Arguments& arguments) {
  // Several counts would be one question each; `batch` asks them.
  if (arguments.value("--chips")) reader.count("--chips", kJobChips);
}

}  // namespace

std::span<const Flag> distill_flags() {
  static const std::vector<Flag> kFlags = make_distill_flags();
  return kFlags;
}

std::span<const Flag> rl_flags() {
  static const std::vector<Flag> kFlags = make_rl_flags();
  return kFlags;
}

DistillQuestion distill_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  DistillQuestion out;
  out.student = read_train_question(reader, arguments, "distill");
  check_chips(reader, arguments);
  ServeAsked asked = read_engine_question(reader, arguments, {"--teacher-fix", "--teacher-max", "--teacher-weights"});
  out.teacher = std::move(asked.question);
  // --assume and --set model. are about the student.
  out.teacher.assume.clear();
  std::erase_if(out.teacher.set, [](const std::string& set) { return set.starts_with("model."); });
  on_the_same_machine(out.teacher, out.student);
  if (const auto teacher = arguments.value("--teacher")) {
    out.teacher.model = *teacher;
  } else {
    reader.problem("--teacher is missing: whom does the student learn from?",
                   "a model, such as --teacher llama3.1-70b");
  }
  out.loss = static_cast<DistillLoss>(reader.word("--loss", kDistillLossNames).value_or(0));
  out.place = static_cast<TeacherPlace>(reader.word("--teacher-on", kTeacherPlaceNames).value_or(0));
  out.top_k = reader.count("--top-k", kTopKRange);
  out.epochs = reader.positive("--epochs", UnitKind::kNumber).value_or(1);
  if (out.epochs < 1) reader.problem("--epochs is below 1", "what is stored is seen at least once");
  out.storage = reader.positive("--storage-bandwidth", UnitKind::kBytesPerSecond);
  const bool sequence = out.loss == DistillLoss::kSequence;
  if (sequence && out.top_k)
    reader.problem("--top-k cuts logits, and --loss sequence has none", "leave one of them out");
  if (sequence && out.place != TeacherPlace::kAuto && out.place != TeacherPlace::kStored) {
    reader.problem("--loss sequence: the teacher writes before the student trains", "leave --teacher-on out");
  }
  if (!sequence && (arguments.value("--prompt") || arguments.value("--generate"))) {
    reader.problem("--prompt and --generate are lengths of what the teacher writes", "add --loss sequence");
  }
  reader.finish();
  return out;
}

RlQuestion rl_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  RlQuestion out;
  out.train = read_train_question(reader, arguments, "rl");
  check_chips(reader, arguments);
  ServeAsked asked = read_engine_question(reader, arguments, {"--gen-fix", "--gen-max"});
  out.engine = std::move(asked.question);
  out.engine.model = out.train.model;
  out.mix = std::move(asked.mix);
  on_the_same_machine(out.engine, out.train);
  for (const char* flag : {"--prompt", "--generate"}) {
    if (!arguments.value(flag) && !arguments.value("--trace")) {
      reader.problem(fmt::format("{} is missing: how long are they?", flag),
                     "for example: --prompt 512 --generate 8192");
    }
  }
  out.prompts = reader.count("--prompts", kPromptRange).value_or(out.prompts);
  out.rollouts = reader.count("--rollouts", kRolloutRange).value_or(out.rollouts);
  out.updates = reader.count("--updates", kUpdateRange).value_or(1);
  out.epochs = reader.count("--epochs", kUpdateRange).value_or(1);
  out.steps = reader.count("--steps", kStepRange).value_or(out.steps);
  out.depth = reader.count("--async", kDepthRange).value_or(0);
  out.algorithm = static_cast<RlAlgorithm>(reader.word("--algorithm", kRlAlgorithmNames).value_or(0));
  out.placement = static_cast<RlPlacement>(reader.word("--placement", kRlPlacementNames).value_or(0));
  out.state = static_cast<TrainerState>(reader.word("--trainer-state", kTrainerStateNames).value_or(0));
  constexpr std::array<std::string_view, 2> kReferences{"policy", "none"};
  if (reader.word("--reference", kReferences).value_or(0) == 1) out.reference = "none";
  out.reward = arguments.value("--reward").value_or("");
  out.critic = arguments.value("--critic").value_or("");
  constexpr std::array<std::string_view, 2> kGivers{"trainer", "engine"};
  out.engine_logprobs = reader.word("--old-logprobs", kGivers).value_or(0) == 1;
  out.prefix_hit = reader.fraction("--prefix-hit");
  if (!out.critic.empty() && out.algorithm != RlAlgorithm::kPpo) {
    reader.problem("--critic: grpo has none", "add --algorithm ppo");
  }
  if (out.depth > 0 && out.placement == RlPlacement::kColocated) {
    reader.problem("--async needs an engine with chips of its own", "leave --placement colocated out");
  }
  reader.finish();
  return out;
}

}  // namespace scalecalc::cli
