// Adds what arriving requests see to the output of `scalecalc serve --rate`.
#include "serve/traffic_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/scalar.h"
#include "base/text.h"
#include "base/units.h"
#include "serve/serve_output.h"

namespace scalecalc {
namespace {

std::string grouped(std::int64_t value) { return group_thousands(value); }
std::string lengths_of(const RequestMix& mix) {
  if (!mix.tenants.empty()) return fmt::format("of {} tenants", mix.tenants.size());
  if (!mix.rows.empty()) {
    return fmt::format("lengths from a trace of {} requests", grouped(static_cast<std::int64_t>(mix.rows.size())));
  }
  return fmt::format("prompts of {}, answers of {} tokens", lengths_text(mix.prompt), lengths_text(mix.generate));
}

/// What a user sees, with the closed form's mean where there is one.
struct Seen {
  const char* key;
  const char* label;
  std::optional<Percentiles> found;
  std::optional<double> closed;
  std::optional<double> error;  ///< of the mean
};

std::vector<Seen> seen_figures(const TrafficAnswer& t) {
  const QueueFigures& f = t.figures;
  const bool steady = t.steady && t.steady->proven();
  const auto closed = [&](double value) { return steady ? std::optional(value) : std::nullopt; };
  const auto error = [&](double MeanErrors::*of) { return t.errors ? std::optional((*t.errors).*of) : std::nullopt; };
  return {
      {"ttft_s", "TTFT", f.ttft_s, steady ? t.steady->ttft_s : std::nullopt, error(&MeanErrors::ttft_s)},
      {"tpot_s", "TPOT", f.tpot_s, f.tpot_s ? closed(t.steady ? t.steady->gap_s : 0) : std::nullopt,
       error(&MeanErrors::tpot_s)},
      {"inter_token_s", "between tokens", f.inter_token_s, std::nullopt, error(&MeanErrors::inter_token_s)},
      {"request_time_s", "request", f.latency_s,
       steady && t.steady->wait_s ? closed(t.steady->latency_s) : std::nullopt, error(&MeanErrors::latency_s)},
      {"wait_s", "wait for a step", f.wait_s, steady ? t.steady->wait_s : std::nullopt, error(&MeanErrors::wait_s)}};
}

Block percentile_table(const TrafficAnswer& t) {
  Block out{.key = "latency", .title = "Requests", .for_people = true};
  const bool closed = t.steady && t.steady->proven();
  for (const Seen& s : seen_figures(t)) {
    if (!s.found) continue;
    Record& row = out.records.emplace_back();
    const auto add = [&](const char* key, const char* label, std::optional<double> value) {
      row.figures.push_back(number_figure(key, label, Format::kSeconds, value));
    };
    row.figures.push_back(figure("figure", "time", Format::kText, std::string(s.label)));
    add("mean", "mean", s.found->mean);
    if (t.errors) add("error", "+/- 95 %", s.error);
    if (closed) add("closed", "closed form", s.closed);
    add("p50", "p50", s.found->p50);
    add("p90", "p90", s.found->p90);
    add("p95", "p95", s.found->p95);
    add("p99", "p99", s.found->p99);
  }
  return out;
}

void add_percentiles(std::vector<Figure>& out, const TrafficAnswer& t) {
  for (const Seen& s : seen_figures(t)) {
    const auto add = [&](const char* name, double Percentiles::*member) {
      out.push_back(number_figure(fmt::format("{}.{}", s.key, name), "", Format::kSeconds,
                                  s.found ? std::optional((*s.found).*member) : std::nullopt));
    };
    add("mean", &Percentiles::mean);
    add("p50", &Percentiles::p50);
    add("p90", &Percentiles::p90);
    add("p95", &Percentiles::p95);
    add("p99", &Percentiles::p99);
    out.push_back(number_figure(fmt::format("{}.closed_form", s.key), "", Format::kSeconds, s.closed));
    out.push_back(number_figure(fmt::format("{}.error", s.key), "", Format::kSeconds, s.error));
  }
}

/// Each tenant's limits beside what its requests saw.
Block tenant_block(const TrafficAnswer& t) {
  Block out{.key = "tenants", .title = "Tenants"};
  for (std::size_t i = 0; i < t.tenants.size(); ++i) {
    const Tenant& tenant = t.asked.mix.tenants[i];
    const QueueFigures& seen = t.tenants[i].seen;
    const auto seconds = [](const char* key, const char* label, std::optional<double> value) {
      return number_figure(key, label, Format::kSeconds, value);
    };
    const std::optional<double> tpot = seen.tpot_s ? std::optional(seen.tpot_s->p95) : std::nullopt;
    out.records.push_back(
        {{figure("name", "tenant", Format::kText, tenant.name),
          number_figure("share", "share", Format::kFraction, tenant.share),
          number_figure("requests", "", Format::kInteger, to_double(seen.requests)),
          seconds("ttft_p50_s", "TTFT p50", seen.ttft_s.p50), seconds("ttft_p95_s", "TTFT p95", seen.ttft_s.p95),
          seconds("slo_ttft_s", "limit", tenant.limits.ttft_s), seconds("tpot_p95_s", "TPOT p95", tpot),
          seconds("slo_tpot_s", "limit", tenant.limits.tpot_s),
          seconds("request_time_p95_s", "request p95", seen.latency_s.p95),
          seconds("slo_request_s", "limit", tenant.limits.latency_s),
          number_figure("meets_limits", "kept", Format::kFlag, t.tenants[i].met ? 1 : 0)}});
  }
  return out;
}

Block queueing_block(const ServeAnswer& answer, const TrafficAsked& asked, const TrafficAnswer& t) {
  std::vector<Figure> f;
  const auto add = [&](const char* key, const char* label, Format format, double value) {
    f.push_back(figure(key, label, format, Cell(value)));
  };
  if (asked.clients) {
    add("clients", "clients", Format::kInteger, to_double(*asked.clients));
    add("seeds", "", Format::kInteger, to_double(t.seeds));
  }
  add("rate_requests_per_s", "requests/s", Format::kNumber, asked.rate > 0 ? asked.rate : t.figures.requests_per_s);
  add("simulated_requests", "simulated", Format::kInteger, to_double(t.figures.requests));
  add("seed", "", Format::kInteger, static_cast<double>(asked.seed));
  f.push_back(figure("hardware", "", Format::kText, answer.systems[t.system].hw->name));
  f.push_back(figure("layout_text", "replicas", Format::kText, describe(t.layout)));
  add("replicas", "", Format::kInteger, to_double(t.layout.dp));
  add("chips", "chips", Format::kInteger, to_double(t.chips));
  f.push_back(number_figure("usd_per_hour", "$ an hour", Format::kUsd, t.usd_per_hour));
  add("carries", "carries it", Format::kFlag, t.carries ? 1 : 0);
  add("stable", "queue is stable", Format::kFlag, t.figures.stable ? 1 : 0);
  f.push_back(number_figure("largest_rate_requests_per_s", "most requests/s", Format::kNumber,
                            t.steady ? std::optional(t.steady->largest_rate * to_double(t.layout.dp)) : std::nullopt));
  add("utilisation", "time in steps", Format::kFraction, t.figures.utilisation);
  add("mean_batch", "batch of a decode step", Format::kNumber, t.figures.mean_batch);
  add("mean_in_system", "requests in the system", Format::kNumber, t.figures.mean_in_system);
  add("output_tokens_per_s", "tokens/s", Format::kNumber, t.figures.output_tokens_per_s);
  if (asked.clients) {
    add("output_tokens_per_s_error", "+/- 95 %", Format::kNumber, t.errors->output_tokens_per_s);
    add("output_tokens_per_s_per_chip", "tokens/s/chip", Format::kNumber,
        t.figures.output_tokens_per_s / to_double(t.chips));
  }
  f.push_back(
      number_figure("admitted_tokens_per_step", "admitted tokens a step", Format::kNumber,
                    t.steady && t.steady->stable ? std::optional(t.steady->admitted_tokens_per_step) : std::nullopt));
  f.push_back(
      number_figure("evicted_tokens_per_step", "evicted tokens a step", Format::kNumber,
                    t.steady && t.steady->stable ? std::optional(t.steady->evicted_tokens_per_step) : std::nullopt));
  add("preemptions", "preemptions", Format::kInteger, to_double(t.figures.evictions));
  add("recomputed_tokens", "", Format::kInteger, to_double(t.figures.recomputed_tokens));
  add("steps", "", Format::kInteger, to_double(t.figures.steps));
  add("kv_tokens", "cache of a replica, tokens", Format::kInteger, to_double(cache_tokens(t.rules)));
  add("token_budget", "", Format::kInteger, to_double(t.rules.token_budget));
  const auto found = [&](const char* key, const char* label, double share) {
    f.push_back(number_figure(key, label, Format::kFraction, asked.mix.blocks ? std::optional(share) : std::nullopt));
  };
  found("prefix_found_share", asked.mix.blocks ? "of prompts found cached" : "", t.figures.found_share());
  found("prefix_found_host_share", "", t.figures.found_shares[1]);
  found("prefix_found_disk_share", "", t.figures.found_shares[2]);
  f.push_back(number_figure("prefill_servers", "", Format::kInteger,
                            t.pools ? std::optional(to_double(t.pools->prefill_servers)) : std::nullopt));
  f.push_back(number_figure("decode_servers", "", Format::kInteger,
                            t.pools ? std::optional(to_double(t.pools->decode_servers)) : std::nullopt));
  add_percentiles(f, t);
  return {.key = "queueing",
          .title = asked.clients    ? "Requests of clients"
                   : asked.rate > 0 ? "Requests at a rate"
                                    : "A burst of requests",
          .is_list = false,
          .records = {{std::move(f)}},
          .by_figure = true,
          .brief_keys = {"clients", "rate_", "hardware", "layout_text", "chips", "usd_per_hour",
                         "largest_rate_requests_per_s", "utilisation", "mean_batch", "output_tokens_per_s"}};
}

/// Why the requests are not carried within the limits.
std::string shortfall(const TrafficAnswer& t) {
  if (t.steady && !t.steady->stable) {
    return fmt::format("the queue grows: these replicas keep up with {:.3g} requests/s",
                       t.steady->largest_rate * to_double(t.layout.dp));
  }
  if (!t.figures.stable || (t.pools && !t.pools->result.decode.stable)) return "the queue grows";
  std::vector<std::string> out;
  const auto over = [&](const std::string& whose, const LatencyLimits& limits, const QueueFigures& seen) {
    const auto one = [&](const char* name, const std::optional<double>& limit, const Percentiles& p) {
      if (!limit || p.p95 <= *limit) return;
      out.push_back(fmt::format("{}{} {} at the 95th percentile, the limit is {}", whose, name, seconds_text(p.p95),
                                seconds_text(*limit)));
    };
    one("TTFT", limits.ttft_s, seen.ttft_s);
    one("TPOT", limits.tpot_s, seen.tpot_s.value_or(Percentiles{}));
    one("request time", limits.latency_s, seen.latency_s);
  };
  over("", t.limits, t.figures);
  for (std::size_t i = 0; i < t.tenants.size(); ++i) {
    const Tenant& tenant = t.asked.mix.tenants[i];
    over(tenant.name + "'s ", tenant.limits, t.tenants[i].seen);
  }
  return join(out, "; ");
}

std::string fleet_text(const ServeAnswer& answer, const TrafficAnswer& t) {
  const std::string& hw = answer.systems[t.system].hw->name;
  const auto servers = [](std::int64_t count, const char* what, ServeLayout layout) {
    layout.dp = 1;
    return fmt::format("{} {}{} of {}", grouped(count), what, count == 1 ? "" : "s", describe(layout));
  };
  const std::string prompts_on =
      answer.prefill_system ? " on " + answer.systems[*answer.prefill_system].hw->name : std::string();
  std::string out = t.pools ? servers(t.pools->prefill_servers, "prefill server", t.prefill_layout) + prompts_on +
                                  " and " + servers(t.pools->decode_servers, "decode server", t.layout)
                            : servers(t.layout.dp, "replica", t.layout);
  out += fmt::format(", {} {} of {}", grouped(t.chips), t.chips == 1 ? "chip" : "chips", hw);
  if (t.usd_per_hour) out += fmt::format(", {:.2f} USD an hour", *t.usd_per_hour);
  return out;
}

/// What is asked to be carried.
std::string load_text(const TrafficAsked& asked, std::int64_t requests) {
  if (asked.most) return fmt::format("at most {:.4g} requests/s", asked.rate);
  if (asked.clients) return fmt::format("{} client{}", grouped(*asked.clients), *asked.clients == 1 ? "" : "s");
  if (asked.rate > 0) return fmt::format("{:.4g} requests/s", asked.rate);
  return fmt::format("{} requests at once", grouped(requests));
}

std::string sending_text(const TrafficAsked& asked) {
  if (asked.clients) return "each client sends one when it has the answer to its last, the first all at once";
  const std::string arrivals = asked.mix.has_arrivals ? "arrivals from the trace" : "Poisson arrivals";
  if (!asked.routing || *asked.routing == RequestRouting::kRandom)
    return arrivals + "; each replica sees its share of the rate";
  return fmt::format("{}; routing {}, all replicas together", arrivals,
                     kRoutingNames[static_cast<std::size_t>(*asked.routing)]);
}

/// Why there are no means in closed form beside the simulation's.
std::string no_closed_form(const TrafficAnswer& t) {
  if (!t.steady || !t.steady->stable || t.steady->proven()) return "";
  return fmt::format("; the times are the simulation's alone, because {}",
                     kOnlyNearTexts[static_cast<std::size_t>(t.steady->only_near)]);
}

/// How much of the prompts needed no prefill, and where it lay.
std::string found_text(const QueueFigures& f) {
  const auto share = [](double of) { return fmt::format("{:.1f} %", 100 * of); };
  std::string out = fmt::format("{} of the prompts' tokens were found in the prefix cache", share(f.found_share()));
  if (f.found_shares[1] + f.found_shares[2] > 0) {
    out += fmt::format(": {} in the chips' memory, {} in the hosts', {} on disk", share(f.found_shares[0]),
                       share(f.found_shares[1]), share(f.found_shares[2]));
  }
  return out;
}

}  // namespace

namespace {

/// The commands to copy leave the fleet, not the point at the head of the answer. Replicas that were counted are open.
void fleet_commands(Output& output, const ServeAnswer& answer, const TrafficAnswer& t) {
  ServeLayout prefill = t.prefill_layout;
  ServeLayout decode = t.layout;
  if (t.pools) {
    prefill.dp = t.pools->prefill_servers;
    decode.dp = t.pools->decode_servers;
  }
  if (t.fleet_searched) prefill.dp = decode.dp = 0;
  NextQuestion fleet{.command = "serve", .flags = {{"--hw", answer.question.hardware.at(t.system)}}};
  fleet.flags.push_back(t.pools ? pools_fix(answer, prefill, decode) : serve_fix(answer, decode));
  for (Block& block : output.blocks) {
    for (Line& line : block.lines) {
      if (line.role == Role::kCommand) line = next_line(fleet);
    }
  }
}

}  // namespace

void add_traffic(Output& output, const ServeAnswer& answer, const TrafficAsked& asked,
                 const std::optional<TrafficAnswer>& traffic) {
  if (!traffic) {
    say(output.summary, Role::kBad,
        "{}: no number of replicas keeps the limits at the 95th percentile; even one that "
        "hardly ever has a request misses one",
        load_text(asked, static_cast<std::int64_t>(asked.mix.rows.size())));
    output.nothing_fits = true;
    return;
  }
  const TrafficAnswer& t = *traffic;
  const TrafficAsked& as_found = t.asked;
  const std::string fleet = fleet_text(answer, t);
  const std::string load = load_text(as_found, t.figures.requests);
  std::vector<Line> said;
  if (t.carries) {
    say(said, Role::kGood, "{}: {}{}", load, t.fleet_searched ? "" : "carried by ", fleet);
  } else {
    say(said, Role::kBad, "{}: not carried by {}: {}", load, fleet, shortfall(t));
    output.nothing_fits = true;
  }
  if (asked.mix.blocks) say(said, Role::kPlain, "{}", found_text(t.figures));
  // Requests that are carried are the answer, and head it.
  std::vector<Line>& head = t.carries ? output.headline : output.summary;
  head.insert(t.carries ? head.begin() : head.end(), said.begin(), said.end());
  fleet_commands(output, answer, t);
  output.blocks.push_back(queueing_block(answer, as_found, t));
  output.blocks.push_back(percentile_table(t));
  if (!t.tenants.empty()) output.blocks.push_back(tenant_block(t));
  const std::vector<Tenant>& tenants = asked.mix.tenants;
  const bool limited = t.limits.any() || std::any_of(tenants.begin(), tenants.end(),
                                                     [](const Tenant& tenant) { return tenant.limits.any(); });
  if (t.fleet_searched && !limited) {
    output.notes.push_back(
        "without limits on latency the fewest replicas are those that just keep up; --slo-ttft asks for more");
  }
  if (asked.mix.blocks) {
    output.notes.emplace_back(
        "the points are of prompts that share nothing; the requests find what others left cached");
  }
  if ((t.fleet_searched || asked.most) && t.kinds > 1) {
    output.notes.push_back(fmt::format("the fleet was chosen among the {} layouts{} of the points", t.kinds,
                                       t.pools ? " and splits" : ""));
  }
  output.notes.push_back(fmt::format("requests: {}, {}; limits hold at the 95th percentile{}", lengths_of(asked.mix),
                                     sending_text(asked), no_closed_form(t)));
}

}  // namespace scalecalc
