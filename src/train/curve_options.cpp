// Reads --chips as a range and --pareto, for train and the commands that take its flags.
#include "train/curve_options.h"

#include <fmt/format.h>

#include <array>
#include <set>

#include "base/sweep.h"
#include "base/text.h"
#include "train/train_options.h"

namespace scalecalc::cli {
namespace {

constexpr std::size_t kMostCounts = 1000;  // each is a search of its own

bool has_sweep(const Arguments& arguments) {
  const auto chips = arguments.value("--chips");
  return chips && is_sweep(*chips);
}

}  // namespace

bool is_sweep(std::string_view chips) {
  if (chips.find("..") != std::string_view::npos) return true;
  std::size_t comma = chips.find(',');
  if (comma == std::string_view::npos) return false;
  // Nobody writes a count with a leading zero, but 1,024 is a number.
  for (; comma != std::string_view::npos; comma = chips.find(',', comma + 1)) {
    if (chips.substr(comma + 1).starts_with('0')) return false;
  }
  return true;
}

std::vector<std::int64_t> chip_counts(FlagReader& reader, std::string_view text, CountRange range) {
  const auto parsed = parse_sweep(text, UnitKind::kCount);
  if (const UnitError* error = std::get_if<UnitError>(&parsed)) {
    reader.problem("--chips: " + error->message, error->hint);
    return {};
  }
  std::set<std::int64_t> counts;
  for (const double value : std::get<std::vector<double>>(parsed)) {
    if (value < static_cast<double>(range.least) || value > static_cast<double>(range.most)) {
      reader.problem(fmt::format("--chips {}: {:.15g} is out of range", in_quotes(text), value),
                     fmt::format("whole numbers from {} to {}", range.least, group_thousands(range.most)));
      return {};
    }
    counts.insert(static_cast<std::int64_t>(value));
  }
  if (counts.size() > kMostCounts) {
    reader.problem(fmt::format("--chips {} has {} counts, and {} are answered at once", in_quotes(text),
                               group_thousands(static_cast<long long>(counts.size())),
                               group_thousands(static_cast<long long>(kMostCounts))),
                   "a larger step, such as *2");
    return {};
  }
  return {counts.begin(), counts.end()};
}

std::span<const Mode> train_modes() {
  static constexpr std::array kTrainModes{
      Mode{.name = "one count of --chips without --pareto",
           .draws = "steps of the plans, and time and memory of the best part by part"},
      Mode{.name = "a range of --chips",
           .why = "the fastest plan of each count is shown",
           .draws = "throughput over chips"},
      Mode{.name = "--pareto", .why = "the whole front is shown", .draws = "time against cost"}};
  return kTrainModes;
}

std::optional<std::size_t> train_mode(const Arguments& arguments) {
  const TrainMode mode = has_sweep(arguments)        ? TrainMode::kCurve
                         : arguments.has("--pareto") ? TrainMode::kFront
                                                     : TrainMode::kRanking;
  return static_cast<std::size_t>(mode);
}

void check_curve_flags(FlagReader& reader, const Arguments& arguments) {
  if (!has_sweep(arguments) || !arguments.has("--topology")) return;
  reader.problem("--topology is one shape, and --chips asks for several counts", "leave one of them out");
}

std::optional<CurveQuestion> curve_question(const Arguments& arguments) {
  const bool pareto = arguments.has("--pareto");
  const bool sweep = has_sweep(arguments);
  if (!sweep && !pareto) return std::nullopt;
  CurveQuestion out{.train = train_question(arguments), .pareto = pareto};
  out.chips = {out.train.chips};
  if (sweep) {
    FlagReader reader(arguments);  // its problems were found with those of the other flags
    out.chips = chip_counts(reader, *arguments.value("--chips"), kChipRange);
  }
  return out;
}

}  // namespace scalecalc::cli
