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

  ResolvedQuestion run(const Catalog& catalog, const ModelDocument& model, bool with_machine) {
    load(catalog, model);
    workload();
    if (with_machine) machine();
    price();
    missing_figures();
    for (const std::string& set : q_.set) out_.assumptions.push_back(changed_by_set(set));
    return std::move(out_);
  }

  ResolvedQuestion place() {
    machine();
    return std::move(out_);
  }

 private:
  Assumption& assume(std::string text, std::string flag, std::string source, bool warning = false) {
    return out_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source), warning});
  }

  void load(const Catalog& catalog, const ModelDocument& model) {
    // As filed both are what other questions of a study have too.
    const std::shared_ptr<const ConfigNode> filed = kept_document(catalog, CatalogKind::kHardware, q_.hardware);
    ConfigNode hw;
    if (q_.set.empty()) {
      out_.model = load_model(model.document);
    } else {
      hw = *filed;
      ConfigNode changed = model.document;
      apply_sets(q_.set, {{"hw", &hw}, {"model", &changed}});
      out_.model = load_model(changed);
    }
    if (out_.model.draft) {
      throw UserError(fmt::format("{} is a draft, which trains beside its target, not alone", out_.model.name),
                      "scalecalc model shows its size; serve --speculative draft=FILE takes it");
    }
    out_.assumptions = import_assumptions(model);
    if (q_.set.empty()) {
      out_.hw = *kept<HardwareSpec>(catalog, "chip of a question\n" + q_.hardware,
                                    [&] { return load_hardware(*filed, catalog, Unpublished::kAllowed); });
    } else {
      out_.hw = load_hardware(hw, catalog, Unpublished::kAllowed);
    }
    require_published(out_.hw, {"compute.matmul", "hbm", "host"});
    if (q_.chips > 1 || q_.topology) require_published(out_.hw, {"network"});  // one chip needs none
    out_.efficiency = efficiency_asked_for(q_, out_.hw, out_.model);
    stack(catalog);
    resolve_fine_tune(q_, out_);
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
    if (q_.stack.empty() && !q_.ideal && !trains_in_usual(catalog)) {
      out_.efficiency = efficiency_under(out_.hw, out_.hw.efficiency.stack);
    }
    const std::string usual = q_.ideal ? "" : stack_of_framework(catalog, out_.efficiency.stack).value_or("");
    const StackAsked asked = stack_asked(q_.stack);
    const std::string& name = asked.name.empty() ? usual : asked.name;
    if (!asked.any && !name.empty()) out_.launcher = stack_release(catalog, name, asked.version);
    // A release that was asked for runs as it did when it came out.
    const std::string month = asked.version.empty() || !out_.launcher ? "" : month_of(out_.launcher->since);
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
                                .framework = asked.name,
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
      said = {fmt::format("layouts that any software could run: {}", load_supports(catalog, name).unknown), "--stack",
              "stack file", true};
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
    if (!q_.optimizer) {
      assume(fmt::format("optimizer {}: {:g} bytes of state per parameter", w.optimizer.name, w.optimizer.state_bytes),
             "--optimizer",
             facts.optimizer ? fact_source("optimizer") : "assumed: the model file gives none; the usual one");
    }
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
    w.graphs = q_.graphs;
    w.balanced_experts = q_.balanced_experts;
    w.dropout = w.dropout || q_.dropout;
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
    } else if (*q_.dispatch == ExpertDispatch::kDeepEp && runtime.dispatch == ExpertDispatch::kAllToAll) {
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
    out_.workload.expert_load = std::make_shared<const ExpertLoad>(load_expert_load(q_.expert_load, *out_.model.moe));
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

  void machine() {
    if (q_.topology) {
      const Shape shape = parse_shape(*q_.topology);
      if (shape.empty() || !out_.hw.is_torus()) {
        throw UserError(
            fmt::format("--topology {} is not a slice shape of {}", *q_.topology, out_.hw.name),
            out_.hw.is_torus() ? "write axis sizes, such as 8x8x16" : "only torus machines have shapes; give --chips");
      }
      out_.slices = slice_of_shape(out_.hw, shape, q_.slices);
      if (out_.slices.empty())
        throw UserError(fmt::format("{} builds no {} slice", out_.hw.name, *q_.topology), shape_hint());
      if (q_.chips != 0 && q_.chips != out_.slices.front().chips) {
        throw UserError(fmt::format("--topology {} has {} chips, --chips says {}", *q_.topology,
                                    group_thousands(out_.slices.front().chips), group_thousands(q_.chips)),
                        "leave one of them out");
      }
    } else {
      out_.slices = slices_of(out_.hw, q_.chips, q_.slices);
      if (out_.slices.empty()) {
        const SliceError error = no_slice(out_.hw, q_.chips, q_.slices);
        throw UserError(error.message, error.hint);
      }
      most_cubic();
      smaller_machines();
    }
    largest_job();
    parts_of_domains();
  }

  /// Racks and nodes that the job does not fill.
  void parts_of_domains() {
    const Slice& slice = out_.slices.front();
    if (slice.per_domain == 0 || slice.chips <= out_.hw.chips_per_host) return;
    const Tier& tier = out_.hw.network.front();
    if (slice.per_domain == tier.switched.chips) return;
    const std::int64_t domains = slice.chips / slice.per_domain;
    std::string text = fmt::format("{} of the {} chips of {} {} are used", slice.per_domain, tier.switched.chips,
                                   domains == 1 ? "one" : "each", tier.name);
    if (domains > 1) {
      text += fmt::format(": {} divide evenly over no fewer than {}", group_thousands(slice.chips),
                          group_thousands(domains));
    }
    const bool mostly_idle = domains > 1 && 2 * slice.per_domain < tier.switched.chips;
    assume(std::move(text), "--chips", tier.source, mostly_idle);
  }

  /// A pod of switched units can be cabled to dozens of boxes of one count; long ones only lose links to everywhere.
  void most_cubic() {
    constexpr std::size_t kShapes = 4;
    if (out_.slices.size() <= kShapes) return;
    std::sort(out_.slices.begin(), out_.slices.end(), [](const Slice& a, const Slice& b) {
      return std::lexicographical_compare(a.shape.rbegin(), a.shape.rend(), b.shape.rbegin(), b.shape.rend());
    });
    out_.shapes_left_out = out_.slices.size() - kShapes;
    out_.slices.resize(kShapes);
  }

  std::string shape_hint() const {
    const TorusTier& torus = out_.hw.network.front().torus;
    if (!torus.unit.empty())
      return fmt::format("axes are whole multiples of {}, at most {} chips", torus.unit[0],
                         group_thousands(torus.max_chips));
    return fmt::format("at most {} chips; see the shapes in its hardware file", group_thousands(torus.max_chips));
  }

  /// Who pins the data ranks asks about the whole machine, unless all degrees together make a smaller one.
  bool asked_about(std::int64_t count) const { return (!q_.fix.dp && !q_.fix.fsdp) || pinned_chips(q_.fix) == count; }

  /// Fewer chips can be faster or cheaper per token when their number divides better: the largest slice of the form
  /// {1, 3, 5, 7} x 2^k in the upper half of what was asked for. Who asks for the fewest chips gets them all.
  void smaller_machines() {
    const bool all = q_.objective == Objective::kChips;
    for (const std::int64_t odd : {1, 3, 5, 7}) {
      std::int64_t count = odd;
      while (count * 2 <= q_.chips) count *= 2;
      for (; count >= 1 && (all || count * 2 > q_.chips); count /= 2) {
        if (count >= q_.chips || count % odd != 0 || !asked_about(count)) continue;
        if (offer_smaller(count) && !all) break;
      }
    }
  }

  /// The most cubic shape has the shortest longest axis: the most links to everywhere.
  bool offer_smaller(std::int64_t count) {
    const std::vector<Slice> found = slices_of(out_.hw, count, q_.slices);
    if (found.empty()) return false;
    out_.slices.push_back(*std::min_element(found.begin(), found.end(), [](const Slice& a, const Slice& b) {
      return a.shape.empty() ? false : a.shape.back() < b.shape.back();
    }));
    return true;
  }

  void largest_job() {
    if (!out_.hw.is_torus()) return;
    const TorusTier& torus = out_.hw.network.front().torus;
    const std::int64_t each = out_.slices.front().chips / out_.slices.front().slices;
    if (torus.largest_job > 0 && each > torus.largest_job) {
      assume(fmt::format("the vendor rents slices of up to {} chips as one job; {} is the whole pod",
                         group_thousands(torus.largest_job), group_thousands(each)),
             "--chips", out_.hw.network.front().source, true)
          .as("largest_job_chips")
          .is(static_cast<double>(torus.largest_job));
    }
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
  return Resolver(question).run(catalog, model, true);
}

ResolvedQuestion resolve_job(const TrainQuestion& question, const Catalog& catalog) {
  return Resolver(question).run(catalog, *model_asked_for(question, catalog), false);
}

ResolvedQuestion on_machine(const TrainQuestion& question, ResolvedQuestion job) {
  return Resolver(question, std::move(job)).place();
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
