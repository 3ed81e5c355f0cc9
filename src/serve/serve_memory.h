// Bytes on the fullest chip of a replica, and how many sequences fit by the engine's own rule.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "serve/serve_work.h"
#include "serve/serving_system.h"

namespace scalecalc {

/// Bytes of one chip.
struct ServeMemoryParts {
  double weights = 0;
  double kv = 0;           ///< caches of the sequences, recurrent states included
  double activations = 0;  ///< at the peak of a step
  double graphs = 0;       ///< captured graphs and their buffers
  double reserve = 0;      ///< runtime, communication buffers, allocator
  double total() const { return weights + kv + activations + graphs + reserve; }
};

class ServeMemory {
 public:
  ServeMemory() = default;
  /// `draft` is what a draft model takes of each chip.
  ServeMemory(const ServeBasis<double>& basis, const ServeLayout& layout, double draft = 0);

  /// Of a replica with so many sequences, each with `context` tokens in the cache.
  ServeMemoryParts parts(double batch, double context) const;
  double capacity() const { return capacity_; }
  /// Bytes that the engine's rule leaves for caches; below 0: the weights do not fit.
  double cache_room() const { return room_; }
  /// Bytes that the rule lets nobody use.
  double withheld() const;
  /// Bytes of one sequence on the chip that keeps most of it.
  double sequence_bytes(double context) const;
  /// Most sequences of a replica whose caches fit; 0 if not even one does.
  double max_batch(double context) const;
  /// Longest context of so many sequences; 0 if not even one token fits, infinite if none grows.
  double max_context(double batch) const;
  bool fits(double batch, double context) const { return batch <= max_batch(context); }
  /// "0.9 x 80 GiB - 16.1 GB weights - ... = 50.3 GB for the cache": the rule with its numbers.
  std::string equation() const;

 private:
  EngineRules engine_;
  KvCache cache_;  ///< of the model
  CacheFormat format_;
  ServeMemoryParts fixed_;  ///< all but the caches
  double capacity_ = 0;
  double room_ = 0;
  double stage_share_ = 1;   ///< of the layers on the fullest stage
  double ways_ = 1;          ///< tensor ranks the cached heads divide over
  double batch_ways_ = 1;    ///< ranks that keep sequences of their own
  double context_ways_ = 1;  ///< ranks that each keep a part of every context
};

}  // namespace scalecalc
