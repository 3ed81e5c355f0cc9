// Kernels alike added up over a recording's steps, each beside its roofline.
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "profile/profile.h"

namespace scalecalc {

class KernelTotals {
 public:
  /// Keeps a reference to `hw`.
  explicit KernelTotals(const HardwareSpec& hw) : hw_(hw) {}

  /// The pieces of a device's steps that count.
  void add(const Recording& recording, std::span<const RecordedEvent> events, const LeafPieces& pieces,
           std::span<const StepWindow> steps);
  /// Per step of one rank, the longest first.
  std::vector<ProfiledKernel> kernels(double steps) const;

 private:
  struct Total {
    ProfiledKernel kernel;
    RecordedOp op;
    double longest = 0;
    double work_calls = 0;  ///< calls of the operation, however many kernels each takes
    double bytes = 0;       ///< as recorded, of all calls
  };
  using Key = std::tuple<DeviceWork, std::string, std::string>;

  void beside_roofline(ProfiledKernel& kernel, const Total& total, double steps) const;

  const HardwareSpec& hw_;
  std::map<Key, Total> totals_;
};

}  // namespace scalecalc
