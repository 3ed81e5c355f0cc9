// The one table of what makes a layout legal, a row for each rule. The search cuts by the rows, --why-not, `lint` and
// errors speak their sentences, `bounds` and the serving half ask them too. What a release of a stack cannot launch is
// said in the same way by the `supports:` rows of its file (plan/stack_supports.h). A new rule is a row and its test.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/request.h"

namespace scalecalc {

/// Dimensions that a rule reads, a bit each.
using RuleReads = std::uint32_t;
namespace reads {
inline constexpr RuleReads kTpWays = 1U << 0U, kCpWays = 1U << 1U, kCpComm = 1U << 2U, kEpWays = 1U << 3U,
                           kEtp = 1U << 4U, kSp = 1U << 5U, kPp = 1U << 6U, kVpp = 1U << 7U, kSchedule = 1U << 8U,
                           kSplit = 1U << 9U,
                           kData = 1U << 10U,  ///< dp x fsdp, however they share it
    kMb = 1U << 11U, kGa = 1U << 12U, kOverlap = 1U << 13U, kZero = 1U << 14U, kDpWays = 1U << 15U,
                           kFsdpWays = 1U << 16U, kRecipe = 1U << 17U,  ///< remat and offload
    kEngine = 1U << 18U;                                                ///< what an engine alone has
inline constexpr RuleReads kInner = kTpWays | kCpWays | kCpComm | kEpWays | kEtp | kSp;
inline constexpr RuleReads kPipeline = kPp | kVpp | kSchedule | kSplit;
inline constexpr RuleReads kRanks = kInner | kPp | kData | kMb | kGa;
/// What divides the model's work over chips, without how a pipeline or the state is kept.
inline constexpr RuleReads kDegrees = kTpWays | kSp | kCpWays | kPp | kEpWays | kEtp | kData;
}  // namespace reads

/// Where the search has decided all that a rule reads.
enum class RuleStage : std::uint8_t {
  kTensor,
  kContext,
  kExchange,
  kExperts,
  kInner,
  kStages,
  kBatch,
  kPipeline,
  kRanks,
  kMembers,
  kOverlap,
  kSharding,
  kRecipe
};

/// The earliest stage for a rule that reads these.
constexpr RuleStage stage_of(RuleReads read) {
  using namespace reads;
  constexpr std::array<std::pair<RuleStage, RuleReads>, 12> kDecided{
      {{RuleStage::kTensor, kTpWays},
       {RuleStage::kContext, kTpWays | kCpWays},
       {RuleStage::kExchange, kTpWays | kCpWays | kCpComm},
       {RuleStage::kExperts, kInner & ~kSp},
       {RuleStage::kInner, kInner},
       {RuleStage::kStages, kPp},
       {RuleStage::kBatch, kPp | kData},
       {RuleStage::kPipeline, kPipeline},
       {RuleStage::kRanks, kRanks},
       {RuleStage::kMembers, kRanks | kPipeline},
       {RuleStage::kOverlap, kRanks | kPipeline | kOverlap},
       {RuleStage::kSharding, kRanks | kPipeline | kOverlap | kZero | kDpWays | kFsdpWays}}};
  for (const auto& [stage, decided] : kDecided) {
    if ((read & ~decided) == 0) return stage;
  }
  return RuleStage::kRecipe;
}

/// What an engine's layout has beside the dimensions of `Layout`.
struct EngineRanks {
  std::int64_t attention_dp = 1;  ///< groups that attend to sequences of their own and share experts
  std::int64_t tp_x = 1;          ///< of the tensor ranks, the ways d_model is divided
  bool in_two = false;            ///< weights divided in two dimensions
  bool gathered = false;          ///< weights gathered, sequences divided
  std::int64_t copies = 0;        ///< of experts that are dealt with them

