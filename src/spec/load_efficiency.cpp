// Reads efficiency coefficients of a chip and lets the blocks of stacks replace them.
#include "spec/load_efficiency.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "spec/load_stack.h"

namespace scalecalc {
namespace {

constexpr Range kFraction{1e-4, 1};
constexpr Range kFactor{0.01, 100};

/// How the coefficients of a map are read.
struct Manner {
  bool required = false;         ///< every one must be there
  bool typed_only = false;       ///< those that --set changed, and no other
  bool factors = false;          ///< what they are multiplied by, and not their values
  bool either = false;           ///< one or the other
  bool inherits = false;         ///< what --set alone gives keeps error and source of the level below
  std::string_view source = {};  ///< of those that name none
};

/// Reads coefficients from one map; remembers which were given, so that the answer can say whose they are.
class CoefficientReader {
 public:
  CoefficientReader(const ConfigNode& node, std::string what, Problems& problems, const Manner& manner)
      : fields_(node, std::move(what), problems), manner_(manner) {}

  /// Whether it was given.
  bool read(const char* key, UnitKind kind, Range range, Coefficient& out) {
    if (!fields_.has(key)) {
      missing(key);
      return false;
    }
    const ConfigNode& node = *fields_.node(key);
    const bool said = typed(node);  // by --set, which leaves the rest of a coefficient as it is
    if (manner_.typed_only && !said) return false;
    Fields one(node, fmt::format("{}.{}", fields_.what(), key), fields_.problems());
    if (manner_.factors || (manner_.either && one.has("times"))) {
      out.value = std::clamp(out.value * one.quantity("times", UnitKind::kNumber, kFactor), range.min, range.max);
    } else if (!said || one.has("value")) {
      out.value = one.quantity("value", kind, range);
    }
    out.typed = said;
    read_error_and_source(one, out);
    one.optional_text("note");
    one.finish();
    given_.push_back(key);
    return true;
  }

  /// A map of coefficients inside this one; nothing if there is none.
  std::optional<CoefficientReader> inner(const char* key) {
    const ConfigNode* node = fields_.node(key);
    if (node != nullptr)
      return CoefficientReader(*node, fmt::format("{}.{}", fields_.what(), key), fields_.problems(), manner_);
    missing(key);
    return std::nullopt;
  }
  void take_given(const char* key, const CoefficientReader& inner) {
    for (const std::string& given : inner.given_) given_.push_back(fmt::format("{}.{}", key, given));
  }

  Fields& fields() { return fields_; }
  const Manner& manner() const { return manner_; }
  const std::vector<std::string>& given() const { return given_; }

 private:
  static bool typed(const ConfigNode& node) {
    return std::any_of(node.entries.begin(), node.entries.end(),
                       [](const ConfigNode::Entry& entry) { return entry.value.span.file.str() == "<command line>"; });
  }

  void read_error_and_source(Fields& one, Coefficient& out) const {
    const bool inherits = manner_.inherits && out.typed && !one.has("source");
    out.error = one.optional_quantity("error", UnitKind::kFraction, {0, 1}).value_or(inherits ? out.error : 0);
    if (inherits) return;
    out.source =
        manner_.source.empty() ? one.text("source") : one.optional_text("source").value_or(std::string(manner_.source));
  }

  void missing(const char* key) {
    if (!manner_.required) return;
    fields_.problems().add(fields_.span(), fmt::format("missing '{}' in {}", key, fields_.what()));
  }

