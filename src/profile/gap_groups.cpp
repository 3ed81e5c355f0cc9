// Decides which of a layout's dimensions the communication of a recording is: by the name of its process group, by
// what only one of them does, or by the number of its ranks.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "profile/gap.h"

namespace scalecalc {
namespace {

struct DimensionWord {
  std::string_view word;
  std::string_view dimension;
};
// In this order: Megatron-LM's DATA_PARALLEL_GROUP_WITH_CP and EXPERT_DATA_PARALLEL_GROUP are of data ranks, and its
// TENSOR_MODEL_PARALLEL_GROUP of tensor ranks; torchtitan's meshes are dp_shard_cp, fsdp, tp, cp, pp, ep.
constexpr std::array kDimensionWords{
    DimensionWord{"dp", "data"},        DimensionWord{"fsdp", "data"},   DimensionWord{"hsdp", "data"},
    DimensionWord{"data", "data"},      DimensionWord{"edp", "data"},    DimensionWord{"shard", "data"},
    DimensionWord{"replicate", "data"}, DimensionWord{"tp", "tp"},       DimensionWord{"tensor", "tp"},
    DimensionWord{"pp", "pp"},          DimensionWord{"pipeline", "pp"}, DimensionWord{"ep", "ep"},
    DimensionWord{"expert", "ep"},      DimensionWord{"cp", "cp"},       DimensionWord{"context", "cp"},
};

std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> out(1);
  for (const char c : lower_case(name)) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out.back() += c;
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
  }
  return out;
}

}  // namespace

GroupDimension dimension_of(const CommunicationGroup& group, const Layout& layout) {
  constexpr GroupDimension kUnknown{"unknown", ""};
  const std::vector<std::string> words = words_of(group.name);
  for (const DimensionWord& row : kDimensionWords) {
    if (std::find(words.begin(), words.end(), row.word) != words.end()) return {row.dimension, "name"};
  }
  const std::int64_t data = layout.dp * layout.fsdp;
  const std::array<std::pair<std::string_view, std::int64_t>, 5> sizes{
      {{"tp", layout.tp}, {"data", data}, {"pp", layout.pp}, {"ep", layout.ep}, {"cp", layout.cp}}};
  const auto only = [&](const auto& may) -> GroupDimension {
    const auto first = std::find_if(sizes.begin(), sizes.end(), may);
    if (first == sizes.end() || std::find_if(first + 1, sizes.end(), may) != sizes.end()) return kUnknown;
    return {first->first, ""};
  };
  const bool sends = group.kind == "send and receive";
  const bool turns = group.kind == "all-to-all";
  const auto by_kind = [&](const auto& size) {
    if (size.second < 2) return false;
    if (sends) return size.first == "pp" || (size.first == "cp" && layout.cp_comm == CpComm::kRing);
    if (turns) return size.first == "ep" || (size.first == "cp" && layout.cp_comm == CpComm::kUlysses);
    return size.first != "pp";
  };
  if (GroupDimension found = only(by_kind); found.dimension != kUnknown.dimension) {
    found.by = "kind";
    return found;
  }
  if (group.ranks < 2) return kUnknown;
  // ZeRO shards over some of the data ranks, and gradients are reduced over the context ranks too.
  const auto by_size = [&](const auto& size) {
    if (!by_kind(size)) return false;
    if (size.first != "data") return size.second == group.ranks;
    return group.ranks == data || group.ranks == layout.dp || group.ranks == layout.fsdp ||
           group.ranks == data * layout.cp;
  };
  GroupDimension found = only(by_size);
  if (found.dimension != kUnknown.dimension) found.by = "size";
  return found;
}

}  // namespace scalecalc
