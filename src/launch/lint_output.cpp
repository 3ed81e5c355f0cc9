// Shows the findings of `scalecalc lint` and the plan that it compares with.
#include "launch/lint_output.h"

#include <fmt/format.h>

#include "plan/dimensions.h"
#include "train/train_words.h"

namespace scalecalc {
namespace {

Record finding_record(const LintFinding& finding) {
  const SourceSpan& at = finding.where;
  return {{figure("where", "where", Format::kText, Cell(fmt::format("{}:{}:{}", at.file.str(), at.line, at.column))),
           read_by(Readers::kJson, text_figure("file", "", at.file.str())),
           read_by(Readers::kJson, count_figure("line", at.line)),
           read_by(Readers::kJson, count_figure("column", at.column)),
           text_figure("kind", "kind", name_of(finding.kind)), text_figure("about", "argument", finding.about),
           text_figure("text", "what", finding.text), text_figure("source", "rule of", finding.source, 4),
           read_by(Readers::kJson, number_figure("gain", "", Format::kFraction, finding.gain))}};
}

std::optional<Record> lint_plan_record(const std::optional<RankedPlan>& plan) {
  if (!plan) return std::nullopt;
  return Record{{text_figure("layout", "layout", layout_words(plan->plan.layout)),
                 text_figure("fix", "", pins_text(pins_of(plan->plan.layout))),
                 count_figure("chips", plan->plan.layout.chips(), "chips"),
                 number_figure("step_time_s", "step", Format::kSeconds, plan->plan.step_s),
                 number_figure("mfu", "MFU", Format::kFraction, plan->figures.mfu),
                 number_figure("memory_bytes", "mem/chip", Format::kBytes, sum_of(plan->figures.memory_bytes))}};
}

Block plan_block(std::string_view key, std::string_view title, const std::optional<RankedPlan>& plan) {
  Block out{.key = std::string(key), .title = std::string(title), .is_list = false};
  if (auto record = lint_plan_record(plan)) out.records.push_back(std::move(*record));
  out.for_files = !plan.has_value();
  return out;
}

Block server_block(std::string_view key, std::string_view title, const std::optional<ServePoint>& point) {
  Block out{.key = std::string(key), .title = std::string(title), .is_list = false};
  if (point) {
    out.records.push_back(
        {{text_figure("layout", "layout", describe(point->layout)), count_figure("chips", point->chips, "chips"),
          number_figure("sequences", "sequences", Format::kCount, point->batch),
          number_figure("ttft_s", "first token", Format::kSeconds, point->ttft_s),
          number_figure("tpot_s", "each further", Format::kSeconds, point->tpot_s),
          number_figure("tokens_per_s_per_chip", "tokens/s per chip", Format::kCount, point->tokens_per_s_per_chip()),
          number_figure("memory_bytes", "mem/chip", Format::kBytes, point->memory.total())}});
  }
  out.for_files = !point.has_value();
  return out;
}

}  // namespace

Output lint_output(const LintReport& report) {
  const std::vector<LintFinding>& findings = report.lint.findings;
  const auto of = [&](LintKind kind) {
    return std::count_if(findings.begin(), findings.end(), [&](const LintFinding& f) { return f.kind == kind; });
  };
  Output out{.command = "lint"};
  out.title = fmt::format("{}, a launch file of {}", report.file, report.framework);
  const auto bad = of(LintKind::kIllegal) + of(LintKind::kDoesNotFit);
  out.headline.push_back(
      {bad > 0 ? fmt::format("cannot run: {} illegal, {} too large", of(LintKind::kIllegal), of(LintKind::kDoesNotFit))
       : of(LintKind::kWasteful) > 0 ? "runs, and wastes time"
       : report.serving              ? "runs; no other layout gives more tokens"
                                     : "runs; no single change makes it faster",
       bad > 0 ? Role::kBad : Role::kPlain});
  out.deciding = {"--from", "--stack"};
  Block list{.key = "findings"};
  for (const LintFinding& finding : findings) list.records.push_back(finding_record(finding));
  if (findings.empty()) list.header = finding_record({});
  out.blocks.push_back(std::move(list));
  out.blocks.push_back(plan_block("plan", "The file's layout", report.lint.plan));
  out.blocks.push_back(plan_block("best", "The fastest of all on as many chips", report.lint.best));
  if (report.serving) {
    out.blocks.push_back(server_block("server", "The file's layout", report.server));
    out.blocks.push_back(server_block("best_server", "The most tokens of all on as many chips", report.best_server));
  }
  out.query = {{text_figure("framework", "", report.framework), flag_figure("legal", of(LintKind::kIllegal) == 0)}};
  out.assumptions = report.assumptions;
  return out;
}

}  // namespace scalecalc
