#include "cli/compare_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/compared_systems.h"
#include "cli/flag_reader.h"
#include "cli/run_options.h"
#include "cli/serve_options.h"
#include "cli/sheet_command.h"
#include "cli/train_options.h"

namespace scalecalc::cli {
namespace {

constexpr std::array kOwnFlags{
    Flag{"--hw", 0, FlagKind::kValue, "SYSTEMS",
         "systems with commas between: NAME, or NAME:CHIPS, NAME:SLICESxCHIPS, NAME@CLOUD, NAME@CLOUD/KIND",
         "h100-sxm:1024,tpu-v5p@GCP/spot"},
    Flag{"--chips", 0, FlagKind::kValue, "N",
         "chips of each system that names none; with --deadline or --budget the most to look at", "1024"},
    Flag{"--deadline", 0, FlagKind::kValue, "TIME", "the fewest chips of each system that finish the run by then",
         "30d"},
    Flag{"--budget", 0, FlagKind::kValue, "USD",
         "the fastest run of each system that costs no more; with --deadline, the fewest chips inside both", "5M"},
    Flag{"--price", 0, FlagKind::kRepeatable, "[NAME=]USD",
         "dollars per chip and hour, of all systems or of one (default: the hardware file's first)", "h100-sxm=2.5"},
    Flag{"--cloud", 0, FlagKind::kValue, "NAMES", "take the prices of these clouds; several, or all: a row for each",
         "GCP,AWS"},
    Flag{"--price-kind", 0, FlagKind::kValue, "KINDS",
         "on-demand, spot, capacity-block, reserved-1y ...: those the hardware files have; several, or all: a row for "
         "each",
         "on-demand,spot"},
    Flag{"--price-date", 0, FlagKind::kValue, "DATE", "only prices of that time: 2025, 2025-06, 2024-Q4 or 2024-2025",
         "2025-02"},
    Flag{"--equal-time", 0, FlagKind::kSwitch, "",
         "search the fewest chips of each system that finish as soon as the first system", ""},
    Flag{"--rank", 0, FlagKind::kValue, "time|cost",
         "the order of the rows (default: time; with --deadline and --serve cost)", "cost"},
    Flag{"--expect", 0, FlagKind::kRepeatable, "WHAT=SYSTEM",
         "exit 1 unless the system is what one expects: cheapest, fastest, least-energy or possible",
         "cheapest=tpu-v5p"},
    Flag{"--serve", 0, FlagKind::kSwitch, "",
         "compare serving instead of training: dollars per million output tokens under the same limits", ""},
    kExplainFlag,
};

// Flags that ask for one machine, one plan or one system's load, or whose word is ours.
constexpr std::array<std::string_view, 12> kNotOfTrain{"--hw",    "--chips",    "--topology", "--slices",
                                                       "--price", "--why-not",  "--from",     "--objective",
                                                       "--top",   "--variants", "--pareto",   "--explain"};
constexpr std::array<std::string_view, 10> kNotOfServe{"--hw",   "--chips",      "--trace", "--rate", "--simulate",
                                                       "--seed", "--prefill-hw", "--price", "--top",  "--explain"};

template <class Names>
bool among(const Names& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool has_flag(const std::vector<Flag>& flags, std::string_view name) {
  return std::any_of(flags.begin(), flags.end(), [&](const Flag& flag) { return flag.name == name; });
}

/// The flags of train or serve that a comparison takes too.
template <class Names>
std::vector<Flag> taken(std::span<const Flag> flags, const Names& left_out) {
  std::vector<Flag> out;
  std::copy_if(flags.begin(), flags.end(), std::back_inserter(out),
               [&](const Flag& flag) { return !among(left_out, flag.name); });
  return out;
}

const std::vector<Flag>& train_part() {
  static const std::vector<Flag> kFlags = taken(train_flags(), kNotOfTrain);
  return kFlags;
}
const std::vector<Flag>& serve_part() {
  static const std::vector<Flag> kFlags = taken(serve_flags(), kNotOfServe);
  return kFlags;
}

/// The arguments as train or serve would have got them.
Arguments part_of(const Arguments& arguments, const std::vector<Flag>& flags, Arguments::Values values) {
  for (const Flag& flag : flags) {
    if (arguments.has(flag.name)) values[std::string(flag.name)] = arguments.values(flag.name);
  }
  return Arguments::of(arguments.positionals(), std::move(values));
}

class CompareOptions {
 public:
  explicit CompareOptions(const Arguments& arguments) : arguments_(arguments), reader_(arguments) {}

  CompareAsked run() {
    const bool serving = arguments_.has("--serve");
    systems_ = compared_systems(reader_, arguments_);
    prices_ = price_filter(reader_, arguments_);
    if (const auto word = reader_.word("--rank", kRankByNames)) rank_by_ = static_cast<RankBy>(*word);
    expectations();
    stray_flags(serving);
    standard_input();
    CompareAsked out;
    if (serving) {
      out.serve = serve();
    } else {
      out.train = train();
    }
    reader_.finish();
    return out;
  }

 private:
  void expectations() {
    for (const std::string& text : arguments_.values("--expect")) {
      const std::size_t equals = text.find('=');
      if (equals == std::string::npos || equals + 1 == text.size()) {
        reader_.problem(fmt::format("--expect: {} is not WHAT=SYSTEM", in_quotes(text)),
                        "for example --expect cheapest=tpu-v5p");
        continue;
      }
      const auto key = reader_.word_of("a word of --expect", text.substr(0, equals), kExpectedKeyNames);
      if (key) expect_.push_back({static_cast<ExpectedKey>(*key), text.substr(equals + 1)});
    }
  }

  /// Each system asks for the model again, and the prices for the hardware.
  void standard_input() {
    const std::vector<std::string>& names = arguments_.positionals();
    const bool any =
        std::find(names.begin(), names.end(), "-") != names.end() ||
        std::any_of(systems_.begin(), systems_.end(), [](const SystemAsked& s) { return s.hardware == "-"; });
    if (any)
      reader_.problem("a comparison reads its files several times, and standard input is read once", "name a file");
  }

  /// Flags of the other task.
  void stray_flags(bool serving) {
    const std::vector<Flag>& own = serving ? serve_part() : train_part();
    for (const Flag& flag : serving ? train_part() : serve_part()) {
      if (!arguments_.has(flag.name) || has_flag(own, flag.name)) continue;
      reader_.problem(fmt::format("{} says how a model is {}", flag.name, serving ? "trained" : "served"),
                      serving ? "leave --serve out, or the flag" : "add --serve");
    }
    if (!serving) return;
    for (const std::string_view flag : {"--deadline", "--budget", "--equal-time"}) {
      if (arguments_.has(flag)) reader_.problem(fmt::format("{} is of a training run", flag), "leave --serve out");
    }
  }

  /// What train's or serve's own reader finds wrong is found wrong here.
  template <class Read>
  void with_problems(const Read& read) {
    try {
      read();
    } catch (const UserError& error) {
      reader_.problems(error.diagnostics());
    }
  }

  /// That --hw is missing has been said if it is.
  Arguments::Values first_system() const {
    return {{"--hw", {systems_.empty() ? std::string() : systems_.front().hardware}}};
  }

  TrainCompareQuestion train() {
    TrainCompareQuestion out;
    Arguments::Values values = first_system();
    values["--chips"] = {"1"};
    const Arguments part = part_of(arguments_, train_part(), std::move(values));
    with_problems([&] {
      FlagReader reader(part);
      out.train = read_train_question(reader, part, "compare");
      out.train.run = read_run_question(reader, part);
      reader.finish();
    });
    out.chips = reader_.count("--chips", kChipRange);
    out.deadline_s = reader_.positive("--deadline", UnitKind::kSeconds);
    out.budget_usd = budget();
    out.equal_time = arguments_.has("--equal-time");
    const bool sized =
        std::all_of(systems_.begin(), systems_.end(), [](const SystemAsked& s) { return s.chips.has_value(); });
    if (!sized && !arguments_.has("--chips") && !arguments_.has("--deadline") && !arguments_.has("--budget")) {
      reader_.problem("--chips is missing: on how many chips?",
                      "--chips 1024 for all, NAME:1024 in --hw for one; or --deadline 30d finds the fewest");
    }
    share(out);
    return out;
  }

  std::optional<double> budget() {
    std::optional<std::string> text = arguments_.value("--budget");
    if (!text) return std::nullopt;
    if (text->starts_with('$')) text->erase(0, 1);
    const auto parsed = parse_quantity(*text, UnitKind::kCount);
    const double* usd = std::get_if<double>(&parsed);
    if (usd != nullptr && *usd > 0) return *usd;
    const UnitError* error = std::get_if<UnitError>(&parsed);
    reader_.problem(error ? "--budget: " + error->message : fmt::format("--budget {} is no money", in_quotes(*text)),
                    "whole dollars such as 5M, 250k or 1200000");
    return std::nullopt;
  }

  ServeCompareQuestion serve() {
    ServeCompareQuestion out;
    if (arguments_.positionals().size() != 1) {
      reader_.problem(arguments_.positionals().empty() ? "MODEL is missing: which model is to be served?"
                                                       : "compare takes one MODEL",
                      "for example: scalecalc compare llama3-70b --serve --hw h100-sxm,tpu-v6e --chips 8");
    } else if (!systems_.empty()) {
      Arguments::Values values = first_system();
      values["--objective"] = {"cost"};
      if (arguments_.has("--chips")) values["--chips"] = arguments_.values("--chips");
      const Arguments part = part_of(arguments_, serve_part(), std::move(values));
      with_problems([&] { out.serve = serve_asked(part).question; });
    }
    for (const SystemAsked& s : systems_) {
      if (s.slices > 1) {
        reader_.problem(fmt::format("--hw {}: a model server runs on one slice", s.hardware), "NAME:CHIPS");
      }
    }
    share(out);
    return out;
  }

  template <class Question>
  void share(Question& out) const {
    out.systems = systems_;
    out.prices = prices_;
    out.rank_by = rank_by_;
    out.expect = expect_;
  }

  const Arguments& arguments_;
  FlagReader reader_;
  std::vector<SystemAsked> systems_;
  PriceFilter prices_;
  std::optional<RankBy> rank_by_;
  std::vector<Expectation> expect_;
};

}  // namespace

std::span<const Flag> compare_flags() {
  static const std::vector<Flag> kFlags = [] {
    std::vector<Flag> out(kOwnFlags.begin(), kOwnFlags.end());
    for (const std::vector<Flag>* part : {&train_part(), &serve_part()}) {
      for (const Flag& flag : *part) {
        if (!has_flag(out, flag.name)) out.push_back(flag);
      }
    }
    return out;
  }();
  return kFlags;
}

CompareAsked compare_asked(const Arguments& arguments) { return CompareOptions(arguments).run(); }

}  // namespace scalecalc::cli
