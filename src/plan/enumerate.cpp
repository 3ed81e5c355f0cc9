// Divisibility rules are those of the launchers a plan must start in: Megatron-LM validate_args (heads, KV heads,
// sequence, microbatches, experts) and torchtitan's and MaxText's mesh rules, which agree on them.
#include "plan/enumerate.h"

#include <algorithm>
#include <cmath>

#include "base/divisors.h"

namespace scalecalc {
namespace {

bool within(const std::optional<std::int64_t>& fix, const std::optional<std::int64_t>& max, std::int64_t value) {
  return (!fix || *fix == value) && (!max || value <= *max);
}

class Enumerator {
 public:
  Enumerator(const PlanRequest& request, SearchStats& stats, const std::function<void(const Branch&)>& visit)
      : request_(request), model_(*request.model), fix_(request.fix), max_(request.max), stats_(stats), visit_(visit) {}

  void run() {
    for (std::size_t s = 0; s < request_.slices.size(); ++s) {
      branch_.slice = s;
      tensor(request_.slices[s].chips);
    }
  }

 private:
  void cut(Reject reason) { ++stats_.rejected[static_cast<std::size_t>(reason)]; }

  void tensor(std::int64_t chips) {
    for (const std::int64_t tp : divisors(chips)) {
      if (!within(fix_.tp, max_.tp, tp)) {
        cut(Reject::kPinned);
      } else if (!heads_divide(tp)) {
        cut(Reject::kHeads);
      } else if (!widths_divide(tp)) {
        cut(Reject::kWidth);
      } else {
        branch_.layout.tp = tp;
        context(chips / tp);
      }
    }
  }

  bool heads_divide(std::int64_t tp) const {
    const AttentionSpec& a = model_.attention;
    return a.heads % tp == 0 && (a.kv_heads % tp == 0 || tp % a.kv_heads == 0);
  }

  bool widths_divide(std::int64_t tp) const {
    const bool moe = model_.moe.has_value();
    const bool shared = !moe || model_.moe->shared_d_ff % tp == 0;
    return model_.mlp.d_ff % tp == 0 && model_.d_model % tp == 0 && shared;
  }

  void context(std::int64_t chips) {
    const std::int64_t seq = request_.workload.seq;
    for (const std::int64_t cp : divisors(chips)) {
      if (!within(fix_.cp, max_.cp, cp)) {
        cut(Reject::kPinned);
      } else if (cp > 1 && seq % (2 * cp) != 0) {
        cut(Reject::kSequence);  // causal load balancing cuts the sequence into 2 cp pieces
      } else {
        branch_.layout.cp = cp;
        stages(chips / cp);
      }
    }
  }

  void stages(std::int64_t chips) {
    for (const std::int64_t pp : divisors(chips)) {
      if (!within(fix_.pp, max_.pp, pp)) {
        cut(Reject::kPinned);
      } else if (pp > model_.layers()) {
        cut(Reject::kStages);
      } else {
        branch_.layout.pp = pp;
        batch(chips / pp);
      }
    }
  }

  /// Sequences per data rank: the count just below and just above the batch asked for, if near enough.
  void batch(std::int64_t data) {
    if (!data_allowed(data)) return cut(Reject::kPinned);
    const double wanted = request_.workload.batch_seqs;
    const double each = wanted / static_cast<double>(data);
    if (std::ceil(each - 1e-9) < 1 || wanted * (1 + request_.workload.batch_tolerance) < static_cast<double>(data)) {
      return cut(Reject::kBatchSmall);
    }
    branch_.layout.dp = data;
    bool any = false;
    const auto low = static_cast<std::int64_t>(std::floor(each + 1e-9));
    const auto high = static_cast<std::int64_t>(std::ceil(each - 1e-9));
    for (const std::int64_t sequences : {low, high}) {
      if (sequences < 1 || (sequences == high && high == low && any)) continue;
      const double real = static_cast<double>(sequences * data);
      if (std::abs(real - wanted) > request_.workload.batch_tolerance * wanted) continue;
      any = true;
      experts(sequences);
    }
    if (!any) cut(Reject::kBatchUneven);
  }

  bool data_allowed(std::int64_t data) const {
    const std::int64_t pinned = fix_.dp.value_or(0) * fix_.fsdp.value_or(0);
    if (pinned > 0) return data == pinned;
    if (fix_.dp && data % *fix_.dp != 0) return false;
    return !fix_.fsdp || data % *fix_.fsdp == 0;
  }

  void experts(std::int64_t sequences) {
    if (!model_.moe) {
      if ((fix_.ep && *fix_.ep != 1) || (fix_.etp && *fix_.etp != 1)) return cut(Reject::kPinned);
      branch_.layout.ep = 1;
      branch_.layout.etp = 1;
      return sequence_sharding(sequences);
    }
    const std::int64_t tp = branch_.layout.tp;
    for (const std::int64_t etp : tp > 1 ? std::vector<std::int64_t>{1, tp} : std::vector<std::int64_t>{1}) {
      const std::int64_t ranks = branch_.layout.dp * branch_.layout.cp * (tp / etp);
      for (const std::int64_t ep : divisors(model_.moe->experts)) {
        if (!within(fix_.ep, max_.ep, ep) || !within(fix_.etp, max_.etp, etp)) {
          cut(Reject::kPinned);
        } else if (ranks % ep != 0 || model_.moe->d_ff % etp != 0) {
          cut(Reject::kExperts);
        } else {
          branch_.layout.ep = ep;
          branch_.layout.etp = etp;
          sequence_sharding(sequences);
        }
      }
    }
  }

