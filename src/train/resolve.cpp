// Turns a training question as typed into a request for the planner, and records each assumption.
#include "train/resolve.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/units.h"
#include "model/accounting.h"
#include "model/images.h"
#include "model/usual_batch.h"
#include "model/usual_stack.h"
#include "plan/dimensions.h"
#include "spec/kept.h"
#include "spec/load.h"
#include "spec/load_stack.h"
#include "spec/months.h"
#include "train/default_precision.h"
#include "train/import_assumptions.h"
#include "train/resolve_fine_tune.h"
#include "train/resolve_machine.h"
#include "train/run_terms.h"

namespace scalecalc {
namespace {

/// "4.19M", as the table writes it.
std::string sequences_text(double value) {
  return value == std::floor(value) ? group_thousands(static_cast<long long>(value)) : fmt::format("{:.1f}", value);
}

class Resolver {
 public:
  explicit Resolver(const TrainQuestion& question, ResolvedQuestion job = {}) : q_(question), out_(std::move(job)) {}

  /// Without a document the model is there already, and --set does not apply to it.
  ResolvedQuestion run(const Catalog& catalog, const ModelDocument* model, bool with_machine) {
    load(catalog, model);
    workload();
    if (with_machine) resolve_machine(q_, out_);
    price();
    missing_figures();
    for (const std::string& set : q_.set) out_.assumptions.push_back(changed_by_set(set));
    return std::move(out_);
  }

