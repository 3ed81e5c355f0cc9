// A model on a chip, and the costs and inputs of its layouts, for tests of what the search asks of them.
#pragma once

#include "plan/places.h"
#include "support/fixtures.h"

namespace scalecalc::test {

class MemberCosts {
 public:
  MemberCosts(HardwareSpec hw, ModelSpec model)
      : hw_(std::move(hw)),
        model_(std::move(model)),
        request_(request(model_, hw_, 64)),
        chip_(read_chip(kReader, hw_, request_.efficiency, DType::kBf16)),
        overlap_(read_overlap(kReader, request_.efficiency)) {}
  MemberCosts(const MemberCosts&) = delete;  // the request points into it
  MemberCosts& operator=(const MemberCosts&) = delete;

  StepInput<double> input(const Layout& layout, const NetworkCost<double>& cost, const std::vector<StageShape>& stages,
                          const MeshChannels<double>& channels) const {
    return {.model = &model_,
            .workload = &request_.workload,
            .network = &cost,
            .channels = &channels,
            .overlap = &overlap_,
            .chip = &chip_,
            .stages = &stages,
            .memory_reserve = Bytes(1e9),
            .layout = layout};
  }
  NetworkCost<double> cost_of(const InnerDegrees& inner) const {
    return network_cost(kReader, model_, read_model(kReader, model_), chip_, request_.workload, inner);
  }

 protected:
  static constexpr Reader<double> kReader{};
  HardwareSpec hw_;
  ModelSpec model_;
  PlanRequest request_;
  ChipRates<double> chip_;
  OverlapRates<double> overlap_;
};

}  // namespace scalecalc::test
