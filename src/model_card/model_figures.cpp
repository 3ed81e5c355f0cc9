// Computes the parameters, FLOPs and kept activations of a model by part, for `scalecalc model`.
#include "model_card/model_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "cost/remat.h"
#include "model/stored_bytes.h"

namespace scalecalc {
namespace {

using TracedOps = std::vector<Op<Traced>>;

std::size_t index_of(Part part) { return static_cast<std::size_t>(part); }

PartSums sums_of(const TracedOps& ops, const Traced& seq, bool causal) {
  PartSums out;
  for (const Op<Traced>& op : ops) {
    const std::size_t part = index_of(op.part);
    out.parameters[part] = out.parameters[part] + op.parameters();
    out.matmul[part] += op.matmul_flops();
    out.scans += FlopsOf<Traced>(op.recurrence);
    if (op.kind != OpKind::kAttention) continue;
    // The whole square ignores windows and chunks, as the book's sums do.
    const bool masked = op.reach != Reach::kFixed && op.reach != Reach::kBoth && op.reach != Reach::kAround;
    out.scores += attention_flops(op, causal || !masked ? mean_context(op.reach, op.span, seq) : seq);
  }
  return out;
}

void name_sums(PartSums& sums, std::string_view of) {
  for (std::size_t p = 0; p < kPartCount; ++p) {
    sums.parameters[p] = named(sums.parameters[p], fmt::format("{} parameters", kPartKeys[p]), "operation list", of);
    sums.matmul[p] =
        named(sums.matmul[p], fmt::format("{} FLOPs per token", kPartKeys[p]), "book ch. 4: 2 x rows x k x n", of);
  }
  sums.scans = named(sums.scans, "recurrence FLOPs per token", "docs/model.md: state updates and reads", of);
  sums.scores = named(sums.scores, "attention score FLOPs per token", "book ch. 4: 2 x context x (qk + v width)", of);
}

void add(PartSums& sum, const PartSums& more, const Traced& times) {
  for (std::size_t p = 0; p < kPartCount; ++p) {
    sum.parameters[p] = sum.parameters[p] + times * more.parameters[p];
    sum.matmul[p] += times * more.matmul[p];
  }
  sum.scores += times * more.scores;
  sum.scans += times * more.scans;
}

Traced length_input(double seq) { return kReader.input(seq, "seq", "--seq"); }

FlopsOf<Traced> matmul_flops(const PartSums& sums) {
  FlopsOf<Traced> out(Traced(0.0));
  for (const FlopsOf<Traced>& part : sums.matmul) out += part;
  return out;
}

class ModelArithmetic {
 public:
  ModelArithmetic(const ModelSpec& model, const ModelQuestion& question)
      : model_(model), q_(question), dims_(read_dims(kReader, model_)) {
    for (const LayerKind& kind : model_.kinds) ops_.push_back(layer_ops(model_, kind, dims_));
  }

  ModelFigures run() {
    out_.sums = network(q_.seq, true);
    parameters();
    flops();
    modules();
    contexts();
    kept();
    cache();
    assumptions();
    return std::move(out_);
  }

 private:
  std::int64_t layers_of(std::size_t kind) const {
    return std::count(model_.layer_kind.begin(), model_.layer_kind.end(), static_cast<std::uint8_t>(kind));
  }

  Traced layers_input(std::size_t kind) const {
    return kReader.input(static_cast<double>(layers_of(kind)), "layers of kind " + name_of(model_.kinds[kind]),
                         model_.source);
  }

  PartSums layers(double seq, bool keep) {
    PartSums out;
    for (std::size_t k = 0; k < ops_.size(); ++k) {
      PartSums one = sums_of(ops_[k], length_input(seq), q_.causal);
      const std::string kind = name_of(model_.kinds[k]);
      name_sums(one, kind + " layer:");
      add(out, one, layers_input(k));
      if (keep) out_.layers.push_back({kind, layers_of(k), std::move(one)});
    }
    return out;
  }

  PartSums network(double seq, bool keep) {
    PartSums out = layers(seq, keep);
    const Traced once(1.0);
    add(out, sums_of(embedding_ops(model_, dims_), length_input(seq), q_.causal), once);
    add(out, sums_of(head_ops(model_, dims_), length_input(seq), q_.causal), once);
    name_sums(out, "network:");
    return out;
  }

