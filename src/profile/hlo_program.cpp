// Computes the FLOPs, bytes and collectives of a compiled program, and the step they make.
#include "profile/hlo_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "base/diagnostic.h"
#include "base/limits.h"
#include "base/units.h"
#include "network/collective_time.h"
#include "profile/kernel_names.h"
#include "profile/shapes.h"

namespace scalecalc {
namespace {

/// Nothing is computed or moved by these.
constexpr std::array<std::string_view, 17> kFreeOps{"parameter",   "constant",     "tuple",        "get-tuple-element",
                                                    "bitcast",     "after-all",    "partition-id", "replica-id",
                                                    "opt-barrier", "iota",         "domain",       "add-dependency",
                                                    "async-done",  "async-update", "copy-done",    "send-done",
                                                    "recv-done"};

struct CollectiveOpcode {
  std::string_view opcode;
  std::optional<CollectiveOp> op;  ///< nothing: to another device
};
constexpr std::array kCollectiveOpcodes{CollectiveOpcode{"all-gather", CollectiveOp::kAllGather},
                                        CollectiveOpcode{"all-reduce", CollectiveOp::kAllReduce},
                                        CollectiveOpcode{"reduce-scatter", CollectiveOp::kReduceScatter},
                                        CollectiveOpcode{"all-to-all", CollectiveOp::kAllToAll},
                                        CollectiveOpcode{"ragged-all-to-all", CollectiveOp::kAllToAll},
                                        CollectiveOpcode{"collective-permute", std::nullopt},
                                        CollectiveOpcode{"collective-broadcast", std::nullopt}};

bool is_free(std::string_view opcode) {
  return std::find(kFreeOps.begin(), kFreeOps.end(), opcode) != kFreeOps.end() ||
         (opcode.ends_with("-done") && opcode != "dot-done");
}

double total_bytes(const std::vector<HloArray>& arrays) {
  double out = 0;
  for (const HloArray& array : arrays) out += array.bytes();
  return out;
}

std::string array_text(const HloArray& array) { return fmt::format("{}[{}]", array.type, fmt::join(array.dims, ",")); }

using NamedSizes = std::vector<std::pair<std::string, std::int64_t>>;

/// Operations one after the other, collectives beside them on one link.
struct ScheduleClock {
  double now = 0;
  double link_free = 0;
  std::map<std::string, double, std::less<>> started;  ///< by name: when it is done

  void compute(double seconds) { now += seconds; }
  void communicate(double seconds, const std::string* starts) {
    link_free = std::max(link_free, now) + seconds;
    if (starts == nullptr) {
      now = link_free;
    } else {
      started[*starts] = link_free;
    }
  }
  void wait_for(std::string_view name) {
    const auto at = started.find(name);
    if (at != started.end()) now = std::max(now, at->second);
  }
  double end() const { return std::max(now, link_free); }
};

class ProgramCost {
 public:
  ProgramCost(const HloModule& module, const HardwareSpec& hw, const NamedSizes& mesh)
      : module_(module), given_mesh_(mesh) {
    out_.hw = hw;
    out_.name = module.name;
    out_.scheduled = module.scheduled;
    out_.devices = module.partitions;
    for (const auto& [name, computation] : module.computations) steps_.reads(computation.instructions.size());
  }

  HloProgram run() {
    const HloComputation& entry = module_.computations.at(module_.entry);
    const double scheduled_s = walk(entry, 1, 0);
    if (works_.empty() && collectives_.empty()) {
      refuse("the ENTRY computation has no operation that computes, moves or sends anything",
             "dump the compiled module: jax.jit(f).lower(...).compile().as_text()");
    }
    if (module_.scheduled) out_.scheduled_s = scheduled_s;
    out_.memory = hlo_memory(module_);
    axes();
    time();
    assume();
    return std::move(out_);
  }

 private:
  [[noreturn]] void refuse(std::string message, std::string hint) const {
    throw UserError({Diagnostic{SourceSpan{.file = module_.file}, std::move(message), std::move(hint)}});
  }

  /// Counts what is looked at: computations that call the next one twice would be walked without end.
  void looks_at(std::size_t count) const {
    if (!steps_.makes(count)) refuse("calls of this module take too many steps to follow", "is it a real module?");
  }

  /// How long one run of it takes by its schedule.
  double walk(const HloComputation& computation, double times, std::size_t depth) {
    if (depth > limits::kCallLevels) refuse("computations " + limits::too_deep(limits::kCallLevels), "");
    looks_at(computation.instructions.size());
    ScheduleClock clock;
    for (const HloInstruction& i : computation.instructions) instruction(computation, i, times, depth, clock);
    return clock.end();
  }

