// The chips a question is about: how many, in how many slices, and which axes and degrees they are given to.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/diagnostic.h"
#include "base/scalar.h"
#include "base/units.h"
#include "rules/bound_inputs.h"

namespace scalecalc {
namespace {

std::string shape_text(const Shape& shape) {
  std::string out;
  for (const std::int64_t axis : shape) out += (out.empty() ? "" : "x") + std::to_string(axis);
  return out;
}

/// Product of the degrees given; nothing if none is.
std::optional<std::int64_t> product_of(const BoundDegrees& d) {
  std::optional<std::int64_t> out;
  for (const auto& degree : {d.dp, d.fsdp, d.tp, d.cp, d.pp, d.ep}) {
    if (degree) out = out.value_or(1) * *degree;
  }
  return out;
}

}  // namespace

void BoundInputs::machine(BoundList& list) {
  const bool shaped = q_.topology || q_.pods || q_.slices > 1;
  if (shaped && !is_torus()) {
    throw UserError(fmt::format("{} has no slices: its chips are joined by switches", q_.hw.name),
                    "give --chips alone; --topology, --pods and --slices are for a torus");
  }
  const std::int64_t most_axes = is_torus() ? chip().axes() : 0;
  using Axes = std::pair<std::optional<std::int64_t>, const char*>;
  for (const auto& [given, flag] : {Axes{q_.data_axes, "--mx"}, Axes{q_.tensor_axes, "--my"}}) {
    if (!given || (*given <= most_axes && is_torus())) continue;
    throw UserError(fmt::format("{} {}: {} has {} torus axes", flag, *given, q_.hw.name, most_axes),
                    is_torus() ? "" : "only a torus has axes");
  }
  slices_ = q_.pods.value_or(q_.slices);
  std::optional<std::int64_t> count = q_.chips;
  std::string source = "--chips";
  if (q_.pods) {
    require_pod(hw());
    count = *q_.pods * q_.hw.network.front().torus.max_chips;
    source = "--pods, whole ones";
  } else if (q_.topology) {
    machine_of_shape();
    count = slice_->chips;
    source = "--topology";
  } else if (!count) {
    count = product_of(q_.fix);
    source = "product of the degrees";
  }
  if (!count) return;
  if (*count % slices_ != 0) {
    throw UserError(fmt::format("{} chips do not make {} equal slices", group_thousands(*count), slices_),
                    "--chips counts the chips of all slices together");
  }
  if (!q_.topology) check_chips(*count, list);
  check_degrees(*count);
  chips = kReader.input(static_cast<double>(*count), "n", source);
  if (source != "--chips") {
    list.assume({fmt::format("{} chips", group_thousands(*count)), "--chips", source});
  }
}

void BoundInputs::machine_of_shape() {
  require_pod(hw());
  const std::vector<Slice> found = slice_of_shape(q_.hw, *q_.topology, q_.slices);
  if (found.empty()) {
    throw UserError(fmt::format("{} builds no {} slice", q_.hw.name, shape_text(*q_.topology)),
                    fmt::format("its pod is {}", shape_text(q_.hw.network.front().torus.pod)));
  }
  slice_ = found.front();
  for (std::size_t i = 0; i < slice_->shape.size(); ++i) {
    if (slice_->shape[i] > 1 && !slice_->wraps[i]) take_axes_as_lines();
  }
  if (q_.chips && *q_.chips != slice_->chips) {
    throw UserError(fmt::format("--topology {} has {} chips, --chips says {}", shape_text(*q_.topology),
                                group_thousands(slice_->chips), group_thousands(*q_.chips)),
                    "leave one of them out");
  }
}

/// A rule of thumb holds for any count; that nobody builds it is worth saying.
void BoundInputs::check_chips(std::int64_t count, BoundList& list) {
  if (hw().network.empty() || !hw().publishes("host") || !publishes_pod(hw())) {
    list.assume({fmt::format("whether {} is built with {} chips is not known", hw().name, group_thousands(count)),
                 "--chips", "hardware file", true});
    return;
  }
  const std::vector<Slice> found = slices_of(q_.hw, count, slices_);
  if (found.empty()) {
    const SliceError error = no_slice(q_.hw, count, slices_);
    list.assume({fmt::format("the rules are taken for a count nobody builds: {} ({})", error.message, error.hint),
                 "--chips", q_.hw.network.front().source, true});
    return;
  }
  if (!is_torus() || count == slices_) return;
  const auto closed = [](const Slice& s) {
    for (std::size_t i = 0; i < s.shape.size(); ++i) {
      if (s.shape[i] > 1 && !s.wraps[i]) return false;
    }
    return true;
  };
  const bool rings = std::any_of(found.begin(), found.end(), closed);
  list.assume({rings ? "every axis is a closed ring and carries both directions"
                     : fmt::format("every axis is taken as a closed ring, though no slice of {} chips has them: give "
                                   "--topology for one direction",
                                   group_thousands(count)),
               "--topology", "book ch. 5", !rings});
}

void BoundInputs::check_degrees(std::int64_t count) const {
  const std::int64_t copy = model_degree();
  if (count % copy == 0) return;
  throw UserError(
      fmt::format("tp {} x pp {} x ep {} = {} chips hold one copy of the model, and {} is no multiple", tensor_degree(),
                  pipeline_degree(), expert_degree(), group_thousands(copy), group_thousands(count)),
      "change --fix or --chips");
}

std::int64_t BoundInputs::axes() const {
  if (!slice_) return chip().axes();
  const auto used = std::count_if(slice_->shape.begin(), slice_->shape.end(), [](std::int64_t a) { return a > 1; });
  return std::max<std::int64_t>(used, 1);
}

std::int64_t BoundInputs::tensor_axes() const { return q_.tensor_axes.value_or(1); }

std::int64_t BoundInputs::data_axes_alone() const { return q_.data_axes.value_or(axes()); }

std::optional<std::int64_t> BoundInputs::data_axes_beside() const {
  const std::int64_t left = axes() - tensor_axes();
  const std::int64_t wanted = q_.data_axes.value_or(left);
  if (wanted < 1 || wanted > left) return std::nullopt;
  return wanted;
}

}  // namespace scalecalc
