// From which size on an operation is compute-bound: T_math = T_comms solved for that size, all bytes counted.
#include <fmt/format.h>

#include "base/check.h"
#include "base/units.h"
#include "primitives/roofline.h"

namespace scalecalc {
namespace {

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
      return local / (local + rates.half_dim);
    };
    rate = rate *
           (part(matmul.contraction, "D", MatmulSplit::kContraction) * part(matmul.columns, "F", MatmulSplit::kOutput));
    if (matmul.per_row_weights) rate = rate * (Traced(1.0) / (Traced(1.0) + rates.half_dim));
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

}  // namespace

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

}  // namespace scalecalc
