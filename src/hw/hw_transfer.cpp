// Computes the times of moving bytes between chips and from hosts, for `scalecalc hw`. Scaling book, chapter 2
// (questions 5 and 6: the terms of a point-to-point transfer add; a pipeline takes its slowest stage, at best).
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "hw/hw.h"
#include "hw/named_rates.h"
#include "network/point_to_point.h"
#include "network/slice.h"

namespace scalecalc {
namespace {

Traced count(std::int64_t value, const char* name, const std::string& source) {
  return kReader.input(static_cast<double>(value), name, source);
}

std::string coordinates(const Shape& at) {
  std::string out;
  for (const std::int64_t x : at) out += fmt::format("{}{}", out.empty() ? "" : ",", x);
  return out;
}

/// The axes of "4x4x8".
Shape shape_of(const HwSlice& slice) { return parse_shape(slice.shape); }

void check_inside(const char* flag, const Shape& at, const Shape& shape) {
  bool inside = at.size() == shape.size();
  for (std::size_t a = 0; inside && a < at.size(); ++a) inside = at[a] >= 0 && at[a] < shape[a];
  if (inside) return;
  std::string last;
  for (const std::int64_t axis : shape) last += fmt::format("{}{}", last.empty() ? "" : ",", axis - 1);
  throw UserError(fmt::format("{} {} is no chip of this slice", flag, coordinates(at)),
                  fmt::format("its chips are {} to {}", coordinates(Shape(shape.size(), 0)), last));
}

class Sender {
 public:
  Sender(const HardwareSpec& hw, const SendQuestion& send, const HwSlice& slice, std::vector<Assumption>& assumptions)
      : hw_(hw),
        rates_(read_network(kReader, hw, ideal_efficiency(hw.efficiency))),
        send_(send),
        slice_(slice),
        assumptions_(assumptions) {}

  HwSend run() { return hw_.is_torus() ? over_torus() : over_switches(); }

 private:
  TracedBytes bytes() const { return read(kReader, send_.bytes, "bytes", "--bytes"); }

  HwSend over_torus() {
    const Shape shape = shape_of(slice_);
    if (shape.empty())
      throw UserError(fmt::format("{} have no shape, so no way between two of them is known", slice_.shape),
                      "give --topology");
    check_inside("--from", send_.from, shape);
    check_inside("--to", send_.to, shape);
    std::int64_t hops = 0;
    std::int64_t axes = 0;
    for (std::size_t a = 0; a < shape.size(); ++a) {
      const std::int64_t straight = std::abs(send_.to[a] - send_.from[a]);
      const std::int64_t way = slice_.wraps[a] ? std::min(straight, shape[a] - straight) : straight;
      hops += way;
      axes += way > 0 ? 1 : 0;
    }
    HwSend out;
    out.hops = count(hops, "hops", "shortest way, round the ring where an axis wraps");
    out.ports = ports(axes);
    require_bandwidth(hw_, 0);
    require_latency(hw_, 0);
    take(torus_way(hw_, rates_, hops), static_cast<std::int64_t>(out.ports->value()), out);
    return out;
  }

  Traced ports(std::int64_t axes) {
    if (send_.ports) return count(*send_.ports, "ports", "--ports");
    const std::int64_t used = std::max<std::int64_t>(axes, 1);
    assumptions_.push_back(Assumption{
        fmt::format("sent over {} link{} of the chip, one for each axis it moves along", used, used == 1 ? "" : "s"),
        "--ports", "scaling book, chapter 2"}
                               .is(static_cast<double>(used)));
    return count(used, "ports", "axes it moves along");
  }

  HwSend over_switches() {
    const std::int64_t chips = static_cast<std::int64_t>(slice_.chips.value());
    for (const auto& [flag, at] : {std::pair{"--from", &send_.from}, std::pair{"--to", &send_.to}}) {
      if (at->size() == 1 && at->front() >= 0 && at->front() < chips) continue;
      throw UserError(fmt::format("{} {} is no chip of these", flag, coordinates(*at)),
                      fmt::format("chips are numbered 0 to {}; --chips asks for more", group_thousands(chips - 1)));
    }
    HwSend out;
    take(switched_way(hw_, rates_, send_.from.front(), send_.to.front()), 1, out);
    return out;
  }

  void take(const Way& way, std::int64_t links, HwSend& out) const {
    const TransferTime time = transfer_time(way, bytes(), links);
    out.first_byte = time.latency;
    out.transfer = time.bandwidth_time;
    out.total = time.time;
  }

  const HardwareSpec& hw_;
  NetworkRates<Traced> rates_;
  const SendQuestion& send_;
  const HwSlice& slice_;
  std::vector<Assumption>& assumptions_;
};

class Loader {
 public:
  Loader(const HardwareSpec& hw, const HwQuestion& question, const HwSlice& slice, std::vector<Assumption>& assumptions)
      : hw_(hw), load_(*question.load), dtype_(question.dtype), slice_(slice), assumptions_(assumptions), rates_(hw) {}

  HwLoad run() {
    require_published(hw_, {"hbm.bandwidth"});
    HwLoad out;
    out.bytes = named(TracedBytes(kReader.input(load_.elements, "elements", "--load") *
                                  kReader.input(bytes_per_element(load_.dtype), "bytes of an element", "--load-dtype")),
                      "array", "elements x their size");
    out.shard = named(out.bytes / slice_.chips, "a chip's shard", "array over chips");
    host(out);
    if (slice_.chips.value() > 1) out.gather = gather(out.bytes);
    out.memory = named(out.bytes / rates_.hbm(), "one chip reads all of it", "array over HBM bandwidth");
    out.shard_memory = named(out.shard / rates_.hbm(), "each chip reads its shard", "book ch. 2, question 1");
    multiply(out);
    stages(out);
    return out;
  }

