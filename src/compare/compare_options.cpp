// Defines the flags of `scalecalc compare`, those of train and serve included, and reads its questions.
#include "compare/compare_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/comma_list.h"
#include "cli/flag_reader.h"
#include "compare/systems_options.h"
#include "config/catalog.h"
#include "economics/run_options.h"
#include "serve/serve_options.h"
#include "train/train_options.h"

namespace scalecalc::cli {
namespace {

/// What both comparisons have.
struct CompareShared {
  std::vector<SystemAsked> systems;
  PriceFilter prices;
  std::optional<RankBy> rank_by;
  std::vector<Expectation> expect;
};

constexpr std::array kCompareModes{
    Mode{"compare without --serve"},
    Mode{.name = "compare --serve", .example = "scalecalc compare llama3-70b --serve --hw h100-sxm,tpu-v6e --chips 8"}};
constexpr Modes kOfTrainCompare = 1U << 0U;
constexpr Modes kOfServeCompare = 1U << 1U;

void read_expectation(FlagReader& reader, const Flag&, const std::string& text, CompareShared& q) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos) return;  // a file, as of every command
  if (equals + 1 == text.size()) {
    return reader.problem(fmt::format("--expect: {} is not WHAT=SYSTEM", in_quotes(text)),
                          "for example --expect cheapest=tpu-v5p");
  }
  const auto key = reader.word_of("a word of --expect", text.substr(0, equals), kExpectedKeyNames);
  if (key) q.expect.push_back({static_cast<ExpectedKey>(*key), text.substr(equals + 1)});
}

void read_budget(FlagReader& reader, const Flag&, const std::string& text, TrainCompareQuestion& q) {
  const auto parsed = parse_quantity(text.starts_with('$') ? text.substr(1) : text, UnitKind::kCount);
  const double* usd = std::get_if<double>(&parsed);
  if (usd != nullptr && *usd > 0) {
    q.budget_usd = *usd;
    return;
  }
  const UnitError* error = std::get_if<UnitError>(&parsed);
  reader.problem(error ? "--budget: " + error->message : fmt::format("--budget {} is no money", in_quotes(text)),
                 "whole dollars such as 5M, 250k or 1200000");
}

constexpr std::array kCompareFlags{
    text("--hw", "SYSTEMS",
         "systems with commas between: NAME, or NAME:CHIPS, NAME:SLICESxCHIPS, NAME@CLOUD, NAME@CLOUD/KIND",
         "h100-sxm:1024,tpu-v5p@GCP/spot")
        .asking("which systems are compared?")
        .key("hardware"),
    count<&TrainCompareQuestion::chips>(
        "--chips", kChipRange, "N",
        "chips of each system that names none; with --deadline or --budget the most to look at", "1024")
        .in(kOfTrainCompare),
    quantity<&TrainCompareQuestion::deadline_s>("--deadline", UnitKind::kSeconds, "TIME",
                                                "the fewest chips of each system that finish the run by then", "30d")
        .in(kOfTrainCompare),
    text("--budget", "USD",
         "the fastest run of each system that costs no more; with --deadline, the fewest chips inside both", "5M")
        .by<read_budget>()
        .shown<&TrainCompareQuestion::budget_usd>()
        .key("budget_usd")
        .in(kOfTrainCompare),
    text("--price", "[NAME=]USD",
         "dollars per chip and hour, of all systems or of one (default: the hardware file's first)", "h100-sxm=2.5")
        .repeatable()
        .key("price_usd_per_chip_hour"),
    text("--cloud", "NAMES", "take the prices of these clouds; several, or all: a row for each", "GCP,AWS")
        .shown<&PriceFilter::clouds>()
        .key("clouds"),
    text("--price-kind", "KINDS",
         "on-demand, spot, capacity-block, reserved-1y ...: those the hardware files have; several, or all: a row for "
         "each",
         "on-demand,spot")
        .shown<&PriceFilter::kinds>()
        .key("price_kinds"),
    text("--price-date", "DATE", "only prices of that time: 2025, 2025-06, 2024-Q4 or 2024-2025", "2025-02"),
    toggle<&TrainCompareQuestion::equal_time>(
        "--equal-time", "search the fewest chips of each system that finish as soon as the first system")
        .in(kOfTrainCompare),
    word<&CompareShared::rank_by>("--rank", kRankByNames,
                                  "the order of the rows (default: time; with --deadline and --serve cost)")
        .key("ranked_by"),
    text("--expect", "WHAT=SYSTEM|FILE",
         "exit 1 unless the system is what one expects: cheapest, fastest, least-energy or possible; or unless the "
         "answer is what a file of names of -o row says",
         "cheapest=tpu-v5p")
        .repeatable()
        .by<read_expectation>(),
    toggle("--serve", "compare serving instead of training: dollars per million output tokens under the same limits")
        .key("task"),
    kExplainFlag,
};

/// Our own, then those of train and serve that ask for no one machine, plan or load. Where both have a flag there are
/// two, unless they read the same.
std::vector<Flag> make_compare_flags() {
  std::vector<Flag> out(kCompareFlags.begin(), kCompareFlags.end());
  for (const Flag& flag :
       flags_but(train_flags(), {"--hw", "--chips", "--topology", "--slices", "--price", "--why-not", "--from",
                                 "--objective", "--top", "--tie", "--plan", "--variants", "--pareto", "--explain"})) {
    out.push_back(flag.in(kOfTrainCompare));
  }
  const std::size_t own = out.size();
  for (const Flag& flag : flags_but(
           serve_flags(), {"--hw", "--trace", "--rate", "--routing", "--prefix-store", "--simulate", "--concurrency",
                           "--tenant", "--requests", "--length-ratio", "--seed", "--prefill-hw", "--carbon", "--price",
                           "--top", "--explain", "--stream-interval", "--receive-interval"})) {
    const auto same = std::find_if(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(own),
                                   [&](const Flag& f) { return f.name == flag.name && f.store == flag.store; });
    if (same < out.begin() + static_cast<std::ptrdiff_t>(own)) {
      same->modes = kAllModes;
    } else {
      out.push_back(flag.in(kOfServeCompare));
    }
  }
  return out;
}