  const HloComputation* called(const HloInstruction& i, std::string_view key) const {
    std::string_view name = hlo_attribute(i.attributes, key);
    if (name.starts_with('%')) name.remove_prefix(1);
    const auto found = module_.computations.find(name);
    return found == module_.computations.end() ? nullptr : &found->second;
  }

  void instruction(const HloComputation& in, const HloInstruction& i, double times, std::size_t depth,
                   ScheduleClock& clock) {
    if (i.opcode == "while") {
      const double trips = trips_of(i);
      for (const std::string_view part : {"body", "condition"}) {
        if (const HloComputation* inner = called(i, part))
          clock.compute(trips * walk(*inner, times * trips, depth + 1));
      }
      return;
    }
    if (i.opcode == "call" || i.opcode == "async-start") {
      const bool starts = i.opcode == "async-start";
      const HloComputation* inner = called(i, starts ? "calls" : "to_apply");
      if (inner == nullptr) return;
      const double before = communication_s_;
      wrapped_ += starts ? 1 : 0;
      const double seconds = walk(*inner, times, depth + 1);
      wrapped_ -= starts ? 1 : 0;
      if (starts && communication_s_ > before) return clock.communicate(seconds, &i.name);
      return clock.compute(seconds);
    }
    if (i.opcode == "conditional") {
      conditional_ = true;
      for (const std::string_view part : {"true_computation", "false_computation"}) {
        if (const HloComputation* inner = called(i, part)) clock.compute(walk(*inner, times, depth + 1));
      }
      return;
    }
    if (i.opcode.ends_with("-done") && !i.operands.empty()) clock.wait_for(i.operands[0]);
    for (const CollectiveOpcode& known : kCollectiveOpcodes) {
      const bool starts = i.opcode == std::string(known.opcode) + "-start";
      if (!starts && i.opcode != known.opcode) continue;
      const double seconds = collective(in, i, known, times, starts || wrapped_ > 0);
      communication_s_ += seconds;
      return clock.communicate(seconds, starts ? &i.name : nullptr);
    }
    if (!is_free(i.opcode)) clock.compute(operation(in, i, times));
  }

  double trips_of(const HloInstruction& i) {
    const std::size_t known = i.attributes.find("known_trip_count");
    if (known != std::string_view::npos) {
      const std::vector<std::int64_t> trips = hlo_numbers(i.attributes.substr(known, 40));
      if (!trips.empty()) return static_cast<double>(trips.front());
    }
    if (const auto limit = limit_of(i)) return *limit;
    unknown_loops_ += 1;
    return 1;
  }

  /// Of a condition that compares a counter with one constant: a loop from 0 in steps of 1, as jax.lax.scan makes it.
  std::optional<double> limit_of(const HloInstruction& loop) const {
    const HloComputation* condition = called(loop, "condition");
    if (condition == nullptr) return std::nullopt;
    std::optional<double> out;
    bool less = false;
    for (const HloInstruction& i : condition->instructions) {
      less |= i.opcode == "compare" && hlo_attribute(i.attributes, "direction") == "LT";
      if (i.opcode != "constant") continue;
      const std::vector<std::int64_t> value =
          i.operands.empty() ? std::vector<std::int64_t>{} : hlo_numbers(i.operands[0]);
      if (out || value.size() != 1) return std::nullopt;
      out = static_cast<double>(value.front());
    }
    return less ? out : std::nullopt;
  }

  std::vector<HloArray> operands(const HloComputation& in, const HloInstruction& i) const {
    std::vector<HloArray> out;
    for (const std::string& name : i.operands) {
      const HloInstruction* from = in.find(name);
      if (from == nullptr) continue;
      looks_at(from->result.size());
      out.insert(out.end(), from->result.begin(), from->result.end());
    }
    return out;
  }

