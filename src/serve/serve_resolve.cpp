// Turns a serving question as typed into systems with all defaults filled in.
#include "serve/serve_question.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "import/hf_config.h"
#include "model/images.h"
#include "model/stored_bytes.h"
#include "plan/stack_supports.h"
#include "serve/requests.h"
#include "spec/kept.h"
#include "spec/load.h"
#include "spec/months.h"
#include "train/import_assumptions.h"

namespace scalecalc {
namespace {

void refuse_draft(const ModelSpec& model) {
  if (!model.draft) return;
  throw UserError(fmt::format("{} is a draft: it decodes from states of its target", model.name),
                  "serve its target, with --speculative draft=FILE,k=4,accept=0.7");
}

/// What drafts for another must generate.
void require_generation(const ModelSpec& model) {
  refuse_draft(model);
  if (!generates(model)) {
    throw UserError(fmt::format("{} generates nothing, so it drafts nothing", model.name), "name a language model");
  }
}

bool has_rate(const HardwareSpec& hw, DType dtype) {
  return hw.matmul_peak[static_cast<std::size_t>(dtype)].has_value();
}

std::string rates_listed(const HardwareSpec& hw) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (hw.matmul_peak[i]) names.emplace_back(kDTypeNames[i]);
  }
  return join(names, ", ");
}

/// What serves on a chip where nobody says: what its file names, else its family's, else vLLM.
std::string usual_engine(const ConfigNode& chip, const HardwareSpec& hw, const Catalog& catalog) {
  if (const ConfigNode* own = chip.find("engine")) return own->text;
  const auto family = kept_document(catalog, CatalogKind::kEfficiency, hw.family);
  const ConfigNode* named = family->find("engine");
  return named == nullptr ? "vllm" : named->text;
}

class ServeResolver {
 public:
  ServeResolver(const ServeQuestion& q, const Catalog& catalog) : q_(q), catalog_(catalog) {}

  ServeAnswer run() {
    out_.question = q_;
    return run(load_the_model());
  }

  ServeAnswer run(ModelSpec model) {
    out_.question = q_;
    refuse_draft(model);
    requests(model);
    images(model);
    out_.model = std::make_shared<const ModelSpec>(std::move(model));
    if (q_.speculation && q_.speculation->draft != "mtp") {
      for (Assumption& read : import_assumptions(load_model_document(catalog_, q_.speculation->draft))) {
        out_.assumptions.push_back(std::move(read));
      }
    }
    expert_load();
    formats();
    lengths();
    for (const std::string& name : q_.hardware) out_.systems.push_back(system(name, q_.chips));
    if (!q_.prefill_hardware.empty()) {
      out_.prefill_system = out_.systems.size();
      out_.systems.push_back(system(q_.prefill_hardware, std::nullopt));
    }
    for (const std::string& set : q_.set) assume(changed_by_set(set));
    return std::move(out_);
  }

 private:
  Assumption& assume(Assumption said) {
    const auto known = std::find_if(out_.assumptions.begin(), out_.assumptions.end(),
                                    [&](const Assumption& a) { return a.text == said.text; });
    return known != out_.assumptions.end() ? *known : out_.assumptions.emplace_back(std::move(said));
  }
  Assumption& assume(std::string text, std::string flag, std::string source, bool warning = false) {
    return assume(Assumption{std::move(text), std::move(flag), std::move(source), warning});
  }

  ModelSpec load_the_model() {
    ModelDocument document = load_model_document(catalog_, q_.model, q_.assume);
    for (const std::string& set : q_.set) {
      if (set.starts_with("model.")) apply_sets({set}, {{"model", &document.document}});
    }
    out_.assumptions = import_assumptions(document);
    return load_model(document.document);
  }

