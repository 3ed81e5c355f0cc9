// Runs `scalecalc model MODEL`, which takes one model apart, and `scalecalc model list`, the catalog. Its action
// `design` is in design/design_command.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "cli/log.h"
#include "cli/output_command.h"
#include "cli/outputs.h"
#include "cli/session.h"
#include "cli/set_keys.h"
#include "config/yaml_writer.h"
#include "design/design_command.h"
#include "model/images.h"
#include "model_card/model_figures.h"
#include "model_card/model_output.h"
#include "spec/load.h"
#include "train/import_assumptions.h"

namespace scalecalc::cli {
namespace {

enum ModelMode : std::size_t { kOneModel, kModelList, kModelDesign, kModelDump, kModelKeys };
constexpr std::array kModelModes{
    Mode{.name = "model MODEL", .draws = "attention's share over the length of a sequence"}, Mode{"model list"},
    Mode{.name = "model design",
         .why = "the model is what is looked for",
         .example = "scalecalc model design --hw h100-sxm --chips 1024 --deadline 30d"},
    Mode{
        .name = "model MODEL --dump-yaml", .why = "the model's file is printed and nothing else", .has_outputs = false},
    Mode{"model MODEL --keys", "what --set takes is listed"}};

std::optional<std::size_t> model_mode(const Arguments& arguments) {
  const std::string first = arguments.positionals().empty() ? "" : arguments.positionals().front();
  if (first == "design") return kModelDesign;
  if (first == "list") return kModelList;
  if (arguments.has("--keys")) return kModelKeys;
  return arguments.has("--dump-yaml") ? kModelDump : kOneModel;
}

constexpr Modes kOfOne = 1U << kOneModel;
constexpr Modes kOfFiles = kOfOne | 1U << kModelDump | 1U << kModelKeys;
constexpr Modes kOfDesign = 1U << kModelDesign;

constexpr CountRange kTokenRange{1, 1'000'000'000'000'000};
constexpr std::array<std::string_view, 2> kAttentionNames{"causal", "full"};

constexpr std::array kModelFlags{
    count("--seq", kTokenRange, "N", "tokens of a sequence (default: as trained, else 8192)", "8192")
        .in(kOfOne | kOfDesign),
    text("--images", "NxHxW", "images in each sequence, of a model with a vision tower (default: none)", "2x1024x1024")
        .in(kOfOne),
    quantity("--batch-seqs", UnitKind::kNumber, "N",
             "sequences that FLOPs and kept tensors are counted for (default 1)", "8")
        .in(kOfOne)
        .saying("how large the batch is"),
    quantity("--batch-tokens", UnitKind::kCount, "N", "the same in tokens", "4M")
        .in(kOfOne | kOfDesign)
        .saying("how large the batch is"),
    sweep<&ModelQuestion::contexts>("--contexts", UnitKind::kCount, "RANGE",
                                    "sequence lengths of the attention table (default 1Ki, 4Ki.., longest)",
                                    "1Ki..1Mi*4")
        .in(kOfOne),
    word("--attention", kAttentionNames,
         "count scores over the causal half (default) or the whole square, as the book does")
        .when<0, &ModelQuestion::causal>()
        .in(kOfOne),
    dtype_flag<&ModelQuestion::weights>("--weights",
                                        "number format of the weights (default: as the checkpoint stores them)", "int8")
        .in(kOfOne),
    dtype_flag<&ModelQuestion::kv>("--kv", "number format of the KV cache (default: the checkpoint's, else bf16)",
                                   "int8")
        .in(kOfOne),
    dtype_flag<&ModelQuestion::activations>("--activations", "number format of kept activations (default bf16)")
        .in(kOfOne),
    text("--against", "MODEL|N", "compare the size with another model's, or with a count", "18.4B").in(kOfOne),
    kAssumeFlag.in(kOfFiles),
    toggle("--dump-yaml", "print the model as a scalecalc-model/1 file and nothing else")
        .in(1U << kModelDump)
        .of_output(),
    keys_flag().in(1U << kModelKeys),
    kSetFlag.in(kOfFiles | kOfDesign),
    kExplainFlag.in(kOfOne | kOfDesign),
};

constexpr const char* kModelExample = "for example: scalecalc model llama3-70b";

/// Ends with the longest sequence the model is published for.
std::vector<double> default_contexts(const ModelSpec& model) {
  std::vector<double> out;
  for (std::int64_t seq = 1024; seq < model.max_seq; seq *= 4) out.push_back(static_cast<double>(seq));
  out.push_back(static_cast<double>(model.max_seq));
  return out;
}

/// A count, or a model's as the book adds it up.
double size_of(const std::string& text, const Catalog& catalog) {
  const auto count = parse_quantity(text, UnitKind::kCount);
  if (const double* value = std::get_if<double>(&count); value != nullptr && *value > 0) return *value;
  const ModelSpec model = load_model(load_model_document(catalog, text).document);
  return model_figures(model, {.seq = 1}).book_total.value();
}

void choose_seq(const std::optional<std::int64_t>& asked, const ModelSpec& model, ModelQuestion& q,
                std::vector<Assumption>& assumptions) {
  constexpr std::int64_t kUsualSeq = 8192;
  const auto trained = model.training.seq;
  q.seq = static_cast<double>(asked.value_or(trained.value_or(std::min(model.max_seq, kUsualSeq))));
  const auto tokens = [](double count) { return group_thousands(static_cast<long long>(count)); };
  const auto longest = static_cast<double>(model.max_seq);
  if (q.seq > longest) {
    assumptions.push_back({fmt::format("sequences of {} are longer than the {} the model is published for",
                                       tokens(q.seq), tokens(longest)),
                           "--seq", "model file", true});
  }
  if (asked) return;
  assumptions.push_back(
      {fmt::format("sequences of {} tokens", tokens(q.seq)), "--seq",
       trained ? "as trained: " + model.training.source
               : "the model file says no training length; the model's longest, at most " + group_thousands(kUsualSeq),
       false});
}

/// As the checkpoint's engine keeps the cache, and `serve` counts it.
void choose_kv(const ModelSpec& model, ModelQuestion& q, std::vector<Assumption>& assumptions) {
  if (!model.attention.causal || !model.quantization || !model.quantization->kv) return;
  const WeightFormat stored = *model.quantization->kv;
  // Elements of mxfp8 and nvfp4 are fp8 and fp4.
  const auto* const element = std::find_if(kDTypeNames.begin(), kDTypeNames.end(),
                                           [&](std::string_view name) { return name_of(stored).ends_with(name); });
  if (element == kDTypeNames.end()) return;
  q.kv = static_cast<DType>(element - kDTypeNames.begin());
  q.kv_bytes = bits_of(stored) / 8;
  assumptions.push_back(
      Assumption{fmt::format("KV cache in {}", name_of(stored)), "--kv", model.quantization->source}.is(
          name_of(stored)));
}

ModelDocument document_asked_for(const Arguments& arguments, const Catalog& catalog) {
  const std::vector<std::string>& names = arguments.positionals();
  if (names.empty()) throw UserError("MODEL is missing: which model?", kModelExample);
  if (names.size() > 1) throw UserError(fmt::format("unexpected argument {}", in_quotes(names[1])), kModelExample);
  ModelDocument out = load_model_document(catalog, names.front(), arguments.value("--assume").value_or(""));
  apply_sets(arguments.values("--set"), {{"model", &out.document}});
  return out;
}

/// The catalog, or of it what has every word in its name, title or vendor.
Output model_list(const Arguments& arguments, const Catalog& catalog) {
  const std::vector<std::string> words(arguments.positionals().begin() + 1, arguments.positionals().end());
  std::vector<ModelSpec> models;
  for (const std::string& name : catalog.names(CatalogKind::kModel)) {
    ModelSpec model = load_model(catalog.load(CatalogKind::kModel, name));
    const std::string all = model.name + ' ' + model.title + ' ' + model.vendor;
    const bool asked =
        std::all_of(words.begin(), words.end(), [&](const std::string& w) { return contains_in_any_case(all, w); });
    if (asked) models.push_back(std::move(model));
  }
  if (models.empty()) {
    throw UserError(fmt::format("no model has {} in its name, title or vendor", join(words, " and ")),
                    "scalecalc model list shows all of them");
  }
  return with_query(model_list_output(models, words), arguments);
}

Output model_answer(const Arguments& arguments, const Catalog& catalog) {
  FlagReader reader(arguments);
  const auto seq = reader.count("--seq");
  const auto seqs = reader.quantity("--batch-seqs");
  const auto tokens = reader.quantity("--batch-tokens");
  ModelQuestion q;
  reader.read(q);
  reader.finish();

  const ModelDocument document = document_asked_for(arguments, catalog);
  ModelSpec model = load_model(document.document);
  std::vector<Assumption> assumptions;
  choose_seq(seq, model, q, assumptions);
  if (!arguments.has("--kv")) choose_kv(model, q, assumptions);
  at_length(model, q.seq);
  if (const auto typed = arguments.value("--images")) {
    const Images images = images_of(*typed);
    assumptions.push_back(
        {images_text(images, show_images(model, images, q.seq)), "--images", "docs/model.md [TOWERS]", false});
  }
  q.batch_seqs = tokens ? *tokens / q.seq : seqs.value_or(1);
  if (document.index) q.index_bytes = document.index->total_bytes;
  q.contexts_asked = !q.contexts.empty();
  if (q.contexts.empty()) q.contexts = default_contexts(model);
  if (const auto against = arguments.value("--against")) q.against = size_of(*against, catalog);
  const std::vector<Assumption> read = import_assumptions(document);
  assumptions.insert(assumptions.end(), read.begin(), read.end());
  Output out = model_output(model, q, model_figures(model, q));
  out.assumptions.insert(out.assumptions.begin(), assumptions.begin(), assumptions.end());
  note_sets(arguments, out.assumptions);
  return with_query(std::move(out), arguments, {answered(q)});
}

ExitCode run_model(const Arguments& arguments, Environment& env) {
  FlagReader(arguments).finish();  // flags of another mode
  const auto mode = model_mode(arguments);
  if (mode == kModelDesign) return run_model_design(arguments, env);
  if (mode == kModelDump) {
    const Session session = read_session(arguments, env);
    const Catalog catalog(session.config_directories, session.remembered);
    const ModelDocument document = document_asked_for(arguments, catalog);
    load_model(document.document);  // what is printed can be read again
    Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
    for (const Assumption& read : import_assumptions(document)) {
      if (read.warning) log.warning(read.text);
    }
    say_replaced(catalog, session, env);
    write_result(env.out, write_yaml(document.document));
    return ExitCode::kAnswered;
  }
  if (mode == kModelKeys) {
    return answer_with_output(arguments, env, [&](const Catalog& catalog) {
      const auto read = [](const ConfigNode& document, std::vector<AskedField>& asked) {
        load_model(document, &asked);
      };
      return with_query(set_keys_output("model", document_asked_for(arguments, catalog).document, read), arguments);
    });
  }
  return answer_with_output(arguments, env, [&](const Catalog& catalog) {
    return mode == kModelList ? model_list(arguments, catalog) : model_answer(arguments, catalog);
  });
}

std::span<const Flag> model_flags() {
  static const std::vector<Flag> kAll = composed({{kModelFlags}, {design_flags(), kOfDesign}});
  return kAll;
}

constexpr std::array kModelCommon{FlagGroup{"a model", "--seq --contexts --weights --kv --against --dump-yaml --set"},
                                  FlagGroup{"model design", "--hw --chips --deadline --budget --tokens --write"}};

}  // namespace

const Command& model_command() {
  static const Command kModel{
      .name = "model",
      .summary = "A model taken apart: parameters, FLOPs, attention, KV cache; or the largest one for a machine.",
      .usage = "MODEL [flags] | list [WORD...] | design --hw HW --chips N --deadline TIME",
      .examples =
          "  scalecalc model llama3-70b --seq 8192\n"
          "  scalecalc model deepseek-v3 --kv fp8 --json\n"
          "  scalecalc model llama3-70b --keys\n"
          "  scalecalc model list\n"
          "  scalecalc model design --hw h100-sxm --chips 1024 --deadline 30d\n",
      .flags = model_flags(),
      .run = run_model,
      .modes = kModelModes,
      .mode_of = model_mode,
      .names = CatalogKind::kModel,
      .figures = "part parameters share",
      .common = kModelCommon};
  return kModel;
}

}  // namespace scalecalc::cli
