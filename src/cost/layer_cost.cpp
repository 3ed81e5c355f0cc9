// Computes the time of one layer's passes on one chip, with what its ranks send to each other. Sources: tensor and
// sequence sharding, what is communicated and what is kept: Korthikanti et al. 2022, arXiv:2205.05198 sections 3 and
// 4. Expert dispatch and combine as all-to-alls: Lepikhin et al. 2020, arXiv:2006.16668. Recurrences under context
// parallelism gather the states that the ranks hand on: LASP-2, arXiv:2502.07563.
#include "cost/layer_cost.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cost/operation_sums.h"
#include "cost/remat.h"

namespace scalecalc {
namespace {

constexpr std::array<Remat, kRematCount> kRemats{Remat::kNone, Remat::kSelective, Remat::kAttention, Remat::kMlp,
                                                 Remat::kFull};

/// Communication of one part of the layer is repeated with it.
constexpr std::array<Remat, 2> kWithAttention{Remat::kAttention, Remat::kFull};
constexpr std::array<Remat, 2> kWithMlp{Remat::kMlp, Remat::kFull};

template <class R>
class LayerCoster : public OpWork<R> {
 public:
  LayerCoster(const Reader<R>& reader, const ModelSpec& model, const ModelDims<R>& dims, const ChipRates<R>& chip,
              const Workload& workload, const InnerDegrees& inner, OperationSums* known)
      : OpWork<R>(reader, chip, workload, inner),
        dims_(dims),
        width_(dims.d_model),
        parallel_(model.parallel_block),
        known_(known) {}

  /// Of a tower's layer, or one of its ends.
  LayerCost<R> tower(const TowerPart<R>& part) {
    std::vector<Op<R>> ops = part.ops;
    if (!part.divides(inner_.tp)) hold_whole(ops);
    const R own = std::exchange(width_, part.width);
    const bool parallel = std::exchange(parallel_, false);
    OperationSums* const known = std::exchange(known_, nullptr);  // these operations are of here alone
    LayerCost<R> out = cost(ops, true, "tower");
    width_ = own;
    parallel_ = parallel;
    known_ = known;
    return out;
  }

  /// `label` names the costs in an explanation: "dense layer", "head".
  LayerCost<R> cost(const std::vector<Op<R>>& ops, bool in_layer, std::string_view label) {
    OperationSum<R> sum = summed(ops, in_layer);
    LayerCost<R>& out = sum.cost;
    launch(sum.forward, out.forward);
    launch(sum.backward, out.backward);
    for (std::size_t r = 0; in_layer && r < kRematCount; ++r) launch(sum.repeated[r], out.recompute[r]);
    name(out, label);
    if (in_layer) {
      communication(out, ops);
      workspace(out, ops);
    } else if (inner_.tp > 1) {
      // The vocabulary projection's input is gathered and its gradient scattered; its weights' gradient needs the
      // input once more.
      out.tp_bytes = BytesOf<R>(tokens_ * dims_.d_model * R(act_));
      (inner_.sp ? out.forward.tp_gathers : out.backward.tp_reduces) = 1;
      if (inner_.sp) out.backward.tp_gathers = 1 + trains_columns(ops, Part::kHead);
    }
    return std::move(out);
  }

 private:
  /// Whether ep, etp or the load of the experts' ranks decide what it costs.
  static bool is_routed(const Op<R>& op) {
    const auto routed = [](TpRule rule) { return rule == TpRule::kExpert || rule == TpRule::kExpertRow; };
    return op.kind == OpKind::kGroupedMatmul || routed(op.tp) || routed(op.saved_tp);
  }

  OperationSum<R> summed(const std::vector<Op<R>>& ops, bool in_layer) {
    OperationSum<R> sum;
    auto at = ops.begin();
    const auto add_before = [&](auto end) {
      for (; at != end; ++at) {
        add(*at, in_layer, sum.cost);
        add_kernels(*at, sum);
      }
    };
    if constexpr (std::is_same_v<R, double>) {
      if (known_ != nullptr) {
        const OperationSums::Key key{ops.data(), tokens_, inner_.tp, inner_.sp};
        const auto routed = std::find_if(ops.begin(), ops.end(), is_routed);
        if (const OperationSum<double>* found = known_->find(key)) {
          sum = *found;
          at = routed;
        } else {
          add_before(routed);
          known_->add(key, sum);
        }
      }
    }
    add_before(ops.end());
    return sum;
  }

