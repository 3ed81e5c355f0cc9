// Turns a measured training row into a question with its layout pinned.
#include "validate/row_question.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <memory>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "import/hf_config.h"
#include "model/expert_load.h"
#include "network/tier_rates.h"
#include "spec/kept.h"
#include "spec/load.h"
#include "spec/load_stack.h"
#include "spec/months.h"
#include "train/run_class.h"

namespace scalecalc {
namespace {

// What a row's `recompute:` says, as the engine's policies.
struct RowRemat {
  std::optional<Remat> policy;         ///< absent: the row does not know
  std::optional<std::int64_t> layers;  ///< of each stage; 0 = all; absent with the policy
  std::uint8_t offload = 0;            ///< kOffload bits
  /// What selective remat runs again, where the row names modules; empty: what the stack says of it.
  std::vector<std::string> operations;
};

/// Megatron-LM's --recompute-modules (megatron/core/transformer/transformer_config.py) by the operations they run
/// again, and the greedy ones of MaxText's remat_policy (layers/decoders.py), which keep every matmul's output.
/// `mlp` is the MLP of dense layers, `moe` the layer of experts with its router.
struct Module {
  std::string_view name;
  std::vector<std::string> operations;
};

const std::vector<Module>& modules() {
  static const std::vector<Module> kAll{
      {"core_attn", {"attention"}},
      {"mlp", {"mlp gate projection", "mlp up projection", "mlp activation"}},
      {"mla_up_proj", {"query up-projection", "key/value up-projection"}},
      {"layernorm", {"norm output"}},
      {"moe_act", {"mlp activation"}},
      {"moe",
       {"router", "expert dispatch and combine", "expert gate projection", "expert up projection", "mlp activation",
        "expert down projection"}},
      {"minimal", {"norm output", "attention", "mlp activation"}},
      {"minimal_flash", {"norm output", "mlp activation"}},
  };
  return kAll;
}

/// "selective: mla_up_proj, mlp" and the like; nothing for other words.
std::optional<std::vector<std::string>> operations_of(std::string_view text) {
  constexpr std::string_view kStart = "selective: ";
  if (!text.starts_with(kStart)) return std::nullopt;
  text.remove_prefix(kStart.size());
  std::vector<std::string> out;
  while (!text.empty()) {
    const std::size_t comma = text.find(", ");
    const std::string_view word = text.substr(0, comma);
    const auto found =
        std::find_if(modules().begin(), modules().end(), [&](const Module& module) { return module.name == word; });
    if (found == modules().end()) return std::nullopt;
    out.insert(out.end(), found->operations.begin(), found->operations.end());
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 2);
  }
  return out;
}

std::optional<std::int64_t> number_at(std::string_view text, std::size_t at) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  return std::from_chars(text.data() + at, end, value).ec == std::errc() ? std::optional(value) : std::nullopt;
}

/// Layers of the model that "full on 15 of 61 layers", "full on 1 layer per virtual stage (32 of 61 layers)", "full (5
/// layers)" and "selective: every 2nd layer" recompute as a whole. The count stands last but for "of 61".
std::optional<double> layers_said(std::string_view text, std::int64_t layers) {
  if (text == "selective: every 2nd layer") return static_cast<double>(layers) / 2;
  if (!text.starts_with("full ") || text.find("layer") == std::string_view::npos) return std::nullopt;
  const std::size_t bracket = text.find('(');
  const std::size_t digit = text.find_first_of("0123456789", bracket == std::string_view::npos ? 0 : bracket);
  if (digit == std::string_view::npos) return std::nullopt;
  const auto found = number_at(text, digit);
  return found && *found > 0 && *found <= layers ? std::optional(static_cast<double>(*found)) : std::nullopt;
}

