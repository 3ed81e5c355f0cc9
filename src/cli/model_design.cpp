#include "cli/model_design.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/sheet_command.h"
#include "cli/stack_flag.h"
#include "cli/train_options.h"
#include "config/yaml_writer.h"
#include "design/design.h"
#include "network/slice.h"
#include "report/design_sheet.h"

namespace scalecalc::cli {
namespace {

constexpr std::string_view kUsualLaw = "chinchilla-besiroglu";
constexpr CountRange kTokenRange{1, 1'000'000'000};
constexpr CountRange kVocabRange{2, 100'000'000};
constexpr CountRange kExpertRange{2, 100'000};
constexpr CountRange kTopRange{1, 100};

constexpr std::array kFlags{
    Flag{"--hw", 0, FlagKind::kValue, "HW", "design: hardware to train on, a catalog name or a YAML file", "h100-sxm"},
    Flag{"--chips", 0, FlagKind::kValue, "N", "design: chips of the machine", "1024"},
    Flag{"--topology", 0, FlagKind::kValue, "AxBxC", "design: shape of the slice (default: the best the vendor builds)",
         "8x8x16"},
    Flag{"--slices", 0, FlagKind::kValue, "K", "design: slices joined by the outer network (default 1)", "2"},
    Flag{"--deadline", 0, FlagKind::kValue, "TIME", "design: how long training may take", "30d"},
    Flag{"--budget", 0, FlagKind::kValue, "USD", "design: how many dollars it may cost", "5M"},
    Flag{"--tokens", 0, FlagKind::kValue, "N", "design: training tokens, whatever the size", "15T"},
    Flag{"--tokens-per-parameter", 0, FlagKind::kValue, "N",
         "design: training tokens for each (active) parameter (default 20)", "20"},
    Flag{"--experts", 0, FlagKind::kValue, "E,K", "design: experts of each layer and how many of them a token visits",
         "128,8"},
    Flag{"--vocab", 0, FlagKind::kValue, "N", "design: vocabulary, padded to a multiple of 1,024 (default 131072)",
         "128000"},
    Flag{"--precision", 0, FlagKind::kValue, "NAME", "design: bf16 (default), fp16, fp8, nvfp4, int8, tf32 or fp32",
         "bf16"},
    Flag{"--optimizer", 0, FlagKind::kValue, "NAME", "design: adam (default), adam-bf16, adam8bit, sgd or muon",
         "adam"},
    Flag{"--price", 0, FlagKind::kValue, "USD",
         "design: dollars per chip and hour (default: the hardware file's first)", "2.5"},
    Flag{"--efficiency", 0, FlagKind::kValue, "ideal|calibrated",
         "design: ideal: the pure roofline; calibrated (default): the hardware's measured efficiencies", "calibrated"},
    kStackFlag,
    Flag{"--law", 0, FlagKind::kValue, "LAW", "design: scaling law of the loss (default chinchilla-besiroglu)",
         "chinchilla"},
    Flag{"--top", 0, FlagKind::kValue, "N", "design: shapes to show (default 5)", "5"},
    Flag{"--write", 0, FlagKind::kValue, "FILE.yaml", "design: write the largest one as a model file for train",
         "mine.yaml"},
};

constexpr const char* kExample = "for example: scalecalc model design --hw h100-sxm --chips 1024 --deadline 30d";

std::optional<ExpertChoice> read_experts(FlagReader& reader, const Arguments& arguments) {
  const auto text = arguments.value("--experts");
  if (!text) return std::nullopt;
  const std::size_t comma = text->find(',');
  if (comma == std::string::npos) {
    reader.problem(fmt::format("--experts {} does not say how many experts a token visits", in_quotes(*text)),
                   "write both: --experts 128,8");
    return std::nullopt;
  }
  const auto experts = reader.count_of("--experts E", text->substr(0, comma), kExpertRange);
  const auto top_k = reader.count_of("--experts K", text->substr(comma + 1), {1, kExpertRange.most});
  if (!experts || !top_k) return std::nullopt;
  if (*top_k > *experts) {
    reader.problem(fmt::format("--experts {}: a token cannot visit {} of {}", in_quotes(*text), *top_k, *experts));
    return std::nullopt;
  }
  return ExpertChoice{*experts, *top_k};
}

void read_machine(FlagReader& reader, const Arguments& arguments, TrainQuestion& q) {
  if (const auto hw = arguments.value("--hw")) {
    q.hardware = *hw;
  } else {
    reader.problem("--hw is missing: on which hardware?",
                   fmt::format("{} (a model that is called design is read as ./design.yaml)", kExample));
  }
  q.slices = reader.count("--slices", kChipRange).value_or(1);
  q.topology = arguments.value("--topology");
  q.chips = reader.count("--chips", kChipRange).value_or(0);
  if (q.topology && q.chips == 0) {
    const Shape shape = parse_shape(*q.topology);
    double product = static_cast<double>(q.slices);
    for (const std::int64_t axis : shape) product *= static_cast<double>(axis);
    if (shape.empty() || product > static_cast<double>(kMostChips)) {
      reader.problem(fmt::format("--topology: {} is not a shape of up to {} chips", in_quotes(*q.topology),
                                 group_thousands(kMostChips)),
                     "axis sizes with x between them, such as 16x20x28");
    } else {
      q.chips = static_cast<std::int64_t>(product);
    }
  } else if (!arguments.has("--chips") && !q.topology) {
    reader.problem("--chips is missing: on how many chips?", kExample);
  }
  q.price = reader.positive("--price", UnitKind::kUsdPerHour);
  constexpr std::array<std::string_view, 2> kEfficiencies{"ideal", "calibrated"};
  if (const auto word = reader.word("--efficiency", kEfficiencies)) q.ideal = *word == 0;
  q.stack = arguments.value("--stack").value_or("");
  if (q.ideal && !q.stack.empty()) {
    reader.problem("--stack chooses measured coefficients, and --efficiency ideal has none", "give one of them");
  }
  q.precision = arguments.value("--precision");
  q.set = arguments.values("--set");
}

DesignQuestion read_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  if (arguments.positionals().size() > 1) {
    reader.problem(fmt::format("unexpected argument {}", in_quotes(arguments.positionals()[1])), kExample);
  }
  DesignQuestion q;
  read_machine(reader, arguments, q.machine);
  q.deadline_s = reader.positive("--deadline", UnitKind::kSeconds);
  q.budget_usd = reader.positive("--budget", UnitKind::kCount);
  if (!arguments.has("--deadline") && !arguments.has("--budget")) {
    reader.problem("--deadline is missing: how long may training take?", "--deadline 30d, or --budget 5M, or both");
  }
  q.tokens = reader.positive("--tokens", UnitKind::kCount);
  q.tokens_per_parameter =
      reader.positive("--tokens-per-parameter", UnitKind::kNumber).value_or(q.tokens_per_parameter);
  if (arguments.has("--tokens") && arguments.has("--tokens-per-parameter")) {
    reader.problem("--tokens and --tokens-per-parameter both say how long training is", "keep one of them");
  }
  q.batch_tokens = reader.positive("--batch-tokens", UnitKind::kCount);
  q.seq = reader.count("--seq", kTokenRange).value_or(q.seq);
  q.vocab = reader.count("--vocab", kVocabRange).value_or(q.vocab);
  q.experts = read_experts(reader, arguments);
  if (const auto top = reader.count("--top", kTopRange)) q.top = static_cast<std::size_t>(*top);
  for (const std::string& set : arguments.values("--set")) {
    if (set.starts_with("model.")) {
      reader.problem(fmt::format("--set {}: the model is what is looked for", set),
                     "--seq, --vocab, --experts and --tokens say what is known of it");
    }
  }
  reader.finish();
  q.precision = precision_of(q.machine.precision.value_or(q.precision)).name;
  q.optimizer = optimizer_of(arguments.value("--optimizer").value_or(q.optimizer)).name;
  return q;
}

}  // namespace

std::span<const Flag> design_flags() { return kFlags; }

ExitCode run_model_design(const Arguments& arguments, Environment& env) {
  DesignQuestion question = read_question(arguments);
  std::optional<AtomicFile> file;  // opened before the work starts, as outputs are
  if (const auto path = arguments.value("--write")) file.emplace(*path);
  return answer_with_sheet(arguments, env, [&](const Catalog& catalog) {
    question.law = load_law(catalog.load(CatalogKind::kLaw, arguments.value("--law").value_or(std::string(kUsualLaw))));
    const DesignAnswer found = answer(question, catalog);
    if (file && !found.models.empty()) file->commit(write_yaml(found.models.front().document));
    return design_sheet(question, found);
  });
}

}  // namespace scalecalc::cli
