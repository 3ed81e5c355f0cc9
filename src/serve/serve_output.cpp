// Shows the points of a serving answer with their memory, time and cost, for `scalecalc serve`.
#include "serve/serve_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "report/brief_blocks.h"
#include "report/placement_figures.h"
#include "serve/requests.h"
#include "serve/serve_plots_output.h"
#include "serve/serving_cost.h"

namespace scalecalc {
namespace {

void add_time(std::vector<Figure>& out, const ServeTime<double>& t, bool shown) {
  const auto add = [&](const char* key, const char* label, Seconds v) {
    out.push_back(
        number_figure(fmt::format("time_s.{}", key), shown && v.value() > 0 ? label : "", Format::kSeconds, v.value()));
  };
  add("compute", "compute", t.compute);
  add("weights", "reading weights", t.weights);
  add("kv", "reading KV", t.kv);
  add("activations", "activations", t.activations);
  add("collectives", "collectives", t.collectives);
  add("pipeline", "pipeline", t.pipeline);
  add("overhead", "overhead", t.overhead);
}

void add_memory(std::vector<Figure>& out, const ServePoint& p, bool shown) {
  const auto add = [&](const char* key, const char* label, double v) {
    out.push_back(number_figure(fmt::format("memory_bytes.{}", key), shown ? label : "", Format::kBytes, v));
  };
  add("weights", "weights", p.memory.weights);
  add("kv", "KV cache", p.memory.kv);
  add("activations", "activations", p.memory.activations);
  add("graphs", "graphs", p.memory.graphs);
  add("reserve", "runtime", p.memory.reserve);
  add("total", "of a chip", p.memory.total());
  add("capacity", "it has", p.capacity);
}

/// "engine: vllm 0.29 (2026-09), default; --engine NAME chooses another"; of several machines each.
std::string engine_text(const ServeAnswer& a) {
  std::vector<std::string> names;
  for (const ServeSystem& s : a.systems) {
    std::string name = s.serving.engine.title();
    if (a.systems.size() > 1) name += " on " + s.hw->name;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
  }
  const std::string why = a.question.ideal            ? "--efficiency ideal: the pure roofline"
                          : a.question.engine.empty() ? "default; --engine NAME chooses another"
                                                      : "--engine " + a.question.engine;
  return fmt::format("engine: {} ({})", join(names, ", "), why);
}

}  // namespace

std::vector<std::pair<std::string, double>> decode_parts(const ServeTime<double>& t) {
  return {{"compute", t.compute.value()},         {"reading weights", t.weights.value()},
          {"reading KV", t.kv.value()},           {"activations", t.activations.value()},
          {"collectives", t.collectives.value()}, {"pipeline", t.pipeline.value()},
          {"overhead", t.overhead.value()}};
}

std::vector<std::pair<std::string, double>> memory_parts(const ServeMemoryParts& m) {
  return {{"weights", m.weights},
          {"KV cache", m.kv},
          {"activations", m.activations},
          {"graphs", m.graphs},
          {"runtime", m.reserve}};
}

namespace {

constexpr std::size_t kBriefPoints = 6;

class ServeOutput {
 public:
  ServeOutput(const ServeAnswer& answer, bool explain)
      : a_(answer), q_(answer.question), explain_(explain), texts_(one_pass(answer)) {}

