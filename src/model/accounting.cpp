#include "model/accounting.h"

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

FlopsPerToken forward_flops(const std::vector<Op<double>>& ops, double seq) {
  FlopsPerToken out;
  for (const Op<double>& op : ops) {
    out.matmul += op.matmul_flops().value();
    if (op.part == Part::kRouter) out.router += op.matmul_flops().value();
    out.scan += op.recurrence;
    if (op.kind != OpKind::kAttention) continue;
    out.attention_full += attention_flops(op, seq).value();
    out.attention_causal += attention_flops(op, mean_context(op.reach, op.span, seq)).value();
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
  return count;
}

TrainingFlops training_flops(const ModelSpec& model, double seq, bool with_mtp) {
  const ModelDims<double> dims = read_dims(Reader<double>{}, model);
  FlopsPerToken forward;
  const auto add = [&](const FlopsPerToken& more, double times) {
    forward.matmul += times * more.matmul;
    forward.attention_full += times * more.attention_full;
    forward.attention_causal += times * more.attention_causal;
    forward.scan += times * more.scan;
    forward.router += times * more.router;
  };
  const FlopsPerToken embedding = forward_flops(embedding_ops(model, dims), seq);
  const FlopsPerToken head = forward_flops(head_ops(model, dims), seq);
  add(embedding, 1);
  add(head, 1);
  std::vector<FlopsPerToken> by_kind;
  for (const LayerKind& kind : model.kinds) by_kind.push_back(forward_flops(layer_ops(model, kind, dims), seq));
  for (const std::uint8_t kind : model.layer_kind) add(by_kind[kind], 1);
  double heads = 1;
  if (with_mtp && model.mtp_layers > 0) {
    const double modules = static_cast<double>(model.mtp_layers);
    add(forward_flops(mtp_ops(model, dims), seq), modules);
    add(by_kind[model.mtp_kind], modules);
    add(head, modules);
    heads += modules;
  }
  return {.six_n = 3 * forward.matmul,
          .attention_full = 3 * forward.attention_full,
          .attention_causal = 3 * forward.attention_causal,
          .scan = 3 * forward.scan,
          .router = 3 * forward.router,
          .ends = 3 * (embedding.matmul + heads * head.matmul)};
}

}  // namespace scalecalc
