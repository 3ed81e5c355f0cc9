// Counts the FLOPs and bytes of one operation, for `scalecalc roofline` and for recorded kernels.
#include "roofline/operation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/scalar.h"
#include "base/units.h"

namespace scalecalc {
namespace {

using TracedBytes = BytesOf<Traced>;
using TracedFlops = FlopsOf<Traced>;

constexpr std::string_view kRooflines = "book ch. 1";
constexpr std::string_view kAttention = "book ch. 4 and 7: a flash kernel moves queries, keys, values and output once";
constexpr std::string_view kContractions = "book ch. 4: every distinct index counts once";

/// One multiplication and one addition.
TracedFlops two_flops() { return TracedFlops(Traced(2.0)); }
TracedFlops one_flop() { return TracedFlops(Traced(1.0)); }
const TracedBytes kNoBytes{Traced(0.0)};

/// The count as an input, or nothing to be shown where it is one.
Traced factor(double value, std::string_view name) { return value == 1 ? Traced(1.0) : asked(value, name); }

Traced padded(const Traced& size, double pad, std::string_view name) {
  if (pad == 1) return size;
  const Traced multiple = asked(pad, "pad");
  return named(ceil(size / multiple) * multiple, name, "book ch. 2: dimensions are filled up to the unit's");
}

Traced causal_keys(const Traced& query, const Traced& kv, bool causal) {
  if (!causal) return kv;
  return named(kv - query / Traced(2.0), "S_seen",
               "book ch. 4: a causal kernel skips what is masked, half where T = S");
}

/// Sums an operation's parts into the shape the roofline reads.
OperationWork work(const TracedFlops& flops, const TracedBytes& input, const TracedBytes& weight,
                   const TracedBytes& result, std::string_view source) {
  OperationWork out;
  out.flops = named(flops, "FLOPs", source);
  out.run = out.flops;
  out.input = named(input, "bytes_in", source);
  out.weight = named(weight, "bytes_weight", source);
  out.result = named(result, "bytes_out", source);
  out.exchanged = kNoBytes;
  return out;
}

/// Intensity of one block multiplication, the result's tile staying where it is.
FlopsPerByteOf<Traced> tile_intensity(const MatmulTile& tile, const OperandTypes& types) {
  const Traced rows = asked(tile.rows, "b_m");
  const Traced columns = asked(tile.columns, "b_n");
  const TracedBytes moved =
      rows * element_bytes(types.input, "input") + columns * element_bytes(types.weight, "weight");
  return named(two_flops() * (rows * columns) / moved, "I_tile", "book ch. 1: the result's tile left out");
}

OperationWork matmul_work(const Matmul& matmul, const OperandTypes& types, const Sharing& sharing) {
  const MatmulTerms terms = matmul_terms(matmul, types, sharing);
  const Traced rows = asked(matmul.rows, "B");
  TracedBytes weight = matmul.per_row_weights ? terms.weight * rows : terms.weight;
  if (matmul.tile) {
    const Traced passes = named(ceil(rows / asked(matmul.tile->rows, "b_m")), "row tiles", kRooflines);
    weight = weight * passes;
  }
  OperationWork out = work(terms.flops * rows, terms.input * rows, weight, terms.result * rows, kRooflines);
  if (matmul.pad != 1) {
    out.run = named(terms.run * rows, "FLOPs run", "book ch. 2: with padding");
    out.useful = named(out.flops / out.run, "useful", "book ch. 2");
  }
  if (sharing.split == MatmulSplit::kContraction || sharing.split == MatmulSplit::kOutput) {
    out.exchanged = named(terms.exchanged * rows, "bytes exchanged", "book ch. 1");
  }
  if (matmul.tile) out.tile_intensity = tile_intensity(*matmul.tile, types);
  return out;
}

OperationWork attention_work(const Attention& a, const OperandTypes& types) {
  const Traced sequences = factor(a.sequences, "B");
  const Traced heads = asked(a.heads, "N");
  const Traced head_dim = asked(a.head_dim, "H");
  const Traced query = asked(a.query, "T");
  const Traced kv = asked(a.kv, "S");
  const TracedFlops score_and_value = two_flops() * Traced(2.0);
  const TracedFlops flops = score_and_value *
                            (sequences * query * causal_keys(query, kv, a.causal) * heads * head_dim) *
                            Traced(attention_flops_factor(a));
  const Traced passes(attention_bytes_factor(a));
  const Traced wide = sequences * query * heads * head_dim;
  const Traced narrow = sequences * kv * asked(a.kv_heads, "K") * head_dim;
  return work(flops, element_bytes(types.input, "input") * wide * passes,
              Traced(2.0) * element_bytes(types.weight, "kv") * narrow * passes,
              element_bytes(types.result, "result") * wide * passes, kAttention);
}

/// Product of the sizes whose index has the property.
template <class Has>
Traced product(const Contraction& contraction, Has has) {
  Traced out(1.0);
  for (const ContractionIndex& index : contraction.indices) {
    if (has(index)) out = out * asked(index.size, index.name);
  }
  return out;
}

OperationWork contraction_work(const Contraction& c, const OperandTypes& types) {
  bool sums = false;
  for (const ContractionIndex& index : c.indices) sums = sums || !index.in_result;
  const Traced points = product(c, [](const ContractionIndex&) { return true; });
  return work((sums ? two_flops() : one_flop()) * points,
              element_bytes(types.input, "input") * product(c, [](const ContractionIndex& i) { return i.in_first; }),
              element_bytes(types.weight, "weight") * product(c, [](const ContractionIndex& i) { return i.in_second; }),
              element_bytes(types.result, "result") * product(c, [](const ContractionIndex& i) { return i.in_result; }),
              kContractions);
}

OperationWork elementwise_work(const Elementwise& e, const OperandTypes& types) {
  const Traced elements = asked(e.elements, "n");
  return work(one_flop() * (elements * factor(e.flops, "FLOPs of an element")),
              element_bytes(types.input, "input") * (elements * factor(e.inputs, "inputs")), kNoBytes,
              element_bytes(types.result, "result") * elements, kRooflines);
}

OperationWork dot_work(const DotProduct& dot, const OperandTypes& types) {
  const Traced elements = asked(dot.elements, "n");
  // n multiplications and n - 1 additions.
  const TracedFlops flops = one_flop() * (Traced(2.0) * elements - Traced(1.0));
  return work(flops, element_bytes(types.input, "input") * elements, element_bytes(types.weight, "weight") * elements,
              element_bytes(types.result, "result"), kRooflines);
}

}  // namespace

double attention_flops_factor(const Attention& attention) { return attention.backward ? 2.5 : 1; }
double attention_bytes_factor(const Attention& attention) { return attention.backward ? 2 : 1; }

Traced asked(double value, std::string_view name) { return kReader.input(value, name, "question"); }

BytesOf<Traced> element_bytes(DType dtype, std::string_view operand) {
  return read(kReader, Bytes(bytes_per_element(dtype)), fmt::format("{} ({})", operand, name_of(dtype)), "question");
}

MatmulTerms matmul_terms(const Matmul& m, const OperandTypes& types, const Sharing& sharing) {
  const Traced matrices = factor(m.matrices, "matrices");
  const Traced contraction = asked(m.contraction, "D");
  const Traced columns = asked(m.columns, "F");
  const Traced chips = factor(static_cast<double>(sharing.chips), "chips");
  const auto copies = [&](bool held_by_all) { return held_by_all ? chips : Traced(1.0); };
  const Traced column_tiles =
      m.tile ? named(ceil(columns / asked(m.tile->columns, "b_n")), "column tiles", kRooflines) : Traced(1.0);

  MatmulTerms out;
  out.flops = two_flops() * (matrices * contraction * columns);
  out.run = out.flops;
  if (m.pad != 1) {
    out.run = two_flops() * (matrices * padded(contraction, m.pad, "D padded") * padded(columns, m.pad, "F padded"));
  }
  const TracedBytes input = element_bytes(types.input, "input") * (matrices * contraction);
  const TracedBytes result = element_bytes(types.result, "result") * (matrices * columns);
  out.input = input * copies(sharing.split == MatmulSplit::kOutput) * column_tiles;
  out.weight = element_bytes(types.weight, "weight") * (matrices * contraction * columns) *
               copies(sharing.split == MatmulSplit::kBatch && !m.per_row_weights);
  out.result = result * copies(sharing.split == MatmulSplit::kContraction);
  out.exchanged = sharing.split == MatmulSplit::kContraction ? result
                  : sharing.split == MatmulSplit::kOutput    ? input
                                                             : kNoBytes;
  return out;
}

OperationWork work_of(const Operation& operation, const OperandTypes& types, const Sharing& sharing) {
  check(sharing.split == MatmulSplit::kEven || std::holds_alternative<Matmul>(operation), "only a matmul is split");
  struct Visitor {
    const OperandTypes& types;
    const Sharing& sharing;
    OperationWork operator()(const Matmul& m) const { return matmul_work(m, types, sharing); }
    OperationWork operator()(const Elementwise& e) const { return elementwise_work(e, types); }
    OperationWork operator()(const DotProduct& d) const { return dot_work(d, types); }
    OperationWork operator()(const Attention& a) const { return attention_work(a, types); }
    OperationWork operator()(const Contraction& c) const { return contraction_work(c, types); }
    OperationWork operator()(const ParameterLoad& load) const {
      const Traced parameters = asked(load.parameters, "parameters");
      return work(TracedFlops(Traced(0.0)), kNoBytes, element_bytes(types.weight, "weight") * parameters, kNoBytes,
                  "book ch. 2");
    }
    OperationWork operator()(const GivenWork& given) const {
      return work(read(kReader, Flops(given.flops), "FLOPs", "question"),
                  read(kReader, Bytes(given.bytes), "bytes", "question"), kNoBytes, kNoBytes, kRooflines);
    }
  };
  return std::visit(Visitor{types, sharing}, operation);
}

// Operations in words, for titles.

namespace {

std::string plain(double value) { return fmt::format("{:.0f}", value); }
std::string grouped(double value) { return group_thousands(std::llround(value)); }

std::string array(DType dtype, std::initializer_list<std::string> sizes) {
  return fmt::format("{}[{}]", name_of(dtype), fmt::join(sizes, ","));
}

std::string many(const std::string& count, std::string_view one, std::string_view more) {
  return fmt::format("{} {}", count, count == "1" ? one : more);
}

struct Describer {
  const OperandTypes& types;
  std::string_view swept;

