// Whose communication a kernel is: told apart by what the recording says of its group, else by its kind alone.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "profile/recording.h"

namespace scalecalc {

struct CommunicationGroup {
  std::string kind;        ///< "all-gather", "all-to-all", "send and receive", ...; of a drawn step the cause
  std::int64_t ranks = 0;  ///< 0: not recorded
  std::string name;        ///< the process group's, as recorded; may be empty
  friend auto operator<=>(const CommunicationGroup&, const CommunicationGroup&) = default;
};

/// Seconds or ticks of one group: while nothing hides it, and at all.
struct GroupTicks {
  Ticks exposed = 0;
  Ticks running = 0;
};

class CommunicationGroups {
 public:
  /// Of each event, 1 and up into all(); 0 for what is no communication.
  std::vector<std::uint16_t> of(const Recording& recording, std::span<const RecordedEvent> events);
  const std::vector<CommunicationGroup>& all() const { return all_; }

 private:
  std::map<CommunicationGroup, std::uint16_t> ids_;
  std::vector<CommunicationGroup> all_;
};

/// "all-reduce" of "ncclDevKernel_AllReduce_Sum_bf16", "allreduce" or "_allgather_base"; "collective" of others.
std::string_view collective_kind(std::string_view name);

}  // namespace scalecalc