  bool divides_otherwise() const { return in_two || gathered; }
  std::string_view scheme() const { return gathered ? "gathered" : in_two ? "2d" : "1d"; }
};

/// What a layout is judged for.
struct RuleSubject {
  const ModelSpec* model = nullptr;
  const Workload* workload = nullptr;  ///< of training
  std::int64_t chips = 1;
  const EngineRanks* engine = nullptr;  ///< of serving; null: of training

  bool serves() const { return engine != nullptr; }
  /// Ranks of which each has whole heads: gathered weights meet whole, two-dimensional ones share heads in one factor.
  std::int64_t head_ranks(const Layout& l) const;
  /// Ranks that the widths are divided over: an engine's context ranks share them outside attention.
  std::int64_t width_ranks(const Layout& l) const;
  std::int64_t experts() const;  ///< with an engine's copies; 0 of a dense model
};

/// The pins of a question, for sentences that depend on them.
struct PinnedCase {
  const PlanRequest* request = nullptr;  ///< about training
  std::int64_t degrees = 1;              ///< about serving: the product of those pinned
  std::optional<std::int64_t> data;      ///< ranks, where the pins say how many
  std::vector<std::int64_t> shares;      ///< sequences that each may run, where that is known
};

struct RuleCase {
  const RuleSubject& subject;
  const Layout& layout;              ///< with what leaves the other rules alone where nothing is pinned
  const PinnedCase* pins = nullptr;  ///< null: the whole layout is meant

  const EngineRanks& engine() const { return *subject.engine; }
};

enum class RuleScope : std::uint8_t { kTraining, kServing, kBoth };
/// Who makes a rule.
enum class ImposedBy : std::uint8_t { kArithmetic, kModel, kPipelining, kSharding, kLaunchers };
std::string_view name_of(ImposedBy by);

/// How the search keeps a rule: it asks, or walks legal values only (a property test holds it to that).
enum class RuleForm : std::uint8_t { kAsked, kValues };

struct LayoutRule {
  std::string_view name;
  RuleReads reads = 0;
  RuleForm form = RuleForm::kAsked;
  bool (*breaks)(const RuleSubject&, const Layout&) = nullptr;
  /// The sentence, with what is in braces filled in (sentences_of); empty with no `say` too: no pin can break it, for
  /// none asks for such a value.
  std::string_view says;
  ImposedBy by = ImposedBy::kArithmetic;
  std::string_view source;
  /// Adds the sentences in the place of `says` where one text is not enough.
  void (*say)(const RuleCase&, std::vector<std::string>& out) = nullptr;
  std::optional<Reject> counts{};  ///< what the search calls what it cuts
  RuleReads needs = 0;             ///< pins without which nothing is said
  bool pins_decide = false;        ///< `say` finds out whether pins break it
  RuleScope scope = RuleScope::kTraining;

  // What few rows have, said behind them.
  constexpr LayoutRule cuts(Reject as) const {
    LayoutRule out = *this;
    out.counts = as;
    return out;
  }
  constexpr LayoutRule said_by(void (*speaker)(const RuleCase&, std::vector<std::string>&)) const {
    LayoutRule out = *this;
    out.say = speaker;
    return out;
  }
  constexpr LayoutRule after(RuleReads pins) const {
    LayoutRule out = *this;
    out.needs = pins;
    return out;
  }
  constexpr LayoutRule by_its_pins() const {
    LayoutRule out = *this;
    out.pins_decide = true;
    return out;
  }
  constexpr LayoutRule of(RuleScope whom) const {
    LayoutRule out = *this;
    out.scope = whom;
    return out;
  }
  constexpr LayoutRule both() const { return of(RuleScope::kBoth); }