  /// Of one product: 2 x the result x what is contracted.
  std::optional<double> product_flops(const HloComputation& in, const HloInstruction& i) const {
    const std::vector<HloArray> of = operands(in, i);
    if (of.size() < 2 || i.result.empty()) return std::nullopt;
    if (i.opcode == "convolution") {
      const std::string_view labels = hlo_attribute(i.attributes, "dim_labels");
      const std::size_t bar = labels.find('_');
      const std::size_t feature = bar == std::string_view::npos ? bar : labels.find('o', bar);
      if (feature == std::string_view::npos || feature - bar - 1 >= of[1].dims.size()) return std::nullopt;
      return 2 * i.result.front().elements() * of[1].elements() / std::max(1.0, of[1].dims[feature - bar - 1]);
    }
    std::string_view contracted = hlo_attribute(i.attributes, "lhs_contracting_dims");
    if (i.opcode == "custom-call") {
      const std::size_t at = i.attributes.find("\"lhs_contracting_dimensions\"");
      if (at == std::string_view::npos) return std::nullopt;
      contracted = i.attributes.substr(at, i.attributes.find(']', at) - at);
    } else if (i.opcode != "dot") {
      return std::nullopt;
    }
    double out = 2 * i.result.front().elements();
    for (const std::int64_t dim : hlo_numbers(contracted)) {
      if (dim >= static_cast<std::int64_t>(of[0].dims.size())) return std::nullopt;
      out *= of[0].dims[static_cast<std::size_t>(dim)];
    }
    return out;
  }

  DeviceWork work_of(const HloInstruction& i) const {
    if (i.opcode == "dot" || i.opcode == "convolution") return DeviceWork::kMatmul;
    if (i.opcode != "custom-call") return i.opcode.starts_with("copy") ? DeviceWork::kCopy : DeviceWork::kVector;
    return work_of_kernel(hlo_attribute(i.attributes, "custom_call_target"));
  }

  /// Seconds of one.
  double operation(const HloComputation& in, const HloInstruction& i, double times) {
    double flops = 0;
    DeviceWork work = work_of(i);
    DType format = DType::kBf16;
    if (const double own = product(in, i, times, format); own > 0) {
      flops = own;
      work = DeviceWork::kMatmul;
    } else if (i.opcode == "fusion") {
      if (const HloComputation* fused = called(i, "calls")) {
        for (const HloInstruction& part : fused->instructions) flops += product(*fused, part, times, format);
      }
      if (flops > 0) work = DeviceWork::kMatmul;
    } else if (work == DeviceWork::kUnknown || work == DeviceWork::kAttention) {
      opaque_ += times;
    }
    const double bytes = moved_bytes(in, i);
    HloWork& sum = works_[work];
    sum.work = work;
    sum.count += times;
    sum.flops += flops * times;
    sum.bytes += bytes * times;
    const double compute_s = flops > 0 ? flops / rate(format) : 0;
    const double seconds = std::max(compute_s, bytes / out_.hw.hbm_bandwidth.value());
    sum.time_s += seconds * times;
    return seconds;
  }

  /// A slice alone of a slice's array is read, and in an update written.
  double moved_bytes(const HloComputation& in, const HloInstruction& i) const {
    const bool takes = i.opcode == "dynamic-slice" || i.opcode == "slice" || i.opcode == "gather";
    if (takes) return 2 * total_bytes(i.result);
    const std::vector<HloArray> of = operands(in, i);
    if (i.opcode == "dynamic-update-slice" && of.size() > 1) return 2 * of[1].bytes();
    return total_bytes(of) + total_bytes(i.result);
  }

  /// FLOPs of a product, which is listed and says the format; 0 for anything else.
  double product(const HloComputation& in, const HloInstruction& i, double times, DType& format) {
    const auto flops = product_flops(in, i);
    if (!flops) return 0;
    const std::vector<HloArray> of = operands(in, i);
    format = format_of(of[0].type);
    const std::string what = fmt::format("{} x {}", array_text(of[0]), array_text(of[1]));
    HloProduct& sum = products_[what];
    sum.what = what;
    sum.count += times;
    sum.flops += *flops * times;
    sum.time_s += *flops / rate(format) * times;
    return *flops;
  }

  static DType format_of(const std::string& type) {
    if (type == "f32") return DType::kTf32;
    if (type == "f64") return DType::kFp64;
    if (type.starts_with("f8")) return DType::kFp8;
    if (type == "s8") return DType::kInt8;
    return type == "f16" ? DType::kFp16 : DType::kBf16;
  }
  /// The chip's for the format; else that of fp32 for tf32, or of 16 bits, which is said.
  double rate(DType format) {
    const auto& peak = out_.hw.matmul_peak;
    const auto of = [&](DType each) { return peak[static_cast<std::size_t>(each)]; };
    if (const auto own = of(format)) return own->value();
    if (const auto plain = of(DType::kFp32); plain && format == DType::kTf32) return plain->value();
    for (const DType usual : {DType::kBf16, DType::kFp16}) {
      const auto rate = of(usual);
      if (!rate) continue;
      other_rates_.insert(std::string(name_of(format == DType::kTf32 ? DType::kFp32 : format)) + " at the " +
                          std::string(name_of(usual)) + " rate");
      return rate->value();
    }
    throw UserError(fmt::format("{} publishes no matmul rate of {}", out_.hw.title, name_of(format)),
                    fmt::format("give one: --set hw.compute.matmul.{}=RATE", name_of(format)));
  }