  void add(const Op<R>& op, bool in_layer, LayerCost<R>& out) {
    const Work<R> forward = this->work(op, false);
    const Work<R> backward = this->work(op, true);
    out.forward.work += forward;
    out.backward.work += backward;
    SecondsOf<R> Phase<R>::*const part = op.kind == OpKind::kAttention       ? &Phase<R>::attention
                                         : op.kind == OpKind::kGroupedMatmul ? &Phase<R>::experts
                                                                             : nullptr;
    if (part != nullptr) out.forward.*part += forward.total();
    if (part != nullptr) out.backward.*part += backward.total();
    out.weight_gradient += this->weight_gradient(op);
    for (const Remat remat : kRemats) {
      if (!in_layer || !runs_again(remat, op, workload_)) continue;
      again(out, remat).work += forward;
      if (part != nullptr) again(out, remat).*part += forward.total();
    }
    parameters(op, out);
    if (workload_.optimizer.orthogonalizes) orthogonalization(op, out);
    saved(op, out);
  }

  /// Muon: five Newton-Schulz iterations, each 4 m^2 n + 2 m^3 FLOPs on an m x n matrix, m <= n: 4 m + 2 m^2 / n of
  /// each element. Embedding and head are left to Adam (arXiv:2502.16982 section 2).
  void orthogonalization(const Op<R>& op, LayerCost<R>& out) const {
    const bool grouped = op.kind == OpKind::kGroupedMatmul;
    if (op.frozen || op.part == Part::kHead || op.part == Part::kEmbedding) return;
    if (op.kind != OpKind::kMatmul && !grouped) return;
    const R m = min(op.k, op.n);
    const R each = R(5.0) * (R(4.0) * m + R(2.0) * m * m / max(op.k, op.n));
    if (grouped) {
      out.orthogonal_experts +=
          FlopsOf<R>(op.weight_parameters() * each / R(static_cast<double>(inner_.ep * inner_.etp)));
    } else {
      out.orthogonal += FlopsOf<R>(op.weight_parameters() * weight_share(op) * each);
    }
  }

  static Phase<R>& again(LayerCost<R>& out, Remat remat) { return out.recompute[static_cast<std::size_t>(remat)]; }

  /// Whether policies of a part run the layer's again: a tower's is run again whole or not at all.
  static bool has_parts(const std::vector<Op<R>>& ops) {
    return std::none_of(ops.begin(), ops.end(), [](const Op<R>& op) { return op.part == Part::kTower; });
  }

  void add(const Op<R>& op, bool backward, KernelCounts& to) const {
    const double apart = OpWork<R>::bias_kernels(op, backward);
    const double launches = OpWork<R>::launches(op, backward) + apart;
    to.all += OpWork<R>::kernels(op, backward) + apart;
    to.launched += launches;
    if (op.kind == OpKind::kGroupedMatmul) to.routed += launches;
    if (backward) to.of_weights += OpWork<R>::weight_launches(op);
  }

  void add_kernels(const Op<R>& op, OperationSum<R>& sum) const {
    if (OpWork<R>::kernels(op, false) <= 0) return;
    add(op, false, sum.forward);
    add(op, true, sum.backward);
    for (const Remat remat : kRemats) {
      if (runs_again(remat, op, workload_)) add(op, false, sum.repeated[static_cast<std::size_t>(remat)]);
    }
  }

  void launch(const KernelCounts& kernels, Phase<R>& out) const {
    out.work.overhead = overhead(kernels.all, kernels.routed > 0 ? 1 : 0);
    if (workload_.runtime.compiled || workload_.graphs == GraphCapture::kStep) return;
    // Behind the counts that the host waits for nothing is queued: one expert's kernels after the other are launched.
    const double waited = workload_.runtime.launches_each_expert ? kernels.routed : 0;
    if (waited > 0) out.work.overhead += chip_.host_overhead * R(waited);
    const bool layer = workload_.graphs == GraphCapture::kLayer;
    out.launches = (layer ? kernels.routed + 1 : kernels.launched) - waited;  // a replay is a launch
    out.weight_launches = layer ? 0 : kernels.of_weights;
  }

