// `scalecalc model MODEL`: one model taken apart. `scalecalc model list`: the catalog. `scalecalc model design`: see
// model_design.h.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/log.h"
#include "cli/model_design.h"
#include "cli/outputs.h"
#include "cli/session.h"
#include "cli/sheet_command.h"
#include "config/yaml_writer.h"
#include "primitives/model_figures.h"
#include "report/model_sheet.h"
#include "spec/load.h"
#include "train/import_assumptions.h"

namespace scalecalc::cli {
namespace {

constexpr std::array kFlags{
    Flag{"--seq", 0, FlagKind::kValue, "N", "tokens of a sequence (default: as trained, else 8192)", "8192"},
    Flag{"--batch-seqs", 0, FlagKind::kValue, "N", "sequences that FLOPs and kept tensors are counted for (default 1)",
         "8"},
    Flag{"--batch-tokens", 0, FlagKind::kValue, "N", "the same in tokens", "4M"},
    Flag{"--contexts", 0, FlagKind::kValue, "RANGE",
         "sequence lengths of the attention table (default 1Ki, 4Ki.., longest)", "1Ki..1Mi*4"},
    Flag{"--attention", 0, FlagKind::kValue, "causal|full",
         "count scores over the causal half (default) or the whole square, as the book does", "full"},
    Flag{"--weights", 0, FlagKind::kValue, "DTYPE", "number format of the weights (default bf16)", "int8"},
    Flag{"--kv", 0, FlagKind::kValue, "DTYPE", "number format of the KV cache (default bf16)", "int8"},
    Flag{"--activations", 0, FlagKind::kValue, "DTYPE", "number format of kept activations (default bf16)", "bf16"},
    Flag{"--against", 0, FlagKind::kValue, "MODEL|N", "compare the size with another model's, or with a count",
         "18.4B"},
    kAssumeFlag,
    Flag{"--dump-yaml", 0, FlagKind::kSwitch, "", "print the model as a scalecalc-model/1 file and nothing else", ""},
    kSetFlag,
    kExplainFlag,
};

constexpr std::string_view kExamples =
    "  scalecalc model llama3-70b --seq 8192\n"
    "  scalecalc model deepseek-v3 --kv fp8 --json\n"
    "  scalecalc model list\n"
    "  scalecalc model design --hw h100-sxm --chips 1024 --deadline 30d\n";

constexpr const char* kExample = "for example: scalecalc model llama3-70b";

DType dtype_flag(FlagReader& reader, std::string_view flag) {
  const auto at = reader.word(flag, kDTypeNames);
  return at ? static_cast<DType>(*at) : DType::kBf16;
}

/// Ends with the longest sequence the model is published for.
std::vector<double> default_contexts(const ModelSpec& model) {
  std::vector<double> out;
  const auto longest = static_cast<double>(model.max_seq);
  for (double seq = 1024; seq < longest; seq *= 4) out.push_back(seq);
  out.push_back(longest);
  return out;
}

/// A count, or a model's as the book adds it up.
double size_of(const std::string& text, const Catalog& catalog) {
  const auto count = parse_quantity(text, UnitKind::kCount);
  if (const double* value = std::get_if<double>(&count); value != nullptr && *value > 0) return *value;
  const ModelSpec model = load_model(load_model_document(catalog, text).document);
  return model_figures(model, {.seq = 1}).book_total.value();
}

void settle_seq(const std::optional<std::int64_t>& asked, const ModelSpec& model, ModelQuestion& q,
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

ModelDocument document_asked_for(const Arguments& arguments, const Catalog& catalog) {
  const std::vector<std::string>& names = arguments.positionals();
  if (names.empty()) throw UserError("MODEL is missing: which model?", kExample);
  if (names.size() > 1) throw UserError(fmt::format("unexpected argument {}", in_quotes(names[1])), kExample);
  ModelDocument out = load_model_document(catalog, names.front(), arguments.value("--assume").value_or(""));
  apply_sets(arguments.values("--set"), {{"model", &out.document}});
  return out;
}

bool contains(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

/// The catalog, or of it what has every word in its name, title or vendor.
Sheet list(const Arguments& arguments, const Catalog& catalog) {
  const std::vector<std::string> words(arguments.positionals().begin() + 1, arguments.positionals().end());
  std::vector<ModelSpec> models;
  for (const std::string& name : catalog.names(CatalogKind::kModel)) {
    ModelSpec model = load_model(catalog.load(CatalogKind::kModel, name));
    const std::string all = model.name + ' ' + model.title + ' ' + model.vendor;
    const bool asked = std::all_of(words.begin(), words.end(), [&](const std::string& w) { return contains(all, w); });
    if (asked) models.push_back(std::move(model));
  }
  if (models.empty()) {
    throw UserError(fmt::format("no model has {} in its name, title or vendor", join(words, " and ")),
                    "scalecalc model list shows all of them");
  }
  return model_list_sheet(models, words);
}

Sheet answer(const Arguments& arguments, const Catalog& catalog) {
  FlagReader reader(arguments);
  constexpr CountRange kTokens{1, 1'000'000'000'000'000};
  const auto seq = reader.count("--seq", kTokens);
  const auto seqs = reader.positive("--batch-seqs", UnitKind::kNumber);
  const auto tokens = reader.positive("--batch-tokens", UnitKind::kCount);
  if (seqs && tokens) reader.problem("--batch-seqs and --batch-tokens both give the batch", "keep one of them");
  constexpr std::array<std::string_view, 2> kAttention{"causal", "full"};
  ModelQuestion q;
  q.causal = reader.word("--attention", kAttention).value_or(0) == 0;
  q.weights = dtype_flag(reader, "--weights");
  q.kv = dtype_flag(reader, "--kv");
  q.activations = dtype_flag(reader, "--activations");
  const auto contexts = sweep_flag(reader, arguments, "--contexts", UnitKind::kCount);
  reader.finish();

  const ModelDocument document = document_asked_for(arguments, catalog);
  const ModelSpec model = load_model(document.document);
  std::vector<Assumption> assumptions;
  settle_seq(seq, model, q, assumptions);
  q.batch_seqs = tokens ? *tokens / q.seq : seqs.value_or(1);
  q.contexts = contexts.value_or(default_contexts(model));
  if (const auto against = arguments.value("--against")) q.against = size_of(*against, catalog);
  const std::vector<Assumption> read = import_assumptions(document);
  assumptions.insert(assumptions.end(), read.begin(), read.end());
  Sheet out = model_sheet(model, q, model_figures(model, q));
  out.assumptions.insert(out.assumptions.begin(), assumptions.begin(), assumptions.end());
  note_sets(arguments, out.assumptions);
  return out;
}

/// Flags that both `model MODEL` and `model design` have.
constexpr std::array<std::string_view, 4> kShared{"--seq", "--batch-tokens", "--set", "--explain"};

/// UserError for flags of the other action.
void check_flags(const Arguments& arguments, bool design) {
  FlagReader reader(arguments);
  const std::span<const Flag> others = design ? std::span<const Flag>(kFlags) : design_flags();
  for (const Flag& flag : others) {
    if (!arguments.has(flag.name) || std::find(kShared.begin(), kShared.end(), flag.name) != kShared.end()) continue;
    reader.problem(fmt::format("{} has no meaning for model {}", flag.name, design ? "design" : "MODEL"),
                   fmt::format("it belongs to model {}", design ? "MODEL" : "design"));
  }
  reader.finish();
}

ExitCode run_model(const Arguments& arguments, Environment& env) {
  const bool design = !arguments.positionals().empty() && arguments.positionals().front() == "design";
  check_flags(arguments, design);
  if (design) return run_model_design(arguments, env);
  if (arguments.has("--dump-yaml")) {
    const Session session = read_session(arguments, env);
    const Catalog catalog(session.config_directories, session.remembered);
    const ModelDocument document = document_asked_for(arguments, catalog);
    load_model(document.document);  // what is printed can be read again
    Log log(env.err, session.verbosity, wants_colour(env, session.color, env.err_is_tty));
    for (const Assumption& read : import_assumptions(document)) {
      if (read.warning) log.warning(read.text);
    }
    write_result(env.out, write_yaml(document.document));
    return ExitCode::kAnswered;
  }
  const bool all = !arguments.positionals().empty() && arguments.positionals().front() == "list";
  return answer_with_sheet(arguments, env, [&](const Catalog& catalog) {
    return all ? list(arguments, catalog) : answer(arguments, catalog);
  });
}

}  // namespace

namespace {

std::span<const Flag> all_flags() {
  static const std::vector<Flag> kAll = [] {
    std::vector<Flag> out(kFlags.begin(), kFlags.end());
    out.insert(out.end(), design_flags().begin(), design_flags().end());
    return out;
  }();
  return kAll;
}

}  // namespace

const Command& model_command() {
  static const Command kModel{
      "model",
      "A model taken apart: parameters, FLOPs, attention, KV cache; or the largest one for a machine.",
      "MODEL [flags] | list [WORD...] | design --hw HW --chips N --deadline TIME",
      kExamples,
      "",
      all_flags(),
      run_model};
  return kModel;
}

}  // namespace scalecalc::cli