  Output run() {
    out_.command = "serve";
    const std::string prompt = group_thousands(static_cast<long long>(q_.prompt));
    out_.title = fmt::format("{} on {}: ", a_.model->title, machines());
    // [SERVE-ENCODE] tokens of an answer below are texts.
    out_.title += texts_ ? fmt::format("texts of {} tokens, one pass and one answer each", prompt)
                         : fmt::format("prompts of {}, answers of {} tokens", prompt,
                                       group_thousands(static_cast<long long>(q_.generate)));
    out_.nothing_fits = !a_.best;
    const ServingSystem& serving = a_.systems.front().serving;
    std::vector<Cell> names;
    for (const ServeSystem& s : a_.systems) names.emplace_back(s.hw->name);
    out_.query.figures = {datum("model", a_.model->name),
                          list_figure("hardware", "", std::move(names)),
                          datum("prompt", q_.prompt),
                          datum("generate", q_.generate),
                          datum("context", decode_context(a_)),
                          datum("weights", std::string(name_of(serving.formats.weights.weights))),
                          datum("kv", std::string(name_of(serving.formats.kv))),
                          datum("flops", std::string(name_of(serving.formats.compute))),
                          datum("engine", serving.engine.name)};
    summary();
    points();
    best();
    systems();
    failures();
    out_.blocks.push_back(
        {.key = "search",
         .is_list = false,
         .records = {{{count_figure("layouts", a_.layouts), count_figure("evaluated", a_.evaluated)}}}});
    out_.plots = {serve_plot(a_)};
    out_.assumptions = a_.assumptions;
    out_.software = engine_text(a_);
    out_.deciding = {"--weights", "--kv", "--prompt", "--engine", "--flops", "--price", "--set"};
    out_.notes = a_.notes;
    return std::move(out_);
  }

 private:
  std::string machines() const {
    std::vector<std::string> names;
    for (const ServeSystem& s : a_.systems) names.push_back(s.hw->title);
    return join(names, ", ");
  }
  bool several() const { return q_.hardware.size() > 1; }

  void summary() {
    if (!a_.best) {
      out_.summary.push_back({"nothing meets the question", Role::kBad});
      for (const BindingLimit& l : a_.limits) out_.summary.push_back({limit_text(l), Role::kBad});
      for (const FlagChange& change : a_.would_meet)
        out_.summary.push_back({"would do: " + change.text(), Role::kGood});
      return;
    }
    const ServePoint& p = *a_.best;
    say(out_.headline, Role::kHeading, "{}: {} on {} chip{}{}, batch {}", best_words(), describe(p.layout), p.chips,
        p.chips == 1 ? "" : "s", several() ? " of " + a_.systems[p.system].hw->name : "", batch_text(p));
    out_.headline.push_back({figures_text(p), Role::kGood});
    if (q_.objective == ServeObjective::kCost) say_unpriced();
    if (p.pools) {
      pools_text(*p.pools, describe(p.layout));
    }
    if (p.speculation) {
      const SpeculationFigures& s = *p.speculation;
      say(out_.headline, Role::kPlain,
          "speculation: {:.3g} tokens for {} of drafts and {} of checking; without it {} a token; {}",
          s.tokens_per_step, seconds_text(s.draft_s), seconds_text(s.verify_s), seconds_text(s.plain_tpot_s),
          s.break_even_batch ? fmt::format("it pays up to {:g} sequences of a replica", *s.break_even_batch)
                             : std::string("it pays at every batch that fits"));
    }
  }

  /// A system without a price cannot be the cheapest, however cheap it is.
  void say_unpriced() {
    std::vector<std::string> names;
    for (const ServeSystem& s : a_.systems) {
      if (!s.usd_per_chip_hour) names.push_back(s.hw->name);
    }
    if (names.empty()) return;
    say(out_.headline, Role::kWarning, "no price for {}: not compared by cost (--price USD sets one for all)",
        join_and(names));
  }

  void pools_text(const PoolSplit& s, const std::string& decode) {
    const auto of = [](std::int64_t replicas, const std::string& layout) {
      return fmt::format("{} replica{} of {}", replicas, replicas == 1 ? "" : "s", layout);
    };
    say(out_.headline, Role::kPlain,
        "pools: {} chips{} prefill ({}), {} decode ({}); a decode replica keeps {:.3g} prefill replicas busy; {} of "
        "cache moved over {} in {}",
        s.prefill_chips, s.prefill_hardware.empty() ? "" : " of " + s.prefill_hardware,
        of(s.prefill_replicas, describe(s.prefill_layout)), s.decode_chips, of(s.decode_replicas, decode), s.ratio,
        bytes_text(s.transfer_bytes), s.transfer_tier, seconds_text(s.transfer_s));
  }

