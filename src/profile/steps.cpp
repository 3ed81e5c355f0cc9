// Finds where the steps of a recording begin and end on a device.
#include "profile/steps.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"

namespace scalecalc {
namespace {

struct StepMarker {
  std::string_view prefix;  ///< in small letters
  std::string_view what;
};
// The first that the recording has decides: within a step of an engine lie ranges of its batches.
constexpr std::array kStepMarkers{
    StepMarker{"profilerstep#", "ProfilerStep#"},
    StepMarker{"steps:", "the device's Steps line"},
    StepMarker{"step[", "the engine's step ranges"},
    StepMarker{"execute_", "the engine's execute ranges"},
    StepMarker{"step ", "ranges called step"},
    StepMarker{"step_", "ranges called step"},
    StepMarker{"train_step", "ranges called train_step"},
    StepMarker{"iteration", "ranges called iteration"},
    StepMarker{"iter", "ranges called iter"},
    StepMarker{"xla modules:", "runs of the XLA module"},
};

std::vector<const RecordedMarker*> marked(const Recording& recording, std::string_view prefix,
                                          std::optional<std::uint32_t> device) {
  std::vector<const RecordedMarker*> out;
  for (const RecordedMarker& marker : recording.markers) {
    if (marker.device == device && lower_case(marker.name.str().substr(0, prefix.size())) == prefix)
      out.push_back(&marker);
  }
  std::sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->start < b->start; });
  return out;
}

