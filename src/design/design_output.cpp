// Shows the largest model that meets the limits of `scalecalc model design`, and the nearest misses.
#include "design/design_output.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/units.h"
#include "plan/dimensions.h"
#include "report/brief_blocks.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

constexpr double kDay = 86400;

Figure whole_figure(std::string_view key, std::string_view label, std::int64_t value) {
  return figure(key, label, Format::kInteger, Cell(static_cast<double>(value)));
}

/// Run, time and money with their working; the step's is that of `train --explain` on the file.
struct RunWorking {
  Traced tokens, batch;
  SecondsOf<Traced> time;
  std::optional<Quantity<kUsdDim, Traced>> usd;
};

RunWorking working_of(const DesignQuestion& q, const TrainedDesign& d) {
  const Reader<Traced> reader;
  const RunFigures& run = *d.plan.figures.run;
  RunWorking out;
  const Traced active = reader.input(d.model.parameters.active, "active parameters", "counted");
  const Traced ratio = reader.input(q.tokens_per_parameter, "tokens per parameter", "--tokens-per-parameter");
  out.tokens = q.tokens ? reader.input(*q.tokens, "tokens", "--tokens")
                        : named(active * ratio, "tokens", "Hoffmann et al. (arXiv:2203.15556), table 3 rounded");
  const double seqs = d.plan.plan.batch_seqs;
  out.batch = reader.input(seqs * static_cast<double>(q.seq), "tokens of a step", "plan");
  const SecondsOf<Traced> step = read(reader, Seconds(d.plan.plan.step_s), "step time", "train --explain");
  out.time = named(out.tokens / out.batch * step, "time of the run", "steps x step time");
  if (!run.cost_usd) return out;
  const Traced chips = reader.input(static_cast<double>(d.plan.plan.slice.chips), "chips", "plan");
  using Price = Quantity<kUsdDim - kSecondDim, Traced>;
  const double per_second = *run.cost_usd / (run.chip_hours * 3600);
  const Price price(reader.input(per_second, "price of a chip", "hardware file or --price", Price::dim));
  out.usd = named(out.time * price * chips, "dollars of the run", "chip time x price");
  return out;
}

/// "fsdp=64,tp=4".
std::string layout_text(const Plan& plan) {
  std::string out;
  for (const char* name : {"dp", "fsdp", "tp", "cp", "pp", "vpp", "ep"}) {
    const std::int64_t ways = find_dimension(name)->value(plan.layout);
    if (ways > 1) out += fmt::format("{}{}={}", out.empty() ? "" : ",", name, ways);
  }
  return out.empty() ? "one chip" : out;
}

std::string ways_text(const DesignShape& s) { return fmt::format("tp {}, pp {}", tensor_ways(s), pipeline_ways(s)); }

std::vector<Figure> shape_figures(const DesignedModel& m) {
  const DesignShape& s = m.shape;
  std::vector<Figure> out{
      figure("parameters", "parameters", Format::kCount, Cell(m.parameters.total)),
      figure("active_parameters", m.shape.experts ? "active" : "", Format::kCount, Cell(m.parameters.active)),
      whole_figure("d_model", "d_model", s.d_model),
      with_importance(whole_figure("layers", "layers", s.layers), 1),
      with_importance(whole_figure("heads", "heads", s.heads), 3),
      with_importance(whole_figure("kv_heads", "kv_heads", s.kv_heads), 5),
      with_importance(whole_figure("head_dim", "", s.head_dim), 5),
      with_importance(whole_figure("d_ff", "d_ff", s.d_ff), 2)};
  if (s.experts) {
    out.push_back(whole_figure("experts", "", s.experts->experts));
    out.push_back(whole_figure("top_k", "", s.experts->top_k));
  }
  out.push_back(whole_figure("vocab", "", s.vocab));
  out.push_back(whole_figure("tensor_ways", "", tensor_ways(s)));
  out.push_back(whole_figure("pipeline_ways", "", pipeline_ways(s)));
  return out;
}

Record model_record(const DesignQuestion& q, const TrainedDesign& d, std::size_t rank) {
  const PlanFigures& f = d.plan.figures;
  const Plan& plan = d.plan.plan;
  const RunWorking run = working_of(q, d);
  Record out{{whole_figure("rank", "#", static_cast<std::int64_t>(rank)),
              figure("name", "", Format::kText, Cell(d.model.name))}};
  for (Figure& shape : shape_figures(d.model)) out.figures.push_back(std::move(shape));
  out.figures.push_back(with_importance(figure("tokens", "tokens", Format::kCount, run.tokens), 1));
  if (q.tokens) out.figures.back().value = *q.tokens;
  out.figures.push_back(figure("batch_tokens", "", Format::kCount, Cell(run.batch.value())));
  out.figures.push_back(figure("chips", "", Format::kInteger, Cell(static_cast<double>(plan.slice.chips))));
  out.figures.push_back(with_importance(figure("layout", "layout", Format::kText, Cell(layout_text(plan))), 4));
  out.figures.push_back(with_importance(figure("step_time_s", "step", Format::kSeconds, Cell(plan.step_s)), 4));
  out.figures.push_back(figure("mfu", "MFU", Format::kFraction, Cell(f.mfu)));
  out.figures.push_back(figure("run_time_s", "run", Format::kSeconds, run.time));
  out.figures.push_back(run.usd ? figure("cost_usd", "cost", Format::kUsd, *run.usd)
                                : figure("cost_usd", "cost", Format::kUsd, Cell{}));
  out.figures.push_back(
      with_importance(figure("memory_bytes", "memory", Format::kBytes, Cell(plan.memory.total().value())), 2));
  Figure loss = with_importance(maybe_figure("loss", "loss", Format::kNumber, d.loss), 3);
  if (d.loss) loss.shown = format_quantity(*d.loss, UnitKind::kNumber, 4);
  out.figures.push_back(std::move(loss));
  return out;
}

