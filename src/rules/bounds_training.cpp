// The training side: rates against each other, and what the groups share.
#include "rules/bound_rules.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scalar.h"
#include "base/units.h"
#include "rules/thumb.h"

namespace scalecalc {
namespace {

/// The formats a chip computes in besides the one asked for, of those it publishes.
std::vector<DType> other_formats(const BoundInputs& in) {
  std::vector<DType> out;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const DType dtype = static_cast<DType>(i);
    if (in.hw().matmul_peak[i] && dtype != in.question().compute) out.push_back(dtype);
  }
  return out;
}

void torus_rates(const BoundInputs& in, BoundList& list) {
  list.add(BoundGroup::kMachine,
           {"ici_intensity", "alpha_ici = C / W_ici", "FLOPs per byte",
            "FLOPs a chip does while a byte crosses one axis of the torus", "book ch. 5, Data Parallelism"},
           in.axis_intensity());
  for (const DType other : other_formats(in)) {
    list.add(BoundGroup::kMachine,
             {fmt::format("ici_intensity_in_{}", name_of(other)), "C / W_ici", "FLOPs per byte",
              fmt::format("the same, computing in {}", name_of(other)), "book ch. 5, Tensor Parallelism"},
             in.compute(other) / in.axis());
  }
  if (!in.has_outer_network()) return;
  list.add(BoundGroup::kMachine,
           {"dcn_intensity", "alpha_dcn = C / W_dcn", "FLOPs per byte",
            "FLOPs a chip does while a byte of its share leaves the slice", "book ch. 5, Scaling Across Pods"},
           in.compute() / in.scale_out());
}

void switched_rates(const BoundInputs& in, BoundList& list) {
  list.add(BoundGroup::kMachine,
           {"scale_up_intensity", "alpha_gpu = C / W_gpu", "FLOPs per byte",
            "FLOPs a chip does while it sends a byte inside its node", "book ch. 12, Data Parallelism"},
           in.compute() / in.scale_up());
  if (!in.has_outer_network()) return;
  list.add(BoundGroup::kMachine,
           {"scale_out_intensity", "alpha_node = C / W_node", "FLOPs per byte",
            "FLOPs a chip does while its node sends a byte to other nodes", "book ch. 12, Data Parallelism"},
           in.compute() / in.node_egress());
}

/// The rates of --versus beside this machine's.
void against(const BoundInputs& in, BoundList& list) {
  if (!in.question().versus) return;
  const BoundRates other(*in.question().versus, in.question().compute, in.question().ideal);
  const std::string than = other.hw().name;
  const auto gain = [&](const char* name, const char* symbol, const std::string& says, const Traced& value) {
    list.add(BoundGroup::kMachine, {name, symbol, "times", says, "book ch. 12, Quiz 5"}, value);
  };
  gain("compute_gain", "C / C'", "FLOP/s of a chip against " + than, in.compute() / other.compute());
  gain("tensor_intensity_gain", "alpha / alpha'", "how many times smaller the tensor-parallel limit is than on " + than,
       in.tensor_intensity(1) / other.tensor_intensity(1));
  const auto data = [](const BoundRates& r) {
    if (!r.is_torus()) return r.collective_intensity().value();
    return r.axis_intensity().value() / Traced(static_cast<double>(r.chip().axes()));
  };
  gain("data_intensity_gain", "alpha / alpha'",
       "how many times more tokens a chip needs for data parallelism than on " + than, data(in) / data(other));
}

void model_bounds(const BoundInputs& in, BoundList& list) {
  list.add(BoundGroup::kModel, {"parameters", "P", "parameters", "weights of the model", "book ch. 4"}, in.parameters);
  if (in.active_parameters.node() != in.parameters.node()) {
    list.add(BoundGroup::kModel,
             {"active_parameters", "P_act", "parameters", "weights that one token uses", "book ch. 4"},
             in.active_parameters);
  }
  const FlopsOf<Traced> each =
      list.add(BoundGroup::kModel,
               {"flops_per_token", "6 P_act", "", "training FLOPs of one token, forward and backward", "book ch. 4"},
               thumb::training_flops(in.active_parameters, Traced(1.0)));
  list.add(BoundGroup::kModel,
           {"token_time", "6 P_act / C", "", "time of one chip for a token, at its peak", "book ch. 6"},
           each / in.compute());
  const Traced forward = kReader.input(2, "forward", "book ch. 4: FLOPs per parameter and token");
  const Traced base = kReader.input(6, "training", "book ch. 4: FLOPs per parameter and token");
  const Traced again = list.add(BoundGroup::kModel,
                                {"block_remat_flops", "6 + 2", "FLOPs per parameter and token",
                                 "training FLOPs when only the inputs of blocks are kept and their forward runs twice",
                                 "book ch. 4, Gradient checkpointing"},
                                base + forward);
  list.add(BoundGroup::kModel,
           {"block_remat_overhead", "8 / 6", "times", "FLOPs of that against keeping everything",
            "book ch. 4, Gradient checkpointing"},
           again / base);
}

}  // namespace

