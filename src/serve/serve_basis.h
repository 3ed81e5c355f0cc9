// What every layout of one system has in common: operation lists, rates. Read once, used for thousands of layouts.
#pragma once

#include <vector>

#include "cost/roofline.h"
#include "model/kv_cache.h"
#include "model/ops.h"
#include "network/channel.h"
#include "serve/serve_work.h"
#include "serve/serving_system.h"

namespace scalecalc {

/// The layers of one kind.
template <class R>
struct KindOps {
  LayerKind kind;
  double layers = 0;
  std::vector<Op<R>> ops;
};

template <class R>
struct ServeBasis {
  /// Keeps the pointers of `system`.
  ServeBasis(const Reader<R>& reader, const ServingSystem& system);

  /// Format that matmuls with weights of so many bits compute in: parts stored in 16 bits or more compute in them.
  DType format_of(double bits) const;
  /// Bits of a weight of this part of a layer of this kind; no kind: embedding and head.
  double stored_bits(Part part, const LayerKind* kind) const;

  ServingSystem system;
  ModelDims<R> dims;
  ChipRates<R> chip;
  ServingRates<R> rates;
  NetworkRates<R> network;
  BytesPerSecondOf<R> peak_bandwidth;  ///< of the data sheet
  BytesOf<R> onchip;                   ///< that activations of a step may stay in
  std::vector<KindOps<R>> kinds;
  std::vector<Op<R>> embedding, head;
  KvCache cache;
};

}  // namespace scalecalc
