// Reads which parts of a model adapters train, for the training question.
#include "train/resolve_fine_tune.h"

#include <fmt/format.h>

#include "base/text.h"
#include "base/units.h"
#include "model/accounting.h"

namespace scalecalc {
namespace {

/// Of the targets asked for, those that the model has.
std::uint8_t targets_of(const ModelSpec& model, FineTune tune) {
  std::uint8_t out = 0;
  const std::uint8_t asked = tune.targets;
  for (std::size_t i = 0; i < kLoraTargetNames.size(); ++i) {
    tune.targets = static_cast<std::uint8_t>(asked & 1U << i);
    if (tune.targets != 0 && adapter_parameters(model, tune) > 0) {
      out = static_cast<std::uint8_t>(out | tune.targets);
    }
  }
  return out;
}

[[noreturn]] void refuse_targets(const ModelSpec& model, const FineTune& asked) {
  FineTune all = asked;
  all.targets = kLoraAll;
  const std::string known = target_names(targets_of(model, all));
  std::string hint = known.empty() ? "" : fmt::format("it has {}", known);
  all.experts = true;
  all.targets = asked.targets;
  if (!asked.experts && targets_of(model, all) != 0) {
    hint = "its routed experts have them: --lora-experts each" + (hint.empty() ? "" : "; " + hint);
  }
  throw UserError(fmt::format("--lora-targets {}: {} has no such projection", target_names(asked.targets), model.name),
                  hint);
}

}  // namespace

void resolve_fine_tune(const TrainQuestion& question, ResolvedQuestion& out) {
  if (!question.fine_tune) return;
  const FineTuneQuestion& asked = *question.fine_tune;
  const auto assume = [&](std::string text, std::string flag, std::string source) -> Assumption& {
    return out.assumptions.emplace_back(Assumption{std::move(text), std::move(flag), std::move(source)});
  };
  if (out.model.mtp_layers > 0) {
    out.model.mtp_layers = 0;
    assume("multi-token-prediction modules are left out: they are neither loaded nor trained", "", "docs/model.md")
        .as("mtp_modules")
        .is(0);
  }
  FineTune tune{.rank = asked.rank,
                .targets = asked.targets.value_or(kLoraAll),
                .experts = asked.experts.value_or(false),
                .base = asked.base};
  const std::uint8_t present = targets_of(out.model, tune);
  if (present == 0) refuse_targets(out.model, tune);
  tune.targets = present;
  assume(
      fmt::format("LoRA rank {} on {}: {} of {} parameters train", tune.rank, target_names(tune.targets),
                  compact_count(adapter_parameters(out.model, tune)), compact_count(count_parameters(out.model).total)),
      "--lora-targets",
      asked.targets ? "arXiv:2106.09685 section 4.1"
                    : "assumed: every projection of mixer and FFN, arXiv:2305.14314 section 4")
      .is(target_names(tune.targets));
  if (out.model.moe && !asked.experts) {
    assume("routed experts carry no adapters of their own", "--lora-experts", "assumed");
  }
  out.workload.fine_tune = tune;
}

void assume_base(ResolvedQuestion& out) {
  const Workload& w = out.workload;
  if (!w.fine_tune) return;
  const std::optional<BaseFormat>& base = w.fine_tune->base;
  const double bits = 8 * base_bytes(*w.fine_tune, w.precision);
  const std::string_view recipe = kDTypeNames.at(static_cast<std::size_t>(w.precision.high));
  if (!base) {
    out.assumptions.push_back(Assumption{fmt::format("frozen weights in {}, {:g} bits each", recipe, bits), "--base",
                                         "assumed: the recipe's own"}
                                  .is(recipe));
  } else if (is_unpacked(*w.fine_tune, w.precision)) {
    out.assumptions.push_back(Assumption{
        fmt::format("frozen matrices of the layers in {}, {:.4g} bits a weight{}; unpacked to {} at memory bandwidth "
                    "before each pass, and gathered as they are kept",
                    kBaseFormatNames.at(static_cast<std::size_t>(*base)), bits,
                    *base == BaseFormat::kNf4 ? " with its scales" : "", recipe),
        "", "arXiv:2305.14314 section 3"}
                                  .as("base_unpacked_to")
                                  .is(recipe));
  }
  out.assumptions.push_back(
      Assumption{"model FLOPs are 4 x frozen + 6 x adapter parameters a token: frozen weights have no gradient", "",
                 "docs/model.md"}
          .as("flops_per_token")
          .is("4 x frozen + 6 x adapters"));
}

}  // namespace scalecalc
