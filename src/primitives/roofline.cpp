#include "primitives/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"

namespace scalecalc {
namespace {

constexpr std::string_view kSource = "book ch. 1";
BytesOf<Traced> counted_bytes(const OperationWork& work, Counted counted) {
  switch (counted) {
    case Counted::kAll: return named(work.input + work.weight + work.result, "bytes", kSource);
    case Counted::kWeights: return work.weight;
    case Counted::kNone: return BytesOf<Traced>(Traced(0.0));
  }
  internal_error("no such count");
}

Traced chips_of(const RooflineQuestion& question) {
  const auto chips = static_cast<double>(question.sharing.chips);
  return chips == 1 ? Traced(1.0) : asked(chips, "chips");
}

std::string_view longest(const RooflinePoint& point) {
  struct Part {
    std::string_view name;
    double seconds;
  };
  const std::array<Part, 4> parts{{{"compute", value_of(point.compute_time)},
                                   {"memory", value_of(point.memory_time)},
                                   {"link", value_of(point.link_time)},
                                   {"overhead", value_of(point.overhead)}}};
  return std::max_element(parts.begin(), parts.end(),
                          [](const Part& a, const Part& b) { return a.seconds < b.seconds; })
      ->name;
}

/// The longer of two times, without the mention of one that is nothing.
SecondsOf<Traced> longer(const SecondsOf<Traced>& a, const SecondsOf<Traced>& b) {
  if (value_of(a) == 0) return b;
  return value_of(b) == 0 ? a : max(a, b);
}

void set_times(RooflinePoint& point, const RooflineQuestion& question, const RooflineRates& rates) {
  const Traced chips = chips_of(question);
  const SecondsOf<Traced> none{Traced(0.0)};
  point.compute_time = point.link_time = none;
  if (rates.compute) {
    const Traced fraction = reached_fraction(point.operation, question.sharing, rates);
    point.compute_time = named(point.work.run / (chips * *rates.compute * fraction), "T_math", kSource);
  }
  point.memory_time = named(point.bytes / (chips * rates.memory), "T_memory", kSource);
  if (rates.link) {
    const CollectiveTime all_to_all = all_to_all_seconds(question, rates, point.work.exchanged);
    const bool exact = question.convention == CollectiveConvention::kExact;
    point.link_time = named(exact ? all_to_all.time : all_to_all.bandwidth_time, "T_link", "book ch. 1, 3 and 12");
  }
  point.overhead = rates.overhead;
  const SecondsOf<Traced> lower = longer(longer(point.compute_time, point.memory_time), point.link_time);
  point.time = named(lower + point.overhead, "T_lower", "book ch. 1: all of it overlaps");
  point.upper_time = named(point.compute_time + point.memory_time + point.link_time + point.overhead, "T_upper",
                           "book ch. 1: none of it overlaps");
}

RooflinePoint point_of(const Operation& operation, const RooflineQuestion& question, const RooflineRates& rates) {
  RooflinePoint point;
  point.operation = operation;
  point.work = work_of(operation, question.types, question.sharing);
  point.bytes = counted_bytes(point.work, question.counted);
  if (value_of(point.bytes) > 0) point.intensity = named(point.work.flops / point.bytes, "intensity", kSource);
  set_times(point, question, rates);
  point.bound_by = longest(point);
  point.attained = named(point.work.flops / point.time, "attained", kSource);
  if (rates.compute) {
    point.fraction_of_peak = named(point.attained / (chips_of(question) * *rates.peak), "fraction of peak", kSource);
  }
  return point;
}

/// Sizes that one chip must be able to hold a part of.
void check_split(const RooflineQuestion& question) {
  if (question.sharing.split == MatmulSplit::kEven) return;
  for (const Operation& operation : question.operations) {
    const Matmul& m = std::get<Matmul>(operation);
    const bool batch = question.sharing.split == MatmulSplit::kBatch;
    const bool contraction = question.sharing.split == MatmulSplit::kContraction;
    const double size = batch ? m.rows : contraction ? m.contraction : m.columns;
    if (size >= static_cast<double>(question.sharing.chips)) continue;
    throw UserError(fmt::format("{} = {} cannot be split over {} chips",
                                batch         ? "B"
                                : contraction ? "D"
                                              : "F",
                                group_thousands(static_cast<long long>(size)), question.sharing.chips),
                    "fewer chips, or another --split");
  }
}

std::vector<MeasuredTime> measured_times(const RooflineQuestion& question, const RooflineAnswer& found) {
  std::vector<MeasuredTime> out;
  const bool trials = found.points.size() == 1;
  if (!trials && !question.measured.empty() && question.measured.size() != found.points.size()) {
    throw UserError(fmt::format("{} measured times for {} points", question.measured.size(), found.points.size()),
                    "--measured takes times of one point, or one for each point of the sweep");
  }
  for (std::size_t i = 0; i < question.measured.size(); ++i) {
    MeasuredTime row;
    row.point = trials ? 0 : i;
    const RooflinePoint& point = found.points[row.point];
    row.seconds = read(kReader, Seconds(question.measured[i]), fmt::format("measured {}", i + 1), "--measured");
    row.roofline_fraction = named(point.time / row.seconds, "fraction of roofline", "book ch. 9");
    row.attained = named(point.work.flops / row.seconds, "attained, measured", "book ch. 9");
    if (found.rates.compute) {
      row.fraction_of_peak =
          named(row.attained / (chips_of(question) * *found.rates.peak), "fraction of peak, measured", "book ch. 9");
    }
    if (trials && i > 0) {
      row.speedup_over_first = named(out.front().seconds / row.seconds, "speed-up over the first", "book ch. 9");
      row.speedup_over_previous = named(out.back().seconds / row.seconds, "speed-up over the previous", "book ch. 9");
    }
    out.push_back(std::move(row));
  }
  return out;
}

}  // namespace

CollectiveTime all_to_all_seconds(const RooflineQuestion& question, const RooflineRates& rates,
                                  const BytesOf<Traced>& bytes) {
  const bool sums = question.sharing.split == MatmulSplit::kContraction;
  return collective_time(rates.network, rates.group,
                         {.op = sums ? CollectiveOp::kAllReduce : CollectiveOp::kAllGather,
                          .bytes = bytes,
                          .convention = question.convention});
}

RooflineAnswer answer(const RooflineQuestion& question, const HardwareSpec& hw) {
  check(!question.operations.empty(), "a roofline has a point");
  check_split(question);
  RooflineAnswer out;
  out.rates = roofline_rates(question, hw);
  if (out.rates.compute) {
    out.memory_intensity =
        named(*out.rates.compute / out.rates.memory, "alpha", "book ch. 1: FLOPs computed while a byte moves");
    if (out.rates.link) out.link_intensity = named(*out.rates.compute / *out.rates.link, "alpha_link", kSource);
  }
  for (const Operation& operation : question.operations) out.points.push_back(point_of(operation, question, out.rates));
  const Operation& first = question.operations.front();
  if (const Matmul* matmul = std::get_if<Matmul>(&first)) {
    out.critical_batch = critical_batch(*matmul, question, out.rates);
  }
  if (const Attention* attention = std::get_if<Attention>(&first)) {
    out.critical_prompt = critical_prompt(*attention, question, out.rates);
  }
  if (out.rates.link) out.critical_dimension = critical_dimension(question, out.rates);
  out.measured = measured_times(question, out);
  note_assumptions(question, hw, out);
  return out;
}

}  // namespace scalecalc