 private:
  void host(HwLoad& out) {
    if (!hw_.pcie_bandwidth) {
      assumptions_.push_back({fmt::format("{} gives no host link rate: reading from the hosts is left out", hw_.name),
                              "--set hw.host.pcie_bandwidth", "hardware file", true});
      return;
    }
    out.host = named(out.shard / rates_.pcie(), "hosts to chips", "book ch. 2, question 6: every chip loads its shard");
  }

  TracedSeconds gather(const TracedBytes& bytes) {
    const Traced others = (slice_.chips - Traced(1.0)) / slice_.chips;
    if (!hw_.is_torus()) {
      return named(bytes * others / rates_.scale_up(), "gathered to one chip",
                   "book ch. 12: V (N-1)/N over its ingress");
    }
    return named(bytes * others / (rates_.link() * ports()), "gathered to one chip",
                 "book ch. 2, question 6: V (n-1)/n over its ports");
  }

  /// Links into a corner of the slice: two on an axis that wraps, one on one that does not.
  Traced ports() {
    if (load_.ports) return count(*load_.ports, "ports", "--ports");
    const Shape shape = shape_of(slice_);
    if (shape.empty())
      throw UserError(fmt::format("{} have no shape, so the links into one of them are not known", slice_.shape),
                      "give --topology, or --ports");
    std::int64_t links = 0;
    for (std::size_t a = 0; a < shape.size(); ++a) links += shape[a] == 1 ? 0 : slice_.wraps[a] ? 2 : 1;
    assumptions_.push_back(
        Assumption{fmt::format("gathered over {} link{} into a corner chip", links, links == 1 ? "" : "s"), "--ports",
                   "scaling book, chapter 2"}
            .is(static_cast<double>(links)));
    return count(links, "ports", "links of a corner chip");
  }

  void multiply(HwLoad& out) {
    if (load_.batch == 0) return;
    const Traced shape = count(*load_.rows, "rows", "--load") * count(*load_.columns, "columns", "--load");
    out.flops = named(TracedFlops(Traced(2.0) * count(load_.batch, "batch", "--batch") * shape),
                      "FLOPs of the multiply", "2 x batch x rows x columns");
    const auto published = [&](DType dtype) { return hw_.matmul_peak[static_cast<std::size_t>(dtype)].has_value(); };
    const DType dtype = dtype_.value_or(published(DType::kBf16) ? DType::kBf16 : DType::kFp16);
    out.math = named(*out.flops / rates_.matmul(dtype), "multiply on one chip", "book ch. 1: FLOPs / C");
  }

  void stages(HwLoad& out) {
    out.pipelined = out.memory;
    out.serial = out.memory;
    for (const Maybe<TracedSeconds>& stage : {out.host, out.gather, out.math}) {
      if (!stage) continue;
      out.pipelined = max(out.pipelined, *stage);
      out.serial = out.serial + *stage;
    }
    out.pipelined = named(out.pipelined, "all at once, at best", "book ch. 2, question 6: the slowest stage");
    out.serial = named(out.serial, "one after the other", "the sum of the stages");
  }

  const HardwareSpec& hw_;
  const LoadQuestion& load_;
  std::optional<DType> dtype_;
  const HwSlice& slice_;
  std::vector<Assumption>& assumptions_;
  NamedRates rates_;
};

const HwSlice& needed(const std::optional<HwSlice>& slice, const HardwareSpec& hw, const char* flag) {
  if (slice) return *slice;
  require_published(hw, {"network"});
  throw UserError(fmt::format("{} needs chips to move bytes between", flag), "give --chips or --topology");
}

}  // namespace

HwSend send_of(const HardwareSpec& hw, const HwQuestion& question, const std::optional<HwSlice>& slice,
               std::vector<Assumption>& assumptions) {
  require_published(hw, {"network"});
  return Sender(hw, *question.send, needed(slice, hw, "--to"), assumptions).run();
}

HwLoad load_of(const HardwareSpec& hw, const HwQuestion& question, const std::optional<HwSlice>& slice,
               std::vector<Assumption>& assumptions) {
  return Loader(hw, question, needed(slice, hw, "--load"), assumptions).run();
}

HwPadding padding_of(const HardwareSpec& hw, std::int64_t rows, std::int64_t columns) {
  if (!hw.units.mxu) {
    throw UserError(fmt::format("--pad: {} gives no width of a matrix unit", hw.name),
                    "give one: --set hw.units.mxu.dim=128 --set hw.units.cores=1");
  }
  const Traced dim = count(hw.units.mxu->dim, "hw.units.mxu.dim", hw.units.source);
  const auto padded = [&](std::int64_t size, const char* name) {
    return named(ceil(count(size, name, "--pad") / dim) * dim, fmt::format("padded {}", name),
                 "book ch. 2: up to a multiple of the matrix unit's width");
  };
  HwPadding out;
  out.rows = padded(rows, "rows");
  out.columns = padded(columns, "columns");
  out.useful = named(count(rows, "rows", "--pad") * count(columns, "columns", "--pad") / (out.rows * out.columns),
                     "useful share", "elements over padded elements");
  return out;
}

}  // namespace scalecalc