/// A count of layers of the whole model is dealt to the stages and rounded, at least one each: the engine treats as
/// many of every stage. `selective+offload` is `full` with offload: MaxText's policies of that kind name the few
/// tensors of a layer that go to the host, and the rest runs again. NotPredicted for words that are not known.
RowRemat remat_of(const Measurement& row, const ModelSpec& model, std::int64_t stages) {
  const std::int64_t layers = model.layers();
  std::string text = lower_case(row.recompute);
  RowRemat out;
  constexpr std::string_view kOffload = "+offload";
  if (text.ends_with(kOffload)) {
    text.erase(text.size() - kOffload.size());
    out.offload = kOffloadActivations;
    if (text == "selective") text = "full";
  }
  if (text == "unknown") return out;
  out.layers = 0;
  if (const auto said = layers_said(text, layers)) {
    out.policy = Remat::kFull;
    const auto stage = static_cast<std::int64_t>(std::lround(*said / static_cast<double>(stages)));
    if (*said < static_cast<double>(layers)) out.layers = std::max<std::int64_t>(1, stage);
    return out;
  }
  if (auto operations = operations_of(text)) {
    out.policy = Remat::kSelective;
    out.operations = std::move(*operations);
    return out;
  }
  // torchtitan's per-op policy is what its `selective` means.
  if (text == "selective" || text == "selective: per-op") {
    out.policy = Remat::kSelective;
  } else if (text == "none" || text == "full") {
    out.policy = text == "none" ? Remat::kNone : Remat::kFull;
  } else {
    throw NotPredicted("remat of chosen modules is not modelled", row.recompute);
  }
  return out;
}

template <class T>
struct Words {
  std::string_view start;  ///< of the row's text, in lower case
  T means;
};

/// What the first of the words that `said` begins with means.
template <class T, std::size_t N>
std::optional<T> first_meaning(const std::array<Words<T>, N>& words, const std::string& said) {
  const std::string text = lower_case(said);
  const auto found =
      std::find_if(words.begin(), words.end(), [&](const Words<T>& w) { return text.starts_with(w.start); });
  return found == words.end() ? std::nullopt : std::optional(found->means);
}

/// What sources call the engine's precisions; the first that fits.
constexpr std::array<Words<std::string_view>, 8> kPrecisions{{{"bf16", "bf16"},
                                                              {"fp16", "fp16"},
                                                              {"mxfp8", "fp8"},
                                                              {"fp8", "fp8"},
                                                              {"tf32", "tf32"},
                                                              {"fp32", "fp32"},
                                                              {"nvfp4", "nvfp4"},
                                                              {"int8", "int8"}}};

/// What sources call where scales come from; the first that fits. Recipes of "fp8" alone are as their software does.
constexpr std::array<Words<Scaling>, 8> kScalings{{{"fp8-cs", Scaling::kCurrent},
                                                   {"fp8-tensorwise", Scaling::kCurrent},
                                                   {"fp8-hybrid", Scaling::kDelayed},
                                                   {"fp8-te", Scaling::kDelayed},
                                                   {"fp8-rowwise", Scaling::kRow},
                                                   {"fp8-blockwise", Scaling::kBlock},
                                                   {"mxfp8", Scaling::kBlock},
                                                   {"nvfp4", Scaling::kBlock}}};

/// What the engine cannot express. One line each, to be taken out as it learns them.
void refuse_inexpressible(const Measurement& row) {
  const auto refuse = [](const char* reason, const std::string& detail) { throw NotPredicted(reason, detail); };
  const bool adapters = row.workload == "lora" || lower_case(row.optimizer).find("adapters") != std::string::npos;
  if (adapters && !row.asked.fine_tune) refuse("which adapters trained is not known", row.workload);
}

/// What sources call the engine's schedules; the first that fits. ZB-1P keeps 1F1B's memory, as the engine's ZB-H1 does
/// (arXiv:2401.10241).
constexpr std::array<Words<Schedule>, 8> kSchedules{{{"gpipe", Schedule::kGpipe},
                                                     {"1f1b-i", Schedule::kInterleaved},
                                                     {"1f1b", Schedule::k1F1B},
                                                     {"interleaved", Schedule::kInterleaved},
                                                     {"dualpipe", Schedule::kDualPipe},
                                                     {"non-interleaved", Schedule::k1F1B},
                                                     {"zb-1p", Schedule::kZeroBubble},
                                                     {"zb-h1", Schedule::kZeroBubble}}};

/// Words that are no schedule of a pipeline leave it open; those of a zero-bubble schedule with more memory, or whose
/// chunks lie in a V (arXiv:2405.15362), do not.
std::optional<Schedule> schedule_of(const RowLayout& l) {
  const std::string text = lower_case(l.schedule);
  if (l.pp.value_or(1) == 1 || text.empty()) return std::nullopt;
  if (const auto found = first_meaning(kSchedules, text)) return found;
  if (text.starts_with("zb") || text.starts_with("v-") || text.find("zero") != std::string::npos) {
    throw NotPredicted("the schedule is not modelled", l.schedule);
  }
  return std::nullopt;
}

