// Computes the time, the losses, the energy and the cost of a whole training run.
#include "economics/economics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/diagnostic.h"
#include "base/units.h"
#include "economics/spares.h"
#include "economics/stragglers.h"

namespace scalecalc {
namespace {

constexpr double kJoulesPerKwh = 3.6e6;

double hosts_of(const RunInput& in) { return std::ceil(in.chips / in.chips_per_host); }
double spare_chips(const RunInput& in) { return static_cast<double>(in.question.spares) * in.chips_per_host; }

double straggler_share(const RunInput& in) {
  if (in.question.straggler) return *in.question.straggler;
  if (!in.question.chip_spread) return 0;
  return slowest_chip_share(in.chips, *in.question.chip_spread) * in.compute_s / in.step_s;
}

template <class R>
class RunReader {
 public:
  RunReader(const Reader<R>& reader, const RunInput& in) : reader_(reader), in_(in), q_(in.question) {}

  RunReading<R> run() {
    steps();
    data();
    SecondsOf<R> working = out_.steps_s();
    out_.total = working;
    if (q_.counts_failures()) {
      failures();
      working = working + out_.losses.total();
      shortage(working);
      out_.total = working + out_.waiting;
    }
    out_.total = named(out_.total, "time of the run", "sum of its parts");
    money();
    power();
    return std::move(out_);
  }

 private:
  void steps() {
    const R tokens = reader_.input(in_.tokens, "tokens", "workload");
    const R step_tokens = reader_.input(in_.step_tokens, "tokens of a step", "this plan's batch");
    out_.steps = named(tokens / step_tokens, "steps", "tokens / batch");
    const SecondsOf<R> step = read(reader_, Seconds(in_.step_s), "step time", "this plan's step");
    out_.ideal = named(step * out_.steps, "time of the steps", "steps x step time");
    const double share = straggler_share(in_);
    if (share <= 0) return;
    const R longer = reader_.input(share, "share a step takes longer",
                                   q_.straggler ? "--straggler" : "slowest of the chips, docs/model.md [SLOWEST]");
    out_.straggling = named(out_.ideal * longer, "time for slow chips", "steps x what they take longer");
  }

  /// Data are read ahead while steps run, so steps wait only where storage gives fewer bytes a second than they take.
  void data() {
    if (!in_.storage) return;
    const R bytes = reader_.input(in_.tokens, "tokens", "workload") *
                    reader_.input(q_.token_bytes, "bytes of a token in storage", "--token-bytes");
    const SecondsOf<R> reading =
        named(BytesOf<R>(bytes) / read(reader_, BytesPerSecond(*in_.storage), "storage bandwidth", in_.storage_source),
              "time to read the data", "tokens x bytes of a token / storage bandwidth");
    const SecondsOf<R> steps = out_.steps_s();
    if (value_of(reading) <= value_of(steps)) return;
    out_.starving = named(reading - steps, "time waiting for data", "what reading takes beyond the steps");
  }

  SecondsOf<R> cluster_mtbf() const {
    if (q_.mtbf_node_s) {
      const R hosts = reader_.input(hosts_of(in_), "hosts", "chips / chips of a host");
      return named(read(reader_, Seconds(*q_.mtbf_node_s), "MTBF of a host", "--mtbf-node") / hosts, "MTBF of the job",
                   "of one host / hosts");
    }
    const R chips = reader_.input(in_.chips, "chips", "this plan");
    return named(read(reader_, Seconds(*q_.mtbf_chip_s), "MTBF of a chip", "--mtbf") / chips, "MTBF of the job",
                 "of one chip / chips");
  }

  /// The copy leaves all chips at once, each its part, and flows on to storage as it comes.
  void checkpoint() {
    const R parameters = reader_.input(in_.parameters, "parameters", "model file");
    out_.checkpoint_bytes = named(BytesOf<R>(parameters * R(in_.parameter_bytes)), "checkpoint",
                                  "weights, their fp32 copy and the optimizer's moments, each once");
    if (in_.host_link) {
      const R chips = reader_.input(in_.chips, "chips", "this plan");
      out_.to_host = named(
          out_.checkpoint_bytes /
              (read(reader_, BytesPerSecond(*in_.host_link), "host link of a chip", in_.host_link_source) * chips),
          "checkpoint to the hosts", "bytes / (chips x host link)");
    }
    if (in_.storage) {
      out_.to_storage = named(
          out_.checkpoint_bytes / read(reader_, BytesPerSecond(*in_.storage), "storage bandwidth", in_.storage_source),
          "checkpoint to storage", "bytes / storage bandwidth");
    }
  }

  void failures() {
    out_.mtbf = cluster_mtbf();
    checkpoint();
    CheckpointedRun<R>& run = out_.saved;
    run.work = out_.steps_s();
    run.mtbf = out_.mtbf;
    const SecondsOf<R> whole =
        named(max(out_.to_host, out_.to_storage), "checkpoint from chips to storage", "the slower of the two");
    const bool async = q_.checkpoint == CheckpointMode::kAsync;
    run.blocked = async ? out_.to_host : whole;
    run.behind = async ? out_.to_storage : SecondsOf<R>(R(0.0));
    out_.restart = named(read(reader_, Seconds(in_.restart_s), "restart before loading", in_.restart_source) + whole,
                         "restart", "detect, replace, start again; load the checkpoint");
    run.restart = out_.restart;
    run.interval = interval();
    check_it_ends();
    out_.losses = failure_losses(run);
  }

