// Reads measured training runs from files of measurements.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "base/text.h"
#include "config/fields.h"
#include "cost/layout.h"
#include "spec/model_ranges.h"
#include "validate/measurement.h"
#include "validate/measurement_document.h"

namespace scalecalc {
namespace {

bool is_note(std::string_view key) { return key.ends_with("_note"); }

/// A number, "alternate layers" or "5 local : 1 global": one layer of how many attends globally. 0: not understood.
std::int64_t window_every(const std::string& text) {
  const auto count = parse_quantity(text, UnitKind::kCount);
  const auto layers = [](double value) { return value <= kLayerCount.max ? static_cast<std::int64_t>(value) : 0; };
  if (const double* value = std::get_if<double>(&count)) return layers(*value);
  if (text.find("alternate") != std::string::npos) return 2;
  const std::size_t local = text.find(" local : 1 global");
  const auto many = parse_quantity(text.substr(0, local), UnitKind::kCount);
  const double* value = std::get_if<double>(&many);
  return local == std::string::npos || value == nullptr ? 0 : layers(*value + 1);
}

class ShapeReader {
 public:
  ShapeReader(const ConfigNode& node, Problems& problems) : node_(node), f_(node, "model_shape", problems) {}

  ModelShape run() {
    widths();
    experts();
    attention();
    for (const ConfigNode::Entry& entry : node_.entries) {
      const bool known = std::find(known_.begin(), known_.end(), entry.key) != known_.end();
      if (!known && !is_note(entry.key)) out_.unread.push_back(entry.key);
    }
    return std::move(out_);
  }

 private:
  std::int64_t required(const char* key, Range range = kWidthRange) {
    known_.emplace_back(key);
    return f_.count(key, range);
  }
  std::int64_t optional(const char* key, Range range, std::int64_t otherwise = 0) {
    known_.emplace_back(key);
    return f_.optional_count(key, range).value_or(otherwise);
  }
  bool flag(const char* key) {
    known_.emplace_back(key);
    return f_.flag(key, false);
  }

  void widths() {
    out_.layers = required("layers", kLayerCount);
    out_.d_model = required("d_model");
    out_.heads = required("heads");
    out_.kv_heads = optional("kv_heads", kOptionalWidth, out_.heads);
    out_.head_dim = required("head_dim");
    out_.ffn = required("ffn");
    out_.vocab = required("vocab");
    out_.gated_mlp = flag("gated_mlp");
    out_.tied_embeddings = flag("tied_embeddings");
    out_.parallel_block = flag("parallel_block");
    out_.expert_bias = flag("expert_bias");
    known_.emplace_back("pos");
    out_.learned_positions = f_.optional_text("pos").value_or("") == "learned";
  }

  void experts() {
    out_.experts = optional("experts", kOptionalExperts);
    out_.top_k = optional("top_k", kOptionalExperts);
    out_.expert_ffn = optional("expert_ffn", kOptionalWidth);
    out_.shared_experts = optional("shared_experts", kSharedExperts);
    out_.shared_expert_ffn = optional("shared_expert_ffn", kOptionalWidth, out_.expert_ffn);
    out_.dense_layers = optional("dense_layers", kOptionalLayerCount);
    out_.moe_every = std::max<std::int64_t>(1, optional("moe_every", kOptionalLayerCount, 1));
    if (out_.experts > 0 && (out_.top_k == 0 || out_.expert_ffn == 0)) {
      f_.problems().add(f_.span(), "experts need top_k and expert_ffn");
    }
  }

  void attention() {
    known_.insert(known_.end(), {"mla", "attn_window", "attn_window_every"});
    out_.window = f_.optional_count("attn_window", kWidthRange).value_or(0);
    out_.window_every = window_every(f_.optional_text("attn_window_every").value_or("0"));
    const ConfigNode* mla = f_.node("mla");
    if (mla == nullptr) return;
    Fields m(*mla, "mla", f_.problems());
    out_.mla = MlaShape{.q_lora = m.optional_count("q_lora", kOptionalWidth).value_or(0),
                        .kv_lora = m.count("kv_lora", kWidthRange),
                        .qk_nope = m.count("qk_nope", kWidthRange),
                        .qk_rope = m.count("qk_rope", kWidthRange),
                        .v_head = m.count("v_head", kWidthRange)};
    m.finish();
  }

