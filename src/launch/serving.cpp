// Translates a serving layout into the arguments of an engine, and such arguments into pins.
#include "launch/serving.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "model/stored_bytes.h"
#include "plan/stack_supports.h"
#include "serve/serve_search.h"

namespace scalecalc {
namespace {

constexpr double kShareUnits = 10'000;

struct ServeTerm {
  std::string_view name;  ///< of the tables
  std::int64_t ServeLayout::*degree;
  std::optional<std::int64_t> ServePins::*pin;
};
constexpr std::array kServeTerms{
    ServeTerm{"tp", &ServeLayout::tp, &ServePins::tp},
    ServeTerm{"pp", &ServeLayout::pp, &ServePins::pp},
    ServeTerm{"ep", &ServeLayout::ep, &ServePins::ep},
    ServeTerm{"etp", &ServeLayout::etp, &ServePins::etp},
    ServeTerm{"adp", &ServeLayout::attention_dp, &ServePins::attention_dp},
    ServeTerm{"cp", &ServeLayout::cp, &ServePins::cp},
    ServeTerm{"replicas", &ServeLayout::dp, &ServePins::dp},
};

bool is_of_experts(std::string_view name) { return name == "ep" || name == "etp"; }

/// What a question may ask of an engine beside the layout, by the condition of the rows that say it.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kAskedOfEngines{{
    {"speculative=on", "speculation"},
    {"redundant>0", "--redundant-experts"},
    {"stream_interval>0", "--stream-interval"},
    {"receive_interval>0", "--receive-interval"},
}};

std::int64_t whole(const std::optional<double>& value) { return static_cast<std::int64_t>(value.value_or(0)); }

/// As vLLM takes it.
std::string speculation_text(const SpeculationAsked& asked, const std::string& draft) {
  const std::string count = fmt::format("\"num_speculative_tokens\": {}", asked.drafted);
  if (draft.empty()) return fmt::format("{{\"method\": \"mtp\", {}}}", count);
  return fmt::format("{{\"method\": \"draft_model\", \"model\": \"{}\", {}}}", draft, count);
}

}  // namespace

LaunchTerms serving_terms(const ServingLaunch& point) {
  LaunchTerms t;
  for (const ServeTerm& term : kServeTerms) t.numbers[std::string(term.name)] = point.layout.*term.degree;
  t.numbers["chips"] = point.layout.chips();
  const auto nodes_of = [&](std::int64_t chips) { return (chips + point.node_chips - 1) / point.node_chips; };
  t.numbers["server_chips"] = point.layout.replica_chips();
  t.numbers["nodes"] = nodes_of(point.layout.replica_chips());
  t.numbers["rank_nodes"] = nodes_of(point.layout.replica_chips() / point.layout.attention_dp);
  t.numbers["all_nodes"] = nodes_of(point.layout.chips());
  t.numbers["chunk"] = std::max<std::int64_t>(1, static_cast<std::int64_t>(point.system.chunk_tokens));
  const ServeQuestion& q = point.question;
  const double sequences = q.most_sequences.value_or(std::ceil(point.sequences - 1e-9));
  t.numbers["seqs"] = std::max<std::int64_t>(1, static_cast<std::int64_t>(sequences));
  t.numbers["longest"] = static_cast<std::int64_t>(q.longest.value_or(q.prompt + q.generate));
  t.numbers["share"] = q.memory_share ? static_cast<std::int64_t>(std::lround(*q.memory_share * kShareUnits)) : 0;
  t.numbers["redundant"] = q.redundant_experts.value_or(0);
  t.numbers["stream_interval"] = whole(q.stream_interval);
  t.numbers["receive_interval"] = whole(q.receive_interval);
  const auto on_off = [](bool on) { return on ? "on" : "off"; };
  t.words["moe"] = on_off(point.model.moe.has_value());
  t.words["model"] = point.model.name;
  t.words["adp_on"] = on_off(point.layout.attention_dp > 1);
  t.words["expert_ranks"] = on_off(point.layout.ep > 1);
  t.words["speculative"] = on_off(q.speculation.has_value());
  if (q.speculation) t.words["speculation"] = speculation_text(*q.speculation, point.names.draft);
  t.words["eplb"] = fmt::format("{{\"num_redundant_experts\": {}}}", q.redundant_experts.value_or(0));
  t.words["pool"] = std::string(point.pool);
  // DeepEP's kernels are of NVIDIA's chips since Hopper, and send between attention-data ranks.
  const std::string& chip = point.system.hw->architecture;
  const bool deepep = point.layout.attention_dp > 1 && (chip == "hopper" || chip == "blackwell");
  t.words["a2a"] = deepep ? "deepep" : "none";
  t.words["family"] = point.names.model_type.empty() ? "other" : point.names.model_type;
  if (point.layout.ep > 1) t.words["ep_overlap"] = on_off(point.layout.ep_overlap);
  t.words["kv"] = std::string(name_of(point.system.formats.kv));
  const WeightFormat stored = point.model.quantization ? main_format(*point.model.quantization) : WeightFormat::kBf16;
  const WeightFormat weights = main_format(point.system.formats.weights);
  t.words["weights"] = weights == stored ? "checkpoint" : std::string(name_of(weights));
  return t;
}