  std::string best_words() const {
    const bool unpriced = q_.objective == ServeObjective::kCost && !a_.best->usd_per_million_output;
    switch (unpriced ? ServeObjective::kThroughput : q_.objective) {
      case ServeObjective::kThroughput: return texts_ ? "Most texts per chip" : "Most tokens per chip";
      case ServeObjective::kLatency: return "Fastest request";
      case ServeObjective::kCost: return "Cheapest";
      case ServeObjective::kKnee: return "Knee of the Pareto front";
    }
    return "";
  }

  /// How fast, how much, what binds.
  std::string figures_text(const ServePoint& p) const {
    return fmt::format(
        "{} {}/s per chip, {} per user, TTFT {}, TPOT {}, step {} ({} to {}){}, {} of {}; bound by {}",
        format_quantity(p.tokens_per_s_per_chip(), UnitKind::kNumber), texts_ ? "texts" : "tokens",
        format_quantity(p.tokens_per_s_per_user(), UnitKind::kNumber), seconds_text(p.ttft_s), seconds_text(p.tpot_s),
        seconds_text(p.decode_step_s), seconds_text(p.decode_low_s), seconds_text(p.decode_high_s),
        p.usd_per_million_output
            ? ", " + compact_usd(*p.usd_per_million_output) + (texts_ ? " per M texts" : " per M output tokens")
            : "",
        bytes_text(p.memory.total()), bytes_text(p.capacity), p.bound_by);
  }

  std::string limit_text(const BindingLimit& l) const {
    if (l.name == "memory") {
      return fmt::format("memory: a chip has {}, one sequence needs {} at least ({})", bytes_text(l.asked),
                         bytes_text(l.nearest), l.how);
    }
    const std::string asked = seconds_text(l.asked);
    std::string nearest = seconds_text(l.nearest);
    if (nearest == asked) nearest = fmt::format("{:.1f} % more", 100 * (l.nearest / l.asked - 1));
    return fmt::format("--slo-{} {}: nearest is {} ({})", l.name, asked, nearest, l.how);
  }

