// Bounds the memory that training needs: weights and optimizer state (ch. 5), activations kept for the backward pass
// (ch. 4), and the number of chips for both (ch. 6, ch. 12 Quiz 5).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "base/units.h"
#include "bounds/bound_inputs.h"
#include "cost/step.h"
#include "plan/layout_rules.h"

namespace scalecalc {
namespace {

class MemoryRules {
 public:
  MemoryRules(const BoundInputs& in, BoundList& list) : in_(in), list_(list) {}

  void run() {
    state();
    if (!in_.hw().publishes("hbm.capacity")) {
      return list_.leave_out("what fits", fmt::format("hbm.capacity, which {} does not publish", in_.hw().name));
    }
    spread();
    if (!in_.shape) return list_.leave_out("activations kept for the backward pass", "a model whose d_model is known");
    if (!in_.batch) return list_.leave_out("activations kept for the backward pass", "--batch-tokens");
    checkpoints();
    together();
  }

 private:
  using Bytes = BytesOf<Traced>;

  template <class T>
  T rule(const char* name, const char* symbol, const std::string& says, const char* source, const T& value,
         std::optional<bool> holds = std::nullopt, const char* unit = "") {
    return list_.add(BoundGroup::kMemory, {name, symbol, unit, says, source}, value, holds);
  }

  void state() {
    const char* source = "book ch. 5, Data Parallelism";
    const Traced moments = kReader.input(in_.optimizer.moments, "moments", in_.optimizer.name);
    const Bytes moment(kReader.input(in_.optimizer.moment_bytes, "bytes_per_moment", in_.optimizer.name, kByteDim));
    const Bytes each = rule("state_bytes_per_parameter", "b_w + moments x bytes",
                            "weights and optimizer state, without master copy and gradients as the book counts", source,
                            in_.weight_bytes() + moments * moment, std::nullopt, "bytes per parameter");
    const Bytes master(kReader.input(in_.optimizer.state_bytes - in_.optimizer.moments * in_.optimizer.moment_bytes,
                                     "bytes_of_master_copy", in_.optimizer.name, kByteDim));
    const Bytes gradient(kReader.input(4, "bytes_of_gradient", "fp32 accumulation", kByteDim));
    rule("framework_bytes_per_parameter", "that + master + gradient",
         "with the fp32 master copy and fp32 gradients that frameworks keep, as train counts",
         "arXiv:1910.02054 s. 3.1", each + master + gradient, std::nullopt, "bytes per parameter");
    state_ = rule("state_bytes", "bytes x P", "of the whole model", source, each * in_.held);
    bytes_each_ = each;
  }

  void spread() {
    const char* source = "book ch. 12, Quiz 5";
    const Bytes hbm = in_.chip().hbm_capacity();
    const Traced largest = hbm / bytes_each_;
    rule("dp_largest_model", "HBM / bytes", "plain data parallelism holds models of fewer parameters",
         "book ch. 5, Data Parallelism", largest, in_.held.value() <= largest.value(), "parameters");
    const Traced least = rule("state_chips", "ceil(state / HBM)", "chips that hold the state and nothing else", source,
                              ceil(state_ / hbm), std::nullopt, "chips");
    if (in_.has_network() && !in_.is_torus() && in_.node_size() > 0) {
      const Traced node = kReader.input(in_.node_size(), "node", in_.hw().network.front().source);
      rule("state_nodes", "ceil(chips / node)", "nodes of those chips", source, ceil(least / node), std::nullopt,
           "nodes");
    }
    if (!in_.chips) return list_.leave_out("memory of a chip", "--chips");
    rule("hbm_of_all_chips", "n HBM", "memory of all chips together", "book ch. 5, Question 3", hbm * *in_.chips);
    const Traced copy = kReader.input(static_cast<double>(in_.model_degree()), "copy", "tp pp ep");
    const Bytes replicated = state_ / copy;
    rule("state_bytes_per_chip_replicated", "state / (tp pp ep)",
         "every data rank holds the whole state of its copy: plain data parallelism fits", source, replicated,
         replicated.value().value() <= hbm.value().value());
    const Bytes sharded = state_ / *in_.chips;
    rule("state_bytes_per_chip_sharded", "state / n", "divided over all chips (FSDP, ZeRO-3) it fits", source, sharded,
         sharded.value().value() <= hbm.value().value());
  }

