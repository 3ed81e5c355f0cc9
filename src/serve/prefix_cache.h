// Prefixes of prompts that a server keeps: blocks named by ids, each of which stands for its block and all before it,
// so that the tree of prefixes is the set of its ids. Blocks that no sequence uses fall out of the chip's memory, the
// one used longest ago first and the end of a prompt before its beginning, into the host's and from there onto disk,
// as far as there is room (vLLM's prefix caching and its connectors; Mooncake, arXiv:2407.00079 section 5).
#pragma once

#include <array>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>

namespace scalecalc {

/// Ids of a prompt's blocks, from its beginning. Empty: it shares nothing.
struct PromptBlocks {
  std::span<const std::uint64_t> ids;
  std::int64_t tokens = 0;  ///< of a block; the last one has what is left
};

class PrefixCache {
 public:
  static constexpr std::size_t kPlaces = 3;
  using ByPlace = std::array<std::int64_t, kPlaces>;  ///< the chips' memory, the host's, disk

  /// Blocks that the host and the disk hold. Sizes here are in blocks of the chips' cache, `block_tokens` each.
  PrefixCache(std::int64_t block_tokens, std::int64_t host, std::int64_t disk)
      : block_tokens_(block_tokens), room_{0, host, disk} {}

  struct Found {
    std::size_t ids = 0;  ///< from the beginning
    ByPlace blocks{};
    std::int64_t used = 0;  ///< of these, by sequences already
    std::int64_t all() const { return blocks[0] + blocks[1] + blocks[2]; }
  };
  /// What of a prompt is kept, as far as nothing is missing before it.
  Found find(const PromptBlocks& prompt, std::int64_t prompt_tokens) const;
  /// The same, and a sequence uses it from now on.
  Found use(const PromptBlocks& prompt, std::int64_t prompt_tokens);
  /// A sequence that uses the first `ids` has computed the others: they are kept, and used by it. Returns the blocks
  /// that another had computed meanwhile and uses too: one copy is enough.
  std::int64_t add(const PromptBlocks& prompt, std::int64_t prompt_tokens, std::size_t& ids);
  /// A sequence uses the first `ids` no more. Returns the blocks that nobody else does.
  std::int64_t leave(const PromptBlocks& prompt, std::size_t ids);
  /// Of the chips' memory, no more than so many blocks for what nobody uses.
  void shrink_to(std::int64_t blocks);

 private:
  struct Node {
    std::int64_t blocks = 0;
    std::int64_t users = 0;
    std::size_t place = 0;
    std::list<std::uint64_t>::iterator at{};  ///< in `unused_` of its place, without users
  };
  using Nodes = std::unordered_map<std::uint64_t, Node>;

  std::int64_t blocks_of(const PromptBlocks& prompt, std::int64_t prompt_tokens, std::size_t i) const;
  void take(Node& node);
  void put(std::uint64_t id, Node& node, std::size_t place);
  void shrink(std::size_t place, std::int64_t most);

  std::int64_t block_tokens_;
  ByPlace room_;
  ByPlace unused_blocks_{};
  Nodes nodes_;
  std::array<std::list<std::uint64_t>, kPlaces> unused_;  ///< the one used last in front
};

}  // namespace scalecalc