  Fields fields_;
  Manner manner_;
  std::vector<std::string> given_;
};

void read_matmul(CoefficientReader& reader, Efficiency& out) {
  std::optional<CoefficientReader> rates = reader.inner("matmul");
  if (!rates) return;
  Coefficient otherwise;
  const bool has_default =
      rates->fields().has("default") && rates->read("default", UnitKind::kFraction, kFraction, otherwise);
  if (reader.manner().required && !has_default) {
    rates->fields().problems().add(rates->fields().span(), "efficiency.matmul needs a default");
  }
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    const std::string key(kDTypeNames[i]);
    if (rates->fields().has(key)) {
      rates->read(key.c_str(), UnitKind::kFraction, kFraction, out.matmul[i]);
    } else if (has_default) {
      out.matmul[i] = otherwise;
    }
  }
  rates->fields().finish();
  reader.take_given("matmul", *rates);
}

void read_pair(CoefficientReader& reader, const char* key, UnitKind kind, Range range, Coefficient& scale_up,
               Coefficient& scale_out) {
  std::optional<CoefficientReader> pair = reader.inner(key);
  if (!pair) return;
  pair->read("scale_up", kind, range, scale_up);
  pair->read("scale_out", kind, range, scale_out);
  pair->fields().finish();
  reader.take_given(key, *pair);
}

void read_overlap(CoefficientReader& reader, Efficiency& out) {
  std::optional<CoefficientReader> overlap = reader.inner("overlap");
  if (!overlap) return;
  const auto share = [&](const char* key, Coefficient& c) { overlap->read(key, UnitKind::kFraction, {0, 1}, c); };
  share("tp", out.overlap_tp);
  share("tp_pipelined", out.overlap_tp_pipelined);
  share("fsdp", out.overlap_fsdp);
  share("dp", out.overlap_dp);
  share("cp", out.overlap_cp);
  share("cp_gather", out.overlap_cp_gather);
  share("ep", out.overlap_ep);
  share("ep_paired", out.overlap_ep_paired);
  share("host", out.overlap_host);
  share("pp", out.overlap_pp);
  overlap->fields().finish();
  reader.take_given("overlap", *overlap);
}

/// Optional in training, where the network's own latency stands for what was not measured.
void read_latencies(CoefficientReader& reader, bool optional, CollectiveKernels& out) {
  const auto asked = [&](const char* key) { return !optional || reader.fields().has(key); };
  if (asked("latency"))
    read_pair(reader, "latency", UnitKind::kSeconds, {0, 1}, out.latency_scale_up, out.latency_scale_out);
  if (asked("latency_growth")) reader.read("latency_growth", UnitKind::kNumber, {0, 4}, out.latency_growth);
  if (optional && asked("ring_hop"))
    read_pair(reader, "ring_hop", UnitKind::kSeconds, {0, 1e-2}, out.ring_hop_scale_up, out.ring_hop_scale_out);
  if (asked("exchange_latency"))
    read_pair(reader, "exchange_latency", UnitKind::kSeconds, {0, 1}, out.all_to_all_scale_up,
              out.all_to_all_scale_out);
}

/// Optional, and a value even among factors: no formula has it.
void read_model_error(CoefficientReader& reader, Efficiency& out) {
  const ConfigNode* node = reader.fields().node("model_error");
  if (node == nullptr) return;
  Fields classes(*node, reader.fields().what() + ".model_error", reader.fields().problems());
  for (std::size_t i = 0; i < kRunClassNames.size(); ++i) {
    const ConfigNode* of = classes.node(kRunClassNames[i]);
    const bool wanted = of != nullptr && (!reader.manner().typed_only || of->span.file.str() == "<command line>");
    if (wanted) out.model_error[i] = classes.quantity(kRunClassNames[i], UnitKind::kFraction, {0, 1});
  }
  classes.optional_text("source");
  classes.optional_text("note");
  classes.finish();
}

/// Optional everywhere: a chip of which nobody measured serving has none, and the answer says so.
void read_serving_block(CoefficientReader& reader, Efficiency& out) {
  if (!reader.fields().has("serving")) return;
  std::optional<CoefficientReader> block = reader.inner("serving");
  ServingEfficiency& s = out.serving;
  block->read("weight_read", UnitKind::kFraction, kFraction, s.weight_read);
  block->read("kv_read", UnitKind::kFraction, kFraction, s.kv_read);
  block->read("dequantise", UnitKind::kFraction, kFraction, s.dequantise);
  block->read("expert_read", UnitKind::kFraction, kFraction, s.expert_read);
  block->read("matmul", UnitKind::kNumber, {1e-4, 2}, s.matmul);
  block->read("attention_forward", UnitKind::kFraction, kFraction, s.attention_forward);
  block->read("grouped_matmul", UnitKind::kFraction, kFraction, s.grouped_matmul);
  block->read("grouped_half_rows", UnitKind::kNumber, {0, 65536}, s.grouped_half_rows);
  block->read("blend", UnitKind::kFraction, {0, 1}, s.blend);
  block->read("overlap", UnitKind::kFraction, {0, 1}, s.overlap);
  block->read("expert_imbalance", UnitKind::kNumber, {1, 10}, s.expert_imbalance);
  block->read("expert_skew", UnitKind::kNumber, {0, 10}, s.expert_skew);
  block->read("layer_overhead", UnitKind::kSeconds, {0, 1}, s.layer_overhead);
  block->read("step_overhead", UnitKind::kSeconds, {0, 1}, s.step_overhead);
  block->read("sequence_overhead", UnitKind::kSeconds, {0, 1}, s.sequence_overhead);
  read_latencies(*block, false, s);
  block->read("collective_ramp", UnitKind::kSeconds, {0, 1}, s.collective_ramp);
  block->read("collective_factor", UnitKind::kNumber, {0.05, 20}, s.collective_factor);
  block->read("occupancy", UnitKind::kFraction, {0.1, 1}, s.occupancy);
  block->fields().finish();
  out.has_serving = out.has_serving || !block->given().empty();
  reader.take_given("serving", *block);
}

/// A recurrence of which nothing is said runs at the rate that the same place gives attention. What is typed of the one
/// says nothing of the other.
void read_attention(CoefficientReader& reader, Efficiency& out) {
  const auto both = [&](const char* attention, Coefficient& of, const char* scan, Coefficient& of_scan) {
    const bool given = reader.read(attention, UnitKind::kFraction, kFraction, of);
    if (reader.fields().has(scan)) {
      reader.read(scan, UnitKind::kFraction, kFraction, of_scan);
    } else if (given && !of.typed) {
      of_scan = of;
    }
  };
  both("attention_forward", out.attention_forward, "scan_forward", out.scan_forward);
  both("attention_backward", out.attention_backward, "scan_backward", out.scan_backward);
}

void read_all(CoefficientReader& reader, Efficiency& out) {
  read_matmul(reader, out);
  for (const auto& [key, scaled] : {std::pair{"row_scaled", &out.row_scaled}, {"block_scaled", &out.block_scaled}}) {
    if (reader.fields().has(key)) reader.read(key, UnitKind::kFraction, kFraction, *scaled);
  }
  reader.read("matmul_half_dim", UnitKind::kNumber, {0, 4096}, out.matmul_half_dim);
  reader.read("grouped_matmul", UnitKind::kFraction, kFraction, out.grouped_matmul);
  reader.read("grouped_half_rows", UnitKind::kNumber, {0, 65536}, out.grouped_half_rows);
  read_attention(reader, out);
  reader.read("attention_half_context", UnitKind::kNumber, {0, 65536}, out.attention_half_context);
  reader.read("attention_half_head_dim", UnitKind::kNumber, {0, 4096}, out.attention_half_head_dim);
  reader.read("attention_head_width", UnitKind::kNumber, {1, 4096}, out.attention_head_width);
  reader.read("vector", UnitKind::kFraction, kFraction, out.vector);
  reader.read("hbm", UnitKind::kFraction, kFraction, out.hbm);
  reader.read("cast", UnitKind::kFraction, {0, 1}, out.cast);
  if (std::optional<CoefficientReader> link = reader.inner("link")) {
    link->read("scale_up", UnitKind::kFraction, kFraction, out.link_scale_up);
    link->read("scale_out", UnitKind::kFraction, kFraction, out.link_scale_out);
    link->read("host", UnitKind::kFraction, kFraction, out.link_host);
    link->fields().finish();
    reader.take_given("link", *link);
  }
  reader.read("kernel_overhead", UnitKind::kSeconds, {0, 1e-2}, out.kernel_overhead);
  reader.read("expert_overhead", UnitKind::kSeconds, {0, 1}, out.expert_overhead);
  reader.read("host_overhead", UnitKind::kSeconds, {0, 1e-2}, out.host_overhead);
  reader.read("captured_share", UnitKind::kFraction, {0, 1}, out.captured_share);
  read_latencies(reader, true, out.collectives);
  read_overlap(reader, out);
  read_pair(reader, "contention", UnitKind::kFraction, {0, 1}, out.contention_scale_up, out.contention_scale_out);
  reader.read("in_network_gain", UnitKind::kNumber, {1, 2}, out.in_network_gain);
  reader.read("moe_imbalance", UnitKind::kNumber, {1, 10}, out.moe_imbalance);
  reader.read("step_overhead", UnitKind::kSeconds, {0, 3600}, out.step_overhead);
  if (reader.fields().has("scale_loss")) reader.read("scale_loss", UnitKind::kFraction, {0, 1}, out.scale_loss);
  reader.read("memory_reserve", UnitKind::kBytes, {0, 1e12}, out.memory_reserve);
  read_model_error(reader, out);
  read_serving_block(reader, out);
}

struct Family {
  std::string name;
  std::string small_model_stack;
  Efficiency efficiency;
};

Family read_family(const ConfigNode& document, Problems& problems) {
  Family out;
  CoefficientReader base(document, "efficiency", problems, {.required = true});
  base.fields().schema("scalecalc-efficiency/1");
  out.name = base.fields().text("name");
  base.fields().text("title");
  base.fields().text_list("aliases");
  base.fields().node("sources");
  base.fields().node("architectures");
  base.fields().node("stacks");
  base.fields().optional_text("note");
  out.efficiency.stack = base.fields().text("stack");
  base.fields().optional_text("engine");  // serve/serve_resolve: usual_engine
  out.small_model_stack = base.fields().optional_text("small_model_stack").value_or("");
  const std::string date = base.fields().text("date");
  out.efficiency.basis = fmt::format("{} ({})", base.fields().text("basis"), date);
  read_all(base, out.efficiency);
  base.fields().finish();
  return out;
}

/// `inherits: family` is of rates that are not the data sheet's, to which what was measured of it does not apply.
bool inherits_architecture(const ConfigNode* own) {
  const ConfigNode* said = own == nullptr ? nullptr : own->find("inherits");
  return said == nullptr || said->text != "family";
}

/// Reads what the chips of one architecture share from the family's file and returns which coefficients that are.
std::vector<std::string> read_architecture(const ConfigNode& family, HardwareSpec& hw, Problems& problems) {
  const ConfigNode* all = family.find("architectures");
  const ConfigNode* shared = all == nullptr || hw.architecture.empty() ? nullptr : all->find(hw.architecture);
  if (shared == nullptr) return {};
  CoefficientReader reader(*shared, fmt::format("architectures.{}", hw.architecture), problems, {});
  read_all(reader, hw.efficiency);
  reader.fields().finish();
  return reader.given();
}

/// Says which level each coefficient is of: "hbm of this chip; the rest the nvidia family's defaults".
std::string confidence_of(const std::vector<std::string>& own, const std::vector<std::string>& shared,
                          const std::string& architecture, const std::string& family) {
  std::string out;
  if (!own.empty()) out += join_and(own) + " of this chip; ";
  if (!shared.empty()) out += fmt::format("{} of its architecture, {}; ", join_and(shared), architecture);
  return fmt::format("{}{}the {} family's defaults", out, out.empty() ? "" : "the rest ", family);
}

/// Other names of a stack that the catalog knows; a stack of a user's own needs no file.
std::vector<std::string> frameworks_of(const std::string& stack, const std::vector<std::string>& known,
                                       const Catalog& catalog) {
  if (std::find(known.begin(), known.end(), stack) == known.end()) return {};
  return stack_spec(catalog, stack)->frameworks;
}

/// What --set gives in the chip's own block was said last and holds for every stack.
void read_typed(const ConfigNode& own, Efficiency& out) {
  Problems reported_before;
  CoefficientReader typed(own, "efficiency", reported_before, {.typed_only = true, .inherits = true});
  read_all(typed, out);
}

/// "hbm and link.scale_up", or how many if that would be a long list.
std::string counted(const std::vector<std::string>& names) {
  constexpr std::size_t kFew = 3;
  return names.size() <= kFew ? join_and(names) : fmt::format("{} coefficients", names.size());
}

/// A stack's coefficients on the chip: of its own file, or of its family's as factors on the chip's.
StackCoefficients read_stack(const ConfigNode::Entry& entry, StackBasis basis, const HardwareSpec& hw,
                             const ConfigNode* own, Problems& problems) {
  StackCoefficients out{.name = entry.key, .frameworks = {}, .basis = basis, .efficiency = hw.efficiency};
  out.serves = entry.value.find("serving") != nullptr;
  Efficiency& e = out.efficiency;
  const ConfigNode* named = entry.value.find("source");
  const std::string source = named == nullptr ? "" : named->text;
  const bool factors = basis == StackBasis::kFamily;
  CoefficientReader reader(entry.value, "efficiency.stacks." + entry.key, problems,
                           {.factors = factors, .either = !factors, .source = source});
  reader.fields().optional_text("source");
  const std::optional<std::string> note = reader.fields().optional_text("note");
  read_all(reader, e);
  reader.fields().finish();
  if (own != nullptr) read_typed(*own, e);
  e.stack = entry.key;
  e.fitted = source;
  if (!source.empty()) e.basis = fmt::format("{}; the rest: {}", source, hw.efficiency.basis);
  e.confidence = fmt::format("{} {} under {}{}; the rest: {}", counted(reader.given()),
                             factors ? "by factors of the " + hw.family + " family" : "of this chip", entry.key,
                             source.empty() ? "" : " (" + source + ")", hw.efficiency.confidence);
  if (reader.given().empty() && note) {
    e.not_fitted = *note;
    e.confidence = fmt::format("not fitted under {} ({}); {}", entry.key, *note, hw.efficiency.confidence);
  }
  return out;
}

/// The stacks of a file, each in place of one of its name that is there already.
void read_stacks(const ConfigNode* stacks, StackBasis basis, const ConfigNode* own, HardwareSpec& hw,
                 Problems& problems) {
  if (stacks == nullptr) return;
  if (stacks->kind != ConfigNode::Kind::kMap) {
    problems.add(stacks->span, "efficiency.stacks must map a stack's name to its coefficients");
    return;
  }
  for (const ConfigNode::Entry& entry : stacks->entries) {
    StackCoefficients read = read_stack(entry, basis, hw, own, problems);
    const auto there = std::find_if(hw.stacks.begin(), hw.stacks.end(),
                                    [&](const StackCoefficients& s) { return s.name == read.name; });
    if (there == hw.stacks.end()) {
      hw.stacks.push_back(std::move(read));
    } else {
      *there = std::move(read);
    }
  }
}

}  // namespace