  /// Activations of a layer for each token under one policy, in elements.
  Traced saved(const CheckpointPolicy& policy) const {
    using Kind = CheckpointPolicy::Kind;
    const Traced& d = in_.shape->d_model;
    const auto tensors = [&](double count) { return kReader.input(count, "n_saved", text_of(policy)) * d; };
    switch (policy.kind) {
      case Kind::kAll: return tensors(20);
      case Kind::kMatmuls: return tensors(7);
      case Kind::kBlock: return tensors(1);
      case Kind::kCount: return tensors(policy.count);
      case Kind::kMlp: break;
    }
    return (in_.shape->gated ? Traced(2.0) * in_.shape->width : in_.shape->width) + d;
  }

  Bytes kept(const CheckpointPolicy& policy) const {
    return in_.activation_bytes() * (saved(policy) * *in_.batch * in_.shape->layers);
  }

  void checkpoints() {
    using Kind = CheckpointPolicy::Kind;
    const char* source = "book ch. 4, Gradient checkpointing";
    const auto all = [&](const char* name, const char* symbol, Kind kind, const char* says) {
      rule(name, symbol, says, source, kept({kind, 0}));
    };
    all("checkpoint_bytes_all", "20 b_a B D L", Kind::kAll, "every activation of a step's tokens kept");
    all("checkpoint_bytes_matmuls", "7 b_a B D L", Kind::kMatmuls, "only the results of the big matmuls kept");
    all("checkpoint_bytes_mlp", "b_a B (2F + D) L", Kind::kMlp, "the results of the feed-forward matmuls kept");
    all("checkpoint_bytes_block", "b_a B D L", Kind::kBlock, "only the input of each layer kept");
  }

  void together() {
    const std::optional<CheckpointPolicy>& given = in_.question().training.checkpoints;
    const CheckpointPolicy policy = given.value_or(CheckpointPolicy{});
    if (!given) {
      list_.assume(Assumption{fmt::format("activations kept: {}", text_of(policy)), "--checkpoints", "book ch. 6"}.is(
          text_of(policy)));
    }
    const char* source = "book ch. 6, Counting parameters and FLOPs";
    const Bytes activations =
        rule("checkpoint_bytes", "n_saved b_a B D L", "kept under --checkpoints", source, kept(policy));
    const Bytes total =
        rule("training_bytes", "state + checkpoints", "of all chips together", source, state_ + activations);
    const Bytes hbm = in_.chip().hbm_capacity();
    rule("training_chips", "ceil(training bytes / HBM)", "chips that hold all of it", source, ceil(total / hbm),
         std::nullopt, "chips");
    if (!in_.chips) return;
    const Bytes each = total / *in_.chips;
    const bool fits = each.value().value() <= hbm.value().value();
    rule("training_bytes_per_chip", "training bytes / n", "it fits when divided over all chips", source, each, fits);
    const std::optional<double> least = least_bytes();
    if (least) {
      rule("least_bytes_per_chip", "as train counts, remat full, mb 1, whole loss",
           "it fits with one sequence at a time and every layer run again, weights sharded over all data ranks",
           "docs/model.md", Bytes(kReader.input(*least, "memory of a chip", "docs/model.md", kByteDim)),
           *least <= hbm.value().value());
    }
    conclude(each.value().value(), hbm.value().value(), policy, least);
  }

  /// The book keeps the activations of all tokens at once; a step may go through them one sequence at a time.
  void conclude(double book, double hbm, const CheckpointPolicy& policy, const std::optional<double>& least) {
    const std::string counted =
        fmt::format("{} on each chip of {}, everything divided over all of them", bytes_text(book), bytes_text(hbm));
    const bool fits = book <= hbm;
    const bool least_fits = least ? *least <= hbm : fits;
    if (fits && least_fits) return list_.conclude(fmt::format("Memory is enough: {}.", counted));
    if (fits) {
      return list_.conclude(fmt::format(
          "Memory is short: {} by the book's count, but {} as train counts, with one sequence at a time and "
          "every layer run again.",
          counted, bytes_text(*least)));
    }
    if (!least) return list_.conclude(fmt::format("Memory is short: {}.", counted));
    list_.conclude(fmt::format(
        "Memory is {}: keeping {} of all tokens takes {}; one sequence at a time, every layer run again, takes {}.",
        least_fits ? "enough only with less kept" : "short", text_of(policy), counted, bytes_text(*least)));
  }

