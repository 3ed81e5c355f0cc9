// Chooses the attention kernel of a question by chip, format, head size and release of the stack.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "base/text.h"
#include "spec/kept.h"
#include "spec/kernel_spec.h"
#include "spec/months.h"

namespace scalecalc {
namespace {

bool names_chip(const std::vector<std::string>& names, const HardwareSpec& hw) {
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name == hw.name || name == hw.architecture; });
}

const std::string& place_of(const HardwareSpec& hw) { return hw.architecture.empty() ? hw.name : hw.architecture; }

using KernelUses = std::vector<KernelUse>;

std::shared_ptr<const KernelUses> uses_of(const Catalog& catalog, const std::string& stack) {
  return kept<KernelUses>(catalog, "attention kernels of " + stack, [&] {
    return stack.empty() ? KernelUses{} : load_kernel_uses(catalog.load(CatalogKind::kStack, stack), catalog);
  });
}

class Chooser {
 public:
  Chooser(const Catalog& catalog, const HardwareSpec& hw, const KernelQuestion& asked)
      : catalog_(catalog), hw_(hw), asked_(asked), month_(month_of(asked.date)) {}

  KernelChoice run() const {
    if (asked_.stated == kUnfusedWord) return unfused("as stated");
    if (!asked_.stated.empty() && asked_.stated != kFusedWord) return stated();
    if (const KernelUse* use = newest_use()) return of_use(*use);
    if (asked_.stated.empty() && none_yet()) {
      return unfused(fmt::format("no fused kernel of the catalog ran on {} {}", place_of(hw_),
                                 month_.empty() ? "at any time" : "in " + month_));
    }
    return {std::string(kFusedWord), "a fused kernel",
            fmt::format("which one {} on {} is not known, so at the chip's own rates",
                        asked_.stack.empty() ? "runs" : asked_.stack + " runs", hw_.name),
            std::nullopt};
  }

 private:
  static KernelChoice unfused(std::string why) {
    return {std::string(kUnfusedWord), "unfused kernels", std::move(why), std::nullopt};
  }

  const KernelSpec& kernel(const std::string& name) const {
    return *std::find_if(kernels_->begin(), kernels_->end(), [&](const KernelSpec& k) { return k.name == name; });
  }

  static KernelChoice chosen(const KernelSpec& kernel, const KernelBuild& build, std::string why) {
    std::string title = kernel.title;
    if (!build.version.empty()) title += " " + build.version;
    return {kernel.name, std::move(title), std::move(why), build};
  }

  KernelChoice stated() const {
    const auto name = catalog_.name_of(CatalogKind::kKernel, asked_.stated);
    if (!name) refuse_unknown();
    const KernelSpec& found = kernel(*name);
    const KernelBuild* build = found.build(hw_, month_);
    if (build != nullptr) return chosen(found, *build, "as stated");
    // A run that says so had it before the catalog knows of it.
    const KernelBuild* first = nullptr;
    for (const KernelBuild& b : found.builds) {
      if (!b.since.empty() && b.is_of(hw_) && (first == nullptr || b.since < first->since)) first = &b;
    }
    if (first != nullptr) return chosen(found, *first, "as stated");
    std::vector<std::string> serving;
    for (const KernelSpec& k : *kernels_) {
      if (k.build(hw_, "") != nullptr) serving.push_back(k.name);
    }
    throw UserError(
        fmt::format("attention {}: {} does not run on {}", in_quotes(asked_.stated), found.title, hw_.name),
        serving.empty()
            ? fmt::format("no kernel of the catalog is known to; {} and {} name none", kFusedWord, kUnfusedWord)
            : fmt::format("on {}: {}, {}, {}", hw_.name, kFusedWord, kUnfusedWord, join(serving, ", ")));
  }

  [[noreturn]] void refuse_unknown() const {
    std::vector<std::string> names{std::string(kFusedWord), std::string(kUnfusedWord)};
    for (const KernelSpec& k : *kernels_) names.push_back(k.name);
    const std::string near = did_you_mean(nearest(asked_.stated, names));
    throw UserError(fmt::format("unknown attention kernel {}", in_quotes(asked_.stated)),
                    fmt::format("{}{}known: {}", near, near.empty() ? "" : " ", join(names, ", ")));
  }

  /// The stack's, of those it takes by default or, if a fused one is stated, of all fused ones.
  const KernelUse* newest_use() const {
    const bool all = asked_.stated == kFusedWord;
    const auto of_framework = [&](const KernelUse& use) {
      return std::find(use.of.begin(), use.of.end(), lower_case(asked_.framework)) != use.of.end();
    };
    const bool own = std::any_of(uses_->begin(), uses_->end(), of_framework);
    const KernelUse* out = nullptr;
    for (const KernelUse& use : *uses_) {
      if (own ? !of_framework(use) : !use.of.empty()) continue;
      if (!names_chip(use.chips, hw_) || before(month_, use.since) || !use.serves(asked_.heads)) continue;
      if (all ? use.kernel.empty() : !use.opt_in.empty()) continue;
      if (!use.kernel.empty() && kernel(use.kernel).build(hw_, month_) == nullptr) continue;
      if (out == nullptr || use.since >= out->since) out = &use;
    }
    return out;
  }

