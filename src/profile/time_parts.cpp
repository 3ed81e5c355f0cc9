// Divides a stretch of a device's time into compute, exposed communication and idle time.
#include "profile/time_parts.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>

namespace scalecalc {
namespace {

bool communicates(DeviceWork work) { return work == DeviceWork::kCollective || work == DeviceWork::kSendReceive; }

struct Edge {
  Ticks at;
  std::uint8_t work;
  bool begins;
  std::uint16_t group = 0;
};

/// What runs at a moment.
class Running {
 public:
  void change(const Edge& edge) {
    counts_.at(edge.work) += edge.begins ? 1 : -1;
    if (edge.group == 0) return;
    int& groups = groups_[edge.group];
    groups += edge.begins ? 1 : -1;
    if (groups <= 0) groups_.erase(edge.group);
  }
  bool has(DeviceWork work) const { return counts_.at(static_cast<std::size_t>(work)) > 0; }

  void count(Ticks length, TimeParts& out) const {
    bool first = true;
    bool compute = false;
    bool sends = false;
    for (std::size_t w = 0; w < kDeviceWorks; ++w) {
      if (counts_.at(w) <= 0) continue;
      const DeviceWork work = static_cast<DeviceWork>(w);
      out.running.at(w) += length;
      if (first) out.counted.at(w) += length;
      first = false;
      compute |= is_compute(work);
      sends |= communicates(work);
    }
    count_groups(length, out, !compute || has(DeviceWork::kExposed));
    if (sends) out.communication += length;
    if (sends && compute && !has(DeviceWork::kExposed)) out.hidden += length;
  }
  bool idle() const {
    return std::all_of(counts_.begin(), counts_.end(), [](int n) { return n <= 0; });
  }

 private:
  /// Of groups that are exposed together the first counts.
  void count_groups(Ticks length, TimeParts& out, bool exposed) const {
    for (const auto& [group, running] : groups_) {
      if (out.groups.size() < group) out.groups.resize(group);
      GroupTicks& of = out.groups[group - std::size_t{1}];
      of.running += length;
      if (exposed) of.exposed += length;
      exposed = false;
    }
  }

  std::array<int, kDeviceWorks> counts_{};
  std::map<std::uint16_t, int> groups_;
};

/// Of a gap that ends where a piece starts.
void count_gap(Ticks from, Ticks to, Ticks launch, TimeParts& out) {
  if (launch == kNoTick) {
    out.idle[static_cast<std::size_t>(IdleCause::kUnknown)] += to - from;
    return;
  }
  const Ticks launched = std::clamp(launch, from, to);
  out.idle[static_cast<std::size_t>(IdleCause::kHost)] += launched - from;
  out.idle[static_cast<std::size_t>(IdleCause::kQueued)] += to - launched;
}

class LaneLeaves {
 public:
  LaneLeaves(std::span<const RecordedEvent> events, std::vector<LeafPiece>& out) : events_(events), out_(out) {}

  /// In the order of starts, of equal ones the longer first.
  void add(std::size_t i) {
    const RecordedEvent& event = events_[i];
    close_until(event.start);
    if (!open_.empty() && event.end > events_[open_.back()].end) {
      put(event.start, event.end, i);  // overlaps without being contained: both run
      return;
    }
    if (!open_.empty()) put(cursor_, event.start, open_.back());
    cursor_ = event.start;
    open_.push_back(i);
  }
  void finish() { close_until(INT64_MAX); }

 private:
  void close_until(Ticks now) {
    while (!open_.empty() && events_[open_.back()].end <= now) {
      const std::size_t top = open_.back();
      put(cursor_, events_[top].end, top);
      cursor_ = std::max(cursor_, events_[top].end);
      open_.pop_back();
    }
  }
  void put(Ticks start, Ticks end, std::size_t event) {
    if (end > start) out_.push_back({start, end, event});
  }

  std::span<const RecordedEvent> events_;
  std::vector<LeafPiece>& out_;
  std::vector<std::size_t> open_;
  Ticks cursor_ = 0;
};

}  // namespace

LeafPieces leaf_pieces(std::span<const RecordedEvent> events) {
  std::vector<std::size_t> order(events.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return events[a].start != events[b].start ? events[a].start < events[b].start : events[a].end > events[b].end;
  });
  LeafPieces out;
  out.all.reserve(events.size());
  std::map<std::uint32_t, LaneLeaves> lanes;
  for (const std::size_t i : order) lanes.try_emplace(events[i].lane, events, out.all).first->second.add(i);
  for (auto& [lane, leaves] : lanes) leaves.finish();
  std::sort(out.all.begin(), out.all.end(), [](const LeafPiece& a, const LeafPiece& b) { return a.start < b.start; });
  for (const LeafPiece& piece : out.all) out.longest = std::max(out.longest, piece.end - piece.start);
  return out;
}