  /// Of `kernels`, and of `routed` passes over experts, whose counts the host waits for unless the whole step is
  /// captured.
  SecondsOf<R> overhead(double kernels, double routed) const {
    const GraphCapture graphs = workload_.graphs;
    const R one(1.0);
    const SecondsOf<R> kernel = chip_.kernel_overhead * (graphs == GraphCapture::kNone ? one : chip_.captured);
    return kernel * R(kernels) +
           chip_.expert_overhead * (graphs == GraphCapture::kStep ? chip_.captured : one) * R(routed);
  }

  void name(LayerCost<R>& out, std::string_view label) const {
    out.dense_parameters = named(out.dense_parameters, "parameters per chip", "operation list, divided by tp", label);
    out.expert_parameters = named(out.expert_parameters, "expert parameters per chip", "divided by ep and etp", label);
    if (workload_.fine_tune) name_frozen(out, label);
    static constexpr std::array<std::string_view, kRematCount> kNames{
        "tensors kept, remat none", "tensors kept, remat selective", "tensors kept, remat attention",
        "tensors kept, remat mlp", "tensors kept, remat full"};
    for (std::size_t r = 0; r < kRematCount; ++r) {
      out.saved[r] = named(out.saved[r], kNames[r], "per microbatch (arXiv:2205.05198 section 4)", label);
    }
  }

  static void name_frozen(LayerCost<R>& out, std::string_view label) {
    out.frozen =
        named(out.frozen, "frozen weights per chip", "operation list in the base's format, divided by tp", label);
    out.frozen_experts =
        named(out.frozen_experts, "frozen experts per chip", "in the base's format, divided by ep and etp", label);
  }

  void parameters(const Op<R>& op, LayerCost<R>& out) const {
    double& tensors = op.kind == OpKind::kGroupedMatmul ? out.expert_tensors : out.tensors;
    if (value_of(op.weight_parameters()) > 0 && !op.tied) ++tensors;
    if (value_of(op.extra_parameters) > 0) ++tensors;
    if (op.frozen) return frozen_weights(op, out);
    if (op.kind == OpKind::kGroupedMatmul) {
      out.expert_parameters = out.expert_parameters + op.parameters() / R(static_cast<double>(inner_.ep * inner_.etp));
      return;
    }
    const R weights = op.weight_parameters() * weight_share(op);
    if (op.tied) out.tied_parameters = weights;
    out.dense_parameters = out.dense_parameters + weights + others(op);
  }

  static bool is_table(const Op<R>& op) { return op.part == Part::kEmbedding && op.kind == OpKind::kVector; }

  /// Sequence-sharded work keeps whole weights on every tensor rank; the embedding table is divided by vocabulary.
  R weight_share(const Op<R>& op) const {
    const bool table = is_table(op);
    if (op.tp == TpRule::kSequence && !table) return R(1.0);
    return share(table ? TpRule::kColumn : op.tp, op.groups);
  }

  /// Biases and norms, or the table.
  R others(const Op<R>& op) const { return op.extra_parameters * (is_table(op) ? weight_share(op) : R(1.0)); }

  /// A packed matrix is unpacked whole, an expert's one at a time.
  void frozen_weights(const Op<R>& op, LayerCost<R>& out) const {
    const Precision& p = workload_.precision;
    const bool packed = this->is_packed(op);
    const bool in_base = OpWork<R>::in_base_format(op) && workload_.fine_tune;
    const R each(in_base ? base_bytes(*workload_.fine_tune, p) : p.weight_bytes);
    if (op.kind == OpKind::kGroupedMatmul) {
      const R ways(static_cast<double>(inner_.ep * inner_.etp));
      const R bytes = op.weight_parameters() * each + op.extra_parameters * R(p.weight_bytes);
      out.frozen_experts += BytesOf<R>(bytes / ways);
      const R one = op.k * op.n / R(static_cast<double>(inner_.etp));
      if (packed) out.unpacked = max(out.unpacked, BytesOf<R>(one * R(p.weight_bytes)));
      return;
    }
    const R weights = op.weight_parameters() * weight_share(op);
    if (op.tied) out.tied_frozen = BytesOf<R>(weights * each);
    out.frozen += BytesOf<R>(weights * each + others(op) * R(p.weight_bytes));
    if (packed) out.unpacked = max(out.unpacked, BytesOf<R>(weights * R(p.weight_bytes)));
  }

