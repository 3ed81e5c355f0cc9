// Reads a scaling law and its published fit from its file.
#include "base/text.h"
#include "config/fields.h"
#include "spec/law_spec.h"

namespace scalecalc {
namespace {

constexpr Range kExponent{0.001, 0.999};
constexpr Range kScale{1e-6, 1e12};

void load_term(const ConfigNode& node, const std::string& what, double& scale, double& exponent, Problems& problems) {
  Fields fields(node, what, problems);
  scale = fields.quantity("scale", UnitKind::kNumber, kScale);
  exponent = fields.quantity("exponent", UnitKind::kNumber, kExponent);
  fields.finish();
}

LossLaw load_loss(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "loss", problems);
  LossLaw out;
  out.irreducible = fields.quantity("irreducible", UnitKind::kNumber, {0, 100});
  load_term(fields.required_node("parameters"), "loss.parameters", out.parameter_scale, out.parameter_exponent,
            problems);
  load_term(fields.required_node("tokens"), "loss.tokens", out.token_scale, out.token_exponent, problems);
  fields.finish();
  return out;
}

FrontierLaw load_frontier(const ConfigNode& node, Problems& problems) {
  Fields fields(node, "frontier", problems);
  FrontierLaw out;
  const auto tokens = fields.optional_quantity("tokens", UnitKind::kNumber);
  const auto parameters = fields.optional_quantity("parameters", UnitKind::kNumber);
  if (tokens.has_value() == parameters.has_value()) {
    problems.add(fields.span(), "frontier gives either tokens or parameters at its flops");
  }
  out.of_tokens = tokens.has_value();
  out.value = tokens ? *tokens : parameters.value_or(1);
  out.flops = fields.quantity("flops", UnitKind::kNumber);
  out.exponent = fields.quantity("exponent", UnitKind::kNumber, kExponent);
  fields.finish();
  return out;
}

void load_fit(const ConfigNode& node, ScalingLaw& law, Problems& problems) {
  Fields fields(node, "largest_fit", problems);
  law.largest_parameters = fields.optional_quantity("parameters", UnitKind::kCount);
  law.largest_tokens = fields.optional_quantity("tokens", UnitKind::kCount);
  law.largest_flops = fields.optional_quantity("flops", UnitKind::kNumber);
  fields.finish();
}

}  // namespace

ScalingLaw load_law(const ConfigNode& document) {
  Problems problems;
  Fields fields(document, "scaling law", problems);
  ScalingLaw out;
  fields.schema("scalecalc-law/1");
  out.name = fields.text("name");
  out.title = fields.text("title");
  fields.text_list("aliases");
  const ConfigNode* loss = fields.node("loss");
  const ConfigNode* frontier = fields.node("frontier");
  if (loss != nullptr) out.loss = load_loss(*loss, problems);
  if (frontier != nullptr) out.frontier = load_frontier(*frontier, problems);
  if ((loss == nullptr) == (frontier == nullptr)) {
    problems.add(fields.span(), "a scaling law has either loss or frontier",
                 "loss gives the whole surface, frontier only where its best points lie");
  }
  out.counts_embeddings = fields.word("counts", {"all", "non-embedding"}) == 0;
  if (const ConfigNode* fit = fields.node("largest_fit")) load_fit(*fit, out, problems);
  out.note = fields.optional_text("note").value_or("");
  out.source = join(fields.text_list("source"), ", ");
  if (const ConfigNode* sources = fields.node("sources")) {
    std::vector<std::string> texts;
    for (const ConfigNode::Entry& entry : sources->entries) texts.push_back(entry.value.text);
    if (!texts.empty()) out.source = join(texts, "; ");
  }
  fields.finish();
  problems.throw_if_any();
  return out;
}

}  // namespace scalecalc