std::span<const LeafPiece> LeafPieces::around(const StepWindow& window) const {
  const auto from = [&](Ticks t) {
    return std::lower_bound(all.begin(), all.end(), t, [](const LeafPiece& p, Ticks at) { return p.start < at; });
  };
  const auto first = from(window.start - longest);
  return {first, from(window.end)};
}

Ticks TimeParts::total() const {
  return std::accumulate(idle.begin(), idle.end(), std::accumulate(counted.begin(), counted.end(), Ticks{0}));
}

void TimeParts::add(const TimeParts& other) {
  for (std::size_t i = 0; i < kDeviceWorks; ++i) {
    counted.at(i) += other.counted.at(i);
    running.at(i) += other.running.at(i);
  }
  for (std::size_t i = 0; i < kIdleCauses; ++i) idle.at(i) += other.idle.at(i);
  communication += other.communication;
  hidden += other.hidden;
  if (groups.size() < other.groups.size()) groups.resize(other.groups.size());
  for (std::size_t g = 0; g < other.groups.size(); ++g) {
    groups[g].exposed += other.groups[g].exposed;
    groups[g].running += other.groups[g].running;
  }
}

LeafPieces outside_exposed(const Recording& recording, std::span<const RecordedEvent> events,
                           const LeafPieces& pieces) {
  const auto is_exposed = [&](const LeafPiece& piece) {
    return recording.names[events[piece.event].name].work == DeviceWork::kExposed;
  };
  std::vector<LeafPiece> exposed;
  std::copy_if(pieces.all.begin(), pieces.all.end(), std::back_inserter(exposed), is_exposed);
  if (exposed.empty()) return pieces;
  LeafPieces out;
  const auto put = [&](Ticks start, Ticks end, std::size_t event) {
    if (end > start) out.all.push_back({start, end, event});
  };
  for (const LeafPiece& piece : pieces.all) {
    if (is_exposed(piece)) {
      out.all.push_back(piece);
      continue;
    }
    // Exposed pieces follow one another: they lie in the order of their ends too.
    auto next = std::lower_bound(exposed.begin(), exposed.end(), piece.start,
                                 [](const LeafPiece& e, Ticks t) { return e.end <= t; });
    Ticks at = piece.start;
    for (; next != exposed.end() && next->start < piece.end; ++next) {
      put(at, std::min(next->start, piece.end), piece.event);
      at = std::max(at, next->end);
    }
    put(at, piece.end, piece.event);
  }
  std::stable_sort(out.all.begin(), out.all.end(),
                   [](const LeafPiece& a, const LeafPiece& b) { return a.start < b.start; });
  for (const LeafPiece& piece : out.all) out.longest = std::max(out.longest, piece.end - piece.start);
  return out;
}

TimeParts time_parts(const Recording& recording, std::span<const RecordedEvent> events,
                     std::span<const std::uint16_t> groups, const LeafPieces& pieces, const StepWindow& window) {
  std::vector<Edge> edges;
  for (const LeafPiece& piece : pieces.around(window)) {
    if (piece.end <= window.start) continue;
    const auto work = static_cast<std::uint8_t>(recording.names[events[piece.event].name].work);
    const std::uint16_t group = groups[piece.event];
    edges.push_back({std::max(piece.start, window.start), work, true, group});
    edges.push_back({std::min(piece.end, window.end), work, false, group});
  }
  std::sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) { return a.at < b.at; });
  TimeParts out;
  Running running;
  Ticks now = window.start;
  auto next = pieces.all.begin();
  const auto advance = [&](Ticks to) {
    if (to == now) return;
    if (running.idle()) {
      next = std::lower_bound(next, pieces.all.end(), to, [](const LeafPiece& p, Ticks t) { return p.start < t; });
      count_gap(now, to, next == pieces.all.end() ? kNoTick : events[next->event].launch, out);
    } else {
      running.count(to - now, out);
    }
    now = to;
  };
  for (const Edge& edge : edges) {
    advance(edge.at);
    running.change(edge);
  }
  advance(window.end);
  return out;
}

}  // namespace scalecalc