  void saved(const Op<R>& op, LayerCost<R>& out) const {
    if (op.keep == Keep::kNever) return;
    const bool scored = writes_scores(workload_.attention, op);
    const BytesOf<R> bytes = kept_bytes(op, kept_bytes_each(op, workload_, act_));
    const double widened = widened_bytes(op, workload_.memory, act_);
    for (const Remat remat : kRemats) {
      BytesOf<R>& kept = out.saved[static_cast<std::size_t>(remat)];
      const bool here = stays(remat, op, workload_);
      if (here) kept += bytes;
      if (here && widened > 0 && !runs_again(remat, op, workload_)) kept += kept_bytes(op, widened);
      if (scored && scores_stay(remat)) kept += scores_kept(op);
    }
  }

  /// Bytes the operation keeps of a microbatch, `each` of an element, by the stack's rules.
  BytesOf<R> kept_bytes(const Op<R>& op, double each) const {
    const StackMemory& rules = workload_.memory;
    if (op.tp == TpRule::kExpertRow && !rules.keeps_expert_outputs) return BytesOf<R>(R(0.0));
    const bool gathered = rules.keeps_gathered && op.input == KeptInput::kGathered;
    const R part = gathered ? R(1.0) : share(op.saved_tp, op.groups);
    const R elements = rules.repeats_keys ? op.saved * op.repeats : op.saved;
    return BytesOf<R>(elements * tokens_ * part * R(each));
  }

  /// Outputs of softmax and dropout, and its mask: 5 a s / h of arXiv:2205.05198 equation 1, in 16 bits.
  BytesOf<R> scores_kept(const Op<R>& op) const { return BytesOf<R>(this->scores(op) * R(2 * act_ + 1)); }

  /// Forward: gather before and scatter after attention and MLP (or one all-reduce after each). Backward: the same (a
  /// gather of the output's gradient before, a scatter of the input's behind), and
  /// under sequence sharding the two gathered inputs are gathered again for the weight gradients, of adapters where the
  /// weights are frozen.
  void communication(LayerCost<R>& out, const std::vector<Op<R>>& ops) const {
    const bool moe =
        std::any_of(ops.begin(), ops.end(), [](const Op<R>& o) { return o.kind == OpKind::kGroupedMatmul; });
    // Each part that ends in a row-divided projection sums its output; parallel parts sum theirs together.
    const auto ends = [&](Part part) {
      return std::count_if(ops.begin(), ops.end(),
                           [&](const Op<R>& o) { return o.part == part && o.tp == TpRule::kRow; });
    };
    const auto of_tower = ends(Part::kTower);  // attention's first
    const double attention = ends(Part::kAttention) > 0 || of_tower > 0 ? 1 : 0;
    const double mlp = ends(Part::kMlp) > 0 || of_tower > 1 ? 1 : 0;
    const auto in_blocks = [&](double both) { return parallel_ ? std::min(both, 1.0) : both; };
    const double blocks = in_blocks(attention + mlp);
    const double by_parts = has_parts(ops) ? 1 : 0;
    if (inner_.tp > 1) {
      out.tp_bytes = named(BytesOf<R>(tokens_ * width_ * R(act_)), "bytes of one gathered activation",
                           "tokens x d_model x bytes (Korthikanti et al. 2022, section 4.2)");
      out.tp_narrow_bytes = out.tp_bytes * R(bytes_per_element(workload_.precision.compute) / act_);
      exchange(out.forward, blocks);
      exchange(out.backward, blocks);
      exchange(again(out, Remat::kAttention), by_parts * attention);
      exchange(again(out, Remat::kMlp), by_parts * mlp);
      exchange(again(out, Remat::kFull), blocks);
      const double regathered =
          in_blocks(attention * trains_columns(ops, Part::kAttention) + mlp * trains_columns(ops, Part::kMlp));
      if (inner_.sp && workload_.memory.keeps_gathered) gather_dropped_inputs(out, ops);
      if (inner_.sp && !workload_.memory.keeps_gathered) gathers_before(out.backward) += regathered;
    }
    if (inner_.tp > 1) inner_sums(out, ops);
    if (moe) expert_communication(out, ops);
    if (inner_.cp > 1) context_communication(out, ops);
  }

