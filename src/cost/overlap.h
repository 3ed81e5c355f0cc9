// What hides under what: communication of one layer's phase against the work beside it.
// Source: scaling book, chapters 1 and 5: time = max(compute, communication) when all overlaps; the coefficients that
// say how much does are the efficiency block's.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>

#include "base/scalar.h"

namespace scalecalc {

/// Communication inside a layer.
enum TrafficKind : std::size_t { kTp, kFsdp, kCp, kEp, kHost, kTrafficKinds };

/// The link to the host, beside those of a channel (Channel::links).
inline constexpr std::uint32_t kHostLink = std::uint32_t{1} << 31;

/// What an explanation calls the parts of one kind of communication.
struct TrafficNames {
  std::string_view whole, hidden, slowed, beyond, exposed;
  std::string_view outlasts = {};  ///< of what may hide under a part of the work only: beyond that part
};
inline constexpr std::array<TrafficNames, kTrafficKinds> kForwardNames{
    {{"forward tp communication", "forward tp that may hide", "forward slowed by tp", "forward tp beyond the work",
      "forward exposed tp"},
     {"forward fsdp gather", "forward fsdp that may hide", "forward slowed by fsdp", "forward fsdp beyond the work",
      "forward exposed fsdp", "forward fsdp beyond what is beside experts"},
     {"forward cp communication", "forward cp that may hide", "forward slowed by cp", "forward cp beyond the work",
      "forward exposed cp", "forward ring beyond attention"},
     {"forward ep all-to-all", "forward ep that may hide", "forward slowed by ep", "forward ep beyond the work",
      "forward exposed ep"},
     {"forward host transfer", "forward offload that may hide", "forward slowed by offload",
      "forward offload beyond the work", "forward exposed offload"}}};
inline constexpr std::array<TrafficNames, kTrafficKinds> kBackwardNames{
    {{"backward tp communication", "backward tp that may hide", "backward slowed by tp", "backward tp beyond the work",
      "backward exposed tp"},
     {"backward fsdp gather and scatter", "backward fsdp that may hide", "backward slowed by fsdp",
      "backward fsdp beyond the work", "backward exposed fsdp", "backward fsdp beyond what is beside experts"},
     {"backward cp communication", "backward cp that may hide", "backward slowed by cp", "backward cp beyond the work",
      "backward exposed cp", "backward ring beyond attention"},
     {"backward ep all-to-all", "backward ep that may hide", "backward slowed by ep", "backward ep beyond the work",
      "backward exposed ep"},
     {"backward host transfer", "backward offload that may hide", "backward slowed by offload",
      "backward offload beyond the work", "backward exposed offload"}}};

/// Of a backward whose weight gradients are put off: what is left hides under the input gradients alone.
inline constexpr std::array<TrafficNames, kTrafficKinds> kInputNames{
    {{"", "input gradients' tp that may hide", "input gradients slowed by tp", "input gradients' tp beyond the work",
      ""},
     {"", "input gradients' fsdp that may hide", "input gradients slowed by fsdp",
      "input gradients' fsdp beyond the work", "", "input gradients' fsdp beyond what is beside experts"},
     {"", "input gradients' cp that may hide", "input gradients slowed by cp", "input gradients' cp beyond the work",
      "", "input gradients' ring beyond attention"},
     {"", "input gradients' ep that may hide", "input gradients slowed by ep", "input gradients' ep beyond the work",
      ""},
     {"", "input gradients' offload that may hide", "input gradients slowed by offload",
      "input gradients' offload beyond the work", ""}}};

/// One kind of communication in one phase of one layer: its time and how it may hide.
template <class R>
struct Traffic {
  SecondsOf<R> time{R(0.0)};
  R overlap{0.0};
  R contention{0.0};
  std::uint32_t links = 0;
  std::optional<SecondsOf<R>> under = {};  ///< the part of the work that it may hide under; absent: all of it
};

template <class R>
struct PhaseTime {
  SecondsOf<R> compute{R(0.0)}, hbm{R(0.0)}, overhead{R(0.0)}, tp{R(0.0)}, fsdp{R(0.0)}, cp{R(0.0)}, ep{R(0.0)},
      host{R(0.0)};
  SecondsOf<R> idle{R(0.0)};     ///< until the host has launched it: [HOST], docs/model.md
  SecondsOf<R> put_off{R(0.0)};  ///< of their sum: by how much it is shorter without its weight gradients
  double left = 0;               ///< seconds the chip runs without its weight gradients
  double launch = 0;             ///< seconds the host needs to launch it
  double launch_alone = 0;       ///< the same without its weight gradients
  double alone = 0;              ///< seconds of work and of what found none to hide under, without them
  std::array<double, kTrafficKinds> spilled{};  ///< seconds that found no work to hide under

