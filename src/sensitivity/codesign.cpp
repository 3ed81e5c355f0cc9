// Plans the job again at every point of the swept values of --set, for `scalecalc sensitivity`.
#include "sensitivity/codesign.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/progress.h"
#include "base/sweep.h"
#include "base/text.h"
#include "train/figures.h"

namespace scalecalc {
namespace {

/// Kinds a field may have, with the unit its values are written back in.
struct FieldKind {
  UnitKind kind;
  std::string_view suffix;
  Dim unit;
};
constexpr std::array<FieldKind, 7> kKinds{{{UnitKind::kBytesPerSecond, "B/s", kByteDim - kSecondDim},
                                           {UnitKind::kFlopsPerSecond, "FLOP/s", kFlopDim - kSecondDim},
                                           {UnitKind::kSeconds, "s", kSecondDim},
                                           {UnitKind::kBytes, "B", kByteDim},
                                           {UnitKind::kWatts, "W", kJouleDim - kSecondDim},
                                           {UnitKind::kNumber, "", Dim{}},
                                           {UnitKind::kFraction, "", Dim{}}}};

/// "2TB/s": as people write it where that gives the number back, so that an error quotes what was meant.
std::string set_text(double number, const FieldKind& field) {
  for (const int digits : {3, 6, 12}) {
    std::string text = format_quantity(number, field.kind, digits);
    std::erase(text, ' ');
    const auto again = parse_quantity(text, field.kind);
    if (const double* value = std::get_if<double>(&again); value != nullptr && *value == number) return text;
  }
  return fmt::format("{}{}", number, field.suffix);
}

std::size_t size_of(const std::vector<SetRange>& ranges) {
  std::size_t out = 1;
  for (const SetRange& range : ranges) out *= range.values.size();
  return out;
}

class Sweeper {
 public:
  Sweeper(const TrainQuestion& question, const Plan* kept, const Catalog& catalog, const std::function<bool()>& stop)
      : question_(question), kept_(kept), catalog_(catalog), stop_(stop) {}

  Codesign run(std::vector<SetRange> ranges) {
    Codesign out{.ranges = std::move(ranges)};
    const std::size_t points = size_of(out.ranges);
    Progress planned("points", points);
    for (std::size_t i = 0; i < points; ++i) {
      CodesignPoint point = point_at(out.ranges, i);
      if (stop_ && stop_()) {
        out.complete = false;
        break;
      }
      out.points.push_back(std::move(point));
      planned.add();
    }
    return out;
  }

 private:
  CodesignPoint point_at(const std::vector<SetRange>& ranges, std::size_t index) const {
    CodesignPoint out{.at = std::vector<std::size_t>(ranges.size())};
    TrainQuestion question = question_;
    for (std::size_t r = ranges.size(); r-- > 0; index /= ranges[r].values.size()) {
      out.at[r] = index % ranges[r].values.size();
    }
    for (std::size_t r = 0; r < ranges.size(); ++r) {
      question.set.push_back(fmt::format("{}={}", ranges[r].path, ranges[r].values[out.at[r]]));
    }
    const ResolvedQuestion resolved = resolve(question, catalog_);
    const PlanRequest request = request_of(question, resolved);
    std::optional<Plan> found = kept_ != nullptr ? same_plan(request) : searched(request);
    if (!found) return out;
    out.elasticity = group_elasticities(resolved, request, *found);
    out.plan = ranked(resolved, request, std::move(*found));
    return out;
  }

  std::optional<Plan> searched(const PlanRequest& request) const {
    PlanResult result = Planner(request, stop_).best({.objective = request.objective, .top = 1});
    if (result.plans.empty()) return std::nullopt;
    return std::move(result.plans.front());
  }

  /// Nothing where it does not fit any more.
  std::optional<Plan> same_plan(const PlanRequest& request) const {
    Plan out = *kept_;
    const PlanReading<double> reading = read_plan(Reader<double>{}, request, out);
    out.time = reading.time;
    out.memory = reading.memory;
    out.step_s = reading.time.total().value();
    if (!fits(*request.hw, out.memory)) return std::nullopt;
    return out;
  }

  const TrainQuestion& question_;
  const Plan* kept_;
  const Catalog& catalog_;
  const std::function<bool()>& stop_;
};

}  // namespace

bool is_set_range(std::string_view set) {
  const std::size_t equals = set.find('=');
  if (equals == std::string_view::npos) return false;
  const std::string_view value = set.substr(equals + 1);
  return value.find("..") != std::string_view::npos || value.find(',') != std::string_view::npos;
}

SetRange parse_set_range(const std::string& set) {
  const std::size_t equals = set.find('=');
  SetRange out{.path = set.substr(0, equals)};
  const std::string_view text = std::string_view(set).substr(equals + 1);
  for (const FieldKind& field : kKinds) {
    const auto parsed = parse_sweep(text, field.kind);
    const auto* numbers = std::get_if<std::vector<double>>(&parsed);
    if (numbers == nullptr) continue;
    out.numbers = *numbers;
    out.unit = field.unit;
    for (const double number : *numbers) out.values.push_back(set_text(number, field));
    return out;
  }
  throw UserError(fmt::format("--set {}: {} is no range of quantities", out.path, in_quotes(text)),
                  "both ends with their unit, as in hw.hbm.bandwidth=2TB/s..8TB/s*2, or a list 2TB/s,3TB/s,8TB/s");
}

Codesign codesign(const TrainQuestion& question, std::vector<SetRange> ranges, const Plan* kept, const Catalog& catalog,
                  const std::function<bool()>& stop) {
  if (const std::size_t points = size_of(ranges); points > kMostCodesignPoints) {
    throw UserError(fmt::format("the ranges of --set make {} points, and {} are planned at once",
                                group_thousands(static_cast<long long>(points)), group_thousands(kMostCodesignPoints)),
                    "larger steps, such as *2; scalecalc batch runs larger grids");
  }
  return Sweeper(question, kept, catalog, stop).run(std::move(ranges));
}

}  // namespace scalecalc
