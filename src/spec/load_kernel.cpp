// Reads the files of attention kernels and the dates from which stacks use them.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "config/fields.h"
#include "spec/kernel_spec.h"
#include "spec/months.h"

namespace scalecalc {
namespace {

/// Where the fact is from; how sure it is stays in the file.
std::string read_source(Fields& fields) {
  fields.flag("recall", false);
  fields.optional_text("doubt");
  return fields.text("source");
}

std::vector<std::string> read_chips(Fields& fields, std::string_view key, const Catalog& catalog) {
  std::vector<std::string> out = fields.text_list(key);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto known = [&](std::string_view name) { return name == out[i]; };
    if (std::any_of(kArchitectureNames.begin(), kArchitectureNames.end(), known)) continue;
    if (const auto chip = catalog.name_of(CatalogKind::kHardware, out[i])) {
      out[i] = *chip;
      continue;
    }
    std::vector<std::string> names = catalog.names(CatalogKind::kHardware);
    names.insert(names.end(), kArchitectureNames.begin(), kArchitectureNames.end());
    const ConfigNode& node = *fields.node(key);
    fields.problems().add(node.items.empty() ? node.span : node.items[i].span,
                          fmt::format("{} is no chip of the catalog and no architecture", in_quotes(out[i])),
                          did_you_mean(nearest(out[i], names)));
  }
  return out;
}

std::optional<Coefficient> read_figure(Fields& fields, const char* key, UnitKind kind, Range range) {
  const ConfigNode* node = fields.node(key);
  if (node == nullptr || (node->kind == ConfigNode::Kind::kScalar && node->text == "none")) return std::nullopt;
  Fields one(*node, key, fields.problems());
  Coefficient out;
  out.value = one.quantity("value", kind, range);
  out.error = one.quantity("error", UnitKind::kFraction, {0, 1});
  out.source = read_source(one);
  one.finish();
  return out;
}

/// Since when, with its source; and with `never` why not.
void read_date(Fields& fields, KernelBuild& out) {
  const ConfigNode* never = fields.node("never");
  const ConfigNode* since = fields.node("since");
  if ((never == nullptr) == (since == nullptr)) {
    return fields.problems().add(fields.span(), "a build of a kernel has either 'since' or 'never'");
  }
  Fields date(never == nullptr ? *since : *never, never == nullptr ? "since" : "never", fields.problems());
  if (never == nullptr) out.since = required_date(date, "value");
  out.source = read_source(date);
  date.finish();
}

KernelBuild read_build(const ConfigNode& node, const Catalog& catalog, Problems& problems) {
  constexpr Range kOfPeak{1e-4, 1};
  constexpr Range kTokens{0, 65536};
  Fields fields(node, "build of a kernel", problems);
  KernelBuild out;
  fields.required_node("of");
  out.of = read_chips(fields, "of", catalog);
  out.except = read_chips(fields, "except", catalog);
  out.version = fields.optional_text("version").value_or("");
  read_date(fields, out);
  out.forward = read_figure(fields, "forward", UnitKind::kFraction, kOfPeak);
  out.backward = read_figure(fields, "backward", UnitKind::kFraction, kOfPeak);
  out.half_context = read_figure(fields, "half_context", UnitKind::kNumber, kTokens);
  out.half_context_backward = read_figure(fields, "half_context_backward", UnitKind::kNumber, kTokens);
  out.half_head_dim = read_figure(fields, "half_head_dim", UnitKind::kNumber, {0, 4096});
  fields.optional_text("doubt");
  fields.finish();
  return out;
}

/// Heads that the stack takes the kernel for: of two widths alone, or up to one.
void read_heads(Fields& fields, KernelUse& out) {
  const ConfigNode* node = fields.node("heads");
  if (node == nullptr) return;
  Fields heads(*node, "heads", fields.problems());
  const auto width = [&](const char* key) { return heads.optional_count(key, {1, 4096}); };
  const auto keys = width("keys"), values = width("values"), most = width("up_to");
  out.equal_widths = heads.flag("equal", false);
  out.widest_head = most.value_or(0);
  if (keys && values) out.widths = HeadWidths{*keys, *values};
  if (keys.has_value() != values.has_value() || (keys && (most || out.equal_widths))) {
    fields.problems().add(node->span, "'heads' says either 'keys' and 'values', or 'up_to' and 'equal'");
  }
  heads.finish();
}

void read_kernel_name(Fields& fields, const Catalog& catalog, KernelUse& out) {
  const std::string name = fields.text("kernel");
  if (name.empty() || name == "none") return;
  out.kernel = catalog.name_of(CatalogKind::kKernel, name).value_or("");
  if (!out.kernel.empty()) return;
  const std::vector<std::string> known = catalog.names(CatalogKind::kKernel);
  const std::string near = did_you_mean(nearest(name, known));
  fields.problems().add(fields.node("kernel")->span, fmt::format("unknown attention kernel {}", in_quotes(name)),
                        fmt::format("{}{}known: none, {}", near, near.empty() ? "" : " ", join(known, ", ")));
}

}  // namespace

KernelSpec load_kernel(const ConfigNode& document, const Catalog& catalog) {
  Problems problems;
  Fields fields(document, "attention kernel", problems);
  KernelSpec out;
  fields.schema("scalecalc-kernel/1");
  out.name = fields.text("name");
  out.title = fields.text("title");
  fields.text_list("aliases");
  fields.text("source");
  fields.word("counts", {"unmasked"});
  for (const ConfigNode& node : fields.required_node("chips").items) {
    out.builds.push_back(read_build(node, catalog, problems));
  }
  fields.finish();
  problems.throw_if_any();
  return out;
}

std::vector<KernelSpec> load_kernels(const Catalog& catalog) {
  std::vector<KernelSpec> out;
  for (const std::string& name : catalog.names(CatalogKind::kKernel)) {
    out.push_back(load_kernel(catalog.load(CatalogKind::kKernel, name), catalog));
  }
  return out;
}

std::vector<KernelUse> load_kernel_uses(const ConfigNode& stack, const Catalog& catalog) {
  const ConfigNode* list = stack.find("attention_kernels");
  if (list == nullptr) return {};
  Problems problems;
  std::vector<KernelUse> out;
  if (list->kind != ConfigNode::Kind::kSequence) problems.add(list->span, "attention_kernels must be a list");
  for (const ConfigNode& node : list->items) {
    Fields fields(node, "use of an attention kernel", problems);
    KernelUse use;
    use.of = fields.text_list("of");
    fields.required_node("for");
    use.chips = read_chips(fields, "for", catalog);
    read_kernel_name(fields, catalog, use);
    use.since = required_date(fields, "since");
    use.opt_in = fields.optional_text("opt_in").value_or("");
    read_heads(fields, use);
    read_source(fields);
    fields.finish();
    out.push_back(std::move(use));
  }
  problems.throw_if_any();
  return out;
}

}  // namespace scalecalc
