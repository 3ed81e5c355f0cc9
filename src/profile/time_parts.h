// What a stretch of a device's time went to: every moment is counted once, for the most useful thing that ran in it.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include "profile/comm_groups.h"
#include "profile/recording.h"
#include "profile/steps.h"

namespace scalecalc {

/// Why nothing runs on a device.
enum class IdleCause : std::uint8_t {
  kHost,     ///< the next kernel had not been launched
  kQueued,   ///< it had: launch latency, or it waited for another stream
  kUnknown,  ///< the recording does not say when it was launched
};
inline constexpr std::array<std::string_view, 3> kIdleCauseNames{"waiting for the host", "launched, not yet running",
                                                                 "idle"};
inline constexpr std::size_t kIdleCauses = kIdleCauseNames.size();

/// A piece of an event in which none that it contains runs.
struct LeafPiece {
  Ticks start = 0;
  Ticks end = 0;
  std::size_t event = 0;
};

/// Pieces of all events of a device, in the order of their starts.
struct LeafPieces {
  std::vector<LeafPiece> all;
  Ticks longest = 0;
  /// Those that reach into the window, and perhaps some before it.
  std::span<const LeafPiece> around(const StepWindow& window) const;
};
/// `events` are in the order of their starts.
LeafPieces leaf_pieces(std::span<const RecordedEvent> events);

struct TimeParts {
  std::array<Ticks, kDeviceWorks> counted{};  ///< with the idle parts they sum to the stretch exactly
  std::array<Ticks, kIdleCauses> idle{};
  std::array<Ticks, kDeviceWorks> running{};  ///< at least one piece of that work runs, whatever runs beside it
  Ticks communication = 0;                    ///< a collective or a send runs
  Ticks hidden = 0;                           ///< and of this compute runs beside it
  std::vector<GroupTicks> groups;             ///< of communication, by CommunicationGroups; what is exposed counts once
  Ticks total() const;
  void add(const TimeParts& other);
};

/// `groups`: of each event, as CommunicationGroups has them.
TimeParts time_parts(const Recording& recording, std::span<const RecordedEvent> events,
                     std::span<const std::uint16_t> groups, const LeafPieces& pieces, const StepWindow& window);

/// The pieces without what a drawn step says is exposed communication meanwhile: its passes are drawn whole.
LeafPieces outside_exposed(const Recording& recording, std::span<const RecordedEvent> events, const LeafPieces& pieces);

}  // namespace scalecalc