 private:
  Assumption& assume(std::string text, std::string flag, std::string source, bool warning = false) {
    return out_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source), warning});
  }

  void load(const Catalog& catalog, const ModelDocument* model) {
    // As filed both are what other questions of a study have too.
    const std::shared_ptr<const ConfigNode> filed = kept_document(catalog, CatalogKind::kHardware, q_.hardware);
    ConfigNode hw;
    ConfigNode changed;
    if (!q_.set.empty()) {
      hw = *filed;
      if (model != nullptr) changed = model->document;
      apply_sets(q_.set, {{"hw", &hw}, {"model", &changed}});
    }
    if (model != nullptr) out_.model = load_model(q_.set.empty() ? model->document : changed);
    if (out_.model.draft) {
      throw UserError(fmt::format("{} is a draft, which trains beside its target, not alone", out_.model.name),
                      "scalecalc model shows its size; serve --speculative draft=FILE takes it");
    }
    if (model != nullptr) out_.assumptions = import_assumptions(*model);
    if (q_.set.empty()) {
      out_.hw = *kept<HardwareSpec>(catalog, "chip of a question\n" + q_.hardware,
                                    [&] { return load_hardware(*filed, catalog, Unpublished::kAllowed); });
    } else {
      out_.hw = load_hardware(hw, catalog, Unpublished::kAllowed);
    }
    require_published(out_.hw, {"compute.matmul", "hbm", "host"});
    if (q_.chips > 1 || q_.topology) require_published(out_.hw, {"network"});  // one chip needs none
    if (q_.node_bandwidth) share_node_bandwidth();
    out_.efficiency = efficiency_asked_for(q_, out_.hw, out_.model);
    stack(catalog);
    resolve_fine_tune(q_, out_);
  }

  /// The chips of a node share its bandwidth.
  void share_node_bandwidth() {
    const auto refuse = [](std::string why, std::string hint) {
      throw UserError("--node-bandwidth has no meaning: " + why, std::move(hint));
    };
    HardwareSpec& hw = out_.hw;
    if (hw.is_torus()) {
      refuse(fmt::format("{} has direct links between chips and no network per node", hw.name),
             "set the bandwidth of a link: --set hw.network.ici.bandwidth=45GB/s");
    }
    if (q_.chips > 0 && q_.chips <= chips_inside(hw)) {
      refuse(fmt::format("all {} chips are in one scale-up domain of {}", q_.chips, hw.name), "leave it out");
    }
    const auto chips = static_cast<double>(hw.chips_per_host);
    for (std::size_t tier = 1; tier < hw.network.size(); ++tier) {
      set_bandwidth(hw, tier, BytesPerSecond(*q_.node_bandwidth / chips));
    }
  }

  /// Small models have software of their own on some chips, which gives way to the family's where it has not the
  /// precision: fp16 was asked for, or the chip has no bf16.
  bool trains_in_usual(const Catalog& catalog) const {
    const auto name = stack_of_framework(catalog, out_.efficiency.stack);
    const auto release = name ? stack_release(catalog, *name, "") : nullptr;
    return !release || trains_in(out_, *release, q_.precision);
  }

  /// The stack whose coefficients the step is timed with also keeps its memory and runs the step: the one asked for, or
  /// the chip's usual one. Pure rooflines are nobody's, and neither are stacks that have no file.
  void stack(const Catalog& catalog) {
    if (q_.stack.empty() && !q_.ideal && !q_.rates && !trains_in_usual(catalog)) {
      out_.efficiency = efficiency_under(out_.hw, out_.hw.efficiency.stack);
    }
    const std::string usual =
        q_.ideal || q_.rates ? "" : stack_of_framework(catalog, out_.efficiency.stack).value_or("");
    const StackAsked asked = stack_asked(q_.stack);
    const std::string& name = asked.name.empty() ? usual : asked.name;
    const std::string then = month_of(q_.as_of);
    if (then.empty() && !q_.as_of.empty()) {
      throw UserError(fmt::format("--as-of {} is not a date", in_quotes(q_.as_of)),
                      "a month or a day, such as 2025-03");
    }
    if (!then.empty() && !asked.version.empty()) {
      throw UserError(fmt::format("--stack {} and --as-of {} both say which release", q_.stack, q_.as_of),
                      "keep one of them");
    }
    if (!asked.any && !name.empty()) {
      out_.launcher = then.empty() ? stack_release(catalog, name, asked.version) : release_of(catalog, name, then);
    }
    // A release that was asked for runs as it did when it came out.
    const std::string month = !then.empty()                             ? then
                              : asked.version.empty() || !out_.launcher ? ""
                                                                        : month_of(out_.launcher->since);
    run_under_stack(catalog, name, month, out_);
    const std::string& family = out_.hw.stacks.empty() ? "" : out_.hw.stacks.front().name;
    if (asked.name.empty() && !usual.empty() && out_.efficiency.stack != family) {
      assume(
          fmt::format("software {}: the model's weights, gradients and moments fit into half of one host's chips, and "
                      "a sequence into one; {} where they do not",
                      usual, family),
          "--stack", "docs/stacks.md")
          .is(usual);
    }
    launcher(catalog, asked, name);
    const KernelQuestion kernel{.stack = name,
                                .framework = q_.framework.empty() ? asked.name : q_.framework,
                                .date = month,
                                .stated = q_.attention,
                                .heads = widest_heads(out_.model)};
    run_kernel(choose_kernel(catalog, out_.hw, kernel), q_.ideal, out_);
    evidence(catalog);
    const StackMemory& rules = out_.workload.memory;
    if (rules.stack.empty()) return;
    assume(fmt::format("memory as {} keeps it; nine of ten measured runs lie within {:g} %", rules.stack,
                       100 * rules.error),
           "--stack", rules.source)
        .as("memory_rules")
        .is(rules.stack);
  }

  /// Measured runs behind each mechanism; the pure roofline is measured by none.
  void evidence(const Catalog& catalog) {
    if (q_.ideal) return;
    const auto kept_rows = kept<std::vector<MechanismRuns>>(
        catalog, "evidence of train", [&] { return load_evidence(catalog.load(CatalogKind::kEvidence, "train")); });
    const std::vector<MechanismRuns>& rows = *kept_rows;
    for (const Mechanism& m : mechanisms()) {
      out_.evidence.push_back(
          evidence_of(rows, std::string(m.name), out_.hw.family, out_.hw.name, out_.efficiency.stack));
    }
  }

  /// Says whose layouts the search has: those that the stack can launch, in its newest release or the one asked for.
  void launcher(const Catalog& catalog, const StackAsked& asked, const std::string& name) {
    Assumption said;
    out_.software = out_.launcher != nullptr ? out_.launcher->name() : name.empty() ? "none" : name;
    if (asked.any) {
      out_.software = name.empty() ? "any" : "any, at the rates of " + name;
      said = {"layouts that any software could run, whether or not one does", "--stack", "docs/stacks.md"};
    } else if (name.empty()) {
      said = {q_.ideal ? "the pure roofline is no software's: layouts that any could run"
                       : "no software is usual here: layouts that any could run",
              "--stack", "docs/stacks.md"};
    } else if (out_.launcher == nullptr) {
      const std::string unknown = load_supports(catalog, name).unknown;
      said = {
          fmt::format("layouts that any software could run: {}",
                      unknown.empty() ? fmt::format("the oldest known release of {} is newer than {}", name, q_.as_of)
                                      : unknown),
          "--stack", "stack file", true};
    } else {
      said = {fmt::format("layouts that {}{} ({}) can run; --stack any searches the others too",
                          asked.name.empty() ? "the chip's usual software, " : "", out_.launcher->name(),
                          out_.launcher->since),
              "--stack", "docs/stacks.md"};
    }
    said.as("layouts_of").is(out_.launcher == nullptr ? "any" : out_.launcher->name());
    out_.assumptions.push_back(std::move(said));
  }

  std::string fact_source(const char* field) const { return trained_source(out_.model.training, field); }

  void workload() {
    const TrainingFacts& facts = out_.model.training;
    Workload& w = out_.workload;
    w.seq = q_.seq.value_or(w.fine_tune ? std::min(out_.model.max_seq, kTuningLength) : usual_seq(out_.model));
    documents();
    images();
    if (const std::int64_t longest = w.documents ? w.documents->largest() : w.seq; longest > out_.model.max_seq) {
      assume(fmt::format("sequences of {} are longer than the {} the model is published for", group_thousands(longest),
                         group_thousands(out_.model.max_seq)),
             "--seq", "model file", true)
          .as("max_seq")
          .is(static_cast<double>(out_.model.max_seq));
    }
    if (!q_.seq && !w.documents) {
      assume(fmt::format("sequences of {} tokens", group_thousands(w.seq)), "--seq",
             w.fine_tune ? std::string(kTuningSource)
             : facts.seq ? fact_source("seq")
                         : "assumed: the model file gives none; the model's longest, at most 8,192");
    }
    batch();
    tokens();
    precision();
    assume_base(out_);
    attention();
    runtime();
    w.optimizer = optimizer_of(q_.optimizer.value_or(facts.optimizer.value_or("adam")), w.precision);
    memory();
    if (!q_.optimizer) {
      assume(fmt::format("optimizer {}: {:g} bytes of state per parameter", w.optimizer.name, w.optimizer.state_bytes),
             "--optimizer",
             facts.optimizer ? fact_source("optimizer") : "assumed: the model file gives none; the usual one");
    }
  }

  /// What is said of tensors over what the stack's rules say.
  void memory() {
    Workload& w = out_.workload;
    if (q_.fp8_activation_inputs && !out_.model.mlp.gated) {
      throw UserError(
          fmt::format("--fp8-activation-inputs has no meaning: the MLPs of {} are not gated", out_.model.name),
          "leave it out");
    }
    StackMemory& rules = w.memory;
    rules.fp8_activation_inputs = q_.fp8_activation_inputs;
    if (q_.compiled.value_or(false)) {
      rules.norm_input_bytes = rules.norm_result_bytes = rules.gate_copies = 0;  // there are no kernels between
      if (!rules.compiled_selective.empty()) rules.selective = rules.compiled_selective;
    }
    if (q_.fused_loss.value_or(false)) rules.logit_bytes = std::min(rules.logit_bytes, kFusedLogitBytes);
    if (!q_.recomputed.empty()) rules.selective = q_.recomputed;
    if (q_.master_weights) return;
    if (w.optimizer.master_bytes == 0) {
      throw UserError(fmt::format("--master-weights none has no meaning: {} weights have no separate master copy",
                                  w.precision.name),
                      "leave it out");
    }
    train_in_16_bits(w);
  }

  void images() {
    const auto seq = static_cast<double>(out_.workload.seq);
    at_length(out_.model, seq);
    if (!q_.images.empty()) {
      const Images shown = images_of(q_.images);
      assume(images_text(shown, show_images(out_.model, shown, seq)), "--images", "docs/model.md [TOWERS]")
          .is(q_.images);
    } else if (const TowerSpec* tower = vision_tower(out_.model); tower != nullptr && tower->per_token == 0) {
      assume("sequences of text alone: the vision tower is shown no images", "--images", "docs/model.md [TOWERS]")
          .is("none");
    }
  }

  /// What fills a sequence, if it is not one document.
  void documents() {
    Workload& w = out_.workload;
    if (!q_.documents && !q_.pack) return;
    const Lengths lengths = q_.documents.value_or(Lengths::fixed(w.seq));
    w.seq = q_.pack.value_or(lengths.largest());
    if (lengths.largest() > w.seq) {
      throw UserError(fmt::format("--pack {}: documents of --seq have up to {} tokens, and none is cut",
                                  group_thousands(w.seq), group_thousands(lengths.largest())),
                      fmt::format("--pack {} or more", lengths.largest()));
    }
    if (lengths.smallest() == w.seq) return;
    w.documents = lengths;
    assume(
        fmt::format("sequences of {} tokens are packed full with documents of {} tokens; attention stays inside each",
                    group_thousands(w.seq), lengths_text(lengths)),
        "--seq, --pack", "docs/model.md [PACKED]")
        .as("documents")
        .is(lengths_text(lengths));
  }

  void attention() {
    if (!q_.attention.empty()) return;
    const KernelChoice& kernel = out_.kernel;
    assume(fmt::format("attention in {}: {}", kernel.title, kernel.why), "--attention", "docs/kernels.md")
        .is(kernel.name);
  }

  /// How the step is run: what is captured, what hides the experts' exchange, how even their load is.
  void runtime() {
    Workload& w = out_.workload;
    w.graphs = q_.graphs.value_or(GraphCapture::kNone);
    w.balanced_experts = q_.balanced_experts;
    w.dropout = q_.dropout.value_or(w.dropout);
    w.expert_capacity = q_.expert_capacity;
    w.tp_overlap = q_.tp_overlap;
    w.dp_overlap = q_.dp_overlap;
    if (q_.stages) w.runtime.stages = *q_.stages;
    use_reduced_format(w);
    const Efficiency& e = out_.efficiency;
    if (w.graphs == GraphCapture::kNone && e.captured_share.value < 1 && e.kernel_overhead.value > 0) {
      assume("the host launches every kernel; none is replayed from a captured graph", "--graphs", "docs/model.md")
          .is("none");
    }
    choose_fp8_recipe(q_.fp8_recipe, out_);
    refuse_expert_flags();
    expert_load();
    if (!out_.model.moe) return;
    dispatch();
    if (!q_.fix.ep_overlap) {
      assume("the software can run expert all-to-alls under another microbatch's compute, in any schedule",
             "--ep-overlap off", "docs/model.md")
          .is("on");
    }
    if (!w.balanced_experts && !w.expert_capacity && !w.expert_load && !q_.ideal) {
      assume(fmt::format("the fullest of several expert ranks has {:.3g} times the mean load", e.moe_imbalance.value),
             "--balanced-experts", e.moe_imbalance.source)
          .as("expert_imbalance")
          .is(e.moe_imbalance.value);
    }
  }

  void dispatch() {
    StackRuntime& runtime = out_.workload.runtime;
    if (!q_.dispatch) {
      assume(std::string(text_of(runtime.dispatch)), "--moe-dispatcher", "docs/model.md").is(name_of(runtime.dispatch));
    } else if (*q_.dispatch == ExpertDispatch::kDeepEp && runtime.dispatch == ExpertDispatch::kAllToAll && !q_.rates) {
      throw UserError(
          fmt::format("--moe-dispatcher deepep: {} has only all-to-all",
                      out_.launcher ? out_.launcher->name() : out_.workload.memory.stack),
          fmt::format("docs/stacks.md: deepep_since is {}{}", runtime.deepep_since,
                      runtime.deepep_since == "never" ? "" : "; --stack with a later release, or none, has it"));
    } else {
      runtime.dispatch = *q_.dispatch;
    }
  }

  /// What only a mixture of experts can be asked.
  void refuse_expert_flags() const {
    if (out_.model.moe) return;
    std::vector<Diagnostic> found;
    const auto refuse = [&](bool asked, std::string_view flag) {
      if (asked) found.push_back({{}, fmt::format("{} has no meaning: {} has no experts", flag, out_.model.name), ""});
    };
    refuse(q_.dispatch.has_value(), "--moe-dispatcher");
    refuse(q_.balanced_experts, "--balanced-experts");
    refuse(q_.expert_capacity.has_value(), "--expert-capacity");
    refuse(q_.fix.ep_overlap == 1, "--ep-overlap on");
    refuse(q_.fine_tune && q_.fine_tune->experts, "--lora-experts");
    if (!found.empty()) throw UserError(std::move(found));
  }

  void expert_load() {
    if (q_.expert_load.empty()) return;
    const auto refuse = [&](std::string_view why, std::string hint) {
      throw UserError(fmt::format("--expert-load {}: {}", q_.expert_load, why), std::move(hint));
    };
    if (!out_.model.moe) refuse("the model has no experts", "leave it out");
    if (q_.expert_capacity) refuse("experts of a fixed --expert-capacity all multiply as much", "keep one of them");
    const MoeSpec& moe = *out_.model.moe;
    out_.workload.expert_load = std::make_shared<const ExpertLoad>(
        q_.expert_load == kNaturalLoad ? ExpertLoad::zipf(moe, out_.hw.efficiency.serving.expert_skew.value)
                                       : load_expert_load(q_.expert_load, moe));
  }

  void tokens() {
    Workload& w = out_.workload;
    if (q_.tokens || !w.fine_tune) w.tokens = q_.tokens ? q_.tokens : out_.model.training.tokens;
    if (w.tokens) {
      refuse_run_below_step(*w.tokens, w.batch_seqs * static_cast<double>(w.seq),
                            w.fine_tune ? std::nullopt : out_.model.training.tokens, q_.tokens.has_value());
    }
    if (q_.tokens) return;
    if (w.fine_tune) {
      assume("how many tokens the adapters train on is not known: days, dollars and energy of the run are left out",
             "--tokens", "scalecalc", true);
    } else if (w.tokens) {
      assume(fmt::format("{} training tokens", compact_count(*w.tokens)), "--tokens", fact_source("tokens"));
    } else {
      assume("the model file gives no training tokens: days, dollars and energy of the run are left out", "--tokens",
             "model file", true);
    }
  }

  /// As trained; where that is not published, what models of its size take, at least a sequence. Adapters train with
  /// less.
  double batch_of_model() const {
    if (out_.workload.fine_tune) return static_cast<double>(kTuningSequences * out_.workload.seq);
    const std::optional<double>& trained = out_.model.training.batch_tokens;
    if (trained) return *trained;
    return std::max(usual_batch(count_parameters(out_.model).active), static_cast<double>(out_.workload.seq));
  }

  void batch() {
    Workload& w = out_.workload;
    if (q_.batch_seqs && q_.batch_tokens) {
      throw UserError("--batch-seqs and --batch-tokens both give the batch", "keep one of them");
    }
    const double seq = static_cast<double>(w.seq);
    const double tokens = q_.batch_seqs ? *q_.batch_seqs * seq : q_.batch_tokens ? *q_.batch_tokens : batch_of_model();
    w.batch_seqs = tokens / seq;
    if (w.batch_seqs < 1) {
      throw UserError(fmt::format("a batch of {} tokens is less than one sequence of {}", compact_count(tokens),
                                  group_thousands(w.seq)),
                      "raise --batch-tokens or lower --seq");
    }
    if (!q_.batch_seqs && !q_.batch_tokens) {
      assume(fmt::format("batch of {} tokens ({} sequences of {})", compact_count(tokens), sequences_text(w.batch_seqs),
                         group_thousands(w.seq)),
             "--batch-tokens",
             w.fine_tune                        ? std::string(kTuningSource)
             : out_.model.training.batch_tokens ? fact_source("batch_tokens")
                                                : usual_batch_source());
    }
    if (q_.batch_tolerance) {
      w.batch_tolerance = *q_.batch_tolerance;
      return;
    }
    assume(fmt::format("a plan may run a batch up to {:g} % off to divide over its ranks; the table shows the real one",
                       100 * w.batch_tolerance),
           "--batch-tolerance", "scalecalc")
        .is(w.batch_tolerance);
  }

  void precision() {
    Workload& w = out_.workload;
    if (!q_.precision) return assume_precision(out_);
    w.precision = precision_of(*q_.precision);
    if (has_rates(out_.hw, w.precision)) return;
    throw UserError(fmt::format("{} publishes no rate for --precision {}", out_.hw.name, w.precision.name),
                    fmt::format("its matmul rates: {}", rates_listed(out_.hw)));
  }

  void price() {
    const PaidPrice paid = paid_price(out_.hw, q_.price);
    out_.usd_per_chip_hour = paid.usd_per_chip_hour;
    if (!paid.assumed || !out_.workload.tokens) return;  // without tokens nothing to pay for is worked out
    out_.assumptions.push_back(*paid.assumed);
  }

  /// What offload can use, and what a pinned one lacks.
  void host() {
    const bool known = out_.hw.host_bandwidth() && out_.hw.host_memory().value() > 0;
    if (known || !q_.fix.offload || *q_.fix.offload == 0) return;
    throw UserError(fmt::format("--offload {}: the memory of {}'s host or the link to it is not published",
                                offload_name(*q_.fix.offload), out_.hw.name),
                    "give them: --set hw.host.ram=2TiB --set hw.host.pcie_bandwidth=64GB/s");
  }

  /// " (--stack: maxtext, nemo)": what else the chip has coefficients for.
  std::string other_stacks() const {
    std::vector<std::string> names;
    for (const StackCoefficients& stack : out_.hw.stacks) {
      if (!stack.serves && stack.name != out_.efficiency.stack) names.push_back(stack.name);
    }
    return names.empty() ? "" : fmt::format(" (--stack: {})", join(names, ", "));
  }

  void missing_figures() {
    add_run_terms(q_, out_);
    host();
    if (out_.hw.announced) {
      assume(fmt::format("{} is announced, not sold: its figures are the vendor's plans", out_.hw.name), "--hw",
             "hardware file", true)
          .as("announced")
          .is(out_.hw.name);
    }
    if (!out_.hw.vector_peak) {
      assume("vector rate is not published: norms and activations are counted by their memory traffic alone",
             "--set hw.compute.vector", "hardware file", true);
    }
    assume(q_.ideal ? "efficiency ideal: " + out_.efficiency.basis
                    : fmt::format("efficiency calibrated: {}; stack {}{}", out_.efficiency.confidence,
                                  out_.efficiency.stack, other_stacks()),
           "--efficiency", out_.efficiency.basis)
        .is(q_.ideal ? "ideal" : "calibrated");
    assume_unmeasured_kernels(out_);
    assume(reduction_format(out_.workload.precision), "", "docs/model.md")
        .as("reduced_bytes")
        .is(out_.workload.precision.reduced_bytes);
  }

  const TrainQuestion& q_;
  ResolvedQuestion out_;
};

}  // namespace