  std::string operator()(const Matmul& m) const {
    const std::string rows = swept == "batch" ? "B" : plain(m.rows);
    const std::string d = plain(m.contraction);
    const std::string f = plain(m.columns);
    const std::string weight = m.per_row_weights ? array(types.weight, {rows, d, f}) : array(types.weight, {d, f});
    const std::string one =
        fmt::format("{} x {} -> {}", array(types.input, {rows, d}), weight, array(types.result, {rows, f}));
    std::string out = m.matrices == 1 ? one : fmt::format("{} times {}", grouped(m.matrices), one);
    if (m.tile) {
      out +=
          fmt::format(" in tiles of {}x{}x{}", plain(m.tile->rows), plain(m.tile->contraction), plain(m.tile->columns));
    }
    if (m.pad != 1) out += fmt::format(" padded to {}", plain(m.pad));
    return out;
  }
  std::string operator()(const Elementwise& e) const {
    const std::string flops = e.flops == 1 ? "1" : format_quantity(e.flops, UnitKind::kNumber);
    const std::string input = array(types.input, {count(e.elements)});
    return fmt::format("{} -> {}, {} on each element", e.inputs == 1 ? input : grouped(e.inputs) + " arrays " + input,
                       array(types.result, {count(e.elements)}), many(flops, "FLOP", "FLOPs"));
  }
  std::string operator()(const DotProduct& dot) const {
    const std::string n = count(dot.elements);
    return fmt::format("{} . {} -> {}", array(types.input, {n}), array(types.weight, {n}), name_of(types.result));
  }
  std::string operator()(const ParameterLoad& load) const {
    std::string n = swept.empty() ? format_quantity(load.parameters, UnitKind::kCount, 6) : "n";
    n.erase(std::remove(n.begin(), n.end(), ' '), n.end());
    return fmt::format("{} parameters in {}, read once", n, name_of(types.weight));
  }
  std::string operator()(const Attention& a) const {
    const std::string queries = swept == "query" ? "T" : grouped(a.query);
    const std::string keys = swept == "kv" ? "S" : swept == "query" && a.kv == a.query ? "T" : grouped(a.kv);
    const std::string sequences = swept == "batch" ? "B" : grouped(a.sequences);
    return fmt::format("{} attention{}, {} on {} of {}, {} of {} on {}", a.causal ? "causal" : "full",
                       a.backward ? " backward" : "", many(grouped(a.heads), "query head", "query heads"),
                       many(grouped(a.kv_heads), "KV head", "KV heads"), grouped(a.head_dim),
                       many(sequences, "sequence", "sequences"), many(queries, "query", "queries"),
                       many(keys, "key", "keys"));
  }
  std::string operator()(const Contraction& c) const { return c.text; }
  std::string operator()(const GivenWork& given) const {
    const std::string rate = format_quantity(given.flops, UnitKind::kFlopsPerSecond, 6);
    std::string flops = rate.substr(0, rate.size() - std::string_view("/s").size());
    std::string bytes = format_quantity(given.bytes, UnitKind::kBytes, 6);
    if (given.bytes == 0) return flops;
    return given.flops == 0 ? bytes : fmt::format("{} and {}", flops, bytes);
  }

 private:
  std::string count(double value) const { return swept.empty() ? plain(value) : "n"; }
};

}  // namespace

std::string describe(const Operation& operation, const OperandTypes& types, std::string_view swept) {
  return std::visit(Describer{types, swept}, operation);
}

}  // namespace scalecalc
