#include "cli/bounds_options.h"

#include <fmt/format.h>

#include <array>

#include "base/text.h"
#include "cli/bounds_serving_options.h"
#include "cli/flag_reader.h"
#include "cli/layout_flags.h"
#include "cli/sheet_command.h"
#include "spec/load.h"
#include "spec/load_stack.h"
#include "train/import_assumptions.h"

namespace scalecalc::cli {
namespace {

constexpr std::int64_t kMostChips = 16'777'216;
constexpr CountRange kChipRange{1, kMostChips};
constexpr CountRange kSequenceRange{1, 1'000'000'000};

constexpr std::array kFlags{
    kHwFlag,
    Flag{"--for", 0, FlagKind::kValue, "training|serving|both", "which rules (default both)", "training"},
    Flag{"--params", 0, FlagKind::kValue, "N|stated",
         "parameters in place of the exact count: a number, or the vendor's rounded figure", "70B"},
    Flag{"--active-params", 0, FlagKind::kValue, "N", "the same of those one token uses", "37B"},
    Flag{"--chips", 0, FlagKind::kValue, "N", "chips, of all slices together", "8960"},
    Flag{"--topology", 0, FlagKind::kValue, "AxBxC", "shape of each slice, in place of --chips", "16x20x28"},
    Flag{"--slices", 0, FlagKind::kValue, "K", "slices joined by the outer network (default 1)", "4"},
    Flag{"--pods", 0, FlagKind::kValue, "K", "that many whole pods, in place of --chips and --slices", "4"},
    Flag{"--mx", 0, FlagKind::kValue, "N",
         "torus axes that carry data parallelism, M_X (default: all, or all but M_Y beside tensor parallelism)", "2"},
    Flag{"--my", 0, FlagKind::kValue, "N", "torus axes that carry tensor parallelism, M_Y (default 1)", "1"},
    Flag{"--fix", 0, FlagKind::kRepeatable, "KEY=N,...",
         "degrees to judge: dp, fsdp, tp, cp, pp, ep (experts on chips of their own), ga (microbatches of a step)",
         "tp=8,pp=16"},
    Flag{"--nodes-spanned", 0, FlagKind::kValue, "N",
         "nodes that one copy of the model covers (default: as --fix says)", "8"},
    Flag{"--seq", 0, FlagKind::kValue, "N", "tokens of a sequence (default: as the model was trained)", "8192"},
    Flag{"--batch-tokens", 0, FlagKind::kValue, "N", "tokens of a training step (default: as the model was trained)",
         "4M"},
    Flag{"--batch-seqs", 0, FlagKind::kValue, "N", "the same in sequences", "1024"},
    Flag{"--tokens", 0, FlagKind::kValue, "N", "tokens of the training run (default: as the model was trained)", "15T"},
    Flag{"--mfu", 0, FlagKind::kValue, "SHARE",
         "model FLOPs utilization of the run planned and of prefill (default 40%)", "40%"},
    Flag{"--price", 0, FlagKind::kValue, "USD", "dollars per chip and hour (default: the hardware file's first)",
         "4.2"},
    Flag{"--gpu-hours", 0, FlagKind::kValue, "N", "chip-hours of a finished run: its MFU", "2.79M"},
    Flag{"--precision", 0, FlagKind::kValue, "DTYPE", "format the matmuls compute in (default bf16)", "bf16"},
    Flag{"--weights", 0, FlagKind::kValue, "DTYPE", "format weights are held and sent in (default: --precision)",
         "int8"},
    Flag{"--gradients", 0, FlagKind::kValue, "DTYPE", "format gradients are reduced in (default: --precision)", "fp32"},
    Flag{"--activations", 0, FlagKind::kValue, "DTYPE",
         "format activations are kept and sent in (default: --precision)", "bf16"},
    Flag{"--optimizer", 0, FlagKind::kValue, "NAME", "adam, adam-bf16, adam8bit, sgd or muon", "adam"},
    Flag{"--checkpoints", 0, FlagKind::kValue, "all|matmuls|mlp|block|N",
         "activations kept for the backward pass: a policy, or N tensors of d_model a layer (default 4)", "block"},
    Flag{"--versus", 0, FlagKind::kValue, "HW", "how the limits differ from those of other hardware", "book/h100"},
    Flag{"--efficiency", 0, FlagKind::kValue, "ideal|calibrated",
         "ideal (default): data-sheet rates, as the book; calibrated: times the hardware file's efficiencies",
         "calibrated"},
    kAssumeFlag,
    kSetFlag,
    kExplainFlag,
};

constexpr const char* kExample = "for example: scalecalc bounds llama3-70b --hw tpu-v5p --chips 8960";

/// The positional: a catalog name, a file, or a bare size such as 70B.
std::string read_model(FlagReader& reader, const Arguments& arguments, BoundsQuestion& q) {
  const std::vector<std::string>& names = arguments.positionals();
  if (names.empty()) {
    reader.problem("MODEL is missing: a catalog name, a file, or a parameter count such as 70B", kExample);
    return "";
  }
  if (names.size() > 1) {
    reader.problem(fmt::format("unexpected argument {}: bounds takes one MODEL, and that is {}", in_quotes(names[1]),
                               in_quotes(names[0])),
                   kExample);
  }
  const auto count = parse_quantity(names.front(), UnitKind::kCount);
  if (const double* size = std::get_if<double>(&count)) {
    if (*size <= 0) reader.problem("a model of no parameters", kExample);
    q.parameters = *size;
    return "";
  }
  return names.front();
}

void read_parameters(FlagReader& reader, const Arguments& arguments, BoundsQuestion& q) {
  q.active_parameters = reader.positive("--active-params", UnitKind::kCount);
  const auto text = arguments.value("--params");
  if (!text) return;
  if (q.parameters) {
    reader.problem("--params and MODEL both give the parameters", "give one of them");
  } else if (*text == "stated") {
    q.stated_parameters = true;
  } else {
    q.parameters = reader.positive("--params", UnitKind::kCount);
  }
}

/// One of several ways to say how many chips.
void exclude(FlagReader& reader, const Arguments& arguments, std::string_view one, std::string_view other) {
  if (arguments.has(one) && arguments.has(other)) {
    reader.problem(fmt::format("{} and {} both say which chips", one, other), "give one of them");
  }
}

void read_machine(FlagReader& reader, const Arguments& arguments, BoundsQuestion& q) {
  for (const char* other : {"--chips", "--topology", "--slices"}) exclude(reader, arguments, "--pods", other);
  q.chips = reader.count("--chips", kChipRange);
  q.pods = reader.count("--pods", {1, 1024});
  q.slices = reader.count("--slices", kChipRange).value_or(1);
  if (const auto text = arguments.value("--topology")) {
    const Shape shape = parse_shape(*text);
    double chips = static_cast<double>(q.slices);
    for (const std::int64_t axis : shape) chips *= static_cast<double>(axis);
    if (shape.empty() || chips > static_cast<double>(kMostChips)) {
      reader.problem(fmt::format("--topology: {} is not a shape of at most {} chips", in_quotes(*text),
                                 group_thousands(kMostChips)),
                     "axis sizes with x between them, such as 16x20x28");
    }
    q.topology = shape;
  }
  q.data_axes = reader.count("--mx", {1, 6});
  q.tensor_axes = reader.count("--my", {1, 6});
  q.nodes_spanned = reader.count("--nodes-spanned", kChipRange);
}

/// Of the dimensions a plan has, those the rules of thumb know.
void read_degrees(FlagReader& reader, const Arguments& arguments, BoundsQuestion& q) {
  LayoutFilter given;
  read_layout_filter(reader, arguments, "--fix", given);
  using Pin = std::pair<std::optional<std::int64_t>, const char*>;
  const std::initializer_list<Pin> others{
      {given.sp, "sp"}, {given.vpp, "vpp"}, {given.etp, "etp"}, {given.zero, "zero"}, {given.micro_batch_seqs, "mb"}};
  for (const auto& [value, name] : others) {
    if (value) {
      reader.problem(fmt::format("--fix {}: no rule of thumb depends on it", name),
                     "degrees to judge: dp, fsdp, tp, cp, pp, ep, ga");
    }
  }
  if (given.remat || given.schedule) {
    reader.problem("--fix remat and schedule belong to train", "see --checkpoints for what is kept");
  }
  q.fix = {given.dp, given.fsdp, given.tp, given.cp, given.pp, given.ep, given.grad_accum};
  double product = 1;
  for (const auto& degree : {given.dp, given.fsdp, given.tp, given.cp, given.pp, given.ep}) {
    product *= static_cast<double>(degree.value_or(1));
  }
  if (product > static_cast<double>(kMostChips)) {
    reader.problem(fmt::format("--fix: the degrees make more than {} chips", group_thousands(kMostChips)));
  }
}

std::optional<DType> read_dtype(FlagReader& reader, std::string_view flag) {
  const auto word = reader.word(flag, kDTypeNames);
  return word ? std::optional(static_cast<DType>(*word)) : std::nullopt;
}

void read_formats(FlagReader& reader, BoundsQuestion& q) {
  q.compute = read_dtype(reader, "--precision").value_or(DType::kBf16);
  q.weights = read_dtype(reader, "--weights");
  q.gradients = read_dtype(reader, "--gradients");
  q.activations = read_dtype(reader, "--activations");
}

std::optional<CheckpointPolicy> read_checkpoints(FlagReader& reader, const Arguments& arguments) {
  constexpr std::array<std::string_view, 4> kPolicies{"all", "matmuls", "mlp", "block"};
  const auto text = arguments.value("--checkpoints");
  if (!text) return std::nullopt;
  const auto count = parse_quantity(*text, UnitKind::kNumber);
  if (const double* number = std::get_if<double>(&count)) {
    if (*number > 0 && *number <= 1000) return CheckpointPolicy{CheckpointPolicy::Kind::kCount, *number};
    reader.problem(fmt::format("--checkpoints {} is out of range", in_quotes(*text)), "a number from 1 to 1000");
    return std::nullopt;
  }
  const auto word = reader.word("--checkpoints", kPolicies);
  if (!word) return std::nullopt;
  return CheckpointPolicy{static_cast<CheckpointPolicy::Kind>(*word), 0};
}

void read_job(FlagReader& reader, const Arguments& arguments, BoundTraining& job) {
  job.seq = reader.count("--seq", kSequenceRange);
  job.batch_tokens = reader.positive("--batch-tokens", UnitKind::kCount);
  job.batch_seqs = reader.positive("--batch-seqs", UnitKind::kCount);
  if (job.batch_tokens && job.batch_seqs) {
    reader.problem("--batch-tokens and --batch-seqs both say how large a step is", "give one of them");
  }
  job.tokens = reader.positive("--tokens", UnitKind::kCount);
  job.mfu = reader.fraction("--mfu");
  if (job.mfu && *job.mfu <= 0) reader.problem("--mfu 0: the run would never end", "a share above 0, such as 40%");
  job.gpu_hours = reader.positive("--gpu-hours", UnitKind::kCount);
  job.price = reader.positive("--price", UnitKind::kUsdPerHour);
  job.optimizer = arguments.value("--optimizer");
  job.checkpoints = read_checkpoints(reader, arguments);
}

void read_scope(FlagReader& reader, BoundsQuestion& q) {
  constexpr std::array<std::string_view, 3> kScopes{"training", "serving", "both"};
  if (const auto word = reader.word("--for", kScopes)) q.scope = static_cast<BoundScope>(*word);
  constexpr std::array<std::string_view, 2> kEfficiencies{"ideal", "calibrated"};
  if (const auto word = reader.word("--efficiency", kEfficiencies)) q.ideal = *word == 0;
}

void load_files(const Arguments& arguments, const Catalog& catalog, const std::string& model, const std::string& hw,
                BoundsQuestion& q) {
  ConfigNode hw_document = catalog.load(CatalogKind::kHardware, hw);
  std::vector<OverrideTarget> targets{{"hw", &hw_document}};
  ModelDocument model_document;
  if (!model.empty()) {
    model_document = load_model_document(catalog, model, arguments.value("--assume").value_or(""));
    targets.push_back({"model", &model_document.document});
    q.read = import_assumptions(model_document);
  }
  apply_sets(arguments.values("--set"), targets);
  q.hw = load_hardware(hw_document, catalog, Unpublished::kAllowed);
  if (!q.ideal) q.memory = stack_memory(catalog, stack_of_framework(catalog, q.hw.efficiency.stack).value_or(""));
  if (!model.empty()) q.model = load_model(model_document.document);
  if (const auto other = arguments.value("--versus")) {
    q.versus = load_hardware(catalog.load(CatalogKind::kHardware, *other), catalog, Unpublished::kAllowed);
  }
}

}  // namespace

std::span<const Flag> bounds_flags() {
  static const std::vector<Flag> kAll = [] {
    std::vector<Flag> all(kFlags.begin(), kFlags.end());
    const std::span<const Flag> serving = bounds_serving_flags();
    all.insert(all.end() - 3, serving.begin(), serving.end());  // before --assume, --set and --explain
    return all;
  }();
  return kAll;
}

BoundsQuestion bounds_question(const Arguments& arguments, const Catalog& catalog) {
  FlagReader reader(arguments);
  BoundsQuestion question;
  const std::string model = read_model(reader, arguments, question);
  const std::string hw = arguments.value("--hw").value_or("");
  if (hw.empty()) reader.problem("--hw is missing: on which hardware?", kExample);
  if (model == "-" && hw == "-") {
    reader.problem("the model and the hardware cannot both be standard input", "name a file for one of them");
  }
  if (arguments.has("--assume") && model.empty()) {
    reader.problem("--assume says how to read a config.json, and MODEL is none", "leave it out");
  }
  read_parameters(reader, arguments, question);
  read_machine(reader, arguments, question);
  read_degrees(reader, arguments, question);
  read_formats(reader, question);
  read_job(reader, arguments, question.training);
  read_scope(reader, question);
  question.serving = read_bounds_serving(reader, arguments, catalog);
  reader.finish();
  load_files(arguments, catalog, model, hw, question);
  return question;
}

}  // namespace scalecalc::cli