  /// Seconds of one; none where the machine's form says none.
  double collective(const HloComputation& in, const HloInstruction& i, const CollectiveOpcode& known, double times,
                    bool starts) {
    HloCollective one{.kind = std::string(known.opcode), .groups = hlo_groups(i, out_.devices), .asynchronous = starts};
    const double bytes = total_bytes(operands(in, i));
    std::string key =
        fmt::format("{} {} {} {} {}", one.kind, one.groups.size, one.groups.stride, one.groups.axes, one.asynchronous);
    for (const MeshFactor& factor : one.groups.factors) key += fmt::format(" {}@{}", factor.size, factor.stride);
    const auto [at, is_new] = collectives_.try_emplace(key, std::move(one));
    HloCollective& sum = at->second;
    if (is_new) sum.time_s = 0;
    sum.count += times;
    sum.bytes += bytes * times;
    const auto seconds = collective_seconds(known, sum.groups, bytes);
    if (!seconds) sum.time_s.reset();
    if (sum.time_s) *sum.time_s += *seconds * times;
    return sum.time_s ? *seconds : 0;
  }

  /// V of network/collective_time.h: what a gather leaves on each member, what each brings to the others.
  std::optional<double> collective_seconds(const CollectiveOpcode& known, const HloGroups& groups, double bytes) const {
    const HardwareSpec& hw = out_.hw;
    if (hw.network.empty() || groups.size < 2) return groups.size < 2 ? std::optional(0.0) : std::nullopt;
    const double members = static_cast<double>(groups.size);
    const bool whole = known.op == CollectiveOp::kAllGather || known.op == CollectiveOp::kAllToAll;
    try {
      const Efficiency ideal = ideal_efficiency(hw.efficiency);
      const std::int64_t inner = std::max<std::int64_t>(1, groups.stride);
      const CollectiveGroup group = hw.is_torus() ? torus_group(hw, {{"axis", groups.size, true}}, 1, inner)
                                                  : switched_group(hw, groups.size, inner);
      // One device sends to one other: half of what a gather of two leaves.
      const CollectiveRequest request{.op = known.op.value_or(CollectiveOp::kAllGather),
                                      .bytes = BytesOf<Traced>(Traced(whole || !known.op ? members * bytes : bytes)),
                                      .convention = CollectiveConvention::kExact};
      return value_of(collective_time(collective_network(hw, ideal), group, request).time);
    } catch (const UserError&) {
      return std::nullopt;
    }
  }

  /// The mesh that was given, or that the text names; else the one whose borders annotations and groups show.
  void axes() {
    const HloShardings shardings(module_);
    std::vector<MeshFactors> parts = shardings.parts();
    for (const auto& [key, collective] : collectives_) parts.push_back(collective.groups.factors);
    std::erase_if(parts, [](const MeshFactors& part) { return part.empty(); });
    if (!given_mesh_.empty()) {
      out_.mesh = named_mesh(given_mesh_, "--mesh");
      constexpr std::int64_t kFarTooMany = std::int64_t{1} << 40;
      std::int64_t devices = 1;
      for (const auto& [name, size] : given_mesh_) devices *= std::min(size, kFarTooMany / devices + 1);
      if (devices != out_.devices) {
        throw UserError(fmt::format("--mesh has {} devices, and {} runs on {}", devices, module_.file, out_.devices),
                        "the program's mesh, axis by axis as it was made, the last the innermost");
      }
    } else if (const NamedSizes named = mesh_in(module_.text); !named.empty()) {
      out_.mesh = named_mesh(named, "the HLO text");
    } else {
      out_.mesh = mesh_of(parts, out_.devices);
    }
    for (auto& [key, collective] : collectives_) collective.axis = axis_of(collective.groups);
    out_.arrays = shardings.arrays(out_.mesh);
    out_.sharded = shardings.products(out_.mesh);
    whole_shapes_ = !shardings.partitioned() && !out_.arrays.empty();
  }

  std::string axis_of(const HloGroups& groups) {
    if (groups.size < 2) return "";
    const auto axes =
        groups.pairs.empty() ? out_.mesh.axes_of(groups.factors) : std::optional(out_.mesh.axes_between(groups.pairs));
    if (axes && !axes->empty()) return out_.mesh.names(*axes);
    no_axes_ = true;
    return groups.axes;
  }

