// Simulates which blocks of prompt prefixes a server keeps on the chip, in host memory and on disk.
#include "serve/prefix_cache.h"

#include <algorithm>

namespace scalecalc {

std::int64_t PrefixCache::blocks_of(const PromptBlocks& prompt, std::int64_t prompt_tokens, std::size_t i) const {
  const std::int64_t before = prompt.tokens * static_cast<std::int64_t>(i);
  return std::clamp<std::int64_t>(prompt_tokens - before, 0, prompt.tokens) / block_tokens_;
}

PrefixCache::Found PrefixCache::find(const PromptBlocks& prompt, std::int64_t prompt_tokens) const {
  Found out;
  for (; out.ids < prompt.ids.size(); ++out.ids) {
    const std::int64_t blocks = blocks_of(prompt, prompt_tokens, out.ids);
    const auto node = nodes_.find(prompt.ids[out.ids]);
    if (blocks == 0 || node == nodes_.end() || node->second.blocks != blocks) break;
    out.blocks[node->second.place] += node->second.blocks;
    if (node->second.users > 0) out.used += node->second.blocks;
  }
  return out;
}

PrefixCache::Found PrefixCache::use(const PromptBlocks& prompt, std::int64_t prompt_tokens) {
  const Found out = find(prompt, prompt_tokens);
  for (std::size_t i = 0; i < out.ids; ++i) take(nodes_.find(prompt.ids[i])->second);
  return out;
}

std::int64_t PrefixCache::add(const PromptBlocks& prompt, std::int64_t prompt_tokens, std::size_t& ids) {
  std::int64_t twice = 0;
  for (; ids < prompt.ids.size(); ++ids) {
    const std::int64_t blocks = blocks_of(prompt, prompt_tokens, ids);
    if (blocks == 0) break;
    const auto [at, is_new] = nodes_.try_emplace(prompt.ids[ids]);
    Node& node = at->second;
    if (is_new) {
      node.blocks = blocks;
      node.users = 1;
      continue;
    }
    if (node.blocks != blocks) break;  // an id of two lengths
    if (node.users > 0) twice += blocks;
    take(node);
  }
  return twice;
}

std::int64_t PrefixCache::leave(const PromptBlocks& prompt, std::size_t ids) {
  std::int64_t freed = 0;
  for (std::size_t i = ids; i-- > 0;) {
    Node& node = nodes_.find(prompt.ids[i])->second;
    if (--node.users > 0) continue;
    freed += node.blocks;
    put(prompt.ids[i], node, 0);
  }
  return freed;
}

void PrefixCache::shrink_to(std::int64_t blocks) { shrink(0, std::max<std::int64_t>(blocks, 0)); }

/// Into the chips' memory, for one more user.
void PrefixCache::take(Node& node) {
  if (node.users++ > 0) return;
  unused_[node.place].erase(node.at);
  unused_blocks_[node.place] -= node.blocks;
  node.place = 0;
}

void PrefixCache::put(std::uint64_t id, Node& node, std::size_t place) {
  unused_[place].push_front(id);
  unused_blocks_[place] += node.blocks;
  node.place = place;
  node.at = unused_[place].begin();
}

void PrefixCache::shrink(std::size_t place, std::int64_t most) {
  while (unused_blocks_[place] > most) {
    const std::uint64_t id = unused_[place].back();
    const auto at = nodes_.find(id);
    unused_[place].pop_back();
    unused_blocks_[place] -= at->second.blocks;
    if (place + 1 == kPlaces) {
      nodes_.erase(at);
      continue;
    }
    put(id, at->second, place + 1);
    shrink(place + 1, room_[place + 1]);
  }
}

}  // namespace scalecalc