  /// Of train's recipe that needs least beside the degrees given, by the same count (cost/memory.cpp). Nothing where
  /// the model cannot be divided so, or its chips cannot each have a sequence.
  std::optional<double> least_bytes() const {
    if (in_.model() == nullptr || !in_.seq || in_.question().parameters) return std::nullopt;
    const std::optional<Workload> workload = workload_of();
    std::optional<Layout> layout = workload ? layout_of(*workload) : std::nullopt;
    if (!layout) return std::nullopt;
    Efficiency efficiency =
        in_.question().ideal ? ideal_efficiency(in_.hw().efficiency) : efficiency_under(in_.hw(), in_.question().stack);
    if (workload->memory.reserve) efficiency.memory_reserve = *workload->memory.reserve;
    std::optional<double> least;
    const StageSplit dealt = workload->runtime.stages;
    std::vector<ChunkEnds> splits = ends_worth_choosing(*in_.model(), layout->pp, dealt);
    splits.emplace_back();  // as the stack deals
    for (const ChunkEnds& split : splits) {
      layout->split = split;
      const auto use = memory_of_layout(*in_.model(), in_.hw(), efficiency, *workload, *layout);
      if (use) least = std::min(least.value_or(use->total().value()), use->total().value());
    }
    return least;
  }

  std::optional<Workload> workload_of() const {
    const BoundsQuestion& q = in_.question();
    const std::optional<Precision> recipe = precision_computing_in(q.compute);
    if (!recipe) return std::nullopt;
    Workload out{.seq = static_cast<std::int64_t>(in_.seq->value()), .precision = *recipe, .optimizer = in_.optimizer};
    out.batch_seqs = in_.batch->value() / in_.seq->value();
    if (q.weights) out.precision.weight_bytes = bytes_per_element(*q.weights);
    if (q.activations) out.precision.activation_bytes = bytes_per_element(*q.activations);
    out.memory = q.memory;
    out.dropout = q.memory.drops_out && !in_.model()->mlp.gated;
    return out;
  }

  /// Experts lie over data ranks, as train lays them; tensor ranks divide sequences too.
  std::optional<Layout> layout_of(const Workload& workload) const {
    const BoundDegrees& fix = in_.question().fix;
    const auto chips = static_cast<std::int64_t>(in_.chips->value());
    Layout out{.tp = fix.tp.value_or(1), .cp = fix.cp.value_or(1), .pp = fix.pp.value_or(1), .ep = fix.ep.value_or(1)};
    const std::int64_t copy = out.tp * out.cp * out.pp;
    const std::int64_t data = chips / copy;
    out.dp = fix.dp.value_or(fix.fsdp && data % *fix.fsdp == 0 ? data / *fix.fsdp : 1);
    out.fsdp = fix.fsdp.value_or(data % out.dp == 0 ? data / out.dp : 1);
    const auto sequences = static_cast<std::int64_t>(workload.batch_seqs);
    if (out.chips() != chips || sequences < data) return std::nullopt;
    const RuleSubject subject{.model = in_.model(), .workload = &workload, .chips = chips};
    const auto illegal = [&] { return first_broken(subject, out, reads::kDegrees) != nullptr; };
    out.sp = out.tp > 1;
    if (illegal()) out.sp = false;
    if (illegal()) return std::nullopt;
    out.grad_accum = sequences / data;
    out.zero = 3;
    out.remat = Remat::kFull;
    out.schedule = out.pp > 1 ? Schedule::k1F1B : Schedule::kNone;
    return out;
  }

  const BoundInputs& in_;
  BoundList& list_;
  Bytes bytes_each_;  ///< of state, for each parameter
  Bytes state_;
};

}  // namespace

std::string text_of(const CheckpointPolicy& policy) {
  switch (policy.kind) {
    case CheckpointPolicy::Kind::kAll: return "every activation, 20 tensors of d_model a layer";
    case CheckpointPolicy::Kind::kMatmuls: return "results of the big matmuls, 7 tensors of d_model a layer";
    case CheckpointPolicy::Kind::kMlp: return "results of the feed-forward matmuls";
    case CheckpointPolicy::Kind::kBlock: return "the input of each layer";
    case CheckpointPolicy::Kind::kCount: break;
  }
  return fmt::format("{:g} tensors of d_model a layer", policy.count);
}

void memory_bounds(const BoundInputs& in, BoundList& list) { MemoryRules(in, list).run(); }

}  // namespace scalecalc
