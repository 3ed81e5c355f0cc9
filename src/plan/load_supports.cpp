// Reads the `supports:` block of stacks/<name>.yaml.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>

#include "base/text.h"
#include "config/fields.h"
#include "plan/stack_supports.h"
#include "spec/kept.h"
#include "spec/load_stack.h"
#include "spec/months.h"

namespace scalecalc {
namespace {

const SupportQuantity* quantity_named(std::string_view name) {
  const auto all = support_quantities();
  const auto found = std::find_if(all.begin(), all.end(), [&](const SupportQuantity& q) { return q.name == name; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> quantity_names() {
  std::vector<std::string> out;
  for (const SupportQuantity& q : support_quantities()) out.push_back(q.name);
  return out;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(out) : std::nullopt;
}

/// What a scalar may be said of a quantity: "on", "dualpipe", "4".
std::optional<std::int64_t> plain_value(const SupportQuantity& q, std::string_view text) {
  if (q.kind == DimensionKind::kCount) return whole_number(text);
  if (q.kind == DimensionKind::kSwitch) {
    if (text == "on") return 1;
    return text == "off" ? std::optional<std::int64_t>(0) : std::nullopt;
  }
  const auto word = std::find(q.words.begin(), q.words.end(), text);
  return word == q.words.end() ? std::nullopt : std::optional(q.least + (word - q.words.begin()));
}

std::string expected_of(const SupportQuantity& q) {
  if (q.kind == DimensionKind::kSwitch) return "on or off";
  if (q.kind == DimensionKind::kWord) return join(q.words, ", ");
  return "a whole number, or a comparison: \">1\", \">=2 pp\", \"tp\", \"multiple of pp x vpp\"";
}

/// All comparisons of one map, joined by "and".
class ConditionReader {
 public:
  explicit ConditionReader(Problems& problems) : problems_(problems) {}

  std::vector<SupportCondition> read(const ConfigNode& map) {
    std::vector<SupportCondition> out;
    if (map.kind != ConfigNode::Kind::kMap) {
      problems_.add(map.span, fmt::format("expected a map of quantities, found {}", kind_name(map.kind)),
                    "such as {pp: \">1\", zero: [2, 3]}");
      return out;
    }
    for (const ConfigNode::Entry& entry : map.entries) {
      const SupportQuantity* of = quantity_named(entry.key);
      if (of == nullptr) {
        problems_.add(entry.key_span, fmt::format("unknown quantity {} in a condition", in_quotes(entry.key)),
                      near_or_all(entry.key, quantity_names()));
        continue;
      }
      out.push_back(one(*of, entry.value));
    }
    return out;
  }

  /// The values of a list, or of one scalar.
  std::vector<std::int64_t> values(const SupportQuantity& of, const ConfigNode& node) {
    std::vector<std::int64_t> out;
    const auto take = [&](const ConfigNode& scalar) {
      const auto value = plain_value(of, scalar.text);
      if (value) return out.push_back(*value);
      problems_.add(scalar.span, fmt::format("{} is no value of {}", in_quotes(scalar.text), of.name),
                    near_or(scalar.text, of));
    };
    if (node.kind == ConfigNode::Kind::kSequence) {
      for (const ConfigNode& item : node.items) take(item);
    } else {
      take(node);
    }
    return out;
  }

 private:
  static std::string near_or_all(std::string_view name, const std::vector<std::string>& all) {
    const std::string near = did_you_mean(nearest(name, all));
    return near.empty() ? "known: " + join(all, ", ") : near;
  }
  static std::string near_or(std::string_view text, const SupportQuantity& of) {
    const std::string near = did_you_mean(nearest(text, of.words));
    return near.empty() ? "expected " + expected_of(of) : near;
  }

  SupportCondition one(const SupportQuantity& of, const ConfigNode& node) {
    using Relation = SupportCondition::Relation;
    SupportCondition out{.of = &of, .values = {}, .factors = {}};
    if (node.kind == ConfigNode::Kind::kSequence || plain_value(of, node.text)) {
      out.values = values(of, node);
      return out;
    }
    std::string_view rest = node.text;
    static constexpr std::array<std::pair<std::string_view, Relation>, 5> kSigns{
        {{">=", Relation::kAtLeast},
         {"<=", Relation::kAtMost},
         {">", Relation::kAbove},
         {"<", Relation::kBelow},
         {"multiple of ", Relation::kMultipleOf}}};
    out.product = true;
    for (const auto& [sign, relation] : kSigns) {
      if (!rest.starts_with(sign)) continue;
      out.relation = relation;
      rest.remove_prefix(sign.size());
      break;
    }
    if (of.kind != DimensionKind::kCount || !product(rest, out)) {
      problems_.add(node.span, fmt::format("{} is no value of {}", in_quotes(node.text), of.name),
                    near_or(node.text, of));
    }
    return out;
  }

  /// "2 pp", "pp x vpp".
  static bool product(std::string_view text, SupportCondition& out) {
    bool any = false;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(' '), text.size());
      const std::string_view token = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (token.empty() || token == "x") continue;
      any = true;
      if (const auto number = whole_number(token)) {
        out.factor *= *number;
      } else if (const SupportQuantity* factor = quantity_named(token);
                 factor != nullptr && factor->kind == DimensionKind::kCount) {
        out.factors.push_back(factor);
      } else {
        return false;
      }
    }
    return any;
  }

  Problems& problems_;
};

void finish(SupportFact& fact) {
  int levels = 0;
  for (const SupportCondition& condition : fact.refused_if) levels |= condition.levels();
  fact.levels = static_cast<std::uint8_t>(levels);
}

std::string or_list(const std::vector<std::string>& items) {
  if (items.empty()) return "none";
  std::string out = items.front();
  for (std::size_t i = 1; i < items.size(); ++i) out += (i + 1 == items.size() ? " or " : ", ") + items[i];
  return out;
}

class SupportsReader {
 public:
  SupportsReader(const Catalog& catalog, Problems& problems) : catalog_(catalog), problems_(problems) {}

  StackSupports read(const ConfigNode& entry, const std::string& stack) {
    StackSupports out;
    Fields fields(entry, "supports", problems_);
    fields.text_list("of");
    out.unknown = fields.optional_text("unknown").value_or("");
    const ConfigNode* releases = fields.node("releases");
    fields.finish();
    if ((releases != nullptr) == !out.unknown.empty()) {
      problems_.add(entry.span, "a supports entry has releases, or says why they are unknown", "give one of the two");
    }
    if (releases == nullptr) return out;
    for (const ConfigNode& node : releases->items) {
      StackRelease next;
      if (!out.releases.empty()) next.facts = out.releases.back().facts;
      next.stack = stack;
      read_release(node, next);
      if (!out.releases.empty() && next.since < out.releases.back().since) {
        problems_.add(node.span, fmt::format("release {} is older than the one before it", next.version),
                      "releases stand in the order of their dates");
      }
      out.releases.push_back(std::move(next));
    }
    return out;
  }

 private:
  void read_release(const ConfigNode& node, StackRelease& out) {
    Fields fields(node, "release", problems_);
    out.version = fields.text("release");
    out.since = required_date(fields, "since");
    if (const auto like = fields.optional_text("like")) borrow(*fields.node("like"), *like, out);
    for (const std::string& name : fields.text_list("drops")) drop(*fields.node("drops"), name, out);
    if (const ConfigNode* has = fields.node("has")) read_sets(*has, out);
    if (const ConfigNode* rules = fields.node("rules")) read_rules(*rules, out);
    fields.optional_text("note");
    fields.finish();
    if (out.facts.size() > kMostFacts) {
      problems_.add(node.span, fmt::format("release {} has {} facts", out.version, out.facts.size()),
                    fmt::format("at most {}; each word left out of a set is one", kMostFacts));
    }
    for (SupportFact& fact : out.facts) finish(fact);
    out.group_facts();
  }

  /// "megatron@0.16": what another stack's release can do.
  void borrow(const ConfigNode& node, const std::string& like, StackRelease& out) {
    const std::size_t at = like.find('@');
    try {
      const auto other =
          stack_release(catalog_, like.substr(0, at), at == std::string::npos ? "" : like.substr(at + 1));
      if (other) out.facts = other->facts;
    } catch (const UserError& error) {
      problems_.add(node.span, fmt::format("like: {}: {}", like, error.diagnostics().front().message),
                    error.diagnostics().front().hint);
    }
  }

  void drop(const ConfigNode& node, const std::string& name, StackRelease& out) {
    if (std::erase_if(out.facts, [&](const SupportFact& f) { return f.name == name; }) > 0) return;
    std::vector<std::string> known;
    for (const SupportFact& f : out.facts) known.push_back(f.name);
    problems_.add(node.span, fmt::format("drops {}: the releases before have no such fact", in_quotes(name)),
                  did_you_mean(nearest(name, known)));
  }

  /// has: {schedule: {only: [1f1b], source: ...}}: whatever else a quantity may be is refused.
  void read_sets(const ConfigNode& has, StackRelease& out) {
    if (has.kind != ConfigNode::Kind::kMap) return problems_.add(has.span, "has: expected a map of quantities");
    for (const ConfigNode::Entry& entry : has.entries) {
      Fields fields(entry.value, "has." + entry.key, problems_);
      const ConfigNode& only = fields.required_node("only");
      const std::string source = fields.text("source");
      const bool recall = fields.flag("recall", false);
      fields.finish();
      if (entry.key == "offload") {
        read_offloads(only, source, recall, out);
      } else if (const SupportQuantity* of = quantity_named(entry.key);
                 of != nullptr && (of->kind == DimensionKind::kWord || of->name == "zero")) {
        read_set(*of, only, source, recall, out);
      } else {
        problems_.add(entry.key_span, fmt::format("has: {} is no word of a layout or question", in_quotes(entry.key)),
                      "cp_comm, loss, offload, precision, remat, schedule and zero are; rules are for the rest");
      }
    }
  }

  void read_set(const SupportQuantity& of, const ConfigNode& only, const std::string& source, bool recall,
                StackRelease& out) {
    std::erase_if(out.facts, [&](const SupportFact& f) { return f.name.starts_with(of.name + "="); });
    const std::vector<std::int64_t> allowed = ConditionReader(problems_).values(of, only);
    std::vector<std::string> words = of.words;
    if (of.name == "zero") words = {"0", "1", "2", "3"};
    const auto word = [&](std::int64_t value) { return words[static_cast<std::size_t>(value - of.least)]; };
    std::vector<std::string> listed;
    for (const std::int64_t value : allowed) listed.push_back(word(value));
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::int64_t value = of.least + static_cast<std::int64_t>(i);
      if (std::find(allowed.begin(), allowed.end(), value) != allowed.end()) continue;
      SupportFact fact{.name = fmt::format("{}={}", of.name, words[i]),
                       .says = fmt::format("{} is {}, not {}", of.name, or_list(listed), words[i]),
                       .source = source,
                       .recall = recall,
                       .refused_if = {}};
      fact.refused_if.push_back({.of = &of, .values = {value}, .factors = {}});
      if (of.name == "cp_comm") {
        fact.refused_if.push_back({.of = quantity_named("cp"),
                                   .relation = SupportCondition::Relation::kAbove,
                                   .values = {},
                                   .factor = 1,
                                   .factors = {},
                                   .product = true});
      }
      out.facts.push_back(std::move(fact));
    }
  }

  void read_offloads(const ConfigNode& only, const std::string& source, bool recall, StackRelease& out) {
    std::erase_if(out.facts, [&](const SupportFact& f) { return f.name.starts_with("offload="); });
    static const std::vector<std::string> kParts{"optimizer", "weights", "activations"};
    std::vector<std::string> allowed;
    for (const ConfigNode& item : only.items) {
      if (std::find(kParts.begin(), kParts.end(), item.text) == kParts.end()) {
        problems_.add(item.span, fmt::format("{} is nothing to offload", in_quotes(item.text)),
                      "expected " + join(kParts, ", "));
      }
      allowed.push_back(item.text);
    }
    for (const std::string& part : kParts) {
      if (std::find(allowed.begin(), allowed.end(), part) != allowed.end()) continue;
      SupportFact fact{
          .name = "offload=" + part,
          .says = fmt::format("offloads {}, not {}", allowed.empty() ? "nothing" : join_and(allowed), part),
          .source = source,
          .recall = recall,
          .refused_if = {}};
      if (allowed.empty()) fact.says = "offloads no " + part;
      fact.refused_if.push_back({.of = quantity_named("offload_" + part), .values = {1}, .factors = {}});
      out.facts.push_back(std::move(fact));
    }
  }

  void read_rules(const ConfigNode& rules, StackRelease& out) {
    if (rules.kind != ConfigNode::Kind::kMap) return problems_.add(rules.span, "rules: expected a map by name");
    for (const ConfigNode::Entry& entry : rules.entries) {
      std::erase_if(out.facts, [&](const SupportFact& f) { return f.name == entry.key; });
      Fields fields(entry.value, "rule " + entry.key, problems_);
      SupportFact fact{.name = entry.key,
                       .says = fields.text("says"),
                       .source = fields.text("source"),
                       .recall = fields.flag("recall", false),
                       .refused_if = {}};
      const ConfigNode* when = fields.node("when");
      const ConfigNode* needs = fields.node("needs");
      fields.finish();
      if (when == nullptr && needs == nullptr) {
        problems_.add(entry.key_span, fmt::format("rule {} has no condition", entry.key),
                      "when: what is refused; needs: what is then needed");
        continue;
      }
      ConditionReader reader(problems_);
      if (when != nullptr) fact.refused_if = reader.read(*when);
      if (needs == nullptr) {
        out.facts.push_back(std::move(fact));
        continue;
      }
      for (SupportCondition& condition : reader.read(*needs)) {
        condition.negated = true;
        SupportFact each = fact;
        each.refused_if.push_back(std::move(condition));
        out.facts.push_back(std::move(each));
      }
    }
  }

  const Catalog& catalog_;
  Problems& problems_;
};

/// The entry that lists the name, or the one that lists none.
const ConfigNode* entry_of(const ConfigNode& supports, const std::string& name) {
  const ConfigNode* of_the_rest = nullptr;
  for (const ConfigNode& entry : supports.items) {
    const ConfigNode* of = entry.find("of");
    if (of == nullptr) {
      of_the_rest = &entry;
      continue;
    }
    for (const ConfigNode& item : of->items) {
      if (item.text == name) return &entry;
    }
  }
  return of_the_rest;
}

}  // namespace

StackSupports load_supports(const Catalog& catalog, const std::string& name) {
  return load_supports(catalog, name, catalog.load(CatalogKind::kStack, name));
}

StackSupports load_supports(const Catalog& catalog, const std::string& name, const ConfigNode& document) {
  const StackSpec stack = load_stack(document);
  const bool alias = std::find(stack.frameworks.begin(), stack.frameworks.end(), name) != stack.frameworks.end();
  const std::string called = alias ? name : stack.name;
  const ConfigNode* supports = document.find("supports");
  StackSupports out;
  out.unknown = fmt::format("its file says nothing of what {} can launch", called);
  if (supports == nullptr) return out;
  Problems problems;
  if (supports->kind != ConfigNode::Kind::kSequence) {
    problems.add(supports->span, "supports: expected a list", "one entry for each name that has abilities of its own");
  } else if (const ConfigNode* entry = entry_of(*supports, called)) {
    out = SupportsReader(catalog, problems).read(*entry, called);
  }
  problems.throw_if_any();
  return out;
}

namespace {

std::shared_ptr<const StackSupports> kept_supports(const Catalog& catalog, const std::string& name) {
  return kept<StackSupports>(catalog, "supports of " + name, [&] { return load_supports(catalog, name); });
}

}  // namespace

std::shared_ptr<const StackRelease> release_of(const Catalog& catalog, const std::string& name,
                                               std::string_view month) {
  std::shared_ptr<const StackRelease> out;
  const auto supports = kept_supports(catalog, name);
  for (const StackRelease& release : supports->releases) {
    if (month_of(release.since) <= month) out = std::make_shared<const StackRelease>(release);
  }
  return out;
}

std::shared_ptr<const StackRelease> stack_release(const Catalog& catalog, const std::string& name,
                                                  const std::string& version) {
  const auto supports = kept_supports(catalog, name);
  const std::vector<StackRelease>& releases = supports->releases;
  if (version.empty()) {
    return releases.empty() ? nullptr : std::make_shared<const StackRelease>(releases.back());
  }
  std::vector<std::string> known;
  for (const StackRelease& release : releases) {
    if (release.version == version) return std::make_shared<const StackRelease>(release);
    known.push_back(release.version);
  }
  if (known.empty()) {
    throw UserError(fmt::format("--stack {}@{}: no release of {} is known: {}", name, version, name, supports->unknown),
                    fmt::format("--stack {} has its coefficients", name));
  }
  const std::string near = did_you_mean(nearest(version, known));
  throw UserError(fmt::format("{} has no release {}", name, in_quotes(version)),
                  fmt::format("{}{}releases: {}", near, near.empty() ? "" : " ", join(known, ", ")));
}

}  // namespace scalecalc
