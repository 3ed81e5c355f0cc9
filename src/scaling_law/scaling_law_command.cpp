// Runs `scalecalc scaling-law`: reads its flags, asks its question and writes the answer.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/output_command.h"
#include "cost/workload.h"
#include "import/named_model.h"
#include "model/accounting.h"
#include "scaling_law/scaling.h"
#include "scaling_law/scaling_output.h"
#include "serve/serve_question.h"
#include "train/import_assumptions.h"

namespace scalecalc::cli {
namespace {

constexpr CountRange kLengthRange{1, 1'000'000'000};

constexpr std::array kScalingModes{Mode{"scaling-law without MODEL", "it is about a model, and none is named"},
                                   Mode{"scaling-law MODEL"}};
constexpr Modes kOfModels = 1U << 1U;
std::optional<std::size_t> scaling_mode(const Arguments& arguments) { return arguments.positionals().empty() ? 0 : 1; }

constexpr Flag of_serving(const Flag& flag) {
  return flag.needing("--inference-tokens", "{} is about serving, and nothing is to be served",
                      "add --inference-tokens 1T");
}
constexpr Flag of_hardware(const Flag& flag) {
  return flag.needing("--hw", "{} needs --hw: whose price and peak?",
                      "a catalog name such as h100-sxm, or a YAML file");
}
constexpr std::string_view kAim = "what is to be had";
constexpr std::string_view kShareOfPeak = "which share of the peak training reaches";
constexpr std::string_view kServingCost = "what serving costs";
constexpr std::string_view kServed = "give both: --prompt 2048 --generate 256";

constexpr std::array kScalingFlags{
    quantity<&ScalingQuestion::flops>("--flops", UnitKind::kNumber, "C", "training FLOPs to spend", "1e24")
        .saying(kAim),
    of_hardware(quantity<&ScalingQuestion::budget_usd>(
                    "--budget", UnitKind::kCount, "USD",
                    "dollars to spend instead; needs --hw and --mfu, or MODEL and --chips", "5M")
                    .saying(kAim)
                    .key("budget_usd")),
    quantity<&ScalingQuestion::loss>("--target-loss", UnitKind::kNumber, "L",
                                     "loss to reach instead, in nats per token", "2.0")
        .saying(kAim),
    text(
        "--law", "LAW",
        "scaling law: a catalog name or a YAML file (default chinchilla-besiroglu); all known ones are shown beside it",
        "chinchilla"),
    quantity("--tokens", UnitKind::kCount, "N", "training tokens of MODEL (default: as trained)", "15T").in(kOfModels),
    quantity<&ScalingQuestion::inference_tokens>("--inference-tokens", UnitKind::kCount, "N",
                                                 "tokens to be served over the model's life", "1T"),
    of_serving(toggle<&ScalingQuestion::lifetime_budget>("--lifetime", "--flops or --budget pays for serving them too")
                   .key("lifetime_budget")),
    kHwFlag.asking(""),
    of_hardware(count("--chips", kChipRange, "N", "use the MFU of the best plan of MODEL on N chips", "1024"))
        .in(kOfModels)
        .saying(kShareOfPeak),
    of_hardware(some_share("--mfu", "FLOPs of 6 N D over the peak of the chips", "40%")).saying(kShareOfPeak),
    of_hardware(precision_flag("whose peak: {} (default bf16)")),
    of_hardware(kPriceFlag).key("usd_per_chip_hour"),
    of_hardware(
        of_serving(some_share<&ScalingQuestion::serve_mfu>("--serve-mfu", "the same share when serving", "10%")))
        .saying(kServingCost),
    of_hardware(of_serving(quantity<&ScalingQuestion::serve_usd_per_million>(
                    "--serve-price", UnitKind::kUsdPerHour, "USD",
                    "dollars per million tokens of MODEL served, for other sizes in proportion", "0.6")))
        .in(kOfModels)
        .saying(kServingCost)
        .key("serve_usd_per_million_tokens"),
    of_hardware(of_serving(count("--prompt", kLengthRange, "N",
                                 "with --generate: take that price from the cheapest way to serve MODEL on --hw, over "
                                 "prompts and answers alike",
                                 "2048")))
        .needing("--generate", "{} needs --generate: how long is an answer?", kServed)
        .in(kOfModels)
        .excluding("--serve-mfu --serve-price", kServingCost),
    of_serving(count("--generate", kLengthRange, "N", "tokens of an answer", "256"))
        .needing("--prompt", "{} needs --prompt: how long is a prompt?", kServed)
        .in(kOfModels),
    kSetFlag,
    kAssumeFlag.in(kOfModels),
    kExplainFlag,
};

constexpr double kLeastFlops = 1e15;
constexpr double kMostFlops = 1e33;
/// Refuses what a power law says nothing about.
void check_aim(FlagReader& reader, const Arguments& arguments, const ScalingQuestion& q) {
  if (q.flops && (*q.flops < kLeastFlops || *q.flops > kMostFlops)) {
    reader.problem(fmt::format("--flops {} is out of range", in_quotes(*arguments.value("--flops"))),
                   "from 1e15 to 1e33");
  }
  if (!arguments.has("--flops") && !arguments.has("--budget") && !arguments.has("--target-loss") &&
      arguments.positionals().empty()) {
    reader.problem("--flops is missing: how much compute?",
                   fmt::format("or --budget, --target-loss or MODEL; {}", reader.example()));
  }
  if (arguments.positionals().size() > 1) {
    reader.problem(fmt::format("unexpected argument {}", in_quotes(arguments.positionals()[1])), reader.example());
  }
  if (q.lifetime_budget && !arguments.has("--flops") && !arguments.has("--budget")) {
    reader.problem("--lifetime says what a budget pays for, and there is none", "add --flops or --budget");
  }
}

/// Dollars need a chip and a share of its peak.
void check_peak(FlagReader& reader, const Arguments& arguments) {
  if (arguments.has("--hw") && !arguments.has("--mfu") && !arguments.has("--chips")) {
    reader.problem("--mfu is missing: which share of the peak does training reach?",
                   "--mfu 40%, or MODEL and --chips N for that of its best plan");
  }
  if (arguments.has("--set") && arguments.positionals().empty() && !arguments.has("--hw")) {
    reader.problem("--set changes a model or a chip, and none is named", "name a MODEL, or add --hw h100-sxm");
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
                   FlopsPerSecond peak, const Stop& stop) {
  TrainQuestion q{.model = arguments.positionals().front(),
                  .assume = arguments.value("--assume").value_or(""),
                  .hardware = *arguments.value("--hw"),
                  .chips = chips,
                  .precision = arguments.value("--precision"),
                  .top = 1,
                  .set = arguments.values("--set")};
  const TrainAnswer found = answer(q, catalog, stop);
  if (should_stop(stop)) throw Stopped();
  if (found.plans.empty()) {
    throw UserError(fmt::format("no layout of {} fits on {} chips", q.model, group_thousands(chips)),
                    "give --mfu, or more --chips; scalecalc train says what is short");
  }
  const double flops_per_s = 6 * parameters * found.plans.front().figures.tokens_per_s_per_chip;
  return flops_per_s / peak.value();
}

ComputePrice price_asked_for(const Arguments& arguments, const Catalog& catalog, const std::optional<double>& mfu,
                             const std::optional<std::int64_t>& chips, const std::optional<double>& price,
                             const std::optional<SizedModel>& model, const Stop& stop) {
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
  } else if (const Price* p = hw.default_price()) {
    out.usd_per_chip_hour = p->usd_per_chip_hour;
    out.price_source = fmt::format("{} {}, {}: {}", p->cloud, p->terms, p->date, p->source);
  } else {
    throw UserError(fmt::format("no price is published for {}", hw.title), "give --price 2.5, dollars per chip-hour");
  }
  out.mfu = mfu ? *mfu : planned_mfu(arguments, catalog, *chips, model->parameters, *peak, stop);
  out.mfu_source = mfu ? "command line"
                       : fmt::format("best plan of {} on {} chips (scalecalc train), 6 N alone",
                                     arguments.positionals().front(), group_thousands(*chips));
  return out;
}

/// The cheapest way to serve the model, in dollars per million tokens of prompts and answers together.
void price_by_serving(const Arguments& arguments, const Catalog& catalog, std::int64_t prompt, std::int64_t generate,
                      const Stop& stop, ScalingQuestion& q) {
  ServeQuestion asked{.model = arguments.positionals().front(),
                      .assume = arguments.value("--assume").value_or(""),
                      .hardware = {*arguments.value("--hw")},
                      .prompt = static_cast<double>(prompt),
                      .generate = static_cast<double>(generate),
                      .objective = ServeObjective::kCost,
                      .price = q.price->usd_per_chip_hour,
                      .set = arguments.values("--set")};
  const ServeAnswer found = serve_answer(asked, catalog, stop);
  if (should_stop(stop)) throw Stopped();
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

Output answer_scaling(const Arguments& arguments, const Catalog& catalog, const Stop& stop) {
  FlagReader reader(arguments);
  ScalingQuestion q{.serve_price_source = "command line"};
  reader.read(q);
  check_aim(reader, arguments, q);
  check_peak(reader, arguments);
  reader.word("--precision");
  const auto tokens = reader.quantity("--tokens");
  const auto mfu = reader.quantity("--mfu");
  const auto chips = reader.count("--chips");
  const auto price = reader.quantity("--price");
  const auto prompt = reader.count("--prompt");
  const auto generate = reader.count("--generate");
  reader.finish();

  q.law = load_law(catalog.load(CatalogKind::kLaw, arguments.value("--law").value_or(std::string(kUsualLaw))));
  for (const std::string& name : catalog.names(CatalogKind::kLaw)) {
    q.others.push_back(load_law(catalog.load(CatalogKind::kLaw, name)));
  }
  std::vector<Assumption> read;
  if (!arguments.positionals().empty()) q.model = sized(arguments, catalog, q.law, tokens, read);
  if (arguments.has("--hw")) q.price = price_asked_for(arguments, catalog, mfu, chips, price, q.model, stop);
  if (prompt) price_by_serving(arguments, catalog, *prompt, *generate, stop, q);
  Output out = scaling_output(q, answer(q));
  out.assumptions.insert(out.assumptions.end(), read.begin(), read.end());
  note_sets(arguments, out.assumptions);
  return with_query(std::move(out), arguments, {answered(q)});
}

ExitCode run_scaling_law(const Arguments& arguments, Environment& env) {
  return answer_with_output(
      arguments, env, [&](const Catalog& catalog) { return answer_scaling(arguments, catalog, env.interrupted); });
}

constexpr std::array kScalingLawCommon{
    FlagGroup{"the budget", "--flops --budget --target-loss --law --tokens --lifetime --inference-tokens"},
    FlagGroup{"the machine", "--hw --chips --mfu --price --set"}};

}  // namespace

const Command& scaling_law_command() {
  static const Command kScalingLaw{
      .name = "scaling-law",
      .summary = "Parameters and tokens for a budget, by published scaling laws, lifetime serving included.",
      .usage = "[MODEL] --flops C | --budget USD | --target-loss L [flags]",
      .examples =
          "  scalecalc scaling-law --flops 1e24\n"
          "  scalecalc scaling-law llama3-8b\n"
          "  scalecalc scaling-law --budget 5M --hw h100-sxm --mfu 40% --inference-tokens 1T\n",
      .flags = kScalingFlags,
      .run = run_scaling_law,
      .modes = kScalingModes,
      .mode_of = scaling_mode,
      .names = CatalogKind::kModel,
      .draws = "loss over parameters, and what each law would train",
      .figures = "parameters tokens tokens_per_parameter loss training_flops",
      .common = kScalingLawCommon};
  return kScalingLaw;
}

}  // namespace scalecalc::cli