  void parameters() {
    const auto& parts = out_.sums.parameters;
    Traced total(0.0);
    for (std::size_t p = 0; p < kPartCount; ++p) {
      if (p != index_of(Part::kTower)) total = total + parts[p];
    }
    out_.total = named(total, "parameters", "sum of the parts; tied matrices once, MTP modules apart");
    const Traced idle = model_.moe ? Traced(1.0) - dims_.top_k / dims_.experts : Traced(0.0);
    Traced visited = out_.total - parts[index_of(Part::kExperts)] * idle;
    for (const Op<Traced>& op : embedding_ops(model_, dims_)) {
      if (is_side_table(op.name)) visited = visited - op.parameters();  // a row of it is read
    }
    out_.active = named(visited, "active parameters", "book ch. 4: without the experts a token does not visit");
    const Traced small = parts[index_of(Part::kNorm)] + parts[index_of(Part::kRouter)];
    out_.book_total = named(out_.total - small, "parameters without norms and routers", "as the book adds up, ch. 4");
    out_.book_active =
        named(out_.active - small, "active parameters without norms and routers", "as the book adds up, ch. 7");
    for (std::size_t p = 0; p < kPartCount; ++p) {
      out_.shares[p] = named(parts[p] / out_.book_total, fmt::format("{} share", kPartKeys[p]),
                             "of the parameters without norms and routers");
    }
    const bool stored = !q_.weights && model_.quantization;
    const Traced each =
        stored ? named(stored_bytes() / out_.total, "bytes per weight, mean", "bits of each part's format, scales too")
               : kReader.input(bytes_per_element(q_.weights.value_or(DType::kBf16)), "bytes per weight", "--weights");
    out_.bytes = BytesOf<Traced>(out_.total * each);
    if (!q_.weights) out_.stored = stored_weights(model_, model_.quantization.value_or(QuantizationSpec{}));
    out_.book_bytes = BytesOf<Traced>(out_.book_total * each);
  }

  Traced stored_bytes() const {
    const auto of = [&](const TracedOps& ops, const LayerKind* kind) {
      Traced sum(0.0);
      for (const Op<Traced>& op : ops) {
        if (op.part != Part::kTower) sum = sum + scalecalc::stored_bytes(op, kind, *model_.quantization);
      }
      return sum;
    };
    Traced out = of(embedding_ops(model_, dims_), nullptr) + of(head_ops(model_, dims_), nullptr);
    for (std::size_t k = 0; k < ops_.size(); ++k) out = out + of(ops_[k], &model_.kinds[k]) * layers_input(k);
    return out;
  }

  void flops() {
    out_.forward = named(matmul_flops(out_.sums) + out_.sums.scores + out_.sums.scans, "forward FLOPs per token",
                         "matmuls, attention scores and recurrences");
    out_.training =
        named(out_.forward * Traced(3.0), "training FLOPs per token", "book ch. 4: backward costs twice the forward");
    out_.two_n =
        named(FlopsOf<Traced>(Traced(2.0) * out_.active), "2 N per token", "book ch. 7: 2 x active parameters");
    out_.six_n =
        named(FlopsOf<Traced>(Traced(6.0) * out_.active), "6 N per token", "book ch. 4: 6 x active parameters");
  }

  /// Modules of multi-token prediction stand beside the totals: each its own operations, one more layer of its kind and
  /// one more use of the head, whose weights are there already.
  void modules() {
    if (model_.mtp_layers == 0) return;
    PartSums one = sums_of(mtp_ops(model_, dims_), length_input(q_.seq), q_.causal);
    add(one, sums_of(ops_[model_.mtp_kind], length_input(q_.seq), q_.causal), Traced(1.0));
    Traced parameters(0.0);
    for (const Traced& part : one.parameters) parameters = parameters + part;
    const FlopsOf<Traced> head = matmul_flops(sums_of(head_ops(model_, dims_), length_input(q_.seq), q_.causal));
    const FlopsOf<Traced> flops = matmul_flops(one) + one.scores + one.scans + head;
    const Traced count = kReader.input(static_cast<double>(model_.mtp_layers), "MTP modules", model_.source);
    constexpr std::string_view kSource = "docs/model.md: their own matrices, a layer each, the head again";
    const std::size_t mtp = index_of(Part::kMtp);
    out_.sums.parameters[mtp] = named(count * parameters, "MTP parameters", kSource);
    out_.sums.matmul[mtp] = named(count * flops, "MTP FLOPs per token", kSource);
  }

  void contexts() {
    for (const double seq : q_.contexts) {
      const PartSums in_layers = layers(seq, false);
      const PartSums all = network(seq, false);
      ContextFigures row{.seq = seq};
      row.forward = matmul_flops(all) + all.scores + all.scans;
      row.attention_share = named(all.scores / row.forward, "attention share", "scores over all forward FLOPs");
      row.to_matmul = named(all.scores / matmul_flops(in_layers), "scores over matmuls",
                            "book ch. 4: T / (8 D) for F = 4 D, full attention and as many KV heads as heads");
      out_.contexts.push_back(std::move(row));
    }
    out_.break_even_rule = named(Traced(8.0) * dims_.d_model, "rule for the break-even length", "book ch. 4: T = 8 D");
    out_.projections_rule = named(Traced(2.0) * dims_.d_model, "rule for scores equal to the projections",
                                  "book ch. 4, question 5: T = 2 D, the whole square and as many KV heads as heads");
    out_.break_even = scores_equal([](const PartSums& all) { return matmul_flops(all); });
    out_.projections_equal = scores_equal([](const PartSums& all) { return all.matmul[index_of(Part::kAttention)]; });
  }

