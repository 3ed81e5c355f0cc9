// What the rows of plan/layout_rules.h find out where that is no comparison, and what they say: of pins (--why-not,
// errors) and of whole layouts alike.
#include "plan/layout_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/divisors.h"
#include "base/units.h"
#include "model/sharding.h"
#include "plan/dimensions.h"

namespace scalecalc {

std::string_view name_of(ImposedBy by) {
  constexpr std::array<std::string_view, 5> kNames{"arithmetic", "the model", "the pipeline's schedule",
                                                   "sharded state", "launchers"};
  return kNames[static_cast<std::size_t>(by)];
}

std::string_view matters_with(std::string_view dimension) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kDegrees{
      {{"sp", "tp"}, {"cp_comm", "cp"}, {"schedule", "pp"}, {"vpp", "pp"}, {"ep_overlap", "ep"}, {"zero", "data"}}};
  const auto* const found =
      std::find_if(kDegrees.begin(), kDegrees.end(), [&](const auto& pair) { return pair.first == dimension; });
  return found == kDegrees.end() ? "" : found->second;
}

RankShares rank_shares(const Workload& workload, std::int64_t data) {
  RankShares out;
  const double wanted = workload.batch_seqs;
  const double each = wanted / static_cast<double>(data);
  const auto low = static_cast<std::int64_t>(std::floor(each + 1e-9));
  const auto high = static_cast<std::int64_t>(std::ceil(each - 1e-9));
  for (const std::int64_t share : {low, high}) {
    if (share < 1 || (out.count > 0 && share == low)) continue;
    const double off = std::abs(static_cast<double>(share * data) - wanted);
    if (off <= workload.batch_tolerance * wanted) out.values[out.count++] = share;
  }
  return out;
}

std::int64_t RuleSubject::head_ranks(const Layout& l) const {
  if (engine == nullptr) return l.tp;
  if (engine->gathered) return 1;
  return engine->in_two ? std::max<std::int64_t>(1, l.tp / engine->tp_x) : l.tp;
}

std::int64_t RuleSubject::width_ranks(const Layout& l) const {
  return engine != nullptr && !engine->gathered ? head_ranks(l) * l.cp : head_ranks(l);
}

std::int64_t RuleSubject::experts() const {
  if (!model->moe) return 0;
  return model->moe->experts + (engine == nullptr ? 0 : engine->copies);
}

const LayoutRule* first_broken(const RuleSubject& subject, const Layout& layout, RuleReads within) {
  const auto* const found = std::find_if(kLayoutRules.begin(), kLayoutRules.end(), [&](const LayoutRule& rule) {
    return rule.concerns(subject.serves()) && (rule.reads & ~within) == 0 && rule.breaks(subject, layout);
  });
  return found == kLayoutRules.end() ? nullptr : found;
}