  std::vector<Figure> of(const ServePoint& p, bool alone) const {
    std::vector<Figure> f;
    f.push_back(text_figure("hardware", several() ? "hardware" : "", a_.systems[p.system].hw->name));
    f.push_back(text_figure("layout_text", "layout", describe(p.layout)));
    add_serve_layout(f, "layout.", p.layout);
    f.push_back(number_figure("chips", "chips", Format::kInteger, to_double(p.chips), 1));
    f.push_back(text_figure("slice", "", p.slice.name()));
    f.push_back(number_figure("batch", "batch", Format::kInteger, p.batch));
    f.push_back(number_figure("max_batch", alone ? "most that fit" : "", Format::kNumber, p.max_batch));
    f.push_back(number_figure("prefill_time_s", "prefill", Format::kSeconds, p.prefill_s, 6));
    f.push_back(number_figure("ttft_s", "TTFT", Format::kSeconds, p.ttft_s));
    f.push_back(number_figure("decode_step_s", "step", Format::kSeconds, p.decode_step_s, 5));
    f.push_back(number_figure("decode_step_low_s", alone ? "at best" : "", Format::kSeconds, p.decode_low_s));
    f.push_back(number_figure("decode_step_high_s", alone ? "at worst" : "", Format::kSeconds, p.decode_high_s));
    f.push_back(number_figure("tpot_s", "TPOT", Format::kSeconds, p.tpot_s));
    f.push_back(number_figure("request_time_s", "", Format::kSeconds, p.request_s));
    f.push_back(number_figure("floor_s", alone ? "floor of the step" : "", Format::kSeconds, p.floor_s));
    f.push_back(number_figure("tokens_per_s", "", Format::kNumber, p.tokens_per_s));
    f.push_back(number_figure("tokens_per_s_per_chip", per_chip(), Format::kNumber, p.tokens_per_s_per_chip()));
    f.push_back(number_figure("tokens_per_s_per_user", texts_ ? "texts/s/user" : "tok/s/user", Format::kNumber,
                              p.tokens_per_s_per_user()));
    // A step of drafts and their check yields several tokens of each sequence.
    const double step_tokens = p.batch * (p.speculation ? p.speculation->tokens_per_step : 1);
    const double step_s = p.speculation ? p.speculation->draft_s + p.speculation->verify_s : p.decode_step_s;
    const double finished = step_tokens / q_.generate;
    const double decoding = step_tokens / step_s / to_double(p.pools ? p.pools->decode_chips : p.chips);
    f.push_back(number_figure("decode_tokens_per_s_per_chip", decodes(alone, "decoding alone tok/s/chip"),
                              Format::kNumber, decoding));
    f.push_back(number_figure("decode_requests_per_s_per_chip", decodes(alone, "decoding alone req/s/chip"),
                              Format::kNumber, decoding / q_.generate));
    f.push_back(number_figure("requests_per_s", "req/s", Format::kNumber, p.requests_per_s, 4));
    // Steady state: what leaves the batch is what enters it.
    f.push_back(number_figure("finished_sequences_per_step", "", Format::kNumber, finished));
    f.push_back(
        number_figure("admitted_tokens_per_step", "", Format::kNumber, finished * q_.prompt * (1 - q_.prefix_hit)));
    f.push_back(number_figure("evicted_tokens_per_step", decodes(alone, "tokens evicted per step"), Format::kNumber,
                              finished * (q_.prompt + q_.generate)));
    f.push_back(with_importance(
        maybe_figure("usd_per_million_output_tokens", per_million(), Format::kUsd, p.usd_per_million_output), 2));
    f.push_back(
        maybe_figure("usd_per_million_input_tokens", alone ? "$/M in" : "", Format::kUsd, p.usd_per_million_input));
    f.push_back(maybe_figure("energy_j_per_output_token",
                             !alone   ? ""
                             : texts_ ? "J per text"
                                      : "J per output token",
                             Format::kNumber, p.joules_per_output_token));
    if (q_.power.carbon_g_per_kwh) {
      constexpr double kMillionTokensPerKwh = 1e6 / 3.6e6;
      const auto grams =
          p.joules_per_output_token
              ? std::optional(*p.joules_per_output_token * *q_.power.carbon_g_per_kwh * kMillionTokensPerKwh)
              : std::nullopt;
      f.push_back(maybe_figure("carbon_g_per_million_output_tokens",
                               !alone   ? ""
                               : texts_ ? "g CO2/M texts"
                                        : "g CO2/M out",
                               Format::kNumber, grams));
    }
    f.push_back(text_figure("bound_by", "bound by", p.bound_by, 3));
    add_time(f, p.time, alone);
    add_memory(f, p, alone);
    f.push_back(flag_figure("pareto", p.pareto));
    f.push_back(number_figure("meets_limits", limited() ? "in limits" : "", Format::kFlag, p.meets_limits ? 1 : 0, 1));
    return f;
  }
  // [SERVE-ENCODE] What passes once is counted in texts, under the keys of tokens.
  const char* per_chip() const { return texts_ ? "texts/s/chip" : "tok/s/chip"; }
  const char* per_million() const { return texts_ ? "$/M texts" : "$/M out"; }
  const char* decodes(bool alone, const char* label) const { return alone && !texts_ ? label : ""; }
  bool limited() const { return q_.slo_ttft || q_.slo_tpot || q_.slo_request; }

  void points() {
    Block block{.key = "points", .title = q_.batches.empty() ? "Pareto front" : "Batches"};
    for (const ServePoint& p : a_.points) block.records.push_back({of(p, false)});
    shorten(block);
    if (block.records.empty()) block.shown = Shown::kFull;
    out_.blocks.push_back(std::move(block));
  }

