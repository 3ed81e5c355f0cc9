// Chooses the precision of a training question that names none, by model, chip and stack.
#include "train/default_precision.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "plan/stack_supports.h"
#include "spec/usual_format.h"

namespace scalecalc {
namespace {

/// The fact by which a release refuses the workload's precision whatever the layout, or null.
const SupportFact* refused_precision(const ResolvedQuestion& out, const StackRelease* release) {
  if (release == nullptr) return nullptr;
  const Layout any;
  const SupportSubject subject{any, out.model, out.workload, out.hw};
  const auto refuses = [&](std::size_t i) {
    const SupportFact& fact = release->facts[i];
    const bool on_precision = std::any_of(fact.refused_if.begin(), fact.refused_if.end(),
                                          [](const SupportCondition& c) { return c.of->name == "precision"; });
    return on_precision && fact.refuses(subject);
  };
  const auto found = first_fact(release->of(FactGroup::kQuestion), refuses);
  return found ? &release->facts[*found] : nullptr;
}

}  // namespace

std::string rates_listed(const HardwareSpec& hw) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kDTypeCount; ++i) {
    if (hw.matmul_peak[i]) names.emplace_back(kDTypeNames[i]);
  }
  return join(names, ", ");
}

bool has_rates(const HardwareSpec& hw, const Precision& p) {
  const auto has = [&](DType d) { return hw.matmul_peak[static_cast<std::size_t>(d)].has_value(); };
  return has(p.compute) && has(p.high);
}

bool trains_in(ResolvedQuestion question, const StackRelease& release, const std::optional<std::string>& asked) {
  const auto runs = [&](std::string_view name) {
    question.workload.precision = precision_of(name);
    return has_rates(question.hw, question.workload.precision) && refused_precision(question, &release) == nullptr;
  };
  return asked ? runs(*asked) : runs("bf16") || runs("fp16");
}

std::string trained_source(const TrainingFacts& facts, const char* field) {
  const auto it = facts.assumed.find(field);
  return it == facts.assumed.end() ? "as trained: " + facts.source : "assumed: " + it->second;
}

void assume_precision(ResolvedQuestion& out) {
  const auto assume = [&](std::string text, std::string source, bool warning) {
    out.assumptions.push_back(Assumption{std::move(text), "--precision", std::move(source), warning});
  };
  const std::optional<std::string>& trained = out.model.training.precision;
  Precision& chosen = out.workload.precision;
  chosen = precision_of(trained.value_or("bf16"));
  const SupportFact* refused = refused_precision(out, out.launcher.get());
  if (has_rates(out.hw, chosen) && refused == nullptr) {
    return assume(
        fmt::format("precision {}", chosen.name),
        trained ? trained_source(out.model.training, "precision") : "assumed: the model file gives none; the usual one",
        false);
  }
  const std::string whose =
      fmt::format("{}, {}", chosen.name, trained ? out.model.name + "'s own" : std::string("the usual one"));
  for (const DType format : kUsualFormats) {
    const std::string_view usual = name_of(format);
    chosen = precision_of(usual);
    if (!has_rates(out.hw, chosen) || refused_precision(out, out.launcher.get()) != nullptr) continue;
    if (refused != nullptr) {
      return assume(fmt::format("precision {}: {} does not train in {}", usual, out.launcher->name(), whose),
                    refused->source, true);
    }
    return assume(fmt::format("precision {}: {} publishes no rate for {}", usual, out.hw.name, whose), "hardware file",
                  true);
  }
  throw UserError(fmt::format("{} publishes no rate for bf16 or fp16, one of which training takes", out.hw.name),
                  fmt::format("its matmul rates: {}", rates_listed(out.hw)));
}

namespace {

/// What the stack cannot run under this recipe, and may under another.
const SupportFact* fact_of_recipe(const ResolvedQuestion& resolved) {
  if (!resolved.launcher) return nullptr;
  const SupportSubject subject{Layout{}, resolved.model, resolved.workload, resolved.hw};
  for (const SupportFact& fact : resolved.launcher->facts) {
    const bool meets = std::any_of(fact.refused_if.begin(), fact.refused_if.end(), [&](const SupportCondition& one) {
      return one.of->name == "fp8_recipe" && one.holds(subject);
    });
    if (meets) return &fact;
  }
  return nullptr;
}

}  // namespace

void choose_fp8_recipe(std::optional<Scaling> asked, ResolvedQuestion& out) {
  Workload& w = out.workload;
  if (w.precision.compute != DType::kFp8) {
    if (!asked) return;
    throw UserError(fmt::format("--fp8-recipe has no meaning: matmuls of {} read no operands in fp8", w.precision.name),
                    "--precision fp8");
  }
  w.precision.scaling = asked;
  const auto unmeasured = [&](Scaling scaling, const Coefficient& rate, std::string_view each, const char* name) {
    if (asked != scaling || rate.value != 1) return;
    out.assumptions.push_back(
        Assumption{fmt::format("matmuls with a scale for each {} were measured on no {}: as fast as with one for all",
                               each, out.hw.name),
                   "--fp8-recipe", "docs/model.md", true}
            .as(name));
  };
  unmeasured(Scaling::kRow, out.efficiency.row_scaled, "row", "row_scaled");
  unmeasured(Scaling::kBlock, out.efficiency.block_scaled, "block", "block_scaled");
  if (asked) return;
  std::string text = w.runtime.current_scaling ? "8-bit operands are scaled by the largest value of the tensor itself"
                                               : "8-bit operands are scaled by the largest values of tensors before";
  if (const SupportFact* fact = fact_of_recipe(out)) text += "; " + fact_text(*out.launcher, *fact);
  out.assumptions.push_back(Assumption{std::move(text), "--fp8-recipe", "docs/model.md"}.is(name_of(w.scaling())));
}

}  // namespace scalecalc
