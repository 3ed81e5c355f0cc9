// Defines the flags of `scalecalc bounds` and reads them into its question, for training and for serving.
#include "bounds/bounds_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/output_command.h"
#include "import/named_model.h"
#include "model/accounting.h"
#include "model/usual_stack.h"
#include "plan/layout_options.h"
#include "spec/load.h"
#include "spec/load_stack.h"
#include "spec/usual_format.h"
#include "train/import_assumptions.h"

namespace scalecalc::cli {
namespace {

constexpr std::array<std::string_view, 3> kScopeNames{"training", "serving", "both"};
constexpr std::string_view kBoundsDraw = "tokens/s and the decode step over the batch";
constexpr std::array kBoundsModes{Mode{"bounds --for training"},
                                  Mode{.name = "bounds --for serving", .draws = kBoundsDraw},
                                  Mode{.name = "bounds --for both", .draws = kBoundsDraw}};
constexpr Modes kOfTrainingRules = 1U << 0U | 1U << 2U;
constexpr Modes kOfServingRules = 1U << 1U | 1U << 2U;

constexpr CountRange kPodRange{1, 1024};
constexpr CountRange kAxesRange{1, 6};
constexpr CountRange kDraftRange{1, 1000};
constexpr std::array<std::string_view, 4> kPolicyNames{"all", "matmuls", "mlp", "block"};

void read_parameters(FlagReader& reader, const Flag& flag, const std::string& text, BoundsQuestion& q) {
  if (q.parameters) {
    reader.problem("--params and MODEL both give the parameters", "give one of them");
  } else if (text == "stated") {
    q.stated_parameters = true;
  } else {
    q.parameters = reader.quantity(flag);
  }
}

void read_bounds_topology(FlagReader& reader, const Flag& flag, const std::string& text, BoundsQuestion& q) {
  const Shape& shape = q.topology.emplace(parse_shape(text));
  double chips = static_cast<double>(q.slices);
  for (const std::int64_t axis : shape) chips *= static_cast<double>(axis);
  if (!shape.empty() && chips <= static_cast<double>(kMostChips)) return;
  reader.problem(
      fmt::format("{}: {} is not a shape of at most {} chips", flag.name, in_quotes(text), group_thousands(kMostChips)),
      fmt::format("axis sizes with x between them, such as {}", flag.example));
}

void read_checkpoints(FlagReader& reader, const Flag& flag, const std::string& text, BoundTraining& job) {
  const auto count = parse_quantity(text, UnitKind::kNumber);
  if (const double* number = std::get_if<double>(&count)) {
    if (*number > 0 && *number <= 1000) {
      job.checkpoints = {CheckpointPolicy::Kind::kCount, *number};
    } else {
      reader.problem(fmt::format("{} {} is out of range", flag.name, in_quotes(text)), "a number from 1 to 1000");
    }
  } else if (const auto word = reader.word(flag)) {
    job.checkpoints = {static_cast<CheckpointPolicy::Kind>(*word), 0};
  }
}

constexpr std::string_view kStepSize = "how large a step is";

constexpr std::array kBoundsFlags{
    kHwFlag,
    word<&BoundsQuestion::scope>("--for", kScopeNames, "which rules (default both)"),
    quantity("--params", UnitKind::kCount, "N|stated",
             "parameters in place of the exact count: a number, or the vendor's rounded figure", "70B")
        .by<read_parameters>()
        .key("parameters"),
    quantity<&BoundsQuestion::active_parameters>("--active-params", UnitKind::kCount, "N",
                                                 "the same of those one token uses", "37B")
        .key("active_parameters"),
    count<&BoundsQuestion::chips>("--chips", kChipRange, "N", "chips, of all slices together", "8960"),
    // Before --topology, whose chips it multiplies.
    count<&BoundsQuestion::slices>("--slices", kChipRange, "K", "slices joined by the outer network (default 1)", "4"),
    text("--topology", "AxBxC", "shape of each slice, in place of --chips", "16x20x28").by<read_bounds_topology>(),
    count<&BoundsQuestion::pods>("--pods", kPodRange, "K", "that many whole pods, in place of --chips and --slices",
                                 "4")
        .excluding("--chips --topology --slices", "which chips"),
    count<&BoundsQuestion::tensor_axes>(
        "--my", kAxesRange, "N",
        "torus axes that carry tensor parallelism, M_Y (default 1), of training and of prefill; the limits of decode "
        "are those of one axis",
        "1"),
    text("--fix", "KEY=N,...",
         "degrees to judge: dp, fsdp, tp, cp, pp, ep (experts on chips of their own), ga (microbatches of a step)",
         "tp=8,pp=16")
        .repeatable(),
    some_share<&BoundTraining::mfu>("--mfu", "model FLOPs utilization of the run planned and of prefill (default 40%)",
                                    "40%"),
    kPriceFlag.to<&BoundTraining::price>(),
    dtype_flag<&BoundsQuestion::compute>(
        "--precision", "format the matmuls compute in (default bf16; fp16 or wider on chips without it)"),
    dtype_flag<&BoundsQuestion::weights>("--weights", "format weights are held and sent in (default: --precision)",
                                         "int8"),
    dtype_flag<&BoundsQuestion::activations>("--activations",
                                             "format activations are kept and sent in (default: --precision)"),
    efficiency_flag(
        "ideal (default): data-sheet rates, as the book; calibrated: times the hardware file's efficiencies")
        .when<0, &BoundsQuestion::ideal>(),
};

constexpr std::array kBoundsTrainingFlags{
    text("--versus", "HW", "how the limits differ from those of other hardware", "book/h100"),
    count<&BoundsQuestion::data_axes>(
        "--mx", kAxesRange, "N",
        "torus axes that carry data parallelism, M_X (default: all, or all but M_Y beside tensor parallelism)", "2"),
    count<&BoundsQuestion::nodes_spanned>("--nodes-spanned", kChipRange, "N",
                                          "nodes that one copy of the model covers (default: as --fix says)", "8"),
    count<&BoundTraining::seq>("--seq", kSequenceRange, "N", "tokens of a sequence (default: as the model was trained)",
                               "8192"),
    quantity<&BoundTraining::batch_tokens>("--batch-tokens", UnitKind::kCount, "N",
                                           "tokens of a training step (default: as the model was trained)", "4M")
        .saying(kStepSize),
    quantity<&BoundTraining::batch_seqs>("--batch-seqs", UnitKind::kCount, "N", "the same in sequences", "1024")
        .saying(kStepSize),
    quantity<&BoundTraining::tokens>("--tokens", UnitKind::kCount, "N",
                                     "tokens of the training run (default: as the model was trained)", "15T"),
    quantity<&BoundTraining::gpu_hours>("--gpu-hours", UnitKind::kCount, "N", "chip-hours of a finished run: its MFU",
                                        "2.79M"),
    dtype_flag<&BoundsQuestion::gradients>("--gradients", "format gradients are reduced in (default: --precision)",
                                           "fp32"),
    optimizer_flag<&BoundTraining::optimizer>("{} (default: as the model was trained, else adam)"),
    word("--checkpoints", kPolicyNames,
         "activations kept for the backward pass: a policy, or N tensors of d_model a layer (default 4)")
        .called("all|matmuls|mlp|block|N")
        .by<read_checkpoints>(),
};

constexpr std::array kBoundsServingFlags{
    sweep<&BoundServing::batches>("--batch", UnitKind::kCount, "N",
                                  "sequences decoded together; several draw a curve: 1..512, 32,64", "32"),
    quantity<&BoundServing::context>("--context", UnitKind::kCount, "N",
                                     "tokens of each sequence in the KV cache (default: --prompt + --generate)",
                                     "8192"),
    quantity<&BoundServing::prompt>("--prompt", UnitKind::kCount, "N", "tokens of a prompt", "8192"),
    quantity<&BoundServing::generate>("--generate", UnitKind::kCount, "N", "tokens of an answer", "512"),
    quantity<&BoundServing::cached>("--cached", UnitKind::kCount, "N", "tokens of the prompt found in the prefix cache",
                                    "4096")
        .saying("how much of the prompt is cached")
        .needing("--prompt", "{} needs --prompt: cached tokens of a prompt of how many?", "for example: --prompt 8192"),
    share<&BoundServing::prefix_hit>("--prefix-hit", "the same as a share of the prompt", "60%")
        .saying("how much of the prompt is cached"),
    dtype_flag<&BoundServing::compute>("--flops", "format the matmuls of serving compute in (default: --precision)",
                                       "int8"),
    dtype_flag<&BoundServing::kv>("--kv", "format of the KV cache (default: that of the activations)", "int8"),
    quantity<&BoundServing::latency>("--slo-tpot", UnitKind::kSeconds, "TIME", "time a decode step may take", "15ms"),
    text("--speculative", "k=N,accept=SHARE,...",
         "speculative decoding: k drafted tokens, the share of them kept, and draft=MODEL or cost=SHARE, the time of a "
         "draft step in steps of the model",
         "draft=llama3-8b,k=4,accept=0.7"),
    quantity<&BoundServing::weight_bytes>("--weight-bytes", UnitKind::kBytes, "BYTES",
                                          "bytes of all weights, in place of parameters x format", "26GB"),
    quantity<&BoundServing::kv_bytes_per_token>("--kv-bytes-per-token", UnitKind::kBytes, "BYTES",
                                                "KV cache of one token, in place of the model's", "100kB"),
    quantity<&BoundServing::total_bytes>("--total-bytes", UnitKind::kBytes, "BYTES",
                                         "weights and KV cache of the batch, in place of their sum", "112GB"),
    quantity<&BoundServing::step_time>("--step-time", UnitKind::kSeconds, "TIME",
                                       "decode step, in place of the one derived", "19ms"),
    quantity<&BoundServing::prefill_time>("--prefill-time", UnitKind::kSeconds, "TIME",
                                          "time of one prompt, in place of the one derived", "0.91s"),
};

constexpr std::array kBoundsFileFlags{
    kAssumeFlag,
    kSetFlag,
    kExplainFlag,
};

/// Of MODEL a catalog name or a file; empty if it is a bare size such as 70B, or if none is named.
std::string read_bounds_model(FlagReader& reader, const Arguments& arguments, BoundsQuestion& q) {
  if (arguments.positionals().empty()) return "";
  const std::string name = reader.only_word("MODEL", "a catalog name, a file, or a parameter count such as 70B");
  const auto count = parse_quantity(name, UnitKind::kCount);
  const double* size = std::get_if<double>(&count);
  if (size == nullptr) return name;
  if (*size <= 0) reader.problem("a model of no parameters", reader.example());
  q.parameters = *size;
  return "";
}

/// Of the dimensions a plan has, those the rules of thumb know.
void read_bounds_degrees(FlagReader& reader, const Arguments& arguments, BoundsQuestion& q) {
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

/// What the model or the hardware has nothing of.
void refuse_absent(FlagReader& reader, const Arguments& arguments, const BoundsQuestion& q) {
  const auto refuse = [&](bool without, std::string_view flag, const std::string& why, const std::string& hint) {
    if (without && arguments.has(flag)) reader.problem(fmt::format("{} has no meaning: {}", flag, why), hint);
  };
  const std::string shapeless = "a size alone has no layers";
  const std::string named = "name a MODEL, such as llama3-70b";
  refuse(!q.model && !arguments.has("--batch-seqs") && !arguments.has("--batch-tokens"), "--seq", shapeless, named);
  const bool unsized = !q.model && !q.parameters;
  for (const std::string_view flag : {"--tokens",
                                      "--gpu-hours",
                                      "--optimizer",
                                      "--batch",
                                      "--prompt",
                                      "--prefix-hit",
                                      "--cached",
                                      "--generate",
                                      "--slo-tpot",
                                      "--speculative",
                                      "--weight-bytes",
                                      "--total-bytes",
                                      "--step-time",
                                      "--prefill-time",
                                      "--active-params",
                                      "--kv",
                                      "--kv-bytes-per-token",
                                      "--params",
                                      "--activations",
                                      "--mfu"}) {
    refuse(unsized, flag, "no model is named, nor its size", "name a MODEL, such as llama3-70b or 70B");
  }
  refuse(!q.model, "--checkpoints", shapeless, named);
  refuse(!q.model && !arguments.has("--kv-bytes-per-token"), "--context", shapeless, named);
  refuse(q.hw.is_torus(), "--nodes-spanned", fmt::format("{} has no nodes, only slices", q.hw.name), "leave it out");
  refuse(!q.hw.is_torus() && q.slices > 1, "--slices", fmt::format("{} is not built in slices", q.hw.name),
         "say how many chips there are: --chips");
  const auto any = [&](std::initializer_list<std::string_view> flags) {
    return std::any_of(flags.begin(), flags.end(), [&](std::string_view flag) { return arguments.has(flag); });
  };
  const bool chips = any({"--chips", "--topology", "--pods"});
  const bool batch = any({"--batch-tokens", "--batch-seqs"});
  const bool run = q.model || (arguments.has("--tokens") ? chips || batch : chips && batch);
  const bool trains = bounds_mode(arguments) != 1U;
  refuse(!(trains && run) && !arguments.has("--prompt"), "--mfu", "no run is planned and no prompt is read",
         "--prompt 8192 asks how long one takes");
  reader.finish();
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
  if (!model.empty()) q.model = load_model(model_document.document);
  if (!q.ideal) {
    q.stack = q.model ? usual_stack(q.hw, *q.model, usual_seq(*q.model)) : q.hw.efficiency.stack;
    q.memory = stack_memory(catalog, stack_of_framework(catalog, q.stack).value_or(""));
  }
  if (const auto other = arguments.value("--versus")) {
    q.versus = load_hardware(catalog.load(CatalogKind::kHardware, *other), catalog, Unpublished::kAllowed);
  }
}

constexpr const char* kSpeculativeExample = "for example: --speculative draft=llama3-8b,k=4,accept=0.7";
/// Parameters of the draft: a catalog name, a file, or a size such as 1B.
double draft_parameters(const std::string& name, const Catalog& catalog) {
  const auto size = parse_quantity(name, UnitKind::kCount);
  if (const double* count = std::get_if<double>(&size); count != nullptr && *count > 0) return *count;
  return count_parameters(load_model(load_model_document(catalog, name).document)).total;
}

class SpeculationReader {
 public:
  SpeculationReader(FlagReader& reader, const Catalog& catalog) : reader_(reader), catalog_(catalog) {}

  std::optional<BoundSpeculation> read(const std::string& text) {
    for (const std::string& part : comma_parts(text)) item(part);
    const auto given = [&](std::string_view key) { return std::find(seen_.begin(), seen_.end(), key) != seen_.end(); };
    if (!given("k") || !given("accept")) {
      reader_.problem("--speculative needs k= and accept=: how many tokens are drafted and how many of them kept",
                      kSpeculativeExample);
    }
    if (given("draft") && given("cost")) {
      reader_.problem("draft= and cost= of --speculative both say what a draft step takes", "give one of them");
    }
    return out_;
  }

 private:
  void item(const std::string& text) {
    const std::size_t equals = text.find('=');
    const std::string key = text.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : text.substr(equals + 1);
    constexpr std::array<std::string_view, 4> kKeys{"k", "accept", "cost", "draft"};
    if (value.empty()) {
      reader_.problem(fmt::format("--speculative: {} is not KEY=VALUE", in_quotes(text)), kSpeculativeExample);
    } else if (!reader_.word_of("a key of --speculative", key, kKeys)) {
      return;
    } else if (std::find(seen_.begin(), seen_.end(), key) != seen_.end()) {
      reader_.problem(fmt::format("--speculative gives {} twice", in_quotes(key)));
    } else if (key == "k") {
      out_.drafted = reader_.count_of("--speculative k", value, kDraftRange).value_or(1);
    } else if (key == "draft") {
      out_.draft_parameters = draft_parameters(value, catalog_);
    } else {
      share(key, value);
    }
    seen_.push_back(key);
  }

  void share(const std::string& key, const std::string& value) {
    const auto parsed = reader_.quantity_of(fmt::format("--speculative {}", key), value, UnitKind::kFraction);
    if (!parsed) return;
    key == "accept" ? out_.accept = *parsed : out_.cost.emplace(*parsed);
  }

  FlagReader& reader_;
  const Catalog& catalog_;
  BoundSpeculation out_;
  std::vector<std::string> seen_;
};

}  // namespace

std::span<const Flag> bounds_flags() {
  static const std::vector<Flag> kAll = composed({{kBoundsFlags},
                                                  {kBoundsTrainingFlags, kOfTrainingRules},
                                                  {kBoundsServingFlags, kOfServingRules, "serving."},
                                                  {kBoundsFileFlags}});
  return kAll;
}

std::span<const Mode> bounds_modes() { return kBoundsModes; }

std::optional<std::size_t> bounds_mode(const Arguments& arguments) {
  const std::string scope = arguments.value("--for").value_or("both");
  const auto at = std::find(kScopeNames.begin(), kScopeNames.end(), scope);
  if (at == kScopeNames.end()) return std::nullopt;
  return static_cast<std::size_t>(at - kScopeNames.begin());
}

BoundServing read_bounds_serving(FlagReader& reader, const Catalog& catalog) {
  BoundServing out;
  reader.read(out);
  if (const std::string text = reader.text("--speculative"); !text.empty()) {
    out.speculation = SpeculationReader(reader, catalog).read(text);
  }
  if (out.total_bytes && out.batches.size() > 1) {
    reader.problem("--total-bytes holds for one batch, and --batch gives several", "give one --batch");
  }
  return out;
}

BoundsQuestion bounds_question(const Arguments& arguments, const Catalog& catalog) {
  FlagReader reader(arguments);
  BoundsQuestion question;
  const std::string model = read_bounds_model(reader, arguments, question);
  const std::string hw = reader.text("--hw");
  if (model == "-" && hw == "-") {
    reader.problem("the model and the hardware cannot both be standard input", "name a file for one of them");
  }
  if (arguments.has("--assume") && model.empty()) {
    reader.problem("--assume says how to read a config.json, and MODEL is none", "leave it out");
  }
  reader.read(question);
  reader.read(question.training);
  read_bounds_degrees(reader, arguments, question);
  question.serving = read_bounds_serving(reader, catalog);
  reader.finish();
  load_files(arguments, catalog, model, hw, question);
  if (!arguments.has("--precision")) question.compute = usual_format(question.hw).value_or(question.compute);
  refuse_absent(reader, arguments, question);
  return question;
}

}  // namespace scalecalc::cli