  const ConfigNode& node_;
  Fields f_;
  std::vector<std::string_view> known_;
  ModelShape out_;
};

/// The same of Hugging Face's keys. Gated unless the row says otherwise, heads untied: what a serving row leaves out.
class HfShapeReader {
 public:
  HfShapeReader(const ConfigNode& node, Problems& problems) : node_(node), f_(node, "model_shape", problems) {}

  ModelShape run() {
    out_.layers = size("num_hidden_layers", kLayerCount);
    out_.d_model = size("hidden_size");
    out_.heads = size("num_attention_heads");
    out_.vocab = size("vocab_size");
    const std::string mlp = text("mlp");
    out_.gated_mlp = mlp.find("gelu") == std::string::npos;
    out_.parallel_block = mlp.find("parallel") != std::string::npos;
    attention();
    feed_forward();
    for (const char* ignored : {"n_params", "note", "full_attention_layers"}) known_.insert(ignored);
    for (const ConfigNode::Entry& entry : node_.entries) {
      if (!known_.contains(entry.key)) out_.unread.push_back(entry.key);
    }
    return std::move(out_);
  }

 private:
  std::int64_t size(const char* key, Range range = kWidthRange) {
    known_.insert(key);
    return f_.count(key, range);
  }
  std::int64_t maybe(const char* key, Range range = kOptionalWidth) {
    known_.insert(key);
    return f_.has(key) ? f_.optional_count(key, range).value_or(0) : 0;
  }
  std::string text(const char* key) {
    known_.insert(key);
    return f_.optional_text(key).value_or("");
  }

  void attention() {
    const std::int64_t latent = maybe("kv_lora_rank");
    const MlaShape mla{.q_lora = maybe("q_lora_rank"),
                       .kv_lora = latent,
                       .qk_nope = maybe("qk_nope_head_dim"),
                       .qk_rope = maybe("qk_rope_head_dim"),
                       .v_head = maybe("v_head_dim")};
    const std::int64_t kv_heads = maybe("num_key_value_heads");
    const std::int64_t head = maybe("head_dim");
    if (latent > 0) out_.mla = mla;
    out_.kv_heads = kv_heads > 0 ? kv_heads : out_.heads;
    out_.head_dim = latent > 0 ? mla.qk_nope : head > 0 ? head : out_.d_model / std::max<std::int64_t>(1, out_.heads);
    out_.window = maybe("sliding_window");
    const std::int64_t local = maybe("sliding_attention_layers", kOptionalLayerCount);
    if (out_.window > 0 && local > 0 && local < out_.layers) out_.window_every = out_.layers / (out_.layers - local);
  }

  void feed_forward() {
    const std::int64_t width = maybe("intermediate_size");
    const std::int64_t dense = maybe("intermediate_size_mlp");
    out_.ffn = dense > 0 ? dense : width;
    out_.experts = std::max({maybe("num_local_experts", kOptionalExperts), maybe("num_experts", kOptionalExperts),
                             maybe("n_routed_experts", kOptionalExperts)});
    out_.top_k = maybe("num_experts_per_tok", kOptionalExperts);
    const std::int64_t expert = maybe("moe_intermediate_size");
    const std::int64_t shared = maybe("shared_expert_intermediate_size");
    const std::int64_t many =
        std::max(maybe("n_shared_experts", kSharedExperts), maybe("shared_experts", kSharedExperts));
    out_.dense_layers = maybe("first_k_dense_replace", kOptionalLayerCount);
    out_.moe_every = std::max<std::int64_t>(1, maybe("interleave_moe_layer_step", kOptionalLayerCount));
    if (out_.experts == 0) return;
    out_.expert_ffn = expert > 0 ? expert : width;
    if (out_.ffn == 0) out_.ffn = out_.expert_ffn;
    out_.shared_experts = shared > 0 ? std::max<std::int64_t>(1, many) : many;
    out_.shared_expert_ffn = shared > 0 ? shared : out_.expert_ffn;
    if (out_.top_k == 0) f_.problems().add(f_.span(), "experts need num_experts_per_tok");
  }

