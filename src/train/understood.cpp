// Fills the answered question with the defaults that were taken, for the answer's query.
#include <utility>

#include "train/resolve.h"

namespace scalecalc {

TrainQuestion understood(TrainQuestion q, const Workload& w) {
  q.seq = w.seq;
  q.batch_seqs = w.batch_seqs;
  q.batch_tokens = w.batch_seqs * static_cast<double>(w.seq);
  q.batch_tolerance = w.batch_tolerance;
  q.tokens = w.tokens;
  q.precision = w.precision.name;
  q.optimizer = w.optimizer.name;
  q.attention = w.kernel;
  q.graphs = w.graphs;
  q.stages = w.runtime.stages;
  return q;
}

TrainQuestion understood(TrainQuestion question, const Workload& workload, const HardwareSpec& hw,
                         const ModelSpec& model) {
  TrainQuestion q = understood(std::move(question), workload);
  q.hardware = hw.name;
  // Where small models' own software gave way, it is the family's that ran.
  const bool family = q.stack.empty() && workload.memory.stack == hw.efficiency.stack;
  q.stack = q.ideal ? "" : family ? hw.efficiency.stack : efficiency_asked_for(q, hw, model).stack;
  if (const Price* usual = hw.default_price(); usual && !q.price) q.price = usual->usd_per_chip_hour;
  return q;
}

}  // namespace scalecalc
