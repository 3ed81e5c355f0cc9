// Ranks the runs that would make the predictions of a job most certain, for `calibrate --next-runs`.
#include "calibrate/next_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <utility>

namespace scalecalc {
namespace {

/// What tells two runs apart.
std::string key_of(const Measurement& row) {
  const RowLayout& l = row.layout;
  const auto n = [](const std::optional<std::int64_t>& x) { return x.value_or(0); };
  return fmt::format("{}|{}|{}|{}|{}|{} {} {} {} {} {} {}", row.model, row.chips, row.seq, row.batch_seqs,
                     row.recompute, n(l.tp), n(l.cp), n(l.pp), n(l.ep), n(l.micro_batch), n(l.vpp), n(l.fsdp));
}

/// With every degree stated.
Measurement in_full(Measurement row, const Layout& layout) {
  RowLayout& l = row.layout;
  l.tp = layout.tp;
  l.cp = layout.cp;
  l.pp = layout.pp;
  l.ep = layout.ep;
  l.micro_batch = layout.micro_batch_seqs;
  return row;
}

class Changes {
 public:
  Changes(const Measurement& row, const Layout& layout)
      : row_(in_full(row, layout)), data_(layout.data()), remat_(layout.remat) {}

  std::vector<NearRun> run() {
    for (const double by : {2.0, 0.5}) {
      degree("tp", &RowLayout::tp, by);
      degree("pp", &RowLayout::pp, by);
      degree("cp", &RowLayout::cp, by);
      if (*row_.layout.ep > 1) count("ep", &RowLayout::ep, by);
      count("microbatch", &RowLayout::micro_batch, by);
      Measurement longer = row_;
      longer.seq = scaled(row_.seq, by);
      longer.batch_seqs = row_.batch_seqs / by;
      if (longer.batch_seqs >= static_cast<double>(data_)) {
        add(fmt::format("sequences of {} in place of {}, as many tokens", longer.seq, row_.seq), longer);
      }
      Measurement larger = row_;
      larger.batch_seqs *= by;
      add(fmt::format("a batch of {:g} sequences in place of {:g}", larger.batch_seqs, row_.batch_seqs), larger);
    }
    if (data_ % 2 == 0) {
      Measurement fewer = row_;
      fewer.chips /= 2;
      fewer.batch_seqs /= 2;
      share(fewer, data_ / 2);
      add(fmt::format("{} chips in place of {}, half of the batch", fewer.chips, row_.chips), fewer);
    }
    for (const auto& [policy, remat] : {std::pair{"none", Remat::kNone}, std::pair{"full", Remat::kFull}}) {
      Measurement other = row_;
      other.recompute = policy;
      if (remat != remat_) add(fmt::format("recompute {}", policy), other);
    }
    return std::move(out_);
  }

 private:
  static std::int64_t scaled(std::int64_t count, double by) { return std::llround(static_cast<double>(count) * by); }

  void add(std::string change, const Measurement& row) {
    if (row.batch_seqs != std::round(row.batch_seqs) || row.batch_seqs < 1) return;
    out_.push_back({std::move(change), row});
  }

  /// Weights stay sharded over as large a part of the data ranks.
  void share(Measurement& row, std::int64_t data) const {
    RowLayout& l = row.layout;
    if (l.fsdp) l.fsdp = std::max<std::int64_t>(1, *l.fsdp * data / data_);
    if (l.dp) l.dp = data;
  }

  bool changed(Measurement& row, std::optional<std::int64_t> RowLayout::*of, double by) const {
    const std::int64_t was = *(row.layout.*of);
    if (by < 1 && was % 2 != 0) return false;
    row.layout.*of = scaled(was, by);
    return true;
  }

  void count(const char* name, std::optional<std::int64_t> RowLayout::*of, double by) {
    Measurement other = row_;
    if (!changed(other, of, by)) return;
    add(fmt::format("{} {} in place of {}", name, *(other.layout.*of), *(row_.layout.*of)), other);
  }

  void degree(const char* name, std::optional<std::int64_t> RowLayout::*of, double by) {
    Measurement other = row_;
    if ((by > 1 && data_ % 2 != 0) || !changed(other, of, by)) return;
    share(other, scaled(data_, 1 / by));
    if (other.layout.pp == 1) {
      other.layout.vpp.reset();
      other.layout.schedule.clear();
    }
    add(fmt::format("{} {} in place of {}", name, *(other.layout.*of), *(row_.layout.*of)), other);
  }