std::optional<CpComm> cp_comm_of(const RowLayout& l) {
  const std::string text = lower_case(l.cp_comm);
  if (l.cp.value_or(1) == 1 || text.empty()) return std::nullopt;
  for (int i = 0; i < kCpCommCount; ++i) {
    if (text == name_of(static_cast<CpComm>(i))) return static_cast<CpComm>(i);
  }
  throw NotPredicted("the exchange between context ranks is not modelled", l.cp_comm);
}

/// Where a source counts degrees in cores, two of which make a chip of this catalog, they multiply to twice the chips.
/// A chip's cores are neighbours: they are taken out of the innermost dimension that has them.
void count_in_chips(const Measurement& row, RowLayout& l) {
  const auto of = [](const std::optional<std::int64_t>& degree) { return degree.value_or(1); };
  if (!l.dp) return;
  const std::int64_t ranks = of(l.dp) * of(l.tp) * of(l.cp) * of(l.pp);
  // Weights may be sharded over the cores of every data rank's chip; the engine shards over chips.
  if (l.fsdp && *l.fsdp == 2 * *l.dp) l.fsdp = l.dp;
  if (ranks == row.chips) return;
  if (ranks == 2 * row.chips && of(l.tp) % 2 == 0) {
    l.tp = of(l.tp) / 2;
  } else if (ranks == 2 * row.chips && of(l.dp) % 2 == 0 && of(l.fsdp) % 2 == 0) {
    l.dp = of(l.dp) / 2;
    l.fsdp = of(l.fsdp) / 2;
    if (l.micro_batch) l.micro_batch = 2 * *l.micro_batch;
  } else {
    throw NotPredicted("the degrees do not multiply to the chips",
                       fmt::format("{} ranks on {} chips", ranks, row.chips));
  }
}

void pin_data(const RowLayout& l, LayoutFilter& fix) {
  if (!l.zero) return;
  fix.zero = l.zero;
  if (*l.zero < 3) {
    const std::int64_t group = l.zero_group.value_or(1);
    const bool within = l.dp && *l.zero > 0 && group > 1 && group < *l.dp;
    if (within && *l.dp % group != 0) {
      throw NotPredicted("the degrees do not multiply to the chips",
                         fmt::format("groups of {} in dp {}", group, *l.dp));
    }
    fix.fsdp = within ? group : 1;
    fix.dp = within ? *l.dp / group : l.dp;
    return;
  }
  if (!l.dp) return;
  const std::int64_t shards = l.fsdp.value_or(*l.dp);
  if (*l.dp % shards != 0) {
    throw NotPredicted("the degrees do not multiply to the chips", fmt::format("fsdp {} of dp {}", shards, *l.dp));
  }
  fix.fsdp = shards;
  fix.dp = *l.dp / shards;
}

void pin_layout(const Measurement& row, const ModelSpec& model, const StackMemory& memory, TrainQuestion& q) {
  RowLayout l = row.layout;
  if (!memory.regathers_in_pipeline && l.zero == 3 && l.pp.value_or(1) > 1) l.zero = 1;
  count_in_chips(row, l);
  LayoutFilter& fix = q.fix;
  pin_data(l, fix);
  // Degrees a source leaves out while it states the data ways are one.
  const auto degree = [&](const std::optional<std::int64_t>& value) {
    return l.dp && !value ? std::optional<std::int64_t>(1) : value;
  };
  fix.tp = degree(l.tp);
  fix.cp = degree(l.cp);
  fix.pp = degree(l.pp);
  fix.vpp = fix.pp == 1 ? std::optional<std::int64_t>(1) : l.vpp;
  fix.schedule = schedule_of(l);
  if (fix.schedule == Schedule::kInterleaved && fix.vpp == 1) fix.vpp.reset();
  // Where a row names neither schedule nor chunks, the frameworks' default ran.
  if (!fix.schedule && fix.vpp.value_or(1) == 1) fix.schedule = Schedule::k1F1B;
  if (fix.schedule && fix.schedule != Schedule::kInterleaved) fix.vpp = 1;
  if (l.sp && fix.tp != 1) fix.sp = *l.sp ? 1 : 0;
  if (model.moe) {
    fix.ep = degree(l.ep);
    fix.etp = l.etp;
  }
  fix.micro_batch_seqs = l.micro_batch;
  fix.cp_comm = cp_comm_of(l);
  const RowRemat remat = remat_of(row, model, fix.pp.value_or(1));
  fix.remat = remat.policy;
  fix.remat_layers = remat.layers;
  q.recomputed = remat.operations;
  // What a row does not say to lie with the host does not.
  fix.offload = static_cast<std::uint8_t>(remat.offload | fix.offload.value_or(0));
  fix.offload_layers = 0;
  // Compiled runs fuse the loss.
  const bool fused = q.fused_loss.value_or(q.compiled.value_or(false));
  if (!fix.loss) fix.loss = fused ? LossKind::kFused : LossKind::kWhole;
  q.fused_loss = fused && fix.loss == LossKind::kChunked;
  fix.split.emplace();  // dealt as its stack does, or as the row says
}

