// Reads a layout from a flag or a saved answer and compares it with our plans.
#include "train/reference.h"

#include <fmt/format.h>

#include "base/io.h"
#include "base/text.h"
#include "base/units.h"
#include "config/fields.h"
#include "config/json_reader.h"
#include "plan/dimensions.h"

namespace scalecalc {
namespace {

/// A saved answer, read no further than the one plan needs.
class AnswerFile {
 public:
  AnswerFile(const std::string& file, std::size_t rank)
      : rank_(rank), document_(read_json(read_text_file(file), file)) {}

  KnownReference read() {
    require_train_answer();
    const ConfigNode& plan = ranked_plan();
    KnownReference out;
    out.pins = layout_of(plan);
    out.recorded = recorded(plan);
    problems_.throw_if_any();
    return out;
  }

 private:
  static constexpr const char* kExpected = "the document that scalecalc train --json writes";

  [[noreturn]] static void fail(const SourceSpan& where, std::string message, std::string hint) {
    throw UserError({Diagnostic{where, std::move(message), std::move(hint)}});
  }

  void require_train_answer() const {
    const ConfigNode* schema = document_.find("schema");
    if (schema != nullptr) refuse_other_version(schema->text, schema->span, "scalecalc/train/1");
    if (schema == nullptr || schema->text != "scalecalc/train/1") {
      const std::string found = schema == nullptr ? "there is no schema" : "its schema is " + in_quotes(schema->text);
      fail(schema == nullptr ? document_.span : schema->span, "this is no answer of train: " + found, kExpected);
    }
  }

  const ConfigNode& ranked_plan() const {
    const ConfigNode* plans = document_.find("plans");
    if (plans == nullptr || plans->kind != ConfigNode::Kind::kSequence) {
      fail(document_.span, "'plans' is missing or no list", kExpected);
    }
    if (plans->items.empty()) fail(plans->span, "nothing fitted in this answer: it has no plan", "");
    const ConfigNode* best = document_.find("best");
    const ConfigNode* recommended = best == nullptr ? nullptr : best->find("plan");
    if (rank_ == 0) return recommended == nullptr ? plans->items.front() : *recommended;
    if (rank_ > plans->items.size()) {
      fail(plans->span, fmt::format("there is no plan {}: the answer has {}", rank_, plans->items.size()),
           "name one of them with FILE#RANK, or ask again with a larger --top");
    }
    return plans->items[rank_ - 1];
  }

  LayoutFilter layout_of(const ConfigNode& plan) {
    LayoutFilter out;
    const ConfigNode* layout = plan.find("layout");
    if (layout == nullptr) fail(plan.span, "the plan has no 'layout'", kExpected);
    for (const ConfigNode::Entry& entry : layout->entries) {
      const LayoutDimension* d = find_dimension(entry.key);
      if (d == nullptr && entry.value.text == "none") continue;  // a dimension that is not used
      if (d == nullptr) {
        problems_.add(entry.key_span, fmt::format("{} is no layout dimension", in_quotes(entry.key)));
        continue;
      }
      const auto value = value_of(*d, entry.value.text);
      if (!value) {
        problems_.add(entry.value.span, fmt::format("'{}' cannot be {}", entry.key, in_quotes(entry.value.text)));
      } else if (d->name == "remat_layers") {
        out.remat_layers = value;  // answers once had the number beside the policy
      } else if (*value >= d->least) {
        d->set_pin(out, value);
      }
    }
    if (!out.loss) out.loss = LossKind::kWhole;  // answers once had no other
    return out;
  }

  static std::optional<std::int64_t> value_of(const LayoutDimension& d, const std::string& text) {
    if (d.kind == DimensionKind::kSwitch) {
      if (text == "true" || text == "false") return text == "true" ? 1 : 0;
      return std::nullopt;
    }
    if (d.kind == DimensionKind::kWord) return value_of_word(d, text);
    const auto parsed = parse_quantity(text, UnitKind::kCount);
    const double* value = std::get_if<double>(&parsed);
    if (value == nullptr || *value > static_cast<double>(d.most)) return std::nullopt;
    return static_cast<std::int64_t>(*value);
  }