  /// Where gathered inputs stay for the weights' gradients, a policy that drops them gathers them again, but for a part
  /// that it runs again whole, which gathers anyway.
  void gather_dropped_inputs(LayerCost<R>& out, const std::vector<Op<R>>& ops) const {
    const auto kept =
        std::find_if(ops.begin(), ops.end(), [](const Op<R>& op) { return op.input == KeptInput::kGathered; });
    if (kept == ops.end()) return;
    const double attention = trains_columns(ops, Part::kAttention);
    const double mlp = trains_columns(ops, Part::kMlp);
    const double both = parallel_ ? std::min(attention + mlp, 1.0) : attention + mlp;
    const auto drop = [&](Remat remat, double inputs) {
      if (!stays(remat, *kept, workload_)) gathers_before(again(out, remat)) += inputs;
    };
    drop(Remat::kSelective, both);
    const double by_parts = has_parts(ops) ? 1 : 0;
    drop(Remat::kAttention, both - by_parts * std::min(both, attention));
    drop(Remat::kMlp, both - by_parts * std::min(both, mlp));
  }

  /// Gathers before a matmul are narrower than scatters behind one where 8-bit matmuls gather what they read.
  double& gathers_before(Phase<R>& phase) const {
    const bool narrow = workload_.runtime.quantized_gathers && bytes_per_element(workload_.precision.compute) < act_;
    return narrow ? phase.tp_narrow_gathers : phase.tp_gathers;
  }
  void exchange(Phase<R>& phase, double parts) const {
    (inner_.sp ? phase.tp_gathers : phase.tp_reduces) = parts;
    if (inner_.sp) gathers_before(phase) += parts;
  }

  /// 1 if a weight gradient of the part needs its gathered input.
  static double trains_columns(const std::vector<Op<R>>& ops, Part part) {
    const auto needs = [&](const Op<R>& o) {
      return (o.part == part || o.part == Part::kTower) && !o.frozen &&
             (o.tp == TpRule::kColumn || o.tp == TpRule::kKvColumn);
    };
    return std::any_of(ops.begin(), ops.end(), needs) ? 1 : 0;
  }

  /// What is summed over the tensor ranks inside a part is narrower than an activation.
  void inner_sums(LayerCost<R>& out, const std::vector<Op<R>>& ops) const {
    for (const Op<R>& op : ops) {
      if (value_of(op.summed) <= 0) continue;
      const auto sum = [&](Phase<R>& phase) {
        phase.tp_inner_reduces += 1;
        phase.tp_inner_bytes += BytesOf<R>(tokens_ * op.summed * R(act_));
      };
      if (op.summed_in != SummedIn::kForward) sum(out.backward);
      if (op.summed_in == SummedIn::kBackward) continue;
      sum(out.forward);
      for (const Remat remat : kRemats) {
        if (runs_again(remat, op, workload_)) sum(again(out, remat));
      }
    }
  }

