// Translates a training plan into the terms of launch files, and such terms into a layout.
#include "launch/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "base/diagnostic.h"
#include "base/text.h"
#include "cost/pipeline.h"
#include "launch/adapters.h"
#include "launch/cluster.h"
#include "plan/dimensions.h"

namespace scalecalc {
namespace {

std::string on_off(bool on) { return on ? "on" : "off"; }

std::vector<std::int64_t> chunk_layers(const ModelSpec& model, std::int64_t pp, std::int64_t vpp, StageSplit stages,
                                       const ChunkEnds& ends) {
  std::vector<std::int64_t> out;
  for (const ChunkShape& chunk : deal(model, pp, vpp, stages, ends)) out.push_back(chunk.layers);
  return out;
}

/// Megatron's words for chunks: E the embedding, t a layer, m a module of multi-token prediction, L the loss.
std::string layout_text(const std::vector<std::int64_t>& layers, std::int64_t mtp) {
  std::string out;
  for (std::size_t c = 0; c < layers.size(); ++c) {
    if (c > 0) out += '|';
    if (c == 0) out += 'E';
    out += std::string(static_cast<std::size_t>(layers[c]), 't');
    if (c + 1 == layers.size()) out += std::string(static_cast<std::size_t>(mtp), 'm') + "L";
  }
  return out;
}

/// "(tt|)*30" and "t*4" written out; empty for what is neither.
std::string written_out(std::string_view text) {
  std::string out;
  constexpr std::size_t kMost = 100'000;
  for (std::size_t i = 0; i < text.size() && out.size() < kMost;) {
    std::string unit(1, text[i]);
    if (text[i] == '(') {
      const std::size_t close = text.find(')', i);
      if (close == std::string_view::npos) return "";
      unit = std::string(text.substr(i + 1, close - i - 1));
      i = close;
    }
    ++i;
    std::size_t times = 1;
    if (i < text.size() && text[i] == '*') {
      std::string digits;
      while (++i < text.size() && text[i] >= '0' && text[i] <= '9' && digits.size() < 6) digits += text[i];
      if (digits.empty()) return "";
      times = std::stoul(digits);
    }
    for (std::size_t n = 0; n < times && out.size() < kMost; ++n) out += unit;
  }
  return out;
}

std::vector<std::int64_t> layers_in(std::string_view layout) {
  std::vector<std::int64_t> out{0};
  for (const char c : layout) {
    if (c == '|') out.push_back(0);
    if (c == 't') ++out.back();
  }
  return out;
}

/// Mesh dimensions that reach over slices (tori, or nodes of a switched machine): by how many.
void add_outer_degrees(const TrainingLaunch& plan, LaunchTerms& terms) {
  constexpr std::array<std::string_view, kMeshDims> kNames{"dcn_tp", "dcn_cp", "dcn_fsdp", "dcn_data", "dcn_pp"};
  for (std::size_t d = 0; d < kMeshDims; ++d) {
    std::int64_t outer = 1;
    for (std::size_t t = 1; t < kMaxTiers; ++t) outer *= plan.placement.dims[d].tiers[t];
    terms.numbers[std::string(kNames[d])] = outer;
  }
  terms.numbers["dcn_ep"] = 1;
}

/// Axes of a mesh, outermost first, as the placement nests them.
std::string mesh_axes(const Placement& placement) {
  const std::string order(placement.order.empty() ? "tp-cp-fsdp-dp-pp" : placement.order);
  std::vector<std::string> axes;
  for (std::size_t at = 0; at < order.size();) {
    const std::size_t end = std::min(order.find('-', at), order.size());
    const std::string_view dim = std::string_view(order).substr(at, end - at);
    if (dim == "tp") axes.emplace_back("\"tensor\"");
    if (dim == "cp") axes.emplace_back("\"context\"");
    if (dim == "fsdp") axes.insert(axes.end(), {"\"expert\"", "\"fsdp\""});
    if (dim == "dp") axes.emplace_back("\"data\"");
    at = end + 1;
  }
  std::reverse(axes.begin(), axes.end());
  return join(axes, ", ");
}

/// Megatron's pattern of layers: 1 where experts are, 0 where not, runs counted.
std::string expert_layers(const ModelSpec& model) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < model.layer_kind.size();) {
    const auto moe = [&](std::size_t i) { return model.kinds[model.layer_kind[i]].ffn == FfnKind::kMoe; };
    std::size_t end = at;
    while (end < model.layer_kind.size() && moe(end) == moe(at)) ++end;
    out.push_back(fmt::format("[{}]*{}", moe(at) ? 1 : 0, end - at));
    at = end;
  }
  return "(" + join(out, "+") + ")";
}

