// Sums over the operations of a layer, before its communication: what they take, hold and keep, and the kernels they
// launch.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <unordered_map>

#include "cost/layer_cost.h"

namespace scalecalc {

/// Of a phase: kernels, and what the host launches, all, those of the experts and those of weight gradients.
struct KernelCounts {
  double all = 0, launched = 0, routed = 0, of_weights = 0;
};

template <class R>
struct OperationSum {
  LayerCost<R> cost;
  KernelCounts forward, backward;
  std::array<KernelCounts, kRematCount> repeated{};  ///< by remat policy
};

/// The sum of those operations of a list that come before the first whose cost the experts' degrees decide, kept from
/// one network_cost to the next of the same operations, chip and workload. Added on to, it gives the same sum to the
/// last bit. For one thread; the lists stay where they are as long as it lives.
class OperationSums {
 public:
  /// All that decides it.
  struct Key {
    const void* operations = nullptr;
    double tokens = 0;  ///< of a microbatch on one chip
    std::int64_t tp = 1;
    bool sp = false;
    friend bool operator==(const Key&, const Key&) = default;
  };

  /// Null if it is not known; valid until the next call.
  const OperationSum<double>* find(const Key& key) const {
    const auto at = known_.find(key);
    return at == known_.end() ? nullptr : &at->second;
  }
  void add(const Key& key, const OperationSum<double>& sum) {
    constexpr std::size_t kMostKept = 1024;  // of two kilobytes each; families of one tp and cp follow each other
    if (known_.size() >= kMostKept) known_.clear();
    known_.emplace(key, sum);
  }

 private:
  struct Hash {
    std::size_t operator()(const Key& key) const {
      std::uint64_t out = std::bit_cast<std::uint64_t>(key.tokens);
      for (const std::uint64_t part : {reinterpret_cast<std::uint64_t>(key.operations),
                                       static_cast<std::uint64_t>(key.tp), std::uint64_t{key.sp}}) {
        out = (out ^ part) * 0x9e3779b97f4a7c15ULL;
        out ^= out >> 29;
      }
      return out;
    }
  };
  std::unordered_map<Key, OperationSum<double>, Hash> known_;
};

}  // namespace scalecalc
