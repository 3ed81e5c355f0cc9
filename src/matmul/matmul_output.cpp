// Shows the strategies for a sharded matmul with their collectives and what each chip stores.
#include "matmul/matmul_output.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "report/brief_blocks.h"

namespace scalecalc {
namespace {

Cell text(std::string_view value) { return std::string(value); }
Cell flag(bool value) { return value ? 1.0 : 0.0; }

std::vector<Cell> texts(const std::vector<std::string>& values) { return {values.begin(), values.end()}; }
std::vector<Cell> sizes(const std::vector<std::int64_t>& values) {
  std::vector<Cell> out;
  for (const std::int64_t value : values) out.emplace_back(static_cast<double>(value));
  return out;
}
std::string shape_text(const std::vector<std::int64_t>& values) {
  std::vector<std::string> out;
  for (const std::int64_t value : values) out.push_back(group_thousands(value));
  return out.empty() ? "scalar" : join(out, " x ");
}

/// A list that people read as one text.
Figure list(std::string_view key, std::string_view label, std::vector<Cell> items, std::string shown) {
  Figure out = list_figure(key, label, std::move(items));
  out.value = std::move(shown);
  return out;
}

Record query(const MatmulAnswer& found, const HardwareSpec* hw) {
  const ShardingTables& tables = found.problem.tables;
  Record out;
  auto& f = out.figures;
  f.push_back(figure("expression", "", Format::kText, text(found.problem.expression)));
  f.push_back(figure("hardware", "", Format::kText, hw == nullptr ? Cell{} : text(hw->name)));
  for (const MeshAxis& axis : tables.mesh.axes) {
    f.push_back(figure("mesh." + axis.name, "", Format::kInteger, cell_of(axis.size)));
  }
  f.push_back(figure("chips", "", Format::kInteger, cell_of(tables.mesh.chips())));
  for (const Dimension& dim : tables.dims) {
    f.push_back(figure("dims." + dim.name, "", Format::kInteger, cell_of(dim.size)));
  }
  return out;
}

Record collective_record(const CollectiveUse& use) {
  return {{figure("op", "collective", Format::kText, text(name_of(use.kind))),
           figure("array", "of", Format::kText, text(use.array)), figure("axis", "over", Format::kText, text(use.axes)),
           figure("bytes", "V", Format::kBytes, use.bytes),
           with_importance(figure("received_bytes", "a chip receives", Format::kBytes, use.received,
                                  "what it does not hold already"),
                           1),
           figure("time_s", "time", Format::kSeconds, use.time),
           figure("latency_bound", "", Format::kFlag, flag(use.latency_bound)),
           with_importance(figure("algorithm", "as", Format::kText, text(use.algorithm)), 2)}};
}

Record strategy_record(const Strategy& s, const std::optional<BytesOf<Traced>>& capacity) {
  std::vector<Record> collectives;
  std::vector<std::string> told;
  for (const CollectiveUse& use : s.collectives) {
    collectives.push_back(collective_record(use));
    told.push_back(fmt::format("{} {} over {}", name_of(use.kind), use.array, use.axes));
  }
  Record out;
  auto& f = out.figures;
  f.push_back(figure("rank", "#", Format::kInteger, cell_of(s.rank)));
  f.push_back(figure("name", "strategy", Format::kText, text(s.name)));
  f.push_back(figure("compute_time_s", "compute", Format::kSeconds, s.compute_time));
  f.push_back(figure("communication_time_s", "comms", Format::kSeconds, s.communication_time));
  f.push_back(figure("time_s", "time", Format::kSeconds, s.time));
  f.push_back(with_importance(figure("upper_time_s", "no overlap", Format::kSeconds, s.upper_time), 1));
  f.push_back(with_importance(
      figure("bound_by", "bound by", Format::kText, text(s.compute_bound ? "compute" : "communication")), 1));
  f.push_back(figure("compute_bound", "", Format::kFlag, flag(s.compute_bound)));
  f.push_back(with_importance(figure("flops_per_chip", "FLOPs/chip", Format::kFlops, s.flops_per_chip), 2));
  f.push_back(with_importance(figure("flops_all_chips", "FLOPs, all chips", Format::kFlops, s.flops_all_chips), 4));
  f.push_back(with_importance(
      figure("redundancy", "times done", Format::kNumber, s.redundancy, "all chips' FLOPs over the product's"), 4));
  f.push_back(with_importance(figure("memory_bytes", "memory/chip", Format::kBytes, s.memory), 2));
  if (capacity) {
    f.push_back(with_importance(
        figure("memory_share", "of a chip's", Format::kFraction, s.memory / *capacity, "of a chip's memory"), 2));
  }
  f.push_back(figure("fits", "", Format::kFlag, flag(s.fits)));
  f.push_back(with_importance(figure("memory_time_s", "HBM", Format::kSeconds, s.memory_time), 3));
  f.push_back(
      maybe_figure("communication_ratio", "", Format::kNumber, s.communication_ratio, "over the best strategy's"));
  f.push_back(
      figure("communication_over_compute", "", Format::kNumber, s.communication_time / s.compute_time, "book ch. 3"));
  f.push_back(figure("output", "", Format::kText, text(s.output)));
  f.push_back(figure("textbook", "", Format::kFlag, flag(s.textbook)));
  f.push_back(figure("as_written", "", Format::kFlag, flag(s.as_written)));
  f.push_back(figure("idle_axes_help", "", Format::kFlag, flag(s.plan.detour)));
  f.push_back(list("steps", "", texts(s.steps), s.name));
  f.push_back(list("local_multiplications", "", texts(s.shards), join(s.shards, ", ")));
  f.push_back(records_figure("collectives", "", join(told, ", "), std::move(collectives)));
  return out;
}

/// The fastest in which axes that cut none of the arrays as written stand idle.
const Strategy* as_written(const MatmulAnswer& found) {
  for (const Strategy& s : found.strategies) {
    if (s.as_written) return &s;
  }
  return nullptr;
}

Block strategies(const MatmulAnswer& found, std::size_t top) {
  constexpr std::size_t kBriefRows = 4;
  Block out{"strategies", ""};
  out.brief_rows = kBriefRows;
  out.columns = {{"rank"},
                 {"name"},
                 {"compute_time_s"},
                 {"communication_time_s"},
                 {"time_s"},
                 {"upper_time_s", 1},
                 {"bound_by", 1},
                 {"flops_per_chip", 2, "", false},
                 {"flops_all_chips", 4, "", false},
                 {"redundancy", 4, "", false},
                 {"memory_bytes", 2},
                 {"memory_share", 3, "", false},
                 {"memory_time_s", 3, "", false}};
  for (std::size_t i = 0; i < found.strategies.size(); ++i) {
    const bool listed = i < top || found.strategies[i].textbook || as_written(found) == &found.strategies[i];
    if (listed) out.records.push_back(strategy_record(found.strategies[i], found.rates->capacity));
  }
  return out;
}

Block collectives_of_best(const Strategy& best) {
  Block out{"", "Collectives of the best strategy"};
  out.for_people = true;
  for (const CollectiveUse& use : best.collectives) out.records.push_back(collective_record(use));
  return out;
}

Block overview(const MatmulAnswer& found) {
  Record out;
  const bool chain = found.products.size() > 1;
  const AxisCase& whole = found.products.front().whole;
  out.figures.push_back(figure("case", "", Format::kInteger, chain ? Cell{} : cell_of(whole.number)));
  out.figures.push_back(figure("case_text", "", Format::kText, chain ? Cell{} : text(whole.reason)));
  out.figures.push_back(figure("output", "output", Format::kText, text(found.strategies.front().output)));
  out.figures.push_back(figure("best", "", Format::kText, text(found.strategies.front().name)));
  out.figures.push_back(figure("strategies_total", "strategies", Format::kInteger, cell_of(found.strategies.size())));
  const MatmulRates& rates = *found.rates;
  out.figures.push_back(figure("machine.mesh", "mesh", Format::kText, text(found.mesh)));
  out.figures.push_back(
      figure("machine.compute_dtype", "matmuls run in", Format::kText, text(name_of(rates.compute_dtype))));
  out.figures.push_back(
      figure("machine.compute_flops_per_s", "matmul rate", Format::kFlopsPerSecond, rates.compute, "data sheet"));
  out.figures.push_back(figure("machine.hbm_bytes_per_s", "HBM", Format::kBytesPerSecond, rates.hbm, "data sheet"));
  out.figures.push_back(maybe_figure("machine.memory_bytes", "memory of a chip", Format::kBytes, rates.capacity));
  out.figures.push_back(
      figure("machine.network_bytes_per_s", rates.network_name, Format::kBytesPerSecond, rates.network));
  out.figures.push_back(
      figure("machine.alpha_flops_per_byte", "alpha: FLOPs in the time of a byte there", Format::kNumber, rates.alpha));
  return {"", "Result and machine", false, {std::move(out)}};
}

Block products(const MatmulAnswer& found) {
  Block out{"products", "Products"};
  for (const ProductCase& product : found.products) {
    std::vector<Record> axes;
    for (const AxisCase& axis : product.axes) {
      axes.push_back({{figure("axis", "", Format::kText, text(axis.axis)),
                       figure("case", "", Format::kInteger, cell_of(axis.number)),
                       figure("reason", "", Format::kText, text(axis.reason))}});
    }
    out.records.push_back(
        {{figure("product", "product", Format::kText, text(product.notation)),
          figure("case", "case", Format::kInteger, cell_of(product.whole.number)),
          list("contracted", "summed over", texts(product.contracted),
               product.contracted.empty() ? "nothing" : join(product.contracted, ", ")),
          figure("flops", "FLOPs", Format::kFlops, product.flops), records_figure("axes", "", "", std::move(axes))}});
  }
  return out;
}

/// The axes' cases once more, as a table.
Block axes(const MatmulAnswer& found) {
  Block out{"", "Mesh axes"};
  out.for_people = true;
  for (const ProductCase& product : found.products) {
    for (const AxisCase& axis : product.axes) {
      Record record;
      if (found.products.size() > 1) {
        record.figures.push_back(figure("product", "product", Format::kText, text(product.notation)));
      }
      record.figures.push_back(figure("axis", "axis", Format::kText, text(axis.axis)));
      record.figures.push_back(figure("case", "case", Format::kInteger, cell_of(axis.number)));
      record.figures.push_back(figure("reason", "it", Format::kText, text(axis.reason)));
      out.records.push_back(std::move(record));
    }
  }
  return out;
}

Block arrays(const MatmulAnswer& found, bool alone) {
  Block out{"arrays", alone ? "" : "Arrays"};
  for (const ArrayShare& array : found.arrays) {
    Record record{{figure("name", "", Format::kText, text(array.name)),
                   figure("notation", "array", Format::kText, text(array.notation)),
                   figure("role", "", Format::kText, text(array.role)),
                   with_importance(figure("dtype", "format", Format::kText, text(name_of(array.dtype))), 2),
                   with_importance(list("shape", "shape", sizes(array.shape), shape_text(array.shape)), 2),
                   list("local_shape", "on a chip", sizes(array.local_shape), shape_text(array.local_shape)),
                   figure("local_bytes", "bytes/chip", Format::kBytes, array.local_bytes),
                   with_importance(figure("bytes", "one copy", Format::kBytes, array.bytes), 3),
                   with_importance(figure("total_bytes", "all chips", Format::kBytes, array.total_bytes), 1),
                   figure("replicas", "copies", Format::kNumber, array.replicas, "all chips over one copy"),
                   figure("local_fraction", "", Format::kNumber, array.fraction, "a chip over one copy")}};
    if (array.padded_bytes) {
      record.figures.push_back(
          list("padded_shape", "in tiles", sizes(array.padded_shape), shape_text(array.padded_shape)));
      record.figures.push_back(figure("padded_bytes", "padded", Format::kBytes, *array.padded_bytes));
      record.figures.push_back(figure("padding_growth", "over needed", Format::kNumber, *array.padding_growth));
    }
    if (array.load_time)
      record.figures.push_back(
          with_importance(figure("load_time_s", "HBM read", Format::kSeconds, *array.load_time), 1));
    out.records.push_back(std::move(record));
  }
  return out;
}

Block comparisons(const MatmulAnswer& found) {
  Block out{"comparisons", "Strategies with one collective, two by two: how many times the other's"};
  for (const Comparison& c : found.comparisons) {
    out.records.push_back(
        {{figure("name", "", Format::kText, text(c.name)), figure("first", "this", Format::kText, text(c.first)),
          figure("second", "against", Format::kText, text(c.second)),
          figure("communication_ratio", "comms", Format::kNumber, c.communication_ratio, "book ch. 3, question 9"),
          figure("time_ratio", "time", Format::kNumber, c.time_ratio, "first over second"),
          figure("second_is_faster", "", Format::kFlag, flag(c.second_is_faster))}});
  }
  return out;
}

Block thresholds(const MatmulAnswer& found) {
  Block out{"thresholds", "Where it turns, all other sizes as they are"};
  for (const Threshold& t : found.thresholds) {
    out.records.push_back(
        {{figure("name", "", Format::kText, text(t.name)),
          figure("condition", "condition", Format::kText, text(t.condition)),
          figure("dimension", "", Format::kText, text(t.dimension)),
          figure("value", "value", Format::kNumber, t.value.with_name(t.name, "book ch. 3, question 4")),
          figure("holds", "holds", Format::kFlag, flag(t.holds))}});
  }
  return out;
}

Block measured(const MatmulAnswer& found) {
  Block out{"measured", "Measured, beside the best strategy's time"};
  for (const MeasuredMatmul& m : found.measured) {
    out.records.push_back({{figure("time_s", "measured", Format::kSeconds, m.time),
                            figure("roofline_fraction", "of the roofline", Format::kFraction, m.roofline_fraction,
                                   "best time over measured"),
                            maybe_figure("speedup_over_first", "over the first", Format::kNumber, m.speedup_over_first,
                                         "first over this"),
                            maybe_figure("speedup_over_previous", "over the one before", Format::kNumber,
                                         m.speedup_over_previous, "the one before over this")}});
  }
  return out;
}

void summarize(const MatmulAnswer& found, Output& out) {
  const Strategy& best = found.strategies.front();
  if (found.products.size() == 1) {
    const AxisCase& whole = found.products.front().whole;
    const std::string axis = whole.axis.empty() ? "" : "axis " + whole.axis + " ";
    say(out.summary, Role::kPlain, "Case {} of the book: {}{}.", whole.number, axis, whole.reason);
  }
  const std::string time = seconds_text(value_of(best.time));
  const std::string tail = best.collectives.empty() ? "nothing is sent"
                                                    : fmt::format("{} if communication does not run under the matmul",
                                                                  seconds_text(value_of(best.upper_time)));
  say(out.summary, Role::kGood, "Fastest{}: {}: {}, {}.", best.fits ? "" : ", and too large", best.name, time, tail);
  const Strategy* literal = as_written(found);
  if (literal == nullptr || literal->rank == best.rank || value_of(best.time) <= 0) return;
  say(out.summary, Role::kPlain, "As written, other axes idle: {}: {}, {} times that.", literal->name,
      seconds_text(value_of(literal->time)),
      format_quantity(value_of(literal->time) / value_of(best.time), UnitKind::kNumber));
}

/// From one layout of an array to another.
Block routes(const MatmulAnswer& found) {
  Block out{"routes", ""};
  for (const Redistribution& route : found.routes) {
    std::vector<Record> collectives;
    std::vector<std::string> told;
    for (const CollectiveUse& use : route.collectives) {
      collectives.push_back(collective_record(use));
      told.push_back(fmt::format("{} {} over {}", name_of(use.kind), use.array, use.axes));
    }
    out.records.push_back({{figure("name", "way", Format::kText, text(route.name)),
                            figure("time_s", "time", Format::kSeconds, route.time),
                            with_importance(figure("memory_bytes", "memory/chip", Format::kBytes, route.memory,
                                                   "parts as given, between and as left"),
                                            1),
                            figure("idle_axes_help", "", Format::kFlag, flag(route.detour)),
                            list("steps", "", texts(route.steps), route.name),
                            records_figure("collectives", "", join(told, ", "), std::move(collectives))}});
  }
  return out;
}

Block collectives_of_route(const Redistribution& route) {
  Block out{"", "Collectives of the fastest"};
  out.for_people = true;
  for (const CollectiveUse& use : route.collectives) out.records.push_back(collective_record(use));
  return out;
}

}  // namespace

Output matmul_output(const MatmulAnswer& found, const HardwareSpec* hw, std::size_t top) {
  const Mesh& mesh = found.problem.tables.mesh;
  Output out{.command = "matmul"};
  out.title = fmt::format("{} on {} chip{}{}", found.problem.expression, group_thousands(mesh.chips()),
                          mesh.chips() == 1 ? "" : "s", hw == nullptr ? "" : " of " + hw->title);
  out.query = query(found, hw);
  if (!found.routes.empty()) {
    const Redistribution& best = found.routes.front();
    say(out.summary, Role::kGood, "{}: {}.", best.name, seconds_text(value_of(best.time)));
    out.blocks.push_back(routes(found));
    if (!best.collectives.empty()) out.blocks.push_back(collectives_of_route(best));
    out.blocks.push_back(arrays(found, false));
  } else if (found.products.empty()) {
    out.blocks.push_back(arrays(found, true));
  } else {
    summarize(found, out);
    out.blocks.push_back(strategies(found, top));
    const std::size_t listed = out.blocks.back().records.size();
    if (listed < found.strategies.size()) {
      out.notes.push_back(fmt::format("{} of {} strategies are listed; --top {} lists all.", listed,
                                      found.strategies.size(), found.strategies.size()));
    }
    if (!found.strategies.front().collectives.empty())
      out.blocks.push_back(collectives_of_best(found.strategies.front()));
    out.blocks.push_back(in_full(overview(found)));
    out.blocks.push_back(in_full(axes(found)));
    out.blocks.push_back(in_full(products(found)));
    out.blocks.push_back(arrays(found, false));
    if (!found.comparisons.empty()) out.blocks.push_back(in_full(comparisons(found)));
    if (!found.thresholds.empty()) out.blocks.push_back(thresholds(found));
    if (!found.measured.empty()) out.blocks.push_back(measured(found));
  }
  out.assumptions = found.assumptions;
  out.notes.insert(out.notes.end(), found.notes.begin(), found.notes.end());
  return out;
}

}  // namespace scalecalc
