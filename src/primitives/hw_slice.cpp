// A slice of a torus or some chips under switches: what it consists of and what it does together. Scaling book,
// chapter 2 ("TPU Networking", questions 1 and 2), chapter 12.
#include <fmt/format.h>

#include <algorithm>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"
#include "network/slice.h"
#include "network/tier_rates.h"
#include "primitives/hw.h"
#include "primitives/named_rates.h"

namespace scalecalc {
namespace {

std::int64_t product(const Shape& shape) {
  std::int64_t out = 1;
  for (const std::int64_t axis : shape) out *= axis;
  return out;
}

std::string shape_text(const Shape& shape) {
  std::string out;
  for (const std::int64_t axis : shape) out += fmt::format("{}{}", out.empty() ? "" : "x", axis);
  return out;
}

class Slicer {
 public:
  Slicer(const HardwareSpec& hw, const HwQuestion& question, std::vector<Assumption>& assumptions)
      : hw_(hw), q_(question), assumptions_(assumptions) {}

  std::optional<HwSlice> run() {
    const bool asked = q_.chips || !q_.topology.empty();
    if (!asked && !hw_.publishes("network")) return std::nullopt;
    if (hw_.is_torus()) {
      torus();
    } else {
      switched();
    }
    together();
    return std::move(out_);
  }

 private:
  void torus() {
    if (!q_.topology.empty() || q_.chips) require_pod(hw_);
    const TorusTier& torus = hw_.network.front().torus;
    if (!q_.topology.empty()) {
      given(torus);
    } else if (q_.chips && *q_.chips != torus.max_chips) {
      chosen();
    } else {
      shape_ = torus.pod;
      chips_ = torus.max_chips;
      out_.whole_pod = true;
      source_ = hw_.network.front().source;
    }
    out_.chips = kReader.input(static_cast<double>(chips_), "chips", source_);
    if (shape_.empty()) {
      out_.shape = chips_text();
      return;
    }
    out_.wraps = wraparounds(torus, shape_);
    out_.shape = shape_text(shape_);
    if (whole_units(torus)) {
      const Traced unit =
          kReader.input(static_cast<double>(product(torus.unit)), "chips of a unit", hw_.network.front().source);
      out_.units = named(out_.chips / unit, "units", "book ch. 2: cubes");
    }
    bisect();
  }

  std::string chips_text() const { return fmt::format("{} chip{}", group_thousands(chips_), chips_ == 1 ? "" : "s"); }

  bool whole_units(const TorusTier& torus) const {
    Shape have = shape_;
    Shape unit = torus.unit;
    std::sort(have.begin(), have.end());
    std::sort(unit.begin(), unit.end());
    for (std::size_t i = 0; i < unit.size(); ++i) {
      if (have[i] % unit[i] != 0) return false;
    }
    return !unit.empty();
  }

  void given(const TorusTier& torus) {
    shape_ = q_.topology;
    chips_ = product(shape_);
    source_ = "--topology";
    if (static_cast<std::int64_t>(shape_.size()) != torus.dimensions()) {
      throw UserError(fmt::format("--topology {} has {} axes, {} has {}", shape_text(shape_), shape_.size(), hw_.name,
                                  torus.dimensions()),
                      fmt::format("its pod is {}", shape_text(torus.pod)));
    }
    if (q_.chips && *q_.chips != chips_) {
      throw UserError(fmt::format("--topology {} has {} chips, --chips says {}", shape_text(shape_),
                                  group_thousands(chips_), group_thousands(*q_.chips)),
                      "leave one of them out");
    }
    if (slice_of_shape(hw_, shape_, 1).empty()) {
      assumptions_.push_back({fmt::format("the vendor builds no {} slice of {}; wraparound as its rule would have it",
                                          shape_text(shape_), hw_.name),
                              "--topology", hw_.network.front().source, true});
    }
  }

  /// The most cubic of the boxes that the vendor builds for a count. A count that is none has totals and no shape.
  void chosen() {
    const std::vector<Slice> found = slices_of(hw_, *q_.chips, 1);
    chips_ = *q_.chips;
    source_ = "--chips";
    if (found.empty()) {
      unbuilt();
      return;
    }
    shape_ = std::min_element(found.begin(), found.end(), [](const Slice& a, const Slice& b) {
               return a.shape.back() < b.shape.back();
             })->shape;
    if (found.size() > 1) {
      assumptions_.push_back({fmt::format("{} chips as {}, the most cubic of {} shapes", group_thousands(chips_),
                                          shape_text(shape_), found.size()),
                              "--topology", "scalecalc"});
    }
  }

