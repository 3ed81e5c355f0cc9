#include "report/hlo_output.h"

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
                        hlo_number("parameter_bytes", "parameters", Format::kBytes, p.parameter_bytes),
                        hlo_number("result_bytes", "results", Format::kBytes, p.result_bytes)}}},
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
  Block out{.key = "axes", .title = "Axes", .for_files = p.axes.empty()};
  for (const HloAxis& axis : p.axes) {
    out.records.push_back({{text_figure("name", "axis", axis.name), count_figure("size", axis.size, "devices"),
                            count_figure("stride", axis.stride, "stride")}});
  }
  return out;
}

}  // namespace

Output hlo_output(const HloProgram& program, const std::string& file, std::size_t top) {
  Output out{.command = "profile-hlo",
             .title = fmt::format("{} on {}", program.name, program.hw.title),
             .query = {{list_figure("files", "", {Cell(file)}), text_figure("hardware_title", "", program.hw.title)}},
             .assumptions = program.assumptions};
  say(out.headline, "{} and {} a device: a step of {} to {}", text_of(program.flops, Format::kFlops),
      bytes_text(program.bytes), seconds_text(program.least_s), seconds_text(program.most_s));
  out.blocks = {program_block(program), works_block(program), products_block(program, top),
                hlo_collectives_block(program), axes_block(program)};
  out.lines_of = "collectives";
  return out;
}

}  // namespace scalecalc