namespace {

std::shared_ptr<const ModelDocument> model_asked_for(const TrainQuestion& question, const Catalog& catalog) {
  return kept<ModelDocument>(catalog, fmt::format("model asked for\n{}\n{}", question.model, question.assume),
                             [&] { return load_model_document(catalog, question.model, question.assume); });
}

}  // namespace

ResolvedQuestion resolve(const TrainQuestion& question, const Catalog& catalog) {
  return resolve(question, catalog, *model_asked_for(question, catalog));
}

ResolvedQuestion resolve(const TrainQuestion& question, const Catalog& catalog, const ModelDocument& model) {
  return Resolver(question).run(catalog, &model, true);
}

ResolvedQuestion resolve(const TrainQuestion& question, const Catalog& catalog, ModelSpec model) {
  return Resolver(question, {.model = std::move(model)}).run(catalog, nullptr, true);
}

ResolvedQuestion resolve_job(const TrainQuestion& question, const Catalog& catalog) {
  return Resolver(question).run(catalog, model_asked_for(question, catalog).get(), false);
}

ResolvedQuestion on_machine(const TrainQuestion& question, ResolvedQuestion job) {
  resolve_machine(question, job);
  return job;
}

PlanRequest request_of(const TrainQuestion& q, const ResolvedQuestion& resolved) {
  MeasuredExtent measured;
  for (std::size_t i = 0; i < resolved.evidence.size(); ++i) {
    measured.never |= MechanismSet{resolved.evidence[i].family.runs == 0} << i;
    measured.most_ways.at(i) = resolved.evidence[i].family.most_ways;
  }
  return {.model = &resolved.model,
          .hw = &resolved.hw,
          .efficiency = resolved.efficiency,
          .workload = resolved.workload,
          .stack = resolved.launcher,
          .slices = resolved.slices,
          .fix = q.fix,
          .max = q.max,
          .objective = q.objective,
          .top = q.top,
          .variants = q.variants,
          .measured = measured};
}

}  // namespace scalecalc