  void time() {
    double hidden = 0;
    for (auto& [work, sum] : works_) {
      out_.flops += sum.flops;
      out_.bytes += sum.bytes;
      out_.compute_s += sum.time_s;
      out_.works.push_back(sum);
    }
    for (auto& [key, collective] : collectives_) {
      out_.communication_s += collective.time_s.value_or(0);
      if (collective.asynchronous) hidden += collective.time_s.value_or(0);
      out_.collectives.push_back(std::move(collective));
    }
    for (auto& [what, product] : products_) out_.products.push_back(std::move(product));
    out_.most_s = out_.compute_s + out_.communication_s;
    out_.least_s = std::max(out_.compute_s, hidden) + (out_.communication_s - hidden);
    if (!out_.scheduled) out_.least_s = std::max(out_.compute_s, out_.communication_s);
    // The same sums in another order.
    if (out_.scheduled_s) out_.scheduled_s = std::clamp(*out_.scheduled_s, out_.least_s, out_.most_s);
    const auto longest = [](const auto& a, const auto& b) { return a.time_s > b.time_s; };
    std::stable_sort(out_.works.begin(), out_.works.end(), longest);
    std::stable_sort(out_.products.begin(), out_.products.end(), longest);
    std::stable_sort(out_.collectives.begin(), out_.collectives.end(), longest);
  }

  void assume() {
    const auto note = [&](std::string text, std::string key, bool warning) {
      out_.assumptions.push_back(Assumption{std::move(text), "", "the HLO text", warning}.as(key));
    };
    if (!out_.scheduled) {
      note("the module is not scheduled: XLA has yet to fuse and to insert collectives, so bytes are too many",
           "schedule", true);
    }
    note(out_.scheduled ? "memory: buffers live from the instruction of the schedule that makes them to the last that "
                          "reads them; XLA shares some more"
                        : "memory: not scheduled, so buffers live in the order of the text, before fusions",
         "memory", false);
    if (whole_shapes_)
      note("annotated but not partitioned: shapes, FLOPs and bytes are of all devices together", "partitioned", true);
    if (!out_.arrays.empty() && out_.sharded.empty() && !out_.products.empty()) {
      note(
          "no product has two operands whose annotations are known: what XLA optimized keeps those of parameters alone "
          "(lower().as_text() or the dump before optimizations has the others)",
          "annotations", false);
    }
    if (no_axes_) note("some groups begin or end within an axis of the mesh: they have no axis here", "mesh", true);
    if (unknown_loops_ > 0) {
      note(fmt::format("{} loops do not say how often they run: their bodies count once", unknown_loops_), "trip_count",
           true);
    }
    if (!other_rates_.empty()) {
      note(fmt::format("{}: {} publishes no other (on TPUs XLA's default precision multiplies fp32 in bf16)",
                       fmt::join(other_rates_, ", "), out_.hw.title),
           "matmul_rate", true);
    }
    if (conditional_) note("every branch of a conditional counts", "conditional", true);
    if (opaque_ > 0) {
      note(fmt::format("{} calls of kernels say no FLOPs (attention among them): their bytes alone count",
                       group_thousands(static_cast<long long>(opaque_))),
           "opaque_calls", true);
    }
    if (out_.hw.is_torus() && !out_.collectives.empty()) {
      note("each group lies on a wrapped axis of its own", "placement", false);
    }
    note(
        "operations run one after the other at the data sheet's rates; operands and results of a fusion pass HBM "
        "whole, also where it "
        "reads or updates a slice in place",
        "rates", false);
  }

  const HloModule& module_;
  mutable limits::Expansion steps_{limits::kHloSteps};
  const NamedSizes& given_mesh_;
  HloProgram out_;
  std::map<DeviceWork, HloWork> works_;
  std::map<std::string, HloCollective> collectives_;
  std::map<std::string, HloProduct> products_;
  std::set<std::string> other_rates_;  ///< formats that run at another's
  std::int64_t unknown_loops_ = 0;
  bool conditional_ = false;
  bool whole_shapes_ = false, no_axes_ = false;
  double opaque_ = 0;
  double communication_s_ = 0;  ///< of one run of what was walked: whether a call is of collectives
  int wrapped_ = 0;             ///< within async-start
};

}  // namespace

HloProgram hlo_program(const HloModule& module, const HardwareSpec& hw, const NamedSizes& mesh) {
  return ProgramCost(module, hw, mesh).run();
}

}  // namespace scalecalc