  constexpr bool speaks() const { return say != nullptr || !says.empty(); }
  constexpr bool concerns(bool serving) const {
    return scope == RuleScope::kBoth || (scope == RuleScope::kServing) == serving;
  }
};

// What rows and the search compute alike, once for both.

/// How many sequences a data rank may run: the batch divided by the ranks, rounded down and up, as long as the total
/// stays close to the batch that was asked for. At most two values, the smaller first.
struct RankShares {
  std::array<std::int64_t, 2> values{};
  std::size_t count = 0;
  const std::int64_t* begin() const { return values.data(); }
  const std::int64_t* end() const { return values.data() + count; }
};
RankShares rank_shares(const Workload& workload, std::int64_t data);

/// The expert group folds over the data, context and (with etp = 1) tensor ranks.
constexpr bool experts_fold(const Layout& l, std::int64_t data) { return data * l.cp * (l.tp / l.etp) % l.ep == 0; }

/// Schedules that stand for one chunk a stage, for several, or for either (the circular pipeline of JAX).
constexpr bool takes_one_chunk(Schedule schedule) { return schedule != Schedule::kInterleaved; }
constexpr bool takes_chunks(Schedule schedule) {
  return schedule == Schedule::kInterleaved || schedule == Schedule::kGpipe;
}

/// The degree above 1 without which a dimension decides nothing ("tp" of "sp"); empty where it always does.
std::string_view matters_with(std::string_view dimension);

namespace rule {
using S = RuleSubject;
using L = Layout;

bool heads(const S& s, const L& l);
bool widths(const S& s, const L& l);
bool ulysses_mixers(const S& s, const L& l);
bool ulysses_heads(const S& s, const L& l);
bool ring_mixers(const S& s, const L& l);
bool ends(const S& s, const L& l);
bool stages(const S& s, const L& l);
bool chunks(const S& s, const L& l);
bool sequences(const S& s, const L& l);
bool treated_layers(const S& s, const L& l);
bool offloaded_layers(const S& s, const L& l);

inline bool dual(const L& l) { return l.schedule == Schedule::kDualPipe; }
inline bool split_backward(const L& l) { return splits_backward(l.schedule); }
/// Data ranks that share one optimizer's state, or weights.
inline std::int64_t shards(const L& l) { return l.fsdp * l.cp; }

using Out = std::vector<std::string>;
void say_heads(const RuleCase& c, Out& out);
void say_widths(const RuleCase& c, Out& out);
void say_ulysses_heads(const RuleCase& c, Out& out);
void say_stages(const RuleCase& c, Out& out);
void say_pairs(const RuleCase& c, Out& out);
void say_no_experts(const RuleCase& c, Out& out);
void say_unsharded(const RuleCase& c, Out& out);
void say_zero3(const RuleCase& c, Out& out);
void say_product(const RuleCase& c, Out& out);
void say_batch(const RuleCase& c, Out& out);
void say_groups(const RuleCase& c, Out& out);
void say_sequences(const RuleCase& c, Out& out);
void say_engine_product(const RuleCase& c, Out& out);
}  // namespace rule

namespace rule_source {
inline constexpr std::string_view kMegatron = "NVIDIA/Megatron-LM megatron/training/arguments.py validate_args",
                                  kLayers = "docs/model.md", kUlysses = "arXiv:2309.14509", kRing = "arXiv:2310.01889",
                                  kLlama3 = "arXiv:2407.21783", kInterleaved = "arXiv:2104.04473",
                                  kDualPipe = "deepseek-ai/DualPipe dualpipe/dualpipe.py",
                                  kZeroBubble = "arXiv:2401.10241", kZero = "arXiv:1910.02054",
                                  kPope = "arXiv:2211.05102";
}  // namespace rule_source

/// In the order in which they are said. Of one stage, what comes first is what the search counts.
inline constexpr auto kLayoutRules = [] {
  using namespace reads;
  using enum ImposedBy;
  using enum RuleForm;
  namespace from = rule_source;
  using S = RuleSubject;
  using L = Layout;
  return std::to_array({
      LayoutRule{"heads-by-tp", kTpWays, kAsked, rule::heads, "",
                 kModel, from::kMegatron}.said_by(rule::say_heads).cuts(Reject::kHeads).both(),
      LayoutRule{"widths-by-tp", kTpWays, kAsked, rule::widths, "",
                 kModel, from::kMegatron}.said_by(rule::say_widths).cuts(Reject::kWidth).both(),
      LayoutRule{"engine-degrees-make-chips", kRanks | kEngine, kValues,
                 [](const S& s, const L& l) { return l.chips() * s.engine->attention_dp != s.chips; }, "",
                 kArithmetic, from::kLayers}.said_by(rule::say_engine_product).by_its_pins().of(RuleScope::kServing),
      // Causal load balancing cuts the sequence into 2 cp pieces.
      LayoutRule{"sequence-by-cp", kCpWays, kAsked,
                 [](const S& s, const L& l) { return l.cp > 1 && s.workload->seq % (2 * l.cp) != 0; },
                 "sequences of {seq} do not divide into 2 x cp {cp} pieces",
                 kLaunchers, from::kLlama3}.cuts(Reject::kSequence),
      LayoutRule{"ulysses-attention", kCpComm, kAsked, rule::ulysses_mixers,
                 "Ulysses needs plain attention in every layer, which {model} has not: cp_comm is all-gather or ring",
                 kModel, from::kUlysses}.cuts(Reject::kContext),
      LayoutRule{"ulysses-heads", kTpWays | kCpWays | kCpComm, kAsked, rule::ulysses_heads, "",
                 kModel, from::kUlysses}.said_by(rule::say_ulysses_heads).cuts(Reject::kContext),
      LayoutRule{"ring-attention", kCpComm, kAsked, rule::ring_mixers,
                 "a ring passes keys and values on, and {model} has no attention layer: cp_comm is all-gather",
                 kModel, from::kRing}.cuts(Reject::kContext),
      LayoutRule{"exchange-of-one", kCpWays | kCpComm, kValues,
                 [](const S&, const L& l) { return l.cp == 1 && l.cp_comm != CpComm::kAllGather; }, "",
                 kArithmetic, from::kLayers},
      LayoutRule{"shards-by-tp", kTpWays | kCpWays | kSp, kAsked,
                 [](const S& s, const L& l) { return l.sp && s.workload->seq / l.cp % l.tp != 0; },
                 "sequence sharding (sp 1) cuts {shard} tokens over tp {tp}, which does not divide them",
                 kLaunchers, from::kMegatron}.cuts(Reject::kSequence),
      // Expert routing works on sequence shards.
      LayoutRule{"experts-with-shards", kTpWays | kEpWays | kSp, kAsked,
                 [](const S&, const L& l) { return !l.sp && l.tp > 1 && l.ep > 1; },
                 "ep {ep} beside tp {tp} needs sequence sharding (sp 1)", kLaunchers, from::kMegatron}.after(kSp),
      LayoutRule{"shards-of-one", kTpWays | kSp, kValues, [](const S&, const L& l) { return l.sp && l.tp == 1; }, "",
                 kArithmetic, from::kLayers},
      LayoutRule{"ends-of-stages", kPp | kSplit, kValues,
                 [](const S&, const L& l) { return l.split.chosen() && l.pp == 1; }, "split {split} needs pp above 1",
                 kArithmetic, from::kLayers}.after(kPp),
      LayoutRule{"ends-by-schedule", kPipeline, kValues,
                 [](const S&, const L& l) {
                   return l.split.chosen() && l.schedule != Schedule::kNone && !may_choose_ends(l.schedule, l.vpp);
                 },
                 "split {split} is of 1F1B and GPipe without virtual stages", kPipelining, from::kLayers},
      LayoutRule{"ends-by-layers", kPipeline, kAsked, rule::ends,
                 "split {split} cannot deal {layers} layers to {pp} chunks",
                 kModel, from::kLayers}.cuts(Reject::kStages),
      LayoutRule{"stages-by-layers", kPp, kAsked, rule::stages, "",
                 kModel, from::kMegatron}.said_by(rule::say_stages).cuts(Reject::kStages).both(),
      LayoutRule{"chunks-of-stages", kPp | kVpp, kValues, [](const S&, const L& l) { return l.vpp > 1 && l.pp == 1; },
                 "vpp {vpp} needs pp above 1", kArithmetic, from::kInterleaved}.after(kPp | kVpp),
      // The layers, or the layers with embedding, head and MTP modules counted as one each.
      LayoutRule{"chunks-by-layers", kPp | kVpp, kAsked, rule::chunks,
                 "pp {pp} x vpp {vpp} = {chunks} chunks divide neither {layers} layers nor {ends} with embedding "
                 "and head",
                 kModel, from::kMegatron}.cuts(Reject::kStages).after(kPp | kVpp),
      LayoutRule{"schedule-of-stages", kPp | kSchedule, kValues,
                 [](const S&, const L& l) {
                   return l.pp == 1 && (l.schedule == Schedule::kInterleaved || splits_backward(l.schedule));
                 },
                 "the {schedule} schedule needs pp above 1", kPipelining, from::kZeroBubble}.after(kPp),
      LayoutRule{"schedule-or-none", kPp | kSchedule, kValues,
                 [](const S&, const L& l) { return (l.pp == 1) != (l.schedule == Schedule::kNone); }, "",
                 kArithmetic, from::kLayers},
      LayoutRule{"even-stages", kPp | kSchedule, kAsked,
                 [](const S&, const L& l) { return rule::dual(l) && l.pp > 1 && l.pp % 2 != 0; },
                 "DualPipe pairs stages: pp {pp} is odd", kPipelining, from::kDualPipe}.cuts(Reject::kStages),
      // Gathering and scattering for every microbatch from both ends is what no implementation does.
      LayoutRule{"zero-by-schedule", kSchedule | kZero, kValues,
                 [](const S&, const L& l) { return rule::dual(l) && l.zero > 1; },
                 "DualPipe runs with zero 0 or 1, not {zero}", kPipelining, from::kDualPipe}.after(kZero),
      LayoutRule{"groups-by-schedule", kSchedule | kZero | kFsdpWays, kValues,
                 [](const S&, const L& l) { return rule::dual(l) && l.zero == 1 && l.fsdp > 1; }, "",
                 kPipelining, from::kDualPipe},
      LayoutRule{"several-chunks", kVpp | kSchedule, kValues,
                 [](const S&, const L& l) { return l.vpp == 1 && !takes_one_chunk(l.schedule); },
                 "the {schedule} schedule needs vpp above 1", kPipelining, from::kInterleaved}.after(kVpp),
      LayoutRule{"one-chunk", kVpp | kSchedule, kValues,
                 [](const S&, const L& l) {
                   return l.vpp > 1 && l.schedule != Schedule::kNone && !takes_chunks(l.schedule);
                 },
                 "vpp {vpp} is the interleaved schedule or GPipe, not {schedule}", kPipelining, from::kInterleaved},
      // As many microbatches from either end, and pp of them at least.
      LayoutRule{"pairs-of-microbatches", kPp | kSchedule | kGa, kAsked,
                 [](const S&, const L& l) {
                   return rule::dual(l) && (l.grad_accum % 2 != 0 || l.grad_accum < 2 * l.pp);
                 },
                 "",
                 kPipelining, from::kDualPipe}.said_by(rule::say_pairs).cuts(Reject::kMicrobatches).after(kPp | kGa),
      LayoutRule{"overlap-by-schedule", kEpWays | kSchedule | kOverlap, kAsked,
                 [](const S&, const L& l) { return !l.ep_overlap && rule::dual(l) && l.ep > 1; },
                 "DualPipe always runs expert all-to-alls under another microbatch's compute: ep_overlap is 1",
                 kPipelining, from::kDualPipe},
      LayoutRule{"attention-ranks-of-experts", kEngine, kAsked,
                 [](const S& s, const L&) { return s.engine->attention_dp > 1 && !s.model->moe; },
                 "attention_dp shares experts, of which the model has none: use dp",
                 kModel, from::kLayers}.of(RuleScope::kServing),
      LayoutRule{"experts-of-model", kEpWays | kEtp, kValues,
                 [](const S& s, const L& l) { return !s.model->moe && (l.ep > 1 || (!s.serves() && l.etp > 1)); }, "",
                 kModel, from::kLayers}.said_by(rule::say_no_experts).both(),
      LayoutRule{"experts-by-ep", kEpWays, kValues,
                 [](const S& s, const L& l) { return s.model->moe && s.experts() % l.ep != 0; },
                 "ep {ep} does not divide the {experts} experts{copies}", kModel, from::kMegatron}.both(),
      LayoutRule{"etp-or-one", kTpWays | kEtp, kValues,
                 [](const S& s, const L& l) { return s.model->moe && l.etp != 1 && l.etp != l.tp; },
                 "etp is 1 or tp {tp}, not {etp}", kLaunchers, from::kMegatron}.after(kTpWays),
      LayoutRule{"expert-width-by-etp", kEtp, kAsked,
                 [](const S& s, const L& l) { return s.model->moe && s.model->moe->d_ff % l.etp != 0; },
                 "etp {etp} does not divide the experts' d_ff {expert_width}",
                 kModel, from::kMegatron}.cuts(Reject::kExperts).both(),
      LayoutRule{"experts-over-ranks", kTpWays | kCpWays | kEpWays | kEtp | kData, kAsked,
                 [](const S&, const L& l) { return l.ep > 1 && !experts_fold(l, l.data()); },
                 "ep {ep} does not fold over {data} data x {cp} context x {beside} tensor ranks",
                 kArithmetic, from::kMegatron}.cuts(Reject::kExperts).after(kTpWays | kEpWays | kEtp | kData),
      // There must be a second microbatch to compute meanwhile.
      LayoutRule{"overlapped-microbatches", kEpWays | kGa | kOverlap | kSchedule, kAsked,
                 [](const S&, const L& l) { return l.ep_overlap && l.grad_accum == 1 && !rule::dual(l); },
                 "ep_overlap 1 computes another microbatch meanwhile: ga is 2 at least, not 1",
                 kArithmetic, from::kLayers}.after(kGa | kOverlap),
      LayoutRule{"overlap-of-one", kEpWays | kOverlap, kValues,
                 [](const S&, const L& l) { return l.ep == 1 && l.ep_overlap; }, "", kArithmetic, from::kLayers},
      LayoutRule{"policy-of-treated", kRecipe, kValues,
                 [](const S&, const L& l) { return l.remat == Remat::kNone && l.remat_layers > 0; },
                 "remat none treats no layers: {treated} of them need a policy", kArithmetic, from::kLayers},
      // A policy for some layers leaves at least one of each kind alone.
      LayoutRule{"treated-by-stage", kRecipe | kPp, kValues, rule::treated_layers,
                 "remat {remat}:{treated} treats some layers of a stage, and the largest has {largest}: for all of "
                 "them, remat {remat}",
                 kArithmetic, from::kLayers},
      LayoutRule{"offloaded-by-stage", kRecipe | kPp, kValues, rule::offloaded_layers,
                 "offload {offload}:{offloaded} moves some layers of a stage, and the largest has {largest}: for all "
                 "of them, offload {offload}",
                 kArithmetic, from::kLayers},
      LayoutRule{"one-count-of-layers", kRecipe, kValues,
                 [](const S&, const L& l) { return l.remat_layers > 0 && l.offload_layers > 0; },
                 "remat of {treated} layers and offload of {offloaded}: no launcher counts layers for both",
                 kLaunchers, from::kLayers},
      // ZeRO-3 shards weights over fsdp x cp ranks; under ZeRO-1 and 2 fsdp is the ranks that share the optimizer's.
      LayoutRule{"fsdp-by-zero", kZero | kFsdpWays, kValues,
                 [](const S&, const L& l) { return l.zero == 0 && l.fsdp > 1; }, "",
                 kSharding, from::kZero}.said_by(rule::say_unsharded),
      LayoutRule{"zero-3-by-fsdp", kZero | kDpWays | kFsdpWays | kCpWays, kValues,
                 [](const S&, const L& l) { return l.zero == 3 && rule::shards(l) == 1 && l.dp > 1; }, "",
                 kSharding, from::kZero}.said_by(rule::say_zero3).after(kZero | kDpWays),
      LayoutRule{"experts-in-shards", kZero | kFsdpWays | kCpWays | kTpWays | kEtp | kEpWays, kAsked,
                 [](const S&, const L& l) {
                   return (l.zero == 3 || l.fsdp > 1) && l.ep > 1 && rule::shards(l) * (l.tp / l.etp) % l.ep != 0;
                 },
                 "zero 3 keeps a group of experts inside its shards: ep {ep} does not fold over fsdp {fsdp} x cp "
                 "{cp}{x_tp}",
                 kSharding, from::kZero}.cuts(Reject::kExperts).after(kZero | kFsdpWays | kCpWays | kTpWays | kEpWays),
      LayoutRule{"degrees-make-chips", kTpWays | kCpWays | kPp | kDpWays | kFsdpWays, kValues,
                 [](const S& s, const L& l) { return l.chips() != s.chips; }, "",
                 kArithmetic, from::kLayers}.said_by(rule::say_product).by_its_pins(),
      LayoutRule{"batch-over-ranks", kData, kAsked,
                 [](const S& s, const L& l) {
                   return s.workload->batch_seqs * (1 + s.workload->batch_tolerance) < static_cast<double>(l.data());
                 },
                 "", kArithmetic, from::kLayers}.said_by(rule::say_batch).cuts(Reject::kBatchSmall).by_its_pins(),
      // Microbatches that visit a stage's chunks in turn come in groups of pp.
      LayoutRule{"groups-of-microbatches", kPp | kVpp | kGa, kAsked,
                 [](const S&, const L& l) { return l.vpp > 1 && l.grad_accum % l.pp != 0; }, "",
                 kPipelining, from::kMegatron}.said_by(rule::say_groups).cuts(Reject::kMicrobatches).after(kPp | kGa),
      LayoutRule{"microbatches-of-share", kData | kMb | kGa, kValues, rule::sequences, "",
                 kArithmetic, from::kLayers}.said_by(rule::say_sequences).by_its_pins(),
      // What engines have beside: ranks that attend by themselves (vLLM, SGLang), weights divided in two dimensions or
      // gathered.
      LayoutRule{"experts-make-group", kRanks | kEngine, kValues,
                 [](const S& s, const L& l) {
                   return s.model->moe && l.ep * l.etp != l.tp * l.cp * s.engine->attention_dp;
                 },
                 "", kArithmetic, from::kLayers}.of(RuleScope::kServing),
      LayoutRule{"overlap-of-attention-ranks", kEpWays | kOverlap | kEngine, kAsked,
                 [](const S& s, const L& l) {
                   return l.ep_overlap && (!s.model->moe || l.ep == 1 || s.engine->attention_dp == 1);
                 },
                 "ep_overlap needs attention-data ranks that exchange tokens with expert ranks",
                 kArithmetic, from::kLayers}.of(RuleScope::kServing),
      LayoutRule{"factor-of-two-dimensions", kEngine, kAsked,
                 [](const S& s, const L&) { return s.engine->tp_x > 1 && !s.engine->in_two; },
                 "tp_x divides d_model in scheme 2d alone, and not in {scheme}",
                 kArithmetic, from::kPope}.of(RuleScope::kServing),
      LayoutRule{"width-by-factor", kEngine, kAsked,
                 [](const S& s, const L&) { return s.model->d_model % s.engine->tp_x != 0; },
                 "tp_x {tp_x} does not divide d_model {d_model}", kModel, from::kPope}.of(RuleScope::kServing),
      LayoutRule{"scheme-of-dense", kEngine, kAsked,
                 [](const S& s, const L&) { return s.engine->divides_otherwise() && s.model->moe; },
                 "scheme {scheme} is of dense models alone", kModel, from::kPope}.of(RuleScope::kServing),
      LayoutRule{"scheme-of-whole-contexts", kCpWays | kEngine, kAsked,
                 [](const S& s, const L& l) { return s.engine->divides_otherwise() && l.cp > 1; },
                 "scheme {scheme} leaves contexts whole: no cp beside it",
                 kArithmetic, from::kPope}.of(RuleScope::kServing),
      LayoutRule{"scheme-of-tensor-ranks", kTpWays | kEngine, kAsked,
                 [](const S& s, const L& l) { return s.engine->divides_otherwise() && l.tp == 1; },
                 "scheme {scheme} needs more than one tensor rank",
                 kArithmetic, from::kPope}.after(kTpWays).of(RuleScope::kServing),
      LayoutRule{"two-factors", kTpWays | kEngine, kAsked,
                 [](const S& s, const L& l) {
                   const std::int64_t x = s.engine->tp_x;
                   return s.engine->in_two && l.tp > 1 && (x == 1 || x >= l.tp || l.tp % x != 0);
                 },
                 "scheme 2d divides weights by two factors above 1, which tp {tp} has not{with_tp_x}",
                 kArithmetic, from::kPope}.after(kTpWays).of(RuleScope::kServing),
      LayoutRule{"contexts-of-attention", kCpWays, kAsked,
                 [](const S& s, const L& l) { return l.cp > 1 && s.model->has_recurrence(); },
                 "cp divides contexts, and recurrences of the model keep a state in their place",
                 kModel, from::kLayers}.of(RuleScope::kServing),
  });
}();

/// Returns true if a training rule of this stage is broken, and calls `on` with that rule. The loop over the rules is
/// unrolled at compile time because the search runs it millions of times.
template <RuleStage kStage, class On>
inline bool any_broken(const RuleSubject& subject, const Layout& layout, On&& on) {
  const auto one = [&]<std::size_t kRow>(std::integral_constant<std::size_t, kRow>) {
    constexpr const LayoutRule& kRule = kLayoutRules[kRow];
    if constexpr (kRule.form == RuleForm::kAsked && kRule.scope != RuleScope::kServing &&
                  stage_of(kRule.reads) == kStage) {
      if (!kRule.breaks(subject, layout)) return false;
      on(kRule);
      return true;
    } else {
      return false;
    }
  };
  return [&]<std::size_t... kRows>(std::index_sequence<kRows...>) {
    return (one(std::integral_constant<std::size_t, kRows>{}) || ...);
  }
  (std::make_index_sequence<kLayoutRules.size()>{});
}

template <RuleStage kStage>
inline bool any_broken(const RuleSubject& subject, const Layout& layout) {
  return any_broken<kStage>(subject, layout, [](const LayoutRule&) {});
}

/// Why the layout breaks the rule, a sentence each; nothing of a rule that does not speak.
std::vector<std::string> sentences_of(const LayoutRule& rule, const RuleCase& c);

/// What the rules say of pins: `layout` has those and lenient values for the rest, `known` what is pinned.
std::vector<std::string> rules_against(const RuleCase& c, RuleReads known);

/// The first rule that reads nothing but `within` and that the layout breaks; null if it breaks none.
const LayoutRule* first_broken(const RuleSubject& subject, const Layout& layout, RuleReads within = ~RuleReads{0});

}  // namespace scalecalc
