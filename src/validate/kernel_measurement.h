// Kernels and collectives timed by themselves on one's own machine: a list of kernels, or what nccl-tests printed.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "config/node.h"
#include "network/collective_time.h"
#include "roofline/roofline.h"

namespace scalecalc {

struct TimedCollective {
  CollectiveOp op = CollectiveOp::kAllReduce;
  std::int64_t ranks = 1;
  std::int64_t nodes = 1;  ///< that the ranks lie in, as many in each
  double bytes = 0;        ///< V, as network/collective_time.h has it
  double bus_rate = 0;     ///< bytes/s, as printed
};

struct KernelMeasurement {
  SourceSpan where;
  std::string id;
  std::string group;  ///< its file: rows of one err alike
  std::variant<RooflineQuestion, TimedCollective> work;
  double seconds = 0;
};

/// Whether the document's rows are of kernels: its first one names a kernel.
bool is_kernels(const ConfigNode& document);

/// A list of rows, or a map with `rows`. UserError with every problem found.
std::vector<KernelMeasurement> read_kernels(const ConfigNode& document);

/// Whether the text has a table of nccl-tests or rccl-tests: a comment line that heads columns of sizes and bus
/// bandwidths.
bool is_nccl_tests(std::string_view text);

/// Every row of every table; times are those out of place. UserError with every problem found, among them a table whose
/// collective or ranks the text does not tell.
std::vector<KernelMeasurement> read_nccl_tests(const std::string& text, const std::string& file);

}  // namespace scalecalc
