// Words why a question has no legal layout: which pinned dimension violates which rule.
#include "train/obstacles.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/divisors.h"
#include "base/units.h"
#include "model/sharding.h"
#include "plan/dimensions.h"
#include "plan/stack_supports.h"

namespace scalecalc {
namespace {

/// "2,048", or "1536.5" where a batch in tokens is no whole number of them.
std::string sequences(double count) {
  return count == std::floor(count) ? group_thousands(static_cast<long long>(count)) : fmt::format("{:.1f}", count);
}

class ObstacleFinder {
 public:
  explicit ObstacleFinder(const PlanRequest& request)
      : request_(request), fix_(request.fix), model_(*request.model), chips_(request.slices.front().chips) {}

  std::vector<std::string> run() {
    tensor();
    context();
    sequence_sharding();
    stages();
    stages_left();
    schedule();
    experts();
    expert_overlap();
    remat();
    offload();
    sharding();
    product();
    batch();
    microbatches();
    sequences_of_a_rank();
    stack();
    return std::move(found_);
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    found_.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  /// The facts of the stack that the pins alone (and the question) meet, whatever else is chosen.
  void stack() {
    if (!request_.stack) return;
    Layout pinned;
    for (const LayoutDimension& d : layout_dimensions()) {
      if (const auto value = d.pin(fix_)) d.set_value(pinned, *value);
    }
    if (fix_.pp && *fix_.pp == 1) pinned.schedule = Schedule::kNone;
    const SupportSubject subject{pinned, model_, request_.workload, *request_.hw};
    std::set<std::string> said;
    for (const SupportFact& fact : request_.stack->facts) {
      const bool decided = !fact.recall && std::all_of(fact.refused_if.begin(), fact.refused_if.end(),
                                                       [&](const auto& c) { return c.decided(fix_); });
      if (decided && fact.refuses(subject) && said.insert(fact.name).second) {
        found_.push_back(fact_text(*request_.stack, fact) + "; --stack any lifts it");
      }
    }
  }

  void tensor() {
    if (!fix_.tp) return;
    for (std::string& text : undivided_heads(model_, *fix_.tp)) found_.push_back(std::move(text));
    for (std::string& text : undivided_widths(model_, *fix_.tp)) found_.push_back(std::move(text));
  }

  void context() {
    const std::int64_t seq = request_.workload.seq;
    if (fix_.cp && *fix_.cp > 1 && seq % (2 * *fix_.cp) != 0) {
      say("sequences of {} do not divide into 2 x cp {} pieces", group_thousands(seq), *fix_.cp);
    }
    if (!fix_.cp_comm || *fix_.cp_comm != CpComm::kUlysses || fix_.cp.value_or(2) == 1) return;
    if (!all_plain_attention(model_)) {
      say("Ulysses needs plain attention in every layer, which {} has not: cp_comm is all-gather or ring", model_.name);
    } else if (fix_.cp) {
      for (const std::string& text : undivided_heads(model_, *fix_.cp * fix_.tp.value_or(1))) {
        say("Ulysses gives every rank of tp x cp whole heads: {}", text);
      }
    }
  }

  /// A policy for some layers leaves at least one of each kind alone.
  void remat() {
    if (!fix_.remat_layers || *fix_.remat_layers == 0) return;
    if (fix_.remat && *fix_.remat == Remat::kNone) {
      say("remat none treats no layers: {} of them need a policy", *fix_.remat_layers);
    }
    const std::int64_t stages = fix_.pp.value_or(1);
    const std::int64_t largest = (model_.layers() + stages - 1) / stages;
    if (*fix_.remat_layers >= largest) {
      const std::string_view policy = fix_.remat ? name_of(*fix_.remat) : "full";
      say("remat {0}:{1} treats some layers of a stage, and the largest has {2}: for all of them, remat {0}", policy,
          *fix_.remat_layers, largest);
    }
  }

  /// The same of activations that go to the host.
  void offload() {
    if (fix_.offload_layers.value_or(0) == 0) return;
    const std::int64_t stages = fix_.pp.value_or(1);
    const std::int64_t largest = (model_.layers() + stages - 1) / stages;
    if (*fix_.offload_layers >= largest) {
      say("offload {0}:{1} moves some layers of a stage, and the largest has {2}: for all of them, offload {0}",
          offload_name(fix_.offload.value_or(kOffloadActivations)), *fix_.offload_layers, largest);
    }
    if (fix_.remat_layers.value_or(0) > 0) {
      say("remat of {} layers and offload of {}: no launcher counts layers for both", *fix_.remat_layers,
          *fix_.offload_layers);
    }
  }

  void sequence_sharding() {
    if (!fix_.sp || !fix_.tp || *fix_.tp == 1) return;
    const std::int64_t shard = request_.workload.seq / fix_.cp.value_or(1);
    if (*fix_.sp == 1 && shard % *fix_.tp != 0) {
      say("sequence sharding (sp 1) cuts {} tokens over tp {}, which does not divide them", group_thousands(shard),
          *fix_.tp);
    }
    if (*fix_.sp == 0 && fix_.ep.value_or(1) > 1) {
      say("ep {} beside tp {} needs sequence sharding (sp 1)", *fix_.ep, *fix_.tp);
    }
  }

  /// Chunks and the schedule that runs them.
  void schedule() {
    if (!fix_.schedule) return;
    const std::string_view name = name_of(*fix_.schedule);
    const bool interleaved = *fix_.schedule == Schedule::kInterleaved;
    const bool dual = *fix_.schedule == Schedule::kDualPipe;
    const bool split = dual || *fix_.schedule == Schedule::kZeroBubble;
    const bool plain = split || *fix_.schedule == Schedule::k1F1B;
    if ((interleaved || split) && fix_.pp && *fix_.pp == 1) say("the {} schedule needs pp above 1", name);
    if (dual && fix_.pp && *fix_.pp > 1 && *fix_.pp % 2 != 0) say("DualPipe pairs stages: pp {} is odd", *fix_.pp);
    if (dual && fix_.zero && *fix_.zero > 1) say("DualPipe runs with zero 0 or 1, not {}", *fix_.zero);
    if (interleaved && fix_.vpp && *fix_.vpp == 1) say("the {} schedule needs vpp above 1", name);
    if (plain && fix_.vpp.value_or(1) > 1) say("vpp {} is the interleaved schedule or GPipe, not {}", *fix_.vpp, name);
    if (dual && fix_.pp) pairs();
    if (dual && fix_.ep.value_or(1) > 1 && fix_.ep_overlap == false) {
      say("DualPipe always runs expert all-to-alls under another microbatch's compute: ep_overlap is 1");
    }
  }

  void expert_overlap() {
    if (fix_.ep_overlap != true || fix_.ep.value_or(1) == 1 || fix_.grad_accum.value_or(2) > 1) return;
    say("ep_overlap 1 computes another microbatch meanwhile: ga is 2 at least, not 1");
  }

  /// DualPipe feeds as many microbatches from either end, and pp of them at least.
  void pairs() {
    const auto runs = [&](std::int64_t microbatches) { return microbatches % 2 == 0 && microbatches >= 2 * *fix_.pp; };
    if (fix_.grad_accum) {
      if (!runs(*fix_.grad_accum)) {
        say("DualPipe needs an even number of microbatches, 2 pp = {} at least: not {}", 2 * *fix_.pp,
            *fix_.grad_accum);
      }
      return;
    }
    const std::vector<std::int64_t> shares = rank_sequences();
    const std::int64_t mb = fix_.micro_batch_seqs.value_or(1);
    const auto some = [&](std::int64_t share) { return share % mb == 0 && runs(share / mb); };
    if (shares.empty() || std::any_of(shares.begin(), shares.end(), some)) return;
    say("DualPipe needs an even number of microbatches, 2 pp = {} at least: at mb {} {} make none such", 2 * *fix_.pp,
        mb, share_text(shares));
  }

  /// ZeRO-3 shards weights over fsdp x cp ranks, and nothing else does: fsdp is how its ranks are pinned, dp how many
  /// copies there are of what they share. Pinned beside zero 1 or 2 it is the ranks that share the optimizer's state.
  void sharding() {
    const std::int64_t zero = std::min<std::int64_t>(fix_.zero.value_or(3), request_.max.zero.value_or(3));
    const std::int64_t fsdp = fix_.fsdp.value_or(1);
    const bool in_groups = fix_.zero == 1 || fix_.zero == 2;
    if (zero != 3 && fsdp > 1 && !in_groups) {
      say("fsdp {0} shards weights, which zero {1} does not: fsdp is ZeRO-3, and zero {1} over {0} ranks is dp={0}",
          fsdp, zero);
    }
    if (fix_.zero.value_or(0) != 3) return;
    if (request_.max.zero.value_or(3) < 3) say("zero 3 lies above --max zero={}", *request_.max.zero);
    const std::int64_t dp = fix_.dp.value_or(1);
    const bool sharded = most(fix_.fsdp, request_.max.fsdp) > 1 || most(fix_.cp, request_.max.cp) > 1;
    const bool left = dp * fix_.tp.value_or(1) * fix_.pp.value_or(1) < chips_;
    if (dp > 1 && fsdp == 1 && fix_.cp.value_or(1) == 1 && (!sharded || !left)) {
      say("zero 3 shards weights over fsdp x cp ranks, and dp {0} counts whole copies: ZeRO-3 over {0} ranks is "
          "fsdp={0}",
          dp);
    } else if (fix_.ep && fix_.fsdp && fix_.tp && fix_.cp) {
      const std::int64_t ranks = fsdp * *fix_.cp * (*fix_.tp / std::min(*fix_.tp, fix_.etp.value_or(1)));
      if (ranks % *fix_.ep != 0) {
        say("zero 3 keeps a group of experts inside its shards: ep {} does not fold over fsdp {} x cp {}{}", *fix_.ep,
            fsdp, *fix_.cp, ranks > fsdp * *fix_.cp ? fmt::format(" x tp {}", *fix_.tp) : "");
      }
    }
  }

  /// The largest value that pin and bound leave.
  static std::int64_t most(const std::optional<std::int64_t>& fix, const std::optional<std::int64_t>& max) {
    return std::min(fix.value_or(kMostWays), max.value_or(kMostWays));
  }

  void chosen_ends(const ChunkEnds& ends) {
    const auto [first, last] = ends;
    if (fix_.pp == 1) say("split {}:{} needs pp above 1", first, last);
    if (fix_.vpp.value_or(1) > 1 || (fix_.schedule && !may_choose_ends(*fix_.schedule, 1))) {
      say("split {}:{} is of 1F1B and GPipe without virtual stages", first, last);
    } else if (fix_.pp.value_or(1) > 1 && deal(model_, *fix_.pp, 1, StageSplit::kEven, ends).empty()) {
      say("split {}:{} cannot deal {} layers to {} chunks", first, last, model_.layers(), *fix_.pp);
    }
  }

  void stages() {
    if (fix_.split && fix_.split->chosen()) chosen_ends(*fix_.split);
    if (fix_.pp && *fix_.pp > model_.layers()) say("pp {} is more than the {} layers", *fix_.pp, model_.layers());
    if (fix_.vpp && *fix_.vpp > 1 && fix_.pp.value_or(2) == 1) say("vpp {} needs pp above 1", *fix_.vpp);
    if (!fix_.pp || !fix_.vpp || *fix_.vpp == 1) return;
    const std::int64_t chunks = *fix_.pp * *fix_.vpp;
    const std::int64_t layers = model_.layers();
    if (layers % chunks != 0 && (layers + 2) % chunks != 0 && (layers + 2 + model_.mtp_layers) % chunks != 0) {
      say("pp {} x vpp {} = {} chunks divide neither {} layers nor {} with embedding and head", *fix_.pp, *fix_.vpp,
          chunks, layers, layers + 2);
    }
  }

  /// Where every other dimension is pinned, the pipeline takes the chips that are left.
  void stages_left() {
    if (fix_.pp) return;
    const bool whole = fix_.zero && *fix_.zero < 3;
    const bool alone = fix_.zero == 3 && fix_.fsdp == 1 && fix_.cp == 1;  // nothing to shard over: one data rank
    const auto copies = alone ? std::optional<std::int64_t>(1) : fix_.dp;
    const auto shards = whole ? std::optional<std::int64_t>(fix_.fsdp.value_or(1)) : fix_.fsdp;
    if (!copies || !shards || !fix_.tp || !fix_.cp) return;
    const std::int64_t left = chips_ / (*copies * *shards * *fix_.tp * *fix_.cp);
    if (left > model_.layers()) say("the pins leave {} pipeline stages for {} layers", left, model_.layers());
  }

  void experts() {
    const bool asked = fix_.ep.value_or(1) > 1 || fix_.etp.value_or(1) > 1;
    if (!model_.moe && asked) say("{} has no experts: ep and etp must be 1", model_.name);
    if (model_.moe && fix_.ep && model_.moe->experts % *fix_.ep != 0) {
      say("ep {} does not divide the {} experts", *fix_.ep, model_.moe->experts);
    }
    if (!model_.moe || !fix_.tp) return;
    const std::int64_t etp = fix_.etp.value_or(1);
    if (etp != 1 && etp != *fix_.tp) say("etp is 1 or tp {}, not {}", *fix_.tp, etp);
    if (fix_.etp && model_.moe->d_ff % etp != 0)
      say("etp {} does not divide the experts' d_ff {}", etp, model_.moe->d_ff);
    const auto data = data_ranks();
    if (!fix_.ep || !fix_.etp || !data || *fix_.tp % etp != 0) return;
    const std::int64_t ranks = *data * fix_.cp.value_or(1) * (*fix_.tp / etp);
    if (ranks % *fix_.ep != 0) {
      say("ep {} does not fold over {} data x {} context x {} tensor ranks", *fix_.ep, *data, fix_.cp.value_or(1),
          *fix_.tp / etp);
    }
  }

  /// What the pins leave for data ranks, where they say it.
  std::optional<std::int64_t> data_ranks() const {
    if (fix_.tp && fix_.cp && fix_.pp && chips_ % (*fix_.tp * *fix_.cp * *fix_.pp) == 0) {
      return chips_ / (*fix_.tp * *fix_.cp * *fix_.pp);
    }
    if (fix_.dp && fix_.fsdp) return *fix_.dp * *fix_.fsdp;
    return std::nullopt;
  }

  /// What the largest legal tp, cp and pp leave; 1 if there is none.
  std::int64_t fewest_data_ranks() const {
    std::int64_t ways = 0;
    const auto allowed = [](const auto& fix, const auto& max, std::int64_t n) {
      return (!fix || *fix == n) && (!max || n <= *max);
    };
    for (const std::int64_t tp : divisors(chips_)) {
      if (!allowed(fix_.tp, request_.max.tp, tp)) continue;
      if (!undivided_heads(model_, tp).empty() || !undivided_widths(model_, tp).empty()) continue;
      for (const std::int64_t cp : divisors(chips_ / tp)) {
        if (!allowed(fix_.cp, request_.max.cp, cp) || (cp > 1 && request_.workload.seq % (2 * cp) != 0)) continue;
        for (const std::int64_t pp : divisors(chips_ / tp / cp)) {
          if (allowed(fix_.pp, request_.max.pp, pp) && pp <= model_.layers()) ways = std::max(ways, tp * cp * pp);
        }
      }
    }
    return ways == 0 ? 1 : chips_ / ways;
  }

  /// The pinned degrees must divide the chips, and all of them together must make them.
  void product() {
    std::int64_t ways = 1;
    std::string text;
    const auto factor = [&](const char* name, const std::optional<std::int64_t>& value) {
      if (!value) return;
      ways *= *value;
      text += fmt::format("{}{} {}", text.empty() ? "" : " x ", name, *value);
    };
    factor("dp", fix_.dp);
    factor("fsdp", fix_.fsdp);
    factor("tp", fix_.tp);
    factor("cp", fix_.cp);
    factor("pp", fix_.pp);
    const bool all = fix_.dp && fix_.fsdp && fix_.tp && fix_.cp && fix_.pp;
    if (all && ways != chips_) {
      say("{} = {} ways do not make {} chips", text, group_thousands(ways), group_thousands(chips_));
    } else if (chips_ % ways != 0) {
      say("{}{} does not divide {} chips", text,
          ways > 1 && text.find('x') != std::string::npos ? fmt::format(" = {}", group_thousands(ways)) : "",
          group_thousands(chips_));
    }
  }

  void batch() {
    const double wanted = request_.workload.batch_seqs;
    const double most = wanted * (1 + request_.workload.batch_tolerance);
    const std::int64_t data = data_ranks().value_or(fix_.dp.value_or(1) * fix_.fsdp.value_or(1));
    const std::int64_t fewest = std::max(data, fewest_data_ranks());
    if (static_cast<double>(fewest) > most) {
      say("a batch of {} sequences is smaller than the {} data ranks; raise --batch-seqs to at least {}",
          sequences(wanted), group_thousands(fewest), fewest);
      return;
    }
    const double rounded = std::max(1.0, std::round(wanted / static_cast<double>(data))) * static_cast<double>(data);
    if (std::abs(rounded - wanted) > request_.workload.batch_tolerance * wanted) {
      say("a batch of {} sequences does not divide over {} data ranks; the nearest is {}, {:.1f} % off "
          "(--batch-tolerance)",
          sequences(wanted), group_thousands(data), rounded, 100 * std::abs(rounded - wanted) / wanted);
    }
  }

  void microbatches() {
    const bool interleaved = fix_.vpp.value_or(1) > 1 || (fix_.schedule && *fix_.schedule == Schedule::kInterleaved);
    if (!interleaved || !fix_.pp) return;
    if (fix_.grad_accum) {
      if (*fix_.grad_accum % *fix_.pp == 0) return;
      say("the interleaved schedule needs microbatches in groups of pp: {} is no multiple of {}", *fix_.grad_accum,
          *fix_.pp);
      return;
    }
    const std::vector<std::int64_t> shares = rank_sequences();
    const std::int64_t mb = fix_.micro_batch_seqs.value_or(1);
    const auto groups = [&](std::int64_t share) { return share % (*fix_.pp * mb) == 0; };
    if (shares.empty() || std::any_of(shares.begin(), shares.end(), groups)) return;
    say("the interleaved schedule needs microbatches in groups of pp {}: at mb {} {} make no whole group", *fix_.pp, mb,
        share_text(shares));
  }

  /// A rank runs the batch's share, rounded down or up, as microbatches of mb sequences.
  void sequences_of_a_rank() {
    const std::vector<std::int64_t> shares = rank_sequences();
    if (shares.empty() || (!fix_.micro_batch_seqs && !fix_.grad_accum)) return;
    const std::int64_t mb = fix_.micro_batch_seqs.value_or(1);
    const std::int64_t ga = fix_.grad_accum.value_or(1);
    const bool both = fix_.micro_batch_seqs && fix_.grad_accum;
    const auto runs = [&](std::int64_t share) { return both ? share == mb * ga : share % (mb * ga) == 0; };
    if (std::any_of(shares.begin(), shares.end(), runs)) return;
    if (both) {
      say("mb {} x ga {} = {} sequences, not {}", mb, ga, mb * ga, share_text(shares));
    } else {
      say("{} {} does not divide {}", fix_.grad_accum ? "ga" : "mb", mb * ga, share_text(shares));
    }
  }

  /// The sequences a data rank may run for a batch near enough the one asked for; empty where the pins do not say how
  /// many data ranks there are, or where no batch is near (batch() says so).
  std::vector<std::int64_t> rank_sequences() const {
    const auto data = data_ranks();
    if (!data) return {};
    const double wanted = request_.workload.batch_seqs;
    const double each = wanted / static_cast<double>(*data);
    std::vector<std::int64_t> out;
    for (const double share : {std::floor(each + 1e-9), std::ceil(each - 1e-9)}) {
      const double off = std::abs(share * static_cast<double>(*data) - wanted);
      if (share < 1 || off > request_.workload.batch_tolerance * wanted) continue;
      if (out.empty() || out.back() != static_cast<std::int64_t>(share))
        out.push_back(static_cast<std::int64_t>(share));
    }
    return out;
  }

  static std::string share_text(const std::vector<std::int64_t>& shares) {
    return fmt::format("the {}{} sequences of each data rank", shares.front(),
                       shares.size() == 1 ? "" : fmt::format(" or {}", shares.back()));
  }

  const PlanRequest& request_;
  const LayoutFilter& fix_;
  const ModelSpec& model_;
  std::int64_t chips_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> obstacles(const PlanRequest& request) { return ObstacleFinder(request).run(); }

std::vector<std::string> stack_obstacles(const SearchStats& stats) {
  constexpr std::size_t kShown = 3;
  std::vector<std::string> out;
  for (const StackCut& cut : stack_cuts(stats)) {
    if (out.size() < kShown) out.push_back(fact_text(*stats.launcher, *cut.fact) + "; --stack any lifts it");
  }
  return out;
}

}  // namespace scalecalc