  /// What a request is to a model that does not simply continue its prompt.
  void requests(ModelSpec& model) {
    ServeQuestion& q = out_.question;
    const bool once = !generates(model);
    const TowerSpec* known = encoder_of(model);
    if (!once && known == nullptr) return;
    refuse_of_decoders(model);
    q.disaggregate = Disaggregation::kOff;
    if (!q.fix.cp && !q.max.cp) q.max.cp = 1;
    const double longest = to_double(model.max_seq);
    if (once && known != nullptr) {
      throw UserError(
          fmt::format("{} has an encoder, a decoder and no head over its vocabulary: what a request is to it "
                      "is not known",
                      model.name),
          "serve the model with its language head");
    }
    if (once) {
      q.generate = 1;
      if (q.usual_lengths) q.prompt = std::min(q.prompt, longest);
      assume("one pass over each text, whatever --generate: its answer counts as one token, and a step is that pass",
             "--prompt", "docs/model.md [SERVE-ENCODE]")
          .as("one_pass");
      return;
    }
    TowerSpec& encoder = model.towers[static_cast<std::size_t>(known - model.towers.data())];
    if (q.usual_lengths) q.generate = std::min(q.generate, longest - 1);
    double begun = 1;  // tokens of the decoder before the first that is generated
    if (encoder.tokens > 0) {
      if (q.usual_lengths) q.prompt = 1;
      begun = q.prompt;
    } else {
      if (q.usual_lengths) q.prompt = std::min(q.prompt, longest);
      encoder.positions = q.prompt;
      encoder.tokens = model.attention.cross_tokens = static_cast<std::int64_t>(q.prompt);
    }
    encoder.per_token = encoder.positions / begun;
    assume(fmt::format("the encoder passes {} positions of a request before the first token, and its keys and values "
                       "stay; the decoder begins with {:g} token{}",
                       group_thousands(static_cast<long long>(encoder.positions)), begun, begun == 1 ? "" : "s"),
           "--prompt", "docs/model.md [SERVE-ENCODE]")
        .as("encoder_positions")
        .is(encoder.positions);
  }

  /// Questions that mean nothing without a decoder that reads the prompt itself.
  void refuse_of_decoders(const ModelSpec& model) const {
    const auto refuse = [&](bool asked, std::string_view flag) {
      if (!asked) return;
      throw UserError(fmt::format("{} has no meaning: {}", flag,
                                  !generates(model) ? model.name + " generates nothing"
                                                    : "an encoder reads the prompts of " + model.name),
                      "leave it out");
    };
    refuse(q_.speculation.has_value(), "--speculative");
    refuse(q_.disaggregate != Disaggregation::kOff || !q_.prefill_hardware.empty(), "--disaggregate");
    refuse(q_.prefix_hit > 0, "--prefix-hit");
    refuse(q_.mfu.has_value(), "--mfu");
    if (generates(model)) return;
    refuse(q_.context.has_value(), "--context");
    refuse(q_.kv.has_value(), "--kv");
    refuse(q_.regime == ServeRegime::kStatic, "--regime static");
  }

  void images(ModelSpec& model) {
    if (!q_.images.empty()) {
      const Images shown = images_of(q_.images);
      assume(images_text(shown, show_images(model, shown, q_.prompt), "prompt"), "--images", "docs/model.md [TOWERS]")
          .is(q_.images);
    } else if (const TowerSpec* shown = vision_tower(model)) {
      TowerSpec& tower = model.towers[static_cast<std::size_t>(shown - model.towers.data())];
      tower.positions = tower.per_token = 0;
      model.attention.cross_tokens = 0;  // where it would read them
      assume("prompts of text alone: the vision tower is shown no images", "--images", "docs/model.md [TOWERS]")
          .is("none");
    }
  }

  void expert_load() {
    if (q_.expert_load.empty()) return;
    if (!out_.model->moe) {
      throw UserError(fmt::format("--expert-load {}: the model has no experts", q_.expert_load), "leave it out");
    }
    ExpertLoad load = load_expert_load(q_.expert_load, *out_.model->moe);
    if (q_.redundant_experts) load = load.copied(*q_.redundant_experts);
    load_ = std::make_shared<const ExpertLoad>(std::move(load));
  }

  void formats() {
    const ModelSpec& model = *out_.model;
    if (q_.weights) {
      weights_ = *q_.weights;
    } else if (model.quantization) {
      weights_ = *model.quantization;
      assume(fmt::format("weights as the checkpoint stores them: {}", name_of(weights_.weights)), "--weights",
             weights_.source)
          .is(name_of(weights_.weights));
    } else {
      assume("weights in bf16", "--weights", "assumed: the model file does not say how the checkpoint is stored")
          .is("bf16");
    }
    kv_ = q_.kv.value_or(weights_.kv.value_or(WeightFormat::kBf16));
    if (!q_.kv && model.attention.causal) {
      assume(fmt::format("KV cache in {}", name_of(kv_)), "--kv",
             weights_.kv ? weights_.source : std::string("assumed: the format of the activations"))
          .is(name_of(kv_));
    }
  }