void load_efficiency(const ConfigNode& family, const ConfigNode* own, const Catalog& catalog, HardwareSpec& hw,
                     Problems& problems) {
  const Family base = read_family(family, problems);
  hw.efficiency = base.efficiency;
  std::vector<std::string> shared;
  if (inherits_architecture(own)) shared = read_architecture(family, hw, problems);
  std::vector<std::string> given;
  const ConfigNode* stacks = nullptr;
  if (own != nullptr) {
    CoefficientReader chip(*own, "efficiency", problems, {.inherits = true});
    stacks = chip.fields().node("stacks");
    chip.fields().optional_word("inherits", {"architecture", "family"});
    read_all(chip, hw.efficiency);
    chip.fields().finish();
    given = chip.given();
  }
  hw.efficiency.confidence = confidence_of(given, shared, hw.architecture, base.name);
  hw.stacks = {{.name = base.efficiency.stack, .frameworks = {}, .efficiency = hw.efficiency}};
  read_stacks(family.find("stacks"), StackBasis::kFamily, own, hw, problems);
  read_stacks(stacks, StackBasis::kChip, own, hw, problems);
  const std::vector<std::string> known = catalog.names(CatalogKind::kStack);
  for (StackCoefficients& stack : hw.stacks) stack.frameworks = frameworks_of(stack.name, known, catalog);
  if (coefficients_under(hw, base.small_model_stack) != nullptr) hw.small_model_stack = base.small_model_stack;
}