std::string why_text(const MissedDesign& m) {
  const std::string over = text_of(Cell(m.over), Format::kFraction);
  switch (m.verdict) {
    case DesignVerdict::kTooLong: return over + " over the deadline";
    case DesignVerdict::kTooDear: return over + " over the budget";
    case DesignVerdict::kOutOfMemory: return over + " over the memory of a chip";
    case DesignVerdict::kNoLayout: return "no layout divides";
    case DesignVerdict::kMeets: break;
  }
  return "";
}

Record miss_record(const MissedDesign& m) {
  Record out;
  for (Figure& shape : shape_figures(m.model)) out.figures.push_back(std::move(shape));
  out.figures.push_back(figure("divides", "divides", Format::kText, Cell(ways_text(m.model.shape))));
  out.figures.push_back(figure("verdict", "", Format::kText,
                               Cell(std::string(kDesignVerdictNames.at(static_cast<std::size_t>(m.verdict))))));
  out.figures.push_back(figure("over", "", Format::kFraction, Cell(m.over)));
  out.figures.push_back(figure("why", "why not", Format::kText, Cell(why_text(m))));
  return out;
}

Record search_record(const DesignAnswer& found) {
  return {{whole_figure("shapes", "shapes", static_cast<std::int64_t>(found.shapes)),
           whole_figure("too_large", "too long even at the rate of large matmuls",
                        static_cast<std::int64_t>(found.too_large)),
           whole_figure("searched", "whose layouts were searched", static_cast<std::int64_t>(found.searched))}};
}

Record query_of(const DesignQuestion& q, const DesignAnswer& found) {
  const auto& e = q.experts;
  return {{datum("hardware", found.hw.name), datum("experts", e ? cell_of(e->experts) : Cell{}),
           datum("top_k", e ? cell_of(e->top_k) : Cell{}),
           datum("tokens_per_parameter", q.tokens ? Cell{} : Cell(q.tokens_per_parameter)),
           whole_figure("seq", "", q.seq), datum("law", q.law.name)}};
}

std::string limits_text(const DesignQuestion& q) {
  std::string out;
  if (q.deadline_s) out = "in " + seconds_text(*q.deadline_s);
  if (q.budget_usd) out += fmt::format("{}for {}", out.empty() ? "" : " and ", compact_usd(*q.budget_usd));
  return out;
}

std::vector<Line> summary_of(const DesignQuestion& q, const DesignAnswer& found) {
  if (found.models.empty()) {
    return {{fmt::format("No shape of the grid is trained {}; the smallest miss:", limits_text(q)), Role::kBad}};
  }
  const TrainedDesign& best = found.models.front();
  const DesignShape& s = best.model.shape;
  std::string text = fmt::format("{} parameters", compact_count(best.model.parameters.total));
  if (s.experts) text += fmt::format(", {} active", compact_count(best.model.parameters.active));
  text += fmt::format(": {} layers of {}, {} heads and {} KV heads of {}, d_ff {}", s.layers,
                      group_thousands(s.d_model), s.heads, s.kv_heads, s.head_dim, group_thousands(s.d_ff));
  if (s.experts) text += fmt::format(" in each of {} experts, {} a token", s.experts->experts, s.experts->top_k);
  const RunFigures& run = *best.plan.figures.run;
  std::string second = fmt::format("{} tokens in {:.3g} days at {} MFU", compact_count(run.tokens), run.time_s / kDay,
                                   text_of(Cell(best.plan.figures.mfu), Format::kFraction));
  if (run.cost_usd) second += fmt::format(", {}", compact_usd(*run.cost_usd));
  return {{std::move(text)},
          {std::move(second)},
          {fmt::format("It divides evenly over {} tensor and {} pipeline ranks, in powers of two", tensor_ways(s),
                       pipeline_ways(s))}};
}

}  // namespace

Output design_output(const DesignQuestion& q, const DesignAnswer& found) {
  Output out{.command = "model-design"};
  out.title =
      fmt::format("The largest model for {} x {} {}", group_thousands(q.machine.chips), found.hw.title, limits_text(q));
  out.summary = summary_of(q, found);
  out.query = query_of(q, found);
  Block models{.key = "models"};
  for (const TrainedDesign& d : found.models) {
    models.records.push_back(model_record(q, d, models.records.size() + 1));
  }
  Block best = best_block(models);
  out.blocks.push_back(std::move(models));
  out.blocks.push_back(std::move(best));
  Block misses{.key = "misses", .title = found.models.empty() ? "The smallest shapes" : "The next larger shapes"};
  constexpr std::size_t kBriefRows = 3;
  misses.brief_rows = kBriefRows;
  for (const MissedDesign& m : found.misses) misses.records.push_back(miss_record(m));
  out.blocks.push_back(std::move(misses));
  out.blocks.push_back(in_full({"search", "Searched", false, {search_record(found)}}));
  out.assumptions = found.assumptions;
  out.deciding = deciding_of_training();
  out.deciding.emplace_back("--tokens-per-parameter");
  out.nothing_fits = found.models.empty();
  return out;
}

}  // namespace scalecalc