  void lengths() {
    const double longest = longest_request(out_);
    if (longest > static_cast<double>(out_.model->max_seq)) {
      assume(fmt::format("prompt and answer of {} tokens are longer than the {} the model is published for",
                         group_thousands(static_cast<long long>(longest)), group_thousands(out_.model->max_seq)),
             "--prompt", "model file", !q_.usual_lengths)
          .as("max_seq")
          .is(static_cast<double>(out_.model->max_seq));
    }
    if (!q_.context && !one_pass(out_) && !(q_.mean_context && continues_prompts(out_))) {
      assume(fmt::format("a sequence that decodes has {} tokens in the cache: prompt + half the answer",
                         group_thousands(static_cast<long long>(decode_context(out_)))),
             "--context", "mean over the answer")
          .is(decode_context(out_));
    }
  }

  ServeSystem system(const std::string& name, std::optional<std::int64_t> count) {
    ConfigNode document = catalog_.load(CatalogKind::kHardware, name);
    for (const std::string& set : q_.set) {
      if (!set.starts_with("model.")) apply_sets({set}, {{"hw", &document}});
    }
    HardwareSpec hw = load_hardware(document, catalog_, Unpublished::kAllowed);
    require_published(hw, {"compute.matmul", "hbm"});
    if (count.value_or(1) > 1) require_published(hw, {"network"});
    ServeSystem out;
    out.hw = std::make_shared<const HardwareSpec>(std::move(hw));
    out.serving.model = out_.model.get();
    out.serving.hw = out.hw.get();
    out.serving.expert_load = load_;
    out.serving.redundant_experts = q_.redundant_experts.value_or(0);
    engine(usual_engine(document, *out.hw, catalog_), *out.hw, out.serving);
    compute(*out.hw, out.serving);
    chips(*out.hw, count, out.chip_counts);
    out.usd_per_chip_hour = price(*out.hw);
    power(*out.hw);
    return out;
  }

  void engine(const std::string& usual, const HardwareSpec& hw, ServingSystem& out) {
    const bool named = !q_.engine.empty();
    std::string name = q_.engine;
    if (!named && !q_.ideal) name = usual;
    std::vector<std::string> names{name};
    if (q_.no_engine) {
      out.engine.name = "none";
    } else if (!name.empty()) {
      const StackSpec stack = serving_stack(catalog_, name);
      out.engine = release_asked(stack, engine_asked(name).version).on(hw);
      out.launcher = launcher(stack.name, out.engine);
      names = {engine_asked(name).name, stack.name};
      if (!named || out.launcher || !out.engine.version.empty()) {
        assume(fmt::format("engine {}{}", out.engine.title(), out.launcher ? " and layouts that it can run" : ""),
               "--engine", named ? out.engine.source : "assumed: the usual one on this chip")
            .is(out.engine.name);
      }
      names.insert(names.end(), stack.frameworks.begin(), stack.frameworks.end());
    } else {
      out.engine.name = "none";
      out.engine.counts_runtime = false;
      out.engine.source = "every byte that the weights leave: scaling book, chapter 7";
    }
    apply_settings(q_.engine_settings, out.engine);
    const double longest = longest_request(out_);
    if (out.engine.longest > 0 && longest > out.engine.longest) {
      throw UserError(fmt::format("{} of {} tokens: prompt and answer have {}", kLengthFlag,
                                  group_thousands(static_cast<long long>(out.engine.longest)),
                                  group_thousands(static_cast<long long>(longest))),
                      "the engine refuses longer requests");
    }
    out.chunk_tokens = out.engine.chunk_tokens;
    // A text passes whole.
    if (one_pass(out_)) out.chunk_tokens = std::max(out.chunk_tokens, out_.question.prompt);
    if (!q_.chunk || out.chunk_tokens > *q_.chunk) {
      assume(fmt::format("at most {} tokens of prompts in a step",
                         group_thousands(static_cast<long long>(out.chunk_tokens))),
             "--chunk", out.engine.source)
          .is(out.chunk_tokens);
    }
    if (out_.model->moe && q_.chips != 1) {
      assume(std::string(text_of(kServedDispatch)), "--fix ep=1", "docs/model.md [A2A-TREE]")
          .as("moe_dispatcher")
          .is(name_of(kServedDispatch));
    }
    coefficients(hw, names, out);
  }

  const EngineRelease& release_asked(const StackSpec& stack, const std::string& version) const {
    if (q_.as_of.empty()) return engine_release(stack.serving, version);
    if (!version.empty()) {
      throw UserError(fmt::format("--engine {} and --as-of {} both say which release", q_.engine, q_.as_of),
                      "keep one of them");
    }
    if (month_of(q_.as_of).empty()) {
      throw UserError(fmt::format("--as-of {} is not a date", in_quotes(q_.as_of)),
                      "a month or a day, such as 2025-03");
    }
    if (stack.serving.back().rules.version.empty()) {
      throw UserError(fmt::format("--as-of has no meaning: one set of rules covers all releases of {}", stack.name),
                      "leave it out");
    }
    return engine_release_of(stack.serving, "", q_.as_of);
  }