/// Of several programs the one that takes longest.
void keep_longest_program(std::vector<const RecordedMarker*>& markers) {
  std::map<std::string_view, Ticks> length;
  for (const RecordedMarker* marker : markers) length[marker->name.str()] += marker->end - marker->start;
  if (length.size() < 2) return;
  const auto longest =
      std::max_element(length.begin(), length.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  std::erase_if(markers, [&](const RecordedMarker* marker) { return marker->name.str() != longest->first; });
}

std::vector<StepWindow> on_device(const std::vector<const RecordedMarker*>& markers) {
  std::vector<StepWindow> out;
  for (const RecordedMarker* marker : markers) {
    // Ranges of one step on several streams are one.
    if (!out.empty() && (marker->name.str() == out.back().name.str() || marker->start < out.back().end)) {
      out.back().end = std::max(out.back().end, marker->end);
    } else {
      out.push_back({marker->start, marker->end, marker->name});
    }
  }
  return out;
}

template <class Range>
bool soon_after(Ticks at, const Range& range) {
  return at - range.end < (range.end - range.start) / 2;
}

std::vector<StepWindow> launched_in(const std::vector<const RecordedMarker*>& markers,
                                    std::span<const RecordedEvent> events) {
  struct Reach {
    Ticks first = INT64_MAX;
    Ticks last = INT64_MIN;
  };
  std::vector<Reach> reach(markers.size());
  bool any = false;
  for (const RecordedEvent& event : events) {
    if (event.launch == kNoTick) continue;
    any = true;
    auto at = std::upper_bound(markers.begin(), markers.end(), event.launch,
                               [](Ticks t, const RecordedMarker* marker) { return t < marker->start; });
    if (at == markers.begin()) continue;
    --at;
    if (event.launch >= (*at)->end) continue;
    Reach& of = reach[static_cast<std::size_t>(at - markers.begin())];
    of.first = std::min(of.first, event.start);
    of.last = std::max(of.last, event.end);
  }
  std::vector<StepWindow> out;
  for (std::size_t i = 0; i < markers.size(); ++i) {
    if (!any) {
      out.push_back({markers[i]->start, markers[i]->end, markers[i]->name});
    } else if (reach[i].first < reach[i].last) {
      out.push_back({reach[i].first, reach[i].last, markers[i]->name});
      // Steps that follow one another on the host do so on the device, however long that waited in between.
      const bool follows = i + 1 < markers.size() && soon_after(markers[i + 1]->start, *markers[i]);
      if (follows && reach[i + 1].first < reach[i + 1].last) out.back().end = reach[i + 1].first;
    }
  }
  return out;
}

/// A step lasts until the next begins, unless long after: then recording stopped in between.
std::vector<StepWindow> closed(std::vector<StepWindow> windows, const StepWindow& whole) {
  std::sort(windows.begin(), windows.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  for (std::size_t i = 0; i + 1 < windows.size(); ++i) {
    StepWindow& window = windows[i];
    if (soon_after(windows[i + 1].start, window)) window.end = windows[i + 1].start;
  }
  std::erase_if(windows, [&](const StepWindow& window) {
    return window.end <= window.start || window.end <= whole.start || window.start >= whole.end;
  });
  return windows;
}

Ticks length(const std::vector<StepWindow>& windows) {
  Ticks out = 0;
  for (const StepWindow& window : windows) out += window.end - window.start;
  return out;
}

constexpr std::size_t kFewestRepeats = 3;

/// The kernel seen least often among those that cut the stream into pieces alike; nothing if what is not in these
/// pieces is more than a fiftieth.
std::vector<StepWindow> repeated(const Recording& recording, std::span<const RecordedEvent> events) {
  std::map<std::uint32_t, std::vector<std::size_t>> places;
  for (std::size_t i = 0; i < events.size(); ++i) places[events[i].name].push_back(i);
  const std::vector<std::size_t>* best = nullptr;
  std::size_t rare = 0;
  std::map<std::size_t, std::size_t> how_many;  // occurrences: events of names with so many
  for (const auto& [name, at] : places) how_many[at.size()] += at.size();
  for (const auto& [occurrences, covered] : how_many) {
    if (occurrences < kFewestRepeats) {
      rare += covered;
      continue;
    }
    if (rare * 50 > events.size()) return {};
    for (const auto& [name, at] : places) {
      if (at.size() != occurrences || best != nullptr) continue;
      const std::size_t period = at[1] - at[0];
      bool alike = period > 1;
      for (std::size_t i = 0; alike && i + 1 < at.size(); ++i) {
        alike = at[i + 1] - at[i] == period;
        for (std::size_t k = 0; alike && i > 0 && k < period; ++k) {
          alike = events[at[i] + k].name == events[at[i - 1] + k].name;
        }
      }
      if (alike) best = &at;
    }
    if (best != nullptr) break;
    rare += covered;
  }
  if (best == nullptr) return {};
  std::vector<StepWindow> out;
  for (std::size_t i = 0; i + 1 < best->size(); ++i) {
    out.push_back(
        {events[(*best)[i]].start, events[(*best)[i + 1]].start, recording.names[events[(*best)[i]].name].text});
  }
  return out;
}

Ticks last_end(std::span<const RecordedEvent> events) {
  Ticks out = INT64_MIN;
  for (const RecordedEvent& event : events) out = std::max(out, event.end);
  return out;
}

}  // namespace

FoundSteps find_steps(const Recording& recording, std::uint32_t device, std::span<const RecordedEvent> events) {
  FoundSteps out;
  if (events.empty()) return out;
  const StepWindow whole{events.front().start, last_end(events), "all"};
  if (recording.format == RecordingFormat::kOwnTrace) return {{{0, whole.end, "step"}}, "the step that was drawn"};
  for (const StepMarker& kind : kStepMarkers) {
    auto markers = marked(recording, kind.prefix, device);
    if (kind.prefix.starts_with("xla")) keep_longest_program(markers);
    std::vector<StepWindow> there = closed(on_device(markers), whole);
    std::vector<StepWindow> launched = closed(launched_in(marked(recording, kind.prefix, std::nullopt), events), whole);
    // A range on the device covers the kernels whose launches were seen, which may be few of them.
    const bool on_it = !there.empty() && 2 * length(there) > length(launched);
    out.windows = on_it ? std::move(there) : std::move(launched);
    out.how = std::string(kind.what) + (on_it ? " on the device" : "");
    if (!out.windows.empty()) return out;
  }
  out.windows = repeated(recording, events);
  out.how = "kernels that repeat";
  if (out.windows.empty()) out = {{whole}, "no step is marked and none repeats: all of it is one"};
  return out;
}

}  // namespace scalecalc