const StackCoefficients* coefficients_under(const HardwareSpec& hw, std::string_view stack) {
  const auto found = std::find_if(hw.stacks.begin(), hw.stacks.end(), [&](const StackCoefficients& s) {
    return s.name == stack || std::find(s.frameworks.begin(), s.frameworks.end(), stack) != s.frameworks.end();
  });
  return found == hw.stacks.end() ? nullptr : &*found;
}

const Efficiency& efficiency_under(const HardwareSpec& hw, std::string_view stack) {
  if (stack.empty()) return hw.stacks.empty() ? hw.efficiency : hw.stacks.front().efficiency;
  std::vector<std::string> names;
  std::vector<std::string> all;
  for (const StackCoefficients& s : hw.stacks) {
    if (s.serves) continue;
    const bool alias = std::find(s.frameworks.begin(), s.frameworks.end(), stack) != s.frameworks.end();
    if (s.name == stack || alias) return s.efficiency;
    names.push_back(s.name);
    all.push_back(s.name);
    all.insert(all.end(), s.frameworks.begin(), s.frameworks.end());
  }
  const std::string near = did_you_mean(nearest(stack, all));
  throw UserError(fmt::format("{} has no coefficients under the software stack {}", hw.name, in_quotes(stack)),
                  fmt::format("{}{}it has: {}", near, near.empty() ? "" : " ", join(names, ", ")));
}