  /// Both ends of the front, the best, and between them as many as one takes in, evenly spaced.
  void shorten(Block& block) const {
    const bool asked = q_.top != ServeQuestion{}.top || !q_.batches.empty();
    block.brief_rows = asked ? std::max<std::size_t>(block.records.size(), 1) : kBriefPoints;
    block.columns = {{"hardware"},
                     {"layout_text"},
                     {"chips", 1},
                     {"batch"},
                     {"prefill_time_s", 6, "", false},
                     {"ttft_s"},
                     {"decode_step_s", 5, "", false},
                     {"tpot_s"},
                     {"tokens_per_s_per_chip"},
                     {"tokens_per_s_per_user"},
                     {"requests_per_s", 4, "", false},
                     {"usd_per_million_output_tokens", 2},
                     {"bound_by", 3},
                     {"meets_limits", 1}};
    const std::size_t n = block.records.size();
    const auto is_best = [&](std::size_t i) {
      const ServePoint& p = a_.points[i];
      return a_.best && p.tpot_s == a_.best->tpot_s && p.batch == a_.best->batch && p.chips == a_.best->chips &&
             p.system == a_.best->system;
    };
    for (std::size_t i = 0; i < n; ++i) {
      if (!is_best(i)) continue;
      block.records[i].role = Role::kGood;
      for (Figure& f : block.records[i].figures) {
        if (f.key == "layout_text") f.shown = describe(a_.points[i].layout) + " *";
      }
      block.brief_lines = {{"* the one above"}};
    }
    if (asked || n <= kBriefPoints) return;
    for (Record& r : block.records) r.brief = false;
    std::size_t best = 0;
    while (best < n && !is_best(best)) ++best;
    for (std::size_t k = 0; k < kBriefPoints; ++k) {
      std::size_t i = (k * (n - 1) + (kBriefPoints - 1) / 2) / (kBriefPoints - 1);
      // The best takes the place of the one nearest to it.
      const std::size_t half = (n - 1) / (2 * (kBriefPoints - 1));
      if (best < n && i != 0 && i != n - 1 && (i > best ? i - best : best - i) <= half) i = best;
      block.records[i].brief = true;
    }
    if (best < n && !block.records[best].brief) {
      block.records[best].brief = true;
      ++block.brief_rows;
    }
  }

  void best() {
    if (!a_.best) return;
    const ServePoint& p = *a_.best;
    Record record{of(p, true)};
    if (explain_) {
      const ExplainedServing explained = explain_point(a_, p);
      for (Figure& f : record.figures) {
        if (f.key == "decode_step_s")
          f = figure(f.key, "step", Format::kSeconds, explained.decode_step, "sum of its causes");
        if (f.key == "prefill_time_s")
          f = figure(f.key, "prefill", Format::kSeconds, explained.prefill, "sum of its causes");
      }
    }
    const auto groups = described_placement(*a_.systems[p.system].hw, p.slice, p.placement);
    add_placement(groups, " lies on", record.figures);
    record.figures.push_back(placement_axes(groups));
    record.figures.push_back(text_figure("memory_rule", "", p.memory_rule));
    out_.answer = record;
    out_.blocks.push_back({.key = "best",
                           .title = "Best",
                           .is_list = false,
                           .records = {std::move(record)},
                           .by_figure = true,
                           .lines = {{p.memory_rule, Role::kDim}, next_line(point_alone(a_, p))},
                           .shown = Shown::kFull});
    out_.blocks.push_back(brief_time(p));
    out_.blocks.push_back(brief_memory_block(
        fmt::format("Memory: {} of {} on each chip; as many as {} sequences fit", bytes_text(p.memory.total()),
                    bytes_text(p.capacity), compact_count(p.max_batch)),
        memory_parts(p.memory)));
    out_.blocks.push_back(brief_end());
    if (p.pools) pools(*p.pools);
    if (p.speculation) speculation(*p.speculation);
  }

  Block brief_time(const ServePoint& p) const {
    return brief_time_block(
        fmt::format("Where a {} of {} goes", texts_ ? "pass" : "decode step", seconds_text(p.decode_step_s)),
        decode_parts(p.time), p.decode_step_s);
  }