  void unbuilt() {
    const SliceError error = no_slice(hw_, chips_, 1);
    assumptions_.push_back(
        {error.message + (error.hint.empty() ? "" : "; " + error.hint), "--chips", "hardware file", true});
  }

  void switched() {
    if (!q_.topology.empty()) {
      throw UserError(fmt::format("--topology {}: {} is no torus", shape_text(q_.topology), hw_.name), "give --chips");
    }
    const std::int64_t node = hw_.network.empty() ? 1 : hw_.network.front().switched.chips;
    chips_ = q_.chips.value_or(node > 0 ? node : hw_.chips_per_host);
    source_ = q_.chips ? "--chips" : "the innermost domain";
    if (hw_.publishes("host") && slices_of(hw_, chips_, 1).empty()) unbuilt();
    out_.shape = chips_text();
    out_.chips = kReader.input(static_cast<double>(chips_), "chips", source_);
  }

  /// Half of the chips on each side of a cut through the longest axis; a ring is cut at two links.
  void bisect() {
    const auto longest = std::max_element(shape_.begin(), shape_.end());
    if (*longest < 2 || !publishes_bandwidth(hw_, 0)) return;
    const std::size_t axis = static_cast<std::size_t>(longest - shape_.begin());
    const Traced across =
        kReader.input(static_cast<double>(chips_ / *longest), "lines along the longest axis", source_);
    const Traced cut = kReader.input(out_.wraps[axis] ? 2 : 1, "links cut on each", "wraparound");
    out_.bisection_one_way = named(NamedRates(hw_).link() * (across * cut), "bisection bandwidth, one way",
                                   "book ch. 3: links across a cut through the longest axis");
    out_.bisection = named(*out_.bisection_one_way * Traced(2.0), "bisection bandwidth, both ways", "x 2");
  }

  void together() {
    const NamedRates rates(hw_);
    if (hw_.publishes("host")) {
      const Traced each = kReader.input(static_cast<double>(hw_.chips_per_host), "hw.host.chips", hw_.host_source);
      out_.hosts = named(ceil(out_.chips / each), "hosts", "chips over chips of a host");
    }
    if (hw_.units.cores > 0) {
      out_.cores =
          named(out_.chips * kReader.input(static_cast<double>(hw_.units.cores), "hw.units.cores", hw_.units.source),
                "cores", "chips x cores of a chip");
    }
    for (std::size_t i = 0; i < kDTypeCount; ++i) {
      if (!hw_.matmul_peak[i]) continue;
      const DType dtype = static_cast<DType>(i);
      out_.matmul.emplace_back(
          dtype, named(rates.matmul(dtype) * out_.chips, fmt::format("{} of all chips", name_of(dtype)), "x chips"));
    }
    if (hw_.publishes("hbm.capacity"))
      out_.memory = named(rates.hbm_capacity() * out_.chips, "memory of all chips", "x chips");
    if (hw_.publishes("hbm.bandwidth")) {
      out_.memory_bandwidth = named(rates.hbm() * out_.chips, "memory bandwidth of all chips", "x chips");
    }
    egress(rates);
    if (!hw_.prices.empty()) {
      const Price& price = hw_.prices.front();
      out_.usd_per_hour =
          named(out_.chips * kReader.input(price.usd_per_chip_hour, "hw.prices.0.usd_per_chip_hour", price.source),
                "dollars per hour", "x chips");
    }
    if (hw_.tdp) {
      out_.power = named(read(kReader, *hw_.tdp, "hw.power.tdp", hw_.tdp_source) * out_.chips, "power of all chips",
                         "x chips, without hosts and cooling");
    }
  }

  void egress(const NamedRates& rates) {
    if (hw_.network.size() < 2 || !publishes_tier(hw_, 1) || !hw_.publishes("host")) return;
    const Traced each = kReader.input(static_cast<double>(hw_.chips_per_host), "hw.host.chips", hw_.host_source);
    out_.host_egress =
        named(rates.scale_out() * each, "egress of a host", "book ch. 2: a chip's share x chips of a host");
  }

  const HardwareSpec& hw_;
  const HwQuestion& q_;
  std::vector<Assumption>& assumptions_;
  Shape shape_;
  std::int64_t chips_ = 0;
  std::string source_;
  HwSlice out_;
};

}  // namespace

std::optional<HwSlice> slice_of(const HardwareSpec& hw, const HwQuestion& question,
                                std::vector<Assumption>& assumptions) {
  return Slicer(hw, question, assumptions).run();
}

}  // namespace scalecalc