namespace {

/// Servers that are started several times, where one server may hold several replicas too: all are replicas.
std::vector<LaunchSetting> with_replicas(std::vector<LaunchSetting> settings, const LaunchFramework& framework,
                                         bool moe) {
  const auto named = [&](std::string_view key) {
    return std::find_if(settings.begin(), settings.end(), [&](const LaunchSetting& s) { return s.key == key; });
  };
  const auto count = named("env:REPLICAS");
  const bool sglang = framework.stack == "sglang";
  const bool folds = sglang ? named("--enable-dp-attention") == settings.end() : framework.stack == "vllm" && !moe;
  if (!folds || count == settings.end() || count->values.size() != 1) return settings;
  const auto times = [](const std::string& text) { return std::strtoll(text.c_str(), nullptr, 10); };
  const std::string_view key = sglang ? "--dp-size" : "--data-parallel-size";
  const auto ranks = named(key);
  if (ranks == settings.end()) {
    count->key = std::string(key);
  } else if (ranks->values.size() == 1 && times(ranks->values[0]) > 0 && times(count->values[0]) > 0) {
    ranks->values[0] = std::to_string(times(ranks->values[0]) * times(count->values[0]));
    settings.erase(count);
  }
  return settings;
}

}  // namespace

ImportedServing import_serving(const LaunchFramework& framework, const std::vector<LaunchSetting>& settings,
                               const ModelSpec* model) {
  LaunchTerms known;
  if (model != nullptr) known.words["moe"] = model->moe ? "on" : "off";
  ImportedServing out{
      .reading =
          solve(framework, model == nullptr ? settings : with_replicas(settings, framework, model->moe.has_value()),
                known, {}),
      .pins = {}};
  const LaunchTerms& terms = out.reading.terms;
  const bool moe = terms.word("moe") == "on";
  for (const ServeTerm& term : kServeTerms) {
    if (moe || !is_of_experts(term.name)) out.pins.*term.pin = terms.number(term.name);
  }
  if (const auto overlap = terms.word("ep_overlap"); overlap && out.pins.ep.value_or(1) > 1) {
    out.pins.ep_overlap = *overlap == "on" ? 1 : 0;
  }
  return out;
}

std::vector<LaunchArgument> serving_arguments(const LaunchFramework& framework, const ServingLaunch& point) {
  if (point.system.launcher && point.system.launcher->stack == framework.stack) {
    if (const SupportFact* fact = refused_layout(point.system, point.layout, point.question.speculation.has_value())) {
      throw UserError(
          fmt::format("{} cannot run this layout: {}", framework.title, fact_text(*point.system.launcher, *fact)), "");
    }
  }
  LaunchTerms terms = serving_terms(point);
  name_model(framework, point.names, terms);
  for (const LaunchLimit& limit : framework.limits) {
    if (holds(limit.when, terms) == true) {
      throw UserError(fmt::format("{} cannot say this layout: {} ({})", framework.title, limit.says, limit.source),
                      limit.instead.empty() ? "" : fmt::format("ask with {}", limit.instead));
    }
  }
  if (point.layout.scheme != ServeScheme::kStationary1d) {
    throw UserError(fmt::format("{} has no argument that says {}", framework.title, name_of(point.layout.scheme)),
                    "ask with --fix scheme=1d");
  }
  std::vector<LaunchArgument> out = arguments_of(framework, terms);
  std::vector<std::string> lost;
  try {
    const ImportedServing back = import_serving(framework, settings_of(out), &point.model);
    for (const ServeTerm& term : kServeTerms) {
      if (!point.model.moe && is_of_experts(term.name)) continue;
      const std::int64_t value = point.layout.*term.degree;
      if (back.pins.*term.pin != value) lost.push_back(fmt::format("{} {}", term.name, value));
    }
    const auto kv = terms.word("kv");
    if (back.reading.terms.word("kv") != kv) lost.push_back("a KV cache in " + *kv);
    const std::string weights = *terms.word("weights");
    if (back.reading.terms.word("weights").value_or("checkpoint") != weights) {
      lost.push_back("weights in " + weights + " of another checkpoint");
    }
    if (point.layout.ep > 1 && back.pins.ep_overlap.value_or(0) != (point.layout.ep_overlap ? 1 : 0)) {
      lost.emplace_back("ep_overlap");
    }
  } catch (const UserError& error) {
    throw UserError(fmt::format("{} cannot say this layout: {}", framework.title, error.diagnostics().front().message),
                    "");
  }
  for (const auto& asked : kAskedOfEngines) {
    const auto says = [&](const LaunchRow& row) {
      return row.when == asked.first && std::any_of(out.begin(), out.end(), [&](const LaunchArgument& argument) {
               return argument.key == row.key;
             });
    };
    if (holds(asked.first, terms) != true || std::any_of(framework.rows.begin(), framework.rows.end(), says)) continue;
    lost.emplace_back(asked.second);
  }
  if (!lost.empty()) {
    throw UserError(fmt::format("{} has no argument that says {}", framework.title, join_and(lost)),
                    fmt::format("its arguments are those of {}", framework.source));
  }
  return out;
}

}  // namespace scalecalc