/// What tells models of one size apart.
void add_architecture(const ModelSpec& model, LaunchTerms& t) {
  const AttentionSpec& a = model.attention;
  const auto all = [&](auto&& holds) { return std::all_of(model.kinds.begin(), model.kinds.end(), holds); };
  const bool plain_embedding = !model.ngram_embedding && model.embedding_dim == 0 && !model.embedding_bias;
  const bool plain_parts =
      model.norm_weights && model.mlp.activation_weights == 0 && plain_embedding && !a.disentangled;
  const bool decoder = a.causal && model.streams.count == 1 && model.head_dense == HeadDense::kNone && plain_parts;
  constexpr std::int64_t kBeforeMixerAndFfn = 2;
  t.words["plain_layers"] = on_off(decoder && !model.parallel_block && all([&](const LayerKind& k) {
                                     return k.mixer == (a.mla ? MixerKind::kMla : MixerKind::kFull) &&
                                            k.ffn != FfnKind::kNone && !k.d_ff &&
                                            model.norms_of(k) == kBeforeMixerAndFfn;
                                   }));
  t.words["tied"] = on_off(model.tied_embeddings);
  t.words["norm"] = model.norm == NormKind::kRms ? "rms" : "layer";
  t.words["positions"] = model.relative_positions ? "relative" : model.learned_positions > 0 ? "learned" : "rotary";
  t.words["bias"] = on_off(model.mlp.bias);
  t.words["qkv_bias"] = on_off(a.qkv_bias && !model.mlp.bias);
  t.words["qk_norm"] = on_off(a.qk_norm != QkNorm::kNone || a.mla.has_value());
  t.words["own_head_dim"] = on_off(!a.mla && a.heads * a.head_dim != model.d_model);
  t.numbers["head_dim"] = a.head_dim;
  if (a.mla) {
    t.numbers["q_lora"] = a.mla->q_lora_rank;
    t.numbers["kv_lora"] = a.mla->kv_lora_rank;
    t.numbers["nope_dim"] = a.mla->qk_nope_head_dim;
    t.numbers["rope_dim"] = a.mla->qk_rope_head_dim;
    t.numbers["v_dim"] = a.mla->v_head_dim;
  }
  if (!model.moe) return;
  t.numbers["shared_ff"] = model.moe->shared_d_ff;
  t.numbers["router_groups"] = model.moe->n_group;
  t.numbers["router_topk_groups"] = model.moe->topk_group;
  t.words["expert_layers"] = expert_layers(model);
  t.words["experts_everywhere"] = on_off(all([](const LayerKind& k) { return k.ffn == FfnKind::kMoe; }));
}

void add_model(const ModelSpec& model, LaunchTerms& t) {
  const AttentionSpec& a = model.attention;
  const auto add = [&](std::string_view name, std::int64_t value) {
    if (value > 0) t.numbers[std::string(name)] = value;
  };
  add("layers", model.layers());
  add("d_model", model.d_model);
  add("vocab", model.vocab);
  add("heads", a.heads);
  if (!a.mla) add("kv_heads", a.kv_heads);
  const bool one_width =
      std::none_of(model.kinds.begin(), model.kinds.end(), [](const LayerKind& k) { return k.d_ff.has_value(); });
  if (one_width) add("d_ff", model.mlp.d_ff);
  t.numbers["mtp_layers"] = model.mtp_layers;
  t.numbers["kinds"] = static_cast<std::int64_t>(model.kinds.size());
  t.words["gqa"] = on_off(!a.mla && a.kv_heads < a.heads);
  t.words["mla"] = on_off(a.mla.has_value());
  t.words["moe"] = on_off(model.moe.has_value());
  t.words["gated"] = on_off(model.mlp.gated);
  t.words["model"] = model.name;
  add_architecture(model, t);
  if (!model.moe) return;
  add("experts", model.moe->experts);
  add("topk", model.moe->top_k);
  add("expert_ff", model.moe->d_ff);
}

