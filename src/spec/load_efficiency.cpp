#include "spec/load_efficiency.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace scalecalc {
namespace {

constexpr Range kFraction{1e-4, 1};

/// Reads coefficients from one map; remembers which were given, so that the answer can say whose they are.
class CoefficientReader {
 public:
  CoefficientReader(const ConfigNode& node, std::string what, Problems& problems, bool required)
      : fields_(node, std::move(what), problems), required_(required) {}

  void read(const char* key, UnitKind kind, Range range, Coefficient& out) {
    if (!fields_.has(key)) {
      if (required_) fields_.problems().add(fields_.span(), fmt::format("missing '{}' in {}", key, fields_.what()));
      return;
    }
    Fields one(*fields_.node(key), fmt::format("{}.{}", fields_.what(), key), fields_.problems());
    out.value = one.quantity("value", kind, range);
    out.error = one.optional_quantity("error", UnitKind::kFraction, {0, 1}).value_or(0);
    out.source = one.text("source");
    one.optional_text("note");
    one.finish();
    given_.push_back(key);
  }

  Fields& fields() { return fields_; }
  const std::vector<std::string>& given() const { return given_; }
  void note_given(const std::string& key) { given_.push_back(key); }

 private:
  Fields fields_;
  bool required_;
  std::vector<std::string> given_;
};

void read_matmul(CoefficientReader& reader, Efficiency& out, Problems& problems, bool required) {
  const ConfigNode* node = reader.fields().node("matmul");
  if (node == nullptr) {
    if (required) problems.add(reader.fields().span(), "missing 'matmul' in efficiency");
    return;
  }
  CoefficientReader rates(*node, "efficiency.matmul", problems, false);
  Coefficient otherwise;
  const bool has_default = rates.fields().has("default");
  if (has_default) {
    rates.read("default", UnitKind::kFraction, kFraction, otherwise);
    reader.note_given("matmul");
  }
  if (required && !has_default) problems.add(node->span, "efficiency.matmul needs a default");
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const std::string key(kDTypeNames[i]);
    if (rates.fields().has(key)) {
      rates.read(key.c_str(), UnitKind::kFraction, kFraction, out.matmul[i]);
      reader.note_given("matmul." + key);
    } else if (has_default) {
      out.matmul[i] = otherwise;
    }
  }
  rates.fields().finish();
}

void read_pair(CoefficientReader& reader, const char* key, Problems& problems, bool required, Range range,
               Coefficient& scale_up, Coefficient& scale_out) {
  const ConfigNode* node = reader.fields().node(key);
  if (node == nullptr) {
    if (required) problems.add(reader.fields().span(), fmt::format("missing '{}' in efficiency", key));
    return;
  }
  CoefficientReader pair(*node, fmt::format("efficiency.{}", key), problems, required);
  pair.read("scale_up", UnitKind::kFraction, range, scale_up);
  pair.read("scale_out", UnitKind::kFraction, range, scale_out);
  for (const std::string& given : pair.given()) reader.note_given(fmt::format("{}.{}", key, given));
  pair.fields().finish();
}

void read_overlap(CoefficientReader& reader, Efficiency& out, Problems& problems, bool required) {
  const ConfigNode* node = reader.fields().node("overlap");
  if (node == nullptr) {
    if (required) problems.add(reader.fields().span(), "missing 'overlap' in efficiency");
    return;
  }
  constexpr Range kShare{0, 1};
  CoefficientReader overlap(*node, "efficiency.overlap", problems, required);
  overlap.read("tp", UnitKind::kFraction, kShare, out.overlap_tp);
  overlap.read("fsdp", UnitKind::kFraction, kShare, out.overlap_fsdp);
  overlap.read("dp", UnitKind::kFraction, kShare, out.overlap_dp);
  overlap.read("cp", UnitKind::kFraction, kShare, out.overlap_cp);
  overlap.read("cp_gather", UnitKind::kFraction, kShare, out.overlap_cp_gather);
  overlap.read("ep", UnitKind::kFraction, kShare, out.overlap_ep);
  overlap.read("ep_paired", UnitKind::kFraction, kShare, out.overlap_ep_paired);
  overlap.read("host", UnitKind::kFraction, kShare, out.overlap_host);
  overlap.read("pp", UnitKind::kFraction, kShare, out.overlap_pp);
  for (const std::string& given : overlap.given()) reader.note_given("overlap." + given);
  overlap.fields().finish();
}