  void expert_communication(LayerCost<R>& out, const std::vector<Op<R>>& ops) const {
    const auto repeats = [&](Remat remat) { return remat == Remat::kFull || has_parts(ops); };
    const double sharded = inner_.tp > 1 ? static_cast<double>(inner_.tp) : 1;
    if (inner_.etp > 1) {
      // Without an expert dimension every rank routes for itself: tokens are gathered, not their copies.
      const R copies_each = inner_.ep > 1 ? dims_.top_k * load_ : R(1.0);
      out.etp_bytes = BytesOf<R>(tokens_ * copies_each * dims_.expert_width * R(act_));
      out.forward.etp_gathers = 2;
      out.backward.etp_gathers = 2;
      for (const Remat remat : kWithMlp) again(out, remat).etp_gathers = repeats(remat) ? 2 : 0;
    }
    if (inner_.ep == 1) return;
    // Dispatch carries the recipe's dispatch format, combine the activations'. The backward sends the same: the
    // outputs' gradients go to the experts as tokens did (arXiv:2412.19437 section 3.3.3).
    const Precision& p = workload_.precision;
    const R copies = tokens_ * dims_.top_k * dims_.expert_width * load_ / R(sharded);
    out.forward.ep_bytes = named(BytesOf<R>(copies * R(p.dispatch_bytes + act_)), "expert dispatch and combine bytes",
                                 "tokens x top_k x d_model, there and back (arXiv:2006.16668)");
    out.forward.ep_all_to_alls = 2;
    out.backward.ep_bytes = out.forward.ep_bytes;
    out.backward.ep_all_to_alls = 2;
    for (const Remat remat : kWithMlp) {
      if (!repeats(remat)) continue;
      again(out, remat).ep_bytes = out.forward.ep_bytes;
      again(out, remat).ep_all_to_alls = 2;
    }
  }

  /// A recurrence hands on its state: one gather of all ranks' states each way, in fp32. Attention needs the keys and
  /// values of the other ranks, or turns its shards of the sequence into shards of the heads.
  void context_communication(LayerCost<R>& out, const std::vector<Op<R>>& ops) const {
    R width(0.0);
    R state(0.0);
    for (const Op<R>& op : ops) {
      if (value_of(op.shared) > 0) width = width + context_width(op);
      if (value_of(op.state) > 0) state = state + op.state / tp_;
    }
    if (value_of(state) > 0) {
      out.cp_bytes = named(BytesOf<R>(sequences_ * cp_ * state * R(4.0)), "state bytes of all ranks",
                           "micro_batch_seqs x cp x state x 4 (LASP-2, arXiv:2502.07563)");
      out.cp_buffer = out.cp_bytes;
      repeat(out, ops, &Phase<R>::cp_gathers, 1, 1);
    } else if (value_of(width) > 0) {
      key_value_communication(out, ops, width);
    }
  }

  /// Sets one kind of context communication in the phases that have it.
  void repeat(LayerCost<R>& out, const std::vector<Op<R>>& ops, double Phase<R>::*kind, double forward,
              double backward) const {
    out.forward.*kind = forward;
    out.backward.*kind = backward;
    for (const Remat remat : kWithAttention) {
      if (remat == Remat::kFull || has_parts(ops)) again(out, remat).*kind = forward;
    }
  }

  /// The backward brings keys and values again and takes their gradients back: twice the forward's bytes. A window or
  /// chunk needs only the neighbours' part.
  void key_value_communication(LayerCost<R>& out, const std::vector<Op<R>>& ops, const R& width) const {
    const BytesOf<R> sequence(sequences_ * seq_ * width * R(act_));
    const auto others = static_cast<double>(inner_.cp - 1);
    switch (inner_.cp_comm) {
      case CpComm::kAllGather:
        out.cp_bytes = named(sequence, "key and value bytes of the sequence",
                             "micro_batch_seqs x seq x 2 x kv width (Llama 3 report, arXiv:2407.21783 section 3.3.2)");
        out.cp_buffer = out.cp_bytes;
        return repeat(out, ops, &Phase<R>::cp_gathers, 1, 2);
      case CpComm::kRing:
        out.cp_bytes = named(sequence / cp_, "key and value bytes of one rank's piece",
                             "micro_batch_seqs x seq / cp x 2 x kv width (ring attention, arXiv:2310.01889)");
        out.cp_buffer = out.cp_bytes * R(2.0);
        return repeat(out, ops, &Phase<R>::cp_sends, others, 2 * others);
      case CpComm::kUlysses:
        out.cp_bytes = named(BytesOf<R>(tokens_ * head_shard_width(ops) * R(act_ / 4)), "bytes of one all-to-all",
                             "a quarter of q, k, v and output (DeepSpeed-Ulysses, arXiv:2309.14509 section 3.2)");
        out.cp_buffer = out.cp_bytes * R(4.0);
        return repeat(out, ops, &Phase<R>::cp_all_to_alls, 4, 4);
    }
  }

