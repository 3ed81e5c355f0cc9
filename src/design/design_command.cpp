// Runs `scalecalc model design`: defines its flags, asks its question and shows the answer.
#include "design/design_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/output_command.h"
#include "config/yaml_writer.h"
#include "design/design.h"
#include "design/design_output.h"
#include "network/slice.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kVocabRange{2, 100'000'000};
constexpr CountRange kExpertRange{2, 100'000};
constexpr CountRange kShapeRange{1, 100};

void read_experts(FlagReader& reader, const Flag&, const std::string& text, DesignQuestion& q) {
  const std::size_t comma = text.find(',');
  if (comma == std::string::npos) {
    return reader.problem(fmt::format("--experts {} does not say how many experts a token visits", in_quotes(text)),
                          "write both: --experts 128,8");
  }
  const auto experts = reader.count_of("--experts E", text.substr(0, comma), kExpertRange);
  const auto top_k = reader.count_of("--experts K", text.substr(comma + 1), {1, kExpertRange.most});
  if (!experts || !top_k) return;
  if (*top_k > *experts) {
    return reader.problem(
        fmt::format("--experts {}: a token cannot visit {} of {}", in_quotes(text), *top_k, *experts));
  }
  q.experts = {*experts, *top_k};
}

constexpr std::array kDesignFlags{
    text<&DesignQuestion::machine, &TrainQuestion::hardware>(
        "--hw", "HW", "hardware to train on, a catalog name or a YAML file", "h100-sxm")
        .key("hardware")
        .asking("on which hardware? (A model that is called design is read as ./design.yaml.)"),
    count<&DesignQuestion::machine, &TrainQuestion::chips>("--chips", kChipRange, "N", "chips of the machine", "1024"),
    text<&DesignQuestion::machine, &TrainQuestion::topology>(
        "--topology", "AxBxC", "shape of the slice (default: the best the vendor builds)", "8x8x16"),
    count<&DesignQuestion::machine, &TrainQuestion::slices>("--slices", kChipRange, "K",
                                                            "slices joined by the outer network (default 1)", "2"),
    quantity<&DesignQuestion::deadline_s>("--deadline", UnitKind::kSeconds, "TIME", "how long training may take",
                                          "30d"),
    quantity<&DesignQuestion::budget_usd>("--budget", UnitKind::kCount, "USD", "how many dollars it may cost", "5M")
        .key("budget_usd"),
    quantity<&DesignQuestion::tokens>("--tokens", UnitKind::kCount, "N", "training tokens, whatever the size", "15T")
        .saying("how long training is"),
    quantity<&DesignQuestion::tokens_per_parameter>("--tokens-per-parameter", UnitKind::kNumber, "N",
                                                    "training tokens for each (active) parameter (default 20)", "20")
        .saying("how long training is"),
    text("--experts", "E,K", "experts of each layer and how many of them a token visits", "128,8").by<read_experts>(),
    count<&DesignQuestion::vocab>("--vocab", kVocabRange, "N",
                                  "vocabulary, padded to a multiple of 1,024 (default 131072)", "128000"),
    precision_flag<&DesignQuestion::precision>("{} (default bf16)"),
    optimizer_flag<&DesignQuestion::optimizer>("{} (default adam)"),
    quantity<&DesignQuestion::machine, &TrainQuestion::price>(
        "--price", UnitKind::kUsdPerHour, "USD", "dollars per chip and hour (default: the hardware file's first)",
        "2.5"),
    efficiency_flag("ideal: the pure roofline; calibrated (default): the hardware's measured efficiencies")
        .when<0, &DesignQuestion::machine, &TrainQuestion::ideal>(),
    kStackFlag.to<&DesignQuestion::machine, &TrainQuestion::stack>(),
    text("--law", "LAW", "scaling law of the loss (default chinchilla-besiroglu)", "chinchilla"),
    count<&DesignQuestion::top>("--top", kShapeRange, "N", "shapes to show (default 5)", "5"),
    text("--write", "FILE.yaml", "write the largest one as a model file for train", "mine.yaml").of_output().writing(),
};

/// A topology says how many chips there are, so it may stand alone.
void settle_chips(FlagReader& reader, const Arguments& arguments, TrainQuestion& q) {
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
    reader.problem("--chips is missing: on how many chips?", reader.example());
  }
}

DesignQuestion design_question(const Arguments& arguments) {
  FlagReader reader(arguments);
  if (arguments.positionals().size() > 1) {
    reader.problem(fmt::format("unexpected argument {}", in_quotes(arguments.positionals()[1])), reader.example());
  }
  DesignQuestion q;
  reader.read(q);
  settle_chips(reader, arguments, q.machine);
  refuse_stack_of_ideal(reader, q.machine.ideal, q.machine.stack);
  if (!arguments.has("--deadline") && !arguments.has("--budget")) {
    reader.problem("--deadline is missing: how long may training take?", "--deadline 30d, or --budget 5M, or both");
  }
  q.batch_tokens = reader.quantity("--batch-tokens");
  if (const auto seq = arguments.value("--seq")) q.seq = reader.count_of("--seq", *seq, kSequenceRange).value_or(q.seq);
  q.machine.set = arguments.values("--set");
  q.machine.precision = arguments.value("--precision");
  for (const std::string& set : q.machine.set) {
    if (set.starts_with("model.")) {
      reader.problem(fmt::format("--set {}: the model is what is looked for", set),
                     "--seq, --vocab, --experts and --tokens say what is known of it");
    }
  }
  reader.finish();
  return q;
}

}  // namespace

std::span<const Flag> design_flags() { return kDesignFlags; }

ExitCode run_model_design(const Arguments& arguments, Environment& env) {
  DesignQuestion question = design_question(arguments);
  std::optional<AtomicFile> file;  // opened before the work starts, as outputs are
  if (const auto path = arguments.value("--write")) file.emplace(*path);
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    question.law = load_law(catalog.load(CatalogKind::kLaw, arguments.value("--law").value_or(std::string(kUsualLaw))));
    const DesignAnswer found = answer(question, catalog, env.interrupted);
    const bool complete = !should_stop(env.interrupted);
    if (file && !found.models.empty() && complete) file->commit(write_yaml(found.models.front().document));
    Output output = with_query(design_output(question, found), arguments, {answered(question)});
    output.complete = complete;
    return output;
  });
}

}  // namespace scalecalc::cli