void read_all(CoefficientReader& reader, Efficiency& out, Problems& problems, bool required) {
  read_matmul(reader, out, problems, required);
  reader.read("matmul_half_dim", UnitKind::kNumber, {0, 4096}, out.matmul_half_dim);
  reader.read("grouped_matmul", UnitKind::kFraction, kFraction, out.grouped_matmul);
  reader.read("grouped_half_rows", UnitKind::kNumber, {0, 65536}, out.grouped_half_rows);
  reader.read("attention_forward", UnitKind::kFraction, kFraction, out.attention_forward);
  reader.read("attention_backward", UnitKind::kFraction, kFraction, out.attention_backward);
  reader.read("vector", UnitKind::kFraction, kFraction, out.vector);
  reader.read("hbm", UnitKind::kFraction, kFraction, out.hbm);
  read_pair(reader, "link", problems, required, kFraction, out.link_scale_up, out.link_scale_out);
  reader.read("kernel_overhead", UnitKind::kSeconds, {0, 1e-2}, out.kernel_overhead);
  read_overlap(reader, out, problems, required);
  read_pair(reader, "contention", problems, required, {0, 1}, out.contention_scale_up, out.contention_scale_out);
  reader.read("in_network_gain", UnitKind::kNumber, {1, 2}, out.in_network_gain);
  reader.read("moe_imbalance", UnitKind::kNumber, {1, 10}, out.moe_imbalance);
  reader.read("step_overhead", UnitKind::kSeconds, {0, 3600}, out.step_overhead);
  reader.read("memory_reserve", UnitKind::kBytes, {0, 1e12}, out.memory_reserve);
}

}  // namespace

Efficiency load_efficiency(const ConfigNode& family, const ConfigNode* own, Problems& problems) {
  Efficiency out;
  CoefficientReader base(family, "efficiency", problems, true);
  base.fields().word("schema", {"scalecalc-efficiency/1"});
  const std::string name = base.fields().text("name");
  base.fields().text("title");
  base.fields().text_list("aliases");
  base.fields().node("sources");
  base.fields().optional_text("note");
  out.stack = base.fields().text("stack");
  const std::string date = base.fields().text("date");
  out.basis = fmt::format("{} ({})", base.fields().text("basis"), date);
  read_all(base, out, problems, true);
  base.fields().finish();
  out.confidence = fmt::format("the {} family's defaults", name);
  if (own != nullptr) {
    CoefficientReader chip(*own, "efficiency", problems, false);
    read_all(chip, out, problems, false);
    chip.fields().finish();
    out.confidence = fmt::format("{} of this chip; the rest the {} family's defaults", join_and(chip.given()), name);
  }
  return out;
}

Efficiency ideal_efficiency(const Efficiency& calibrated) {
  Efficiency out;
  out.stack = "ideal";
  out.basis = "roofline bound: full rates, perfect overlap, no overhead (scaling book, chapter 1)";
  out.confidence = "exact arithmetic of an upper bound";
  out.memory_reserve = calibrated.memory_reserve;
  // Ring reductions move 2(n-1)/n of the buffer; a switch that reduces receives it once (book, chapter 12).
  out.in_network_gain.value = 2;
  return out;
}

namespace {

/// Moves every coefficient by `sign` times its error towards speed. Shares stay within 0..1, an imbalance above 1.
Efficiency moved(const Efficiency& efficiency, double sign) {
  Efficiency out = efficiency;
  const auto share = [&](Coefficient& c) { c.value = std::clamp(c.value * (1 + sign * c.error), 1e-6, 1.0); };
  const auto cost = [&](Coefficient& c, double least) { c.value = std::max(least, c.value * (1 - sign * c.error)); };
  for (Coefficient& c : out.matmul) share(c);
  for (Coefficient* c : {&out.grouped_matmul, &out.attention_forward, &out.attention_backward, &out.vector, &out.hbm,
                         &out.link_scale_up, &out.link_scale_out, &out.overlap_tp, &out.overlap_fsdp, &out.overlap_dp,
                         &out.overlap_cp, &out.overlap_cp_gather, &out.overlap_ep, &out.overlap_ep_paired, &out.overlap_pp,
                         &out.overlap_host}) {
    share(*c);
  }
  for (Coefficient* c : {&out.matmul_half_dim, &out.grouped_half_rows, &out.kernel_overhead, &out.contention_scale_up,
                         &out.contention_scale_out, &out.step_overhead}) {
    cost(*c, 0);
  }
  cost(out.moe_imbalance, 1);
  out.in_network_gain.value = std::clamp(out.in_network_gain.value * (1 + sign * out.in_network_gain.error), 1.0, 2.0);
  return out;
}

}  // namespace

Efficiency fastest(const Efficiency& efficiency) { return moved(efficiency, 1); }
Efficiency slowest(const Efficiency& efficiency) { return moved(efficiency, -1); }

}  // namespace scalecalc
