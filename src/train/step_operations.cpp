// Lists the operations of a plan's forward pass on one chip, for the roofline picture of a page.
#include "train/step_operations.h"

#include <fmt/format.h>

#include "cost/layer_cost.h"

namespace scalecalc {
namespace {

class Operations {
 public:
  Operations(const TrainAnswer& answer, const Plan& plan)
      : inner_(inner_of(plan.layout)),
        chip_(read_chip(kPlain, answer.hw, answer.efficiency, answer.workload.precision.high)),
        memory_(only_memory(chip_)),
        work_(kPlain, chip_, answer.workload, inner_),
        traffic_(kPlain, memory_, answer.workload, inner_) {}

  void add(const std::string& where, const std::vector<Op<double>>& ops) {
    for (const Op<double>& op : ops) {
      const Work<double> work = work_.work(op, false);
      const double bytes = value_of(traffic_.work(op, false).hbm) * value_of(chip_.hbm);
      if (value_of(work.flops) <= 0 || bytes <= 0) continue;
      out_.push_back({fmt::format("{}: {}", where, op.name), value_of(work.flops), bytes, value_of(work.total())});
    }
  }

  std::vector<StepOperation> take() { return std::move(out_); }

 private:
  static constexpr Reader<double> kPlain{};

  /// A chip whose work is all memory traffic: a rate of 0 is one that is not known.
  static ChipRates<double> only_memory(ChipRates<double> chip) {
    for (FlopsPerSecond& rate : chip.matmul) rate = FlopsPerSecond(0);
    for (FlopsPerSecond* rate : {&chip.peak_attention_forward, &chip.peak_attention_backward, &chip.peak_scan_forward,
                                 &chip.peak_scan_backward, &chip.vector}) {
      *rate = FlopsPerSecond(0);
    }
    return chip;
  }

  InnerDegrees inner_;
  ChipRates<double> chip_, memory_;
  OpWork<double> work_, traffic_;
  std::vector<StepOperation> out_;
};

}  // namespace

std::vector<StepOperation> step_operations(const TrainAnswer& answer, const Plan& plan) {
  const ModelOps<double> ops =
      read_model(Reader<double>{}, answer.model, answer.workload.fine_tune, answer.workload.expert_capacity);
  Operations out(answer, plan);
  for (std::size_t k = 0; k < ops.kinds.size(); ++k) out.add(label_of(answer.model.kinds[k]), ops.kinds[k]);
  out.add("head", ops.head);
  return out.take();
}

}  // namespace scalecalc