namespace {

/// Layers of the largest of the layout's stages.
std::int64_t largest_stage(const RuleSubject& s, const Layout& l) { return (s.model->layers() + l.pp - 1) / l.pp; }

/// Whether the rule is broken whichever microbatches the ranks run.
bool broken_by_pins(const LayoutRule& rule, const RuleCase& c) {
  const PinnedCase& pins = *c.pins;
  if ((rule.reads & reads::kGa) == 0 || pins.shares.empty() || pins.request->fix.grad_accum) {
    return rule.breaks(c.subject, c.layout);
  }
  Layout layout = c.layout;
  return std::all_of(pins.shares.begin(), pins.shares.end(), [&](std::int64_t share) {
    layout.grad_accum = std::max<std::int64_t>(1, share / layout.micro_batch_seqs);
    return rule.breaks(c.subject, layout);
  });
}

/// The text with what a layout, its model and its question have under these names.
std::string sentence(std::string_view text, const RuleCase& c) {
  const Layout& l = c.layout;
  const ModelSpec& model = *c.subject.model;
  const EngineRanks engine = c.subject.serves() ? c.engine() : EngineRanks{};
  const std::int64_t seq = c.subject.workload == nullptr ? 0 : c.subject.workload->seq;
  const std::int64_t beside = l.tp / l.etp;
  const auto some = [](bool any, const char* what, std::int64_t n) {
    return any ? fmt::format(fmt::runtime(what), n) : std::string();
  };
  using fmt::arg;
  return fmt::format(
      fmt::runtime(text), arg("model", model.name), arg("layers", model.layers()), arg("ends", model.layers() + 2),
      arg("d_model", model.d_model), arg("experts", model.moe ? model.moe->experts : 0),
      arg("expert_width", model.moe ? model.moe->d_ff : 0), arg("seq", group_thousands(seq)),
      arg("shard", group_thousands(seq / l.cp)), arg("data", l.data()), arg("fsdp", l.fsdp), arg("tp", l.tp),
      arg("cp", l.cp), arg("pp", l.pp), arg("vpp", l.vpp), arg("chunks", l.pp * l.vpp), arg("ep", l.ep),
      arg("etp", l.etp), arg("beside", beside), arg("x_tp", some(beside > 1, " x tp {}", l.tp)), arg("zero", l.zero),
      arg("schedule", name_of(l.schedule)), arg("split", fmt::format("{}:{}", l.split.first, l.split.last)),
      arg("remat", name_of(l.remat)), arg("treated", l.remat_layers), arg("offload", offload_name(l.offload)),
      arg("offloaded", l.offload_layers), arg("largest", largest_stage(c.subject, l)),
      arg("copies", some(engine.copies > 0, " and {} copies", engine.copies)), arg("scheme", engine.scheme()),
      arg("tp_x", engine.tp_x), arg("with_tp_x", some(engine.tp_x > 1, " with tp_x {}", engine.tp_x)));
}

}  // namespace

std::vector<std::string> rules_against(const RuleCase& c, RuleReads known) {
  std::vector<std::string> out;
  for (const LayoutRule& rule : kLayoutRules) {
    if (!rule.concerns(c.subject.serves()) || !rule.speaks() || (rule.needs & ~known) != 0) continue;
    if (!rule.pins_decide && !broken_by_pins(rule, c)) continue;
    for (std::string& why : sentences_of(rule, c)) out.push_back(std::move(why));
  }
  return out;
}

std::vector<std::string> sentences_of(const LayoutRule& rule, const RuleCase& c) {
  std::vector<std::string> out;
  if (rule.say != nullptr) {
    rule.say(c, out);
  } else if (!rule.says.empty()) {
    out.push_back(sentence(rule.says, c));
  }
  return out;
}