  PhaseTime& add(const PhaseTime& o, const R& times) {
    compute += o.compute * times;
    hbm += o.hbm * times;
    overhead += o.overhead * times;
    tp += o.tp * times;
    fsdp += o.fsdp * times;
    cp += o.cp * times;
    ep += o.ep * times;
    host += o.host * times;
    idle += o.idle * times;
    put_off += o.put_off * times;
    left += o.left * value_of(times);
    launch += o.launch * value_of(times);
    launch_alone += o.launch_alone * value_of(times);
    alone += o.alone * value_of(times);
    for (std::size_t x = 0; x < kTrafficKinds; ++x) spilled[x] += o.spilled[x] * value_of(times);
    return *this;
  }
  SecondsOf<R> total() const { return compute + hbm + overhead + tp + fsdp + cp + ep + host + idle; }
};

/// [OVERLAP] time = work + sum_x (1 - o_x) t_x + max(0, max_link sum_{x on link} o_x t_x - work) + contention.
/// With every o = 1 and no shared link this is the book's max(work, t_x ...); with o = 0 it is the sum. Traffic that
/// shares a link queues; what does not fit under the work is charged to the largest user of the fullest link. What may
/// hide under a part of the work only shows beyond that part, and other links go on meanwhile: with a ring's o t and
/// attention A the step is max(work + max(0, o t - A), fullest link), which does not fall when A grows. Terms are named
/// "LABEL NAME".
template <class R>
void hide(const std::array<Traffic<R>, kTrafficKinds>& traffic, const SecondsOf<R>& work,
          const std::array<TrafficNames, kTrafficKinds>& names, std::string_view label,
          std::array<SecondsOf<R>, kTrafficKinds>& exposed, std::array<double, kTrafficKinds>& spilled) {
  constexpr std::string_view kShare = "its overlap x its time";
  if constexpr (std::is_same_v<R, double>) {  // most ends send nothing; what follows would give the same zeros
    if (std::none_of(traffic.begin(), traffic.end(), [](const Traffic<R>& t) { return t.time.value() != 0; })) {
      exposed.fill(SecondsOf<R>(R(0.0)));
      spilled.fill(0);
      return;
    }
  }
  const SecondsOf<R> zero(R(0.0));
  std::array<SecondsOf<R>, kTrafficKinds> hidden;
  SecondsOf<R> room = work;
  std::uint32_t used = 0;
  for (std::size_t x = 0; x < kTrafficKinds; ++x) {
    if constexpr (std::is_same_v<R, double>) {  // the same of one kind
      if (traffic[x].time.value() == 0) {
        hidden[x] = exposed[x] = zero;
        spilled[x] = 0;
        continue;
      }
    }
    hidden[x] = named(traffic[x].time * traffic[x].overlap, names[x].hidden, kShare, label);
    exposed[x] = traffic[x].time * (R(1.0) - traffic[x].overlap);
    spilled[x] = 0;
    const SecondsOf<R>& under = traffic[x].under ? *traffic[x].under : work;
    if (traffic[x].under) {
      const SecondsOf<R> beyond = named(max(zero, hidden[x] - under), names[x].outlasts,
                                        "what its part of the work does not hide of it", label);
      exposed[x] += beyond;
      room += beyond;
      spilled[x] = value_of(beyond);
    }
    if (traffic[x].links == 0) continue;
    used |= traffic[x].links;
    exposed[x] += named(min(hidden[x], under) * traffic[x].contention, names[x].slowed,
                        "communication beside work takes part of the chip", label);
  }
  SecondsOf<R> fullest = zero;
  std::size_t cause = kTp;
  int links = 0;
  for (std::uint32_t bits = used; bits != 0; bits &= bits - 1) {
    const std::uint32_t link = bits & (~bits + 1);
    SecondsOf<R> busy = zero;
    std::size_t largest = kTp;
    double largest_time = -1;
    for (std::size_t x = 0; x < kTrafficKinds; ++x) {
      if ((traffic[x].links & link) == 0) continue;
      busy += hidden[x];
      if (value_of(hidden[x]) > largest_time) {
        largest_time = value_of(hidden[x]);
        largest = x;
      }
    }
    if (value_of(busy) > value_of(fullest)) cause = largest;
    links += value_of(busy) > 0 ? 1 : 0;
    fullest = value_of(fullest) > 0 ? max(fullest, busy) : busy;
  }
  if (links > 1) fullest = named(fullest, "fullest link", "the largest of the links' times", label);
  const SecondsOf<R> excess =
      named(max(zero, fullest - room), names[cause].beyond, "of the fullest link, charged to its largest user", label);
  exposed[cause] += excess;
  spilled[cause] += value_of(excess);
}

/// What shows of all of it.
template <class R>
SecondsOf<R> exposed(const std::array<Traffic<R>, kTrafficKinds>& traffic, const SecondsOf<R>& work,
                     const std::array<TrafficNames, kTrafficKinds>& names, std::string_view label = {}) {
  std::array<SecondsOf<R>, kTrafficKinds> shown;
  std::array<double, kTrafficKinds> spilled;
  hide(traffic, work, names, label, shown, spilled);
  SecondsOf<R> out = shown[0];
  for (std::size_t x = 1; x < kTrafficKinds; ++x) out += shown[x];
  return out;
}

}  // namespace scalecalc