  Measurement row_;
  std::int64_t data_;
  Remat remat_;
  std::vector<NearRun> out_;
};

struct Candidate {
  NextRun run;
  Slopes slopes;
};

/// All-reduces of one's own chips, which nccl-tests times in a minute: of a host, and of all.
std::vector<Candidate> collectives(const CoefficientFit& fit, const Factors& factors, const StepObservation& of,
                                   std::int64_t most_chips) {
  std::vector<Candidate> out;
  const auto hw = std::make_shared<const HardwareSpec>(of.question.resolved.hw);
  if (hw->is_torus() || hw->network.empty()) return out;
  constexpr double kMessage = 1 << 30;
  std::set<std::int64_t> sizes{std::min(hw->chips_per_host, most_chips), most_chips};
  for (const std::int64_t ranks : sizes) {
    const std::int64_t hosts = std::max<std::int64_t>(1, ranks / hw->chips_per_host);
    if (ranks < 2 || ranks % hosts != 0) continue;
    KernelMeasurement timed{.work = TimedCollective{CollectiveOp::kAllReduce, ranks, hosts, kMessage}};
    try {
      const std::unique_ptr<Observation> row = kernel_observation(timed, hw);
      out.push_back({{.change = fmt::format("nccl-tests: all_reduce_perf -b 1G -e 1G on {} chips", ranks),
                      .chips = ranks,
                      .seconds = row->seconds(fit.at(row->base, factors))},
                     fit.slopes(*row, factors)});
    } catch (const UserError&) {
      continue;  // ranks that cut a node
    }
  }
  return out;
}

/// The one that narrows the band most, then the one that does once that is measured, and so on.
std::vector<NextRun> most_telling(std::vector<Candidate> candidates, const std::vector<Slopes>& targets,
                                  Posterior posterior, std::size_t most) {
  const double noise = kStepHuber * kStepHuber;
  const auto band = [&](double sum) {
    return kNinety * std::sqrt(std::max(sum, 0.0) / static_cast<double>(targets.size()));
  };
  std::vector<NextRun> out;
  while (out.size() < most && !candidates.empty()) {
    double unknown = 0;
    for (const Slopes& target : targets) unknown += posterior.variance(target);
    const auto told = [&](const Candidate& c) {
      double sum = 0;
      for (const Slopes& target : targets) sum += posterior.lessened(target, c.slopes, noise);
      return sum;
    };
    std::size_t best = 0;
    double tells = -1;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (const double of = told(candidates[i]); of > tells) best = i, tells = of;
    }
    NextRun& run = candidates[best].run;
    run.band_before = band(unknown);
    run.band_after = band(unknown - tells);
    out.push_back(std::move(run));
    posterior = posterior.with({candidates[best].slopes, 1 / noise});
    candidates.erase(candidates.begin() + static_cast<std::ptrdiff_t>(best));
  }
  return out;
}

}  // namespace

std::vector<NearRun> runs_near(const Measurement& row, const Layout& layout) { return Changes(row, layout).run(); }

std::vector<NextRun> next_runs(const CoefficientFit& fit, const Factors& factors, const Posterior& posterior,
                               const std::vector<const StepObservation*>& measured, const Catalog& catalog,
                               std::size_t most, const Stop& stop) {
  if (measured.empty() || most == 0) return {};
  std::set<std::string> seen;
  std::vector<Candidate> candidates;
  std::vector<Slopes> targets;
  std::int64_t most_chips = 0;
  for (const StepObservation* run : measured) {
    seen.insert(key_of(in_full(run->row, run->plan.layout)));
    targets.push_back(fit.slopes(*run, factors));
    most_chips = std::max(most_chips, run->row.chips);
  }
  for (const StepObservation* run : measured) {
    for (NearRun& near : runs_near(run->row, run->plan.layout)) {
      if (should_stop(stop)) return {};
      if (!seen.insert(key_of(near.row)).second) continue;
      try {
        const StepObservation row(near.row, catalog, stop);
        if (!row.fits) continue;
        Slopes slopes = fit.slopes(row, factors);
        targets.push_back(slopes);
        candidates.push_back({{.near = run->row.id,
                               .change = std::move(near.change),
                               .layout = row.plan.layout,
                               .chips = near.row.chips,
                               .seconds = row.seconds(fit.at(row.base, factors))},
                              std::move(slopes)});
      } catch (const NotPredicted&) {
        continue;  // no launcher would start it
      } catch (const Stopped&) {
        return {};
      }
    }
  }
  for (Candidate& c : collectives(fit, factors, *measured.front(), most_chips)) candidates.push_back(std::move(c));
  return most_telling(std::move(candidates), targets, posterior, most);
}

}  // namespace scalecalc