  /// Scores grow with the length and matmuls do not, so the length is found by halving; windows may keep them below.
  template <class Of>
  std::optional<double> scores_equal(const Of& of) {
    const auto ratio = [&](double seq) {
      const PartSums all = layers(seq, false);
      const FlopsOf<Traced> other = of(all);
      return value_of(other) > 0 ? (all.scores / other).value() : 0;
    };
    double low = 1;
    double high = 1e9;
    if (ratio(high) < 1 || ratio(low) > 1) return std::nullopt;
    while (high - low > 0.5) {
      const double middle = (low + high) / 2;
      (ratio(middle) < 1 ? low : high) = middle;
    }
    return std::round(high);
  }

  void kept() {
    const Traced tokens = kReader.input(q_.seq * q_.batch_seqs, "tokens", "--seq x --batch-seqs");
    const Traced each = kReader.input(bytes_per_element(q_.activations), "bytes per activation", "--activations");
    const auto add_kept = [&](std::string policy, const Traced& per_token, std::string source,
                              const std::optional<FlopsOf<Traced>>& again = std::nullopt) {
      const Traced named_elements = named(per_token, "kept elements per token", source, policy);
      std::optional<FlopsOf<Traced>> run;
      if (again) run = named(*again, "FLOPs run again per token", source, policy);
      out_.kept.push_back(
          {std::move(policy), named_elements, run, BytesOf<Traced>(named_elements * tokens * each), std::move(source)});
    };
    constexpr std::array kPolicies{Remat::kNone, Remat::kSelective, Remat::kAttention, Remat::kMlp, Remat::kFull};
    for (const Remat remat : kPolicies) {
      Traced elements(0.0);
      PartSums repeated;
      for (std::size_t k = 0; k < ops_.size(); ++k) {
        Traced of_layer(0.0);
        TracedOps again;
        for (const Op<Traced>& op : ops_[k]) {
          if (stays(remat, op)) of_layer = of_layer + op.saved;
          if (runs_again(remat, op)) again.push_back(op);
        }
        elements = elements + layers_input(k) * of_layer;
        add(repeated, sums_of(again, length_input(q_.seq), q_.causal), layers_input(k));
      }
      add_kept(fmt::format("remat {}", name_of(remat)), elements, "operation list; arXiv:2205.05198 section 4",
               repeated.scores + repeated.scans + matmul_flops(repeated));
    }
    const Traced width = kReader.input(static_cast<double>(model_.layers()), "layers", model_.source) * dims_.d_model;
    // What is not kept is run again: between the results of matmuls only the scores, of a block all of it.
    const PartSums all = layers(q_.seq, false);
    const FlopsOf<Traced> between = all.scores + all.scans;
    add_kept("book: everything", Traced(20.0) * width, "book ch. 4: about 20 tensors of d_model a layer",
             FlopsOf<Traced>(Traced(0.0)));
    add_kept("book: matmul outputs", Traced(7.0) * width, "book ch. 4: about 7 tensors of d_model a layer", between);
    add_kept("book: block inputs", width, "book ch. 4: one tensor of d_model a layer", between + matmul_flops(all));
  }

  void cache() {
    const KvCache cache = kv_cache(model_);
    const double each = q_.kv_bytes.value_or(bytes_per_element(q_.kv));
    const CacheFormat format{.token_bytes = each};
    out_.kv_elements_per_token = cache.elements_per_token();
    out_.kv_bytes_per_token = cache.bytes_per_token(format);
    out_.kv_unlimited_bytes_per_token = cache.unlimited_bytes_per_token(format);
    out_.kv_bytes_per_sequence = cache.sequence_bytes(q_.seq, format);
    out_.kv_state_bytes = cache.sequence_bytes(0, format);
    out_.cache = cache.kinds;
  }

  void assumptions() {
    if (!q_.weights && model_.quantization) {
      out_.assumptions.push_back(
          Assumption{fmt::format("weights as the checkpoint stores them: {}", name_of(model_.quantization->weights)),
                     "--weights", model_.quantization->source}
              .as("weights")
              .is(name_of(model_.quantization->weights)));
    }
    out_.assumptions.push_back({!model_.attention.causal ? "attention scores of each token with all: no mask is causal"
                                : q_.causal              ? "attention scores over the half a causal mask leaves"
                                            : "attention scores over the whole square, masked half included",
                                "--attention", "book ch. 4", false});
    out_.assumptions.push_back(
        Assumption{"parameters: tied matrices once, MTP modules and vision towers apart; active: all but "
                   "the experts a token does not visit, embeddings included",
                   "", "docs/model.md"}
            .as("parameters_counted")
            .is("tied once; no MTP modules, no vision towers"));
  }

  const ModelSpec& model_;
  const ModelQuestion& q_;
  ModelDims<Traced> dims_;
  std::vector<TracedOps> ops_;
  ModelFigures out_;
};

}  // namespace

ModelFigures model_figures(const ModelSpec& model, const ModelQuestion& question) {
  return ModelArithmetic(model, question).run();
}

}  // namespace scalecalc