/// What the search is left to choose.
std::vector<std::string> open_dimensions(const LayoutFilter& fix, bool experts) {
  std::vector<std::string> out;
  const auto note = [&](const auto& pin, const char* name) {
    if (!pin) out.emplace_back(name);
  };
  note(fix.zero, "zero");
  note(fix.tp, "tp");
  note(fix.cp, "cp");
  if (fix.cp != 1) note(fix.cp_comm, "cp_comm");
  note(fix.pp, "pp");
  note(fix.vpp, "vpp");
  if (fix.tp != 1) note(fix.sp, "sp");
  if (experts) note(fix.ep, "ep");
  if (experts && fix.tp != 1) note(fix.etp, "etp");
  note(fix.micro_batch_seqs, "micro_batch_seqs");
  note(fix.remat, "remat");
  return out;
}

std::int64_t slices_of_row(const Measurement& row, const HardwareSpec& hw) {
  if (!hw.is_torus() || row.slices > 0) return std::max<std::int64_t>(1, row.slices);
  const std::int64_t torus = row.scaleup_domain;
  return torus > 0 && row.chips > torus && row.chips % torus == 0 ? row.chips / torus : 1;
}

/// The optimizer as `train` knows it, of "AdamW, ZeRO".
std::string optimizer_word(const Measurement& row) {
  const std::string name = lower_case(row.optimizer.substr(0, row.optimizer.find_first_of(" ,")));
  return name == "adamw" ? "adam" : name;
}

/// What the row says of captured graphs and of expert overlap, or else the recipes of its release.
void choose_recipe(const Measurement& row, const Catalog& catalog, bool moe, TrainQuestion& q) {
  const bool said = q.graphs || q.fix.ep_overlap;
  if (!q.fix.ep_overlap) q.fix.ep_overlap = false;
  if (said || row.stack.empty() || !moe) return;
  const std::string month = month_of(row.date);
  const auto stack = stack_spec(catalog, row.stack);
  for (const RecipeDefaults& recipe : stack->recipes) {
    if (month.empty() || month < month_of(recipe.since) || !lower_case(row.precision).starts_with(recipe.precision))
      continue;
    q.graphs = recipe.step_graph ? GraphCapture::kStep : GraphCapture::kNone;
    q.fix.ep_overlap = recipe.expert_overlap;
  }
}

/// What only a mixture of experts is asked. Where a framework has both dispatchers, DeepEP must be asked for, and who
/// did says so.
void choose_experts(const Measurement& row, const Catalog& catalog, bool moe, TrainQuestion& q) {
  if (!moe) {
    q.dispatch.reset();
    q.balanced_experts = false;
    q.expert_capacity.reset();
    q.expert_load.clear();
    if (q.fine_tune) q.fine_tune->experts.reset();
    return;
  }
  if (q.expert_capacity) q.expert_load.clear();  // all multiply as much
  if (!q.dispatch && !stack_runtime(catalog, row.stack).deepep_since.empty()) q.dispatch = ExpertDispatch::kAllToAll;
}

/// A run whose source says what lay with the host had a host that held it, whatever the chip's file says of hosts.
void trust_host(const HardwareSpec& hw, TrainQuestion& q) {
  if (q.fix.offload.value_or(0) != 0 && hw.host_memory().value() <= 0) q.set.emplace_back("hw.host.ram=1000000TiB");
}