  /// What the release can run: the newest facts that are no younger.
  std::shared_ptr<const StackRelease> launcher(const std::string& stack, const EngineRules& engine) const {
    std::shared_ptr<StackRelease> out;
    for (const StackRelease& release : load_supports(catalog_, stack).releases) {
      if (engine.since.empty() || release.since <= engine.since) out = std::make_shared<StackRelease>(release);
    }
    if (out && !engine.version.empty()) out->version = engine.version;
    return out;
  }

  void coefficients(const HardwareSpec& hw, const std::vector<std::string>& names, ServingSystem& out) {
    const auto found = std::find_if(hw.stacks.begin(), hw.stacks.end(), [&](const StackCoefficients& s) {
      return std::find(names.begin(), names.end(), s.name) != names.end();
    });
    const Efficiency& own = found == hw.stacks.end() ? hw.efficiency : found->efficiency;
    if (q_.ideal) {
      out.efficiency = ideal_efficiency(own);
      assume("every rate is the data sheet's and collectives run under other work: a bound", "--efficiency calibrated",
             "scaling book, chapter 7");
      return;
    }
    out.efficiency = own;
    if (found == hw.stacks.end()) out.engine.put_overhead(*out.model, out.efficiency);
    if (!own.has_serving) {
      assume(fmt::format("no coefficient of serving is known for {}: training's, and an engine that costs nothing",
                         hw.name),
             "--set hw.efficiency.serving.…", "efficiency file", true);
    } else if (found == hw.stacks.end()) {
      assume(fmt::format("serving coefficients of the {} family: {} was not measured under {}", hw.family, hw.name,
                         names.front()),
             "--engine", "efficiency file", true)
          .as("serving_coefficients")
          .is(hw.family);
    }
  }

  /// Weights of 16 bits and more are multiplied as they are; with --mfu prompts take the rate whatever the weights.
  void refuse_unused_compute() const {
    if (!q_.compute || bytes_per_element(*q_.compute) >= 2 || q_.mfu) return;
    const std::vector<StoredWeights> stored = stored_weights(*out_.model, weights_);
    const auto narrow = [](const StoredWeights& part) { return bits_of(part.format) < 16; };
    if (std::any_of(stored.begin(), stored.end(), narrow)) return;
    throw UserError(fmt::format("--flops {} changes nothing: weights in {} are multiplied in their own format",
                                name_of(*q_.compute), name_of(main_format(weights_))),
                    "weights in a narrower format can be: --weights fp8");
  }

  void compute(const HardwareSpec& hw, ServingSystem& out) {
    out.formats.weights = weights_;
    out.formats.kv = kv_;
    out.formats.compute = q_.compute.value_or(usual_compute(weights_, hw));
    const bool wide = has_rate(hw, DType::kBf16) || has_rate(hw, DType::kFp16);
    if (!has_rate(hw, out.formats.compute)) {
      const std::string asked = q_.compute ? fmt::format("--flops {}", name_of(*q_.compute))
                                           : fmt::format("bf16 or fp16, in one of which {} weights are computed",
                                                         name_of(main_format(weights_)));
      const std::string rates = fmt::format("its matmul rates: {}", rates_listed(hw));
      throw UserError(fmt::format("{} publishes no rate for {}", hw.name, asked),
                      wide ? rates : rates + "; --weights in such a format is computed in it");
    }
    refuse_unused_compute();
    if (!wide) {
      assume(fmt::format("{} publishes no 16-bit matmul rate: attention, and weights kept in 16 bits, are counted by "
                         "their memory traffic alone",
                         hw.name),
             "--set hw.compute.matmul.bf16=…", "hardware file", true)
          .of = hw.name;
    }
    if (!q_.compute) {
      assume(fmt::format("{} matmuls compute in {}", hw.name, name_of(out.formats.compute)), "--flops",
             fmt::format("what engines run {} weights in on this chip", name_of(main_format(weights_))))
          .is(name_of(out.formats.compute))
          .of = hw.name;
    }
    out.mfu = q_.mfu;
  }

  /// The largest number that one asks of a model server, or what holds the weights twice where that many hold them not
  /// once, as of chips that have SRAM alone.
  std::int64_t most_chips(const HardwareSpec& hw) const {
    constexpr std::int64_t kUsual = 64, kMost = 4096;
    const double weights = total_bytes(stored_weights(*out_.model, weights_));
    const auto held = [&](std::int64_t count) { return static_cast<double>(count) * hw.hbm_capacity.value(); };
    std::int64_t out = kUsual;
    while (weights > held(kUsual) && out < kMost && held(out) < 2 * weights) out *= 2;
    return out;
  }

