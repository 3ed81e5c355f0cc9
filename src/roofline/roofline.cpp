// Answers `scalecalc roofline`: the time of one operation, what limits it, and its critical sizes.
#include "roofline/roofline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/diagnostic.h"
#include "base/progress.h"
#include "base/scalar.h"
#include "base/units.h"

namespace scalecalc {
namespace {

// From which size on an operation is compute-bound: T_math = T_comms solved for that size, all bytes counted.

using Intensity = FlopsPerByteOf<Traced>;

std::string number(double value) { return format_quantity(value, UnitKind::kNumber, 4); }

/// Bytes of a matmul that count: for the whole batch, and for each row of it.
struct CountedBytes {
  BytesOf<Traced> whole{Traced(0.0)};
  BytesOf<Traced> row{Traced(0.0)};
};

CountedBytes counted_bytes(const Matmul& matmul, const MatmulTerms& terms, Counted counted) {
  CountedBytes out;
  if (counted == Counted::kNone) return out;
  (matmul.per_row_weights ? out.row : out.whole) += terms.weight;
  if (counted == Counted::kAll) out.row = terms.input + terms.result + out.row;
  return out;
}

/// Rows that the shape factor B / (B + h) asks for on top, over all chips that share them.
Traced half_rows(const Matmul& matmul, const RooflineQuestion& question, const RooflineRates& rates) {
  if (rates.half_dim.value() == 0 || matmul.per_row_weights) return Traced(0.0);
  if (question.sharing.split != MatmulSplit::kBatch) return rates.half_dim;
  return rates.half_dim * asked(static_cast<double>(question.sharing.chips), "chips");
}

/// FLOPs per byte the chip needs at this D and F, with as many rows as it likes.
Intensity needed_intensity(const Matmul& matmul, const RooflineQuestion& question, const RooflineRates& rates) {
  FlopsPerSecondOf<Traced> rate = *rates.compute;
  if (rates.half_dim.value() != 0) {
    // reached_fraction() without its factor for rows, which is solved for.
    const auto part = [&](double size, const char* name, MatmulSplit split) {
      const Traced whole = asked(size, name);
      const Traced chips = asked(static_cast<double>(question.sharing.chips), "chips");
      const Traced local = question.sharing.split == split ? whole / chips : whole;
      return shape_share(local, rates.half_dim);
    };
    rate = rate *
           (part(matmul.contraction, "D", MatmulSplit::kContraction) * part(matmul.columns, "F", MatmulSplit::kOutput));
    if (matmul.per_row_weights) rate = rate * shape_share(Traced(1.0), rates.half_dim);
  }
  return named(rate / rates.memory, "alpha", "book ch. 1: FLOPs computed while a byte moves");
}

std::string below_all(const Matmul& matmul, double limit, double needed) {
  return fmt::format("no batch is compute-bound: the intensity{} stays below {} FLOP/byte, and {} are needed",
                     matmul.pad == 1 ? "" : ", padding counted,", number(limit), number(needed));
}

/// Tiles of b_m rows read the weights again every b_m rows: beyond one tile the intensity rises no more.
void limit_to_tile(const Matmul& matmul, const MatmulTerms& terms, const CountedBytes& bytes, Critical& critical,
                   double needed) {
  if (!matmul.tile || !critical.value || critical.value->value() <= matmul.tile->rows) return;
  const double rows = matmul.tile->rows;
  const double limit = rows * value_of(terms.run) / (value_of(bytes.whole) + rows * value_of(bytes.row));
  critical.value.reset();
  critical.reason = below_all(matmul, limit, needed);
}

Critical critical_batch(const Matmul& matmul, const RooflineQuestion& question, const RooflineRates& rates) {
  const MatmulTerms terms = matmul_terms(matmul, question.types, question.sharing);
  const CountedBytes bytes = counted_bytes(matmul, terms, question.counted);
  const Intensity alpha = needed_intensity(matmul, question, rates);
  const Traced half = half_rows(matmul, question, rates);
  Critical out;
  if (question.counted == Counted::kNone) {
    out.reason = "no bytes are counted: every batch is compute-bound";
    return out;
  }
  // T_math = run (B + h) / rate, T_comms = (whole + B row) / memory.
  const FlopsOf<Traced> gained = terms.run - alpha * bytes.row;
  const FlopsOf<Traced> owed = alpha * bytes.whole - terms.run * half;
  if (!matmul.per_row_weights) {
    out.approximate = named(alpha * terms.weight / terms.run - half, "B_crit of the weights alone",
                            "book ch. 1: alpha x bytes of a weight / 2");
    if (out.approximate->value() <= 0) out.approximate.reset();
  }
  if (value_of(gained) > 0 && value_of(owed) > 0) {
    out.value = named(owed / gained, "B_crit", "book ch. 1, all bytes counted");
    limit_to_tile(matmul, terms, bytes, out, value_of(alpha));
  } else if (value_of(gained) > 0) {
    out.reason = "every batch is compute-bound";
  } else {
    out.reason = below_all(matmul, value_of(terms.run) / value_of(bytes.row), value_of(alpha));
  }
  return out;
}

Critical critical_prompt(const Attention& attention, const RooflineQuestion& question, const RooflineRates& rates) {
  Critical out;
  if (question.counted == Counted::kNone) {
    out.reason = "no bytes are counted: every prompt is compute-bound";
    return out;
  }
  // FLOPs and bytes of a prompt of one token; FLOPs grow with the square of its length, bytes with the length.
  Attention one = attention;
  one.query = one.kv = 1;
  const OperationWork work = work_of(one, question.types, {});
  BytesOf<Traced> bytes = work.weight;
  if (question.counted == Counted::kAll) bytes = work.input + bytes + work.result;
  const Intensity alpha =
      named(*rates.compute / rates.memory, "alpha", "book ch. 1: FLOPs computed while a byte moves");
  out.value = named(alpha * bytes / work.flops, "T_crit", "book ch. 4 and 7: alpha (G + 1) / G in bf16");
  return out;
}

Critical critical_dimension(const RooflineQuestion& question, const RooflineRates& rates) {
  check(rates.link.has_value(), "a split matmul with an exchange has a link");
  const bool contraction = question.sharing.split == MatmulSplit::kContraction;
  const BytesOf<Traced> element =
      contraction ? element_bytes(question.types.result, "result") : element_bytes(question.types.input, "input");
  const Traced chips = asked(static_cast<double>(question.sharing.chips), "chips");
  const BytesOf<Traced> one = read(Reader<Traced>{}, Bytes(1), "a byte", "");
  const auto per_byte = all_to_all_seconds(question, rates, one).bandwidth_time / one;
  const Intensity alpha =
      named(*rates.compute * per_byte, "alpha_exchange", "book ch. 1: FLOPs computed while a byte is exchanged");
  const FlopsOf<Traced> two{Traced(2.0)};
  Critical out;
  out.value = named(alpha * element * chips / two, contraction ? "D_crit" : "F_crit",
                    "book ch. 1: T_math = T_link, latency not counted");
  return out;
}

// What a roofline takes for granted, and what should make its reader careful.

using Notes = std::vector<Assumption>;

std::string_view place_of(OperandHome home) {
  switch (home) {
    case OperandHome::kHbm: return "HBM";
    case OperandHome::kVmem: return "VMEM";
    case OperandHome::kHost: return "host memory over PCIe";
  }
  return "";
}

void note_rates(const RooflineQuestion& question, const HardwareSpec& hw, const RooflineAnswer& found, Notes& notes) {
  if (!question.calibrated) {
    notes.push_back({"peak rates: kernels and links reach less", "--efficiency calibrated", "book ch. 1"});
    return;
  }
  notes.push_back({fmt::format("efficiency calibrated: {}; {}", hw.efficiency.confidence, hw.efficiency.basis),
                   "--efficiency ideal", "hardware file"});
  if (question.from != OperandHome::kHbm) {
    notes.push_back(Assumption{
        fmt::format("{} at its full rate: the hardware file has no coefficient for it", found.rates.memory_name), "",
        "hardware file"}
                        .as("efficiency." + found.rates.memory_name)
                        .is(1));
  }
  if (found.rates.half_dim.value() != 0) {
    notes.push_back(
        {fmt::format("matmuls reach x / (x + {:.4g}) of that in each dimension x; the critical batch counts "
                     "it{}",
                     found.rates.half_dim.value(), found.rates.link ? ", the critical D or F does not" : ""),
         "--set hw.efficiency.matmul_half_dim.value", "hardware file"});
  }
  if (found.rates.attention.half_context.value() != 0 || found.rates.attention.half_head_dim.value() != 0) {
    notes.push_back(
        {"attention reaches less of that in short contexts and narrow heads; the critical prompt does not "
         "count it",
         "--set hw.efficiency.attention_half_context.value", "docs/model.md"});
  }
  if (found.rates.half_dim.value() != 0 && question.sharing.chips > 1 && question.sharing.split == MatmulSplit::kEven) {
    notes.push_back({"each chip's matmul is as efficient as the whole one: how it is cut is not said", "--split", ""});
  }
}

void note_bytes(const RooflineQuestion& question, Notes& notes) {
  const Operation& operation = question.operations.front();
  const Matmul* matmul = std::get_if<Matmul>(&operation);
  switch (question.counted) {
    case Counted::kAll:
      if (std::holds_alternative<GivenWork>(operation)) return;
      if (matmul != nullptr && matmul->tile) {
        notes.push_back({fmt::format("from {} the input is read once for each column of tiles, the weights once for "
                                     "each row of tiles, and the result is written once",
                                     place_of(question.from)),
                         "tile=", "book ch. 1"});
        return;
      }
      notes.push_back(
          {fmt::format("every operand is read once from {} and the result written once", place_of(question.from)),
           "--from, --count", "book ch. 1"});
      return;
    case Counted::kWeights:
      notes.push_back({"only the weights' bytes count: the approximation for small batches", "--count", "book ch. 1"});
      return;
    case Counted::kNone:
      notes.push_back({"no bytes count: operands lie where the units read them", "--count", "book ch. 1"});
      return;
  }
}

void note_exchange(const RooflineQuestion& question, const RooflineAnswer& found, Notes& notes) {
  const CollectiveTime all_to_all = all_to_all_seconds(question, found.rates, found.points.front().work.exchanged);
  notes.push_back(
      {fmt::format("convention {}: {}, as in collective; latency {}",
                   kCollectiveConventionNames[static_cast<std::size_t>(question.convention)], all_to_all.algorithm,
                   question.convention == CollectiveConvention::kExact ? "counted" : "not counted"),
       "--convention", "book ch. 3 and 12"});
}

void note_sharing(const RooflineQuestion& question, const RooflineAnswer& found, Notes& notes) {
  if (question.sharing.chips == 1) return;
  const std::string chips = group_thousands(question.sharing.chips);
  switch (question.sharing.split) {
    case MatmulSplit::kEven:
      notes.push_back({fmt::format("FLOPs and bytes divide evenly over {} chips, and nothing is exchanged", chips),
                       "--split", "book ch. 2"});
      return;
    case MatmulSplit::kBatch:
      notes.push_back(
          {fmt::format("{} chips hold all weights each and divide the rows", chips), "--split", "book ch. 1"});
      return;
    case MatmulSplit::kContraction:
      notes.push_back({fmt::format("{} chips divide D and add up their partial results: an all-reduce", chips),
                       "--split, --over", "book ch. 1 and 3"});
      return note_exchange(question, found, notes);
    case MatmulSplit::kOutput:
      notes.push_back({fmt::format("{} chips divide F and gather the input: an all-gather", chips), "--split, --over",
                       "book ch. 3"});
      return note_exchange(question, found, notes);
  }
}

/// Operands that HBM cannot hold are no roofline of this chip.
void warn_of_capacity(const RooflineQuestion& question, const HardwareSpec& hw, const RooflineAnswer& found,
                      Notes& notes) {
  if (question.from != OperandHome::kHbm || std::holds_alternative<GivenWork>(question.operations.front())) return;
  double most = 0;
  for (const RooflinePoint& point : found.points) most = std::max(most, value_of(point.bytes));
  most /= static_cast<double>(question.sharing.chips);
  const double capacity = hw.hbm_capacity.value();
  const Matmul* matmul = std::get_if<Matmul>(&question.operations.front());
  const bool rereads = matmul != nullptr && matmul->tile.has_value();
  if (most <= capacity || rereads) return;
  notes.push_back(
      {fmt::format("the operands take {} of each chip, which has {}", bytes_text(most), bytes_text(capacity)),
       "--chips", hw.hbm_source, true});
}

void warn_of_impossible_times(const RooflineAnswer& found, Notes& notes) {
  const bool faster = std::any_of(found.measured.begin(), found.measured.end(),
                                  [](const MeasuredTime& m) { return m.roofline_fraction.value() > 1; });
  if (!faster) return;
  notes.push_back({"a measured time is shorter than the roofline allows: check the shape, the formats and the rates",
                   "--measured", "", true});
}

void note_assumptions(const RooflineQuestion& question, const HardwareSpec& hw, RooflineAnswer& found) {
  Notes& notes = found.assumptions;
  note_bytes(question, notes);
  note_sharing(question, found, notes);
  const Matmul* matmul = std::get_if<Matmul>(&question.operations.front());
  if (matmul != nullptr && matmul->pad != 1) {
    notes.push_back(Assumption{"padding is computed and not moved: bytes are those of the arrays", "", "book ch. 2"}
                        .as("padding")
                        .is("computed, not moved"));
  }
  const Attention* attention = std::get_if<Attention>(&question.operations.front());
  if (attention != nullptr && attention->backward) {
    notes.push_back({"backward: 2.5 times the forward's FLOPs, twice its bytes", "pass=forward", "arXiv:2307.08691"});
  }
  note_rates(question, hw, found, notes);
  warn_of_capacity(question, hw, found, notes);
  warn_of_impossible_times(found, notes);
}

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

RooflineAnswer answer(const RooflineQuestion& question, const HardwareSpec& hw, const Stop& stop) {
  check(!question.operations.empty(), "a roofline has a point");
  check_split(question);
  RooflineAnswer out;
  out.rates = roofline_rates(question, hw);
  if (out.rates.compute) {
    out.memory_intensity =
        named(*out.rates.compute / out.rates.memory, "alpha", "book ch. 1: FLOPs computed while a byte moves");
    if (out.rates.link) out.link_intensity = named(*out.rates.compute / *out.rates.link, "alpha_link", kSource);
  }
  Progress points("points", question.operations.size(), Progress::Pace::kEven);
  for (const Operation& operation : question.operations) {
    if (!out.points.empty() && should_stop(stop)) {
      if (!question.measured.empty()) throw Stopped();
      break;
    }
    out.points.push_back(point_of(operation, question, out.rates));
    points.add();
  }
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