  const ConfigNode& node_;
  Fields f_;
  std::set<std::string, std::less<>> known_;
  ModelShape out_;
};

}  // namespace

ModelShape read_shape(const ConfigNode& node, Problems& problems) { return ShapeReader(node, problems).run(); }

ModelShape read_hf_shape(const ConfigNode& node, Problems& problems) { return HfShapeReader(node, problems).run(); }

namespace {

constexpr Range kSize{1, 1e9};
constexpr Range kCapacity{0.1, 100};
constexpr double kGiB = 1024.0 * 1024.0 * 1024.0;

bool contains(std::string_view text, std::string_view word) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), word.begin(), word.end(), same) != text.end();
}

/// "8x400G RDMA per node": ports times Gb/s, for one node; nothing if the text says no such thing.
std::optional<double> bandwidth_of_node(const std::string& text) {
  if (!contains(text, "per node") && !contains(text, "-GPU node")) return std::nullopt;
  for (std::size_t at = text.find('x'); at != std::string::npos; at = text.find('x', at + 1)) {
    std::size_t begin = at;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0) --begin;
    std::size_t end = at + 1;
    while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end])) != 0) ++end;
    constexpr std::size_t kDigits = 9;  // no port and no node has more
    if (begin == at || end == at + 1 || end == text.size() || text[end] != 'G') continue;
    if (at - begin > kDigits || end - at - 1 > kDigits) continue;
    return std::stod(text.substr(begin, at - begin)) * std::stod(text.substr(at + 1, end - at - 1)) * 1e9 / 8;
  }
  return std::nullopt;
}

class RowReader {
 public:
  RowReader(const ConfigNode& node, const SharedFacts& shared, Problems& problems)
      : f_(node, "measurement", problems), shared_(shared), problems_(problems) {}

  Measurement run() {
    run_facts();
    machine();
    job();
    flags();
    parallel();
    measured();
    for (const char* ignored : {"stated", "notes", "check", "params_b", "nodes", "global_batch_tokens"}) {
      f_.node(ignored);
    }
    f_.finish();
    return std::move(out_);
  }

 private:
  void run_facts() {
    shared_.read(f_, out_, problems_);
    out_.subset = f_.optional_text("subset").value_or("core");
    constexpr std::array<const char*, 3> kWorkloads{"pretrain", "sft", "lora"};
    out_.workload = kWorkloads[f_.optional_word("workload", {"pretrain", "sft", "lora"}).value_or(0)];
    out_.framework = f_.optional_text("framework").value_or("");
    const ConfigNode* shape = shared_.shape_of(f_, out_.model);
    if (shape != nullptr) out_.shape = shared_.shape(*shape, out_.model, problems_);
    out_.mtp_layers = f_.optional_count("mtp_layers", {0, kMtpLayers.max}).value_or(0);
  }

  void machine() {
    out_.chips_per_node = f_.optional_count("chips_per_node", kSize).value_or(0);
    out_.scaleup_domain = f_.optional_count("scaleup_domain", kSize).value_or(0);
    out_.slices = f_.optional_count("slices", kSize).value_or(0);
    out_.node_bandwidth = f_.optional_quantity("node_bandwidth", UnitKind::kBytesPerSecond);
  }