  /// As asked, or powers of two up to the most.
  void chips(const HardwareSpec& hw, std::optional<std::int64_t> asked, std::vector<std::int64_t>& out) {
    if (asked) {
      if (slices_of(hw, *asked, 1).empty()) {
        const SliceError error = no_single_slice(hw, *asked);
        throw UserError(error.message, error.hint);
      }
      out = {*asked};
      return;
    }
    const std::int64_t most = most_chips(hw);
    for (std::int64_t count = 1; count <= most; count *= 2) {
      if (count > 1 && !hw.publishes("network")) {
        assume(fmt::format("one chip of {}: what joins it to others is unpublished", hw.name), "--chips",
               "hardware file", true);
        break;
      }
      if (count > 1 && hw.network.empty()) break;
      if (!slices_of(hw, count, 1).empty()) out.push_back(count);
    }
    if (!out.empty()) return;
    throw UserError(
        fmt::format("{} does not say which counts of its chips there are: what joins them is unpublished", hw.name),
        "give its pod in a hardware file of your own");
  }

  std::optional<double> price(const HardwareSpec& hw) {
    const PaidPrice paid = paid_price(hw, q_.price, hw.name);
    if (paid.assumed) assume(*paid.assumed).of = hw.name;
    return paid.usd_per_chip_hour;
  }

  /// Rated power of the chips is what the column says; anything else must be named.
  void power(const HardwareSpec& hw) {
    if (q_.power.basis == PowerBasis::kRated && !q_.power.pue) return;
    for (Assumption& a : power_assumptions(hw, q_.power)) {
      a.text = fmt::format("{}: {}", hw.name, a.text);
      assume(std::move(a)).of = hw.name;
    }
  }

  const ServeQuestion& q_;
  const Catalog& catalog_;
  QuantizationSpec weights_;
  std::shared_ptr<const ExpertLoad> load_;
  WeightFormat kv_ = WeightFormat::kBf16;
  ServeAnswer out_;
};

}  // namespace

DType usual_compute(const QuantizationSpec& weights, const HardwareSpec& hw) {
  const DType wide = has_rate(hw, DType::kBf16) ? DType::kBf16 : DType::kFp16;
  const auto own = [&](DType narrow) { return has_rate(hw, narrow) ? narrow : wide; };
  switch (main_format(weights)) {
    case WeightFormat::kFp8:
    case WeightFormat::kMxfp8: return own(DType::kFp8);
    case WeightFormat::kNvfp4: return own(DType::kFp4);
    case WeightFormat::kMxfp4: return has_rate(hw, DType::kFp4) ? own(DType::kFp8) : wide;
    case WeightFormat::kFp32:
    case WeightFormat::kBf16:
    case WeightFormat::kFp16:
    case WeightFormat::kInt8:
    case WeightFormat::kInt6:
    case WeightFormat::kInt5:
    case WeightFormat::kInt4:
    case WeightFormat::kInt3:
    case WeightFormat::kInt2:
    case WeightFormat::kNf4: break;
  }
  return wide;
}

ServeAnswer resolve_serving(const ServeQuestion& question, const Catalog& catalog) {
  return ServeResolver(question, catalog).run();
}

ServeAnswer resolve_serving(const ServeQuestion& question, const Catalog& catalog, ModelSpec model) {
  return ServeResolver(question, catalog).run(std::move(model));
}

ModelSpec draft_model(const SpeculationAsked& asked, const ModelSpec& model, const Catalog& catalog) {
  if (asked.draft != "mtp") {
    ModelSpec out = load_model(load_model_document(catalog, asked.draft).document);
    if (out.draft && out.draft->target_d_model != model.d_model) {
      throw UserError(fmt::format("{} drafts for a model of d_model {}, and that of {} is {}", out.name,
                                  out.draft->target_d_model, model.name, model.d_model),
                      "a draft of this kind fits the model it was trained with alone");
    }
    if (!out.draft) require_generation(out);
    return out;
  }
  if (model.mtp_layers == 0) {
    throw UserError(fmt::format("{} has no multi-token-prediction heads to draft with", model.name),
                    "name a draft model: --speculative draft=llama3-8b,k=4,accept=0.7");
  }
  ModelSpec out = model;
  out.name = model.name + " mtp head";
  out.layer_kind = {model.mtp_kind};
  return out;
}

}  // namespace scalecalc