std::int64_t copy_chips(const BoundInputs& in) {
  if (!in.question().nodes_spanned) return in.model_degree();
  return *in.question().nodes_spanned * in.chip().node_size();
}

BytesPerSecondOf<Traced> reduction_rate(const BoundInputs& in, std::int64_t inner, std::int64_t axes) {
  const Traced copies =
      inner > 1 ? kReader.input(static_cast<double>(inner), "copy", "chips of one copy of the model") : Traced(1.0);
  if (in.is_torus()) {
    const Traced m =
        axes > 1 ? kReader.input(static_cast<double>(axes), "M_X", "axes for data parallelism") : Traced(1.0);
    return in.axis() * (copies * m);
  }
  const double node = in.node_size();
  const double local = std::min(static_cast<double>(inner), node);
  const bool one_node = in.chips && in.chips->value() <= node;
  BytesPerSecondOf<Traced> inside =
      local > 1 ? in.scale_up() * kReader.input(local, "copy_in_node", "chips of one copy in a node") : in.scale_up();
  if (one_node || !in.has_outer_network()) return inside;
  const double spanned = std::max(1.0, static_cast<double>(inner) / node);
  const BytesPerSecondOf<Traced> beyond =
      spanned > 1 ? in.node_egress() * kReader.input(spanned, "nodes_spanned", "nodes of one copy") : in.node_egress();
  return named(min(inside, beyond), "W_collective", "book ch. 12: the slower of node and network");
}

std::string tokens_text(double tokens) {
  constexpr double kPrefixFrom = 1e5;
  if (tokens < kPrefixFrom) return format_quantity(tokens, UnitKind::kNumber);
  std::string text = format_quantity(tokens, UnitKind::kCount);
  std::erase(text, ' ');
  return text;
}

Traced assumed_mfu(const BoundInputs& in) {
  const std::optional<double> given = in.question().training.mfu;
  return kReader.input(given.value_or(0.4), "MFU", given ? "--mfu" : "book ch. 6: 40 %, assumed");
}

void machine_bounds(const BoundInputs& in, BoundList& list) {
  in.is_torus() ? torus_rates(in, list) : switched_rates(in, list);
  against(in, list);
}

void training_bounds(const BoundInputs& in, BoundList& list) {
  const bool timed = (in.chips || in.batch) && (in.tokens || (in.chips && in.batch));
  if (timed && !in.question().training.mfu) list.assume({"MFU of 40 % in days and step times", "--mfu", "book ch. 6"});
  if (in.has_network()) machine_bounds(in, list);
  model_bounds(in, list);
  if (in.has_network()) {
    in.is_torus() ? torus_bounds(in, list) : switched_bounds(in, list);
  } else {
    list.leave_out("data, tensor and mixed parallelism",
                   fmt::format("a network between chips, which {} {}", in.hw().name,
                               in.hw().publishes("network") ? "does not have" : "does not publish"));
  }
  degree_bounds(in, list);
  memory_bounds(in, list);
  run_bounds(in, list);
}

}  // namespace scalecalc