  void job() {
    out_.seq = f_.count("seq_len", kSize);
    out_.batch_seqs = static_cast<double>(f_.count("global_batch_seqs", kSize));
    out_.layout.micro_batch = f_.optional_count("micro_batch", kSize);
    out_.precision = f_.text("precision");
    out_.optimizer = f_.optional_text("optimizer").value_or("adam");
    out_.recompute = f_.optional_text("recompute").value_or("unknown");
    adapters();
    out_.attention = f_.optional_text("attention").value_or("");
    if (const auto graphs = f_.optional_word("graphs", {"none", "layer", "step"})) {
      out_.graphs = static_cast<GraphCapture>(*graphs);
    }
    if (f_.has("expert_overlap")) out_.expert_overlap = f_.flag("expert_overlap", false);
    if (const auto dispatch = f_.optional_word("dispatcher", kExpertDispatchNames)) {
      out_.dispatch = static_cast<ExpertDispatch>(*dispatch);
    }
    out_.balanced_experts = f_.flag("balanced_experts", false);
    out_.natural_routing = f_.flag("natural_routing", false);
    out_.expert_capacity = f_.optional_quantity("expert_capacity", UnitKind::kNumber, kCapacity);
    if (const auto hidden = f_.optional_word("tp_overlap", {"stack", "none", "pipelined"})) {
      out_.tp_overlap = static_cast<CommOverlap>(*hidden);
    }
    if (const auto hidden = f_.optional_word("dp_overlap", {"stack", "none"})) {
      out_.dp_overlap = static_cast<CommOverlap>(*hidden);
    }
    if (f_.has("dropout")) out_.dropout = f_.flag("dropout", false);
    out_.fp8_activation_inputs = f_.flag("fp8_activation_inputs", false);
    if (f_.has("fused_loss")) out_.fused_loss = f_.flag("fused_loss", false);
    out_.chunked_loss = f_.flag("chunked_loss", false);
    if (f_.has("compile")) out_.compiled = f_.flag("compile", false);
    out_.master_weights = f_.flag("master_weights", true);
    if (const auto parts = f_.optional_text("offload")) offload(*parts);
  }

  /// "optimizer", "optimizer+weights" ...
  void offload(const std::string& parts) {
    std::vector<std::string> known;
    for (std::uint8_t bits = 0; bits <= kOffloadAll; ++bits) {
      known.emplace_back(offload_name(bits));
      if (known.back() == parts) out_.offload = bits;
    }
    if (std::find(known.begin(), known.end(), parts) != known.end()) return;
    problems_.add(f_.span(), fmt::format("offload: {} is none of {}", in_quotes(parts), join(known, ", ")),
                  did_you_mean(nearest(parts, known)));
  }

  void adapters() {
    const ConfigNode* node = f_.node("adapters");
    if (node == nullptr) return;
    Fields a(*node, "adapters", problems_);
    FineTune& tune = out_.adapters.emplace();
    tune.rank = a.count("rank", kWidthRange);
    tune.targets = 0;
    for (const std::string& name : a.text_list("targets")) {
      const auto* const known = std::find(kLoraTargetNames.begin(), kLoraTargetNames.end(), name);
      if (known == kLoraTargetNames.end()) {
        problems_.add(node->span,
                      fmt::format("adapters.targets: {} is none of {}", in_quotes(name), target_names(kLoraAll)));
        continue;
      }
      tune.targets = static_cast<std::uint8_t>(tune.targets | 1U << (known - kLoraTargetNames.begin()));
    }
    if (tune.targets == 0) problems_.add(node->span, "adapters need targets, such as [q, v]");
    tune.experts = a.flag("experts", false);
    if (const auto base = a.optional_word("base", {"bf16", "fp8", "int8", "nf4"})) {
      tune.base = static_cast<BaseFormat>(*base);
    }
    a.finish();
  }

  /// What a source says beside its table, mostly in words. Only what changes the question is read.
  void flags() {
    const ConfigNode* node = f_.node("flags");
    if (node == nullptr) return;
    Fields flags(*node, "flags", problems_);
    if (out_.framework.empty()) out_.framework = flags.optional_text("framework").value_or("");
    out_.layout.schedule = flags.optional_text("schedule").value_or("");
    if (contains(flags.optional_text("cp_type").value_or(""), "ulysses")) out_.layout.cp_comm = "ulysses";
    if (const auto graphs = flags.optional_text("cuda_graph")) {
      out_.graphs = contains(*graphs, "full_iteration") ? GraphCapture::kStep : GraphCapture::kLayer;
    }
    if (flags.has("torch_compile")) out_.compiled = flags.flag("torch_compile", false);
    // FSDP's CPU offload takes the parameters, and with them what updates them.
    if (contains(flags.optional_text("offload").value_or(""), "cpu offload of parameters")) {
      out_.offload = kOffloadOptimizer | kOffloadWeights;
    }
    if (flags.has("moe_a2a_overlap")) out_.expert_overlap = flags.flag("moe_a2a_overlap", false);
    dispatcher(lower_case(flags.optional_text("moe_dispatcher").value_or("")));
    // MaxText's policies that keep every matmul's output are called no recomputation at all.
    const std::string policy = flags.optional_text("remat_policy").value_or("");
    if (policy.starts_with("minimal") && out_.recompute == "none") out_.recompute = "selective: " + policy;
    experts(flags);
    overlaps(flags);
    if (const auto slices = flags.optional_count("slices", kSize)) out_.slices = *slices;
    if (const auto optimizer = flags.optional_text("optimizer")) out_.optimizer = *optimizer;
    if (!out_.node_bandwidth) {
      out_.node_bandwidth = bandwidth_of_node(flags.optional_text("interconnect").value_or(""));
    }
  }