  /// At least a step, and what it takes to get the copy before it to storage; at most the run.
  SecondsOf<R> interval() const {
    const CheckpointedRun<R>& run = out_.saved;
    const double step = value_of(run.work) / value_of(out_.steps);
    const double least = std::max(step, value_of(run.behind) - value_of(run.blocked));
    const double best = optimal_interval(value_of(run.mtbf), value_of(run.blocked));
    const double wanted = q_.checkpoint_interval_s.value_or(best);
    const double taken = std::min(std::max(wanted, least), value_of(run.work));
    const char* source = taken != wanted ? "at least a step and a checkpoint's way to storage, at most the run"
                         : q_.checkpoint_interval_s ? "--checkpoint-interval"
                                                    : "the shortest run: docs/model.md [RENEWAL]";
    return read(reader_, Seconds(taken), "checkpoint interval", source);
  }

  void check_it_ends() const {
    const CheckpointedRun<R>& run = out_.saved;
    constexpr double kHopeless = 8;  // e^8 attempts at every stretch
    const double stretch =
        value_of(run.interval) + value_of(run.blocked) + value_of(run.behind) + value_of(run.restart);
    if (stretch < kHopeless * value_of(run.mtbf)) return;
    throw UserError(fmt::format("a failure every {} leaves no time: from a restart to the next checkpoint it is {}",
                                seconds_text(value_of(run.mtbf)), seconds_text(stretch)),
                    "a longer --mtbf, or fewer chips");
  }

  void shortage(const SecondsOf<R>& working) {
    if (!q_.repair_s) return;
    const HostPool pool{.hosts = hosts_of(in_),
                        .spares = q_.spares,
                        .mtbf_s = value_of(out_.mtbf),
                        .repair_s = *q_.repair_s,
                        .restart_s = value_of(out_.restart),
                        .replicas = in_.replicas};
    const Shortage found = q_.elastic ? run_on_fewer(pool) : wait_for_repair(pool);
    if (!std::isfinite(found.lost)) {
      throw UserError("repairs do not keep up with failures: no data rank is left whole",
                      "a shorter --repair-time, or more --spares");
    }
    const R lost = reader_.input(found.lost, "time lost for each second of running",
                                 q_.elastic ? "fewer data ranks until a repair: docs/model.md [ERLANG-B]"
                                            : "load x B(spares) / (spares + 1): docs/model.md [ERLANG-B]");
    out_.waiting = named(working * lost, "time short of hosts", "running time x what is lost for each second");
  }

  void money() {
    R chips = reader_.input(in_.chips, "chips", "this plan");
    if (q_.spares > 0) chips = chips + reader_.input(spare_chips(in_), "spare chips", "--spares");
    out_.chip_hours =
        named(out_.total.value() * chips / R(kSecondsPerHour), "chip-hours", "time x chips, spare ones included");
    if (in_.usd_per_chip_hour) {
      out_.cost_usd =
          named(out_.chip_hours * reader_.input(*in_.usd_per_chip_hour, "USD per chip-hour", in_.price_source),
                "cost in USD", "chip-hours x price");
    }
    if (q_.counts_failures()) {
      const SecondsOf<R> running = q_.elastic ? out_.total : out_.total - out_.waiting;
      out_.interruptions = named(running / out_.mtbf, "interruptions", "time in which the job can fail / MTBF");
    }
  }

  void power() {
    if (!in_.power) return;
    out_.draw = chip_draw(reader_, *in_.power);
    const ChipDraw<R>& draw = *out_.draw;
    const R chips = reader_.input(in_.chips, "chips", "this plan");
    // Chips work in steps, also in those that are lost; with fewer ranks the others do.
    SecondsOf<R> busy = out_.ideal + out_.straggling + out_.losses.rework;
    SecondsOf<R> idle = out_.starving + out_.losses.checkpoints + out_.losses.restarts;
    (q_.elastic ? busy : idle) += out_.waiting;
    JoulesOf<R> energy = (draw.busy_total() * busy + draw.idle_total() * idle) * chips;
    if (q_.spares > 0) {
      energy = energy + draw.idle_total() * out_.total * reader_.input(spare_chips(in_), "spare chips", "--spares");
    }
    out_.energy = named(energy, "energy", "chips x power x time, working and not");
  }

