// Finds the machine of a training question, for resolve: slices of the count or shape asked for, and smaller ones.
#include "train/resolve_machine.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "plan/dimensions.h"

namespace scalecalc {
namespace {

class MachineFinder {
 public:
  MachineFinder(const TrainQuestion& question, ResolvedQuestion& out) : q_(question), out_(out) {}

  void run() {
    if (q_.topology) {
      const Shape shape = parse_shape(*q_.topology);
      if (shape.empty() || !out_.hw.is_torus()) {
        throw UserError(
            fmt::format("--topology {} is not a slice shape of {}", *q_.topology, out_.hw.name),
            out_.hw.is_torus() ? "write axis sizes, such as 8x8x16" : "only torus machines have shapes; give --chips");
      }
      out_.slices = slice_of_shape(out_.hw, shape, q_.slices);
      if (out_.slices.empty())
        throw UserError(fmt::format("{} builds no {} slice", out_.hw.name, *q_.topology), shape_hint());
      if (q_.chips != 0 && q_.chips != out_.slices.front().chips) {
        throw UserError(fmt::format("--topology {} has {} chips, --chips says {}", *q_.topology,
                                    group_thousands(out_.slices.front().chips), group_thousands(q_.chips)),
                        "leave one of them out");
      }
    } else {
      out_.slices = slices_of(out_.hw, q_.chips, q_.slices);
      if (out_.slices.empty()) {
        const SliceError error = no_slice(out_.hw, q_.chips, q_.slices);
        throw UserError(error.message, error.hint);
      }
      most_cubic();
      smaller_machines();
    }
    largest_job();
    parts_of_domains();
  }

 private:
  Assumption& assume(std::string text, std::string flag, std::string source, bool warning = false) {
    return out_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source), warning});
  }

  /// Racks and nodes that the job does not fill.
  void parts_of_domains() {
    const Slice& slice = out_.slices.front();
    if (slice.per_domain == 0 || slice.chips <= out_.hw.chips_per_host) return;
    const Tier& tier = out_.hw.network.front();
    if (slice.per_domain == tier.switched.chips) return;
    const std::int64_t domains = slice.chips / slice.per_domain;
    std::string text = fmt::format("{} of the {} chips of {} {} are used", slice.per_domain, tier.switched.chips,
                                   domains == 1 ? "one" : "each", tier.name);
    if (domains > 1) {
      text += fmt::format(": {} divide evenly over no fewer than {}", group_thousands(slice.chips),
                          group_thousands(domains));
    }
    const bool mostly_idle = domains > 1 && 2 * slice.per_domain < tier.switched.chips;
    assume(std::move(text), "--chips", tier.source, mostly_idle);
  }

  /// A pod of switched units can be cabled to dozens of boxes of one count; long ones only lose links to everywhere.
  void most_cubic() {
    constexpr std::size_t kShapes = 4;
    if (out_.slices.size() <= kShapes) return;
    std::sort(out_.slices.begin(), out_.slices.end(), [](const Slice& a, const Slice& b) {
      return std::lexicographical_compare(a.shape.rbegin(), a.shape.rend(), b.shape.rbegin(), b.shape.rend());
    });
    out_.shapes_left_out = out_.slices.size() - kShapes;
    out_.slices.resize(kShapes);
  }

  std::string shape_hint() const {
    const TorusTier& torus = out_.hw.network.front().torus;
    if (!torus.unit.empty())
      return fmt::format("axes are whole multiples of {}, at most {} chips", torus.unit[0],
                         group_thousands(torus.max_chips));
    return fmt::format("at most {} chips; see the shapes in its hardware file", group_thousands(torus.max_chips));
  }

  /// Who pins the data ranks asks about the whole machine, unless all degrees together make a smaller one.
  bool asked_about(std::int64_t count) const { return (!q_.fix.dp && !q_.fix.fsdp) || pinned_chips(q_.fix) == count; }

  /// Fewer chips can be faster or cheaper per token when their number divides better: the largest slice of the form
  /// {1, 3, 5, 7} x 2^k in the upper half of what was asked for. Who asks for the fewest chips gets them all.
  void smaller_machines() {
    const bool all = q_.objective == Objective::kChips;
    for (const std::int64_t odd : {1, 3, 5, 7}) {
      std::int64_t count = odd;
      while (count * 2 <= q_.chips) count *= 2;
      for (; count >= 1 && (all || count * 2 > q_.chips); count /= 2) {
        if (count >= q_.chips || count % odd != 0 || !asked_about(count)) continue;
        if (offer_smaller(count) && !all) break;
      }
    }
  }

  /// The most cubic shape has the shortest longest axis: the most links to everywhere.
  bool offer_smaller(std::int64_t count) {
    const std::vector<Slice> found = slices_of(out_.hw, count, q_.slices);
    if (found.empty()) return false;
    out_.slices.push_back(*std::min_element(found.begin(), found.end(), [](const Slice& a, const Slice& b) {
      return a.shape.empty() ? false : a.shape.back() < b.shape.back();
    }));
    return true;
  }

  void largest_job() {
    if (!out_.hw.is_torus()) return;
    const TorusTier& torus = out_.hw.network.front().torus;
    const std::int64_t each = out_.slices.front().chips / out_.slices.front().slices;
    if (torus.largest_job > 0 && each > torus.largest_job) {
      assume(fmt::format("the vendor rents slices of up to {} chips as one job; {} is the whole pod",
                         group_thousands(torus.largest_job), group_thousands(each)),
             "--chips", out_.hw.network.front().source, true)
          .as("largest_job_chips")
          .is(static_cast<double>(torus.largest_job));
    }
  }

  const TrainQuestion& q_;
  ResolvedQuestion& out_;
};

}  // namespace

void resolve_machine(const TrainQuestion& question, ResolvedQuestion& out) { MachineFinder(question, out).run(); }

}  // namespace scalecalc