/// Each system asks for the model again, and the prices for the hardware.
void refuse_standard_input(FlagReader& reader, const Arguments& arguments, const std::vector<SystemAsked>& systems) {
  const std::vector<std::string>& names = arguments.positionals();
  const bool any = std::find(names.begin(), names.end(), "-") != names.end() ||
                   std::any_of(systems.begin(), systems.end(), [](const SystemAsked& s) { return s.hardware == "-"; });
  if (any) reader.problem("a comparison reads its files several times, and standard input is read once", "name a file");
}

/// "llama3-70b,llama3-8b": each model on every system. `model` is the first then.
void share_out(FlagReader& reader, std::string& model, std::vector<SystemAsked>& systems) {
  if (is_catalog_path(model) || model.find(',') == std::string::npos) return;
  const std::vector<std::string> models = comma_parts(model);
  std::vector<SystemAsked> out;
  for (const std::string& each : models) {
    if (each.empty() || std::count(models.begin(), models.end(), each) > 1) {
      return reader.problem(
          fmt::format("{}: each of several models is named once, with commas between", in_quotes(model)),
          "for example llama3-70b,llama3-8b");
    }
    for (SystemAsked system : systems) {
      system.model = each;
      out.push_back(std::move(system));
    }
  }
  model = models.front();
  systems = std::move(out);
}

/// That --hw is missing has been said if it is.
std::string first_of(const std::vector<SystemAsked>& systems) {
  return systems.empty() ? std::string() : systems.front().hardware;
}

template <class Question>
void share_with(Question& out, const CompareShared& shared) {
  out.systems = shared.systems;
  out.prices = shared.prices;
  out.rank_by = shared.rank_by;
  out.expect = shared.expect;
}

TrainCompareQuestion train_comparison(FlagReader& reader, const Arguments& arguments, const CompareShared& shared) {
  TrainCompareQuestion out{.train = read_train_job(reader, arguments)};
  out.train.hardware = first_of(shared.systems);
  out.train.chips = 1;
  out.train.run = read_run_question(reader, arguments);
  reader.read(out);
  const bool sized = std::all_of(shared.systems.begin(), shared.systems.end(),
                                 [](const SystemAsked& s) { return s.chips.has_value(); });
  if (!sized && !arguments.has("--chips") && !arguments.has("--deadline") && !arguments.has("--budget")) {
    reader.problem("--chips is missing: on how many chips?",
                   "--chips 1024 for all, NAME:1024 in --hw for one; or --deadline 30d finds the fewest");
  }
  if (sized && arguments.has("--chips") && !arguments.has("--deadline") && !arguments.has("--budget")) {
    reader.problem("--chips has no meaning: every system of --hw says its own",
                   "leave it out, or NAME in place of NAME:N");
  }
  share_with(out, shared);
  share_out(reader, out.train.model, out.systems);
  return out;
}

ServeCompareQuestion serve_comparison(FlagReader& reader, const Arguments& arguments, const CompareShared& shared) {
  ServeCompareQuestion out{.serve = read_serve_question(reader, arguments).question};
  out.serve.hardware = {first_of(shared.systems)};
  if (!arguments.has("--objective")) out.serve.objective = ServeObjective::kCost;
  if (arguments.has("--chips") && std::all_of(shared.systems.begin(), shared.systems.end(),
                                              [](const SystemAsked& s) { return s.chips.has_value(); })) {
    reader.problem("--chips has no meaning: every system of --hw says its own",
                   "leave it out, or NAME in place of NAME:N");
  }
  if (arguments.has("--mfu") && !arguments.has("--slo-ttft") && !arguments.has("--slo-request")) {
    reader.problem("--mfu has no meaning: it is of the prefill, which this comparison does not show",
                   "add what the prefill may take: --slo-ttft 500ms");
  }
  for (const SystemAsked& s : shared.systems) {
    if (s.slices > 1) {
      reader.problem(fmt::format("--hw {}: a model server runs on one slice", s.hardware), "NAME:CHIPS");
    }
  }
  share_with(out, shared);
  share_out(reader, out.serve.model, out.systems);
  return out;
}

}  // namespace

std::span<const Flag> compare_flags() {
  static const std::vector<Flag> kAll = make_compare_flags();
  return kAll;
}

std::span<const Mode> compare_modes() { return kCompareModes; }

std::optional<std::size_t> compare_mode(const Arguments& arguments) { return arguments.has("--serve") ? 1 : 0; }

CompareAsked compare_asked(const Arguments& arguments) {
  FlagReader reader(arguments);
  CompareShared shared{.systems = compared_systems(reader, arguments), .prices = price_filter(reader, arguments)};
  reader.read(shared);
  refuse_standard_input(reader, arguments, shared.systems);
  CompareAsked out;
  if (arguments.has("--serve")) {
    out.serve = serve_comparison(reader, arguments, shared);
  } else {
    out.train = train_comparison(reader, arguments, shared);
  }
  reader.finish();
  return out;
}

}  // namespace scalecalc::cli