void add_pipeline(const TrainingLaunch& plan, LaunchTerms& t) {
  const Layout& l = plan.layout;
  const std::vector<std::int64_t> chunks = chunk_layers(plan.model, l.pp, l.vpp, plan.workload.runtime.stages, l.split);
  const bool same = std::adjacent_find(chunks.begin(), chunks.end(), std::not_equal_to<>()) == chunks.end();
  const bool accounted =
      chunks.size() > 2 && chunks.front() == chunks.back() &&
      std::all_of(chunks.begin() + 1, chunks.end() - 1, [&](std::int64_t n) { return n == chunks.front() + 1; });
  t.words["deal"] = same || accounted ? "even" : "uneven";
  t.words["accounted"] = on_off(!same && accounted);
  t.words["layout"] = same || accounted ? "none" : layout_text(chunks, plan.model.mtp_layers);
  t.words["schedule"] = std::string(name_of(l.schedule));
}

std::int64_t chips_of_node(const HardwareSpec& hw, std::int64_t chips) {
  return std::gcd(chips, std::max<std::int64_t>(1, std::min(hw.chips_per_host, chips)));
}

}  // namespace

bool has_shape(const ModelSpec& model, const LaunchTerms& said) {
  LaunchTerms its;
  add_model(model, its);
  for (const std::string_view name : {"layers", "d_model", "heads"}) {
    if (!said.number(name)) return false;
  }
  for (const std::string_view name :
       {"layers", "d_model", "heads", "kv_heads", "d_ff", "experts", "topk", "expert_ff", "vocab"}) {
    const auto value = said.number(name);
    if (value && value != its.number(name)) return false;
  }
  return model.moe.has_value() == said.number("experts").has_value();
}

bool matters(std::string_view name, const Layout& l, bool moe) {
  if (name == "sp") return l.tp > 1;
  if (name == "cp_comm") return l.cp > 1;
  if (name == "schedule" || name == "vpp" || name == "split") return l.pp > 1;
  if (name == "ep" || name == "etp") return moe;
  if (name == "ep_overlap") return l.ep > 1;
  if (name == "zero") return l.data() * l.cp > 1;
  return name != "remat_layers";
}

namespace {

/// Adapters in words; which modules carry them is for the framework to name (modules_of).
void add_adapters(const std::optional<FineTune>& tune, LaunchTerms& t) {
  t.words["tune"] = tune ? "lora" : "whole";
  if (!tune) return;
  t.numbers["lora_rank"] = tune->rank;
  t.words["lora_mlp"] = on_off((tune->targets & kLoraMlp) != 0);
  t.words["base"] = tune->base ? kBaseFormatNames.at(static_cast<std::size_t>(*tune->base)) : "recipe";
}

std::string frameworks_with_adapters() {
  std::vector<std::string> out;
  for (const LaunchFramework& framework : launch_frameworks()) {
    if (says_adapters(framework)) out.emplace_back(framework.name);
  }
  return join_and(out);
}

/// What of a plan's adapters a file does not say again.
std::string lost_of_adapters(const std::optional<FineTune>& plan, const std::optional<FineTune>& back) {
  if (plan == back) return "";
  if (!plan || !back) return "adapters (--lora)";
  if (plan->base != back->base) {
    return fmt::format("a base in {}",
                       plan->base ? kBaseFormatNames.at(static_cast<std::size_t>(*plan->base)) : "the recipe's format");
  }
  if (plan->experts != back->experts) return "adapters of routed experts";
  return fmt::format("adapters of rank {} on {}", plan->rank, target_names(plan->targets));
}

}  // namespace