  /// Elements per token that change from sequence to head shards: queries, outputs, and keys and values, copied where
  /// there are fewer KV heads than ranks.
  R head_shard_width(const std::vector<Op<R>>& ops) const {
    R width(0.0);
    for (const Op<R>& op : ops) {
      if (op.kind == OpKind::kAttention) width = width + (op.qk_width + op.v_width) / tp_;
      if (value_of(op.shared) <= 0) continue;
      const R copies = max(R(1.0), tp_ * cp_ / op.groups);
      width = width + op.shared * share(TpRule::kKvColumn, op.groups) * min(copies, cp_);
    }
    return width;
  }

  /// Elements per token of the sequence that one tensor rank needs of an attention.
  R context_width(const Op<R>& op) const {
    R width = op.tp == TpRule::kWhole ? op.shared : op.shared * share(TpRule::kKvColumn, op.groups);
    if (op.reach != Reach::kWindow && op.reach != Reach::kChunk && op.reach != Reach::kAround) return width;
    return width * min(R(1.0), op.span / seq_ + R(1.0) / cp_);
  }

  void workspace(LayerCost<R>& out, const std::vector<Op<R>>& ops) const {
    R widest(0.0);
    for (const Op<R>& op : ops) {
      const bool here = op.keep != Keep::kNever && software_keeps(op, workload_.memory);
      if (here && !op.unread) widest = max(widest, op.saved * share(op.saved_tp, op.groups));
      if (writes_scores(workload_.attention, op)) widest = max(widest, this->scores(op) / tokens_);
    }
    const R gathered = inner_.sp ? width_ * R(2.0) : R(0.0);
    out.workspace = named(BytesOf<R>((R(2.0) * widest + gathered) * tokens_ * R(act_)), "layer workspace",
                          "gradients of the widest tensors and the gathered input while the layer runs");
  }

  using OpWork<R>::chip_;
  using OpWork<R>::workload_;
  using OpWork<R>::inner_;
  using OpWork<R>::tp_;
  using OpWork<R>::cp_;
  using OpWork<R>::seq_;
  using OpWork<R>::sequences_;
  using OpWork<R>::tokens_;
  using OpWork<R>::act_;
  using OpWork<R>::load_;
  using OpWork<R>::share;
  using OpWork<R>::sequence_share;