  KernelChoice of_use(const KernelUse& use) const {
    const std::string heads =
        use.widths || use.widest_head > 0 || use.equal_widths || asked_.heads == HeadWidths{}
            ? ""
            : fmt::format(", nothing fused for heads of {} and {}", asked_.heads.keys, asked_.heads.values);
    const std::string why = fmt::format("{} on {} since {}", asked_.stack, place_of(hw_), use.since) +
                            (use.kernel.empty() ? heads : "") +
                            (use.opt_in.empty() ? "" : fmt::format(", asked for by {}", use.opt_in));
    if (use.kernel.empty()) return unfused(why);
    const KernelSpec& found = kernel(use.kernel);
    return chosen(found, *found.build(hw_, month_), why);
  }

  /// Whether the catalog knows of no fused kernel that early: on the chip, if it knows of any there at all.
  bool none_yet() const {
    bool knows_chip = false;
    std::string first;
    for (const KernelSpec& k : *kernels_) {
      if (k.build(hw_, month_) != nullptr) return false;
      for (const KernelBuild& b : k.builds) {
        knows_chip = knows_chip || b.is_of(hw_);
        if (!b.since.empty() && (first.empty() || b.since < first)) first = b.since;
      }
    }
    return knows_chip || before(month_, first);
  }

  const Catalog& catalog_;
  const HardwareSpec& hw_;
  const KernelQuestion& asked_;
  std::string month_;
  std::shared_ptr<const std::vector<KernelSpec>> kernels_ =
      kept<std::vector<KernelSpec>>(catalog_, "attention kernels", [this] { return load_kernels(catalog_); });
  std::shared_ptr<const KernelUses> uses_ = uses_of(catalog_, asked_.stack);
};

/// By how much attention in a training step differs from the benchmark of its kernel: Composer's and torchtitan's runs
/// on the A100 and the H100 reach 0.6 of the published rates, Megatron's about all.
constexpr double kStepOverBenchmark = 0.3;

/// A kernel's figure in the place of the chip's, times what its stack's was over that.
void replace(const std::optional<Coefficient>& figure, const Coefficient& chip, const std::string& of,
             Coefficient& out) {
  if (!figure || out.typed) return;
  const bool fitted = out.value != chip.value || out.error != chip.error;
  const double times = chip.value > 0 ? out.value / chip.value : 1;
  std::string source = fmt::format("{}: {}", of, figure->source);
  if (fitted) source += fmt::format("; times {:.3g}: {}", times, out.source);
  constexpr double kLeast = 1e-4;
  out = {std::clamp(figure->value * times, kLeast, 1.0),
         fitted ? out.error : std::hypot(figure->error, kStepOverBenchmark), std::move(source)};
}

}  // namespace

bool KernelUse::serves(const HeadWidths& heads) const {
  if (widths) return *widths == heads;
  if (equal_widths && heads.keys != heads.values) return false;
  return widest_head == 0 || std::max(heads.keys, heads.values) <= widest_head;
}

bool KernelBuild::is_of(const HardwareSpec& hw) const { return names_chip(of, hw) && !names_chip(except, hw); }

const KernelBuild* KernelSpec::build(const HardwareSpec& hw, std::string_view month) const {
  const KernelBuild* out = nullptr;
  for (const KernelBuild& b : builds) {
    if (b.since.empty() || before(month, b.since) || !b.is_of(hw)) continue;
    if (out == nullptr || b.since >= out->since) out = &b;
  }
  return out;
}

KernelChoice choose_kernel(const Catalog& catalog, const HardwareSpec& hw, const KernelQuestion& asked) {
  return Chooser(catalog, hw, asked).run();
}

void use_kernel(const KernelChoice& choice, const HardwareSpec& hw, Efficiency& e) {
  if (!choice.build) return;
  const KernelBuild& k = *choice.build;
  const std::string of = fmt::format("{} on {}", choice.title, hw.name);
  const Efficiency& chip = hw.efficiency;
  replace(k.forward, chip.attention_forward, of, e.attention_forward);
  replace(k.backward, chip.attention_backward, of, e.attention_backward);
  const auto put = [&](const std::optional<Coefficient>& figure, Coefficient& out) {
    if (figure && !out.typed) out = {figure->value, figure->error, fmt::format("{}: {}", of, figure->source)};
  };
  put(k.half_head_dim, e.attention_half_head_dim);
  if (!k.half_context) return;
  // One number stands for both passes: their mean by FLOPs. Where the backward runs at the chip's rate, its does too.
  constexpr double kBackward = 2.5;
  const Coefficient& back = k.half_context_backward ? *k.half_context_backward
                            : k.backward            ? *k.half_context
                                                    : e.attention_half_context;
  Coefficient both = *k.half_context;
  both.value = (both.value + kBackward * back.value) / (1 + kBackward);
  both.error = (both.error + kBackward * back.error) / (1 + kBackward);
  put(both, e.attention_half_context);
}

}  // namespace scalecalc
