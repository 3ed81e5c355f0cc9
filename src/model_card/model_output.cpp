// Shows a model's figures by part, and the list of the catalog's models, for `scalecalc model`.
#include "model_card/model_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "model/accounting.h"
#include "model/kv_cache.h"
#include "report/brief_blocks.h"

namespace scalecalc {
namespace {

constexpr std::array<std::string_view, kPartCount> kPartLabels{
    "attention", "MLP", "routed experts", "router", "norms", "embedding", "output head", "MTP modules", "towers"};

/// Beside every total, so it has no share of one.
constexpr bool is_beside(std::size_t part) {
  return part == static_cast<std::size_t>(Part::kMtp) || part == static_cast<std::size_t>(Part::kTower);
}

std::string key(std::string_view group, std::string_view member) { return fmt::format("{}.{}", group, member); }

std::string length_text(double tokens) { return group_thousands(static_cast<long long>(tokens)); }

Record query(const ModelSpec& model, const ModelQuestion& q) {
  return {{figure("model", "model", Format::kText, Cell(model.name)),
           figure("model_title", "", Format::kText, Cell(model.title)),
           figure("seq", "sequence", Format::kInteger, Cell(q.seq)),
           figure("batch_seqs", "sequences", Format::kNumber, Cell(q.batch_seqs))}};
}

/// A column that a narrow terminal leaves out before those of less importance (Figure::importance).
/// Rows people read: what a part holds and what it costs a token. Machines get the same as objects.
Block parts_block(const ModelFigures& f) {
  Block out{.key = "parts", .title = "Parts"};
  for (std::size_t p = 0; p < kPartCount; ++p) {
    const double flops = f.sums.matmul[p].value().value();
    if (f.sums.parameters[p].value() == 0 && flops == 0) continue;
    out.records.push_back(
        {{figure("part", "part", Format::kText, Cell(std::string(kPartLabels[p]))),
          figure("parameters", "parameters", Format::kCount, f.sums.parameters[p]),
          with_importance(
              figure("share", "share", Format::kFraction, is_beside(p) ? Cell{} : Cell(f.shares[p].value())), 1),
          figure("forward_flops", "forward FLOPs a token", Format::kFlops, flops > 0 ? Cell(flops) : Cell{}),
          with_importance(figure("backward_flops", "backward", Format::kFlops, flops > 0 ? Cell(2 * flops) : Cell{}),
                          2)}});
  }
  const auto without_weights = [&](std::string name, const FlopsOf<Traced>& flops) {
    if (flops.value().value() == 0) return;
    out.records.push_back(
        {{figure("part", "part", Format::kText, Cell(std::move(name))),
          figure("parameters", "parameters", Format::kCount, Cell(0.0)),
          with_importance(figure("share", "share", Format::kFraction, Cell{}), 1),
          figure("forward_flops", "forward FLOPs a token", Format::kFlops, flops),
          with_importance(figure("backward_flops", "backward", Format::kFlops, Cell(2 * flops.value().value())), 2)}});
  };
  without_weights("attention scores", f.sums.scores);
  without_weights("recurrences", f.sums.scans);
  return out;
}

Block parameters_block(const ModelSpec& model, const ModelQuestion& q, const ModelFigures& f) {
  Record r;
  r.figures.push_back(figure("parameters.total", "parameters", Format::kCount, f.total));
  r.figures.push_back(figure("parameters.active", "active parameters", Format::kCount, f.active));
  r.figures.push_back(figure("parameters.book_total", "without norms and routers", Format::kCount, f.book_total));
  r.figures.push_back(figure("parameters.book_active", "", Format::kCount, f.book_active));
  if (q.against) {
    r.figures.push_back(figure("against.parameters", "against", Format::kCount, Cell(*q.against)));
    r.figures.push_back(
        figure("against.growth", "times that", Format::kNumber, Cell(f.book_total.value() / *q.against)));
    r.figures.push_back(figure("against.active_growth", "active, times that", Format::kNumber,
                               Cell(f.book_active.value() / *q.against)));
  }
  for (std::size_t p = 0; p < kPartCount; ++p) {
    r.figures.push_back(figure(key("parameters", kPartKeys[p]), "", Format::kCount, f.sums.parameters[p]));
  }
  for (std::size_t p = 0; p < kPartCount; ++p) {
    r.figures.push_back(figure(key("parameter_shares", kPartKeys[p]), "", Format::kFraction, f.shares[p]));
    r.figures.push_back(figure(key("parameter_shares_of_total", kPartKeys[p]), "", Format::kFraction,
                               Cell(is_beside(p) ? 0 : f.sums.parameters[p].value() / f.total.value())));
  }
  const std::size_t embedding = static_cast<std::size_t>(Part::kEmbedding);
  const std::size_t head = static_cast<std::size_t>(Part::kHead);
  r.figures.push_back(figure("parameters.vocabulary", "embedding and head", Format::kCount,
                             f.sums.parameters[embedding] + f.sums.parameters[head], "both ends"));
  const auto official = [](double value) { return value > 0 ? Cell(value) : Cell{}; };
  r.figures.push_back(figure("parameters.official", "official count", Format::kCount,
                             official(static_cast<double>(model.official.exact))));
  r.figures.push_back(
      figure("parameters.stated", "as the vendor states it", Format::kCount, official(model.official.stated)));
  r.figures.push_back(
      figure("parameters.stated_active", "stated active", Format::kCount, official(model.official.active)));
  r.figures.push_back(figure("parameter_bytes.total", "bytes of the weights", Format::kBytes, f.bytes));
  r.figures.push_back(figure("parameter_bytes.book_total", "", Format::kBytes, f.book_bytes));
  r.figures.push_back(figure("parameter_bytes.index", "as the checkpoint's index says", Format::kBytes,
                             q.index_bytes ? Cell(*q.index_bytes) : Cell{}));
  return {"", "Parameters", false, {std::move(r)}};
}

/// How the checkpoint stores them, the largest first; a brief answer's headline has the sum.
Block stored_block(const ModelFigures& f) {
  Block out{.key = "stored", .title = "Stored weights", .shown = Shown::kFull};
  std::vector<StoredWeights> rows = f.stored;
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
  for (const StoredWeights& row : rows) {
    const bool module = row.part == kStoredModules || row.part == kStoredTowers;
    out.records.push_back(
        {{figure("part", "part", Format::kText, Cell(std::string(row.part))),
          figure("format", "format", Format::kText, Cell(std::string(name_of(row.format)))),
          with_importance(figure("parameters", "parameters", Format::kCount, Cell(row.parameters)), 1),
          figure("bits_per_weight", "bits a weight", Format::kNumber, Cell(8 * row.bytes / row.parameters)),
          figure("bytes", "bytes", Format::kBytes, Cell(row.bytes)),
          with_importance(
              figure("share", "share", Format::kFraction, module ? Cell{} : Cell(row.bytes / total_bytes(f.stored))),
              2)}});
  }
  return out;
}

Block flops_block(const ModelQuestion& q, const ModelFigures& f) {
  Record r;
  r.figures.push_back(figure("flops_per_token.forward", "forward FLOPs a token", Format::kFlops, f.forward));
  r.figures.push_back(figure("flops_per_token.training", "training FLOPs a token", Format::kFlops, f.training));
  r.figures.push_back(figure("flops_per_token.two_n", "rule 2 N, forward", Format::kFlops, f.two_n));
  r.figures.push_back(figure("flops_per_token.six_n", "rule 6 N, training", Format::kFlops, f.six_n));
  const double tokens = q.seq * q.batch_seqs;
  const auto of_batch = [&](std::string_view part, const FlopsOf<Traced>& forward) {
    const bool all = part == "total";
    r.figures.push_back(figure(key("batch_flops.forward", part), all ? "forward FLOPs of the batch" : "",
                               Format::kFlops, Cell(forward.value().value() * tokens)));
    r.figures.push_back(figure(key("batch_flops.training", part), all ? "training FLOPs of the batch" : "",
                               Format::kFlops, Cell(3 * forward.value().value() * tokens)));
  };
  for (std::size_t p = 0; p < kPartCount; ++p) of_batch(kPartKeys[p], f.sums.matmul[p]);
  of_batch("attention_scores", f.sums.scores);
  of_batch("recurrences", f.sums.scans);
  of_batch("total", f.forward);
  r.figures.push_back(figure("attention_share", "attention scores of it", Format::kFraction, f.sums.scores / f.forward,
                             "scores over all forward FLOPs"));
  r.figures.push_back(figure("attention_break_even_tokens.exact", "scores equal the matmuls at", Format::kInteger,
                             f.break_even ? Cell(*f.break_even) : Cell{}));
  r.figures.push_back(
      figure("attention_break_even_tokens.rule", "rule 8 d_model", Format::kInteger, f.break_even_rule));
  r.figures.push_back(figure("attention_break_even_tokens.projections", "scores equal attention's projections at",
                             Format::kInteger, cell_of(f.projections_equal)));
  r.figures.push_back(
      figure("attention_break_even_tokens.projections_rule", "rule 2 d_model", Format::kInteger, f.projections_rule));
  return {"", fmt::format("FLOPs at {} tokens a sequence", length_text(q.seq)), false, {std::move(r)}};
}

Block layers_block(const ModelQuestion& q, const ModelFigures& f) {
  Block out{.key = "layers", .title = "Layers"};
  const double tokens = q.seq * q.batch_seqs;
  for (const LayerFigures& layer : f.layers) {
    Record r;
    r.figures.push_back(figure("kind", "kind", Format::kText, Cell(layer.kind)));
    r.figures.push_back(figure("layers", "layers", Format::kInteger, Cell(static_cast<double>(layer.layers))));
    double parameters = 0;
    double forward = layer.sums.scores.value().value() + layer.sums.scans.value().value();
    for (std::size_t p = 0; p < kPartCount; ++p) {
      parameters += layer.sums.parameters[p].value();
      forward += layer.sums.matmul[p].value().value();
    }
    const double attention = layer.sums.parameters[0].value();
    r.figures.push_back(figure("parameters.total", "parameters of one", Format::kCount, Cell(parameters)));
    r.figures.push_back(
        with_importance(figure("forward_flops_per_token", "forward FLOPs a token", Format::kFlops, Cell(forward)), 1));
    r.figures.push_back(with_importance(
        figure("training_flops_per_token", "training FLOPs a token", Format::kFlops, Cell(3 * forward)), 2));
    r.figures.push_back(with_importance(
        figure("batch_training_flops", "batch, one layer", Format::kFlops, Cell(3 * forward * tokens)), 1));
    for (std::size_t p = 0; p < kPartCount; ++p) {
      const double flops = layer.sums.matmul[p].value().value();
      r.figures.push_back(figure(key("parameters", kPartKeys[p]), "", Format::kCount, layer.sums.parameters[p]));
      r.figures.push_back(figure(key("batch_flops.forward", kPartKeys[p]), "", Format::kFlops, Cell(flops * tokens)));
      r.figures.push_back(
          figure(key("batch_flops.training", kPartKeys[p]), "", Format::kFlops, Cell(3 * flops * tokens)));
    }
    const double scores = layer.sums.scores.value().value();
    r.figures.push_back(figure("batch_flops.forward.attention_scores", "", Format::kFlops, Cell(scores * tokens)));
    r.figures.push_back(figure("batch_flops.training.attention_scores", "", Format::kFlops, Cell(3 * scores * tokens)));
    const double norms = layer.sums.parameters[static_cast<std::size_t>(Part::kNorm)].value();
    r.figures.push_back(with_importance(figure("parameter_shares.attention", "attention share", Format::kFraction,
                                               parameters > norms ? Cell(attention / (parameters - norms)) : Cell{}),
                                        2));
    out.records.push_back(std::move(r));
  }
  return out;
}

Block contexts_block(const ModelFigures& f) {
  Block out{.key = "contexts", .title = "Attention against context"};
  for (const ContextFigures& row : f.contexts) {
    out.records.push_back(
        {{figure("seq", "sequence", Format::kInteger, Cell(row.seq)),
          figure("forward_flops_per_token", "forward FLOPs a token", Format::kFlops, Cell(row.forward.value().value())),
          figure("attention_share", "scores", Format::kFraction, row.attention_share),
          figure("scores_to_matmul", "scores / matmuls", Format::kNumber, row.to_matmul)}});
  }
  return out;
}

Block kept_block(const ModelQuestion& q, const ModelFigures& f) {
  Block out{.key = "checkpoints",
            .title = fmt::format("Kept for the backward pass, {} tokens", length_text(q.seq * q.batch_seqs))};
  for (const KeptFigures& row : f.kept) {
    out.records.push_back(
        {{figure("policy", "policy", Format::kText, Cell(row.policy)),
          figure("elements_per_token", "elements a token", Format::kCount, row.per_token),
          figure("bytes", "bytes", Format::kBytes, row.bytes),
          with_importance(maybe_figure("recomputed_flops_per_token", "recompute/token", Format::kFlops, row.again), 1),
          with_importance(figure("recomputed_flops", "of all", Format::kFlops,
                                 row.again ? Cell(row.again->value().value() * q.seq * q.batch_seqs) : Cell{}),
                          2),
          with_importance(figure("source", "source", Format::kText, Cell(row.source)), 1)}});
  }
  return out;
}

/// Whether some layers stop growing at a window or a chunk: then a long sequence takes less a token than a short one.
bool has_windows(const ModelFigures& f) { return f.kv_unlimited_bytes_per_token < f.kv_bytes_per_token; }

/// What one sequence keeps while it is generated.
Block cache_block(const ModelQuestion& q, const ModelFigures& f) {
  const bool windows = has_windows(f);
  Record r;
  r.figures = {figure("kv_unlimited_bytes_per_token", windows ? "a token of a long sequence" : "", Format::kBytes,
                      Cell(f.kv_unlimited_bytes_per_token)),
               figure("kv_bytes_per_token", windows ? "until the windows are full" : "bytes a token", Format::kBytes,
                      Cell(f.kv_bytes_per_token)),
               figure("kv_elements_per_token", "", Format::kCount, Cell(f.kv_elements_per_token)),
               figure("kv_bytes_per_sequence", fmt::format("a sequence of {}", length_text(q.seq)), Format::kBytes,
                      Cell(f.kv_bytes_per_sequence)),
               figure("kv_state_bytes", "of it that does not grow", Format::kBytes,
                      f.kv_state_bytes > 0 ? Cell(f.kv_state_bytes) : Cell{})};
  std::vector<Record> kinds;
  for (const LayerCache& kind : f.cache) {
    kinds.push_back(
        {{figure("layers", "", Format::kInteger, Cell(static_cast<double>(kind.layers))),
          figure("token_elements", "", Format::kInteger, Cell(kind.token_elements)),
          figure("index_elements", "", Format::kInteger, Cell(kind.index_elements)),
          figure("limit_tokens", "", Format::kInteger, kind.limit > 0 ? Cell(static_cast<double>(kind.limit)) : Cell{}),
          figure("ways", "", Format::kInteger, Cell(static_cast<double>(kind.ways))),
          figure("state_elements", "", Format::kInteger, Cell(kind.state_elements)),
          figure("conv_elements", "", Format::kInteger, Cell(kind.conv_elements))}});
  }
  r.figures.push_back(records_figure("kv_layers", "", "", std::move(kinds)));
  return {"", fmt::format("KV cache in {}", name_of(q.kv)), false, {std::move(r)}};
}

Block moe_block(const ModelSpec& model) {
  const MoeSpec& moe = *model.moe;
  const double experts = static_cast<double>(moe.experts);
  const double top_k = static_cast<double>(moe.top_k);
  return {"moe",
          "Experts",
          false,
          {Record{{figure("experts", "routed experts", Format::kInteger, Cell(experts)),
                   figure("top_k", "each token visits", Format::kInteger, Cell(top_k)),
                   figure("sparsity", "sparsity E / k", Format::kNumber, Cell(experts / top_k)),
                   figure("expert_d_ff", "width of an expert", Format::kInteger, Cell(static_cast<double>(moe.d_ff))),
                   figure("shared_experts", "shared experts", Format::kInteger,
                          Cell(static_cast<double>(moe.shared_experts)))}}}};
}

Record list_record(const ModelSpec& model) {
  const auto known = [](const std::string& text) { return text.empty() ? Cell{} : Cell(text); };
  const ParameterCount count = count_parameters(model);
  const KvCache kv = kv_cache(model);
  return {{figure("name", "name", Format::kText, Cell(model.name)),
           with_importance(figure("title", "model", Format::kText, Cell(model.title)), 6),
           with_importance(figure("vendor", "vendor", Format::kText, known(model.vendor)), 5),
           with_importance(figure("released", "released", Format::kText, known(model.released)), 4),
           figure("parameters", "parameters", Format::kCount, Cell(count.total)),
           figure("active", "active", Format::kCount, Cell(count.active)),
           figure("layers", "layers", Format::kInteger, Cell(static_cast<double>(model.layers()))),
           with_importance(figure("d_model", "d_model", Format::kInteger, Cell(static_cast<double>(model.d_model))), 3),
           with_importance(figure("max_seq", "context", Format::kInteger, Cell(static_cast<double>(model.max_seq))), 1),
           with_importance(figure("kv_unlimited_bytes_per_token", "KV a token, bf16", Format::kBytes,
                                  Cell(kv.unlimited_bytes_per_token({}))),
                           2),
           figure("kv_bytes_per_token", "", Format::kBytes, Cell(kv.bytes_per_token({})))}};
}

/// What the weights' bytes are of: the format asked for, or that of most of the checkpoint.
std::string_view weight_format(const ModelSpec& model, const ModelQuestion& q) {
  if (q.weights || !model.quantization) return name_of(q.weights.value_or(DType::kBf16));
  return name_of(model.quantization->weights);
}

std::string model_headline(const ModelSpec& model, const ModelQuestion& q, const ModelFigures& f) {
  const auto count = [](const Traced& value) { return compact_count(value.value()); };
  const auto flops = [](const FlopsOf<Traced>& value) { return text_of(Cell(value.value().value()), Format::kFlops); };
  const bool sparse = f.active.value() < f.total.value();
  const std::string grows = bytes_text(f.kv_unlimited_bytes_per_token);
  const std::string cache =
      has_windows(f) ? fmt::format("{} of KV cache a token of a long sequence, {} until the windows are full, in {}",
                                   grows, bytes_text(f.kv_bytes_per_token), name_of(q.kv))
                     : fmt::format("{} of KV cache a token in {}", grows, name_of(q.kv));
  return fmt::format("{} parameters{}, {} of weights in {}; {} a token to train, {} to read it; {}", count(f.total),
                     sparse ? ", " + count(f.active) + " active" : "", bytes_text(f.bytes.value().value()),
                     weight_format(model, q), flops(f.training), flops(f.forward), cache);
}

}  // namespace

Output model_list_output(const std::vector<ModelSpec>& models, const std::vector<std::string>& filters) {
  Output out{.command = "model-list", .title = fmt::format("{} model{}", models.size(), models.size() == 1 ? "" : "s")};
  out.query.figures.push_back(list_figure("filters", "", {filters.begin(), filters.end()}));
  Block block{.key = "models"};
  for (const ModelSpec& model : models) block.records.push_back(list_record(model));
  out.blocks.push_back(std::move(block));
  return out;
}

Output model_output(const ModelSpec& model, const ModelQuestion& question, const ModelFigures& f) {
  Output out{.command = "model", .title = model.title};
  out.query = query(model, question);
  out.headline.push_back({model_headline(model, question, f), Role::kGood});
  out.blocks.push_back(parts_block(f));
  const auto add = [&](Block block, std::vector<std::string> brief_keys) {
    block.brief_keys = std::move(brief_keys);
    out.blocks.push_back(std::move(block));
  };
  add(parameters_block(model, question, f), {"against."});
  out.blocks.push_back(stored_block(f));
  const bool batch = question.batch_seqs != 1;
  std::vector<std::string> brief_flops{"flops_per_token.training", "attention_share",
                                       "attention_break_even_tokens.exact"};
  if (batch) brief_flops.insert(brief_flops.end(), {"batch_flops.forward.total", "batch_flops.training.total"});
  add(flops_block(question, f), std::move(brief_flops));
  add(cache_block(question, f), {"kv_unlimited_", "kv_bytes_", "kv_state_bytes"});
  if (model.moe) out.blocks.push_back(moe_block(model));
  for (Block block : {layers_block(question, f), contexts_block(f), kept_block(question, f)}) {
    const bool asked = (block.key == "contexts" && question.contexts_asked) || (block.key == "layers" && batch);
    block.shown = asked ? Shown::kAlways : Shown::kFull;
    out.blocks.push_back(std::move(block));
  }
  out.blocks.push_back(
      brief_end_block({{"more: --verbose (layers, attention against context, what the backward pass "
                        "keeps), --explain; scalecalc train and serve plan it on chips"}}));
  out.plots = {model_plot(f)};
  out.assumptions = f.assumptions;
  return out;
}

Plot model_plot(const ModelFigures& found) {
  Plot out{.x = {.title = "tokens of a sequence", .format = Format::kInteger, .log = true},
           .y = {.title = "share of the forward FLOPs", .format = Format::kFraction}};
  PlotSeries share{.name = "attention's scores"};
  for (const ContextFigures& row : found.contexts) share.points.push_back({row.seq, row.attention_share.value()});
  if (found.break_even) {
    out.marks.push_back({PlotMarkKind::kAtX,
                         {*found.break_even, 0},
                         fmt::format("{} tokens: scores cost as much as the layers' matmuls",
                                     text_of(*found.break_even, Format::kInteger))});
  }
  out.series = {std::move(share)};
  return out;
}

}  // namespace scalecalc
