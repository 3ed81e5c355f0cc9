// Shows the cost of a compiled program: its products, collectives, memory and shardings.
#include "profile/hlo_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"

namespace scalecalc {
namespace {

Figure hlo_number(std::string_view key, std::string_view label, Format format, double value, int importance = 0) {
  return with_importance(figure(key, label, format, Cell(value)), importance);
}

Block program_block(const HloProgram& p) {
  return {.key = "",
          .title = "Program",
          .is_list = false,
          .records = {{{text_figure("program", "module", p.name), count_figure("devices", p.devices, "devices"),
                        number_figure("scheduled", "scheduled", Format::kFlag, p.scheduled ? 1 : 0),
                        hlo_number("flops", "FLOPs of a device", Format::kFlops, p.flops),
                        hlo_number("bytes", "bytes moved", Format::kBytes, p.bytes),
                        hlo_number("compute_s", "operations", Format::kSeconds, p.compute_s),
                        hlo_number("communication_s", "collectives", Format::kSeconds, p.communication_s),
                        hlo_number("step_time_low_s", "step, communication hidden", Format::kSeconds, p.least_s),
                        hlo_number("step_time_high_s", "step, nothing hidden", Format::kSeconds, p.most_s),
                        number_figure("step_time_s", "step as scheduled", Format::kSeconds, p.scheduled_s),
                        hlo_number("parameter_bytes", "parameters", Format::kBytes, p.memory.parameters),
                        hlo_number("result_bytes", "results", Format::kBytes, p.memory.results),
                        hlo_number("aliased_bytes", "of them in donated parameters", Format::kBytes, p.memory.aliased),
                        hlo_number("constant_bytes", "constants", Format::kBytes, p.memory.constants),
                        hlo_number("temporary_bytes", "temporaries and results at the peak", Format::kBytes,
                                   p.memory.temporaries),
                        text_figure("peak_at", "at", p.memory.at),
                        hlo_number("peak_bytes", "peak", Format::kBytes, p.memory.peak()),
                        hlo_number("peak_share", "of the chip's HBM", Format::kFraction,
                                   p.memory.peak() / p.hw.hbm_capacity.value())}}},
          .section = "program"};
}

Block works_block(const HloProgram& p) {
  Block out{.key = "operations", .title = "Operations"};
  for (const HloWork& w : p.works) {
    out.records.push_back(
        {{text_figure("work", "work", name_of(w.work)), hlo_number("count", "count", Format::kNumber, w.count),
          hlo_number("flops", "FLOPs", Format::kFlops, w.flops), hlo_number("bytes", "bytes", Format::kBytes, w.bytes),
          hlo_number("time_s", "time", Format::kSeconds, w.time_s)}});
  }
  return out;
}

Block products_block(const HloProgram& p, std::size_t top) {
  Block out{.key = "products", .title = "Products"};
  for (std::size_t i = 0; i < std::min(top, p.products.size()); ++i) {
    const HloProduct& product = p.products[i];
    out.records.push_back(
        {{text_figure("what", "what", product.what), hlo_number("count", "count", Format::kNumber, product.count),
          hlo_number("flops", "FLOPs", Format::kFlops, product.flops),
          hlo_number("time_s", "at peak", Format::kSeconds, product.time_s)}});
  }
  return out;
}

Block hlo_collectives_block(const HloProgram& p) {
  Block out{.key = "collectives", .title = "Collectives"};
  for (const HloCollective& c : p.collectives) {
    out.records.push_back(
        {{text_figure("kind", "collective", c.kind), count_figure("group_size", c.groups.size, "devices"),
          number_figure("stride", "stride", Format::kInteger,
                        c.groups.stride > 0 ? std::optional(static_cast<double>(c.groups.stride)) : std::nullopt),
          figure("axis", "axis", Format::kText, c.axis.empty() ? Cell{} : Cell(c.axis)),
          hlo_number("count", "count", Format::kNumber, c.count), hlo_number("bytes", "bytes", Format::kBytes, c.bytes),
          number_figure("time_s", "time", Format::kSeconds, c.time_s),
          number_figure("asynchronous", "async", Format::kFlag, c.asynchronous ? 1 : 0, 1)}});
  }
  return out;
}

Block axes_block(const HloProgram& p) {
  Block out{.key = "axes", .title = "Axes", .for_files = p.mesh.axes.empty()};
  for (const HloAxis& axis : p.mesh.axes) {
    out.records.push_back({{text_figure("name", "axis", axis.name), count_figure("size", axis.size, "devices"),
                            count_figure("stride", axis.stride, "stride")}});
  }
  return out;
}

Block arrays_block(const HloProgram& p, std::size_t top) {
  constexpr std::size_t kBriefArrays = 6;
  Block out{.key = "arrays", .title = "Annotated arrays", .for_files = p.arrays.empty(), .brief_rows = kBriefArrays};
  for (std::size_t i = 0; i < std::min(top, p.arrays.size()); ++i) {
    const HloShardedArray& a = p.arrays[i];
    const auto or_none = [](const std::string& text) { return text.empty() ? Cell{} : Cell(text); };
    out.records.push_back({{text_figure("name", "array", a.name, 2), text_figure("format", "format", a.type),
                            figure("notation", "notation", Format::kText, or_none(a.notation)),
                            figure("sizes", "whole", Format::kText, or_none(a.sizes)),
                            hlo_number("count", "alike", Format::kNumber, a.count),
                            hlo_number("local_bytes", "each, on a device", Format::kBytes, a.local_bytes),
                            text_figure("sharding", "", a.said)}});
  }
  return out;
}

Block sharded_block(const HloProgram& p, std::size_t top) {
  Block out{.key = "matmuls", .title = "Products by their annotations", .for_files = p.sharded.empty()};
  for (std::size_t i = 0; i < std::min(top, p.sharded.size()); ++i) {
    const HloShardedProduct& product = p.sharded[i];
    const std::string command =
        product.command.empty() ? "" : fmt::format("scalecalc {} --hw {}", product.command, p.hw.name);
    out.records.push_back(
        {{text_figure("expression", "", product.expression),
          hlo_number("count", "places", Format::kNumber, product.count),
          figure("command", "continue with", Format::kText, command.empty() ? Cell{} : Cell(command))}});
  }
  return out;
}

}  // namespace

Output hlo_output(const HloProgram& program, const std::string& file, std::size_t top) {
  Output out{.command = "profile-hlo",
             .title = fmt::format("{} on {}", program.name, program.hw.title),
             .query = {{list_figure("files", "", {Cell(file)}), text_figure("hardware_title", "", program.hw.title)}},
             .assumptions = program.assumptions};
  say(out.headline, "{} and {} a device: a step of {} to {}{}", text_of(program.flops, Format::kFlops),
      bytes_text(program.bytes), seconds_text(program.least_s), seconds_text(program.most_s),
      program.scheduled_s ? fmt::format(", as scheduled {}", seconds_text(*program.scheduled_s)) : "");
  say(out.headline, "{} of memory at the peak, {} of a chip's", bytes_text(program.memory.peak()),
      fraction_text(program.memory.peak() / program.hw.hbm_capacity.value()));
  out.blocks = {program_block(program),         works_block(program), products_block(program, top),
                hlo_collectives_block(program), axes_block(program),  arrays_block(program, top),
                sharded_block(program, top)};
  out.lines_of = "collectives";
  return out;
}

}  // namespace scalecalc
