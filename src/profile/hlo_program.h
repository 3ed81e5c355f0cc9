// What a compiled program costs on a chip: FLOPs and bytes of its operations, loops counted as often as they run, its
// collectives with the devices they run between, and the step these make.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/explained.h"
#include "profile/hlo_memory.h"
#include "profile/hlo_mesh.h"
#include "profile/hlo_sharding.h"
#include "profile/hlo_text.h"
#include "profile/recording.h"
#include "spec/hardware_spec.h"

namespace scalecalc {

/// Operations of one kind.
struct HloWork {
  DeviceWork work = DeviceWork::kUnknown;
  double count = 0;
  double flops = 0;
  double bytes = 0;   ///< operands read and results written, those of a fusion once
  double time_s = 0;  ///< the larger of compute and HBM, one after the other
};

struct HloCollective {
  std::string kind;  ///< "all-gather"
  HloGroups groups;
  std::string axis;  ///< "X,Y", the outermost first; empty where its groups are along none
  double count = 0;
  double bytes = 0;              ///< of all calls: operands of one device
  std::optional<double> time_s;  ///< of all calls; nothing where the machine's form says none
  bool asynchronous = false;     ///< started before it is waited for
};

/// A product, wherever it stands.
struct HloProduct {
  std::string what;  ///< "bf16[32768,6144] x bf16[6144,1024]"
  double count = 0;
  double flops = 0;
  double time_s = 0;
};

struct HloProgram {
  HardwareSpec hw;
  std::string name;
  bool scheduled = false;
  std::int64_t devices = 1;
  std::vector<HloWork> works;              ///< the longest first
  std::vector<HloProduct> products;        ///< likewise
  std::vector<HloCollective> collectives;  ///< likewise
  HloMesh mesh;
  std::vector<HloShardedArray> arrays;     ///< annotated ones, the largest first
  std::vector<HloShardedProduct> sharded;  ///< products of such, the most frequent first
  HloMemory memory;
  double flops = 0, bytes = 0;
  double compute_s = 0, communication_s = 0;
  double least_s = 0, most_s = 0;     ///< all communication hidden, none
  std::optional<double> scheduled_s;  ///< in the schedule's order, what was started hidden until it is waited for
  std::vector<Assumption> assumptions;
};

/// `mesh`: the axes by which devices are numbered, the last the innermost; none: found in the text. UserError if it has
/// other devices than the module.
HloProgram hlo_program(const HloModule& module, const HardwareSpec& hw,
                       const std::vector<std::pair<std::string, std::int64_t>>& mesh = {});

}  // namespace scalecalc