LaunchTerms training_terms(const TrainingLaunch& plan) {
  const Layout& l = plan.layout;
  LaunchTerms t;
  add_model(plan.model, t);
  t.words["activation"] = plan.names.activation.empty() ? "silu" : plan.names.activation;
  const std::int64_t replicas = l.zero == 0 ? l.data() : l.shards_in_groups() ? l.dp : 1;
  t.numbers.insert({{"dp", l.dp},
                    {"fsdp", l.fsdp},
                    {"tp", l.tp},
                    {"cp", l.cp},
                    {"pp", l.pp},
                    {"vpp", l.vpp},
                    {"ep", l.ep},
                    {"etp", l.etp},
                    {"mb", l.micro_batch_seqs},
                    {"ga", l.grad_accum},
                    {"zero", l.zero},
                    {"replicas", replicas},
                    {"shards", l.data() / replicas},
                    {"chips", l.chips()},
                    {"seq", plan.workload.seq},
                    {"remat_layers", l.remat_layers},
                    {"offload_layers", l.offload_layers},
                    {"cores", plan.devices_per_chip}});
  t.numbers["local"] = chips_of_node(plan.hw, l.chips());
  t.numbers["nodes"] = l.chips() / t.numbers["local"];
  add_outer_degrees(plan, t);
  const std::int64_t cores = t.numbers["cores"];
  t.numbers["data_axis"] = l.zero == 3 ? l.dp : l.data() * cores;
  const std::int64_t sharded = l.zero == 3 ? l.fsdp * cores : 1;
  t.numbers["expert_axis"] = l.zero < 3 || sharded % l.ep == 0 ? 1 : 0;
  t.numbers["fsdp_axis"] = l.zero < 3 ? 1 : sharded / l.ep;
  t.words["torus"] = on_off(plan.hw.is_torus());
  t.words["axes"] = mesh_axes(plan.placement);
  const auto word = [&](std::string_view name, bool there, std::string_view value) {
    if (there) t.words[std::string(name)] = std::string(value);
  };
  word("sp", l.tp > 1, on_off(l.sp));
  word("cp_comm", l.cp > 1, name_of(l.cp_comm));
  word("ep_overlap", l.ep > 1, on_off(l.ep_overlap));
  word("dispatch", l.ep > 1, name_of(plan.workload.runtime.dispatch));
  word("remat", true, name_of(l.remat));
  word("offload", true, offload_name(l.offload));
  word("offload_optimizer", (l.offload & kOffloadOptimizer) != 0, "on");
  word("offload_weights", (l.offload & kOffloadWeights) != 0, "on");
  word("offload_activations", true, on_off((l.offload & kOffloadActivations) != 0));
  word("remat_block", l.remat == Remat::kFull, on_off(l.remat_layers > 0));
  word("loss", true, name_of(l.loss));
  word("precision", true, plan.workload.precision.name);
  word("scaling", plan.workload.precision.compute == DType::kFp8, name_of(plan.workload.scaling()));
  word("architecture", true, plan.hw.architecture.empty() ? "other" : plan.hw.architecture);
  word("optimizer", true, plan.workload.optimizer.name);
  add_adapters(plan.workload.fine_tune, t);
  word("dropout", true, on_off(plan.workload.dropout));
  word("grad_overlap", l.data() * l.cp > 1, on_off(plan.workload.hides_gradients()));
  word("tp_overlap", l.tp > 1 && plan.workload.tp_overlap == CommOverlap::kPipelined, "pipelined");
  word("graphs", plan.workload.graphs != GraphCapture::kNone,
       kGraphCaptureNames[static_cast<std::size_t>(plan.workload.graphs)]);
  word("reshard", l.zero > 1, on_off(l.zero == 3));
  word("optimizer_shards", l.zero == 1, "on");
  if (l.pp > 1) add_pipeline(plan, t);
  return t;
}

