// `scalecalc scaling-law`: flags to a question about parameters and tokens, the answer to the outputs asked for.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/sheet_command.h"
#include "cli/train_options.h"
#include "cost/workload.h"
#include "import/named_model.h"
#include "model/accounting.h"
#include "report/scaling_sheet.h"
#include "scaling_law/scaling.h"
#include "serve/serve_question.h"
#include "train/import_assumptions.h"

namespace scalecalc::cli {
namespace {

constexpr std::string_view kUsualLaw = "chinchilla-besiroglu";

constexpr std::array kFlags{
    Flag{"--flops", 0, FlagKind::kValue, "C", "training FLOPs to spend", "1e24"},
    Flag{"--budget", 0, FlagKind::kValue, "USD", "dollars to spend instead; needs --hw and --mfu, or MODEL and --chips",
         "5M"},
    Flag{"--target-loss", 0, FlagKind::kValue, "L", "loss to reach instead, in nats per token", "2.0"},
    Flag{
        "--law", 0, FlagKind::kValue, "LAW",
        "scaling law: a catalog name or a YAML file (default chinchilla-besiroglu); all known ones are shown beside it",
        "chinchilla"},
    Flag{"--tokens", 0, FlagKind::kValue, "N", "training tokens of MODEL (default: as trained)", "15T"},
    Flag{"--inference-tokens", 0, FlagKind::kValue, "N", "tokens to be served over the model's life", "1T"},
    Flag{"--lifetime", 0, FlagKind::kSwitch, "", "--flops or --budget pays for serving them too", ""},
    kHwFlag,
    Flag{"--chips", 0, FlagKind::kValue, "N", "take the MFU from the best plan of MODEL on so many chips", "1024"},
    Flag{"--mfu", 0, FlagKind::kValue, "SHARE", "FLOPs of 6 N D over the peak of the chips", "40%"},
    Flag{"--precision", 0, FlagKind::kValue, "NAME", "whose peak: bf16 (default), fp16, fp8, nvfp4, int8, tf32 or fp32",
         "bf16"},
    Flag{"--price", 0, FlagKind::kValue, "USD", "dollars per chip and hour (default: the hardware file's first)",
         "2.5"},
    Flag{"--serve-mfu", 0, FlagKind::kValue, "SHARE", "the same share when serving", "10%"},
    Flag{"--serve-price", 0, FlagKind::kValue, "USD",
         "dollars per million tokens of MODEL served, for other sizes in proportion", "0.6"},
    Flag{
        "--prompt", 0, FlagKind::kValue, "N",
        "with --generate: take that price from the cheapest way to serve MODEL on --hw, over prompts and answers alike",
        "2048"},
    Flag{"--generate", 0, FlagKind::kValue, "N", "tokens of an answer", "256"},
    kSetFlag,
    kAssumeFlag,
    kExplainFlag,
};

constexpr std::string_view kExamples =
    "  scalecalc scaling-law --flops 1e24\n"
    "  scalecalc scaling-law llama3-8b\n"
    "  scalecalc scaling-law --budget 5M --hw h100-sxm --mfu 40% --inference-tokens 1T\n";

constexpr const char* kExample = "for example: scalecalc scaling-law --flops 1e24";

constexpr double kLeastFlops = 1e15;
constexpr double kMostFlops = 1e33;
constexpr CountRange kLengthRange{1, 1'000'000'000};

/// Refuses what a power law says nothing about.
void read_budget(FlagReader& reader, const Arguments& arguments, ScalingQuestion& q) {
  q.flops = reader.positive("--flops", UnitKind::kNumber);
  if (q.flops && (*q.flops < kLeastFlops || *q.flops > kMostFlops)) {
    reader.problem(fmt::format("--flops {} is out of range", in_quotes(*arguments.value("--flops"))),
                   "from 1e15 to 1e33");
  }
  q.budget_usd = reader.positive("--budget", UnitKind::kCount);
  q.loss = reader.positive("--target-loss", UnitKind::kNumber);
  std::vector<std::string> given;
  for (const char* flag : {"--flops", "--budget", "--target-loss"}) {
    if (arguments.has(flag)) given.emplace_back(flag);
  }
  if (given.size() > 1) reader.problem(join_and(given) + " each say what is to be had", "keep one of them");
  if (given.empty() && arguments.positionals().empty()) {
    reader.problem("--flops is missing: how much compute?",
                   fmt::format("or --budget, --target-loss or MODEL; {}", kExample));
  }
  if (arguments.positionals().size() > 1) {
    reader.problem(fmt::format("unexpected argument {}", in_quotes(arguments.positionals()[1])), kExample);
  }
}

void read_serving(FlagReader& reader, const Arguments& arguments, ScalingQuestion& q) {
  q.inference_tokens = reader.positive("--inference-tokens", UnitKind::kCount).value_or(0);
  q.lifetime_budget = arguments.has("--lifetime");
  q.serve_mfu = reader.fraction("--serve-mfu");
  q.serve_usd_per_million = reader.positive("--serve-price", UnitKind::kUsdPerHour);
  const bool model = !arguments.positionals().empty();
  const auto needs_tokens = [&](const char* flag) {
    if (!arguments.has(flag) || arguments.has("--inference-tokens")) return;
    reader.problem(fmt::format("{} is about serving, and nothing is to be served", flag), "add --inference-tokens 1T");
  };
  for (const char* flag : {"--lifetime", "--serve-mfu", "--serve-price", "--prompt", "--generate"}) needs_tokens(flag);
  if (q.lifetime_budget && !arguments.has("--flops") && !arguments.has("--budget")) {
    reader.problem("--lifetime says what a budget pays for, and there is none", "add --flops or --budget");
  }
  const bool engine = arguments.has("--prompt") || arguments.has("--generate");
  if (arguments.has("--serve-mfu") + arguments.has("--serve-price") + engine > 1) {
    reader.problem("--serve-mfu, --serve-price and --prompt with --generate each say what serving costs",
                   "keep one of them");
  }
  if (engine && arguments.has("--prompt") != arguments.has("--generate")) {
    reader.problem("--prompt and --generate say together what is served", "give both: --prompt 2048 --generate 256");
  }
  if (q.serve_mfu && *q.serve_mfu <= 0) reader.problem("--serve-mfu must be above zero");
  if ((q.serve_usd_per_million || engine) && !model) {
    reader.problem(fmt::format("{} is about a model, and none is named", engine ? "--prompt" : "--serve-price"),
                   "name the MODEL that the price is of");
  }
  q.serve_price_source = "command line";
}

/// Dollars need a chip and a share of its peak; so does a serving cost that is not counted in FLOPs.
void check_price_flags(FlagReader& reader, const Arguments& arguments) {
  constexpr std::array kNeedHw{"--budget", "--serve-price", "--serve-mfu", "--mfu", "--chips", "--price", "--prompt"};
  const bool needs_hw =
      std::any_of(kNeedHw.begin(), kNeedHw.end(), [&](const char* flag) { return arguments.has(flag); });
  if (needs_hw && !arguments.has("--hw")) {
    reader.problem("--hw is missing: whose price and peak?", "a catalog name such as h100-sxm, or a YAML file");
  }
  if (!arguments.has("--hw")) return;
  if (arguments.has("--mfu") && arguments.has("--chips")) {
    reader.problem("--mfu and --chips both say which share of the peak training reaches", "keep one of them");
  } else if (!arguments.has("--mfu") && !arguments.has("--chips")) {
    reader.problem("--mfu is missing: which share of the peak does training reach?",
                   "--mfu 40%, or MODEL and --chips N for that of its best plan");
  } else if (arguments.has("--chips") && arguments.positionals().empty()) {
    reader.problem("--chips asks for the best plan of a model, and none is named", "name a MODEL, or give --mfu");
  }
}

/// --set without those for the other document, if there is one; else they are refused where they are applied.
std::vector<std::string> sets_for(const Arguments& arguments, std::string_view others, bool has_other) {
  std::vector<std::string> out = arguments.values("--set");
  if (has_other) std::erase_if(out, [&](const std::string& set) { return set.starts_with(others); });
  return out;
}

SizedModel sized(const Arguments& arguments, const Catalog& catalog, const ScalingLaw& law,
                 const std::optional<double>& tokens, std::vector<Assumption>& read) {
  ModelDocument document =
      load_model_document(catalog, arguments.positionals().front(), arguments.value("--assume").value_or(""));
  apply_sets(sets_for(arguments, "hw.", arguments.has("--hw")), {{"model", &document.document}});
  const ModelSpec model = load_model(document.document);
  read = import_assumptions(document);
  const ParameterCount count = count_parameters(model);
  SizedModel out{.name = model.name, .title = model.title, .moe = model.moe.has_value()};
  out.parameters = law.counts_embeddings ? count.active : count.active - count.embedding - count.head;
  out.counted = std::string(out.moe ? "active" : "all") + (law.counts_embeddings ? "" : " but the embeddings");
  const std::optional<double> known = tokens ? tokens : model.training.tokens;
  if (!known) {
    throw UserError(fmt::format("{} does not say how many tokens it was trained on", model.name), "add --tokens 1T");
  }
  out.tokens = *known;
  out.tokens_source = tokens ? "--tokens" : "as trained: " + model.training.source;
  return out;
}

/// The share of the peak that 6 N D is in the best plan, N being what the law counts.
double planned_mfu(const Arguments& arguments, const Catalog& catalog, std::int64_t chips, double parameters,
                   FlopsPerSecond peak) {
  TrainQuestion q{.model = arguments.positionals().front(),
                  .assume = arguments.value("--assume").value_or(""),
                  .hardware = *arguments.value("--hw"),
                  .chips = chips,
                  .precision = arguments.value("--precision"),
                  .top = 1,
                  .set = arguments.values("--set")};
  const TrainAnswer found = answer(q, catalog);
  if (found.plans.empty()) {
    throw UserError(fmt::format("no layout of {} fits on {} chips", q.model, group_thousands(chips)),
                    "give --mfu, or more --chips; scalecalc train says what is short");
  }
  const double flops_per_s = 6 * parameters * found.plans.front().figures.tokens_per_s_per_chip;
  return flops_per_s / peak.value();
}

ComputePrice price_asked_for(const Arguments& arguments, const Catalog& catalog, const std::optional<double>& mfu,
                             const std::optional<std::int64_t>& chips, const std::optional<double>& price,
                             const std::optional<SizedModel>& model) {
  const std::vector<std::string> sets = sets_for(arguments, "model.", !arguments.positionals().empty());
  ConfigNode document = catalog.load(CatalogKind::kHardware, *arguments.value("--hw"));
  apply_sets(sets, {{"hw", &document}});
  const HardwareSpec hw = load_hardware(document, catalog, Unpublished::kAllowed);
  require_published(hw, {"compute.matmul"});
  const Precision precision = precision_of(arguments.value("--precision").value_or("bf16"));
  const auto peak = hw.matmul_peak[static_cast<std::size_t>(precision.compute)];
  if (!peak) throw UserError(fmt::format("{} publishes no rate for {}", hw.name, precision.name), "give --precision");
  ComputePrice out{.hardware = hw.title, .precision = precision.name, .peak = *peak, .peak_source = hw.compute_source};
  if (price) {
    out.usd_per_chip_hour = *price;
    out.price_source = "command line";
  } else if (!hw.prices.empty()) {
    const Price& p = hw.prices.front();
    out.usd_per_chip_hour = p.usd_per_chip_hour;
    out.price_source = fmt::format("{} {}, {}: {}", p.cloud, p.terms, p.date, p.source);
  } else {
    throw UserError(fmt::format("no price is published for {}", hw.title), "give --price 2.5, dollars per chip-hour");
  }
  out.mfu = mfu ? *mfu : planned_mfu(arguments, catalog, *chips, model->parameters, *peak);
  out.mfu_source = mfu ? "command line"
                       : fmt::format("best plan of {} on {} chips (scalecalc train), 6 N alone",
                                     arguments.positionals().front(), group_thousands(*chips));
  return out;
}

/// The cheapest way to serve the model, in dollars per million tokens of prompts and answers together.
void price_by_serving(const Arguments& arguments, const Catalog& catalog, std::int64_t prompt, std::int64_t generate,
                      ScalingQuestion& q) {
  ServeQuestion asked{.model = arguments.positionals().front(),
                      .assume = arguments.value("--assume").value_or(""),
                      .hardware = {*arguments.value("--hw")},
                      .prompt = static_cast<double>(prompt),
                      .generate = static_cast<double>(generate),
                      .objective = ServeObjective::kCost,
                      .price = q.price->usd_per_chip_hour,
                      .set = arguments.values("--set")};
  const ServeAnswer found = serve_answer(asked, catalog);
  if (!found.best) {
    throw UserError(fmt::format("{} is not served on {} alone", q.model->name, q.price->hardware),
                    "give --serve-price; scalecalc serve says what is short");
  }
  const ServePoint& p = *found.best;
  const double usd_per_s = static_cast<double>(p.chips) * q.price->usd_per_chip_hour / 3600;
  q.serve_usd_per_million = 1e6 * usd_per_s / (p.requests_per_s * (asked.prompt + asked.generate));
  q.serve_price_source = fmt::format("cheapest of scalecalc serve: {} sequences on {}, prompts of {}, answers of {}",
                                     group_thousands(static_cast<long long>(p.batch)),
                                     p.chips == 1 ? "one chip" : fmt::format("{} chips", p.chips),
                                     group_thousands(prompt), group_thousands(generate));
}

Sheet answer_scaling(const Arguments& arguments, const Catalog& catalog) {
  FlagReader reader(arguments);
  ScalingQuestion q;
  read_budget(reader, arguments, q);
  const auto tokens = reader.positive("--tokens", UnitKind::kCount);
  if (tokens && arguments.positionals().empty()) reader.problem("--tokens are a model's, and none is named");
  read_serving(reader, arguments, q);
  check_price_flags(reader, arguments);
  const auto mfu = reader.fraction("--mfu");
  if (mfu && *mfu <= 0) reader.problem("--mfu must be above zero");
  const auto chips = reader.count("--chips", kChipRange);
  const auto price = reader.positive("--price", UnitKind::kUsdPerHour);
  const auto prompt = reader.count("--prompt", kLengthRange);
  const auto generate = reader.count("--generate", kLengthRange);
  reader.finish();

  q.law = load_law(catalog.load(CatalogKind::kLaw, arguments.value("--law").value_or(std::string(kUsualLaw))));
  for (const std::string& name : catalog.names(CatalogKind::kLaw)) {
    q.others.push_back(load_law(catalog.load(CatalogKind::kLaw, name)));
  }
  std::vector<Assumption> read;
  if (!arguments.positionals().empty()) q.model = sized(arguments, catalog, q.law, tokens, read);
  if (arguments.has("--hw")) q.price = price_asked_for(arguments, catalog, mfu, chips, price, q.model);
  if (prompt) price_by_serving(arguments, catalog, *prompt, *generate, q);
  Sheet out = scaling_sheet(q, answer(q));
  out.assumptions.insert(out.assumptions.end(), read.begin(), read.end());
  note_sets(arguments, out.assumptions);
  return out;
}

ExitCode run_scaling_law(const Arguments& arguments, Environment& env) {
  return answer_with_sheet(arguments, env, [&](const Catalog& catalog) { return answer_scaling(arguments, catalog); });
}

}  // namespace

const Command& scaling_law_command() {
  static const Command kScalingLaw{
      "scaling-law",
      "Parameters and tokens for a budget, by published scaling laws, lifetime serving included.",
      "[MODEL] --flops C | --budget USD | --target-loss L [flags]",
      kExamples,
      "",
      kFlags,
      run_scaling_law};
  return kScalingLaw;
}

}  // namespace scalecalc::cli
