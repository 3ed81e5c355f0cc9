// Shows the parameters, tokens and loss of each choice, for `scalecalc scaling-law`.
#include "scaling_law/scaling_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/brief_blocks.h"

namespace scalecalc {
namespace {

constexpr int kLosses = 4;  // digits of a loss: the third says little

std::string loss_text(double loss) { return format_quantity(loss, UnitKind::kNumber, kLosses); }

template <class Loss>
Figure loss_figure(std::string_view key, const std::optional<Loss>& loss) {
  Figure out = maybe_figure(key, "loss", Format::kNumber, loss);
  if (const double* value = std::get_if<double>(&out.value)) out.shown = loss_text(*value);
  return out;
}

/// "train" is that of the FLOPs alone, "lifetime" with serving; an answer without serving has no use for the second.
std::string label_of(const ScalingQuestion& q, AllocationKind kind) {
  switch (kind) {
    case AllocationKind::kComputeOptimal: return "compute-optimal";
    case AllocationKind::kLifetimeOptimal: return "lifetime-optimal";
    case AllocationKind::kModel: return q.model->title;
  }
  internal_error("unknown allocation");
}

Record record_of(const ScalingQuestion& q, const AllocationFigures& a) {
  const bool serves = q.inference_tokens > 0;
  Figure kind =
      figure("kind", "choice", Format::kText, Cell(std::string(kAllocationNames.at(static_cast<std::size_t>(a.kind)))));
  kind.shown = label_of(q, a.kind);
  Record out{
      {std::move(kind), figure("parameters", "N", Format::kCount, a.at.parameters),
       figure("tokens", "tokens", Format::kCount, a.at.tokens),
       with_importance(figure("tokens_per_parameter", "tokens / N", Format::kNumber, a.tokens_per_parameter), 3),
       loss_figure("loss", a.loss),
       with_importance(figure("training_flops", "training FLOPs", Format::kNumber, a.training), serves ? 1 : 0)}};
  if (serves) {
    out.figures.push_back(with_importance(figure("serving_flops", "serving FLOPs", Format::kNumber, a.serving), 2));
    out.figures.push_back(figure("lifetime_flops", "of a life", Format::kNumber, a.lifetime));
  }
  if (a.usd) {
    out.figures.push_back(
        with_importance(figure("training_usd", "training", Format::kUsd, a.usd->training), serves ? 1 : 0));
    if (serves) out.figures.push_back(figure("lifetime_usd", "life", Format::kUsd, a.usd->lifetime));
  }
  return out;
}

Record saving_record(const LifetimeSaving& s) {
  Record out{{figure("flops", "FLOPs of a life", Format::kNumber, s.flops),
              figure("share", "share", Format::kFraction, s.share)}};
  if (s.usd) out.figures.push_back(figure("usd", "dollars", Format::kUsd, *s.usd));
  return out;
}

Record standing_record(const ModelStanding& s) {
  Record out{{figure("over_trained", "tokens per parameter, times the optimum's", Format::kNumber, s.over_trained)}};
  if (s.compute_ratio) {
    out.figures.push_back(
        figure("compute_ratio", "training FLOPs, times the fewest for its loss", Format::kNumber, *s.compute_ratio));
  }
  Figure served =
      maybe_figure("serving_tokens", "cheapest life of its loss if it serves", Format::kCount, s.serving_tokens);
  if (s.serving_tokens) {
    served.shown = text_of(served.value, Format::kCount) + " tokens";
  } else if (s.compute_ratio) {
    served.shown = "none: more tokens and fewer parameters are cheaper to train and to serve";
  }
  out.figures.push_back(std::move(served));
  return out;
}

Record size_record(const ScalingQuestion& q, const SizePoint& p) {
  Record out{{figure("factor", "size", Format::kNumber, Cell(p.factor)),
              figure("parameters", "N", Format::kCount, Cell(p.at.parameters)),
              figure("tokens", "tokens", Format::kCount, Cell(p.at.tokens)), loss_figure("loss", p.loss),
              with_importance(maybe_figure("wasted", "wasted FLOPs", Format::kFraction, p.wasted), 1),
              figure("tokens_same_loss", "tokens", Format::kCount, Cell{}),
              figure("lifetime_flops_same_loss", "FLOPs", Format::kNumber, Cell{})}};
  out.figures[0].shown = fmt::format("x {}", text_of(Cell(p.factor), Format::kNumber));
  Figure& tokens = out.figures[5];
  Figure& flops = out.figures[6];
  tokens.label = "tokens for the loss";
  flops.label = q.inference_tokens > 0 ? "FLOPs of a life" : "FLOPs";
  tokens.importance = 2;
  if (p.tokens_same_loss) tokens.value = *p.tokens_same_loss;
  tokens.shown = p.tokens_same_loss ? text_of(tokens.value, Format::kCount) : "never";
  if (p.lifetime_same_loss) flops.value = *p.lifetime_same_loss;
  return out;
}

Record law_record(const LawPoint& p) {
  Figure name = figure("law", "law", Format::kText, Cell(p.law->name));
  name.shown = p.law->title;
  return {{std::move(name), figure("parameters", "N", Format::kCount, Cell(p.at.parameters)),
           figure("tokens", "tokens", Format::kCount, Cell(p.at.tokens)),
           figure("tokens_per_parameter", "tokens / N", Format::kNumber, Cell(p.at.tokens / p.at.parameters)),
           loss_figure("loss", p.loss)}};
}

Record query_of(const ScalingQuestion& q) {
  return {{datum("law", q.law.name), datum("model", q.model ? Cell(q.model->name) : Cell{}),
           datum("model_parameters", q.model ? Cell(q.model->parameters) : Cell{}),
           datum("model_tokens", q.model ? Cell(q.model->tokens) : Cell{}),
           datum("hardware", q.price ? Cell(q.price->hardware) : Cell{}),
           datum("usd_per_chip_hour", q.price ? Cell(q.price->usd_per_chip_hour) : Cell{}),
           datum("mfu", q.price ? Cell(q.price->mfu) : Cell{})}};
}

std::string choice_text(const AllocationFigures& a) {
  return fmt::format("{} parameters on {} tokens, {} per parameter", compact_count(a.at.parameters.value()),
                     compact_count(a.at.tokens.value()),
                     text_of(Cell(a.tokens_per_parameter.value()), Format::kNumber));
}

std::vector<Line> summary_of(const ScalingQuestion& q, const ScalingAnswer& found) {
  std::vector<Line> out;
  const AllocationFigures& best = found.allocations.front();
  std::string first = "Compute-optimal: " + choice_text(best);
  if (best.loss) first += fmt::format("; loss {}", loss_text(best.loss->value()));
  out.push_back({std::move(first)});
  if (found.saving) {
    std::string text = fmt::format("With {} tokens to serve: {}; the same loss for {} less over its life",
                                   compact_count(q.inference_tokens), choice_text(found.allocations[1]),
                                   text_of(Cell(found.saving->share.value()), Format::kFraction));
    if (found.saving->usd) text += fmt::format(" ({})", compact_usd(found.saving->usd->value().value()));
    out.push_back({std::move(text)});
  }
  if (found.standing) {
    const double ratio = found.standing->over_trained.value();
    std::string text =
        ratio >= 1 ? fmt::format("{} is trained on {} times the tokens per parameter of the optimum of its FLOPs",
                                 q.model->title, text_of(Cell(ratio), Format::kNumber))
                   : fmt::format("{} is trained on {} of the tokens per parameter of the optimum of its FLOPs",
                                 q.model->title, text_of(Cell(ratio), Format::kFraction));
    if (found.standing->compute_ratio) {
      text += fmt::format("; its loss could be had for {} times fewer FLOPs",
                          text_of(Cell(found.standing->compute_ratio->value()), Format::kNumber));
    }
    out.push_back({std::move(text)});
  }
  return out;
}

std::string title_of(const ScalingQuestion& q, const ScalingAnswer& found) {
  std::string given = fmt::format("{:.3g} training FLOPs", found.budget.value().value());
  if (q.budget_usd) given = compact_usd(*q.budget_usd) + " of " + q.price->hardware;
  if (q.flops && q.lifetime_budget) given = fmt::format("{:.3g} FLOPs", *q.flops);
  if (q.lifetime_budget) given += " to train and to serve";
  if (q.loss) given = fmt::format("a loss of {:g}", *q.loss);
  if (!q.flops && !q.budget_usd && !q.loss) given = "the training FLOPs of " + q.model->title;
  return fmt::format("Parameters and tokens for {}", given);
}

}  // namespace

Output scaling_output(const ScalingQuestion& q, const ScalingAnswer& found) {
  Output out{.command = "scaling-law", .title = title_of(q, found), .summary = summary_of(q, found)};
  out.query = query_of(q);
  Block choices{.key = "allocations"};
  for (const AllocationFigures& a : found.allocations) choices.records.push_back(record_of(q, a));
  out.blocks.push_back(std::move(choices));
  if (found.saving) {
    out.blocks.push_back(
        in_full({"saving", "Saved by the lifetime-optimal choice", false, {saving_record(*found.saving)}}));
  }
  if (found.standing) {
    out.blocks.push_back(
        in_full({"standing", q.model->title + " against the optimum", false, {standing_record(*found.standing)}}));
  }
  if (!found.sizes.empty()) {
    const char* centre = found.saving ? "lifetime-optimal" : "compute-optimal";
    Block sizes{.key = "sizes",
                .title = fmt::format("Other sizes than the {} one: for its training FLOPs, and for its loss", centre)};
    // A brief answer has every second size on either side of the optimum.
    constexpr std::size_t kBriefRows = 5;
    const auto middle =
        std::find_if(found.sizes.begin(), found.sizes.end(), [](const SizePoint& p) { return p.factor >= 1; });
    sizes.brief_rows = kBriefRows;
    for (const SizePoint& p : found.sizes) {
      sizes.records.push_back(size_record(q, p));
      const auto apart =
          std::abs(std::distance(middle, found.sizes.begin()) + static_cast<std::ptrdiff_t>(sizes.records.size()) - 1);
      sizes.records.back().brief = apart % 2 == 0 && apart <= 4;
    }
    out.blocks.push_back(std::move(sizes));
  }
  Block laws{.key = "laws", .title = "The same training FLOPs by each law", .shown = Shown::kFull};
  for (const LawPoint& p : found.laws) laws.records.push_back(law_record(p));
  out.blocks.push_back(std::move(laws));
  out.plots = scaling_plots(q, found);
  out.assumptions = found.assumptions;
  return out;
}

std::vector<Plot> scaling_plots(const ScalingQuestion& q, const ScalingAnswer& found) {
  Plot losses{
      .title = fmt::format("Loss of {:.3g} training FLOPs, by the size of the model", found.budget.value().value()),
      .x = {.title = "parameters", .format = Format::kCount, .log = true},
      .y = {.title = "loss (nats per token)"}};
  if (found.saving) losses.title = "Loss of the lifetime-optimal choice's training FLOPs, by the size of the model";
  PlotSeries sizes{.name = q.law.title};
  for (const SizePoint& p : found.sizes) {
    if (p.loss) sizes.points.push_back({p.at.parameters, *p.loss});
  }
  for (const AllocationFigures& a : found.allocations) {
    if (!a.loss || sizes.points.empty()) continue;
    const std::string name = a.kind == AllocationKind::kModel             ? q.model->title
                             : a.kind == AllocationKind::kLifetimeOptimal ? "lifetime-optimal"
                                                                          : "compute-optimal";
    losses.marks.push_back(
        {.at = {a.at.parameters.value(), a.loss->value()},
         .text = fmt::format("{}: {} parameters, {} tokens", name, compact_count(a.at.parameters.value()),
                             compact_count(a.at.tokens.value()))});
  }
  losses.series = {std::move(sizes)};
  Plot laws{.title = "The same training FLOPs by each law",
            .x = {.title = "parameters", .format = Format::kCount, .log = true},
            .y = {.title = "tokens", .format = Format::kCount, .log = true}};
  for (const LawPoint& p : found.laws) {
    laws.series.push_back({.name = p.law->title, .points = {{p.at.parameters, p.at.tokens}}, .joined = false});
  }
  return {std::move(losses), std::move(laws)};
}

}  // namespace scalecalc