namespace {

/// The layout that the terms say; dimensions that they leave open, and those that decide nothing, are no pins.
LayoutFilter pins_in(const LaunchTerms& terms, const ModelSpec* model, const StackRuntime* runtime,
                     std::vector<Diagnostic>& problems, const std::map<std::string, SourceSpan, std::less<>>& places) {
  const auto place_of = [&](std::string_view name) {
    const auto found = places.find(name);
    return found == places.end() ? SourceSpan{} : found->second;
  };
  LayoutFilter out;
  Layout l;  // as far as it is known, to tell what matters
  for (const LayoutDimension& d : layout_dimensions()) {
    if (d.kind != DimensionKind::kCount) continue;
    if (const auto value = terms.number(d.name); value && *value <= d.most) d.set_value(l, *value);
  }
  const bool moe = model != nullptr ? model->moe.has_value() : terms.word("moe") == "on" || l.ep > 1;
  for (const LayoutDimension& d : layout_dimensions()) {
    if (!matters(d.name, l, moe) || d.name == "split") continue;
    if (d.kind == DimensionKind::kCount) {
      const auto value = terms.number(d.name);
      if (value && (*value < d.least || *value > d.most)) {
        problems.push_back({place_of(d.name), fmt::format("{} {} is out of range", d.name, *value),
                            fmt::format("a whole number from {} to {}", d.least, d.most)});
        continue;
      }
      d.set_pin(out, value);
    } else if (d.kind == DimensionKind::kSwitch) {
      if (const auto word = terms.word(d.name)) d.set_pin(out, *word == "on" ? 1 : 0);
    } else if (const auto word = terms.word(d.name)) {
      const bool counts = (d.name == "remat" && *word != "none") || word->find("activations") != std::string::npos;
      const auto layers = terms.number(d.name == "remat" ? "remat_layers" : "offload_layers");
      const std::string text = counts && layers.value_or(0) > 0 ? fmt::format("{}:{}", *word, *layers) : *word;
      if (const auto value = value_of_word(d, text); value && *value >= d.least) d.set_pin(out, value);
    }
  }
  if (!matters("split", l, moe) || !terms.number("pp") || !terms.number("vpp")) return out;
  const auto layout = terms.word("layout");
  const bool written = layout && *layout != "none";
  const auto first = terms.number("first_layers");
  const auto last = terms.number("last_layers");
  if (!written && !first && !last) {
    out.split.emplace();
  } else if (model != nullptr && runtime != nullptr) {
    const std::vector<std::int64_t> usual = chunk_layers(*model, l.pp, l.vpp, runtime->stages, {});
    std::vector<std::int64_t> asked = written ? layers_in(written_out(*layout)) : usual;
    if (!written) {
      const std::int64_t each = l.pp > 0 ? model->layers() / l.pp : 0;
      const ChunkEnds ends{first.value_or(each), last.value_or(each)};
      asked = chunk_layers(*model, l.pp, l.vpp, runtime->stages, ends);
    }
    if (asked == usual) {
      out.split.emplace();
    } else if (!asked.empty() &&
               asked == chunk_layers(*model, l.pp, l.vpp, runtime->stages, {asked.front(), asked.back()})) {
      out.split = ChunkEnds{asked.front(), asked.back()};
    } else {
      std::vector<std::string> counts;
      for (const std::int64_t n : asked) counts.push_back(std::to_string(n));
      problems.push_back(
          {place_of("layout"),
           fmt::format("layers of the chunks, {}, are dealt in no way that is modelled", join(counts, ", ")),
           "all but the first and the last chunk differ by a layer at most"});
    }
  }
  return out;
}

}  // namespace

ImportedLayout import_training(const LaunchFramework& framework, const std::vector<LaunchSetting>& settings,
                               const ModelSpec* model, const StackRuntime* runtime, std::optional<std::int64_t> chips,
                               std::int64_t cores, std::string_view model_type) {
  LaunchTerms known;
  if (model != nullptr) add_model(*model, known);
  known.numbers["cores"] = cores;
  std::vector<std::pair<std::string, std::int64_t>> otherwise;
  otherwise.emplace_back("dcn_data", 1);  // one slice, where the framework is to find out
  if (chips) otherwise.emplace_back("chips", *chips);
  std::vector<LaunchSetting> expanded = settings;
  for (LaunchSetting& setting : expanded) {  // how often a part of a layout is repeated tells how many chunks there are
    if (setting.key.find("pipeline") == std::string::npos || setting.key.find("layout") == std::string::npos) continue;
    for (std::string& value : setting.values) {
      if (value.find_first_of("*|") != std::string::npos) value = written_out(value);
    }
  }
  ImportedLayout out{.framework = &framework, .reading = solve(framework, expanded, known, otherwise), .pins = {}};
  LaunchTerms& terms = out.reading.terms;
  if (!terms.word("offload") && !out.reading.names_unread_file) {
    std::uint8_t bits = 0;
    if (terms.word("offload_optimizer") == "on") bits |= kOffloadOptimizer;
    if (terms.word("offload_weights") == "on") bits |= kOffloadWeights;
    if (terms.word("offload_activations") == "on") bits |= kOffloadActivations;
    terms.words["offload"] = std::string(offload_name(bits));
  }
  std::vector<Diagnostic> problems;
  out.pins = pins_in(terms, model, runtime, problems, out.reading.places);
  out.tune = adapters_in(framework, model_type, settings, out.reading, problems);
  if (!problems.empty()) throw UserError(problems);
  return out;
}