  void sequence_sharding(std::int64_t sequences) {
    Layout& l = branch_.layout;
    for (const bool sp : {false, true}) {
      if (sp && l.tp == 1) continue;
      if ((fix_.sp && (*fix_.sp != 0) != sp && l.tp > 1) || (max_.sp && *max_.sp == 0 && sp)) {
        cut(Reject::kPinned);
        continue;
      }
      if (sp && (request_.workload.seq / l.cp) % l.tp != 0) {
        cut(Reject::kSequence);
        continue;
      }
      // Expert routing works on sequence shards: Megatron-LM requires them when both tensor and expert ranks exist.
      if (!sp && l.tp > 1 && l.ep > 1) continue;
      l.sp = sp;
      microbatches(sequences);
    }
  }

  void microbatches(std::int64_t sequences) {
    for (const std::int64_t micro : divisors(sequences)) {
      const std::int64_t accumulate = sequences / micro;
      if (!within(fix_.micro_batch_seqs, max_.micro_batch_seqs, micro) ||
          !within(fix_.grad_accum, max_.grad_accum, accumulate)) {
        cut(Reject::kPinned);
        continue;
      }
      branch_.layout.micro_batch_seqs = micro;
      branch_.layout.grad_accum = accumulate;
      schedules();
    }
  }

  /// GPipe is tried only when asked for: it is never faster than 1F1B and keeps more activations.
  void schedules() {
    Layout& l = branch_.layout;
    if (l.pp == 1) {
      if (!within(fix_.vpp, max_.vpp, 1) || (fix_.schedule && *fix_.schedule == Schedule::kInterleaved)) {
        return cut(Reject::kPinned);
      }
      return remats(1, Schedule::kNone);
    }
    const bool gpipe = fix_.schedule && *fix_.schedule == Schedule::kGpipe;
    const bool only_interleaved = fix_.schedule && *fix_.schedule == Schedule::kInterleaved;
    if (only_interleaved || !within(fix_.vpp, max_.vpp, 1)) {
      cut(Reject::kPinned);
    } else {
      remats(1, gpipe ? Schedule::kGpipe : Schedule::k1F1B);
    }
    if (gpipe || (fix_.schedule && *fix_.schedule == Schedule::k1F1B)) return;
    interleaved();
  }

  /// Chunks must divide the layers, or the layers with embedding, head and MTP modules counted as one each; the
  /// microbatches must come in groups of pp.
  void interleaved() {
    Layout& l = branch_.layout;
    const std::int64_t layers = model_.layers();
    const std::int64_t with_ends = layers + 2 + model_.mtp_layers;
    for (std::int64_t vpp = 2; l.pp * vpp <= with_ends; ++vpp) {
      const std::int64_t chunks = l.pp * vpp;
      if (!within(fix_.vpp, max_.vpp, vpp)) {
        cut(Reject::kPinned);
      } else if (chunks > layers + 2 ||
                 (layers % chunks != 0 && with_ends % chunks != 0 && (layers + 2) % chunks != 0)) {
        cut(Reject::kStages);
      } else if (l.grad_accum % l.pp != 0) {
        cut(Reject::kMicrobatches);
      } else {
        remats(vpp, Schedule::kInterleaved);
      }
    }
  }

  void remats(std::int64_t vpp, Schedule schedule) {
    branch_.layout.vpp = vpp;
    branch_.layout.schedule = schedule;
    for (const Remat remat : {Remat::kNone, Remat::kSelective, Remat::kFull}) {
      if (fix_.remat && *fix_.remat != remat) {
        cut(Reject::kPinned);
        continue;
      }
      branch_.layout.remat = remat;
      visit_(branch_);
    }
  }

  const PlanRequest& request_;
  const ModelSpec& model_;
  const LayoutFilter& fix_;
  const LayoutFilter& max_;
  SearchStats& stats_;
  const std::function<void(const Branch&)>& visit_;
  Branch branch_;
};

}  // namespace

void enumerate(const PlanRequest& request, SearchStats& stats, const std::function<void(const Branch&)>& visit) {
  Enumerator(request, stats, visit).run();
}

std::vector<Layout> shardings(const PlanRequest& request, const Layout& branch, SearchStats& stats) {
  const LayoutFilter& fix = request.fix;
  const LayoutFilter& max = request.max;
  const std::int64_t data = branch.dp;
  std::vector<Layout> out;
  const auto offer = [&](std::uint8_t zero, std::int64_t fsdp) {
    Layout layout = branch;
    layout.zero = zero;
    layout.fsdp = fsdp;
    layout.dp = data / fsdp;
    if (!within(fix.zero, max.zero, zero) || !within(fix.fsdp, max.fsdp, fsdp) || !within(fix.dp, max.dp, layout.dp)) {
      ++stats.rejected[static_cast<std::size_t>(Reject::kPinned)];
      return;
    }
    const std::int64_t expert_ranks = fsdp * layout.cp * (layout.tp / layout.etp);
    if (zero == 3 && layout.ep > 1 && expert_ranks % layout.ep != 0) {
      ++stats.rejected[static_cast<std::size_t>(Reject::kExperts)];
      return;
    }
    out.push_back(layout);
  };
  if (data * branch.cp == 1) {
    offer(static_cast<std::uint8_t>(fix.zero.value_or(0)), 1);
    return out;
  }
  for (const std::uint8_t zero : {std::uint8_t{0}, std::uint8_t{1}, std::uint8_t{2}}) offer(zero, 1);
  for (const std::int64_t fsdp : divisors(data)) {
    if (fsdp * branch.cp > 1) offer(3, fsdp);
  }
  return out;
}

}  // namespace scalecalc