namespace {

bool any_mixer(const ModelSpec& model, bool (*has)(MixerKind)) {
  return std::any_of(model.kinds.begin(), model.kinds.end(), [&](const LayerKind& k) { return has(k.mixer); });
}

template <class... Args>
void add(std::vector<std::string>& out, fmt::format_string<Args...> text, Args&&... args) {
  out.push_back(fmt::format(text, std::forward<Args>(args)...));
}

std::string counted(std::int64_t n) { return group_thousands(n); }

/// "2,048", or "1536.5" where a batch in tokens is no whole number of them.
std::string batch_sequences(double count) {
  return count == std::floor(count) ? group_thousands(static_cast<long long>(count)) : fmt::format("{:.1f}", count);
}

std::string share_text(const std::vector<std::int64_t>& shares) {
  return fmt::format("the {}{} sequences of each data rank", shares.front(),
                     shares.size() == 1 ? "" : fmt::format(" or {}", shares.back()));
}

/// Whether pins of a question about training are meant, not a whole layout.
bool of_request(const RuleCase& c) { return c.pins != nullptr && c.pins->request != nullptr; }

const LayoutFilter& pinned(const RuleCase& c) {
  static const LayoutFilter kNone{};
  return of_request(c) ? c.pins->request->fix : kNone;
}
const LayoutFilter& bounded(const RuleCase& c) {
  static const LayoutFilter kNone{};
  return of_request(c) ? c.pins->request->max : kNone;
}

/// The largest value that pin and bound leave.
std::int64_t most(const std::optional<std::int64_t>& fix, const std::optional<std::int64_t>& max) {
  return std::min(fix.value_or(kMostWays), max.value_or(kMostWays));
}

bool allowed(const std::optional<std::int64_t>& fix, const std::optional<std::int64_t>& max, std::int64_t n) {
  return (!fix || *fix == n) && (!max || n <= *max);
}

/// What the largest tp, cp and pp that rules and pins allow leave; 1 if there is none.
std::int64_t fewest_data_ranks(const RuleCase& c) {
  const LayoutFilter& fix = pinned(c);
  const LayoutFilter& max = bounded(c);
  const std::int64_t chips = c.subject.chips;
  std::int64_t ways = 0;
  Layout l;
  for (const std::int64_t tp : divisors(chips)) {
    l = {.tp = tp};
    if (!allowed(fix.tp, max.tp, tp) || any_broken<RuleStage::kTensor>(c.subject, l)) continue;
    for (const std::int64_t cp : divisors(chips / tp)) {
      l.cp = cp;
      if (!allowed(fix.cp, max.cp, cp) || any_broken<RuleStage::kContext>(c.subject, l)) {
        continue;
      }
      for (const std::int64_t pp : divisors(chips / tp / cp)) {
        l.pp = pp;
        if (allowed(fix.pp, max.pp, pp) && !any_broken<RuleStage::kStages>(c.subject, l)) {
          ways = std::max(ways, tp * cp * pp);
        }
      }
    }
  }
  return ways == 0 ? 1 : chips / ways;
}

}  // namespace