  Block brief_end() const {
    std::vector<Line> lines;
    if (!q_.ideal) lines.push_back({accuracy_text(a_.systems[a_.best->system].serving.efficiency)});
    lines.push_back({limited()
                         ? "more: --verbose, --explain, --objective cost, --rate N (requests/s)"
                         : "more: --verbose, --explain, --slo-tpot 30ms, --objective cost, --rate N (requests/s)"});
    lines.push_back(next_line(point_alone(a_, *a_.best)));
    return brief_end_block(std::move(lines));
  }

  void pools(const PoolSplit& s) {
    const std::string& other = s.prefill_hardware;
    std::vector<Figure> f{
        text_figure("prefill_hardware", "", other.empty() ? a_.systems[a_.best->system].hw->name : other),
        count_figure("prefill_chips", s.prefill_chips),
        count_figure("decode_chips", s.decode_chips),
        count_figure("prefill_replicas", s.prefill_replicas),
        count_figure("decode_replicas", s.decode_replicas),
        number_figure("ratio", "", Format::kNumber, s.ratio),
        number_figure("transfer_bytes", "", Format::kBytes, s.transfer_bytes),
        number_figure("transfer_time_s", "", Format::kSeconds, s.transfer_s),
        text_figure("transfer_tier", "", s.transfer_tier)};
    add_serve_layout(f, "prefill_layout.", s.prefill_layout);
    out_.blocks.push_back({.key = "disaggregation", .is_list = false, .records = {{std::move(f)}}});
  }

  void speculation(const SpeculationFigures& s) {
    out_.blocks.push_back({.key = "speculation",
                           .is_list = false,
                           .records = {{{number_figure("tokens_per_step", "", Format::kNumber, s.tokens_per_step),
                                         number_figure("draft_time_s", "", Format::kSeconds, s.draft_s),
                                         number_figure("verify_time_s", "", Format::kSeconds, s.verify_s),
                                         number_figure("plain_tpot_s", "", Format::kSeconds, s.plain_tpot_s),
                                         maybe_figure("break_even_batch", "", Format::kNumber, s.break_even_batch)}}}});
  }

  /// Of several machines: each with its best, or why it has none. The prefill pool's answers nothing by itself.
  void systems() {
    if (!several()) return;
    Block block{.key = "systems", .title = "Each system"};
    for (std::size_t s = 0; s < a_.systems.size(); ++s) {
      if (a_.prefill_system == s) continue;
      block.records.push_back(of_system(a_.systems[s].hw->name, a_.outcomes[s]));
    }
    out_.blocks.push_back(std::move(block));
  }

  Record of_system(const std::string& name, const SystemOutcome& outcome) const {
    Record out{{text_figure("hardware", "hardware", name)}};
    if (!outcome.best) {
      out.group = "Not possible";
      out.figures.push_back(text_figure("why", "why", why_not(outcome)));
      return out;
    }
    const ServePoint& p = *outcome.best;
    for (Figure f :
         {text_figure("layout_text", "layout", describe(p.layout)), count_figure("chips", p.chips, "chips"),
          number_figure("batch", "batch", Format::kInteger, p.batch),
          number_figure("ttft_s", "TTFT", Format::kSeconds, p.ttft_s),
          number_figure("tpot_s", "TPOT", Format::kSeconds, p.tpot_s),
          number_figure("request_time_s", "request", Format::kSeconds, p.request_s, 1),
          number_figure("tokens_per_s_per_chip", per_chip(), Format::kNumber, p.tokens_per_s_per_chip()),
          maybe_figure("usd_per_million_input_tokens", "$/M in", Format::kUsd, p.usd_per_million_input),
          maybe_figure("usd_per_million_output_tokens", per_million(), Format::kUsd, p.usd_per_million_output)}) {
      out.figures.push_back(std::move(f));
    }
    return out;
  }

  std::string why_not(const SystemOutcome& outcome) const {
    if (outcome.limits.empty()) return "no layout of the question is legal on it";
    std::vector<std::string> out;
    for (const BindingLimit& l : outcome.limits) out.push_back(limit_text(l));
    return join(out, "; ");
  }