  const Reader<R>& reader_;
  const RunInput& in_;
  const RunQuestion& q_;
  RunReading<R> out_;
};

std::optional<SpareFigures> spare_figures(const RunInput& in, const RunReading<double>& run) {
  const RunQuestion& q = in.question;
  if (!q.repair_s) return std::nullopt;
  const HostPool pool{.hosts = hosts_of(in),
                      .spares = q.spares,
                      .mtbf_s = run.mtbf.value(),
                      .repair_s = *q.repair_s,
                      .restart_s = run.restart.value(),
                      .replicas = in.replicas};
  const Shortage wait = wait_for_repair(pool);
  const Shortage fewer = run_on_fewer(pool);
  SpareFigures out{.hosts = q.spares, .chips = spare_chips(in), .repair_s = *q.repair_s, .elastic = q.elastic};
  out.chance_none_left = q.elastic ? fewer.chance : wait.chance;
  const double lost = q.elastic ? wait.lost : fewer.lost;
  if (std::isfinite(lost)) out.other_time_s = (run.total - run.waiting).value() * (1 + lost);
  return out;
}

RunEconomics economics_of(const RunInput& in, const RunReading<double>& run) {
  RunEconomics out;
  const double total = run.total.value();
  out.ideal_time_s = run.ideal.value();
  out.time_s = {{"ideal", run.ideal.value()},          {"straggler", run.straggling.value()},
                {"data", run.starving.value()},        {"checkpoint", run.losses.checkpoints.value()},
                {"rework", run.losses.rework.value()}, {"restart", run.losses.restarts.value()},
                {"waiting", run.waiting.value()}};
  out.goodput = out.ideal_time_s / total;
  out.effective_mfu = in.mfu * out.goodput;
  out.straggler_share = straggler_share(in);
  out.data_bytes_per_s = in.tokens / run.ideal.value() * in.question.token_bytes;
  out.storage_rate = in.storage;
  if (!in.question.counts_failures()) return out;
  out.mtbf_s = run.mtbf.value();
  out.interruptions = run.interruptions;
  out.restart_s = run.restart.value();
  out.checkpoint_bytes = run.checkpoint_bytes.value();
  out.checkpoint_blocked_s = run.saved.blocked.value();
  out.checkpoint_behind_s = run.saved.behind.value();
  out.load_s = max(run.to_host, run.to_storage).value();
  out.interval_s = run.saved.interval.value();
  out.optimal_interval_s = optimal_interval(out.mtbf_s, out.checkpoint_blocked_s);
  out.young_interval_s = young_interval(out.mtbf_s, out.checkpoint_blocked_s);
  out.daly_interval_s = daly_interval(out.mtbf_s, out.checkpoint_blocked_s);
  out.checkpoints = run.saved.work.value() / out.interval_s;
  out.storage_bytes_per_s = out.checkpoint_bytes / out.interval_s;
  out.spares = spare_figures(in, run);
  return out;
}

RunPower power_of(const RunInput& in, const RunReading<double>& run) {
  const ChipDraw<double>& draw = *run.draw;
  RunPower out{.basis = in.power->basis,
               .chip_w = draw.working.value(),
               .idle_chip_w = draw.idle.value(),
               .host_w = draw.host.value(),
               .pue = draw.pue};
  out.facility_w = draw.busy_total().value() * in.chips + draw.idle_total().value() * spare_chips(in);
  out.energy_per_token_j = run.energy->value() / in.tokens;
  out.carbon_g_per_kwh = in.question.power.carbon_g_per_kwh;
  constexpr double kGramsPerKg = 1000;
  if (out.carbon_g_per_kwh) out.carbon_kg = run.energy->value() / kJoulesPerKwh * *out.carbon_g_per_kwh / kGramsPerKg;
  return out;
}

/// What two sections say is said in the first.
ExplainSection section(const char* title, const Traced& root, std::vector<std::string>& said) {
  ExplainSection out{.title = title};
  for (ExplainedStep& step : explain(root)) {
    if (std::find(said.begin(), said.end(), step.name) != said.end()) continue;
    said.push_back(step.name);
    out.steps.push_back(std::move(step));
  }
  return out;
}

}  // namespace

template <class R>
RunReading<R> read_run(const Reader<R>& reader, const RunInput& in) {
  return RunReader<R>(reader, in).run();
}
template RunReading<double> read_run(const Reader<double>&, const RunInput&);
template RunReading<Traced> read_run(const Reader<Traced>&, const RunInput&);

RunFigures run_figures(const RunInput& in) {
  const RunReading<double> run = read_run(Reader<double>{}, in);
  RunFigures out{.tokens = in.tokens, .steps = run.steps, .time_s = run.total.value(), .chip_hours = run.chip_hours};
  out.cost_usd = run.cost_usd;
  if (run.energy) {
    out.energy_j = run.energy->value();
    out.power = power_of(in, run);
  }
  if (in.question.counts_losses() || run.starving.value() > 0) out.economics = economics_of(in, run);
  return out;
}

std::vector<ExplainSection> explain_run(const RunInput& in) {
  const RunReading<Traced> run = read_run(Reader<Traced>{}, in);
  std::vector<std::string> said;
  std::vector<ExplainSection> out{section("Time of the run", run.total.value(), said)};
  if (in.question.counts_failures()) {
    out.push_back(section("Interruptions", run.interruptions, said));
  }
  out.push_back(section("Cost", run.cost_usd ? *run.cost_usd : run.chip_hours, said));
  if (run.energy) out.push_back(section("Energy", run.energy->value(), said));
  return out;
}

}  // namespace scalecalc