namespace rule {

bool heads(const S& s, const L& l) { return !undivided_heads(*s.model, s.head_ranks(l)).empty(); }
void say_heads(const RuleCase& c, Out& out) {
  for (std::string& text : undivided_heads(*c.subject.model, c.subject.head_ranks(c.layout))) {
    out.push_back(std::move(text));
  }
}

bool widths(const S& s, const L& l) { return !undivided_widths(*s.model, s.width_ranks(l)).empty(); }
void say_widths(const RuleCase& c, Out& out) {
  for (std::string& text : undivided_widths(*c.subject.model, c.subject.width_ranks(c.layout))) {
    out.push_back(std::move(text));
  }
}

/// Ulysses gives every rank whole heads, so it needs layers of plain attention whose heads divide by the ranks of both
/// dimensions; a ring needs keys and values to pass on.
bool ulysses_mixers(const S& s, const L& l) { return l.cp_comm == CpComm::kUlysses && !all_plain_attention(*s.model); }

bool ulysses_heads(const S& s, const L& l) {
  return l.cp_comm == CpComm::kUlysses && all_plain_attention(*s.model) &&
         !undivided_heads(*s.model, l.tp * l.cp).empty();
}
void say_ulysses_heads(const RuleCase& c, Out& out) {
  for (const std::string& text : undivided_heads(*c.subject.model, c.layout.tp * c.layout.cp)) {
    add(out, "Ulysses gives every rank of tp x cp whole heads: {}", text);
  }
}

bool ring_mixers(const S& s, const L& l) { return l.cp_comm == CpComm::kRing && !any_mixer(*s.model, attends); }

bool ends(const S& s, const L& l) {
  return l.split.chosen() && l.pp > 1 && may_choose_ends(l.schedule, l.vpp) &&
         deal(*s.model, l.pp, l.vpp, StageSplit::kEven, l.split).empty();
}

bool stages(const S& s, const L& l) { return l.pp > s.model->layers(); }
void say_stages(const RuleCase& c, Out& out) {
  const std::int64_t layers = c.subject.model->layers();
  if (of_request(c) && !pinned(c).pp) {
    add(out, "the pins leave {} pipeline stages for {} layers", c.layout.pp, layers);
  } else {
    add(out, "pp {} is more than the {} layers", c.layout.pp, layers);
  }
}

bool chunks(const S& s, const L& l) {
  if (l.vpp == 1) return false;
  const std::int64_t layers = s.model->layers();
  const std::int64_t chunks = l.pp * l.vpp;
  return chunks > layers + 2 ||
         (layers % chunks != 0 && (layers + 2 + s.model->mtp_layers) % chunks != 0 && (layers + 2) % chunks != 0);
}

void say_pairs(const RuleCase& c, Out& out) {
  const std::int64_t least = 2 * c.layout.pp;
  if (c.pins == nullptr || pinned(c).grad_accum) {
    add(out, "DualPipe needs an even number of microbatches, 2 pp = {} at least: not {}", least, c.layout.grad_accum);
  } else {
    add(out, "DualPipe needs an even number of microbatches, 2 pp = {} at least: at mb {} {} make none such", least,
        c.layout.micro_batch_seqs, share_text(c.pins->shares));
  }
}

void say_no_experts(const RuleCase& c, Out& out) {
  if (c.subject.serves()) {
    add(out, "ep divides experts, of which the model has none: use tp or dp");
  } else {
    add(out, "{} has no experts: ep and etp must be 1", c.subject.model->name);
  }
}

bool treated_layers(const S& s, const L& l) { return l.remat_layers > 0 && l.remat_layers >= largest_stage(s, l); }
bool offloaded_layers(const S& s, const L& l) {
  return l.offload_layers > 0 && l.offload_layers >= largest_stage(s, l);
}

void say_unsharded(const RuleCase& c, Out& out) {
  const std::int64_t zero = c.pins == nullptr ? c.layout.zero : most(pinned(c).zero, bounded(c).zero);
  add(out, "fsdp {0} shards weights, which zero {1} does not: fsdp is ZeRO-3, and zero {1} over {0} ranks is dp={0}",
      c.layout.fsdp, zero);
}
void say_zero3(const RuleCase& c, Out& out) {
  const LayoutFilter& fix = pinned(c);
  const LayoutFilter& max = bounded(c);
  const Layout& l = c.layout;
  // Ranks that no pin has taken may still shard the weights.
  const bool may_shard = c.pins != nullptr && (most(fix.fsdp, max.fsdp) > 1 || most(fix.cp, max.cp) > 1);
  if (may_shard && l.dp * l.tp * fix.pp.value_or(1) < c.subject.chips) return;
  add(out,
      "zero 3 shards weights over fsdp x cp ranks, and dp {0} counts whole copies: ZeRO-3 over {0} ranks is "
      "fsdp={0}",
      l.dp);
}

/// The pinned degrees must divide the chips, and all of them together must make them.
void say_product(const RuleCase& c, Out& out) {
  const LayoutFilter whole = pins_of(c.layout);
  const LayoutFilter& fix = c.pins == nullptr ? whole : pinned(c);
  const std::int64_t chips = c.subject.chips;
  std::int64_t ways = 1;
  std::size_t factors = 0;
  std::string text;
  const std::array<std::pair<const char*, std::optional<std::int64_t>>, 5> degrees{
      {{"dp", fix.dp}, {"fsdp", fix.fsdp}, {"tp", fix.tp}, {"cp", fix.cp}, {"pp", fix.pp}}};
  for (const auto& [name, value] : degrees) {
    if (!value) continue;
    ways *= *value;
    text += fmt::format("{}{} {}", factors++ == 0 ? "" : " x ", name, *value);
  }
  if (factors == degrees.size() && ways != chips) {
    add(out, "{} = {} ways do not make {} chips", text, counted(ways), counted(chips));
  } else if (chips % ways != 0) {
    add(out, "{}{} does not divide {} chips", text, factors > 1 ? fmt::format(" = {}", counted(ways)) : "",
        counted(chips));
  }
}

void say_batch(const RuleCase& c, Out& out) {
  const Workload& w = *c.subject.workload;
  const double wanted = w.batch_seqs;
  const LayoutFilter& fix = pinned(c);
  std::int64_t data = c.layout.data();
  std::int64_t fewest = data;
  if (c.pins != nullptr) {
    data = c.pins->data.value_or(fix.dp.value_or(1) * fix.fsdp.value_or(1));
    fewest = std::max(data, fewest_data_ranks(c));
  }
  if (static_cast<double>(fewest) > wanted * (1 + w.batch_tolerance)) {
    return add(out, "a batch of {} sequences is smaller than the {} data ranks; raise --batch-seqs to at least {}",
               batch_sequences(wanted), counted(fewest), fewest);
  }
  if (rank_shares(w, data).count > 0) return;
  const double rounded = std::max(1.0, std::round(wanted / static_cast<double>(data))) * static_cast<double>(data);
  add(out,
      "a batch of {} sequences does not divide over {} data ranks; the nearest is {}, {:.1f} % off "
      "(--batch-tolerance)",
      batch_sequences(wanted), counted(data), rounded, 100 * std::abs(rounded - wanted) / wanted);
}

void say_groups(const RuleCase& c, Out& out) {
  const Layout& l = c.layout;
  if (c.pins == nullptr || pinned(c).grad_accum) {
    add(out, "the interleaved schedule needs microbatches in groups of pp: {} is no multiple of {}", l.grad_accum,
        l.pp);
  } else {
    add(out, "the interleaved schedule needs microbatches in groups of pp {}: at mb {} {} make no whole group", l.pp,
        l.micro_batch_seqs, share_text(c.pins->shares));
  }
}

/// A rank runs the batch's share, rounded down or up, as microbatches of mb sequences.
bool sequences(const S& s, const L& l) {
  const RankShares shares = rank_shares(*s.workload, l.data());
  return std::find(shares.begin(), shares.end(), l.micro_batch_seqs * l.grad_accum) == shares.end();
}
void say_sequences(const RuleCase& c, Out& out) {
  const LayoutFilter whole = pins_of(c.layout);
  const LayoutFilter& fix = c.pins == nullptr ? whole : pinned(c);
  std::vector<std::int64_t> shares;
  if (c.pins != nullptr) {
    shares = c.pins->shares;
  } else {
    const RankShares near = rank_shares(*c.subject.workload, c.layout.data());
    shares.assign(near.begin(), near.end());
  }
  if (shares.empty() || (!fix.micro_batch_seqs && !fix.grad_accum)) return;
  const std::int64_t mb = fix.micro_batch_seqs.value_or(1);
  const std::int64_t ga = fix.grad_accum.value_or(1);
  const bool both = fix.micro_batch_seqs && fix.grad_accum;
  const auto runs = [&](std::int64_t share) { return both ? share == mb * ga : share % (mb * ga) == 0; };
  if (std::any_of(shares.begin(), shares.end(), runs)) return;
  if (both) {
    add(out, "mb {} x ga {} = {} sequences, not {}", mb, ga, mb * ga, share_text(shares));
  } else {
    add(out, "{} {} does not divide {}", fix.grad_accum ? "ga" : "mb", mb * ga, share_text(shares));
  }
}

void say_engine_product(const RuleCase& c, Out& out) {
  const std::int64_t degrees = c.pins == nullptr ? c.layout.chips() * c.engine().attention_dp : c.pins->degrees;
  if (c.subject.chips % degrees == 0) return;
  add(out, "the degrees pinned make {}, which does not divide {} chips", degrees, c.subject.chips);
}

}  // namespace rule
}  // namespace scalecalc