Efficiency ideal_efficiency(const Efficiency& calibrated) {
  Efficiency out;
  out.stack = "ideal";
  out.basis = "roofline bound: full rates, perfect overlap, no overhead (scaling book, chapter 1)";
  out.confidence = "exact arithmetic of an upper bound";
  out.memory_reserve = calibrated.memory_reserve;
  ServingEfficiency& s = out.serving;
  for (Coefficient* c : {&s.weight_read, &s.kv_read, &s.attention_forward, &s.grouped_matmul}) c->value = 1;
  out.has_serving = true;
  // Ring reductions move 2(n-1)/n of the buffer; a switch that reduces receives it once (book, chapter 12).
  out.in_network_gain.value = 2;
  return out;
}

namespace {

/// Those of serving, whose shares of 0 mean that training's is used, which moves by itself.
void move_serving(ServingEfficiency& s, double sign) {
  for (Coefficient* c : {&s.weight_read, &s.kv_read, &s.dequantise, &s.expert_read, &s.attention_forward,
                         &s.grouped_matmul, &s.overlap, &s.occupancy}) {
    c->value = std::min(c->value * (1 + sign * c->error), 1.0);
  }
  for (Coefficient* c : {&s.grouped_half_rows, &s.blend, &s.layer_overhead, &s.step_overhead, &s.sequence_overhead,
                         &s.latency_scale_up, &s.latency_scale_out, &s.latency_growth, &s.all_to_all_scale_up,
                         &s.all_to_all_scale_out, &s.collective_ramp, &s.collective_factor}) {
    c->value *= 1 - sign * c->error;
  }
  s.expert_imbalance.value = std::max(1.0, s.expert_imbalance.value * (1 - sign * s.expert_imbalance.error));
  s.expert_skew.value *= 1 + sign * s.expert_skew.error;  // fewer experts are read
  s.matmul.value *= 1 + sign * s.matmul.error;
}

/// Moves every coefficient by `sign` times its error towards speed. Shares stay within 0..1, an imbalance above 1.
Efficiency moved(const Efficiency& efficiency, double sign) {
  Efficiency out = efficiency;
  const auto share = [&](Coefficient& c) { c.value = std::clamp(c.value * (1 + sign * c.error), 1e-6, 1.0); };
  const auto cost = [&](Coefficient& c, double least) { c.value = std::max(least, c.value * (1 - sign * c.error)); };
  for (Coefficient& c : out.matmul) share(c);
  for (Coefficient* c : {&out.grouped_matmul,
                         &out.row_scaled,
                         &out.block_scaled,
                         &out.attention_forward,
                         &out.attention_backward,
                         &out.scan_forward,
                         &out.scan_backward,
                         &out.vector,
                         &out.hbm,
                         &out.link_scale_up,
                         &out.link_scale_out,
                         &out.link_host,
                         &out.overlap_tp,
                         &out.overlap_tp_pipelined,
                         &out.overlap_fsdp,
                         &out.overlap_dp,
                         &out.overlap_cp,
                         &out.overlap_cp_gather,
                         &out.overlap_ep,
                         &out.overlap_ep_paired,
                         &out.overlap_pp,
                         &out.overlap_host}) {
    share(*c);
  }
  for (Coefficient* c :
       {&out.matmul_half_dim, &out.attention_half_context, &out.attention_half_head_dim, &out.grouped_half_rows,
        &out.kernel_overhead, &out.contention_scale_up, &out.contention_scale_out, &out.expert_overhead,
        &out.host_overhead, &out.captured_share, &out.cast, &out.step_overhead, &out.scale_loss}) {
    cost(*c, 0);
  }
  CollectiveKernels& k = out.collectives;
  for (Coefficient* c : {&k.latency_scale_up, &k.latency_scale_out, &k.all_to_all_scale_up, &k.all_to_all_scale_out,
                         &k.ring_hop_scale_up, &k.ring_hop_scale_out}) {
    cost(*c, std::min(c->value, 1e-9));  // at 0 the network's own latency, and no ring, would count
  }
  cost(k.latency_growth, 0);
  cost(out.moe_imbalance, 1);
  move_serving(out.serving, sign);
  out.in_network_gain.value = std::clamp(out.in_network_gain.value * (1 + sign * out.in_network_gain.error), 1.0, 2.0);
  return out;
}

}  // namespace

Efficiency fastest(const Efficiency& efficiency) { return moved(efficiency, 1); }
Efficiency slowest(const Efficiency& efficiency) { return moved(efficiency, -1); }

}  // namespace scalecalc
