// Assigns communication kernels to process groups by what the recording says of them.
#include "profile/comm_groups.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace scalecalc {
namespace {

struct KindWord {
  std::string_view word;  ///< small letters, without '_' and '-'
  std::string_view kind;
};
// "dispatch" and "combine": DeepEP's kernels, which nothing else calls a collective.
constexpr std::array kKindWords{
    KindWord{"allreduce", "all-reduce"},         KindWord{"allgather", "all-gather"},
    KindWord{"reducescatter", "reduce-scatter"}, KindWord{"alltoall", "all-to-all"},
    KindWord{"dispatch", "all-to-all"},          KindWord{"combine", "all-to-all"},
    KindWord{"sendrecv", "send and receive"},    KindWord{"collectivepermute", "send and receive"},
    KindWord{"broadcast", "broadcast"},          KindWord{"send", "send and receive"},
    KindWord{"recv", "send and receive"},
};

bool is_communication(DeviceWork work) {
  return work == DeviceWork::kExposed || work == DeviceWork::kCollective || work == DeviceWork::kSendReceive;
}

}  // namespace

std::string_view collective_kind(std::string_view name) {
  std::string letters = lower_case(name);
  std::erase_if(letters, [](char c) { return c == '_' || c == '-'; });
  const auto* const found = std::find_if(kKindWords.begin(), kKindWords.end(), [&](const KindWord& row) {
    return letters.find(row.word) != std::string::npos;
  });
  return found == kKindWords.end() ? std::string_view("collective") : found->kind;
}

std::vector<std::uint16_t> CommunicationGroups::of(const Recording& recording, std::span<const RecordedEvent> events) {
  constexpr std::size_t kMostGroups = 4000;
  std::vector<std::uint16_t> out;
  out.reserve(events.size());
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint16_t> known;
  for (const RecordedEvent& event : events) {
    const RecordedName& name = recording.names[event.name];
    if (!is_communication(name.work)) {
      out.push_back(0);
      continue;
    }
    const auto [at, is_new] = known.try_emplace({event.name, event.op}, std::uint16_t{0});
    if (is_new) {
      const RecordedOp& op = recording.ops[event.op];
      CommunicationGroup group{.ranks = op.group_size, .name = op.group};
      if (recording.format == RecordingFormat::kOwnTrace) {
        group.kind = name.text;
      } else {
        group.kind = collective_kind(op.collective.empty() ? name.text : op.collective);
      }
      const auto id = ids_.find(group);
      if (id != ids_.end()) {
        at->second = id->second;
      } else if (all_.size() < kMostGroups) {
        all_.push_back(group);
        at->second = ids_.emplace(std::move(group), static_cast<std::uint16_t>(all_.size())).first->second;
      }
    }
    out.push_back(at->second);
  }
  return out;
}

}  // namespace scalecalc
