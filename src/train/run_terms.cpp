// Fills in the terms of a whole run that the user left open, and says what is not counted.
#include "train/run_terms.h"

#include <fmt/format.h>

#include "base/diagnostic.h"
#include "base/units.h"
#include "model/accounting.h"

namespace scalecalc {
namespace {

/// arXiv:2402.15627 section 6.3: detection and diagnosis take under ten minutes in the mean; quoted from memory.
constexpr double kUsualRestart = 600;
constexpr std::string_view kUsualRestartSource =
    "assumed: ten minutes to detect a failure, replace the host and start again, as arXiv:2402.15627 reports for "
    "10,000 chips; quoted from memory";

class RunTerms {
 public:
  RunTerms(const TrainQuestion& question, ResolvedQuestion& job) : q_(question.run), job_(job) {}

  void add() {
    job_.run = q_;
    if (!job_.workload.tokens) return;
    for (Assumption& assumption : power_assumptions(job_.hw, q_.power)) {
      job_.assumptions.push_back(std::move(assumption));
    }
    not_counted();
    if (q_.counts_failures()) failures();
  }

 private:
  Assumption& assume(std::string text, std::string flag, std::string source, bool warning = false) {
    return job_.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source), warning});
  }

  void not_counted() {
    if (!q_.counts_failures()) {
      assume(q_.counts_stragglers() ? "failures are not counted: nothing stops the run"
                                    : "failures and slow chips are not counted: nothing stops or slows the run",
             q_.counts_stragglers() ? "--mtbf" : "--mtbf, --straggler", "scalecalc");
    } else if (!q_.counts_stragglers()) {
      assume("slow chips are not counted: a step takes what it takes on chips as rated", "--straggler", "scalecalc");
    }
    if (q_.chip_spread) {
      assume("the speeds of chips spread normally, and computing waits for the slowest", "--chip-spread",
             "docs/model.md [SLOWEST]");
    }
  }

  void failures() {
    storage();
    if (!q_.restart_s) {
      job_.run.restart_s = kUsualRestart;
      assume("10 min from a failure until the checkpoint is loaded", "--restart-time", std::string(kUsualRestartSource))
          .is(kUsualRestart);
    }
    assume(
        "a checkpoint holds weights, their fp32 copy and the optimizer's moments, each once; every chip saves as much",
        "", "docs/model.md")
        .as("checkpoint_holds")
        .is("weights, fp32 copy, optimizer moments");
    if (q_.checkpoint == CheckpointMode::kBlocking) {
      assume("the job waits until a checkpoint is in storage", "--checkpoint", "scalecalc");
    }
    if (!q_.repair_s) {
      assume("there is always another host for one that failed", "--spares, --repair-time", "scalecalc");
    } else {
      assume("every interruption takes a host out until it is repaired", "", "scalecalc")
          .as("hosts_lost_by_interruption")
          .is(1);
    }
  }

  void storage() {
    const bool link = job_.hw.pcie_bandwidth.has_value();
    if (!q_.storage_bandwidth && job_.hw.storage_bandwidth) {
      assume(fmt::format("{} to storage from each host", rate_text(job_.hw.storage_bandwidth->value())),
             "--storage-bandwidth", job_.hw.host_source)
          .is(job_.hw.storage_bandwidth->value());
      return;
    }
    if (!q_.storage_bandwidth && !link) {
      throw UserError(fmt::format("nothing says how long a checkpoint takes: {} gives neither the link to its host nor "
                                  "the bandwidth of storage",
                                  job_.hw.name),
                      "give the bandwidth of the whole job: --storage-bandwidth 2TB/s");
    }
    if (!q_.storage_bandwidth) {
      assume(
          "the bandwidth of storage is not known: checkpoints take what the copy to the hosts takes, and their way to "
          "storage is left out",
          "--storage-bandwidth", "hardware file", true);
    }
    if (!link) {
      assume("the link from chips to their host is not published: checkpoints take what storage takes",
             "--set hw.host.pcie_bandwidth", "hardware file", true);
    }
  }

  const RunQuestion& q_;
  ResolvedQuestion& job_;
};

StepActivity activity_of(const Plan& plan) {
  const StepTime<double>& t = plan.time;
  StepActivity out{.computing = t.compute.value() / plan.step_s,
                   .reading = (t.hbm + t.optimizer).value() / plan.step_s};
  out.waiting = 1 - out.computing - out.reading;
  return out;
}

double saved_bytes(const Workload& w) { return w.optimizer.state_bytes + w.precision.weight_bytes; }

}  // namespace

void add_run_terms(const TrainQuestion& question, ResolvedQuestion& job) { RunTerms(question, job).add(); }

RunInput run_input(const ResolvedQuestion& job, const Plan& plan, double mfu) {
  const HardwareSpec& hw = job.hw;
  const ParameterCount counted = count_parameters(job.model);
  const auto& adapters = job.workload.fine_tune;  // whose checkpoints leave the frozen weights out
  RunInput out{.question = job.run,
               .tokens = *job.workload.tokens,
               .step_tokens = plan.batch_seqs * static_cast<double>(job.workload.seq),
               .step_s = plan.step_s,
               .compute_s = plan.time.compute.value(),
               .mfu = mfu,
               .chips = static_cast<double>(plan.slice.chips),
               .chips_per_host = static_cast<double>(hw.chips_per_host),
               .replicas = static_cast<double>(plan.layout.data()),
               .parameters = adapters ? adapter_parameters(job.model, *adapters) : counted.total + counted.mtp,
               .parameter_bytes = saved_bytes(job.workload)};
  if (hw.pcie_bandwidth) out.host_link = hw.pcie_bandwidth->value();
  out.host_link_source = hw.host_source;
  out.storage = job.run.storage_bandwidth;
  out.storage_source = "--storage-bandwidth";
  if (!out.storage && hw.storage_bandwidth) {
    out.storage = hw.storage_bandwidth->value() * out.chips / out.chips_per_host;
    out.storage_source = hw.host_source;
  }
  out.restart_s = job.run.restart_s.value_or(0);
  out.restart_source = "--restart-time";
  out.usd_per_chip_hour = job.usd_per_chip_hour;
  out.price_source = "--price or the hardware file's first";
  if (hw.tdp) out.power = power_input(hw, job.run.power, activity_of(plan));
  return out;
}

}  // namespace scalecalc