  /// "deepep/hybridep with overlap", "NCCL all-to-all".
  void dispatcher(const std::string& text) {
    if (contains(text, "with overlap")) out_.expert_overlap = true;
    if (contains(text, "deepep") || contains(text, "hybridep")) {
      out_.dispatch = ExpertDispatch::kDeepEp;
    } else if (contains(text, "all-to-all") || contains(text, "alltoall")) {
      out_.dispatch = ExpertDispatch::kAllToAll;
    }
  }

  /// "force-balanced, token drop", "capacity factor 1.0".
  void experts(Fields& flags) {
    const std::string routing = flags.optional_text("routing").value_or("");
    const std::string moe = flags.optional_text("moe").value_or("");
    if (routing.starts_with("force-balanced") || routing == "balanced") out_.balanced_experts = true;
    if (routing.starts_with("natural")) out_.natural_routing = true;
    if (contains(routing, "token drop") && !contains(routing, "no token drop")) out_.expert_capacity = 1;
    if (contains(moe, "capacity factor 1.0")) out_.expert_capacity = 1;
    if (const auto capacity = flags.optional_quantity("capacity_factor", UnitKind::kNumber, kCapacity)) {
      out_.expert_capacity = *capacity;
    }
  }

  /// "no DP/TP communication overlap", "none for DP/TP", "TP, PP and DP communication overlapped", "async_tp: true".
  void overlaps(Fields& flags) {
    const std::string dp = flags.optional_text("dp_overlap").value_or("");
    const std::string all =
        flags.optional_text("overlap").value_or("") + flags.optional_text("comm_overlap").value_or("");
    const bool none = all.starts_with("no ") || all.starts_with("none");
    if (none || dp == "none") out_.dp_overlap = CommOverlap::kNone;
    if (flags.has("async_tp")) {
      out_.tp_overlap = flags.flag("async_tp", false) ? CommOverlap::kPipelined : CommOverlap::kNone;
    }
    if (none) out_.tp_overlap = CommOverlap::kNone;
    if (!none && (contains(all, "tp,") || contains(all, "tp and"))) out_.tp_overlap = CommOverlap::kPipelined;
  }

  /// "optimizer states sharded over 8 ranks only (hybrid ZeRO)".
  static std::optional<std::int64_t> state_ranks(std::string_view notes) {
    constexpr std::string_view kStart = "optimizer states sharded over ";
    const std::size_t at = notes.find(kStart);
    if (at == std::string_view::npos) return std::nullopt;
    std::int64_t ranks = 0;
    const char* end = notes.data() + notes.size();
    const bool read = std::from_chars(notes.data() + at + kStart.size(), end, ranks).ec == std::errc();
    return read && ranks > 0 ? std::optional(ranks) : std::nullopt;
  }

  /// A degree, or words instead of one ("interleaved, not stated"), which say nothing a layout could be pinned to.
  static std::optional<std::int64_t> degree_or_words(Fields& p, const char* key) {
    const ConfigNode* node = p.node(key);
    if (node == nullptr || node->kind != ConfigNode::Kind::kScalar) return std::nullopt;
    const auto count = parse_quantity(node->text, UnitKind::kCount);
    return std::holds_alternative<double>(count) ? p.optional_count(key, kSize) : std::nullopt;
  }