std::vector<LaunchArgument> training_arguments(const LaunchFramework& framework, const TrainingLaunch& plan,
                                               const StackRelease* release) {
  if (release != nullptr) {
    const SupportSubject subject{plan.layout, plan.model, plan.workload, plan.hw};
    if (const auto fact = release->refusal(subject)) {
      throw UserError(
          fmt::format("{} cannot run this plan: {}", framework.title, fact_text(*release, release->facts[*fact])),
          fmt::format("plan with --stack {} for layouts that it can run", release->stack));
    }
  }
  LaunchTerms terms = training_terms(plan);
  name_model(framework, plan.names, terms);
  for (const LaunchLimit& limit : framework.limits) {
    if (holds(limit.when, terms) == true) {
      throw UserError(fmt::format("{} cannot say this plan: {} ({})", framework.title, limit.says, limit.source),
                      limit.instead.empty() ? "" : fmt::format("ask with {}", limit.instead));
    }
  }
  if (plan.workload.fine_tune) {
    if (!says_adapters(framework)) {
      throw UserError(
          fmt::format("{} has no argument that says adapters (--lora)", framework.title),
          fmt::format("{} have some; its arguments are those of {}", frameworks_with_adapters(), framework.source));
    }
    terms.words["lora_modules"] = modules_of(framework, plan.names.model_type, plan.workload.fine_tune->targets);
  }
  std::vector<LaunchArgument> out = arguments_of(framework, terms);
  ImportedLayout back;
  try {
    back = import_training(framework, settings_of(out), &plan.model, &plan.workload.runtime, plan.layout.chips(),
                           plan.devices_per_chip, plan.names.model_type);
  } catch (const UserError& error) {
    throw UserError(fmt::format("{} cannot say this plan: {}", framework.title, error.diagnostics().front().message),
                    fmt::format("its arguments are those of {}", framework.source));
  }
  std::vector<std::string> lost;
  for (const LayoutDimension& d : layout_dimensions()) {
    const std::int64_t value = d.value(plan.layout);
    if (!matters(d.name, plan.layout, plan.model.moe.has_value()) || value < d.least) continue;
    if (d.pin(back.pins) != value) lost.push_back(fmt::format("{} {}", d.name, value_text(d, value)));
  }
  for (const std::string_view name : {"precision", "grad_overlap", "tp_overlap", "graphs"}) {
    const auto word = terms.word(name);
    if (word && back.reading.terms.word(name) != word) lost.push_back(fmt::format("{} {}", name, *word));
  }
  const auto scaling = terms.word("scaling");
  if (scaling && back.reading.terms.word("precision") == "fp8" && back.reading.terms.word("scaling") != scaling) {
    lost.push_back(fmt::format("{} scales of 8-bit operands", *scaling));
  }
  // Where nothing is said it is Adam.
  if (const std::string& name = plan.workload.optimizer.name;
      back.reading.terms.word("optimizer").value_or("adam") != name) {
    lost.push_back("optimizer " + name);
  }
  const bool says_dropout = std::any_of(framework.rows.begin(), framework.rows.end(),
                                        [](const LaunchRow& row) { return row.when == "dropout=on"; });
  if (plan.workload.dropout && !says_dropout) lost.emplace_back("dropout");
  if (const std::string adapters = lost_of_adapters(plan.workload.fine_tune, back.tune); !adapters.empty()) {
    lost.push_back(adapters);
  }
  if (!lost.empty()) {
    throw UserError(fmt::format("{} has no argument that says {}", framework.title, join_and(lost)),
                    fmt::format("its arguments are those of {}", framework.source));
  }
  return out;
}

}  // namespace scalecalc
