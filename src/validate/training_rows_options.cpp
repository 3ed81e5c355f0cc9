// Reads measured training runs from files of measurements, for validate and calibrate.
#include "validate/training_rows_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/flag_reader.h"
#include "config/fields.h"
#include "model/expert_load.h"
#include "spec/model_ranges.h"
#include "train/train_options.h"
#include "validate/measurement_document.h"

namespace scalecalc::cli {
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
  }

  void job() {
    out_.seq = f_.count("seq_len", kSize);
    out_.batch_seqs = static_cast<double>(f_.count("global_batch_seqs", kSize));
    out_.layout.micro_batch = f_.optional_count("micro_batch", kSize);
    out_.precision = f_.text("precision");
    out_.optimizer = f_.optional_text("optimizer").value_or("adam");
    out_.recompute = f_.optional_text("recompute").value_or("unknown");
    adapters();
    if (f_.has("expert_overlap")) q_.fix.ep_overlap = f_.flag("expert_overlap", false);
    if (f_.flag("natural_routing", false)) q_.expert_load = kNaturalLoad;
    said_in_flags();
    if (f_.has("fused_loss")) q_.fused_loss = f_.flag("fused_loss", false);
    if (f_.flag("chunked_loss", false)) q_.fix.loss = LossKind::kChunked;
    if (f_.has("compile")) q_.compiled = f_.flag("compile", false);
    if (const auto parts = f_.optional_text("offload")) offload(*parts);
  }

  /// What rows say as `train` is asked it.
  void said_in_flags() {
    Arguments::Values said;
    for (const Flag& flag : train_flags()) {
      if (!flag.row.empty() && f_.has(flag.row)) say(flag, said);
    }
    if (said.empty()) return;
    const Arguments arguments = Arguments::of(*find_command("train"), {}, std::move(said));
    FlagReader reader(arguments, train_flags());
    for (const Flag& flag : train_flags()) {
      if (!flag.row.empty() && arguments.has(flag.name)) flag.store(reader, flag, &q_);
    }
    try {
      reader.finish();
    } catch (const UserError& error) {
      for (const Diagnostic& d : error.diagnostics()) problems_.add(f_.span(), d.message, d.hint);
    }
  }

  /// The row's value as the flag takes it. Yes and no are a switch, and the last two words of a choice.
  void say(const Flag& flag, Arguments::Values& said) {
    const std::string_view text = f_.node(flag.row)->text;
    const bool yes_or_no = flag.kind == FlagKind::kSwitch || text == "true" || text == "false";
    if (flag.reading == Reading::kQuantity) {
      if (!f_.optional_quantity(flag.row, flag.unit)) return;
    } else if (yes_or_no) {
      const bool yes = f_.flag(flag.row, false);
      if (flag.kind != FlagKind::kSwitch)
        return said[std::string(flag.name)].assign(1, std::string(flag.words[flag.words.size() - (yes ? 2 : 1)]));
      if (yes) said[std::string(flag.name)];
      return;
    } else if (flag.reading == Reading::kWord) {
      if (!f_.optional_word(flag.row, flag.words)) return;
    } else {
      f_.optional_text(flag.row);
    }
    said[std::string(flag.name)].assign(1, std::string(text));
  }

  /// "optimizer", "optimizer+weights" ...
  void offload(const std::string& parts) {
    std::vector<std::string> known;
    for (std::uint8_t bits = 0; bits <= kOffloadAll; ++bits) {
      known.emplace_back(offload_name(bits));
      if (known.back() == parts) q_.fix.offload = bits;
    }
    if (std::find(known.begin(), known.end(), parts) != known.end()) return;
    problems_.add(f_.span(), fmt::format("offload: {} is none of {}", in_quotes(parts), join(known, ", ")),
                  did_you_mean(nearest(parts, known)));
  }

  void adapters() {
    const ConfigNode* node = f_.node("adapters");
    if (node == nullptr) return;
    Fields a(*node, "adapters", problems_);
    FineTuneQuestion& tune = q_.fine_tune.emplace();
    tune.rank = a.count("rank", kWidthRange);
    std::uint8_t targets = 0;
    for (const std::string& name : a.text_list("targets")) {
      const auto* const known = std::find(kLoraTargetNames.begin(), kLoraTargetNames.end(), name);
      if (known == kLoraTargetNames.end()) {
        problems_.add(node->span,
                      fmt::format("adapters.targets: {} is none of {}", in_quotes(name), target_names(kLoraAll)));
        continue;
      }
      targets = static_cast<std::uint8_t>(targets | 1U << (known - kLoraTargetNames.begin()));
    }
    tune.targets = targets;
    if (targets == 0) problems_.add(node->span, "adapters need targets, such as [q, v]");
    if (a.has("experts")) tune.experts = a.flag("experts", false);
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
      q_.graphs = contains(*graphs, "full_iteration") ? GraphCapture::kStep : GraphCapture::kLayer;
    }
    if (flags.has("torch_compile")) q_.compiled = flags.flag("torch_compile", false);
    // FSDP's CPU offload takes the parameters, and with them what updates them.
    if (contains(flags.optional_text("offload").value_or(""), "cpu offload of parameters")) {
      q_.fix.offload = kOffloadOptimizer | kOffloadWeights;
    }
    if (flags.has("moe_a2a_overlap")) q_.fix.ep_overlap = flags.flag("moe_a2a_overlap", false);
    dispatcher(lower_case(flags.optional_text("moe_dispatcher").value_or("")));
    // MaxText's policies that keep every matmul's output are called no recomputation at all.
    const std::string policy = flags.optional_text("remat_policy").value_or("");
    if (policy.starts_with("minimal") && out_.recompute == "none") out_.recompute = "selective: " + policy;
    experts(flags);
    overlaps(flags);
    if (const auto slices = flags.optional_count("slices", kSize)) out_.slices = *slices;
    if (const auto optimizer = flags.optional_text("optimizer")) out_.optimizer = *optimizer;
    if (!q_.node_bandwidth) {
      q_.node_bandwidth = bandwidth_of_node(flags.optional_text("interconnect").value_or(""));
    }
  }

  /// "deepep/hybridep with overlap", "NCCL all-to-all".
  void dispatcher(const std::string& text) {
    if (contains(text, "with overlap")) q_.fix.ep_overlap = true;
    if (contains(text, "deepep") || contains(text, "hybridep")) {
      q_.dispatch = ExpertDispatch::kDeepEp;
    } else if (contains(text, "all-to-all") || contains(text, "alltoall")) {
      q_.dispatch = ExpertDispatch::kAllToAll;
    }
  }

  /// "force-balanced, token drop", "capacity factor 1.0".
  void experts(Fields& flags) {
    const std::string routing = flags.optional_text("routing").value_or("");
    const std::string moe = flags.optional_text("moe").value_or("");
    if (routing.starts_with("force-balanced") || routing == "balanced") q_.balanced_experts = true;
    if (routing.starts_with("natural")) q_.expert_load = kNaturalLoad;
    if (contains(routing, "token drop") && !contains(routing, "no token drop")) q_.expert_capacity = 1;
    if (contains(moe, "capacity factor 1.0")) q_.expert_capacity = 1;
    if (const auto capacity = flags.optional_quantity("capacity_factor", UnitKind::kNumber, kCapacity)) {
      q_.expert_capacity = *capacity;
    }
  }

  /// "no DP/TP communication overlap", "none for DP/TP", "TP, PP and DP communication overlapped", "async_tp: true".
  void overlaps(Fields& flags) {
    const std::string dp = flags.optional_text("dp_overlap").value_or("");
    const std::string all =
        flags.optional_text("overlap").value_or("") + flags.optional_text("comm_overlap").value_or("");
    const bool none = all.starts_with("no ") || all.starts_with("none");
    if (none || dp == "none") q_.dp_overlap = CommOverlap::kNone;
    if (flags.has("async_tp")) {
      q_.tp_overlap = flags.flag("async_tp", false) ? CommOverlap::kPipelined : CommOverlap::kNone;
    }
    if (none) q_.tp_overlap = CommOverlap::kNone;
    if (!none && (contains(all, "tp,") || contains(all, "tp and"))) q_.tp_overlap = CommOverlap::kPipelined;
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
  TrainQuestion& q_ = out_.asked;
};

}  // namespace

std::vector<Measurement> read_measurements(const ConfigNode& document) { return read_rows<RowReader>(document); }

}  // namespace scalecalc::cli