  void parallel() {
    Fields p(f_.required_node("parallel"), "parallel", problems_);
    RowLayout& l = out_.layout;
    l.dp = p.optional_count("dp", kSize);
    l.fsdp = p.optional_count("fsdp", kSize);
    l.tp = p.optional_count("tp", kSize);
    l.cp = p.optional_count("cp", kSize);
    l.pp = p.optional_count("pp", kSize);
    l.vpp = degree_or_words(p, "vpp");
    // A row that gives its microbatch but no chunks has one a stage; one that gives neither says nothing of them.
    if (!l.vpp && !p.has("vpp") && l.micro_batch) l.vpp = 1;
    l.ep = p.optional_count("ep", kSize);
    l.etp = p.optional_count("etp", kSize);
    l.zero = p.optional_count("zero_stage", {0, 3});
    if (p.has("sp")) l.sp = p.flag("sp", false);
    if (const auto schedule = p.optional_text("schedule")) l.schedule = *schedule;
    if (const auto comm = p.optional_text("cp_comm")) l.cp_comm = *comm;
    l.zero_group = p.optional_count("zero_group", kSize);
    const std::string notes = p.optional_text("notes").value_or("");
    if (l.schedule.empty() && contains(notes, "dualpipe")) l.schedule = "dualpipe";
    if (!l.zero_group) l.zero_group = state_ranks(notes);
    p.node("grad_accum");
    p.finish();
  }

  void measured() {
    const ConfigNode* node = f_.node("measured");
    const ConfigNode* target = f_.node("target");
    if (node != nullptr) {
      Fields m(*node, "measured", problems_);
      out_.step_s = m.optional_quantity("step_time_s", UnitKind::kNumber);
      out_.tokens_per_s_per_chip = m.optional_quantity("tokens_per_s_per_chip", UnitKind::kNumber);
      if (const auto tflops = m.optional_quantity("tflops_per_chip", UnitKind::kNumber)) {
        out_.flops_per_s_per_chip = *tflops * 1e12;
      }
      if (const auto mfu = m.optional_quantity("mfu_pct", UnitKind::kNumber)) out_.mfu = *mfu / 100;
      if (const auto peak = m.optional_quantity("mfu_peak_tflops", UnitKind::kNumber)) {
        out_.peak_flops_per_s = *peak * 1e12;
      }
      out_.flops_count = m.optional_text("tflops_convention").value_or("");
      memory(m.optional_quantity("memory_gib_per_chip", UnitKind::kNumber));
      m.node("hfu_pct");
      m.finish();
    }
    if (target != nullptr) {
      Fields t(*target, "target", problems_);
      // The file's own conversion of what was printed to the figure to predict.
      if (const auto step = t.optional_quantity("step_time_s", UnitKind::kNumber)) out_.step_s = step;
    }
    memory(f_.optional_quantity("memory_gib_per_chip", UnitKind::kNumber));
    const std::string kind = f_.optional_text("memory_kind").value_or("");
    if (contains(kind, "allocated")) out_.memory_count = MemoryCount::kAllocated;
    if (contains(kind, "nvidia-smi")) out_.memory_count = MemoryCount::kDevice;
    if (node == nullptr && target == nullptr && !out_.memory_bytes) {
      problems_.add(f_.span(), "a measurement needs what was measured: 'measured', 'target' or 'memory_gib_per_chip'");
    }
  }

  void memory(const std::optional<double>& gib) {
    if (gib) out_.memory_bytes = *gib * kGiB;
  }

  Fields f_;
  const SharedFacts& shared_;
  Problems& problems_;
  Measurement out_;
};

}  // namespace

std::string Measurement::family() const {
  const auto end =
      std::find_if(model.begin(), model.end(), [](char c) { return std::isalpha(static_cast<unsigned char>(c)) == 0; });
  return {model.begin(), end};
}

std::vector<Measurement> read_measurements(const ConfigNode& document) { return read_rows<RowReader>(document); }

bool is_held_out(const ConfigNode& document) {
  const ConfigNode* said = document.find("held_out");
  return said != nullptr && said->text == "true";
}

}  // namespace scalecalc
