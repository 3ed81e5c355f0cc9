// [COLL-LATENCY] What a collective waits beside its bytes; one law for train, serve and collective. The hardware file
// says what a tier's latency is charged for (spec/hardware_spec.h, LatencyPer), the efficiency block what the kernels
// of a stack were measured to take (CollectiveKernels), which behind switches stands in place of the links' and on a
// torus comes before the hops.
//
// Per operation, as Calculon charges it (calculon/network.py: latency + bytes / (bandwidth x efficiency),
// whatever the operation): the slowest tier's, once. Per message: a tree's log2 or a ring's N-1 follow one another, an
// all-reduce's twice (a reduction and a gather), two where the switches reduce; an all-to-all's are all sent at once.
//
// [RING] Where a stack's kernels pass rings, an all-gather and a reduce-scatter wait for every rank, one after the
// other: (nsteps - nInterSteps) intraLat + nInterSteps interLat (NCCL, src/graph/tuning.cc); an all-reduce passes
// trees.
#pragma once

#include <cmath>

#include "base/scalar.h"
#include "network/tier_rates.h"

namespace scalecalc {

/// Bytes from which on a collective runs at full bandwidth.
inline constexpr double kRampBytes = 1e6;

/// What small collectives cost beyond their bytes' time at full bandwidth.
template <class R>
SecondsOf<R> ramp_time(const SecondsOf<R>& ramp, const BytesOf<R>& bytes) {
  return ramp * min(R(1.0), bytes / BytesOf<R>(R(kRampBytes)));
}

template <class R>
struct Waits {
  SecondsOf<R> gather{R(0.0)};  ///< all-gather and reduce-scatter
  SecondsOf<R> reduce{R(0.0)};  ///< all-reduce
  SecondsOf<R> all_to_all{R(0.0)};
  SecondsOf<R> send{R(0.0)};
  SecondsOf<R> ramp{R(0.0)};
};

/// Messages of a gather among `members` that follow one another.
template <class R>
R messages(MessageOrder order, const R& members) {
  return order == MessageOrder::kRing ? members - R(1.0) : ceil(log2(members));
}

/// Collects what a group crosses, from the inside out.
template <class R>
class Latency {
 public:
  /// A torus: `way` to the farthest member, hop by hop.
  void hops(const SecondsOf<R>& way, const SecondsOf<R>& hop) {
    add(hops_, way);
    send_ = later(send_, hop);
  }
  /// `members` of the group in different children of one domain; `reduces`: its switches add up.
  void tier(const SwitchedTier& tier, const SecondsOf<R>& latency, const R& members, bool reduces) {
    send_ = later(send_, latency);
    if (tier.latency_per == LatencyPer::kOperation) {
      operation_ = later(operation_, latency);
      return;
    }
    const SecondsOf<R> gather = latency * messages(tier.algorithm, members);
    add(gather_, gather);
    add(reduce_, R(2.0) * (reduces ? latency : gather));
    add(exchange_, latency);
  }

  /// `domains` of the innermost tier that the members lie on.
  Waits<R> waits(const KernelRates<R>& kernels, std::int64_t members, std::int64_t domains) const {
    Waits<R> out;
    add(out.gather, sum(hops_, sum(operation_, gather_)));
    add(out.reduce, sum(value_of(hops_) > 0 ? R(2.0) * hops_ : hops_, sum(operation_, reduce_)));
    add(out.all_to_all, sum(hops_, sum(operation_, exchange_)));
    add(out.send, send_);
    add_kernels(kernels, static_cast<double>(members), static_cast<double>(domains), out);
    return out;
  }

 private:
  void add_kernels(const KernelRates<R>& k, double members, double domains, Waits<R>& out) const {
    const bool scale_out = domains > 1;
    const SecondsOf<R>& two = scale_out ? k.latency_out : k.latency_up;
    if (value_of(two) > 0) {
      SecondsOf<R> start = two;
      if (members > 2 && value_of(k.growth) > 0) start = start * (R(1.0) + k.growth * R(std::log2(members / 2)));
      begin(out.gather, k.rings() ? two : start);
      begin(out.reduce, start);
      add(out.send, two);
    }
    if (k.rings()) add(out.gather, ring(k, members, domains));
    const SecondsOf<R>& all_to_all = scale_out ? k.all_to_all_out : k.all_to_all_up;
    if (value_of(all_to_all) > 0) begin(out.all_to_all, all_to_all);
    if (value_of(k.ramp) > 0) out.ramp = k.ramp * R(std::log2(members));
    if (value_of(k.factor) == 1) return;
    for (SecondsOf<R>* wait : {&out.gather, &out.reduce, &out.all_to_all, &out.ramp}) {
      if (value_of(*wait) > 0) *wait = *wait * k.factor;
    }
  }

  /// Of the N - 1 hops of a ring, one less than its domains leave a domain. The first is in what two ranks take.
  static SecondsOf<R> ring(const KernelRates<R>& k, double members, double domains) {
    const double out = domains - 1;
    const double inside = out > 0 ? members - domains : members - 2;
    SecondsOf<R> wait(R(0.0));
    if (inside > 0) add(wait, k.hop_up * R(inside));
    if (out > 1) add(wait, k.hop_out * R(out - 1));
    return wait;
  }

  void begin(SecondsOf<R>& wait, const SecondsOf<R>& start) const {
    if (value_of(hops_) > 0) {
      add(wait, start);
    } else {
      wait = start;
    }
  }

  // Zeros stay out of explanations.
  static SecondsOf<R> sum(const SecondsOf<R>& a, const SecondsOf<R>& b) {
    if (value_of(a) == 0) return b;
    return value_of(b) == 0 ? a : a + b;
  }
  static void add(SecondsOf<R>& to, const SecondsOf<R>& x) { to = sum(to, x); }
  static SecondsOf<R> later(const SecondsOf<R>& a, const SecondsOf<R>& b) { return value_of(a) < value_of(b) ? b : a; }

  SecondsOf<R> hops_{R(0.0)}, operation_{R(0.0)}, gather_{R(0.0)}, reduce_{R(0.0)}, exchange_{R(0.0)}, send_{R(0.0)};
};

}  // namespace scalecalc