  const ModelDims<R>& dims_;
  R width_;               ///< of the residual stream: the model's, or a tower's beside a token
  bool parallel_;         ///< mixer and FFN read one input
  OperationSums* known_;  ///< null: nothing is kept
};

}  // namespace

std::string label_of(const LayerKind& kind) {
  const bool plain = kind.mixer == MixerKind::kFull || kind.mixer == MixerKind::kMla;
  std::string label;
  if (kind.mixer == MixerKind::kNone) {
    label = kind.ffn == FfnKind::kMoe ? "MoE-only" : "MLP-only";
  } else if (kind.ffn == FfnKind::kNone) {
    label = fmt::format("{}-only", plain ? "attention" : name_of(kind.mixer));
  } else {
    label = fmt::format("{}{}{}", plain ? "" : name_of(kind.mixer), plain || kind.ffn == FfnKind::kDense ? "" : " ",
                        kind.ffn == FfnKind::kMoe ? "MoE" : "");
  }
  label += label.empty() ? "layer" : " layer";
  if (kind.reuse) label += kind.mixer == MixerKind::kRwkv ? " with the first one's values" : " without indexer";
  return kind.d_ff ? fmt::format("{} of d_ff {}", label, *kind.d_ff) : label;
}

InnerDegrees inner_of(const Layout& l) { return {l.tp, l.cp, l.ep, l.etp, l.micro_batch_seqs, l.sp, l.cp_comm}; }

template <class R>
ModelOps<R> read_model(const Reader<R>& reader, const ModelSpec& model, const std::optional<FineTune>& tune,
                       const std::optional<double>& expert_capacity) {
  ModelOps<R> out;
  out.dims = read_dims(reader, model);
  if (expert_capacity) {
    out.dims.top_k = named(out.dims.top_k * reader.input(*expert_capacity, "expert capacity", "workload"),
                           "places of a token in experts", "top_k x capacity factor (arXiv:2006.16668 section 2.2)");
  }
  auto labels = std::make_shared<std::vector<std::string>>();
  for (const LayerKind& kind : model.kinds) {
    labels->push_back(label_of(kind));
    out.kinds.push_back(trained(layer_ops(model, kind, out.dims), tune));
  }
  out.labels = std::move(labels);
  out.embedding = trained(lookup_ops(model, out.dims), tune);
  out.towers = tower_parts<R>(model);
  for (TowerPart<R>& part : out.towers) part.ops = trained(std::move(part.ops), tune);
  out.head = trained(head_ops(model, out.dims), tune);
  if (model.mtp_layers > 0) out.mtp = trained(mtp_ops(model, out.dims), tune);
  return out;
}

template <class R>
NetworkCost<R> network_cost(const Reader<R>& reader, const ModelSpec& model, const ModelOps<R>& ops,
                            const ChipRates<R>& chip, const Workload& workload, const InnerDegrees& inner,
                            OperationSums* known) {
  LayerCoster<R> coster(reader, model, ops.dims, chip, workload, inner, known);
  NetworkCost<R> out;
  out.labels = ops.labels;
  out.kinds.reserve(ops.kinds.size());
  for (std::size_t k = 0; k < ops.kinds.size(); ++k) {
    out.kinds.push_back(coster.cost(ops.kinds[k], true, (*ops.labels)[k]));
  }
  out.embedding = coster.cost(ops.embedding, false, "embedding");
  for (const TowerPart<R>& part : ops.towers) {
    out.towers.push_back({coster.tower(part), part.count, part.shown});
  }
  out.head = coster.cost(ops.head, false, "head");
  if (!ops.mtp.empty()) out.mtp = coster.cost(ops.mtp, false, "mtp module");
  out.depth = reader.whole(static_cast<double>(model.layers()), "layers");
  out.d_model = ops.dims.d_model;
  // Every prediction module has logits of its own, all there at once but for chunks, which follow one another.
  const double uses = 1 + static_cast<double>(model.mtp_layers);
  const double whole = workload.memory.logit_bytes;
  const R logits = coster.tokens() * ops.dims.outputs / coster.tp();
  if (workload.runtime.logit_traffic > 0) {  // [PASSES]
    out.head.forward.work.hbm += named(BytesOf<R>(logits * R(workload.runtime.logit_traffic)),
                                       "logits widened and logged", "[PASSES], docs/model.md", "bytes of") /
                                 chip.hbm;
  }
  constexpr double kGradientBytes = 4;
  out.logits = {BytesOf<R>(logits * R(uses * whole)), BytesOf<R>(logits * R(uses * std::min(whole, kFusedLogitBytes))),
                BytesOf<R>(logits * R(whole / kLossChunks)) +
                    BytesOf<R>(coster.tokens() * ops.dims.d_model * R(uses * kGradientBytes))};
  const bool in_parts = inner.tp > 1 && (inner.sp || workload.runtime.shards_sends);
  const R boundary_share = in_parts ? R(1.0) / coster.tp() : R(1.0);
  const R streams(static_cast<double>(model.streams.count));
  out.boundary =
      named(BytesOf<R>(coster.tokens() * ops.dims.d_model * streams * boundary_share * R(coster.activation_bytes())),
            "bytes to the next pipeline stage", "tokens x d_model / tp (arXiv:2104.04473 section 4.1)");
  return out;
}

#define SCALECALC_INSTANTIATE(R)                                                                                    \
  template ModelOps<R> read_model(const Reader<R>&, const ModelSpec&, const std::optional<FineTune>&,               \
                                  const std::optional<double>&);                                                    \
  template NetworkCost<R> network_cost(const Reader<R>&, const ModelSpec&, const ModelOps<R>&, const ChipRates<R>&, \
                                       const Workload&, const InnerDegrees&, OperationSums*);
SCALECALC_INSTANTIATE(double)
SCALECALC_INSTANTIATE(Dual)
SCALECALC_INSTANTIATE(Traced)
#undef SCALECALC_INSTANTIATE

}  // namespace scalecalc