TrainQuestion question_of(const Measurement& row, const Catalog& catalog, const ModelSpec& model,
                          const HardwareSpec& hw) {
  TrainQuestion q = row.asked;
  q.model = row.model;
  q.hardware = row.chip;
  q.chips = row.chips;
  q.slices = slices_of_row(row, hw);
  q.seq = row.seq;
  q.batch_seqs = row.batch_seqs;
  q.precision = precision_word(row);
  if (q.precision == "fp8" && !q.fp8_recipe) q.fp8_recipe = first_meaning(kScalings, row.precision);
  q.optimizer = optimizer_word(row);
  q.stack = row.stack;
  q.framework = row.framework;
  q.as_of = row.date;
  if (hw.is_torus() || row.chips <= chips_inside(hw)) {
    q.node_bandwidth.reset();
  } else if (q.node_bandwidth && row.chips_per_node > 0) {
    *q.node_bandwidth *= static_cast<double>(hw.chips_per_host) / static_cast<double>(row.chips_per_node);
  }
  pin_layout(row, model, stack_memory(catalog, row.stack), q);
  choose_recipe(row, catalog, model.moe.has_value(), q);
  choose_experts(row, catalog, model.moe.has_value(), q);
  if (q.fix.schedule == Schedule::kDualPipe) q.fix.ep_overlap.reset();  // which always does it
  trust_host(hw, q);
  return q;
}

}  // namespace

HardwareSpec chip_of(const MeasuredFacts& row, const Catalog& catalog, const std::vector<std::string>& set,
                     std::initializer_list<std::string_view> needs) {
  const auto load = [&] {
    ConfigNode document;
    try {
      document = catalog.load(CatalogKind::kHardware, row.chip);
    } catch (const UserError& error) {
      throw NotPredicted("the chip is not known", with_nearest(error));
    }
    apply_sets(set, {{"hw", &document}});
    return load_hardware(document, catalog, Unpublished::kAllowed);
  };
  HardwareSpec hw = *kept<HardwareSpec>(catalog, fmt::format("chip of a row\n{}\n{}", row.chip, join(set, "\n")), load);
  try {
    require_published(hw, needs);
    if (row.chips > 1) require_published(hw, {"network"});
  } catch (const UserError& error) {
    throw NotPredicted("the chip's figures are not published", error.diagnostics().front().message);
  }
  return hw;
}

void name_stacks(std::vector<Measurement>& rows, const Catalog& catalog) {
  std::map<std::string, std::string> known;
  std::vector<StackSpec> stacks;
  for (const std::string& name : catalog.names(CatalogKind::kStack)) {
    stacks.push_back(*stack_spec(catalog, name));
  }
  for (Measurement& row : rows) {
    const auto [at, added] = known.try_emplace(row.framework);
    if (added) at->second = stack_of_framework(catalog, row.framework).value_or("");
    row.stack = at->second;
    if (row.stack.empty()) {
      row.stack = stack_of_source(stacks, row.framework + " " + row.reference + " " + row.source).value_or("");
    }
    try {
      row.run_class = name_of(run_class(model_of(row, catalog), row.seq, row.chips));
    } catch (const NotPredicted&) {
      row.run_class.clear();
    }
  }
}

std::string precision_word(const Measurement& row) {
  const auto found = first_meaning(kPrecisions, row.precision);
  return found ? std::string(*found) : lower_case(row.precision);
}

RowQuestion row_question(const Measurement& row, const Catalog& catalog, const std::vector<std::string>& set,
                         bool ideal) {
  refuse_inexpressible(row);
  const ModelSpec model = model_of(row, catalog);
  const HardwareSpec hw = chip_of(row, catalog, set, {"compute.matmul", "hbm", "host"});
  RowQuestion out{.asked = question_of(row, catalog, model, hw)};
  TrainQuestion& q = out.asked;
  q.set.insert(q.set.end(), set.begin(), set.end());
  q.ideal = ideal;
  const auto own = std::find_if(hw.stacks.begin(), hw.stacks.end(),
                                [&](const StackCoefficients& s) { return s.name == row.stack && !s.serves; });
  if (own != hw.stacks.end()) out.basis = own->basis;
  q.rates = own == hw.stacks.end() ? "" : own->name;
  try {
    out.resolved = resolve(q, catalog, model);
  } catch (const UserError& error) {
    throw NotPredicted("train refuses the question", error.diagnostics().front().message);
  }
  out.chosen = open_dimensions(q.fix, model.moe.has_value());
  return out;
}

}  // namespace scalecalc
