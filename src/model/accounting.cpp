// Sums parameters and FLOPs over a model's operation lists, for every command that shows them.
#include "model/accounting.h"

#include "model/packing.h"

namespace scalecalc {
namespace {

void add_op(const Op<double>& op, ParameterCount& count) {
  const double parameters = op.parameters();
  switch (op.part) {
    case Part::kAttention: count.attention += parameters; break;
    case Part::kMlp: count.mlp += parameters; break;
    case Part::kExperts: count.experts += parameters; break;
    case Part::kRouter: count.router += parameters; break;
    case Part::kNorm: count.norms += parameters; break;
    case Part::kEmbedding: count.embedding += parameters; break;
    case Part::kHead: count.head += parameters; break;
    case Part::kMtp: count.mtp += parameters; break;
    case Part::kTower: count.towers += parameters; break;
  }
}

ParameterCount count_list(const std::vector<Op<double>>& ops) {
  ParameterCount count;
  for (const Op<double>& op : ops) add_op(op, count);
  return count;
}

double sum(const ParameterCount& c) {
  return c.embedding + c.head + c.attention + c.mlp + c.experts + c.router + c.norms;
}

struct FlopsPerToken {
  double matmul = 0;
  double attention_full = 0;
  double attention_causal = 0;
  double scan = 0;
  double router = 0;
};

/// Forward and backward.
FlopsPerToken training_flops(const std::vector<Op<double>>& ops, double seq, const std::optional<Lengths>& documents) {
  constexpr double kPasses = 3;
  FlopsPerToken out;
  for (const Op<double>& op : ops) {
    const double matmul = (op.frozen ? kPasses - 1 : kPasses) * op.matmul_flops().value();
    out.matmul += matmul;
    if (op.part == Part::kRouter) out.router += matmul;
    out.scan += kPasses * op.recurrence;
    if (op.kind != OpKind::kAttention) continue;
    out.attention_full += kPasses * attention_flops(op, seq).value();
    out.attention_causal += kPasses * attention_flops(op, mean_context(op.reach, op.span, seq, documents)).value();
  }
  return out;
}

}  // namespace

ParameterCount count_parameters(const ModelSpec& model) {
  const ModelDims<double> dims = read_dims(Reader<double>{}, model);
  ParameterCount count = count_list(embedding_ops(model, dims));
  for (const Op<double>& op : head_ops(model, dims)) add_op(op, count);
  std::vector<ParameterCount> by_kind;
  for (const LayerKind& kind : model.kinds) by_kind.push_back(count_list(layer_ops(model, kind, dims)));
  for (const std::uint8_t kind : model.layer_kind) {
    const ParameterCount& layer = by_kind[kind];
    count.attention += layer.attention;
    count.mlp += layer.mlp;
    count.experts += layer.experts;
    count.router += layer.router;
    count.norms += layer.norms;
  }
  const double module = count_list(mtp_ops(model, dims)).mtp;
  if (model.mtp_layers > 0) {
    count.mtp = static_cast<double>(model.mtp_layers) * (module + sum(by_kind[model.mtp_kind]));
  }
  count.total = sum(count);
  const double idle_share = model.moe ? 1 - dims.top_k / dims.experts : 0;
  count.active = count.total - count.experts * idle_share;
  for (const Op<double>& op : embedding_ops(model, dims)) {
    if (is_side_table(op.name)) count.active -= op.parameters();
  }
  return count;
}

double adapter_parameters(const ModelSpec& model, const FineTune& tune) {
  const ModelDims<double> dims = read_dims(Reader<double>{}, model);
  std::vector<double> by_kind;
  for (const LayerKind& kind : model.kinds) {
    double& layer = by_kind.emplace_back(0);
    for (const Op<double>& op : adapted(layer_ops(model, kind, dims), tune)) layer += op.frozen ? 0 : op.parameters();
  }
  double out = 0;
  for (const std::uint8_t kind : model.layer_kind) out += by_kind[kind];
  if (model.mtp_layers > 0) out += static_cast<double>(model.mtp_layers) * by_kind[model.mtp_kind];
  return out;
}

TrainingFlops training_flops(const ModelSpec& model, double seq, bool with_mtp, const std::optional<FineTune>& tune,
                             const std::optional<Lengths>& documents) {
  const ModelDims<double> dims = read_dims(Reader<double>{}, model);
  FlopsPerToken all;
  const auto add = [&](const FlopsPerToken& more, double times) {
    all.matmul += times * more.matmul;
    all.attention_full += times * more.attention_full;
    all.attention_causal += times * more.attention_causal;
    all.scan += times * more.scan;
    all.router += times * more.router;
  };
  const FlopsPerToken embedding = training_flops(trained(embedding_ops(model, dims), tune), seq, documents);
  const FlopsPerToken head = training_flops(trained(head_ops(model, dims), tune), seq, documents);
  add(embedding, 1);
  add(head, 1);
  std::vector<FlopsPerToken> by_kind;
  for (const LayerKind& kind : model.kinds) {
    by_kind.push_back(training_flops(trained(layer_ops(model, kind, dims), tune), seq, documents));
  }
  for (const std::uint8_t kind : model.layer_kind) add(by_kind[kind], 1);
  double heads = 1;
  if (with_mtp && model.mtp_layers > 0) {
    const double modules = static_cast<double>(model.mtp_layers);
    add(training_flops(trained(mtp_ops(model, dims), tune), seq, documents), modules);
    add(by_kind[model.mtp_kind], modules);
    add(head, modules);
    heads += modules;
  }
  return {.six_n = all.matmul,
          .attention_full = all.attention_full,
          .attention_causal = all.attention_causal,
          .scan = all.scan,
          .router = all.router,
          .ends = embedding.matmul + heads * head.matmul};
}

}  // namespace scalecalc
