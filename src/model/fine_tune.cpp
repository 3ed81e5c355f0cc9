// Adds low-rank adapters to a model's operation lists and freezes what they do not train.
#include "model/fine_tune.h"

#include <algorithm>
#include <utility>

#include "base/text.h"

namespace scalecalc {
namespace {

/// A projection by its name in the operation lists.
struct Target {
  std::string_view op;
  std::uint8_t any_of;  ///< of these targets one is enough
  std::string_view a, b;
};

constexpr std::uint8_t kKeyValue = kLoraK | kLoraV;
constexpr std::uint8_t kLoraProjection = kLoraQ | kKeyValue;
constexpr std::array kTargets{
    Target{"query projection", kLoraQ, "query adapter A", "query adapter B"},
    Target{"query down-projection", kLoraQ, "query down-adapter A", "query down-adapter B"},
    Target{"query up-projection", kLoraQ, "query up-adapter A", "query up-adapter B"},
    Target{"key/value projection", kKeyValue, "key/value adapters A", "key/value adapters B"},
    Target{"key/value down-projection", kKeyValue, "key/value down-adapter A", "key/value down-adapter B"},
    Target{"key/value up-projection", kKeyValue, "key/value up-adapter A", "key/value up-adapter B"},
    Target{"attention output projection", kLoraO, "attention output adapter A", "attention output adapter B"},
    Target{"mlp gate projection", kLoraGate, "mlp gate adapter A", "mlp gate adapter B"},
    Target{"mlp up projection", kLoraUp, "mlp up adapter A", "mlp up adapter B"},
    Target{"mlp down projection", kLoraDown, "mlp down adapter A", "mlp down adapter B"},
    Target{"expert gate projection", kLoraGate, "expert gate adapters A", "expert gate adapters B"},
    Target{"expert up projection", kLoraUp, "expert up adapters A", "expert up adapters B"},
    Target{"expert down projection", kLoraDown, "expert down adapters A", "expert down adapters B"},
    Target{"query, key, value and gate projection", kLoraRecurrent, "recurrence adapter A", "recurrence adapter B"},
    Target{"query, key and value projection", kLoraRecurrent, "recurrence adapter A", "recurrence adapter B"},
    Target{"gate projection", kLoraRecurrent, "gate adapter A", "gate adapter B"},
    Target{"input and gate projection", kLoraRecurrent, "recurrence adapter A", "recurrence adapter B"},
    Target{"input, gate and step projection", kLoraRecurrent, "recurrence adapter A", "recurrence adapter B"},
    Target{"output projection", kLoraRecurrent, "recurrence output adapter A", "recurrence output adapter B"},
};

template <class R>
bool is_matmul(const Op<R>& op) {
  return op.kind == OpKind::kMatmul || op.kind == OpKind::kGroupedMatmul;
}

/// The target that the operation is, if it carries adapters.
template <class R>
const Target* target_of(const Op<R>& op, const FineTune& tune) {
  if (!is_matmul(op) || (op.kind == OpKind::kGroupedMatmul && !tune.experts)) return nullptr;
  const auto* const found =
      std::find_if(kTargets.begin(), kTargets.end(), [&](const Target& t) { return t.op == op.name; });
  return found != kTargets.end() && (found->any_of & tune.targets) != 0 ? found : nullptr;
}

bool divides_rows(TpRule rule) { return rule == TpRule::kRow || rule == TpRule::kExpertRow; }

/// Whether a matmul reads what `kept` keeps. A norm's output is read by matmuls of its width that start from whole
/// tokens, the dispatched copies by the experts' first matmuls, an activation function's output by the next projection
/// back.
template <class R>
bool reads(const Op<R>& op, const Op<R>& kept) {
  if (!is_matmul(op)) return false;
  const bool grouped = op.kind == OpKind::kGroupedMatmul;
  if (kept.input == KeptInput::kGathered) {
    return !grouped && !divides_rows(op.tp) && value_of(op.k) == value_of(kept.saved);
  }
  return kept.part == Part::kRouter ? grouped && !divides_rows(op.tp) : divides_rows(op.tp);
}

/// A frozen matmul's backward needs its weights alone, so its input is read for adapters' gradients only: of so many
/// projections, queries, keys and values being one.
template <class R>
double adapted_readers(const std::vector<Op<R>>& ops, std::size_t at, const FineTune& tune) {
  const Op<R>& kept = ops[at];
  const bool one_reader = kept.input != KeptInput::kGathered && kept.part != Part::kRouter;
  double others = 0;
  double attention = 0;
  for (std::size_t i = at + 1; i < ops.size(); ++i) {
    if (ops[i].input == kept.input && value_of(ops[i].saved) == value_of(kept.saved)) break;  // the next such
    if (!reads(ops[i], kept)) continue;
    if (target_of(ops[i], tune) != nullptr) (ops[i].part == Part::kAttention ? attention : others) += 1;
    if (one_reader) break;
  }
  return others + std::min(attention, 1.0);
}

/// What attention or a recurrence gives stays for its own backward, with what else that needs; the projection back, if
/// it has adapters, reads it: the share of what stays that is read.
template <class R>
double adapted_projection_back(const std::vector<Op<R>>& ops, std::size_t at, const FineTune& tune) {
  const Op<R>& kept = ops[at];
  if ((kept.kind != OpKind::kAttention && kept.kind != OpKind::kScan) || value_of(kept.saved) <= 0) return 0;
  const auto back = std::find_if(ops.begin() + static_cast<std::ptrdiff_t>(at) + 1, ops.end(),
                                 [](const Op<R>& op) { return is_matmul(op) && divides_rows(op.tp); });
  const bool is_read = back != ops.end() && back->part == kept.part && value_of(back->k) <= value_of(kept.saved);
  return is_read && target_of(*back, tune) != nullptr ? value_of(back->k) / value_of(kept.saved) : 0;
}

/// What the ends keep for weight gradients: the head its input beside the final norm's, a factorised embedding its
/// rows.
template <class R>
void forget_at_ends(Op<R>& op) {
  if (op.name == "final norm") op.saved = op.saved / R(2.0);
  if (op.name == "embedding projection" || op.name == "head input") op.keep = Keep::kNever;
}

/// Tensor ranks divide an adapter as its target: B of a column-divided one, A of a row-divided one. The other half is
/// whole on every rank, and the r values of a token between them are summed over the ranks: as gradients in the first
/// case, as values in the second (Megatron Bridge divides its adapters the same way). Adapters of experts are divided
/// like them.
TpRule rule_of_a(TpRule target) {
  const bool columns = target == TpRule::kColumn || target == TpRule::kKvColumn;
  return columns ? TpRule::kWhole : target;
}

TpRule rule_of_b(TpRule target) {
  if (target == TpRule::kExpertRow) return TpRule::kExpert;
  return target == TpRule::kRow ? TpRule::kSequence : target;
}

/// Keys and values are two matrices in one operation, with an adapter each.
template <class R>
struct Width {
  double adapters = 1;
  R n;
};

template <class R>
Width<R> width_of(const Op<R>& op, std::uint8_t targets) {
  if (value_of(op.values) <= 0 || (targets & kKeyValue) == 0) return {1, op.n};
  const bool keys = (targets & kLoraK) != 0;
  const bool values = (targets & kLoraV) != 0;
  if (keys && values) return {2, op.n};
  return {1, keys ? op.n - op.values : op.values};
}

template <class R>
void add_adapter(std::vector<Op<R>>& out, const Op<R>& op, const Target& target, const FineTune& tune) {
  const Width<R> width = width_of(op, tune.targets);
  const R rank(static_cast<double>(tune.rank));
  const R between = rank * R(width.adapters);
  Op<R> a{.name = target.a,
          .kind = op.kind,
          .part = op.part,
          .tp = rule_of_a(op.tp),
          .rows = op.rows,
          .k = op.k,
          .n = between,
          .matrices = op.matrices,
          .saved = op.rows * between,
          .keep = Keep::kSelective,
          .saved_tp = op.kind == OpKind::kGroupedMatmul ? TpRule::kExpert : rule_of_a(op.tp)};
  if (op.tp == TpRule::kRow) a.saved_tp = TpRule::kSequence;
  if (op.tp == TpRule::kColumn || op.tp == TpRule::kKvColumn || op.tp == TpRule::kRow) {
    a.summed = between;
    a.summed_in = op.tp == TpRule::kRow ? SummedIn::kForward : SummedIn::kBackward;
  }
  out.push_back(std::move(a));
  // Beside the matmul: what it gives is added to the target's result, and in the backward their input gradients are.
  const bool of_projection = (target.any_of & (kLoraQ | kKeyValue)) != 0 && op.part == Part::kAttention;
  const bool padded = of_projection && (tune.targets & kLoraProjection) != kLoraProjection;
  out.push_back({.name = target.b,
                 .kind = op.kind,
                 .part = op.part,
                 .tp = rule_of_b(op.tp),
                 .rows = op.rows,
                 .k = rank,
                 .n = width.n,
                 .matrices = op.matrices,
                 .groups = op.groups,
                 .reads = op.rows * width.n * R(2.0),
                 .writes = op.rows * width.n,
                 .flops = op.rows * width.n * R(2.0),
                 .saved = padded ? op.rows * width.n : R(0.0),
                 .keep = padded ? Keep::kSelective : Keep::kNever,
                 .saved_tp = rule_of_b(op.tp),
                 .kept_by = KeptBy::kPadding});
}

}  // namespace

std::string target_names(std::uint8_t targets) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kLoraTargetNames.size(); ++i) {
    if ((targets >> i & 1) != 0) names.emplace_back(kLoraTargetNames.at(i));
  }
  return join(names, ",");
}

template <class R>
std::vector<Op<R>> adapted(std::vector<Op<R>> ops, const FineTune& tune) {
  for (std::size_t i = 0; i < ops.size(); ++i) {
    ops[i].frozen = true;
    if (ops[i].input != KeptInput::kNo) {
      ops[i].adapters = adapted_readers(ops, i, tune);
      ops[i].unread = ops[i].adapters == 0;
    } else {
      ops[i].adapters = adapted_projection_back(ops, i, tune);
    }
    forget_at_ends(ops[i]);
  }
  std::vector<Op<R>> out;
  for (Op<R>& op : ops) {
    const Target* const target = target_of(op, tune);
    out.push_back(std::move(op));
    if (target == nullptr) continue;
    const Op<R> of = out.back();
    add_adapter(out, of, *target, tune);
  }
  return out;
}

template std::vector<Op<double>> adapted(std::vector<Op<double>>, const FineTune&);
template std::vector<Op<Dual>> adapted(std::vector<Op<Dual>>, const FineTune&);
template std::vector<Op<Traced>> adapted(std::vector<Op<Traced>>, const FineTune&);

}  // namespace scalecalc
