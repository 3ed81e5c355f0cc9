// The rates one can buy more of: what a chip, its memory and its links do in a second, and how much a chip holds.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "train/resolve.h"

namespace scalecalc {

struct HardwareRate {
  std::string name;                  ///< as --set takes it
  std::vector<std::string> read_as;  ///< its names in readings; none for a capacity
  double value = 0;                  ///< SI base unit
  Dim unit;
  bool is_time = false;  ///< a latency: ten per cent better is the time over 1.1
  std::function<void(HardwareSpec&, double)> scale;

  /// What the value is multiplied by where the rate is `share` times as good.
  double factor(double share) const { return is_time ? 1 / share : share; }
  /// What --set takes to make it `share` times as good.
  std::string set_to(double share) const;
};

/// Matmul rates of the formats the job computes in, vector rate, HBM bandwidth and capacity, and bandwidth and latency
/// of each tier (machines of several chips) and of the link to the host; what the file gives of them.
std::vector<HardwareRate> hardware_rates(const ResolvedQuestion& question);
/// Of a machine that computes in these formats, as one chip or several, with or without its host's memory.
std::vector<HardwareRate> hardware_rates(const HardwareSpec& hw, const std::vector<DType>& formats, bool several,
                                         bool hosts);

}  // namespace scalecalc