  void failures() {
    if (a_.best) return;
    Block block{.key = "limits", .title = "What binds"};
    for (const BindingLimit& l : a_.limits) {
      block.records.push_back(
          {{text_figure("name", "limit", l.name), number_figure("asked", "", Format::kNumber, l.asked),
            number_figure("nearest", "", Format::kNumber, l.nearest), text_figure("how", "nearest", l.how)}});
    }
    block.title = a_.limits.empty() ? "" : block.title;
    out_.blocks.push_back(in_full(std::move(block)));  // the summary says it
    if (!a_.would_meet.empty()) {
      out_.blocks.push_back(next_block({next_line({.flags = {a_.would_meet.front()}})}));
    }
    out_.blocks.push_back({.key = "remedies",
                           .is_list = false,
                           .records = {{{changes_figure("would_meet", a_.would_meet)}}},
                           .for_files = true});
  }

  const ServeAnswer& a_;
  const ServeQuestion& q_;
  bool explain_;
  bool texts_;  ///< nothing is generated
  Output out_;
};

}  // namespace

void add_serve_layout(std::vector<Figure>& out, const std::string& at, const ServeLayout& l) {
  const std::initializer_list<std::pair<const char*, std::int64_t>> degrees{
      {"tp", l.tp}, {"pp", l.pp}, {"ep", l.ep},    {"etp", l.etp}, {"attention_dp", l.attention_dp},
      {"cp", l.cp}, {"dp", l.dp}, {"tp_x", l.tp_x}};
  for (const auto& [name, degree] : degrees) out.push_back(count_figure(at + name, degree));
  out.push_back(text_figure(at + "scheme", "", std::string(name_of(l.scheme))));
  out.push_back(flag_figure(at + "ep_overlap", l.ep_overlap));
}

FlagChange serve_fix(const ServeAnswer& answer, const ServeLayout& layout, std::string_view pool) {
  const std::array<std::string_view, 3> of_experts{"ep", "etp", "ep_overlap"};
  std::vector<std::string> pins;
  for (const ServeDimension& d : kServeDimensionTable) {
    const bool expert = std::find(of_experts.begin(), of_experts.end(), d.name) != of_experts.end();
    if (expert && !answer.model->moe) continue;
    if (d.name == "tp_x" && layout.scheme != ServeScheme::kStationary2d) continue;
    if (d.name == "dp" && layout.dp == 0) continue;
    const std::string value =
        d.name == "scheme" ? std::string(name_of(layout.scheme)) : fmt::format("{}", d.value(layout));
    pins.push_back(fmt::format("{}{}={}", pool, d.name, value));
  }
  return {"--fix", join(pins, ",")};
}

FlagChange pools_fix(const ServeAnswer& answer, const ServeLayout& prefill, const ServeLayout& decode) {
  return {"--fix", serve_fix(answer, prefill, "prefill.").value + "," + serve_fix(answer, decode, "decode.").value};
}

NextQuestion point_alone(const ServeAnswer& answer, const ServePoint& point) {
  const ServeQuestion& q = answer.question;
  NextQuestion out{.command = "serve",
                   .flags = {{"--hw", q.hardware.at(point.system)}, {"--chips", std::to_string(point.chips)}}};
  if (point.pools) {
    ServeLayout prefill = point.pools->prefill_layout;
    ServeLayout decode = point.layout;
    prefill.dp = point.pools->prefill_replicas;
    decode.dp = point.pools->decode_replicas;
    out.flags.push_back(pools_fix(answer, prefill, decode));
  } else {
    out.flags.push_back(serve_fix(answer, point.layout));
  }
  if (q.disaggregate == Disaggregation::kAuto) out.flags.push_back({"--disaggregate", point.pools ? "on" : "off"});
  out.flags.push_back({"--batch", fmt::format("{}", point.batch)});
  return out;
}

Output serve_output(const ServeAnswer& answer, bool explain) { return ServeOutput(answer, explain).run(); }

}  // namespace scalecalc