  RecordedPlan recorded(const ConfigNode& node) {
    const ConfigNode* query = document_.find("query");
    if (query == nullptr) fail(document_.span, "'query' is missing", kExpected);
    Fields asked(*query, "query", problems_);
    Fields plan(node, "plan", problems_);
    Fields memory(plan.required_node("memory_bytes"), "memory_bytes", problems_);
    return {.model = asked.text("model"),
            .hardware = asked.text("hardware"),
            .chips = plan.count("chips"),
            .seq = asked.count("seq"),
            .batch_tokens = plan.quantity("batch_tokens", UnitKind::kNumber),
            .step_s = plan.quantity("step_time_s", UnitKind::kNumber),
            .mfu = plan.quantity("mfu", UnitKind::kNumber),
            .memory_bytes = memory.quantity("total", UnitKind::kNumber),
            .bound_by = plan.text("bound_by")};
  }

  std::size_t rank_;
  ConfigNode document_;
  Problems problems_;
};

/// The same layout on another count of chips and another batch: data ranks take up the change, everything else stays.
LayoutFilter scaled(const LayoutFilter& pins, std::int64_t chips) {
  LayoutFilter out = pins;
  out.grad_accum.reset();  // follows from the batch
  if (!pins.tp || !pins.cp || !pins.pp || (!pins.dp && !pins.fsdp)) return out;
  const std::int64_t ways = *pins.tp * *pins.cp * *pins.pp;
  if (chips % ways != 0) return pins;
  const std::int64_t data = chips / ways;
  const std::int64_t fsdp = pins.fsdp.value_or(1);
  if (fsdp > 1 && pins.dp.value_or(1) > 1 && data % fsdp == 0) {
    out.dp = data / fsdp;  // replicas of sharded groups
  } else if (fsdp > 1) {
    out.fsdp = data;
    out.dp = 1;
  } else {
    out.dp = data;
  }
  return out;
}

/// "dp 128 -> 64" for every pin of the reference that does not hold for what was judged.
std::vector<std::string> adapted(const LayoutFilter& pins, const LayoutVerdict& verdict) {
  std::vector<std::string> out;
  for (const LayoutDimension& d : pin_dimensions()) {
    const auto was = d.pin(pins);
    const auto is = verdict.plan ? std::optional(d.value(verdict.plan->plan.layout)) : d.pin(verdict.pins);
    if (!was || was == is) continue;
    out.push_back(is ? fmt::format("{} {} -> {}", d.name, value_text(d, *was), value_text(d, *is))
                     : fmt::format("{} {} -> what the batch needs", d.name, value_text(d, *was)));
  }
  return out;
}

/// "mb 1" for every dimension the reference leaves open.
std::vector<std::string> chosen(const LayoutFilter& pins, const LayoutVerdict& verdict) {
  std::vector<std::string> out;
  if (!verdict.plan) return out;
  for (const LayoutDimension& d : layout_dimensions()) {
    const std::int64_t value = d.value(verdict.plan->plan.layout);
    if (!d.pin(pins) && value >= d.least) out.push_back(fmt::format("{} {}", d.name, value_text(d, value)));
  }
  return out;
}

}  // namespace

KnownReference read_reference(const ReferenceLayout& reference) {
  if (reference.file.empty()) return {.name = pins_text(reference.pins), .pins = reference.pins};
  KnownReference out = AnswerFile(reference.file, reference.rank).read();
  out.name = reference.rank == 0 ? reference.file + ", its recommended plan"
                                 : fmt::format("{}, plan {}", reference.file, reference.rank);
  return out;
}

ReferenceVerdict judge_reference(const RankingContext& context, KnownReference reference) {
  ReferenceVerdict out{
      .name = std::move(reference.name), .pins = reference.pins, .recorded = std::move(reference.recorded)};
  out.verdict = judge(context, reference.pins, OtherPins::kNone);
  if (out.verdict.outcome == LayoutOutcome::kIllegal) {
    const LayoutFilter there = scaled(reference.pins, context.request.slices.front().chips);
    if (pins_text(there) != pins_text(reference.pins)) {
      out.verdict = judge(context, there, OtherPins::kNone);
      out.adapted = adapted(reference.pins, out.verdict);
    }
  }
  out.chosen = chosen(reference.pins, out.verdict);
  return out;
}

}  // namespace scalecalc
