// Operations in words, for titles.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/units.h"
#include "primitives/operation.h"

namespace scalecalc {
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
